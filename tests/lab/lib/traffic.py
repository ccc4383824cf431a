# SPDX-License-Identifier: GPL-2.0-or-later
"""Load and probes: iperf3, and UDP packets that carry their time."""

import json
import struct
import subprocess
import threading
import time

from . import paths
from .netns import wait_until

_next_port = 5300


def _port():
    global _next_port
    _next_port += 1
    return _next_port


class Iperf:
    """One iperf3 run in the background; result() waits for it.

    The client connects to the server. reverse: the server sends. control: the sender's congestion
    control where no route decides (the gateway). udp: payload rate such as "120M".
    """

    def __init__(self, server, client, address, seconds=5, omit=0, reverse=False, parallel=1,
                 control=None, udp=None, udp_bytes=1472, extra=()):
        program = paths.needed("iperf3", "iperf3")
        port = _port()
        self.timeout = seconds + omit + 30
        self.server = server.popen([program, "-s", "-1", "-p", port, "--forceflush"],
                                   stdout=subprocess.PIPE, text=True)
        for line in self.server.stdout:
            if "listening" in line:
                break
        argv = [program, "-c", address, "-p", port, "-t", seconds, "-J"]
        argv += ["-O", omit] if omit else []
        argv += ["-R"] if reverse else []
        argv += ["-P", parallel] if parallel > 1 else []
        argv += ["-C", control] if control else []
        argv += ["-u", "-b", udp, "-l", udp_bytes] if udp else []
        self.client = client.popen([*argv, *extra], stdout=subprocess.PIPE, text=True)

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

    def bps(self):
        """What the receiver got, in bit/s of payload."""
        end = self.result()["end"]
        return end.get("sum_received", end.get("sum"))["bits_per_second"]


def iperf_bps(*args, **options):
    return Iperf(*args, **options).bps()


class Probes:
    """One-way delay of small UDP packets, exact: sender and receiver share this process's clock."""

    def __init__(self, sender, receiver, family=4, count=200, interval=0.005, payload=32, port=7999):
        self.count = count
        self.sent, self.received = {}, {}
        self._rx = receiver.socket(family, 2)
        self._rx.bind((receiver.addr(family), port))
        self._rx.settimeout(2)
        self._tx = sender.socket(family, 2)
        self._tx.connect((receiver.addr(family), port))
        self._pad = bytes(max(0, payload - 4))
        self._interval = interval
        self._threads = [threading.Thread(target=self._receive), threading.Thread(target=self._send)]
        for thread in self._threads:
            thread.start()

    def _send(self):
        due = time.monotonic()
        for i in range(self.count):
            due += self._interval
            time.sleep(max(0, due - time.monotonic()))
            self.sent[i] = time.monotonic()
            self._tx.send(struct.pack("!I", i) + self._pad)

    def _receive(self):
        try:
            while len(self.received) < self.count:
                data = self._rx.recv(2048)
                self.received.setdefault(struct.unpack("!I", data[:4])[0], time.monotonic())
        except TimeoutError:
            pass

    def delays(self):
        """Waits; the delays in seconds of those that arrived, in order of sending."""
        for thread in self._threads:
            thread.join()
        self._tx.close()
        self._rx.close()
        return [self.received[i] - self.sent[i] for i in sorted(self.received)]

    def in_order(self):
        order = sorted(self.received, key=self.received.get)
        return order == sorted(order)


def quantile(values, q):
    """The value that a share q of all values does not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(q * len(ordered)))]


def wait_drained(emulator, direction, timeout=10):
    """Waits until no packet is left in a direction of a link."""
    wait_until(lambda: emulator.stats()[direction]["backlog_bytes"] == 0, timeout, "link drained")
