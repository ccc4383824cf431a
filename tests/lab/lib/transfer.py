# SPDX-License-Identifier: GPL-2.0-or-later
"""Many connections at once, each byte of them checked: for faults, overload and the soak.

A connection follows a Plan. Both ends run in this process, so each knows what the other sends, and
a Result says what either end saw. Payloads are slices of one block of random bytes, each at a place
of its own: a byte that strays from one connection into another is found.
"""

import collections
import concurrent.futures
import dataclasses
import hashlib
import random
import select
import socket
import struct
import threading
import time

from . import peer

MAX_BYTES = 4 << 20
_BLOCK = random.Random(20).randbytes(2 * MAX_BYTES)
_HEADER = struct.Struct("!I")
_POKE = b"?"

#: How a connection ends.
BOTH = "both"			# both ends send at once, FIN behind their bytes
REQUEST = "request"		# the client sends and half-closes, then the server answers
PUSH = "push"			# the server sends and half-closes, then the client sends
CLIENT_RESET = "client-reset"	# the client resets after a part
SERVER_RESET = "server-reset"
ORDERLY = (BOTH, REQUEST, PUSH)


@dataclasses.dataclass
class Plan:
    number: int
    kind: str = BOTH
    up: int = 100000		# payload bytes towards the server, header not counted
    down: int = 100000

    def payload(self, upwards):
        size = self.up if upwards else self.down
        start = (self.number * 2 + upwards) * 4099 % MAX_BYTES
        octets = _BLOCK[start:start + size]
        return _HEADER.pack(self.number) + octets if upwards else octets


@dataclasses.dataclass
class End:
    """What one end saw."""
    got: int = 0
    right: bool = True		# what came is the beginning of what was sent
    whole: bool = False		# and all of it
    end: str = "not connected"	# peer.FIN, ECONNRESET, "no answer", ...


@dataclasses.dataclass
class Result:
    plan: Plan
    client: End = dataclasses.field(default_factory=End)
    server: End = dataclasses.field(default_factory=End)

    def verdict(self):
        """ok, interrupted (an end saw an error and knows), or what must never be."""
        ends = (self.client, self.server)
        if not all(e.right for e in ends):
            return "corrupted"
        if any(e.end == peer.FIN and not e.whole for e in ends):
            return "truncated"
        if self.plan.kind in ORDERLY:
            if all(e.whole and e.end == peer.FIN for e in ends):
                return "ok"
            return "hung" if any(e.end == "no answer" for e in ends) else "interrupted"
        seen = self.server if self.plan.kind == CLIENT_RESET else self.client
        if seen.end in ("ECONNRESET", "EPIPE"):
            return "ok"
        return "hung" if seen.end == "no answer" else "interrupted"


class Conversation:
    """Sends and receives on one socket at once."""

    def __init__(self, sock, timeout):
        self.sock = sock
        self.timeout = timeout
        self.got = bytearray()
        self.end = None
        sock.setblocking(False)

    def _receive(self):
        try:
            part = self.sock.recv(1 << 18)
        except BlockingIOError:
            return
        if part:
            self.got += part
        else:
            self.end = peer.FIN

    def run(self, out=b"", finish=False, enough=None):
        """Sends `out` (then FIN if finish) while receiving, until all is sent and either the other
        end has ended or `enough` bytes came."""
        out = memoryview(out)
        poll = select.poll()
        last = time.monotonic()
        while self.end is None or out or finish:
            if not out and finish:
                try:
                    self.sock.shutdown(socket.SHUT_WR)
                except OSError as error:
                    self.end = peer.error_name(error)
                    return
                finish = False
            if not out and (self.end is not None
                            or enough is not None and len(self.got) >= enough):
                return
            poll.register(self.sock, (select.POLLOUT if out else 0)
                          | (select.POLLIN if self.end is None else 0))
            if not poll.poll(200):
                if time.monotonic() - last > self.timeout:
                    self.end = "no answer"
                    return
                continue
            last = time.monotonic()
            try:
                if out:
                    try:
                        out = out[self.sock.send(out[:1 << 18]):]
                    except BlockingIOError:
                        pass
                if self.end is None:
                    self._receive()
            except OSError as error:
                self.end = peer.error_name(error)
                return

    def poke(self):
        """Sends a byte now and then until an error shows: a reset may be lost on the way once."""
        deadline = time.monotonic() + self.timeout
        while self.end in (None, peer.FIN) and time.monotonic() < deadline:
            try:
                self.sock.send(_POKE)
            except BlockingIOError:
                pass
            except OSError as error:
                self.end = peer.error_name(error)
                return
            poll = select.poll()
            poll.register(self.sock, select.POLLIN)
            if poll.poll(50) and self.end is None:
                try:
                    self._receive()
                except OSError as error:
                    self.end = peer.error_name(error)
        if self.end is None:
            self.end = "no answer"

    def fill(self, end, want):
        while len(self.got) > len(want) and self.got.endswith(_POKE):
            self.got = self.got[:-1]
        end.got = len(self.got)
        end.right = (hashlib.sha256(self.got).digest()
                     == hashlib.sha256(want[:len(self.got)]).digest())
        end.whole = end.right and len(self.got) == len(want)
        end.end = self.end or "closed"


class Transfers:
    """Runs plans between the lab's ue and srv, `at_once` of them at a time."""

    def __init__(self, lab, family=4, at_once=32, timeout=15):
        self.lab, self.family, self.at_once, self.timeout = lab, family, at_once, timeout
        self.listener = peer.Listener(lab.srv, family, backlog=4096)
        self.listener.sock.settimeout(0.1)
        self.results = {}
        self._ending = False
        self._threads = []
        self._acceptor = threading.Thread(target=self._accept, daemon=True)
        self._acceptor.start()

    def close(self):
        self._ending = True
        self._acceptor.join()
        self.listener.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def run(self, plans):
        """Returns the results in the order of the plans."""
        self.results = {plan.number: Result(plan) for plan in plans}
        with concurrent.futures.ThreadPoolExecutor(self.at_once) as pool:
            for future in [pool.submit(self._client, plan) for plan in plans]:
                future.result()
        for thread in self._threads:
            thread.join(self.timeout + 5)
        self._threads = []
        return [self.results[plan.number] for plan in plans]

    # -- the client's end --------------------------------------------------------------------------

    def _client(self, plan):
        end = self.results[plan.number].client
        try:
            sock = peer.connect(self.lab.ue, self.listener.address, self.listener.port,
                                self.family, timeout=self.timeout).sock
        except OSError as error:
            end.end = peer.error_name(error)
            return
        talk = Conversation(sock, self.timeout)
        with sock:
            up, down = plan.payload(True), plan.payload(False)
            if plan.kind == PUSH:
                talk.run(up[:_HEADER.size], enough=len(down) + 1)
                if talk.end == peer.FIN:
                    talk.run(up[_HEADER.size:], finish=True)
                    self._linger(talk)
            elif plan.kind == CLIENT_RESET:
                talk.run(up[:len(up) // 2], enough=len(down) // 2)
                peer.Peer(sock).reset()
            elif plan.kind == SERVER_RESET:
                talk.run(up, enough=0)
                talk.poke()
            else:
                talk.run(up, finish=True)
        talk.fill(end, down)

    @staticmethod
    def _linger(talk):
        """The last bytes were sent behind the other end's FIN: sees whether a reset comes back."""
        deadline = time.monotonic() + talk.timeout
        while time.monotonic() < deadline:
            info = talk.sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)
            if info[0] in (7, 6):		# CLOSE, TIME_WAIT: the FIN was acknowledged or reset
                break
            time.sleep(0.01)
        error = talk.sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if error:
            talk.end = peer.error_name(OSError(error, ""))

    # -- the server's end --------------------------------------------------------------------------

    def _accept(self):
        while not self._ending:
            try:
                sock, _ = self.listener.sock.accept()
            except TimeoutError:
                continue
            except OSError:
                break
            thread = threading.Thread(target=self._server, args=(sock,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _server(self, sock):
        talk = Conversation(sock, self.timeout)
        with sock:
            talk.run(enough=_HEADER.size)
            if len(talk.got) < _HEADER.size:
                return
            result = self.results.get(_HEADER.unpack(talk.got[:_HEADER.size])[0])
            if result is None:
                return
            plan = result.plan
            up, down = plan.payload(True), plan.payload(False)
            if plan.kind == REQUEST:
                talk.run(enough=len(up) + 1)
                if talk.end == peer.FIN:
                    talk.run(down, finish=True)
            elif plan.kind == SERVER_RESET:
                talk.run(down[:len(down) // 2], enough=len(up) // 2)
                peer.Peer(sock).reset()
            elif plan.kind == CLIENT_RESET:
                talk.run(down, enough=0)
                talk.poke()
            else:
                talk.run(down, finish=True)
        talk.fill(result.server, up)


def verdicts(results):
    """How many of each verdict: {"ok": 40, "interrupted": 2}."""
    return dict(collections.Counter(r.verdict() for r in results))


def describe(results, verdict):
    """The first result of a verdict, for a message."""
    for result in results:
        if result.verdict() == verdict:
            return f"{result.plan} client {result.client} server {result.server}"
    return ""
