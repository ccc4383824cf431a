# SPDX-License-Identifier: GPL-2.0-or-later
"""What the data path does without: allocations, locks and futexes, once it is set up."""

import os
import shutil
import struct
import subprocess
import threading
import time

from lib import paths, scenario, state
from lib.traffic import iperf_bps


def _counts(path):
    """(allocations, locks) of the workers so far."""
    with open(path, "rb") as found:
        _, allocations, _, locks = struct.unpack("4Q", found.read(32))
    return allocations, locks


def _load(lab, command, count):
    lab.ue.run([paths.built("tests/bench/load/benchload"), command, "--count", count, "--to",
                f"{lab.srv.addr(4)}:5900"], stdin=subprocess.DEVNULL)


def _futexes(pid, seconds):
    """Lines of strace about futexes of any thread; None without strace."""
    if not shutil.which("strace"):
        return None
    done = subprocess.run(["timeout", "-s", "INT", str(seconds), "strace", "-f", "-qq", "-e",
                           "trace=futex", "-e", "signal=none", "-p", str(pid)],
                          capture_output=True, text=True, check=False)
    return [line for line in done.stderr.splitlines() if "futex(" in line]


def _work(lab, flows, meanwhile):
    """Bulk of some flows and, beside it, first what the caller wants, then 300 connections."""
    transfer = threading.Thread(target=iperf_bps, args=(lab.srv, lab.ue, lab.srv.addr(4)),
                                kwargs={"seconds": 2, "reverse": True, "parallel": flows})
    transfer.start()
    time.sleep(0.4)
    result = meanwhile()
    _load(lab, "first-byte", 300)
    transfer.join()
    return result


@scenario("relay-steady", "no allocation, lock or futex while bytes move and connections come and go")
def steady(t):
    counts = os.path.join(state.current().new_folder(), "counts")
    wrapper = ("env", f"LD_PRELOAD={paths.built('tests/bench/load/count.so')}",
               f"EDGEPEP_COUNT_FILE={counts}")
    with t.lab() as lab:
        proxy = lab.start_proxy(conf={"workers": 1}, wrapper=wrapper)
        lab.srv.popen([paths.built("tests/bench/load/benchload"), "serve", "--to",
                       "0.0.0.0:5900"], stdout=subprocess.PIPE, text=True).stdout.readline()
        # Set-up: libevent makes a slot for each number that a descriptor has had, for each worker.
        _load(lab, "idle", 100)
        _work(lab, 8, lambda: None)
        before = _counts(counts)
        split = proxy.counters()["split"]
        futexes = _work(lab, 4, lambda: _futexes(proxy.process.pid, 1))
        after = _counts(counts)
        t.data.update(before=before, after=after, futexes=futexes)
        t.check("it counts at all", before[0] > 0, before)
        t.check("connections were split meanwhile", proxy.counters()["split"] - split >= 300,
                proxy.counters()["split"] - split)
        t.equal("allocations of the workers", after[0] - before[0], 0)
        t.equal("locks of the workers", after[1] - before[1], 0)
        if futexes is None:
            t.note("strace is missing: futexes were not looked for")
        else:
            t.equal("futexes in a second of a transfer", futexes, [])
