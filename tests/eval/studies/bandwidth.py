# SPDX-License-Identifier: GPL-2.0-or-later
"""Bandwidth estimation (pep_bwe) on one path: loss, a changing bottleneck, fairness."""

from evallib.figures import Value, average, point, ratio
from evallib.path import side_by_side
from evallib.shared import estimate, mixed
from evallib.simulator import simulate

NAME = "bandwidth-estimation"
TEXT = "pep_bwe against reno and cubic: random loss, a loss burst, its estimate, fairness"

CONTROLS = ["reno", "cubic", "pep_bwe"]
LINK = {"rate": "100Mbit", "rtt": "20ms", "buffer": "1BDP"}


def losses(s, seconds, omit, seeds):
    curves = {c: [] for c in CONTROLS}
    none = None
    for loss in s.pick((0, 0.01, 0.1, 1), (0, 0.001, 0.01, 0.05, 0.1, 0.5, 1),
                       (0, 0.001, 0.01, 0.05, 0.1, 0.5, 1)):
        link = {**LINK, "loss": f"{loss}%"} if loss else LINK
        runs = [s.run(f"kernel {loss} % loss seed {seed}", side_by_side, controls=CONTROLS,
                      seconds=seconds, omit=omit, link=link, seed=seed)["controls"]
                for seed in range(1, seeds + 1)]
        by = {c: [r[c] for r in runs] for c in CONTROLS}
        for control, points in curves.items():
            points.append(point(loss or 0.0005, by[control]))
        none = none or by
        if loss == 0.01:
            s.claim("0.01 % loss: pep_bwe keeps the rate it has without", "129 of 131 Mbit/s",
                    ratio(by["pep_bwe"], none["pep_bwe"]), low=0.95, unit="of that without",
                    number=129 / 131)
        if loss >= 0.05:
            value = ratio(by["pep_bwe"], by["reno"])
            s.claim(f"{loss} % loss: pep_bwe over reno", ">= 2 (LIA)", value, low=2, unit="x",
                    number=2)
            s.target(f"pep_bwe over reno at {loss} % loss", value, "ratio", ">=", 2)
        if loss == 0.5:
            s.claim("0.5 % loss: reno almost stops", "LIA almost stops above 0.5 %",
                    ratio(by["reno"], none["reno"]), high=0.2, unit="of its rate without loss")
    s.plot("loss", "Random loss (leftmost: none), 100 Mbit/s, 20 ms", "loss (%)", "Mbit/s", curves,
           logx=True, logy=True)


def cross_traffic(s, seeds):
    hold = s.pick(4, 8, 15)
    runs = [s.run(f"kernel estimate beside UDP seed {seed}", estimate, control="pep_bwe", rate=20,
                  cross=[0, 12, 4, 16, 0], hold=hold, seed=seed) for seed in range(1, seeds + 1)]
    points = runs[0]["points"]
    s.plot("estimate", "Estimate against what UDP leaves of 20 Mbit/s", "seconds", "Mbit/s",
           {"left by UDP": [(t, x) for t, x, _ in points],
            "estimated": [(t, y) for t, _, y in points]})
    errors = [[abs(y - x) / x for t, x, y in r["points"] if t % hold > hold * 0.6] for r in runs]
    s.claim("error of the estimate once settled, UDP taking 0 to 80 %",
            "follows the true bandwidth", Value(*(sum(e) / len(e) for e in errors)), high=0.2,
            unit="of what UDP leaves")


def bursts(s, seconds, seeds):
    """Two readings of the study's "loss burst 0.1 %": losses in runs, and a lossy stretch."""
    runs = [s.run(f"kernel losses in runs of five seed {seed}", side_by_side,
                  controls=["reno", "pep_bwe"], seconds=seconds, omit=1.5, seed=seed,
                  link={**LINK, "burst": "0.02%:20%"})["controls"]
            for seed in range(1, seeds + 1)]
    s.claim("0.1 % lost in runs of five: pep_bwe over reno", "4 (40 against < 10 Mbit/s, LIA)",
            ratio([r["pep_bwe"] for r in runs], [r["reno"] for r in runs]), low=2, unit="x",
            number=4)
    first, length = s.pick((3, 4), (5, 8), (10, 20))
    runs = [s.run(f"kernel a stretch of 0.1 % loss seed {seed}", side_by_side,
                  controls=["reno", "pep_bwe"], seconds=first + length + 3.0, omit=1.0, seed=seed,
                  link={**LINK, "event": f"at {first}s loss 0.1% for {length}s"})["controls"]
            for seed in range(1, seeds + 1)]
    s.plot("stretch", f"0.1 % loss from {first} s to {first + length} s", "seconds", "Mbit/s",
           {c: r["series"] for c, r in runs[0].items()})
    during = [{c: average(r[c]["series"], first + length / 2, first + length) for c in r}
              for r in runs]
    s.claim("a stretch of 0.1 % loss, its second half: pep_bwe over reno",
            "4 (40 against < 10 Mbit/s, LIA)",
            Value(*(d["pep_bwe"] / d["reno"] for d in during)), low=2, unit="x", number=4)


def fairness(s, seconds, seeds):
    cells = {f"kernel fairness with {other} seed {seed}": (mixed, {
        "link": {**LINK, "rate": "50Mbit"}, "groups": [["pep_bwe", 1, 0], [other, 1, 0]],
        "seconds": seconds, "omit": s.pick(4.0, 8.0, 15.0), "seed": seed})
        for other in ("reno", "cubic") for seed in range(1, seeds + 1)}
    got = s.batch(cells)
    for other in ("reno", "cubic"):
        shares = []
        for seed in range(1, seeds + 1):
            rates = {c: r["goodput_mbps"] for c, r in
                     got[f"kernel fairness with {other} seed {seed}"]["controls"].items()}
            shares.append(rates[other] / sum(rates.values()))
        s.claim(f"{other}'s share beside pep_bwe (kernel)", "0.47" if other == "reno" else "(ours)",
                Value(*shares), 0.3, 0.7, "of the link", 0.47 if other == "reno" else None)
    fair = s.run("simulated fairness with reno", shared, seeds=s.pick(3, 7, 9), time_s=120)
    s.claim("reno's share beside pep_bwe (simulated)", "0.47", fair["reno_share"], 0.3, 0.6,
            "of the link", 0.47)


def shared(seeds, time_s):
    """One reno and one pep_bwe flow over one simulated bottleneck."""
    options = [["flow", f"count=1,rtt=20ms,cca={c}"] for c in ("reno", "pep_bwe")]
    runs = simulate(["reno"], options + [["rate", "100Mbit/s"], ["buffer", "1bdp"],
                                         ["time", f"{time_s}s"]], seeds, runs=True)
    rates = [sum(r["flows"][i]["goodput_mbps"] for r in runs) for i in range(2)]
    return {"reno_share": rates[0] / sum(rates), "simulated": True}


def study(s):
    s.remark("On single-path TCP: the study's figures are of MPTCP's LIA with two subflows, ours "
             "of one reno flow, which is more aggressive than one LIA subflow.")
    seeds = s.pick(1, 2, 6)
    losses(s, *s.pick((3.0, 1.5), (6.0, 3.0), (15.0, 4.0)), seeds)
    cross_traffic(s, seeds)
    bursts(s, s.pick(4.0, 8.0, 20.0), seeds)
    fairness(s, s.pick(6.0, 15.0, 60.0), s.pick(1, 4, 6))
