# SPDX-License-Identifier: GPL-2.0-or-later
"""Connections from ue to srv, every byte of them checked."""

import dataclasses
import hashlib
import random
import socket
import struct
import threading
import time

PORT = 5000
_FAMILY = {4: socket.AF_INET, 6: socket.AF_INET6}


def payload(seed, size):
    return random.Random(seed).randbytes(size)


def read_all(sock, size):
    parts = bytearray()
    while len(parts) < size:
        part = sock.recv(min(size - len(parts), 1 << 18))
        if not part:
            raise EOFError(f"end after {len(parts)} of {size} bytes")
        parts += part
    return bytes(parts)


class Server:
    """On srv: tells each client who it seems to be and what it sent, then sends what it asks for.

    Request: !III uplink bytes, downlink bytes, seed. Reply: peer as text and sha256, then data.
    """

    def __init__(self, host):
        self.host = host
        self.endings = []       # exceptions by which connections ended other than in peace
        for family in (4, 6):
            listener = host.start(self._listen, family).result()
            threading.Thread(target=self._accept, args=(listener,), daemon=True).start()

    @staticmethod
    def _listen(family):
        listener = socket.socket(_FAMILY[family])
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == 6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listener.bind(("::" if family == 6 else "0.0.0.0", PORT))
        listener.listen(128)
        return listener

    def _accept(self, listener):
        while True:
            sock, peer = listener.accept()
            threading.Thread(target=self._serve, args=(sock, peer), daemon=True).start()

    def _serve(self, sock, peer):
        try:
            with sock:
                self._answer(sock, peer)
        except (OSError, EOFError) as error:
            self.endings.append(error)

    @staticmethod
    def _answer(sock, peer):
        up, down, seed = struct.unpack("!III", read_all(sock, 12))
        digest = hashlib.sha256(read_all(sock, up)).hexdigest()
        sock.sendall(f"{peer[0]} {peer[1]} {digest}\n".encode().ljust(160))
        sock.sendall(payload(seed, down))
        sock.shutdown(socket.SHUT_WR)
        if sock.recv(1):
            raise EOFError("bytes after the end")


@dataclasses.dataclass
class Result:
    """What one connection gave."""
    kept_address: bool
    kept_port: bool
    intact: bool
    connect_s: float
    seconds: float


def connect(host, server, family, timeout=10):
    sock = socket.socket(_FAMILY[family])
    sock.settimeout(timeout)
    try:
        sock.connect((server.host.addr[family], PORT))
    except OSError:
        sock.close()
        raise
    return sock


def exchange(host, server, family=4, up=100_000, down=100_000, seed=1, timeout=10):
    """One whole connection, in the thread of `host` it is called in."""
    began = time.monotonic()
    with connect(host, server, family, timeout) as sock:
        connected = time.monotonic()
        mine = sock.getsockname()
        data = payload(seed + 1, up)
        sock.sendall(struct.pack("!III", up, down, seed) + data)
        address, port, digest = read_all(sock, 160).decode().split()
        got = read_all(sock, down)
        intact = digest == hashlib.sha256(data).hexdigest() and got == payload(seed, down)
        if sock.recv(1):
            intact = False
    return Result(address == mine[0], int(port) == mine[1], intact, connected - began,
                  time.monotonic() - began)
