# SPDX-License-Identifier: GPL-2.0-or-later
"""Single measurements: each takes a lane and returns a dictionary of figures."""

import json
import os
import re
import subprocess
import time

from lib import paths

from . import machine
from .world import IPERF, SERVICES, WEB


class Failed(Exception):
    """A measurement gave no figure; the text says why."""


def benchload(world, lane, command, *options, timeout=60, **popen):
    """A client on the client host, towards the server by way of the lane."""
    argv = [paths.built("tests/bench/load/benchload"), command, "--to",
            f"{lane.server}:{SERVICES}", *options]
    process = world.ue.popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                             **popen)
    if "stdin" in popen:
        return process
    out, errors = process.communicate(timeout=timeout)
    if process.returncode:
        raise Failed(f"{command} through {lane.name}: {errors.strip()}")
    return json.loads(out)


def bulk(world, lane, flows=8, direction="down", seconds=1.5):
    """iperf3: payload rate and the proxy's CPU time."""
    argv = [paths.needed("iperf3", "iperf3"), "-c", lane.server, "-p", IPERF, "-t", seconds, "-P",
            flows, "-J", *(["-R"] if direction == "down" else [])]
    done = world.ue.run(argv, check=False, timeout=seconds + 30)
    data = json.loads(done.stdout)
    if "error" in data:
        raise Failed(f"iperf3 through {lane.name}: {data['error']}")
    end = data["end"]["sum_received"]
    return {"bps": end["bits_per_second"], "bytes": end["bytes"],
            "retransmits": data["end"]["sum_sent"].get("retransmits")}


def short(world, lane, seconds=2, concurrent=64):
    """wrk: connections per second, each with one request and a short answer."""
    argv = [paths.needed("wrk", "wrk"), "-t1", f"-c{concurrent}", f"-d{seconds}s", "--latency",
            "-H", "Connection: close", f"http://{lane.server}:{WEB}/"]
    text = world.ue.run(argv).stdout

    def value(pattern):
        found = re.search(pattern, text)
        if not found:
            raise Failed(f"wrk through {lane.name}: {text.strip()}")
        return found.group(1)
    errors = re.search(r"Socket errors:(.*)", text)
    return {"per_second": float(value(r"Requests/sec:\s*([\d.]+)")),
            "connections": int(value(r"(\d+) requests in")),
            "p50_ms": _ms(value(r"50%\s+([\d.]+[mu]?s)")), "p99_ms": _ms(value(r"99%\s+([\d.]+[mu]?s)")),
            "errors": errors.group(1).strip() if errors else ""}


def _ms(text):
    for unit, factor in (("us", 1e-3), ("ms", 1.0), ("s", 1e3)):
        if text.endswith(unit):
            return float(text[:-len(unit)]) * factor
    raise ValueError(text)


def echo(world, lane, count=3000, size=64):
    return benchload(world, lane, "echo", "--count", count, "--bytes", size)


def first_byte(world, lane, count=500):
    return benchload(world, lane, "first-byte", "--count", count)


def age(world, lanes, seconds=5.5, rate=2_000_000):
    """Age of the data that a reader of 2 MB/s gets after five seconds; all lanes side by side."""
    argv = [paths.built("tests/bench/load/benchload"), "age", "--rate", rate, "--receive-buffer",
            65536, "--seconds", seconds, "--to"]
    running = {lane.name: world.ue.popen([*argv, f"{lane.server}:{SERVICES}"],
                                         stdout=subprocess.PIPE, text=True) for lane in lanes}
    results = {}
    for name, process in running.items():
        out, _ = process.communicate(timeout=seconds + 30)
        if process.returncode:
            raise Failed(f"age through {name} ended with exit code {process.returncode}")
        data = json.loads(out)
        results[name] = {"age_s": data["ages_s"][-1], **data}
    return results


def idle(world, lane, flows):
    """Memory and descriptors that so many flows cost once they rest."""
    pids = lane.mover.pids()
    before = machine.pss_bytes(pids), machine.slab_bytes(), machine.descriptors(pids)
    client = benchload(world, lane, "idle", "--count", flows, stdin=subprocess.PIPE)
    try:
        line = client.stdout.readline()
        if not line:
            raise Failed(f"idle through {lane.name}: {client.stderr.read().strip()}")
        opened = json.loads(line)
        time.sleep(1.5)
        after = machine.pss_bytes(pids), machine.slab_bytes(), machine.descriptors(pids)
    finally:
        client.stdin.close()
        client.wait()
    user, slab, fds = (b - a for a, b in zip(before, after))
    time.sleep(1.0)
    return {"flows": flows, "echoed": opened["echoed"], "opening_s": opened["seconds"],
            "user_bytes_per_flow": user / flows, "slab_bytes_per_flow": slab / flows,
            "fds_per_flow": fds / flows}


def many(world, lane, flows, seconds=2.0, direction="down"):
    """Bulk over any number of flows at once, with benchload (iperf3 ends at 128).

    Opening thousands of flows is no cost of the bytes, nor is what then lies in all buffers: what
    counts begins a second later.
    """
    process = benchload(world, lane, "bulk", "--count", flows, "--seconds", seconds, "--warm-up", 1,
                        *(["--upload"] if direction == "up" else []), stdin=subprocess.DEVNULL)
    pids = lane.mover.pids()
    process.stdout.readline()
    before = machine.cpu_of(pids)
    line = process.stdout.readline()
    proxy_s = machine.cpu_of(pids) - before
    _, errors = process.communicate(timeout=120)
    if not line:
        raise Failed(f"bulk through {lane.name}: {errors.strip()}")
    return {"proxy_s": proxy_s, **json.loads(line)}


def syn(world, lane, rate, seconds=2, port=9):
    """SYNs of made-up clients for one worker on one CPU, the sender on the other: those it saw."""
    rule = ["PREROUTING", "-p", "tcp", "--dport", port, "-j", "DROP"]    # nobody is there
    if world.srv.run(["iptables", "-t", "raw", "-C", *rule], check=False).returncode:
        world.srv.run(["iptables", "-t", "raw", "-A", *rule])
    pid = lane.mover.pids()[0]
    subprocess.run(["taskset", "-apc", str(os.cpu_count() - 1), str(pid)], check=True,
                   stdout=subprocess.DEVNULL)
    before = lane.mover.counters()["syns"]
    process = world.ue.popen(
        ["taskset", "-c", "0", paths.built("tests/bench/load/benchload"), "syn", "--to",
         f"{lane.server}:{port}", "--rate", rate, "--seconds", seconds, "--from", "10.64.0.1",
         "--sources", 20000], stdout=subprocess.PIPE, text=True)
    sent = json.loads(process.communicate(timeout=seconds + 30)[0])
    time.sleep(0.3)
    seen = lane.mover.counters()["syns"] - before
    return {"rate": rate, "sent": sent["sent"], "sent_per_second": sent["per_second"],
            "seen": seen, "lost": sent["sent"] - seen, "connections": sent["sent"]}
