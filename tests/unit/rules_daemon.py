# SPDX-License-Identifier: GPL-2.0-or-later
"""A stand-in for edgepepd that needs nothing but the rules: a gate on NFQUEUE, transparent listeners
and a relay. It splits (verified), bypasses or refuses, as told, so that the rules can be tested alone.
"""
import contextlib
import errno
import select
import socket
import struct
import threading
import time

from rules_world import family_of

NFNL_QUEUE = 3
MSG_PACKET, MSG_VERDICT, MSG_CONFIG = 0, 1, 2
NF_DROP, NF_ACCEPT, NF_REPEAT = 0, 1, 4
KIND_BYPASS, KIND_REFUSE, KIND_UNREACHABLE, KIND_SPLIT, KIND_WIRED, KIND_WIRELESS = range(1, 7)
IP_TRANSPARENT, IPV6_TRANSPARENT = 19, 75


def mark(mask, kind, worker=0):
    return ((kind << 6) | worker) * (mask & -mask)


def attribute(kind, data):
    pad = -len(data) % 4
    return struct.pack("=HH", len(data) + 4, kind) + data + bytes(pad)


def attributes(data):
    found = {}
    while len(data) >= 4:
        size, kind = struct.unpack_from("=HH", data)
        found[kind & 0x3fff] = data[4:size]
        data = data[(size + 3) & ~3:]
    return found


class Queue:
    """One netfilter queue."""

    def __init__(self, number):
        self.number = number
        self.sock = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 12)
        self.sock.bind((0, 0))
        self._send(MSG_CONFIG, attribute(1, struct.pack(">BBH", 1, 0, 0)), ack=True)  # bind
        self._send(MSG_CONFIG, attribute(2, struct.pack(">IB", 0xffff, 2)), ack=True)  # copy packets

    def _send(self, kind, payload, ack=False):
        body = struct.pack(">BBH", 0, 0, self.number) + payload
        head = struct.pack("=IHHII", 16 + len(body), (NFNL_QUEUE << 8) | kind, 5 if ack else 1, 1, 0)
        self.sock.send(head + body)
        if ack:
            error = struct.unpack_from("=i", self.sock.recv(65536), 16)[0]
            if error:
                raise OSError(-error, "nfqueue")

    def packet(self):
        """(id, hook, mark, IP packet) of the next one."""
        data = self.sock.recv(65536)
        found = attributes(data[20:])
        number, _, hook = struct.unpack_from(">IHB", found[1])
        return number, hook, struct.unpack(">I", found[3])[0] if 3 in found else 0, found[10]

    def verdict(self, number, verdict, value=None):
        payload = attribute(2, struct.pack(">II", verdict, number))
        if value is not None:
            payload += attribute(3, struct.pack(">I", value))
        self._send(MSG_VERDICT, payload)


def read_tcp(packet):
    """(source, source port, destination, port, traffic class) of an IP packet."""
    if packet[0] >> 4 == 4:
        head = (packet[0] & 15) * 4
        source, target = packet[12:16], packet[16:20]
        family, traffic_class = socket.AF_INET, packet[1]
    else:
        head = 40
        source, target = packet[8:24], packet[24:40]
        family, traffic_class = socket.AF_INET6, (packet[0] & 15) << 4 | packet[1] >> 4
    sport, dport = struct.unpack_from(">HH", packet, head)
    return (socket.inet_ntop(family, source), sport, socket.inet_ntop(family, target), dport,
            traffic_class)


class Daemon:
    """Two workers on queues 7000+ and ports 17000+ of the gateway."""

    def __init__(self, gw, mask=0x07ff0000, mode="split"):
        self.gw, self.mask, self.mode = gw, mask, mode
        self.wired, self.legs, self.seen, self.answers = {}, [], [], []
        self.stopping = False
        with gw:
            self.queues = [Queue(7000 + w) for w in range(2)]
            self.listeners = [self._listener(v, w) for v in (4, 6) for w in range(2)]
        self.thread = threading.Thread(target=self._loop, daemon=True)
        self.thread.start()

    def _transparent(self, version, kind, worker):
        sock = socket.socket(family_of(version), socket.SOCK_STREAM)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_MARK, mark(self.mask, kind, worker))
        if version == 4:
            sock.setsockopt(socket.IPPROTO_IP, IP_TRANSPARENT, 1)
        else:
            sock.setsockopt(socket.IPPROTO_IPV6, IPV6_TRANSPARENT, 1)
        return sock

    def _listener(self, version, worker):
        sock = self._transparent(version, KIND_WIRELESS, worker)
        sock.bind(("127.0.0.1" if version == 4 else "::1", 17000 + worker))
        sock.listen(64)
        sock.setblocking(False)
        return sock

    def _loop(self):
        while not self.stopping:
            sources = [q.sock for q in self.queues] + self.listeners
            for ready in select.select(sources, [], [], 0.02)[0]:
                if self.stopping:
                    return
                if ready in self.listeners:
                    self._accept(ready)
                else:
                    worker = [q.sock for q in self.queues].index(ready)
                    threading.Thread(target=self._syn, args=(worker, *self.queues[worker].packet()),
                                     daemon=True).start()

    def _syn(self, worker, number, hook, value, packet):
        source, sport, target, port, traffic_class = read_tcp(packet)
        queue = self.queues[worker]
        if hook == 1:  # INPUT: a server's SYN-ACK with a DSCP
            self.answers.append((worker, (value // (self.mask & -self.mask)) & 63, traffic_class >> 2))
            queue.verdict(number, NF_ACCEPT)
            return
        self.seen.append((source, sport, target, port))
        kind = {"split": KIND_SPLIT, "bypass": KIND_BYPASS}[self.mode]
        if kind == KIND_SPLIT:
            kind = self._connect(worker, source, sport, target, port)
        with contextlib.suppress(OSError):  # stopped meanwhile: the kernel lets the packet go on
            queue.verdict(number, NF_REPEAT, (value & ~self.mask) | mark(self.mask, kind, worker))

    def _connect(self, worker, source, sport, target, port):
        with self.gw:
            leg = self._transparent(6 if ":" in source else 4, KIND_WIRED, worker)
        leg.settimeout(3)
        try:
            leg.bind((source, sport))
            leg.connect((target, port))
        except OSError as e:
            leg.close()
            return KIND_REFUSE if e.errno == errno.ECONNREFUSED else KIND_UNREACHABLE
        self.wired[source, sport, target, port] = leg
        return KIND_SPLIT

    def _accept(self, listener):
        try:
            wireless, peer = listener.accept()
        except BlockingIOError:  # reset before it was accepted
            return
        wired = self.wired.pop((*peer[:2], *wireless.getsockname()[:2]))
        for leg in wireless, wired:
            leg.settimeout(None)
            leg.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.legs.append((wireless, wired))
        done = threading.Barrier(2, action=lambda: self._finish(wireless, wired))
        for one, other in ((wireless, wired), (wired, wireless)):
            threading.Thread(target=self._relay, args=(one, other, done), daemon=True).start()

    def _relay(self, source, target, done):
        try:
            while data := source.recv(65536):
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)
            done.wait()
        except (OSError, threading.BrokenBarrierError):
            done.abort()

    def _finish(self, wireless, wired):
        for leg in wireless, wired:
            leg.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 0, 0))
            leg.close()

    def stop(self):
        """Ends as a killed daemon does: queues and listeners go, open legs are reset."""
        self.stopping = True
        self.thread.join()
        for sock in [q.sock for q in self.queues] + self.listeners:
            sock.close()
        for pair in self.legs:
            for leg in pair:
                leg.close()
        time.sleep(0.02)
