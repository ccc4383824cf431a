# SPDX-License-Identifier: GPL-2.0-or-later
"""Limits of control clients and descriptors, and what was bypassed stays bypassed."""

import json
import os
import socket
import threading
import time

from lib import peer, scenario, wait_until
from lib.flowtest import short_links
from lib.process import cpu_seconds, descriptors, settled
from lib.transfer import BOTH, PUSH, REQUEST, Plan, Transfers, verdicts

_KINDS = (BOTH, REQUEST, PUSH)


def _idle(t, pid, name):
    used = cpu_seconds(pid)
    time.sleep(1)
    used = cpu_seconds(pid) - used
    t.check(f"{name}: the daemon does not spin", used < 0.3, f"{used:.2f} s CPU in 1 s")


def _control(proxy):
    sock = socket.socket(socket.AF_UNIX)
    sock.settimeout(5)
    sock.connect(os.path.join(proxy.run_dir, "control.sock"))
    return sock


@scenario("overload-control", "60 control clients that stay: some are served, the others told, "
                              "flows untouched")
def control_clients(t):
    with t.lab(**short_links()) as lab:
        proxy = lab.start_proxy()
        pid = proxy.process.pid
        start = descriptors(pid)
        held, refused = [], []
        for _ in range(60):
            try:
                held.append(_control(proxy))
            except BlockingIOError:		# the backlog is full
                time.sleep(0.02)
        for sock in held:
            sock.settimeout(0.2)
            try:
                refused.append(json.loads(sock.makefile("rb").readline() or b"{}"))
            except TimeoutError:
                refused.append(None)
        told = [r for r in refused if r]
        t.check("those over the limit are told so", len(told) == len(held) - 16 and len(told) > 10
                and all(r.get("ok") is False and "too many" in r.get("error", "") for r in told),
                f"{len(told)} of {len(held)}: {told[:1]}")
        _idle(t, pid, "60 clients")
        with Transfers(lab, at_once=8) as transfers:
            t.equal("flows", verdicts(transfers.run([Plan(n, _KINDS[n % 3]) for n in range(20)])),
                    {"ok": 20})
        for sock in held:
            sock.close()
        t.check("served again", proxy.status()["ok"])
        end = settled(pid, start)
        t.check("no descriptor is left", end["socket"] <= start["socket"], f"{end}, {start} before")


@scenario("overload-descriptors", "a live daemon runs out of descriptors: flows go direct, then split "
                                  "again, no spinning")
def out_of_descriptors(t):
    with t.lab(**short_links()) as lab:
        proxy = lab.start_proxy()
        pid = proxy.process.pid

        def limit(count):
            # As the daemon's own user: root of a container may not do this to others.
            lab.gw.run(["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups",
                        "prlimit", f"--pid={pid}", f"--nofile={count}:"])

        with Transfers(lab, at_once=8) as transfers:
            def run(first):
                return verdicts(transfers.run([Plan(first + n, _KINDS[n % 3]) for n in range(30)]))
            start = descriptors(pid)
            t.equal("before", run(0), {"ok": 30})
            split = proxy.counters()["split"]
            # One that is still being closed would leave room for half a flow.
            limit(sum(settled(pid, start).values()) - 1)
            t.equal("without descriptors", run(100), {"ok": 30})
            # Its control socket cannot accept either; this client waits in the backlog.
            answer = []
            asker = threading.Thread(target=lambda: answer.append(proxy.status()), daemon=True)
            asker.start()
            _idle(t, pid, "a control client waits")
            t.equal("the control client is answered", answer, [])
            limit(4096)
            asker.join(5)
            t.require("it is answered when there are descriptors again", answer)
            counters = answer[0]["counters"]
            t.equal("none was split", counters["split"] - split, 0)
            t.equal("counted as bypassed.resource", counters["bypassed"]["resource"], 30)
            t.check("and told once", "cannot be opened" in proxy.log()
                    and proxy.log().count("cannot be opened") <= 4, proxy.log_tail())
            t.equal("after", run(200), {"ok": 30})
            t.equal("split again", proxy.counters()["split"] - split, 30)


@scenario("overload-bypass-stays", "a bypassed SYN that is sent again is bypassed again, room or not")
def bypass_stays(t):
    with t.lab(**short_links()) as lab:
        proxy = lab.start_proxy(conf={"max-flows": 1, "workers": 1})
        for family in (4, 6):
            with t.group(f"IPv{family}"), peer.Listener(lab.srv, family) as listener:
                before = proxy.counters()
                first = peer.pair(lab.ue, listener)
                wait_until(lambda: proxy.counters()["split"] - before["split"] == 1, 5,
                           "the first is split")
                # The second's SYN passes the gateway and is lost behind it.
                lab.emulators["core"].set("loss 100%")
                result = {}
                thread = threading.Thread(target=lambda: result.update(
                    client=peer.connect(lab.ue, listener.address, listener.port, family)),
                    daemon=True)
                thread.start()
                wait_until(lambda: proxy.counters()["bypassed"]["flow_limit"]
                           > before["bypassed"]["flow_limit"], 3, "the second is bypassed")
                proxy.ask(f"flows kill {proxy.flows()[0]['id']}")
                wait_until(lambda: proxy.status()["flows"] == 0, 3, "there is room again")
                lab.emulators["core"].set("loss 0%")
                thread.join(10)
                t.require("the second connects", "client" in result)
                client, server = result["client"], listener.accept()
                octets = peer.data(100000)
                t.check("and works", peer.exchange(client, server, octets)[0] == octets)
                after = proxy.counters()
                t.equal("it went direct", after["split"] - before["split"], 1)
                t.equal("bypassed once", after["bypassed"]["flow_limit"]
                        - before["bypassed"]["flow_limit"], 1)
                t.check("its repetition was seen", after["syn_retransmissions"]
                        > before["syn_retransmissions"], after["syn_retransmissions"])
                for end in (*first, client, server):
                    end.close()
