# SPDX-License-Identifier: GPL-2.0-or-later
"""BBR-A: retransmissions and fairness of eight flows in two RTT groups."""

from evallib.path import side_by_side
from evallib.simulator import simulate

NAME = "bbr-a"
TEXT = "eight flows in two RTT groups, cubic, bbr, pep_bbr_acd and pep_bbr_a"

KERNEL = ("cubic", "bbr", "pep_bbr_acd", "pep_bbr_a")
SIMULATED = ("cubic", "pep_bbr", "pep_bbr_acd", "pep_bbr_a")
#: A buffer is in BDP of the two groups' mean RTT, 30 ms, at 20 Mbit/s.
BDP_KB = 75


def on_kernel(s, buffer, seconds, omit):
    got = s.run(f"kernel 4 x 10 + 4 x 50 ms, {buffer:g} BDP", side_by_side, controls=list(KERNEL),
                link={"rate": "20Mbit", "rtt": "10ms", "buffer": f"{buffer * BDP_KB:g}kB"}, flows=8,
                far="40ms", seconds=seconds, omit=omit)["controls"]
    return got


def heat(s, others, buffers, seconds):
    """The study's maps over the second group's RTT and the buffer, in the simulator."""
    maps = {field: {c: [] for c in SIMULATED} for field in ("jain", "retrans_percent")}
    for other in others:
        for buffer in buffers:
            got = s.run(f"simulated 10/{other} ms, {buffer:g} BDP", simulate,
                        controls=list(SIMULATED), seeds=2 if s.quick else 5, options=[
                            ["flow", "count=4,rtt=10ms"], ["flow", f"count=4,rtt={other}ms"],
                            ["rate", "20Mbit/s"], ["buffer", f"{buffer:g}bdp"],
                            ["time", f"{seconds}s"], ["warmup", "5s"]])["controls"]
            for field, by_control in maps.items():
                for control, points in by_control.items():
                    points.append((len(points), got[control][field]))
    for field, by_control in maps.items():
        s.plot(field, f"{field}, RTT {list(others)} ms, buffers {list(buffers)} BDP within each",
               "cell", field, by_control)
    return {field: {c: sum(y for _, y in p) / len(p) for c, p in by_control.items()}
            for field, by_control in maps.items()}


def gains(s, seconds):
    """The pacing gain on congestion: less gain, fewer retransmissions, less throughput."""
    points = []
    for gain in (256, 192, 128, 64):
        r = s.run(f"simulated gain {gain}", simulate, controls=["pep_bbr_a"],
                  seeds=2 if s.quick else 5, options=[
                      ["preset", "mixed-rtt"], ["param", f"pep_bbr_a.cut-gain={gain}"],
                      ["time", f"{seconds}s"]])["controls"]["pep_bbr_a"]
        points.append((gain / 256, r["retrans_percent"], r["goodput_mbps"]))
    s.plot("gain", "Pacing gain on congestion (simulated)", "gain", "retransmitted (%)",
           {"pep_bbr_a": [(g, r) for g, r, _ in points]})
    ratio = points[-1][1] / points[0][1] if points[0][1] else 1.0
    s.claim("gain 0.25 against 1.0: retransmissions (simulated)", "6021 / 8113 = 0.74", ratio,
            ratio <= 1, "x", 0.742)
    ratio = points[-1][2] / points[0][2]
    s.claim("gain 0.25 against 1.0: throughput (simulated)", "7.32 / 7.83 = 0.93", ratio,
            0.85 <= ratio <= 0.98, "x", 0.935)


def study(s):
    s.remark("The 8-flow cells and the loss case are on the kernel; the maps over RTT and "
             "buffer, and the sweep of the gain, are simulated with the same control code.")
    seconds, omit = (7.0, 4.0) if s.quick else (40.0, 10.0)
    buffers = (2.0,) if s.quick else (0.5, 1.0, 2.0, 5.0)
    kernel = {b: on_kernel(s, b, seconds, omit) for b in buffers}
    bbr, acd, a = (kernel[2.0][c] for c in ("bbr", "pep_bbr_acd", "pep_bbr_a"))
    for name, ours, number in (("BBR-A", a, 0.4), ("BBR-ACD", acd, 0.5)):
        ratio = ours["retrans_percent"] / max(bbr["retrans_percent"], 1e-6)
        s.claim(f"{name}: retransmissions over bbr's, 2 BDP",
                f"{number} (less by {1 - number:.0%})", ratio, ratio <= number, "x", number)
    s.target("BBR-A retransmissions over bbr's", a["retrans_percent"]
             / max(bbr["retrans_percent"], 1e-6), "ratio", "<=", 0.4)
    s.claim("BBR-A: Jain's index over bbr's, 2 BDP", "1.1", a["jain"] / bbr["jain"],
            a["jain"] / bbr["jain"] >= 1.1, "x", 1.1)
    s.claim("BBR-A: throughput over bbr's, 2 BDP", "almost equal", a["goodput_mbps"]
            / bbr["goodput_mbps"], a["goodput_mbps"] / bbr["goodput_mbps"] >= 0.97, "x", 1)
    s.claim("bbr keeps the buffer full, BBR-A does not: queueing delay", "lower",
            a["queue_p50_ms"] / bbr["queue_p50_ms"], a["queue_p50_ms"] < bbr["queue_p50_ms"], "x")
    lossy = s.run("kernel 5 % loss", side_by_side, controls=list(KERNEL), seconds=seconds / 2,
                  omit=omit / 2, link={"rate": "20Mbit", "rtt": "20ms", "loss": "5%",
                                       "buffer": "1BDP"})["controls"]
    ratio = lossy["pep_bbr_a"]["goodput_mbps"] / lossy["cubic"]["goodput_mbps"]
    s.claim("5 % random loss: BBR-A over cubic", "> 1", ratio, ratio > 1, "x")
    ratio = lossy["pep_bbr_a"]["goodput_mbps"] / lossy["bbr"]["goodput_mbps"]
    s.claim("5 % random loss: BBR-A over bbr", ">= 0.95 (ours)", ratio, ratio >= 0.95, "x", 1)
    over = heat(s, (50, 100, 150, 200), (0.5, 1, 2, 5), 35 if s.quick else 65)
    ratio = over["retrans_percent"]["pep_bbr_a"] / over["retrans_percent"]["pep_bbr"]
    s.claim("BBR-A: retransmissions over BBR's, mean of the maps (simulated)", "about 0.4", ratio,
            ratio <= 0.6, "x", 0.4)
    s.claim("cubic is fairest, mean of the maps (simulated)", "cubic best",
            over["jain"]["cubic"], over["jain"]["cubic"] >= max(over["jain"].values()) - 1e-9,
            "Jain")
    gains(s, 35 if s.quick else 65)
