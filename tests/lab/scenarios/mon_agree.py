# SPDX-License-Identifier: GPL-2.0-or-later
"""What the monitor says against what iperf3 says, and what the monitor costs."""

import resource
import statistics
import time

from lib import Link, peer, scenario, wait_until
from lib.monitor import Monitor
from lib.traffic import Iperf, iperf_bps

RADIO = {"rate": "100Mbit", "rtt": "10ms", "buffer": "1BDP"}
CORE = {"rate": "300Mbit", "rtt": "40ms", "buffer": "1BDP"}


def payload(monitor, segment, direction):
    return sum(value for name, value in monitor.metrics().items()
               if name.startswith("edgepep_segment_payload_bytes_total") and f'"{segment}"' in name
               and f'"{direction}"' in name)


@scenario("mon-throughput", "throughput per segment against iperf3, both directions: within 3 %", timing=True)
def throughput(t):
    with t.lab(radio=Link(**RADIO), core=Link(**CORE)) as lab:
        monitor = Monitor(lab, lab.start_proxy())
        for direction, reverse in (("downlink", True), ("uplink", False)):
            monitor.wait_tick()
            before = {s: payload(monitor, s, direction) for s in ("wireless", "wired")}
            iperf = Iperf(lab.srv, lab.ue, lab.srv.addr(4), seconds=15, reverse=reverse)
            time.sleep(14.3)
            during = monitor.json("/api/v1/segments?seconds=10")
            result = iperf.result()
            time.sleep(1)
            monitor.wait_tick()
            # The same ten seconds of iperf3's own second-by-second report.
            seconds = [i["sum"]["bytes"] / i["sum"]["seconds"] for i in result["intervals"]][3:13]
            told = statistics.mean(seconds)
            whole = result["end"]["sum_received"]["bytes"]
            for segment, count in before.items():
                rate = during[segment][direction]["bytes_per_second"]
                t.near(f"{segment} {direction}, ten seconds, bytes/s", rate, told, relative=0.03)
                t.near(f"{segment} {direction}, all bytes", payload(monitor, segment, direction) - count,
                       whole, relative=0.03)
        monitor.close()


@scenario("mon-killed", "the monitor killed: traffic goes on; the daemon killed: /readyz within 2 s", timing=True)
def killed(t):
    with t.lab(radio=Link(**RADIO), core=Link(**CORE)) as lab:
        proxy = lab.start_proxy()
        monitor = Monitor(lab, proxy)
        t.equal("ready", monitor.get("/readyz")[0], 200)
        alone = iperf_bps(lab.srv, lab.ue, lab.srv.addr(4), seconds=5, omit=1, reverse=True)
        iperf = Iperf(lab.srv, lab.ue, lab.srv.addr(4), seconds=5, omit=1, reverse=True)
        time.sleep(3)
        monitor.process.kill()
        monitor.process.wait()
        t.near("throughput with the monitor killed", iperf.bps(), alone, relative=0.05)
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


@scenario("mon-cost", "bulk throughput with the monitor and a page open against without, interleaved", timing=True)
def cost(t):
    """One transfer; every three seconds the monitor comes or goes, and each third's last two count."""
    turns, seconds = 14, 3
    rates = {"off": [], "on": []}
    with t.lab(offload=False) as lab:
        proxy = lab.start_proxy()
        iperf = Iperf(lab.srv, lab.ue, lab.srv.addr(4), seconds=turns * seconds, reverse=True, parallel=4)
        start, used = time.monotonic(), []
        for turn in range(turns):
            monitor = Monitor(lab, proxy) if turn % 2 else None
            while time.monotonic() < start + (turn + 1) * seconds:
                if monitor:	# what an open page and a scraper ask for
                    for path in ("/api/v1/status", "/api/v1/segments/history?seconds=5",
                                 "/api/v1/flows?limit=40", "/metrics"):
                        monitor.get(path)
                time.sleep(min(1, max(0, start + (turn + 1) * seconds - time.monotonic())))
            if monitor:
                used.append(monitor.cpu_seconds() / seconds)
                monitor.close()
        intervals = [i["sum"]["bits_per_second"] for i in iperf.result()["intervals"]]
    for turn in range(turns):
        rates["on" if turn % 2 else "off"].append(
            statistics.mean(intervals[turn * seconds + 1:(turn + 1) * seconds]))
    t.data.update(bps=rates, monitor_cpu=statistics.mean(used))
    t.target("bulk throughput with monitoring over without",
             statistics.median(on / off for on, off in zip(rates["on"], rates["off"])), "ratio", ">=", 0.98)
    t.target("CPU of the monitor with a page open", statistics.mean(used), "CPU", "<=", 0.02)


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
            time.sleep(10)
            monitor.wait_tick()
            after, seconds = monitor.metrics(), time.monotonic() - start

            def rate(name):
                return (after[name] - before[name]) / seconds
            samples, cpu = rate("edgepep_samples_total"), rate("edgepep_cpu_seconds_total")
            t.data.update(flows=flows, samples_per_second=samples, cpu_seconds_per_second=cpu,
                          sample_seconds_per_second=rate("edgepep_sample_seconds_total"),
                          render_seconds=after["edgepep_monitor_render_duration_seconds"])
            t.near("each flow is sampled once a second", samples, flows, relative=0.15)
            # The flows are idle: what the daemon uses, it uses for sampling and its timers.
            t.target("CPU of the daemon with 10,000 idle flows", cpu * 10000 / flows, "CPU", "<=", 0.03)
            t.check("the monitor looks through them in 30 ms",
                    after["edgepep_monitor_render_duration_seconds"] < 0.03,
                    after["edgepep_monitor_render_duration_seconds"])
            for end in ends:
                end.close()
        monitor.close()
