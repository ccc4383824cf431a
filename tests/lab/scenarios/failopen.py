# SPDX-License-Identifier: GPL-2.0-or-later
"""Fail-open with times: killed, stopped, hanging, restarted."""

import os
import signal
import subprocess
import sys
import threading
import time

from lib import peer, scenario, wait_until
from lib.flowtest import FAMILIES, short_links
from lib.process import alive as process_alive, child, threads
from lib.supervise import Supervisor, hang_thread, reap_thread
from lib.transfer import BOTH, PUSH, REQUEST, Plan, Transfers, describe, verdicts

_KINDS = (BOTH, REQUEST, PUSH)

#: A connection that loses its SYN takes a second more: what is faster has lost none.
_NO_LOSS = 0.9


def _works(lab, listener, **options):
    """A new connection with a byte each way; the seconds it took."""
    began = time.monotonic()
    client, server = peer.pair(lab.ue, listener, **options)
    with client, server:
        client.send(b"a")
        server.receive(1)
        server.send(b"b")
        if client.receive(1) != (b"b", None):
            raise OSError("no answer")
    return time.monotonic() - began


@scenario("failopen-kill", "kill -9, ten times: a new connection works within 100 ms of each")
def kill(t):
    with t.lab(**short_links()) as lab:
        proxy = lab.start_proxy()
        listeners = {family: peer.Listener(lab.srv, family) for family in FAMILIES}
        took = []
        for number in range(10):
            listener = listeners[FAMILIES[number % 2]]
            _works(lab, listener)
            cut = peer.pair(lab.ue, listener)
            wait_until(lambda: proxy.counters()["split"] >= 2, 3, "both were split")
            os.kill(proxy.process.pid, signal.SIGKILL)
            died = time.monotonic()
            # Its SYN waits in the queue of the dying process: the guard lets it go.
            _works(lab, listener)
            took.append(time.monotonic() - died)
            proxy.process.wait()
            for name, end in zip(("client", "server"), cut):
                t.equal(f"kill {number}: the {name} of a cut flow sees", end.receive()[1],
                        "ECONNRESET")
                end.close()
            proxy.start_daemon()
        took.sort()
        t.data["seconds"] = [round(s, 4) for s in took]
        t.target("kill -9 to a working new connection, median of 10", took[5], "s", "<=", 0.1)
        t.check("no SYN was lost", took[-1] < _NO_LOSS, f"{took[-1]:.3f} s at most")
        for listener in listeners.values():
            listener.close()


@scenario("failopen-hang", "stopped, main thread hangs, a worker hangs: connections begun at once work "
                           "before the watchdog kills, and after it")
def hang(t):
    def stop_all(pid):
        os.kill(pid, signal.SIGSTOP)

    def stop_main(pid):
        hang_thread(pid)

    def stop_worker(pid):
        hung_worker.append(threads(pid)["worker-1"])
        hang_thread(hung_worker[0])

    hung_worker = []
    stands_still = "worker 1 stands still, new connections go end to end"

    with Supervisor() as supervisor, t.lab(**short_links()) as lab, \
            peer.Listener(lab.srv, 4) as listener:
        proxy = lab.start_proxy(wrapper=supervisor.wrapper)
        wait_until(lambda: supervisor.ready, 5, "READY is told")
        for name, stop, ports in (("SIGSTOP", stop_all, 5000), ("main thread", stop_main, 6000),
                                  ("worker", stop_worker, 7000)):
            with t.group(name):
                pid = proxy.process.pid
                supervisor.watch(pid)
                before = supervisor.keepalives
                wait_until(lambda: supervisor.keepalives >= before + 3, 5, "keepalives come")
                _works(lab, listener)
                said = proxy.log().count(stands_still)
                stop(pid)
                hung = time.monotonic()
                # The worker follows from the client's port: both have some of these.
                begun = [_works(lab, listener, source_port=port)
                         for port in range(ports, ports + 8, 2)]
                worst = max(begun)
                t.data[f"{name}: begun in the hang, seconds"] = [round(s, 3) for s in begun]
                if name != "main thread":
                    t.check("the log names the worker", proxy.log().count(stands_still) == said + 1,
                            proxy.log_tail())
                t.data[f"{name}: before the watchdog's time"] = not supervisor.killed_at
                t.check("each within 2 s", worst < 2, f"{worst:.2f} s")
                t.target(f"hang ({name}): the slowest connection begun in it", worst, "s", "<=",
                         _NO_LOSS)
                wait_until(lambda: supervisor.killed_at, 10, "the watchdog kills")
                t.data[f"{name}: kill after seconds"] = round(supervisor.killed_at - hung, 3)
                while hung_worker:
                    reap_thread(hung_worker.pop())
                proxy.process.wait()
                took = [_works(lab, listener) for _ in range(5)]
                whole = supervisor.killed_at - hung + took[0]
                t.target(f"hang ({name}) to a working new connection", whole, "s", "<=", 2)
                t.check("not before the watchdog's time, and soon after", 1 < whole < 3.5,
                        f"{whole:.2f} s")
                t.check("no SYN was lost", max(took) < _NO_LOSS, f"{max(took):.3f} s")
                proxy.start_daemon()
                split = proxy.counters()["split"]
                _works(lab, listener)
                wait_until(lambda: proxy.counters()["split"] == split + 1, 3, "split again")


def _moves(ends):
    octets = peer.data(50000)
    return peer.exchange(*ends, octets)[0] == octets


@scenario("failopen-busy", "a short stop and a busy machine: no flow is cut, nobody is killed, and what "
                           "the guard let through is counted", timing=True)
def busy(t):
    with Supervisor() as supervisor, t.lab(**short_links()) as lab, \
            peer.Listener(lab.srv, 4) as listener:
        proxy = lab.start_proxy(wrapper=supervisor.wrapper)
        pid = proxy.process.pid
        supervisor.watch(pid)
        before = peer.pair(lab.ue, listener)
        wait_until(lambda: proxy.counters()["split"] == 1, 3, "it is split")
        with t.group("stopped for less than the watchdog's time"):
            os.kill(pid, signal.SIGSTOP)
            took = _works(lab, listener)
            os.kill(pid, signal.SIGCONT)
            t.target("a connection begun in the stop", took, "s", "<=", _NO_LOSS)
            t.check("a flow from before goes on", _moves(before))
            wait_until(lambda: proxy.counters()["bypassed"]["stalled"] == 1, 3,
                       "the guard's SYN is counted")
            _works(lab, listener)
            wait_until(lambda: proxy.counters()["split"] == 2, 3, "the next one is split")
        with t.group("more work than processors"):
            hogs = [subprocess.Popen([sys.executable, "-c", "while True: pass"])
                    for _ in range(2 * os.cpu_count())]
            try:
                supervisor.watch(pid)
                slowest = max(_works(lab, listener) for _ in range(60))
            finally:
                for hog in hogs:
                    hog.kill()
                    hog.wait()
            t.data["busy"] = {"slowest connection": round(slowest, 3),
                              "longest gap between keepalives": round(supervisor.longest_gap, 3),
                              "let through by the guard":
                                  proxy.counters()["bypassed"]["stalled"] - 1}
            t.check("not killed", supervisor.killed_at is None and proxy.alive())
            t.check("a flow from before goes on", _moves(before))
        with t.group("the guard itself"):
            guard = child(pid)
            os.kill(guard, signal.SIGTERM)
            t.check("it ends with the daemon only", process_alive(guard))
            os.kill(guard, signal.SIGKILL)
            wait_until(lambda: "the guard process has ended" in proxy.log(), 3, "it is missed")
            t.check("doctor misses it", "its guard process has ended" in proxy.ctl(
                "doctor", check=False).stdout)
            split = proxy.counters()["split"]
            _works(lab, listener)
            wait_until(lambda: proxy.counters()["split"] > split, 3, "the daemon goes on")
            proxy.stop_daemon()
            proxy.start_daemon()
            guard = child(proxy.process.pid)
            os.kill(guard, signal.SIGSTOP)
            proxy.kill_daemon()
            wait_until(lambda: not process_alive(guard), 3, "a stopped guard ends with the daemon")
            t.check("and nothing waits for it", _works(lab, listener) < _NO_LOSS)
        for end in before:
            end.close()


@scenario("failopen-time-wait", "after the kill, direct connections on 4-tuples that the proxy had: all "
                                "connect at once, whoever closed first")
def time_wait(t):
    ports = range(4800, 4830)
    with t.lab(**short_links()) as lab:
        lab.ue.sysctl({"net.ipv4.tcp_tw_reuse": 1})
        lab.srv.sysctl({"net.ipv4.tcp_tw_reuse": 1})
        proxy = lab.start_proxy()
        for family in FAMILIES:
            for first in ("client", "server"):
                with t.group(f"IPv{family}, the {first} closed first"), \
                        peer.Listener(lab.srv, family) as listener:
                    for port in ports:
                        ends = peer.pair(lab.ue, listener, source_port=port)
                        order = ends if first == "client" else ends[::-1]
                        order[0].close()
                        order[1].receive()
                        order[1].close()
                    wait_until(lambda: proxy.status()["flows"] == 0, 5, "no flow is left")
                    proxy.kill_daemon()
                    slow = []
                    for port in ports:
                        began = time.monotonic()
                        try:
                            client, server = peer.pair(lab.ue, listener, source_port=port)
                        except OSError as error:
                            slow.append((port, peer.error_name(error)))
                            continue
                        took = time.monotonic() - began
                        with client, server:
                            data = peer.exchange(client, server, b"d" * 20000)[0]
                        if took > _NO_LOSS or data != b"d" * 20000:
                            slow.append((port, round(took, 2), len(data)))
                    t.equal(f"of {len(ports)} direct connections, slow or failed", slow, [])
                    proxy.start_daemon()


@scenario("failopen-restart", "three restarts by drain under constant new connections: none fails")
def restart(t):
    with t.lab(**short_links()) as lab:
        proxy = lab.start_proxy()
        results, stop = [], threading.Event()
        with Transfers(lab, at_once=8) as transfers:
            def traffic():
                number = 0
                while not stop.is_set():
                    results.extend(transfers.run(
                        [Plan(number + n, _KINDS[n % 3], 20000, 20000) for n in range(8)]))
                    number += 8
            thread = threading.Thread(target=traffic, daemon=True)
            thread.start()
            for number in range(3):
                wait_until(lambda: proxy.counters()["split"] >= 30, 10, "flows are split")
                t.check(f"restart {number}: drain is taken", proxy.ask("drain 10").get("ok"))
                began = time.monotonic()
                wait_until(lambda: proxy.process.poll() is not None, 15, "the daemon ends")
                t.equal(f"restart {number}: exit code", proxy.process.returncode, 0)
                t.check(f"restart {number}: when empty, not at the deadline",
                        time.monotonic() - began < 9, f"{time.monotonic() - began:.1f} s")
                time.sleep(0.2)
                proxy.start_daemon()
            wait_until(lambda: proxy.counters()["split"] >= 30, 10, "flows are split again")
            stop.set()
            thread.join()
        t.data["connections"] = len(results)
        t.check("enough connections", len(results) >= 200, len(results))
        t.check("every one worked", verdicts(results) == {"ok": len(results)},
                f"{verdicts(results)} {describe(results, 'interrupted')}")
