# SPDX-License-Identifier: GPL-2.0-or-later
"""BBR against loss-based controls on a fading LTE downlink, standing and moving."""

import os

from evallib.channel import mean_mbps, trace
from evallib.figures import Value, mean, mean_value, point, ratio, values
from evallib.path import longest_gap, side_by_side, transfer

NAME = "lte-bbr"
TEXT = "reno, cubic, bbr and our controls on fading LTE channels, end to end and split"

PROFILES = {"none": ("--profile=static",), "eva60": ("--profile=eva", "--speed=60"),
            "eva120": ("--profile=eva", "--speed=120"), "hst": ("--profile=hst",)}
#: Of the study's 45 Mbit/s: several controls run at once.
SCALE = 0.5
BUFFER = "300KB"
#: The server is far away where paths are compared.
CORE = {"rate": "100Mbit", "rtt": "50ms", "loss": "0.01%", "buffer": "625KB"}


def controls(s):
    few = ["reno", "cubic", "bbr", "pep_bbr"]
    return s.pick(few, few + ["pep_bbr_a", "pep_bbr_d", "pep_bwe"],
                  few + ["pep_bbr_a", "pep_bbr_d", "pep_bwe"])


def channel(s, name, sinr, seed):
    return trace(s.folder, f"{name}-{sinr}-{seed}-{SCALE}", "lte", *PROFILES[name],
                 f"--sinr={sinr}", f"--seed={seed}", f"--scale={SCALE}", "--time=25")


def moving_channel(s, way, seconds, seed):
    start, ramp = {"away": (20, -30), "towards": (-10, 30)}[way]
    return trace(s.folder, f"{way}-{seconds:g}-{seed}", "lte", "--profile=eva", "--speed=60",
                 f"--sinr={start}", f"--ramp={ramp / seconds:g}", f"--seed={seed}",
                 f"--scale={SCALE}", f"--time={seconds + 2:g}")


class Cells:
    """The static cells: every control side by side, each over a link of its own."""

    def __init__(self, s, seconds, seeds):
        self._s, self._seconds, self._seeds = s, seconds, seeds
        self._cells = {}
        for sinr in s.pick((20,), (20, 10), (20, 10)):
            for name in PROFILES:
                for more in (0, 50):
                    self._add(name, sinr, more, 0)
        for name, losses in (("eva120", s.pick((0.1,), (0.1,), (0.1,))),
                             ("hst", s.pick((1,), (0.1, 1), (0.1, 1)))):
            for loss in losses:
                for more in (0, 50):
                    self._add(name, 20, more, loss)
        self._got = s.batch(self._cells)

    def _key(self, name, sinr, more, loss, seed):
        lost = f" {loss:g} % lost" if loss else ""
        return f"{name} {sinr} dB +{more} ms{lost} seed {seed}"

    def _add(self, name, sinr, more, loss):
        for seed in range(1, self._seeds + 1):
            link = {"trace": channel(self._s, name, sinr, seed), "rtt": f"{30 + more}ms",
                    "buffer": BUFFER}
            if loss:
                link["loss"] = f"{loss:g}%"
            self._cells[self._key(name, sinr, more, loss, seed)] = side_by_side, {
                "controls": controls(self._s), "seed": seed, "seconds": self._seconds,
                "omit": 1.0, "link": link}

    def of(self, control, name, sinr=20, more=0, loss=0):
        """The results of all seeds."""
        return [self._got[self._key(name, sinr, more, loss, seed)]["controls"][control]
                for seed in range(1, self._seeds + 1)]

    def alone(self):
        """One cell again with nothing beside it: (its controls, those of the first run)."""
        key = self._key("eva60", 20, 0, 0, 1)
        function, settings = self._cells[key]
        again = self._s.run(f"{key}, alone", function, **settings)["controls"]
        return again, self._got[key]["controls"]


def averages(s, cells):
    share = [min(r) / max(r) for r in zip(*(values(cells.of(c, "none")) for c in controls(s)))]
    s.claim("ideal channel: all controls alike", "about 45 Mbit/s each", Value(*share), low=0.9,
            unit="worst over best", number=1)
    for name, text, published, low, high in (
            ("eva60", "EVA 60 km/h over ideal, bbr", "harmless", 0.8, 1.05),
            ("eva120", "EVA 120 km/h over ideal, bbr", "about 0.66", 0.55, 0.75),
            ("hst", "HST 300 km/h over ideal, bbr", "< 0.5", None, 0.5)):
        s.claim(text, published, ratio(cells.of("bbr", name), cells.of("bbr", "none")), low, high,
                "of ideal", {"eva60": 1, "eva120": 0.66}.get(name))


def loss_and_delay(s, cells):
    """Where the study saw loss-based controls fall behind; with and without residual losses."""
    for loss in s.pick((0, 1), (0, 0.1, 1), (0, 0.1, 1)):
        lost = f", {loss:g} % lost behind HARQ" if loss else ", RLC repairs all"
        s.claim(f"HST{lost}: bbr over cubic", "BBR ahead",
                ratio(cells.of("bbr", "hst", loss=loss), cells.of("cubic", "hst", loss=loss)),
                low=1.02, unit="x")
    for loss in (0, 0.1):
        lost = f", {loss:g} % lost behind HARQ" if loss else ", RLC repairs all"
        kept = {c: ratio(cells.of(c, "eva120", more=50, loss=loss),
                         cells.of(c, "eva120", loss=loss)) for c in ("bbr", "cubic", "reno")}
        s.claim(f"EVA 120 and 50 ms more{lost}: bbr keeps its rate", "keeps it", kept["bbr"],
                low=0.9, unit="of that without", number=1)
        for control in ("cubic", "reno"):
            s.claim(f"EVA 120 and 50 ms more{lost}: {control} keeps less", "drops", kept[control],
                    high=0.9, unit="of that without")


def queues(s, cells):
    for name, more, published, bound in (("none", 0, "low", 0.5), ("eva60", 0, "low", 0.5),
                                         ("eva120", 50, "as much as CUBIC's", None)):
        value = ratio(cells.of("bbr", name, more=more), cells.of("cubic", name, more=more),
                      "queue_p50_ms")
        s.claim(f"{name}, +{more} ms: bbr's queueing delay over cubic's", published, value,
                high=bound, low=0.8 if bound is None else None, unit="x")
    outs = sum(r["timeouts"] for c in ("bbr", "cubic", "reno") for name in PROFILES
               for r in cells.of(c, name))
    s.remark(f"Time-outs of reno, cubic and bbr in all static cells without more delay: {outs}.")


def pictures(s, cells):
    names = ["none", "EVA 60", "EVA 120", "HST"]
    for sinr in s.pick((20,), (20, 10), (20, 10)):
        for more in (0, 50):
            s.plot(f"profiles-{sinr}-{more}", f"Goodput by channel, {sinr} dB, +{more} ms", "",
                   "Mbit/s", {c: [point(i, cells.of(c, n, sinr, more))
                                  for i, n in enumerate(PROFILES)] for c in controls(s)},
                   ticks=names)
    s.plot("queue", "Median queueing delay by channel, 20 dB, +0 ms", "", "ms",
           {c: [point(i, cells.of(c, n), "queue_p50_ms") for i, n in
                enumerate(PROFILES)] for c in controls(s)}, ticks=names)
    s.plot("time", "Goodput over time, EVA 120, 20 dB, +50 ms, 0.1 % lost, seed 1", "seconds",
           "Mbit/s", {c: cells.of(c, "eva120", 20, 50, 0.1)[0]["series"]
                      for c in ("reno", "cubic", "bbr", "pep_bbr")})


def moving(s, seconds, seeds):
    """Away from the cell and towards it, 30 dB in the time of a download."""
    cells = {}
    for way in ("away", "towards"):
        for seed in range(1, seeds + 1):
            link = {"trace": moving_channel(s, way, seconds, seed), "rtt": "30ms",
                    "buffer": BUFFER}
            cells[way, seed] = (f"{way} seed {seed}", (side_by_side, {
                "controls": controls(s), "seed": seed, "seconds": seconds - 0.5, "omit": 0.5,
                "link": link}))
    got = s.batch(dict(cells.values()))
    by = {way: [got[f"{way} seed {seed}"]["controls"] for seed in range(1, seeds + 1)]
          for way in ("away", "towards")}
    for way, runs in by.items():
        title = "Moving away from the cell" if way == "away" else "Moving towards the cell"
        s.plot(way, f"{title}, seed 1", "seconds", "Mbit/s",
               {c: r["series"] for c, r in runs[0].items()})
    away = by["away"]
    outs = {c: sum(r[c]["timeouts"] for r in away) for c in ("bbr", "cubic", "reno")}
    s.claim("moving away: time-outs of bbr, cubic, reno", "bbr none, the others some",
            f"{outs['bbr']}, {outs['cubic']}, {outs['reno']}",
            met=outs["bbr"] == 0 and outs["cubic"] + outs["reno"] > 0,
            unit=f"in {seeds} download(s) each")
    again = {c: Value(*(r[c]["retrans_percent"] for r in away)) for c in outs}
    s.claim("moving away: bbr fills no queue, the others lose packets to it", "(what caused them)",
            f"{again['bbr'].mean:.2f}, {again['cubic'].mean:.2f}, {again['reno'].mean:.2f}",
            met=again["bbr"].mean < 0.2 * min(again["cubic"].mean, again["reno"].mean),
            unit="% sent again (bbr, cubic, reno)")
    s.claim("moving away: bbr's queueing delay (p95) over cubic's", "low",
            ratio([r["bbr"] for r in away], [r["cubic"] for r in away], "queue_p95_ms"), high=0.5,
            unit="x")
    gaps = {c: Value(*(longest_gap(r[c]["series"]) for r in away)).mean for c in outs}
    s.claim("moving away: longest standstill at the UE (bbr, cubic, reno; mean)",
            "the others' time-outs", ", ".join(f"{gap:.2f}" for gap in gaps.values()),
            met=gaps["bbr"] < 0.5 and max(gaps["cubic"], gaps["reno"]) >= 1, unit="s")


def _paths(s, seconds, seeds):
    """{key: cell} of downloads from a far server, end to end and split."""
    cells = {}
    kinds = s.pick([("eva120", 20, 0)], [(n, 20, 0) for n in PROFILES] + [("away", 20, 0)],
                   [(n, sinr, more) for n in PROFILES for sinr in (20, 10) for more in (0, 50)]
                   + [("away", 20, 0), ("towards", 20, 0)])
    for kind in kinds:
        name, sinr, more = kind
        for seed in range(1, seeds + 1):
            down = channel(s, name, sinr, seed) if name in PROFILES else \
                moving_channel(s, name, seconds + 1, seed)
            radio = {"rtt": "30ms", "buffer": BUFFER, "down": {"trace": down}, "loss": "0.1%",
                     "up": {"rate": "10Mbit"}}
            for server in ("cubic", "bbr"):
                for mode in ("e2e", "split"):
                    cells[kind, server, mode, seed] = transfer, {
                        "server": server, "mode": mode, "radio": radio, "seconds": seconds,
                        "omit": 1.0, "seed": seed, "core": {**CORE, "rtt": f"{50 + more}ms"}}
    return kinds, cells


def split(s, seconds, seeds):
    """The same channels with the server far away, end to end and split."""
    kinds, cells = _paths(s, seconds, seeds)
    text = {key: "{0[0]} {0[1]} dB +{0[2]} ms {1} {2} seed {3}".format(*key) for key in cells}
    # Two of a kind side by side see the same moments of the machine; they are light.
    got = s.batch({text[key]: cell for key, cell in cells.items()}, 2 * max(1, s.jobs - 1))
    for kind in kinds:
        for server in ("cubic", "bbr"):
            runs = {mode: [got[text[kind, server, mode, seed]] for seed in range(1, seeds + 1)]
                    for mode in ("e2e", "split")}
            gain = ratio(runs["split"], runs["e2e"])
            name = f"{kind[0]}, {kind[1]} dB, +{kind[2]} ms, 0.1 % lost"
            s.claim(f"{name}: split over end to end, {server} server", ">= 0.97", gain, low=0.97,
                    unit="x")
            s.target(f"{name}: split over end to end, {server}", gain, "ratio", ">=", 0.97)


def public(s, seconds):
    """Traces given by path: every control, and split against end to end."""
    for path in s.traces:
        name = os.path.basename(path)
        got = s.run(f"{name} controls", side_by_side, controls=controls(s), seconds=seconds,
                    omit=1.0, link={"trace": path, "rtt": "30ms", "buffer": BUFFER})["controls"]
        s.remark(f"{name} carries {mean_mbps(path, seconds + 1):.1f} Mbit/s. "
                 + ", ".join(f"{c} {r['goodput_mbps']:.2f} Mbit/s, queue {r['queue_p50_ms']:.0f} ms"
                             for c, r in got.items()) + ".")
        s.plot(f"trace-{name}", name, "seconds", "Mbit/s",
               {c: r["series"] for c, r in got.items()})
        radio = {"rtt": "30ms", "buffer": BUFFER, "down": {"trace": path}, "loss": "0.1%",
                 "up": {"rate": "10Mbit"}}
        cells = {f"{name} {server} {mode}": (transfer, {
            "server": server, "mode": mode, "radio": radio, "core": CORE, "seconds": seconds,
            "omit": 1.0, "seed": 1}) for server in ("cubic", "bbr") for mode in ("e2e", "split")}
        runs = s.batch(cells, 4)
        for server in ("cubic", "bbr"):
            s.claim(f"{name}: split over end to end, {server} server", ">= 0.97",
                    ratio([runs[f"{name} {server} split"]], [runs[f"{name} {server} e2e"]]),
                    low=0.97, unit="x")


def study(s):
    seconds, seeds = s.pick(4.0, 19.0, 19.0), s.pick(1, 4, 6)
    cells = Cells(s, seconds, seeds)
    s.remark(f"Traces by tests/lab/chan, scaled by {SCALE}: the ideal channel carries "
             f"{mean_mbps(channel(s, 'none', 20, 1)):.1f} Mbit/s of IP packets. Controls run side "
             "by side, each on a link of its own, 30 ms round trip, 300 kB of buffer. Our HARQ "
             "repairs every block and RLC waits for it; \"lost behind HARQ\" are independent "
             "losses on top, as with unacknowledged RLC.")
    averages(s, cells)
    loss_and_delay(s, cells)
    queues(s, cells)
    pictures(s, cells)
    alone, beside = cells.alone()
    off = max(abs(alone[c]["goodput_mbps"] / beside[c]["goodput_mbps"] - 1) for c in controls(s))
    s.claim("method: a cell alone and beside others, largest difference in goodput",
            "(ours) <= 3 %", 100 * off, high=3, unit="%")
    s.remark("Goodput of the static cells, mean and 95 % confidence interval: " + "; ".join(
        f"{n} {c} {mean_value(cells.of(c, n))}" for n in PROFILES for c in controls(s)) + ".")
    moving(s, s.pick(8.0, 20.0, 20.0), seeds)
    split(s, seconds, s.pick(1, 3, 6))
    public(s, seconds)
    s.remark(f"Mean goodput of bbr on HST at 20 dB: {mean(cells.of('bbr', 'hst')):.1f} Mbit/s.")
