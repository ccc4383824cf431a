# SPDX-License-Identifier: GPL-2.0-or-later
"""Transfers over the lab: end to end, over one segment alone, or split by edgepepd."""

import contextlib
import os
import socket
import struct
import time

from lib import Lab, Link
from lib.framework import timing_lock
from scenarios import cca_pairs

from .pool import LOCKED

#: What the gateway sends to the server with, as by default; downloads do not use it.
WIRED_CONTROL = "cubic"
STEP = 0.25		# seconds of the time series
MODES = ("e2e", "wired", "wireless", "split")
_PORT = 5001


def machine_lock():
    """The machine to ourselves, unless whoever started us has seen to that for several runs."""
    return contextlib.nullcontext() if os.environ.get(LOCKED) else timing_lock()


def hurry(pid=0):
    """Puts a program (or this thread) before the machine's other work, below the emulators.

    What is emulated has a machine for each host; ours has a few processors and other things to do.
    """
    threads = os.listdir(f"/proc/{pid}/task") if pid else ["0"]
    for thread in threads:
        with contextlib.suppress(PermissionError, ProcessLookupError):
            os.setpriority(os.PRIO_PROCESS, int(thread), -19)


class Pump(cca_pairs.Pump):
    """Moves the data of flows, and is not kept waiting."""

    def _run(self):
        hurry()
        super()._run()


def received(flow):
    """Bytes that are at the receiver in order, whether its program has fetched them or not."""
    return struct.unpack_from("Q", flow.rx.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 232),
                              128)[0]


class Clock:
    """Wakes every STEP; how late it was at worst tells whether the figures can be believed."""

    def __init__(self):
        hurry()
        self.began = time.monotonic()
        self.late = 0.0

    def wait(self, step):
        """Sleeps until a step's time; returns it."""
        due = self.began + step * STEP
        time.sleep(max(0.0, due - time.monotonic()))
        self.late = max(self.late, time.monotonic() - due)
        return step * STEP


def timeouts(host):
    """Retransmission time-outs of a host so far."""
    def read():
        with open("/proc/thread-self/net/netstat", encoding="ascii") as text:
            names, values = [line.split() for line in text if line.startswith("TcpExt:")]
        return int(dict(zip(names, values))["TCPTimeouts"])
    return host.call(read)


class Bulk:
    """One connection that carries as much as it can from a to b, in the background."""

    def __init__(self, client, server, address, upload=False, control=None, port=_PORT):
        with server.socket() as listener:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if control and not upload:
                listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, control.encode())
            listener.bind((address, port))
            listener.listen(1)
            listener.settimeout(20)
            near = client.socket()
            near.settimeout(20)
            near.connect((address, port))
            far, _ = listener.accept()
        self.tx, self.rx = (near, far) if upload else (far, near)
        for sock in (self.tx, self.rx):
            sock.setblocking(False)
        self.received = 0
        self.pump = Pump([self])

    def info(self):
        return cca_pairs.TcpInfo(self.tx)

    def close(self):
        self.pump.stop()
        self.tx.close()
        self.rx.close()


@contextlib.contextmanager
def path(radio, core, server, mode, wireless, ue="cubic", wired=WIRED_CONTROL):
    """The lab, with the proxy if the mode is split, while nobody else's timing counts."""
    hurry()	# and what is started from here
    with machine_lock(), Lab(radio=Link(**radio), core=Link(**core), server_control=server,
                            ue_control=ue) as lab:
        proxy = lab.start_proxy(conf={
            "accept": "verified", "leg wireless": {"congestion-control": wireless},
            "leg wired": {"congestion-control": wired}}) if mode == "split" else None
        if proxy:
            hurry(proxy.process.pid)
        yield lab, proxy


def ends(lab, mode):
    """(who connects, who listens, its address, who sends a download)."""
    if mode == "wired":
        return lab.gw, lab.srv, lab.srv.addr4
    if mode == "wireless":
        return lab.ue, lab.gw, lab.gw.addr4
    return lab.ue, lab.srv, lab.srv.addr4


def lateness(lab):
    """The emulators' own delay, 99th percentile, the worst of the links that carry data."""
    return max(link["lateness_us"]["p99"] for emulator in lab.emulators.values()
               for link in emulator.stats().values())


def transfer(radio, core, server, mode, wireless="bbr", seconds=4.0, omit=1.5, upload=False,
             seed=1, wired=WIRED_CONTROL):
    """One bulk transfer. Goodput counts after `omit`, all else from the start."""
    radio, core = {**radio, "seed": 10 * seed + 1}, {**core, "seed": 10 * seed + 5}
    ue = server if upload else "cubic"
    with path(radio, core, server, mode, wireless, ue, wired) as (lab, proxy):
        client, listener, address = ends(lab, mode)
        lab.restart_links()
        bulk = Bulk(client, listener, address, upload, wireless if mode == "wireless" else None)
        clock = Clock()
        series, first, first_at, first_info = [], None, None, None
        try:
            last = 0
            for step in range(1, round((omit + seconds) / STEP) + 1):
                now = clock.wait(step)
                got = received(bulk)
                series.append([now, round((got - last) * 8 / STEP / 1e6, 3)])
                last = got
                if first is None and now >= omit - 1e-9:
                    first, first_at, first_info = got, time.monotonic(), bulk.info()
            took = time.monotonic() - first_at
            goodput = (received(bulk) - first) * 8 / took / 1e6
            stats = lab.emulators["radio"].stats()["up" if upload else "down"]
            info = bulk.info()
            late = lateness(lab)
            split = proxy.counters()["split"] if proxy else 0
        finally:
            bulk.close()
        if mode == "split" and split < 1:
            raise RuntimeError("the proxy did not split the transfer: " + proxy.log_tail())
        sent = info.bytes_sent - first_info.bytes_sent
        return {"goodput_mbps": round(goodput, 3), "series": series,
                "queue_p50_ms": round(stats["queue_delay_us"]["p50"] / 1000, 2),
                "queue_p95_ms": round(stats["queue_delay_us"]["p95"] / 1000, 2),
                "retrans_percent": round(100 * (info.bytes_retrans - first_info.bytes_retrans)
                                         / sent, 3) if sent else 0,
                "timeouts": sum(timeouts(h) for h in (lab.srv, lab.gw, lab.ue)),
                "lateness_p99_us": late, "reader_late_s": round(clock.late, 3), "split": split}


def side_by_side(controls, link, seconds=4.0, omit=1.5, flows=1, far=None, seed=1):
    """Bulk flows end to end under several controls at once, each over a link of its own."""
    with machine_lock(), cca_pairs.Pairs(controls, link, seed, far) as pairs:
        running = {c: [pairs.flow(c, bool(far) and n >= flows / 2) for n in range(flows)]
                   for c in controls}
        pairs.command("restart")
        pump = Pump([f for group in running.values() for f in group])
        clock = Clock()
        series, first = {c: [] for c in controls}, None
        try:
            before = dict.fromkeys(controls, 0)
            for step in range(1, round((omit + seconds) / STEP) + 1):
                now = clock.wait(step)
                for c, group in running.items():
                    got = sum(received(f) for f in group)
                    series[c].append([now, round((got - before[c]) * 8 / STEP / 1e6, 3)])
                    before[c] = got
                if first is None and now >= omit - 1e-9:
                    first, first_at = _state(running), time.monotonic()
            took = time.monotonic() - first_at
            stats, last = pairs.stats(), _state(running)
            rto = {c: timeouts(pairs.servers[c]) for c in controls}
        finally:
            pump.stop()
            for group in running.values():
                for flow in group:
                    flow.close()
    late = max(s["lateness_us"]["p99"] for s in stats.values())
    # pylint: disable=protected-access
    results = {c: {**cca_pairs._result(first[c], last[c], stats[c], took), "timeouts": rto[c],
                   "series": series[c]} for c in controls}
    return {"controls": results, "lateness_p99_us": late, "reader_late_s": round(clock.late, 3)}


def _state(running):
    return {c: [(received(f), f.info()) for f in group] for c, group in running.items()}


def longest_gap(series):
    """Longest time without anything new at the receiver, in seconds, to one step."""
    longest = now = 0
    for _, mbps in series:
        now = 0 if mbps > 0 else now + STEP
        longest = max(longest, now)
    return longest

