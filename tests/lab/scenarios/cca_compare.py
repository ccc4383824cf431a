# SPDX-License-Identifier: GPL-2.0-or-later
"""Our congestion controls beside the kernel's, over loss, RTT, jitter and buffers.

Each cell runs every control at the same time, each over a link of its own with the same settings and
seed. cca-compare is a choice of the cells in half a minute, cca-compare-full the whole matrix.
"""

import dataclasses
import statistics

from lib import scenario

from . import cca_pairs as bench

ALL = bench.KERNELS + bench.OURS


@dataclasses.dataclass
class Cell:
    """One setting of the link; `seeds` runs, of which medians count."""

    name: str
    link: dict
    controls: tuple = ALL
    flows: int = 1
    seconds: float = 3.5
    omit: float = 1.5
    seeds: int = 1
    far: str = None
    port: bool = True  # pep_bbr is held to the kernel's bbr here

    def run(self):
        runs = [bench.measure(self.controls, self.link, self.flows, self.seconds, self.omit,
                              seed, self.far) for seed in range(1, self.seeds + 1)]
        return {c: {key: round(statistics.median(run[c][key] for run in runs), 4)
                    for key in runs[0][c]} for c in self.controls}


# Rates that give a useful BDP at each RTT and leave the machine time: 8 controls run at once.
RATE = {"2ms": "50Mbit", "20ms": "20Mbit", "80ms": "20Mbit"}


def link(rtt, loss="0%", buffer="1BDP", jitter=None, rate=None):
    settings = {"rate": rate or RATE[rtt], "rtt": rtt, "buffer": buffer}
    if loss != "0%":
        settings["loss"] = loss
    if jitter:
        settings["jitter"] = jitter
    return settings


# 4 flows of 10 ms and 4 of 50 ms; a BDP is that of the mean RTT.
MIXED = {"rate": "20Mbit", "rtt": "30ms", "delay": "5ms", "buffer": "2BDP"}
BBRS = ("bbr", "pep_bbr", "pep_bbr_acd", "pep_bbr_a")
LOSSY = ("cubic", "reno", "pep_bwe")


def quick():
    yield Cell("1 % loss 20 ms", link("20ms", "1%"), seconds=3)
    yield Cell("0.1 % loss 20 ms 100 Mbit/s", link("20ms", "0.1%", rate="100Mbit"), LOSSY,
               seconds=4, omit=3, port=False)  # slow start of cubic and reno is over by then
    # The share of the flows settles for some seconds; a shorter run says little of BBR-A.
    yield Cell("4 x 10 ms + 4 x 50 ms, 2 BDP", MIXED, ("bbr", "pep_bbr_a"), flows=8, seconds=10,
               omit=4, far="40ms", port=False)
    yield Cell("4 flows, 5 BDP", link("20ms", buffer="5BDP"), ("bbr", "pep_bbr", "pep_bbr_d"),
               flows=4, seconds=4, omit=5)


def full():
    for rtt in RATE:
        for loss in ("0%", "0.01%", "0.1%", "1%", "5%"):
            yield Cell(f"{loss} loss {rtt}", link(rtt, loss), seconds=8, omit=3,
                       seeds=3 if loss in ("1%", "5%") else 1)
    for jitter in ("10ms", "30ms"):
        for rtt in ("20ms", "80ms"):
            for loss in ("0%", "1%"):
                yield Cell(f"jitter {jitter}, {loss} loss {rtt}", link(rtt, loss, "5BDP", jitter),
                           seconds=8, omit=4, seeds=2)
    for rtt in ("20ms", "80ms"):
        for buffer in ("0.5BDP", "1BDP", "2BDP", "5BDP"):
            yield Cell(f"4 flows, {buffer} {rtt}", link(rtt, buffer=buffer), flows=4, seconds=15,
                       omit=12)
    for loss in ("0%", "0.01%", "0.05%", "0.1%", "0.5%", "1%"):
        yield Cell(f"{loss} loss 20 ms 100 Mbit/s", link("20ms", loss, rate="100Mbit"), LOSSY,
                   seconds=10, omit=3, seeds=2, port=False)
    yield Cell("4 x 10 ms + 4 x 50 ms, 2 BDP", MIXED, BBRS, flows=8, seconds=30, omit=5, seeds=2,
               far="40ms", port=False)
    yield Cell("with ProbeRTT, 20 ms", link("20ms"), ("bbr", "pep_bbr", "pep_bbr_a"), seconds=25,
               omit=1)


def _show(t, name, results):
    t.note(f"{name}")
    for control, got in results.items():
        t.note(f"  {control:<12} {got['goodput_mbps']:>8.2f} Mbit/s  {got['retrans_percent']:>7.3f} % "
               f"again  queue {got['queue_p50_ms']:>7.2f} / {got['queue_p95_ms']:>7.2f} ms  "
               f"Jain {got['jain']:.3f}")


def _port(t, name, results):
    """Whether our BBR does what the kernel's does."""
    if "bbr" not in results or "pep_bbr" not in results:
        return
    ours, theirs = results["pep_bbr"], results["bbr"]
    t.near(f"{name}: goodput of pep_bbr is bbr's within 5 %", ours["goodput_mbps"],
           theirs["goodput_mbps"], relative=0.05)


def _targets(t, got):
    """Numbers of the issue, where a cell shows them."""
    for name, results in got.items():
        if "loss" in name and "pep_bwe" in results and "100 Mbit/s" in name:
            loss = float(name.split("%", 1)[0])
            for other in ("cubic", "reno"):
                if 0.05 <= loss <= 1:
                    t.target(f"{name}: pep_bwe over {other}",
                             results["pep_bwe"]["goodput_mbps"] / results[other]["goodput_mbps"],
                             "ratio", ">=", 2)
        if name.startswith("1% loss") or name.startswith("1 % loss"):
            t.target(f"{name}: pep_bbr_a over bbr",
                     results["pep_bbr_a"]["goodput_mbps"] / results["bbr"]["goodput_mbps"],
                     "ratio", ">=", 0.95)
    clean, lossy = (got.get(f"{loss} loss 20 ms 100 Mbit/s") for loss in ("0%", "0.01%"))
    if clean and lossy:
        t.target("pep_bwe: 0.01 % loss over none",
                 lossy["pep_bwe"]["goodput_mbps"] / clean["pep_bwe"]["goodput_mbps"], "ratio",
                 ">=", 0.98)
    mixed = got["4 x 10 ms + 4 x 50 ms, 2 BDP"]
    a, bbr = mixed["pep_bbr_a"], mixed["bbr"]
    t.target("mixed RTT: pep_bbr_a's retransmissions over bbr's",
             a["retrans_percent"] / max(bbr["retrans_percent"], 1e-9), "ratio", "<=", 0.4)
    t.target("mixed RTT: pep_bbr_a's Jain index over bbr's", a["jain"] / bbr["jain"], "ratio", ">=",
             1.1)
    t.target("mixed RTT: pep_bbr_a's goodput over bbr's", a["goodput_mbps"] / bbr["goodput_mbps"],
             "ratio", ">=", 0.98)
    for name in ("4 flows, 5 BDP", "4 flows, 5BDP 20ms", "4 flows, 5BDP 80ms"):
        if name in got:
            d, bbr = got[name]["pep_bbr_d"], got[name]["bbr"]
            t.target(f"{name}: pep_bbr_d's queueing delay over bbr's",
                     d["queue_p50_ms"] / bbr["queue_p50_ms"], "ratio", "<=", 0.5)
            t.target(f"{name}: pep_bbr_d's goodput over bbr's",
                     d["goodput_mbps"] / bbr["goodput_mbps"], "ratio", ">=", 0.98)


def _compare(t, cells):
    bench.need_controls()
    got = {}
    for cell in cells:
        known = bench.available(cell.controls)
        results = dataclasses.replace(cell, controls=tuple(known)).run()
        got[cell.name] = results
        _show(t, cell.name, results)
        for control, result in results.items():
            t.check(f"{cell.name}: {control} moves data", result["goodput_mbps"] > 0.1,
                    f"{result['goodput_mbps']} Mbit/s")
        if cell.port:
            _port(t, cell.name, results)
    _targets(t, got)
    t.data["cells"] = got


@scenario("cca-compare", "our congestion controls beside the kernel's; pep_bbr does as bbr",
          timing=True)
def cca_compare(t):
    _compare(t, quick())


@scenario("cca-compare-full", "the same over loss x RTT, jitter and buffers", timing=True,
          by_name_only=True)
def cca_compare_full(t):
    _compare(t, full())
