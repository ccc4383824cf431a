# SPDX-License-Identifier: GPL-2.0-or-later
"""Load and probes: iperf3, and numbered UDP packets."""

import json
import os
import socket
import struct
import subprocess
import threading
import time

from . import paths
from .netns import wait_until

_SO_SNDBUFFORCE, _SO_RCVBUFFORCE, _SO_TIMESTAMPNS = 32, 33, 35

_next_port = 5300


def _port():
    global _next_port
    _next_port += 1
    return _next_port


class Iperf:
    """One iperf3 run in the background; result() waits for it.

    The client connects to the server. reverse: the server sends. control: the sender's congestion
    control where no route decides (the gateway). udp: payload rate such as "120M". amount: bytes
    to send, in place of a time (`seconds` only bounds how long result() waits).
    """

    def __init__(self, server, client, address, seconds=5, omit=0, reverse=False, parallel=1,
                 control=None, udp=None, udp_bytes=1472, amount=None, extra=()):
        program = paths.needed("iperf3", "iperf3")
        port = _port()
        self.timeout = seconds + omit + 30
        self.server = server.popen([program, "-s", "-1", "-p", port, "--forceflush"],
                                   stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        for line in self.server.stdout:
            if "listening" in line:
                break
        argv = [program, "-c", address, "-p", port, "-J"]
        argv += ["-n", amount] if amount else ["-t", seconds]
        argv += ["-O", omit] if omit else []
        argv += ["-R"] if reverse else []
        argv += ["-P", parallel] if parallel > 1 else []
        argv += ["-C", control] if control else []
        argv += ["-u", "-b", udp, "-l", udp_bytes] if udp else []
        self.client = client.popen([*argv, *extra], stdout=subprocess.PIPE,
                                   stderr=subprocess.DEVNULL, text=True)

    def result(self):
        """iperf3's own JSON."""
        try:
            out, _ = self.client.communicate(timeout=self.timeout)
            wait_until(lambda: self.server.poll() is not None, 2, "iperf3's server ends")
        finally:
            self.client.stop()
            self.server.stop()
        data = json.loads(out)
        if "error" in data:
            raise RuntimeError("iperf3: " + data["error"])
        return data

    def stop(self):
        """Ends it before its time, without a result."""
        self.client.stop()
        self.server.stop()

    def bps(self):
        """What the receiver got, in bit/s of payload."""
        end = self.result()["end"]
        return end.get("sum_received", end.get("sum"))["bits_per_second"]


def iperf_bps(*args, **options):
    return Iperf(*args, **options).bps()


class Probes:
    """Numbered UDP packets whose sender and receiver share this process's clock.

    They start at once. Arrivals are stamped by the kernel. `length` is that of the IP packet
    (IPv4), at least 32.
    """

    def __init__(self, sender, receiver, family=4, count=200, interval=0.005, length=100,
                 port=7999):
        self.count = count
        self.sent, self.received = [], {}
        self._rx = receiver.socket(family, socket.SOCK_DGRAM)
        self._rx.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, 64 << 20)
        self._rx.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
        self._rx.bind((receiver.addr(family), port))
        self._tx = sender.socket(family, socket.SOCK_DGRAM)
        self._tx.setsockopt(socket.SOL_SOCKET, _SO_SNDBUFFORCE, 64 << 20)
        self._tx.connect((receiver.addr(family), port))
        self._pad = bytes(length - 28 - 4)
        self._interval = interval
        self._threads = [threading.Thread(target=f) for f in (self._receive, self._send)]
        for thread in self._threads:
            thread.start()

    @staticmethod
    def _urgent():
        """The thread's timing is part of the measurement; without the right to it, it goes on."""
        try:
            os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
        except PermissionError:
            pass

    def _send(self):
        self._urgent()
        due = time.monotonic()
        for i in range(self.count):
            ahead = due - time.monotonic()
            if ahead > 0:
                time.sleep(ahead)
            due += self._interval
            self.sent.append(time.monotonic())
            self._tx.send(struct.pack("!I", i) + self._pad)

    def _receive(self):
        """Ends when nothing has come for a while after the last was sent."""
        self._urgent()
        self._rx.settimeout(1.0)
        offset = time.clock_gettime(time.CLOCK_REALTIME) - time.monotonic()
        while len(self.received) < self.count:
            try:
                data, ancillary, _, _ = self._rx.recvmsg(2048, 64)
            except TimeoutError:
                if len(self.sent) == self.count:
                    return
                continue
            seconds, nanoseconds = struct.unpack("qq", ancillary[0][2])
            self.received.setdefault(struct.unpack("!I", data[:4])[0],
                                     seconds + nanoseconds / 1e9 - offset)

    def wait(self):
        """Waits for the end; returns self."""
        for thread in self._threads:
            thread.join()
        self._tx.close()
        self._rx.close()
        return self

    def delays(self):
        """One-way delays in seconds of those that arrived, in order of sending."""
        self.wait()
        return [self.received[i] - self.sent[i] for i in sorted(self.received)]

    def lost(self):
        """Numbers of those that did not arrive."""
        self.wait()
        return [i for i in range(self.count) if i not in self.received]

    def in_order(self):
        self.wait()
        order = list(self.received)
        return order == sorted(order)


def runs(numbers):
    """Lengths of the runs of consecutive numbers in an ascending list."""
    lengths = []
    for i, number in enumerate(numbers):
        if i and number == numbers[i - 1] + 1:
            lengths[-1] += 1
        else:
            lengths.append(1)
    return lengths


def _device(host, interface):
    """The kernel's counters of an interface, in the order of /proc/net/dev."""
    def read():
        with open("/proc/thread-self/net/dev", encoding="ascii") as text:
            for line in text:
                name, _, fields = line.partition(":")
                if name.strip() == interface:
                    return [int(word) for word in fields.split()]
        raise KeyError(interface)
    return host.call(read)


def counters(host, interface):
    """(received IP bytes, received packets) of an interface, as the kernel counts them."""
    total, packets = _device(host, interface)[:2]
    return total - 14 * packets, packets


def bytes_sent(host, interface):
    """Bytes that an interface has sent, with their Ethernet headers."""
    return _device(host, interface)[8]


def measured_rate(host, interface, seconds):
    """Rate of IP bytes that an interface receives, in bit/s, over some time from now."""
    first, began = counters(host, interface)[0], time.monotonic()
    time.sleep(seconds)
    last, ended = counters(host, interface)[0], time.monotonic()
    return (last - first) * 8 / (ended - began)


def quantile(values, q):
    """The value that a share q of all values does not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(q * len(ordered)))]


def wait_drained(emulator, direction, timeout=10):
    """Waits until no packet is left in a direction of a link."""
    wait_until(lambda: emulator.stats()[direction]["backlog_bytes"] == 0, timeout, "link drained")
