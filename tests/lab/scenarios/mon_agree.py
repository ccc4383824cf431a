# SPDX-License-Identifier: GPL-2.0-or-later
"""What the monitor says against what iperf3 says, and what the monitor costs."""

import math
import os
import resource
import signal
import statistics
import time

from lib import Link, peer, scenario, wait_until
from lib.confidence import interval
from lib.monitor import Monitor
from lib.traffic import Iperf, counters

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
        t.near("throughput after the monitor was killed", statistics.mean(rates[5:8]),
               statistics.mean(rates[1:4]), relative=0.08)
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


def all_cpu_seconds(pid):
    """CPU time of all threads, to the nanosecond."""
    total = 0
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/schedstat", encoding="ascii") as stat:
            total += int(stat.read().split()[0])
    return total / 1e9


def paired(name, blocks):
    """Geometric mean of the blocks' ratios with its 95 % confidence interval."""
    logs = [math.log(value) for value in blocks]
    mean = statistics.mean(logs)
    half = interval(logs)
    return {"name": name, "ratio": math.exp(mean), "low": math.exp(mean - half),
            "high": math.exp(mean + half), "blocks": len(blocks)}


class Rounds:
    """Rounds of a second of one transfer, with the monitor at work or stopped."""

    def __init__(self, lab, proxy, monitor):
        self.lab, self.proxy, self.monitor = lab, proxy, monitor
        self.shares = []	# CPU of the monitor over the proxy's, in rounds with it

    def _look(self):
        return (counters(self.lab.ue, "radio0")[0], time.monotonic(),
                all_cpu_seconds(self.proxy.process.pid), self.monitor.cpu_seconds())

    def round(self, on):
        """(bytes/s, CPU seconds of proxy and monitor per GB)"""
        os.kill(self.monitor.process.pid, signal.SIGCONT if on else signal.SIGSTOP)
        octets, start, proxy, monitor = self._look()
        if on:		# what an open page and a scraper ask for each second
            for path in ("/api/v1/status", "/api/v1/segments/history?seconds=5",
                         "/api/v1/flows?limit=40", "/metrics"):
                self.monitor.get(path)
        time.sleep(max(0, start + 1 - time.monotonic()))
        now = self._look()
        moved, proxy, monitor = now[0] - octets, now[2] - proxy, now[3] - monitor
        if on:
            self.shares.append(monitor / proxy)
        return moved / (now[1] - start), (proxy + monitor) / moved * 1e9

    def block(self):
        """On, off, off, on: what drifts evenly is in neither. (throughput, CPU per GB), on over off"""
        on1, off1, off2, on2 = (self.round(on) for on in (True, False, False, True))
        return [math.sqrt(on1[i] * on2[i] / (off1[i] * off2[i])) for i in (0, 1)]


@scenario("mon-cost", "bulk throughput with the monitor and a page open against without, interleaved", timing=True)
def cost(t):
    """Blocks of four seconds; EDGEPEP_LAB_FULL=1 takes twenty of them for a narrow interval."""
    blocks = 20 if os.environ.get("EDGEPEP_LAB_FULL") else 3
    with t.lab() as lab:
        proxy = lab.start_proxy()
        monitor = Monitor(lab, proxy)
        iperf = Iperf(lab.srv, lab.ue, lab.srv.addr(4), seconds=4 * blocks + 4, reverse=True, parallel=4)
        time.sleep(2)
        rounds = Rounds(lab, proxy, monitor)
        found = [rounds.block() for _ in range(blocks)]
        os.kill(monitor.process.pid, signal.SIGCONT)
        t.check("the transfer lasted", iperf.client.poll() is None)
        iperf.stop()
        monitor.close()
    for i, name in enumerate(("throughput", "CPU per GB")):
        t.data[name] = paired(name, [block[i] for block in found])
        t.note("{name}: with monitoring over without {ratio:.4f}, 95 % between {low:.4f} and {high:.4f}"
               .format(**t.data[name]))
    t.data.update(blocks=found, monitor_shares=rounds.shares)
    t.target("bulk throughput with monitoring over without", t.data["throughput"]["ratio"], "ratio", ">=", 0.98)
    t.target("CPU per GB of proxy and monitor over the proxy alone", t.data["CPU per GB"]["ratio"], "ratio",
             "<=", 1.02)
    t.target("CPU of the monitor over the proxy's", statistics.mean(rounds.shares), "ratio", "<=", 0.02)


@scenario("mon-sampling", "10,000 flows: what sampling them costs the daemon", timing=True, flows=10000)
def sampling(t, flows):
    # Two descriptors a flow, here and in the daemon; some machines give no more than 20,000.
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    most_flows = (most - 400) // 2
    flows = min(flows, most_flows)
    with t.lab() as lab:
        proxy = lab.start_proxy(conf={"max-flows": most_flows, "workers": 1}, nofile=most)
        monitor = Monitor(lab, proxy)
        with peer.Listener(lab.srv, 4, backlog=4096) as listener:
            ends = []
            for _ in range(flows):
                ends += peer.pair(lab.ue, listener)
            wait_until(lambda: monitor.json("/api/v1/flows?limit=1")["total"] == flows, 5, "all are listed")
            time.sleep(2)
            before, start = monitor.metrics(), time.monotonic()
            time.sleep(6)
            monitor.wait_tick()
            after, seconds = monitor.metrics(), time.monotonic() - start

            def rate(name):
                return (after[name] - before[name]) / seconds
            samples, cpu = rate("edgepep_samples_total"), rate("edgepep_cpu_seconds_total")
            t.data.update(flows=flows, samples_per_second=samples, cpu_seconds_per_second=cpu,
                          sample_seconds_per_second=rate("edgepep_sample_seconds_total"),
                          render_seconds=after["edgepep_monitor_render_duration_seconds"])
            t.near("each flow is sampled once a second", samples, flows, relative=0.05)
            # The flows are idle: what the daemon uses, it uses for sampling and its timers.
            t.target("CPU of the daemon with 10,000 idle flows", cpu * 10000 / flows, "CPU", "<=", 0.03)
            t.check("the monitor looks through them in 30 ms",
                    after["edgepep_monitor_render_duration_seconds"] < 0.03,
                    after["edgepep_monitor_render_duration_seconds"])
            for end in ends:
                end.close()
        monitor.close()
