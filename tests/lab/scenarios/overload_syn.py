# SPDX-License-Identifier: GPL-2.0-or-later
"""A flood of SYNs from spoofed sources: real clients keep working, memory stays bounded."""

import json
import subprocess
import threading
import time

from lib import paths, peer, scenario, wait_until
from lib.process import cpu_seconds, resident
from lib.transfer import BOTH, PUSH, REQUEST, Plan, Transfers, describe, verdicts

_RATE, _SECONDS = 20000, 3
_KINDS = (BOTH, REQUEST, PUSH)


def _counters(host):
    """The kernel's TcpExt counters of a host."""
    text = host.run(["nstat", "-asz", "--json"]).stdout
    return json.loads(text)["kernel"]


def _flood(lab, t):
    """Starts the flood against an open port of the server, from addresses that nobody has."""
    listener = peer.Listener(lab.srv, 4, backlog=64)
    process = lab.ue.popen([
        paths.built("tests/bench/load/benchload"), "syn",
        f"--to={listener.address}:{listener.port}", f"--rate={_RATE}", f"--seconds={_SECONDS}",
        "--from=10.1.0.50", "--sources=200"], stdout=subprocess.PIPE, text=True)
    t.data["flood"] = {"per_second": _RATE, "seconds": _SECONDS}
    return listener, process


def _watch(proxy, pid, found, end):
    while not end.is_set():
        status = proxy.status()
        found["pending"] = max(found.get("pending", 0), status["pending"])
        found["resident"] = max(found.get("resident", 0), resident(pid))
        time.sleep(0.05)


@scenario("overload-syn-flood", "20,000 spoofed SYNs/s: real clients work, no SYN cookies, bounded memory")
def syn_flood(t):
    with t.lab() as lab:
        proxy = lab.start_proxy(conf={"max-pending": 256, "connect-timeout": "10s"})
        pid = proxy.process.pid
        with Transfers(lab, at_once=8, timeout=30) as transfers:
            warm = transfers.run([Plan(n, _KINDS[n % 3]) for n in range(10)])
            t.equal("before", verdicts(warm), {"ok": 10})
            before, memory = _counters(lab.gw), resident(pid)
            found, end = {}, threading.Event()
            watcher = threading.Thread(target=_watch, args=(proxy, pid, found, end), daemon=True)
            watcher.start()
            listener, flood = _flood(lab, t)
            results, number = [], 100
            while flood.poll() is None:
                results += transfers.run([Plan(number + n, _KINDS[n % 3]) for n in range(16)])
                number += 16
            end.set()
            watcher.join()
            sent = json.loads(flood.communicate()[0])
            after, counters = _counters(lab.gw), proxy.counters()
            found_verdicts = verdicts(results)
            t.data.update({"sent": sent["sent"], "per_second": sent["per_second"],
                           "real": found_verdicts, "most_pending": found["pending"],
                           "resident_grown": found["resident"] - memory,
                           "syns_at_gate": counters["syns"], "bypassed": counters["bypassed"]})
            t.check("the flood was one", sent["per_second"] > _RATE / 4, sent)
            t.check("it came to the gate", counters["syns"] > 0.5 * sent["sent"], counters["syns"])
            t.check("every real connection worked", found_verdicts == {"ok": len(results)}
                    and len(results) >= 16, f"{found_verdicts} "
                    f"{describe(results, 'interrupted')} {describe(results, 'hung')}")
            t.check("pending SYNs stay below the limit", found["pending"] <= 2 * 256,
                    found["pending"])
            t.check("the rest went end to end", counters["bypassed"]["pending_limit"] > 0,
                    counters["bypassed"])
            t.equal("SYN cookies sent by the gateway",
                    after["TcpExtSyncookiesSent"] - before["TcpExtSyncookiesSent"], 0)
            t.check("memory is bounded", found["resident"] - memory < 32 << 20,
                    f"{found['resident'] - memory >> 10} KiB more")
            listener.close()
            # The last pending ones end with their handshake's or connect's time-out.
            wait_until(lambda: proxy.status()["pending"] == 0, 30, "nothing is pending")
            used = cpu_seconds(pid)
            time.sleep(1)
            t.check("the daemon is at rest", cpu_seconds(pid) - used < 0.2,
                    f"{cpu_seconds(pid) - used:.2f} s CPU in 1 s")
            split = proxy.counters()["split"]
            results = transfers.run([Plan(9000 + n, _KINDS[n % 3]) for n in range(10)])
            t.equal("afterwards", verdicts(results), {"ok": 10})
            t.equal("split again", proxy.counters()["split"] - split, 10)
