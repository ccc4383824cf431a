# SPDX-License-Identifier: GPL-2.0-or-later
"""What /proc tells about a process."""

import os
import time


def descriptors(pid):
    """How many descriptors of each kind it has: {"socket": 12, "pipe": 0, "other": 9}."""
    found = {"socket": 0, "pipe": 0, "other": 0}
    for name in os.listdir(f"/proc/{pid}/fd"):
        try:
            kind = os.readlink(f"/proc/{pid}/fd/{name}").split(":")[0]
        except FileNotFoundError:
            continue
        found[kind if kind in found else "other"] += 1
    return found


def settled(pid, want):
    """The same once there are no more sockets and others than wanted, or after three seconds: a
    control client that has just gone is still being closed."""
    for _ in range(60):
        found = descriptors(pid)
        if found["socket"] <= want["socket"] and found["other"] <= want["other"]:
            break
        time.sleep(0.05)
    return found


def resident(pid):
    """Bytes of memory in use."""
    with open(f"/proc/{pid}/statm", encoding="ascii") as text:
        return int(text.read().split()[1]) * os.sysconf("SC_PAGESIZE")


def cpu_seconds(pid):
    """CPU time used so far, all threads."""
    with open(f"/proc/{pid}/stat", encoding="ascii") as text:
        fields = text.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def all_cpu_seconds(pid):
    """The same to the nanosecond."""
    total = 0
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/schedstat", encoding="ascii") as stat:
            total += int(stat.read().split()[0])
    return total / 1e9


def pin(pid, cpus):
    """All its threads on some CPUs."""
    for task in os.listdir(f"/proc/{pid}/task"):
        os.sched_setaffinity(int(task), cpus)


def status(pid, thread=None):
    """/proc/PID/status as a dictionary."""
    path = f"/proc/{pid}/task/{thread}/status" if thread else f"/proc/{pid}/status"
    with open(path, encoding="ascii") as text:
        return dict(line.rstrip("\n").split(":\t", 1) for line in text if ":\t" in line)


def threads(pid):
    """Thread id by name."""
    found = {}
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/comm", encoding="ascii") as text:
            found[text.read().strip()] = int(task)
    return found


def child(pid):
    """The only child of a process."""
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as text:
        (found,) = text.read().split()
    return int(found)


def alive(pid):
    """Whether a process runs, or is stopped; one that nobody has waited for yet does not."""
    try:
        return not status(pid)["State"].startswith(("Z", "X"))
    except (FileNotFoundError, ProcessLookupError):
        return False
