# SPDX-License-Identifier: GPL-2.0-or-later
"""Calls of the flow path fail: every flow works, is bypassed or is reset, and each fault is counted."""

import socket
import time

from lib import paths, scenario, wait_until
from lib.faults import Faults
from lib.flowtest import short_links
from lib.process import descriptors, settled
from lib.framework import Skip
from lib.transfer import BOTH, PUSH, REQUEST, Plan, Transfers, describe, verdicts

_KINDS = (BOTH, REQUEST, PUSH)
_SO_LINGER, _SO_MARK, _SO_KEEPALIVE = 13, 36, 9
_IP_TRANSPARENT, _IPV6_TRANSPARENT = 19, 75
_SETPIPE = 1031
_NETLINK = socket.AF_NETLINK
_INET = socket.AF_INET


def _option(level, option):
    return level << 16 | option


def _tcp(option):
    return _option(socket.IPPROTO_TCP, option)


def _sol(option):
    return _option(socket.SOL_SOCKET, option)


class Fault:
    """One row: rules for inject.so, the counters that tell, and whether every flow must work."""

    def __init__(self, name, rules, counted, all_work=True, kilobytes=30):
        self.name, self.rules, self.counted = name, rules, counted
        self.all_work, self.kilobytes = all_work, kilobytes


def _rule(call, error=None, **more):
    return {"call": call, "error": error, **more}


_RESOURCE = ("bypassed.resource",)
_OPTION = ("option_failures",)

#: From a SYN to two legs.
OPEN = [
    Fault("socket: EMFILE", [_rule("socket", "EMFILE", arg=_INET, share=.5)], _RESOURCE),
    Fault("socket: ENOBUFS", [_rule("socket", "ENOBUFS", arg=_INET, share=.5)], _RESOURCE),
    Fault("SO_LINGER: ENOMEM", [_rule("setsockopt", "ENOMEM", arg=_sol(_SO_LINGER), limit=20)],
          _RESOURCE, all_work=False),
    Fault("SO_MARK: EPERM", [_rule("setsockopt", "EPERM", arg=_sol(_SO_MARK), share=.5)],
          _RESOURCE),
    Fault("IP_TRANSPARENT: EINVAL", [_rule("setsockopt", "EINVAL", arg=_option(0, _IP_TRANSPARENT),
                                           share=.5)], _RESOURCE),
    Fault("SO_REUSEADDR: ENOPROTOOPT", [_rule("setsockopt", "ENOPROTOOPT",
                                              arg=_sol(socket.SO_REUSEADDR), share=.5)], _RESOURCE),
    Fault("TCP_NODELAY: ENOMEM", [_rule("setsockopt", "ENOMEM", arg=_tcp(socket.TCP_NODELAY),
                                        share=.5)], _RESOURCE),
    Fault("TCP_CONGESTION: ENOENT", [_rule("setsockopt", "ENOENT", arg=_tcp(13))], _OPTION),
    Fault("SO_KEEPALIVE: ENOMEM", [_rule("setsockopt", "ENOMEM", arg=_sol(_SO_KEEPALIVE))],
          _OPTION),
    Fault("bind: EADDRINUSE", [_rule("bind", "EADDRINUSE", arg=_INET, share=.5)],
          ("source_port_fallbacks", "bypassed.resource")),
    Fault("bind: EADDRNOTAVAIL for ever", [_rule("bind", "EADDRNOTAVAIL", arg=_INET)], _RESOURCE),
    Fault("bind: ENOMEM", [_rule("bind", "ENOMEM", arg=_INET, share=.5)], _RESOURCE),
    Fault("connect: EADDRNOTAVAIL", [_rule("connect", "EADDRNOTAVAIL", arg=_INET, share=.5)],
          ("source_port_fallbacks",)),
    Fault("connect: ENOBUFS", [_rule("connect", "ENOBUFS", arg=_INET, share=.5)], _RESOURCE),
    Fault("connect: ENETUNREACH", [_rule("connect", "ENETUNREACH", arg=_INET, share=.5)],
          ("connect_failures.unreachable",), all_work=False),
    Fault("epoll_ctl: ENOSPC", [_rule("epoll_ctl", "ENOSPC", arg=1, share=.3)],
          ("bypassed.resource", "closed.error"), all_work=False),
    Fault("accept4: EMFILE", [_rule("accept4", "EMFILE", arg=_INET, share=.3)],
          ("accept_failures",), all_work=False),
    Fault("accept4: ENOBUFS", [_rule("accept4", "ENOBUFS", arg=_INET, share=.5)],
          ("accept_failures",)),
    Fault("SO_ERROR: ENOBUFS", [_rule("getsockopt", "ENOBUFS", arg=_sol(socket.SO_ERROR),
                                      share=.3)], ("connect_failures.local",), all_work=False),
]

#: Bytes and ends. Bulk enough for splice.
MOVE = [
    # Pipes are kept once they were opened, so what fails to open them comes first.
    Fault("pipe2: EMFILE", [_rule("pipe2", "EMFILE")], ("pipe_failures",), kilobytes=1000),
    Fault("pipes shrink to a page", [_rule("fcntl", value=4096, arg=_SETPIPE)],
          ("pipe_failures",), kilobytes=1000),
    Fault("F_SETPIPE_SZ: EPERM", [_rule("fcntl", "EPERM", arg=_SETPIPE)], (), kilobytes=1000),
    Fault("splice reads: EAGAIN storm", [_rule("splice", "EAGAIN", arg=0, share=.3)], (),
          kilobytes=1000),
    Fault("splice writes: EAGAIN storm", [_rule("splice", "EAGAIN", arg=1, share=.3)], (),
          kilobytes=1000),
    Fault("recv: EAGAIN storm", [_rule("recv", "EAGAIN", arg=_INET, share=.3)], (), kilobytes=100),
    Fault("send: EAGAIN storm", [_rule("send", "EAGAIN", arg=_INET, share=.3)], (), kilobytes=100),
    Fault("splice is short", [_rule("splice", value=1009, share=.5)], (), kilobytes=400),
    Fault("recv and send are short", [_rule("recv", value=211, arg=_INET, share=.5),
                                      _rule("send", value=97, arg=_INET, share=.5)], (),
          kilobytes=100),
    Fault("splice reads: EINVAL", [_rule("splice", "EINVAL", arg=0, share=.5)],
          ("pipe_failures",), kilobytes=1000),
    Fault("splice reads: ENOMEM", [_rule("splice", "ENOMEM", arg=0, share=.1)],
          ("pipe_failures",), kilobytes=1000),
    Fault("splice writes: EINVAL", [_rule("splice", "EINVAL", arg=1, share=.05)],
          ("closed.error",), all_work=False, kilobytes=1000),
    Fault("recv: ENOMEM", [_rule("recv", "ENOMEM", arg=_INET, share=.05)], ("closed.error",),
          all_work=False, kilobytes=100),
    Fault("send: ENOBUFS", [_rule("send", "ENOBUFS", arg=_INET, share=.05)], ("closed.error",),
          all_work=False, kilobytes=100),
    Fault("shutdown: ENOTCONN", [_rule("shutdown", "ENOTCONN", arg=_INET, share=.3)],
          ("closed.client_reset", "closed.server_reset"), all_work=False),
    Fault("shutdown: ENOBUFS", [_rule("shutdown", "ENOBUFS", arg=_INET, share=.3)],
          ("closed.error",), all_work=False),
    Fault("SO_LINGER at the end: ENOMEM", [_rule("setsockopt", "ENOMEM", arg=_sol(_SO_LINGER),
                                                 share=.4)],
          _OPTION, all_work=False),
    Fault("TCP_INFO: ENOBUFS", [_rule("getsockopt", "ENOBUFS", arg=_tcp(11))], ()),
]

#: The gate's netlink socket.
GATE = [
    Fault("verdicts: ENOBUFS", [_rule("sendto", "ENOBUFS", arg=_NETLINK, share=.5)],
          ("gate_errors",)),
    Fault("verdicts: EAGAIN", [_rule("sendto", "EAGAIN", arg=_NETLINK, share=.5)],
          ("gate_errors",)),
    Fault("SYNs: ENOBUFS", [_rule("recvmmsg", "ENOBUFS", arg=_NETLINK, share=.5)],
          ("gate_overruns",)),
]


def _counter(counters, path):
    for key in path.split("."):
        counters = counters[key]
    return counters


def _strike(t, proxy, faults, transfers, fault, number):
    """Runs connections under one fault and checks what must hold."""
    plans = [Plan(number * 100 + n, _KINDS[n % 3], fault.kilobytes * 1000, fault.kilobytes * 1000)
             for n in range(30)]
    before = proxy.counters()
    began = time.monotonic()
    for rule in fault.rules:
        faults.add(**rule)
    results = transfers.run(plans)
    struck = faults.clear()
    found = verdicts(results)
    t.data[fault.name] = {"faults": struck, "seconds": round(time.monotonic() - began, 2), **found}
    t.check("the daemon lives", proxy.alive(), proxy.log_tail())
    t.check("faults were made", struck > 0, struck)
    bad = [v for v in found if v not in ("ok", "interrupted")]
    t.check("nothing corrupted, truncated or hung", not bad,
            f"{found} {describe(results, bad[0]) if bad else ''}")
    if fault.all_work:
        t.check("every connection works", found.get("ok") == len(plans),
                f"{found} {describe(results, 'interrupted')}")
    if fault.counted:
        def rises():
            after = proxy.counters()
            return {path: _counter(after, path) - _counter(before, path) for path in fault.counted}
        # Some are published at a worker's next tick.
        for _ in range(40):
            if any(rises().values()):
                break
            time.sleep(0.05)
        t.check(f"counted as {' or '.join(fault.counted)}", any(rises().values()), rises())
    wait_until(lambda: proxy.status()["flows"] + proxy.status()["pending"] == 0, 15,
               "no flow is left")


def _run(t, table, sanitized=False, links=True):
    program, conf = None, {"workers": 2}
    if sanitized:
        program = paths.sanitized("edgepepd")
        if program is None:
            raise Skip("no build with sanitizers: ./check makes one in build-clang")
        # The leak check traces the process, which one that has changed its user forbids.
        conf.update({"user": "root", "group": "root"})
    faults = Faults()
    with t.lab(**(short_links() if links else {})) as lab:
        proxy = lab.start_proxy(conf=conf, wrapper=faults.wrapper, program=program)
        pid = proxy.process.pid
        with Transfers(lab, at_once=16) as transfers:
            warm = transfers.run([Plan(n, _KINDS[n % 3], 3000, 3000) for n in range(20)])
            t.equal("without faults", verdicts(warm), {"ok": 20})
            wait_until(lambda: proxy.status()["flows"] == 0, 5, "no flow is left")
            start = descriptors(pid)
            for number, fault in enumerate(table, 1):
                with t.group(fault.name):
                    _strike(t, proxy, faults, transfers, fault, number)
                if not proxy.alive():
                    break
            split = proxy.counters()["split"]
            after = transfers.run([Plan(9900 + n, _KINDS[n % 3], 300000, 300000)
                                   for n in range(20)])
            t.equal("after all faults", verdicts(after), {"ok": 20})
            t.equal("they are split", proxy.counters()["split"] - split, 20)
            wait_until(lambda: proxy.status()["flows"] == 0, 5, "no flow is left")
        status = proxy.status()
        t.equal("bytes held", status["held_bytes"], 0)
        end = settled(pid, start)
        t.check("no descriptor is left", end["socket"] <= start["socket"]
                and end["other"] <= start["other"], f"{end}, {start} before")
        t.check("pipes are those of the pool", end["pipe"] <= 2 * 256, end["pipe"])
        t.equal("the daemon ends well", proxy.stop_daemon(), 0)
        if sanitized:
            t.check("no leak, no error", "ERROR:" not in proxy.log(), proxy.log()[-2000:])


@scenario("fault-open", "calls from SYN to two legs fail: flows work or are bypassed, counted")
def fault_open(t):
    _run(t, OPEN)


@scenario("fault-move", "calls that move bytes and end flows fail: nothing is corrupted or cut unseen")
def fault_move(t):
    _run(t, MOVE, links=False)


@scenario("fault-gate", "the gate's netlink socket fails: verdicts come late, none is lost")
def fault_gate(t):
    _run(t, GATE)


@scenario("fault-leaks", "all of these faults under ASan, UBSan and LSan: no error, no leak")
def fault_leaks(t):
    _run(t, OPEN + MOVE + GATE, sanitized=True, links=False)
