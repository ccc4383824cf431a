# SPDX-License-Identifier: GPL-2.0-or-later
"""The relay's buffer follows the radio: fresh data, full rate, and back at once after a blockage."""

import contextlib
import re
import socket
import threading
import time

from lib import Link, scenario
from lib.traffic import quantile

RATE = 200e6			# of the radio, bit/s of IP packets
PAYLOAD = 1448 / 1500		# of which payload
RADIO_RTT_S = 0.02
_PORT = 5600
_CHUNK = bytes(1 << 16)


def links():
    """100 ms of wire, 200 Mbit/s of radio."""
    return {"radio": Link(rate="200Mbit", rtt="20ms", buffer="16BDP"),
            "core": Link(rate="900Mbit", rtt="100ms", buffer="4BDP")}


FIXED = {"relay": {"buffer-min": "4MiB", "buffer-max": "4MiB"}}
VAST = {"relay": {"buffer-min": "64MiB", "buffer-max": "64MiB"}}


class Download:
    """The server sends all the time; the client takes down when how much came."""

    def __init__(self, lab, rate=None, receive_buffer=None):
        self.rate, self.received, self.marks = rate, 0, []
        self._stop = threading.Event()
        self._listener = lab.srv.socket(4)
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._listener.bind(("", _PORT))
        self._listener.listen(1)
        self._client = lab.ue.socket(4)
        if receive_buffer:
            self._client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self._client.settimeout(10)
        self._client.connect((lab.srv.addr(4), _PORT))
        self._server, _ = self._listener.accept()
        self.sent, self.sendings = 0, []
        self._threads = [threading.Thread(target=self._send), threading.Thread(target=self._read)]
        for thread in self._threads:
            thread.start()

    def _send(self):
        try:
            while not self._stop.is_set():
                self.sent += self._server.send(_CHUNK)
                self.sendings.append((time.monotonic(), self.sent))
        except OSError:
            pass

    def _read(self):
        began = time.monotonic()
        try:
            while not self._stop.is_set():
                if self.rate:
                    due = int((time.monotonic() - began) * self.rate) - self.received
                    if due < 16384:
                        time.sleep(0.002)
                        continue
                got = len(self._client.recv(min(due, 65536) if self.rate else 1 << 18))
                if not got:
                    return
                self.received += got
                self.marks.append((time.monotonic(), self.received))
        except OSError:
            pass

    def received_at(self, when):
        """Bytes that had come by a moment."""
        before = 0
        for mark, total in self.marks:
            if mark > when:
                break
            before = total
        return before

    def bps(self, since, until):
        return (self.received_at(until) - self.received_at(since)) * 8 / (until - since)

    def age(self):
        """Seconds since the byte that was read last left the server's program."""
        now, read = self.marks[-1]
        for when, total in self.sendings:
            if total >= read:
                return now - when
        return 0.0

    def stop(self):
        self._stop.set()
        for sock in (self._client, self._server, self._listener):
            try:
                sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        for thread in self._threads:
            thread.join()
        for sock in (self._client, self._server, self._listener):
            sock.close()


def queued_bytes(lab):
    """Bytes between the legs: unread ones of the wired leg, unsent ones of the wireless."""
    text = lab.gw.run(["ss", "-Htin", f"( sport = :{_PORT} or dport = :{_PORT} )"]).stdout
    unread = sum(int(found) for found in re.findall(r"^ESTAB +(\d+)", text, re.M))
    return unread + sum(int(found) for found in re.findall(r"notsent:(\d+)", text))


@scenario("relay-buffer-age", "what a reader of 2 MB/s gets is fresh", timing=True)
def age(t):
    with t.lab(radio=Link(rate="200Mbit", rtt="2ms", buffer="4BDP")) as lab:
        lab.start_proxy(conf={"leg wireless": {"congestion-control": "cubic"}})
        download = Download(lab, rate=2_000_000, receive_buffer=65536)
        ages = []
        time.sleep(4)
        for _ in range(10):
            time.sleep(0.2)
            ages.append(download.age())
        download.stop()
        t.data["ages_s"] = ages
        t.target("age of data at a 2 MB/s reader", quantile(ages, 0.5), "s", "<=", 0.6)
        t.check("the data are fresh", quantile(ages, 0.5) <= 1.5, ages)


def wait_full(download, limit_s=20):
    """Until the radio was full for three seconds: how long the slow start takes is the server's."""
    since = last = time.monotonic()
    end, received = since + limit_s, download.received
    while last - since < 3 and last < end:
        time.sleep(0.25)
        now, total = time.monotonic(), download.received
        if (total - received) * 8 / (now - last) < 0.9 * RATE * PAYLOAD:
            since = now
        last, received = now, total


@contextlib.contextmanager
def full_download(t, conf, **options):
    """(lab, a download that has filled the radio), ended when left; what it has marked stays."""
    with t.lab(**options) as lab:
        lab.start_proxy(conf={"leg wireless": {"congestion-control": "cubic"}, **conf})
        download = Download(lab)
        try:
            wait_full(download)
            yield lab, download
        finally:
            download.stop()


def blockage(t, conf):
    """The full rate, and one blockage to a fifth of it. Returns what was seen."""
    with full_download(t, conf, **links()) as (lab, download):
        radio = lab.emulators["radio"]
        radio.set("rate 40Mbit", "down")
        began = time.monotonic()
        queue = []
        while time.monotonic() - began < 1:
            queue.append(queued_bytes(lab))
            time.sleep(0.02)
        radio.set("rate 200Mbit", "down")
        back = time.monotonic()
        time.sleep(1)
    steps = [back + n * RADIO_RTT_S for n in range(48)]
    wanted = 0.9 * RATE * PAYLOAD
    rates = [download.bps(when, when + 2 * RADIO_RTT_S) for when in steps]
    recovered = next((n for n, rate in enumerate(rates) if rate >= wanted), 60)
    # From the tenth round trip on for good, whatever the first ones gave out of the queue.
    return {"before_bps": download.bps(began - 3, began), "queue_mean": sum(queue) / len(queue),
            "queue": queue, "recovered_rtts": recovered,
            "after_bps": download.bps(back + 10 * RADIO_RTT_S, back + 1), "rates": rates}


@scenario("relay-buffer-blockage", "100 ms of wire and a radio that is blocked: full rate, a short queue, "
          "and the rate again at once", timing=True)
def blocked(t):
    adaptive, fixed = blockage(t, {}), blockage(t, FIXED)
    t.data.update(adaptive=adaptive, fixed=fixed)
    t.target("goodput, to the radio's payload rate", adaptive["before_bps"] / (RATE * PAYLOAD),
             "ratio", ">=", 0.98)
    t.target("90 % of the rate after a blockage", adaptive["recovered_rtts"], "wireless RTTs", "<=",
             10)
    t.target("rate after ten round trips", adaptive["after_bps"] / (RATE * PAYLOAD), "ratio", ">=",
             0.9)
    t.target("queue in the blockage, to that of a fixed 4 MiB buffer",
             adaptive["queue_mean"] / fixed["queue_mean"], "ratio", "<=", 0.5)
    t.check("the radio was full before and is full again", min(
        adaptive["before_bps"], adaptive["after_bps"]) >= 0.85 * RATE * PAYLOAD, adaptive)
    t.check("the queue is shorter than a fixed one", adaptive["queue_mean"]
            < 0.7 * fixed["queue_mean"], (adaptive["queue_mean"], fixed["queue_mean"]))


@scenario("relay-buffer-loss", "a server on bbr behind a long wire that loses: the radio stays full",
          timing=True)
def loss(t):
    """A fixed buffer that holds everything shows what the path can do."""
    path = {"radio": Link(rate="200Mbit", rtt="2ms", buffer="8BDP"),
            "core": Link(rate="250Mbit", rtt="80ms", loss="0.02%", buffer="2BDP", seed=51)}
    bps = {}
    for name, conf in (("adaptive", {}), ("vast", VAST)):
        with full_download(t, conf, **path, server_control="bbr") as (_, download):
            began = time.monotonic()
            time.sleep(6)
            bps[name] = download.bps(began, began + 6)
    t.data.update(bps)
    t.target("goodput over a lossy wire, to that of a vast buffer", bps["adaptive"] / bps["vast"],
             "ratio", ">=", 0.97)
    t.check("the radio does not starve at each loss", bps["adaptive"] >= 0.9 * bps["vast"], bps)
