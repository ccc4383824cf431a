# SPDX-License-Identifier: GPL-2.0-or-later
"""What the monitor says against what iperf3 says, and what becomes of either without the other."""

import time

from lib import Link, scenario, wait_until
from lib.monitor import Monitor
from lib.traffic import Iperf

RADIO = {"rate": "100Mbit", "rtt": "10ms", "buffer": "1BDP"}
CORE = {"rate": "300Mbit", "rtt": "40ms", "buffer": "1BDP"}


def payload(monitor, segment, direction):
    return sum(value for name, value in monitor.metrics().items()
               if name.startswith("edgepep_segment_payload_bytes_total") and f'"{segment}"' in name
               and f'"{direction}"' in name)


@scenario("mon-throughput", "throughput per segment against iperf3, both directions: within 3 %", timing=True)
def throughput(t, amount=120 << 20):
    """Both directions at once, ten seconds and more, with silence before and after: whatever time
    either side takes, they speak of the same bytes."""
    with t.lab(radio=Link(**RADIO), core=Link(**CORE)) as lab:
        monitor = Monitor(lab, lab.start_proxy())
        monitor.wait_tick()
        before = {(s, d): payload(monitor, s, d) for s in ("wireless", "wired") for d in ("downlink", "uplink")}
        start = time.monotonic()
        runs = {d: Iperf(lab.srv, lab.ue, lab.srv.addr(4), seconds=30, amount=amount, reverse=d == "downlink")
                for d in ("downlink", "uplink")}
        told = {d: run.result()["end"]["sum_received"] for d, run in runs.items()}
        monitor.wait_tick()
        monitor.wait_tick()
        during = monitor.json(f"/api/v1/segments?seconds={int(time.monotonic() - start) + 2}")
        for (segment, direction), count in before.items():
            seconds = told[direction]["seconds"]
            t.check(f"{segment} {direction}: ten seconds", seconds >= 10, seconds)
            moved = during[segment][direction]["bytes_per_second"] * during["interval_seconds"]
            t.near(f"{segment} {direction}, /api/v1/segments, bytes/s", moved / seconds,
                   told[direction]["bytes"] / seconds, relative=0.03)
            t.near(f"{segment} {direction}, /metrics, bytes/s",
                   (payload(monitor, segment, direction) - count) / seconds,
                   told[direction]["bytes"] / seconds, relative=0.03)
        monitor.close()


@scenario("mon-killed", "the monitor killed: traffic goes on; the daemon killed: /readyz within 2 s", timing=True)
def killed(t):
    with t.lab(radio=Link(**RADIO), core=Link(**CORE)) as lab:
        proxy = lab.start_proxy()
        monitor = Monitor(lab, proxy)
        t.equal("ready", monitor.get("/readyz")[0], 200)
        iperf = Iperf(lab.srv, lab.ue, lab.srv.addr(4), seconds=8, reverse=True)
        time.sleep(4.5)
        monitor.process.kill()
        monitor.process.wait()
        rates = [i["sum"]["bits_per_second"] for i in iperf.result()["intervals"]]
        # The best second of either: what else the machine does slows down single ones.
        t.near("throughput after the monitor was killed", max(rates[5:8]), max(rates[1:4]), relative=0.08)
        monitor = Monitor(lab, proxy)
        wait_until(lambda: monitor.get("/readyz")[0] == 200, 3, "the new monitor sees the daemon")
        start = time.monotonic()
        proxy.kill_daemon()
        wait_until(lambda: monitor.get("/readyz")[0] == 503, 5, "503")
        took = time.monotonic() - start
        t.check("/readyz 503 within 2 s", took < 2, f"{took * 1000:.0f} ms")
        t.check("and why", "not running" in monitor.get("/readyz")[1], monitor.get("/readyz")[1])
        t.equal("edgepep_up", monitor.metrics()["edgepep_up"], 0)
        proxy.start_daemon()
        wait_until(lambda: monitor.get("/readyz")[0] == 200, 3, "the new daemon is seen")
        t.check("a new daemon is followed", True)
        monitor.close()
