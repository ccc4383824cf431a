# SPDX-License-Identifier: GPL-2.0-or-later
"""RTT-adjusted pacing: queueing delay and retransmissions of many BBR flows."""

from evallib.path import side_by_side
from evallib.simulator import simulate

NAME = "rtt-pacing"
TEXT = "pep_bbr_d against bbr over flow counts and buffers"


def study(s):
    s.remark("Four flows at 5 and 0.5 BDP are on the kernel; other flow counts and latencies are "
             "simulated with the same control code.")
    seconds, omit = (5.0, 11.0) if s.quick else (30.0, 12.0)
    controls = ["bbr", "pep_bbr", "pep_bbr_d"]
    kernel = {}
    for buffer in (5, 0.5):
        kernel[buffer] = s.run(f"kernel 4 flows, {buffer} BDP", side_by_side, controls=controls,
                               flows=4, seconds=seconds, omit=omit,
                               link={"rate": "20Mbit", "rtt": "20ms", "buffer": f"{buffer}BDP"}
                               )["controls"]
    bbr, ours = kernel[5]["bbr"], kernel[5]["pep_bbr_d"]
    delay = ours["queue_p50_ms"] / bbr["queue_p50_ms"]
    s.claim("queueing delay over bbr's, 4 flows, 5 BDP", "much lower", delay, delay <= 0.5, "x")
    s.target("queueing delay over bbr's, 5 BDP", delay, "ratio", "<=", 0.5)
    rate = ours["goodput_mbps"] / bbr["goodput_mbps"]
    s.claim("throughput over bbr's, 4 flows, 5 BDP", "equal", rate, rate >= 0.97, "x", 1)
    again = kernel[0.5]["pep_bbr_d"]["retrans_percent"] / max(
        kernel[0.5]["bbr"]["retrans_percent"], 1e-6)
    s.claim("retransmissions over bbr's, 4 flows, 0.5 BDP", "lower", again, again < 1, "x")
    curves = {"pep_bbr": [], "pep_bbr_d": []}
    for flows in (1, 2, 4, 8, 16):
        for rtt in (10, 40, 100):
            got = s.run(f"simulated {flows} flows, {rtt} ms", simulate, controls=list(curves),
                        seeds=2 if s.quick else 5, options=[
                            ["flows", str(flows)], ["rtt", f"{rtt}ms"], ["rate", "50Mbit/s"],
                            ["buffer", "5bdp"], ["time", "25s"], ["warmup", "12s"]])["controls"]
            if rtt == 40:
                for control, points in curves.items():
                    points.append((flows, got[control]["queue_p50_ms"]))
    s.plot("flows", "Queueing delay over the number of flows, 40 ms, 5 BDP (simulated)", "flows",
           "queue p50 (ms)", curves)
    worst = max(d[1] / max(b[1], 1e-6) for b, d in zip(curves["pep_bbr"], curves["pep_bbr_d"]))
    s.claim("queueing delay over BBR's over flow counts (simulated)", "lower", worst, worst < 1,
            "x (worst)")
