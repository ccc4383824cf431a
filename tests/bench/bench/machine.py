# SPDX-License-Identifier: GPL-2.0-or-later
"""What the machine does: CPU time of processes, time taken by others, kernel memory."""

import os
import platform
import resource
import time

_TICK = os.sysconf("SC_CLK_TCK")

#: A run is noisy when others used more than this share of the machine's CPU time.
NOISY_SHARE = 0.12


def cpu_of(pids):
    """User and system seconds of processes; 0 for one that has ended."""
    total = 0.0
    for pid in pids:
        try:
            total += time.clock_gettime(((~pid) << 3) | 2)     # clock_getcpuclockid(3)
        except OSError:
            pass
    return total


def _ksoftirqd():
    pids = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/comm", encoding="ascii") as text:
                    if text.read().startswith("ksoftirqd"):
                        pids.append(int(name))
            except OSError:
                pass
    return pids


_KSOFTIRQD = _ksoftirqd()


def machine_time():
    """(busy, idle, steal) seconds of all CPUs since boot."""
    with open("/proc/stat", encoding="ascii") as text:
        fields = [int(word) / _TICK for word in text.readline().split()[1:9]]
    user, nice, system, idle, iowait, irq, softirq, steal = fields
    return user + nice + system + irq + softirq, idle + iowait, steal


class Window:
    """Accounts for CPU time between its making and done().

    proxies: pids whose time is asked for. others: pids of the benchmark that live on.
    """

    def __init__(self, proxies, others):
        self._proxies, self._others = proxies, others
        self._began = time.monotonic()
        self._first = self._read()

    def _read(self):
        mine = sum(resource.getrusage(who).ru_utime + resource.getrusage(who).ru_stime
                   for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
        busy, _, steal = machine_time()
        kernel = sum(_thread_time(pid) for pid in _KSOFTIRQD)
        proxy = cpu_of(self._proxies)
        return proxy, mine + kernel + proxy + cpu_of(self._others), busy, steal

    def done(self):
        """{"proxy_s", "others_share", "noisy"}."""
        now = [b - a for a, b in zip(self._first, self._read())]
        seconds = (time.monotonic() - self._began) * os.cpu_count()
        share = max(0.0, now[2] - now[1] + now[3]) / seconds
        return {"proxy_s": now[0], "others_share": round(share, 3), "noisy": share > NOISY_SHARE}


def _thread_time(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as text:
            fields = text.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICK
    except OSError:
        return 0.0


class Patience:
    """Waits for a quiet machine, for so many seconds altogether."""

    def __init__(self, seconds, idle_share=0.85):
        self.left = seconds
        self.idle_share = idle_share

    def wait(self):
        while self.left > 0:
            began = time.monotonic()
            first = machine_time()
            time.sleep(0.2)
            busy, idle, steal = (b - a for a, b in zip(first, machine_time()))
            if idle >= self.idle_share * (busy + idle + steal):
                return
            time.sleep(0.3)
            self.left -= time.monotonic() - began


def slab_bytes():
    with open("/proc/meminfo", encoding="ascii") as text:
        for line in text:
            if line.startswith("Slab:"):
                return int(line.split()[1]) * 1024
    raise RuntimeError("/proc/meminfo tells no Slab")


def pss_bytes(pids):
    total = 0
    for pid in pids:
        with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as text:
            for line in text:
                if line.startswith("Pss:"):
                    total += int(line.split()[1]) * 1024
    return total


def descriptors(pids):
    return sum(len(os.listdir(f"/proc/{pid}/fd")) for pid in pids)


def describe():
    """What a reader of the figures must know."""
    model = "unknown"
    with open("/proc/cpuinfo", encoding="utf-8") as text:
        for line in text:
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
                break
    return {"cpus": os.cpu_count(), "cpu": model, "kernel": platform.release(),
            "date": time.strftime("%Y-%m-%d")}
