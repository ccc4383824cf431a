# SPDX-License-Identifier: GPL-2.0-or-later
"""BBR against loss-based controls on a fading LTE downlink, standing and moving."""

from evallib.channel import mean_mbps, trace
from evallib.path import side_by_side, transfer
from evallib.session import interval

NAME = "lte-bbr"
TEXT = "reno, cubic, bbr and our controls on fading LTE channels, and split"

PROFILES = {"none": ("--profile=static",), "eva60": ("--profile=eva", "--speed=60"),
            "eva120": ("--profile=eva", "--speed=120"), "hst": ("--profile=hst",)}
#: Of the study's 45 Mbit/s: several controls run at once.
SCALE = 0.5
BUFFER = "300KB"


def controls(s):
    return ["reno", "cubic", "bbr", "pep_bbr"] if s.quick else \
        ["reno", "cubic", "bbr", "pep_bbr", "pep_bbr_a", "pep_bbr_d", "pep_bwe"]


def cells(s, seconds, seeds):
    """{(profile, SINR, more delay): {control: [result of each seed]}} and traces."""
    got, made = {}, {}
    for sinr in ((20,) if s.quick else (20, 10)):
        for name, options in PROFILES.items():
            for more in (0, 50):
                runs = []
                for seed in range(1, seeds + 1):
                    path = trace(s.folder, f"{name}-{sinr}-{seed}-{SCALE}", "lte", *options,
                                 f"--sinr={sinr}", f"--seed={seed}", f"--scale={SCALE}",
                                 "--time=25")
                    made[name, sinr] = path
                    runs.append(s.run(f"{name} {sinr} dB +{more} ms seed {seed}", side_by_side,
                                      controls=controls(s), seed=seed, seconds=seconds, omit=1.0,
                                      link={"trace": path, "rtt": f"{30 + more}ms",
                                            "buffer": BUFFER}))
                got[name, sinr, more] = {c: [r["controls"][c] for r in runs] for c in controls(s)}
    return got, made


def avg(results, field="goodput_mbps"):
    return sum(r[field] for r in results) / len(results)


def static_claims(s, got):
    ideal = {c: avg(r) for c, r in got["none", 20, 0].items()}
    share = min(ideal.values()) / max(ideal.values())
    s.claim("ideal channel: all controls alike", "about 45 Mbit/s each", share, share >= 0.9,
            "worst over best", 1)
    for name, text, published, low, high in (
            ("eva60", "EVA 60 km/h over ideal, bbr", "harmless", 0.8, 1.05),
            ("eva120", "EVA 120 km/h over ideal, bbr", "about 0.66", 0.55, 0.75),
            ("hst", "HST 300 km/h over ideal, bbr", "< 0.5", 0, 0.5)):
        value = avg(got[name, 20, 0]["bbr"]) / ideal["bbr"]
        s.claim(text, published, value, low <= value <= high, "of ideal",
                {"eva60": 1, "eva120": 0.66}.get(name))
    hst = {c: avg(r) for c, r in got["hst", 20, 0].items()}
    s.claim("HST: bbr ahead of cubic", "BBR ahead", hst["bbr"] / hst["cubic"],
            hst["bbr"] > hst["cubic"], "x")
    kept = {c: avg(got["eva120", 20, 50][c]) / avg(got["eva120", 20, 0][c])
            for c in ("bbr", "cubic", "reno")}
    s.claim("EVA 120 and 50 ms more delay: bbr keeps its rate", "keeps it", kept["bbr"],
            kept["bbr"] >= 0.9, "of that without", 1)
    s.claim("EVA 120 and 50 ms more delay: reno over bbr", "others drop",
            kept["reno"] / kept["bbr"], kept["reno"] < kept["bbr"], "of bbr's share")
    queue = {c: avg(r, "queue_p50_ms") for c, r in got["none", 20, 0].items()}
    s.claim("bbr's queueing delay over cubic's, ideal channel", "low",
            queue["bbr"] / queue["cubic"], queue["bbr"] < 0.5 * queue["cubic"], "x")
    s.plot("profiles", "Goodput by channel (0 none, 1 EVA 60, 2 EVA 120, 3 HST), 20 dB", "channel",
           "Mbit/s", {c: [(i, avg(got[n, 20, 0][c])) for i, n in enumerate(PROFILES)]
                      for c in controls(s)})


def moving(s, seconds, seeds):
    series, outs = {}, []
    for way, ramp, start in (("away", -1.5, 20), ("towards", 1.5, 0)):
        runs = []
        for seed in range(1, seeds + 1):
            path = trace(s.folder, f"{way}-{seed}", "lte", "--profile=eva", "--speed=60",
                         f"--sinr={start}", f"--ramp={ramp * 20 / seconds:g}", f"--seed={seed}",
                         f"--scale={SCALE}", f"--time={seconds + 2:g}")
            runs.append(s.run(f"{way} seed {seed}", side_by_side, controls=controls(s), seed=seed,
                              seconds=seconds - 0.5, omit=0.5,
                              link={"trace": path, "rtt": "30ms", "buffer": BUFFER}))
        outs.append({c: sum(r["controls"][c]["timeouts"] for r in runs) for c in controls(s)})
        series = {c: r["series"] for c, r in runs[0]["controls"].items()}
        s.plot(way, f"Moving {way} the cell" if way == "towards" else "Moving away from the cell",
               "seconds", "Mbit/s", series)
    s.claim("moving away: time-outs of bbr", "none, others have some", outs[0]["bbr"],
            outs[0]["bbr"] == 0 and outs[0]["cubic"] + outs[0]["reno"] > 0,
            f"(cubic {outs[0]['cubic']}, reno {outs[0]['reno']})")


def split(s, made, seconds):
    """The same channels with the server far away, end to end and split."""
    for name in (("eva120",) if s.quick else tuple(PROFILES)):
        for server in ("cubic", "bbr"):
            radio = {"rtt": "30ms", "buffer": BUFFER, "down": {"trace": made[name, 20]},
                     "up": {"rate": "10Mbit"}, "loss": "0.1%"}
            core = {"rate": "100Mbit", "rtt": "50ms", "loss": "0.01%", "buffer": "625KB"}
            rate = {mode: s.run(f"{name} {server} {mode}", transfer, server=server, mode=mode,
                                radio=radio, core=core, seconds=seconds, omit=1.0,
                                seed=1)["goodput_mbps"] for mode in ("e2e", "split")}
            gain = rate["split"] / rate["e2e"]
            s.claim(f"{name}, 0.1 % radio loss: split over end to end, {server} server", ">= 0.97",
                    gain, gain >= 0.97, "x")
            s.target(f"{name}: split over end to end, {server}", gain, "ratio", ">=", 0.97)


def study(s):
    seconds, seeds = (4.0, 1) if s.quick else (20.0, 6)
    got, made = cells(s, seconds, seeds)
    ideal = mean_mbps(made["none", 20])
    s.remark(f"Traces by tests/lab/chan, scaled by {SCALE}: the ideal channel carries {ideal:.1f} "
             "Mbit/s of IP packets. Controls run side by side, each on a link of its own.")
    if seeds > 1:
        for key, by_control in got.items():
            s.remark(f"{key[0]}, {key[1]} dB, +{key[2]} ms: " + ", ".join(
                f"{c} {avg(r):.2f} +- {interval([x['goodput_mbps'] for x in r]):.2f} Mbit/s"
                for c, r in by_control.items()))
    static_claims(s, got)
    moving(s, 8.0 if s.quick else 20.0, seeds)
    split(s, made, seconds)
