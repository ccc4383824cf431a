# SPDX-License-Identifier: GPL-2.0-or-later
"""What monitoring costs: throughput with it against without, and the daemon's looks at its flows."""

import contextlib
import math
import os
import resource
import signal
import socket
import time

from lib import peer, scenario, wait_until
from lib.confidence import pseudo_median
from lib.ends import Ends, drop_all, write_file
from lib.monitor import Monitor
from lib.process import all_cpu_seconds, pin
from lib.traffic import counters

#: Short, since what else goes on in a machine drifts; no part of a second, or always the same slices would
#: have the monitor's look at the flows.
SLICE = 0.22

#: BBR stops for a fifth of a second each ten seconds, which would be noise here.
CONF = {"workers": 1, "leg wireless": {"congestion-control": "cubic"}}

#: The ends', which would otherwise let batches, and with them the cost of a byte, wander for seconds.
BUFFERS = {"net.ipv4.tcp_rmem": "4096 2097152 2097152", "net.ipv4.tcp_wmem": "4096 2097152 2097152"}
FLOWS = 16

#: When the long version is content, and when it gives up: a quarter of an hour.
NARROW, MOST_PAIRS = 0.018, 2000

#: What an open page and a scraper ask for; here they do it each second.
ASKED = ("/api/v1/status", "/api/v1/segments/history?seconds=5", "/api/v1/flows?limit=40", "/metrics")


def ask(address, path):
    """Without looking at the answer: asking shall cost little where the transfer's ends run."""
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(5)
        sock.connect(address)
        sock.send(f"GET {path} HTTP/1.0\r\n\r\n".encode())
        if b" 200 " not in sock.recv(1 << 20):
            raise OSError(path)
        while sock.recv(1 << 20):
            pass


class Slices:
    """Slices of one transfer, with edgepep-mon at work or not.

    A stopped process takes as much CPU as one that does not run. It looks at the flows each second, stopped or
    not, so that it does so twice as often in the time in which it is at work; requests come once in a second of that.
    """

    def __init__(self, lab, proxy, monitor):
        self.lab, self.proxy, self.monitor = lab, proxy, monitor
        self.worked = 0.0	# seconds, of slices with the monitor
        self.cpu = {"monitor": 0.0, "proxy": 0.0}	# seconds, likewise

    def _look(self):
        return (counters(self.lab.ue, "radio0")[0], time.monotonic(), all_cpu_seconds(self.proxy.process.pid),
                self.monitor.cpu_seconds())

    def _ask(self):
        if int(self.worked + SLICE) > int(self.worked):
            for path in ASKED:
                ask(self.monitor.path, path)
        self.worked += SLICE

    def slice(self, on):
        """(bytes/s, CPU seconds of proxy and monitor per GB)"""
        os.kill(self.monitor.process.pid, signal.SIGCONT if on else signal.SIGSTOP)
        before = self._look()
        if on:
            self._ask()
        time.sleep(max(0, before[1] + SLICE - time.monotonic()))
        moved, seconds, proxy, monitor = (b - a for a, b in zip(before, self._look()))
        if on:
            self.cpu["monitor"] += monitor
            self.cpu["proxy"] += proxy
        return moved / seconds, (proxy + monitor) / moved * 1e9

    def pairs(self, seconds):
        """Logarithms of on over off, each of two neighbours, in turn on-off and off-on: what drifts evenly raises
        the one and lowers the other."""
        found = []
        while len(found) < seconds / SLICE / 2:
            on1, off1, off2, on2 = (self.slice(on) for on in (True, False, False, True))
            found += [[math.log(a / b) for a, b in zip(on, off)] for on, off in ((on1, off1), (on2, off2))]
        return found


def urgent(pid, priority):
    """All threads of a process before the rest of the machine, whose work would be noise; pid 0: this thread."""
    for task in os.listdir(f"/proc/{pid}/task") if pid else (0,):
        os.sched_setscheduler(int(task), os.SCHED_RR if priority else os.SCHED_OTHER, os.sched_param(priority))


@contextlib.contextmanager
def first_on_cpus(cpus):
    """This thread, and threads and programs that it starts, on some CPUs, and first there if that is allowed."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cpus)
    with contextlib.suppress(PermissionError):
        urgent(0, 1)
    try:
        yield
    finally:
        urgent(0, 0)
        os.sched_setaffinity(0, before)


@contextlib.contextmanager
def busy_proxy(t):
    """(lab, proxy, monitor) with a transfer that keeps the CPU of proxy and monitor busy; the ends have another."""
    cpus = sorted(os.sched_getaffinity(0))
    with first_on_cpus(set(cpus[1:] or cpus)), t.lab() as lab, contextlib.ExitStack() as stack:
        for host in (lab.ue, lab.srv):
            host.sysctl(BUFFERS)
        proxy = lab.start_proxy(conf=CONF)
        monitor = Monitor(lab, proxy)
        stack.callback(monitor.close)
        for process in (proxy.process, monitor.process):
            pin(process.pid, cpus[:1])
        for _ in range(FLOWS):
            stack.callback(Ends(lab, "downlink", write_file, drop_all).stop)
        with contextlib.suppress(PermissionError):	# not behind the proxy, whose turn may be long
            urgent(monitor.process.pid, 2)
            urgent(0, 2)
        yield lab, proxy, monitor


def width(pairs):
    """Of the interval of the throughput's ratio."""
    _, low, high = pseudo_median([pair[0] for pair in pairs])
    return high - low


@scenario("mon-cost", "bulk throughput with the monitor, a page and a scraper against without, interleaved",
          timing=True)
def cost(t):
    """As fast as one CPU relays. EDGEPEP_LAB_FULL=1 goes on until the interval is narrow, which takes minutes; the
    short version fails when it is beyond doubt that more than 2 % are lost."""
    full = bool(os.environ.get("EDGEPEP_LAB_FULL"))
    with busy_proxy(t) as (lab, proxy, monitor):
        time.sleep(1)
        slices = Slices(lab, proxy, monitor)
        pairs = slices.pairs(12)
        while full and len(pairs) < MOST_PAIRS and width(pairs) > NARROW:
            pairs += slices.pairs(60)
        os.kill(monitor.process.pid, signal.SIGCONT)
        sampled = wait_until(lambda: monitor.metrics().get("edgepep_sample_seconds_total"), 5,
                             "the monitor sees the daemon again")
        sampling_cpu = sampled / all_cpu_seconds(proxy.process.pid)
    logs = {"throughput": [pair[0] for pair in pairs], "CPU per GB": [pair[1] for pair in pairs]}
    ratios = {name: [math.exp(value) for value in pseudo_median(values)] for name, values in logs.items()}
    for name, values in ratios.items():
        t.note("{}: with monitoring over without {:.4f}, 95 % between {:.4f} and {:.4f}".format(name, *values))
    t.data.update(ratios=ratios, pairs=pairs, cpu=slices.cpu, sampling_over_proxy_cpu=sampling_cpu)

    throughput, low, high = ratios["throughput"]
    if full:
        t.check("throughput changes by less than 2 %", low > 0.98 and high < 1.02,
                f"{throughput:.4f}, 95 % between {low:.4f} and {high:.4f}")
        t.target("bulk throughput with monitoring over without", throughput, "ratio", ">=", 0.98)
        t.target("CPU per GB of proxy and monitor over the proxy alone", ratios["CPU per GB"][0], "ratio", "<=", 1.02)
    else:
        best = math.exp(pseudo_median(logs["throughput"], sigmas=3.3)[2])
        t.check("throughput falls by less than 2 %", best > 0.98, f"{throughput:.4f}, surely below {best:.4f}")
    share = slices.cpu["monitor"] / slices.cpu["proxy"]
    t.check("CPU of the monitor under 1.5 % of the proxy's", share < 0.015, share)
    t.check("sampling under 0.5 % of the proxy's CPU", sampling_cpu < 0.005, sampling_cpu)
    t.target("CPU of the monitor over the proxy's", share, "ratio", "<=", 0.02)
    t.target("sampling's part of the proxy's CPU", sampling_cpu, "ratio", "<=", 0.005)


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
