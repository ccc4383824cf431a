# SPDX-License-Identifier: GPL-2.0-or-later
"""Thousands of connections of random size and end, under loss: nothing lost, nothing leaked."""

import os
import random
import time

from lib import Link, scenario, wait_until
from lib.process import descriptors, resident, settled
from lib.transfer import (BOTH, CLIENT_RESET, ORDERLY, PUSH, REQUEST, SERVER_RESET, Plan, Transfers,
                          describe, verdicts)

#: How long connections are begun; more with EDGEPEP_SOAK_SECONDS.
_SECONDS = 15
_BATCH = 100

_KINDS = (BOTH,) * 4 + (REQUEST,) * 4 + (PUSH,) * 2 + (CLIENT_RESET, SERVER_RESET)


def _size(rng):
    """Mostly small, some large: 0 B to 2 MB, half of them below 8 kB."""
    return min(2000000, int(rng.paretovariate(0.7) * 3000) - 3000)


def _plans(rng, first, count):
    plans = []
    for number in range(first, first + count):
        plan = Plan(number, rng.choice(_KINDS), _size(rng), _size(rng))
        if plan.kind not in ORDERLY:
            # A reset comes in the middle of something.
            plan.up, plan.down = max(plan.up, 4000), max(plan.down, 4000)
        plans.append(plan)
    return plans


@scenario("soak", "thousands of connections of random size and end under loss, every byte compared")
def soak(t):
    seconds = float(os.environ.get("EDGEPEP_SOAK_SECONDS", _SECONDS))
    rng = random.Random(int(os.environ.get("EDGEPEP_SOAK_SEED", "1")))
    links = {"radio": Link(delay="1ms", loss="1%"), "core": Link(delay="2ms", loss="0.2%")}
    with t.lab(**links) as lab:
        proxy = lab.start_proxy()
        pid = proxy.process.pid
        idle = descriptors(pid)
        total, octets, done = {}, 0, 0
        kinds = dict.fromkeys((*ORDERLY, CLIENT_RESET, SERVER_RESET), 0)
        start = None
        with Transfers(lab, 4, at_once=48) as v4, Transfers(lab, 6, at_once=48) as v6:
            until = time.monotonic() + seconds
            while time.monotonic() < until:
                family = v4 if done // _BATCH % 2 == 0 else v6
                results = family.run(_plans(rng, done, _BATCH))
                done += len(results)
                for verdict, count in verdicts(results).items():
                    total[verdict] = total.get(verdict, 0) + count
                    if verdict != "ok":
                        t.note(describe(results, verdict))
                octets += sum(r.client.got + r.server.got for r in results)
                for result in results:
                    kinds[result.plan.kind] += 1
                if start is None:
                    wait_until(lambda: proxy.status()["flows"] == 0, 20, "no flow is left")
                    start = resident(pid)
            wait_until(lambda: proxy.status()["flows"] + proxy.status()["pending"] == 0, 20,
                       "no flow is left")
        t.data.update({"connections": done, "bytes": octets, "kinds": kinds, "verdicts": total})
        t.check("enough connections", done >= 20 * seconds, done)
        t.equal("every connection ended as it should, every byte right", total, {"ok": done})
        status = proxy.status()
        closed = {reason: n for reason, n in status["counters"]["closed"].items() if n}
        t.data["closed"] = closed
        t.equal("every one was split", status["counters"]["split"], done)
        t.equal("orderly ones finished", closed.get("finished"), sum(kinds[k] for k in ORDERLY))
        t.equal("resets were relayed", closed.get("client_reset", 0) + closed.get("server_reset", 0),
                kinds[CLIENT_RESET] + kinds[SERVER_RESET])
        t.equal("bytes held", status["held_bytes"], 0)
        t.check("the daemon lives", proxy.alive(), proxy.log_tail())
        left = settled(pid, idle)["socket"]
        t.check("no socket is left", left <= idle["socket"], f"{left}, {idle['socket']} before")
        grown = resident(pid) - start
        t.data["resident_grown_bytes"] = grown
        t.check("memory does not grow with connections", grown < 8 << 20, f"{grown >> 10} KiB")
        t.equal("the daemon ends well", proxy.stop_daemon(), 0)
