# SPDX-License-Identifier: GPL-2.0-or-later
"""A call fails while edgepepd starts, or memory while it is asked: it ends or goes on, in order."""

import os
import socket
import subprocess
import time

from lib import paths, scenario, wait_until
from lib.faults import Faults
from lib.flowtest import short_links
from lib.transfer import BOTH, PUSH, REQUEST, Plan, Transfers, verdicts

_KINDS = (BOTH, REQUEST, PUSH)
_CALLS = {"malloc": "ENOMEM", "mmap": "ENOMEM", "socket": "EMFILE", "setsockopt": "ENOMEM",
          "bind": "EADDRNOTAVAIL", "epoll_ctl": "ENOSPC", "sendto": "ENOBUFS", "fcntl": "ENOMEM"}
#: At most so many places of one call are tried, evenly spread.
_PLACES = 12


def _running(proxy):
    try:
        return proxy.ask("version").get("ok")
    except (OSError, ValueError):
        return False


def _start(lab, proxy, faults):
    """Starts the daemon. Returns (exit code or None when it runs, its messages)."""
    process = lab.gw.popen([*faults.wrapper, paths.program("edgepepd"), "-c", proxy.conf_path],
                           stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                           stderr=subprocess.PIPE)
    deadline = time.monotonic() + 10
    while process.poll() is None and not _running(proxy) and time.monotonic() < deadline:
        time.sleep(0.01)
    code = process.poll()
    if code is None:
        process.terminate()
        try:
            ended = process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            ended = process.wait()
        if ended != 0:
            code = ended
    return code, process.stderr.read().decode(errors="replace")


@scenario("fault-start", "one call fails while edgepepd starts: it says why and ends, or runs")
def start(t):
    faults = Faults()
    with t.lab() as lab:
        proxy = lab.start_proxy(daemon=False, conf={"workers": 2})
        for call, error in _CALLS.items():
            with t.group(f"{call}: {error}"):
                faults.add(call, error, share=0)
                code, text = _start(lab, proxy, faults)
                t.require("it starts without faults", code is None, text)
                count = faults.calls()
                faults.clear()
                t.require("there are such calls", count > 0)
                bad, ran = [], 0
                step = max(1, count / _PLACES)
                places = sorted({int(n * step) for n in range(min(count, _PLACES))})
                for place in places:
                    faults.add(call, error, limit=1, after=place)
                    code, text = _start(lab, proxy, faults)
                    faults.clear()
                    ran += code is None
                    lines = len(text.splitlines())
                    if code not in (None, 1, 2) or (code is not None and not 1 <= lines <= 3):
                        bad.append((place, code, text[-300:]))
                t.data[call] = {"calls": count, "tried": len(places), "ran": ran,
                                "refused": len(places) - ran - len(bad)}
                t.equal("neither crash nor silence", bad, [])


def _ask_under_faults(proxy, requests):
    """Sends requests, each on a connection of its own; returns how many were answered at all."""
    answered = 0
    for request in requests:
        with socket.socket(socket.AF_UNIX) as sock:
            sock.settimeout(0.5)
            try:
                sock.connect(os.path.join(proxy.run_dir, "control.sock"))
                sock.sendall(request.encode() + b"\n")
                answered += sock.recv(1 << 16).startswith(b"{")
            except OSError:
                pass
    return answered


@scenario("fault-memory", "no memory to be had: flows go on (they need none), the control socket "
                          "recovers")
def memory(t):
    faults = Faults()
    with t.lab(**short_links()) as lab:
        proxy = lab.start_proxy(wrapper=faults.wrapper)
        with Transfers(lab, at_once=24) as transfers:
            def run(first, count):
                return verdicts(transfers.run(
                    [Plan(first + n, _KINDS[n % 3], 100000, 100000) for n in range(count)]))
            # The event loop remembers each descriptor it has had: let it have more than below.
            t.equal("before", run(0, 200), {"ok": 200})
            split = proxy.counters()["split"]
            faults.add("malloc", "ENOMEM")
            transfers.at_once = 6
            t.equal("without any memory", run(100, 60), {"ok": 60})
            # The main thread looks at the host's addresses every five seconds; flows ask for none.
            struck = faults.clear()
            t.check("60 flows allocate nothing", struck <= 3, f"{struck} allocations in all")
            t.equal("all were split", proxy.counters()["split"] - split, 60)
            for share in (.05, .3, 1.0):
                faults.add("malloc", "ENOMEM", share=share)
                answered = _ask_under_faults(
                    proxy, ["status", "version", "reload", "bypass on", "resume", "nonsense"] * 5)
                struck = faults.clear()
                t.data[f"control, share {share}"] = {"faults": struck, "answered": answered}
                t.check(f"share {share}: faults were made", struck > 0)
                t.check(f"share {share}: the daemon lives", proxy.alive(), proxy.log_tail())
            wait_until(lambda: _running(proxy), 10, "it answers again")
            t.equal("resumed", proxy.ask("resume").get("state"), "running")
            t.check("status is whole again", "counters" in proxy.status())
            t.check("reload works again", proxy.ask("reload").get("ok"))
            split = proxy.counters()["split"]
            t.equal("after", run(300, 20), {"ok": 20})
            t.equal("split", proxy.counters()["split"] - split, 20)
        t.equal("the daemon ends well", proxy.stop_daemon(), 0)
