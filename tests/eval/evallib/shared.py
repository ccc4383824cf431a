# SPDX-License-Identifier: GPL-2.0-or-later
"""One bottleneck that flows of different controls, and UDP cross traffic, share."""

import contextlib
import socket
import struct
import threading
import time

from scenarios import cca_pairs

from .path import STEP, Pump, hurry, machine_lock, received

_SO_COOKIE = 57
_UDP_PORT = 5009
_UDP_BYTES = 1472		# an IP packet of 1500


class Cross:
    """UDP from the server's side to the client's through the bottleneck, at a rate that changes."""

    def __init__(self, server, client, address):
        self.mbps = 0.0
        self.sent = 0
        self._sink = client.socket(kind=socket.SOCK_DGRAM)
        self._sink.bind((address, _UDP_PORT))
        self._source = server.socket(kind=socket.SOCK_DGRAM)
        self._source.connect((address, _UDP_PORT))
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._work)
        self._thread.start()

    def _work(self):
        hurry()
        last, credit, data = time.monotonic(), 0.0, bytes(_UDP_BYTES)
        while not self._end.wait(0.002):
            now = time.monotonic()
            # After a pause of the machine, no burst of what was missed.
            credit = min(credit + self.mbps * 1e6 / 8 * (now - last), 20 * 1500)
            last = now
            while credit >= 1500:
                self._source.send(data)
                self.sent += 1
                credit -= 1500

    def close(self):
        self._end.set()
        self._thread.join()
        self._source.close()
        self._sink.close()


def _pair(pairs, name, control, far):
    """A flow under a control that its route does not name."""
    flow = cca_pairs.Flow(pairs.servers[name], pairs.clients[name], pairs.addresses[name],
                          5002 if far else 5001)
    flow.tx.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, control.encode())
    flow.control = control
    return flow


def mixed(link, groups, seconds, omit, far=None, seed=1):
    """Flows of several controls in one bottleneck.

    groups: [[control, flows near, flows far], ...]. {control: {goodput_mbps, retrans_percent}} of
    all its flows, Jain's index of all, and the queue.
    """
    with machine_lock(), cca_pairs.Pairs(["cubic"], link, seed, far) as pairs:
        flows = [_pair(pairs, "cubic", control, n >= near) for control, near, away in groups
                 for n in range(near + away)]
        pump = Pump(flows)
        try:
            time.sleep(omit)
            pairs.command("restart")
            first, began = [(received(f), f.info()) for f in flows], time.monotonic()
            time.sleep(seconds)
            last, took = [(received(f), f.info()) for f in flows], time.monotonic() - began
            stats = pairs.stats()["cubic"]
        finally:
            pump.stop()
            for flow in flows:
                flow.close()
    result = {}
    for control in {control for control, _, _ in groups}:
        mine = [i for i, flow in enumerate(flows) if flow.control == control]
        # pylint: disable=protected-access
        got = cca_pairs._result([first[i] for i in mine], [last[i] for i in mine], stats, took)
        result[control] = {k: got[k] for k in ("goodput_mbps", "retrans_percent", "jain")}
    rates = [b[0] - a[0] for a, b in zip(first, last, strict=True)]
    return {"controls": result, "jain": round(cca_pairs.jain(rates), 4),
            "queue_p50_ms": round(stats["queue_delay_us"]["p50"] / 1000, 3),
            "lateness_p99_us": stats["lateness_us"]["p99"]}


def _believed(cookie):
    """What edgepep-cca says of a flow's bandwidth, in Mbit/s."""
    flow = next(f for f in cca_pairs.edgepep_cca("flows")[1]["flows"] if f["cookie"] == cookie)
    return flow["bandwidth_bytes_per_second"] * 8 / 1e6


def estimate(control, rate, cross, hold, seed=1):
    """What a control believes while UDP takes a changing part of the bottleneck.

    cross: Mbit/s of UDP, each for `hold` seconds. points: [seconds, left for TCP, estimated], in
    Mbit/s of payload.
    """
    points, link = [], {"rate": f"{rate}Mbit", "rtt": "20ms", "buffer": "1BDP"}
    with machine_lock(), cca_pairs.Pairs([control], link, seed) as pairs:
        flow = pairs.flow(control)
        cookie, = struct.unpack("Q", flow.tx.getsockopt(socket.SOL_SOCKET, _SO_COOKIE, 8))
        pump = Pump([flow])
        try:
            with contextlib.closing(Cross(pairs.servers[control], pairs.clients[control],
                                          "10.77.1.2")) as udp:
                began = time.monotonic()
                for part, mbps in enumerate(cross):
                    udp.mbps = mbps
                    while time.monotonic() < began + (part + 1) * hold:
                        time.sleep(STEP)
                        points.append([round(time.monotonic() - began, 2),
                                       round((rate - mbps) * 1448 / 1500, 3),
                                       round(_believed(cookie), 3)])
            stats = pairs.stats()[control]
        finally:
            pump.stop()
            flow.close()
    return {"points": points, "lateness_p99_us": stats["lateness_us"]["p99"], "udp_sent": udp.sent}
