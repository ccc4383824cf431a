# SPDX-License-Identifier: GPL-2.0-or-later
"""Bandwidth estimation (pep_bwe) on one path: loss, a changing bottleneck, fairness."""

import socket
import struct
import time

from evallib.path import side_by_side
from evallib.simulator import simulate
from lib.framework import timing_lock
from scenarios import cca_pairs

NAME = "bandwidth-estimation"
TEXT = "pep_bwe against reno and cubic: random loss, a loss burst, its estimate, fairness"

_SO_COOKIE = 57


def estimate(rates, hold):
    """What pep_bwe believes while the bottleneck changes: [[seconds, true, estimated], ...]."""
    points = []
    with timing_lock(), cca_pairs.Pairs(["pep_bwe"], {"rate": f"{rates[0]}Mbit", "rtt": "20ms",
                                                      "buffer": "1BDP"}) as pairs:
        flow = pairs.flow("pep_bwe")
        cookie, = struct.unpack("Q", flow.tx.getsockopt(socket.SOL_SOCKET, _SO_COOKIE, 8))
        pump = cca_pairs.Pump([flow])
        began = time.monotonic()
        try:
            for rate in rates:
                pairs.command(f"pep_bwe rate {rate}Mbit")
                until = time.monotonic() + hold
                while time.monotonic() < until:
                    time.sleep(0.25)
                    state = next(f for f in cca_pairs.edgepep_cca("flows")[1]["flows"]
                                 if f["cookie"] == cookie)
                    points.append([round(time.monotonic() - began, 2), rate * 1448 / 1500,
                                   state["bandwidth_bytes_per_second"] * 8 / 1e6])
            late = max(x["lateness_us"]["p99"] for x in pairs.stats().values())
        finally:
            pump.stop()
            flow.close()
    return {"points": points, "lateness_p99_us": late}


def losses(s, seconds, omit):
    curves = {c: [] for c in ("reno", "cubic", "pep_bwe")}
    for loss in ((0.01, 0.1, 1) if s.quick else (0.001, 0.01, 0.05, 0.1, 0.5, 1)):
        got = s.run(f"kernel {loss} % loss", side_by_side, controls=list(curves), seconds=seconds,
                    omit=omit, link={"rate": "100Mbit", "rtt": "20ms", "loss": f"{loss}%",
                                     "buffer": "1BDP"})["controls"]
        for control, points in curves.items():
            points.append((loss, got[control]["goodput_mbps"]))
        if loss >= 0.1:
            ratio = got["pep_bwe"]["goodput_mbps"] / got["reno"]["goodput_mbps"]
            s.claim(f"{loss} % loss: pep_bwe over reno", ">= 2 (LIA)", ratio, ratio >= 2, "x", 2)
            if loss <= 1:
                s.target(f"pep_bwe over reno at {loss} % loss", ratio, "ratio", ">=", 2)
    s.plot("loss", "Random loss, 100 Mbit/s, 20 ms", "loss (%)", "Mbit/s", curves, logx=True,
           logy=True)


def study(s):
    s.remark("On single-path TCP. The available bandwidth is changed at the bottleneck itself in "
             "place of UDP cross traffic; fairness with reno is simulated, all else on the kernel.")
    losses(s, *((3.0, 1.5) if s.quick else (15.0, 4.0)))
    hold = 3 if s.quick else 15
    points = s.run("kernel estimate", estimate, rates=[20, 8, 16], hold=hold)["points"]
    s.plot("estimate", "Bandwidth estimate against the truth", "seconds", "Mbit/s",
           {"true": [(t, x) for t, x, _ in points], "estimated": [(t, y) for t, _, y in points]})
    settled = [abs(y - x) / x for t, x, y in points if t % hold > hold * 0.6]
    error = sum(settled) / len(settled)
    s.claim("error of the estimate once settled", "follows the true bandwidth", error, error <= 0.2,
            "of the true one")
    burst = s.run("kernel loss burst", side_by_side, controls=["reno", "pep_bwe"],
                  seconds=4.0 if s.quick else 20.0, omit=1.5,
                  link={"rate": "100Mbit", "rtt": "20ms", "buffer": "1BDP",
                        "burst": "0.02%:20%"})["controls"]
    ratio = burst["pep_bwe"]["goodput_mbps"] / burst["reno"]["goodput_mbps"]
    s.claim("bursts of losses: pep_bwe over reno", "4 (40 against < 10 Mbit/s)", ratio, ratio >= 2,
            "x", 4)
    fair = s.run("simulated fairness with reno", shared, seeds=3 if s.quick else 5,
                 time_s=120)
    s.claim("reno's share beside pep_bwe (simulated)", "0.47", fair["reno_share"],
            0.3 <= fair["reno_share"] <= 0.6, "of the link", 0.47)


def shared(seeds, time_s):
    """One reno and one pep_bwe flow over one bottleneck."""
    report = simulate_flows(["reno", "pep_bwe"], seeds, time_s)
    return {"reno_share": report[0] / sum(report), "simulated": True}


def simulate_flows(controls, seeds, time_s):
    """Mean goodput of one flow of each control."""
    options = [["flow", f"count=1,rtt=20ms,cca={c}"] for c in controls]
    runs = simulate(["reno"], options + [["rate", "100Mbit/s"], ["buffer", "1bdp"],
                                         ["time", f"{time_s}s"]], seeds, runs=True)
    return [sum(r["flows"][i]["goodput_mbps"] for r in runs) / len(runs)
            for i in range(len(controls))]
