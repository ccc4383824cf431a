# SPDX-License-Identifier: GPL-2.0-or-later
"""The two ends of a connection, step by step: exact socket behaviour for the scenarios.

All sockets live in the lab's namespaces but belong to this process, so a test can act on both ends
in the order it wants.
"""

import errno
import hashlib
import random
import select
import socket
import struct
import threading
import time

TIMEOUT = 10.0
IPPROTO_MPTCP = 262
IP_TRANSPARENT, IPV6_TRANSPARENT = 19, 75

FIN = "FIN"


def data(size, seed=1):
    """Bytes that do not repeat and that everybody can make again."""
    return random.Random(seed).randbytes(size)


def digest(octets):
    return hashlib.sha256(octets).hexdigest()


def error_name(error):
    """ECONNRESET and the like, also of what timed out on our side."""
    if isinstance(error, TimeoutError) and error.errno is None:
        return "no answer"
    return errno.errorcode.get(error.errno, str(error.errno))


class Peer:
    """One end of a connection."""

    def __init__(self, sock, address=None):
        self.sock = sock
        self.address = address		# of the other end, as accept() told it
        sock.settimeout(TIMEOUT)

    def send(self, octets):
        self.sock.sendall(octets)

    def finish(self):
        """FIN; the other direction stays."""
        self.sock.shutdown(socket.SHUT_WR)

    def receive(self, size=None):
        """(bytes, end): end is None when `size` came, else FIN, ECONNRESET, "no answer", ..."""
        parts, got = [], 0
        while size is None or got < size:
            try:
                part = self.sock.recv(min(1 << 18, size - got) if size is not None else 1 << 18)
            except OSError as error:
                return b"".join(parts), error_name(error)
            if not part:
                return b"".join(parts), FIN
            parts.append(part)
            got += len(part)
        return b"".join(parts), None

    def reset(self):
        """RST."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()

    def close(self):
        self.sock.close()

    def name(self):
        """Own (address, port)."""
        return self.sock.getsockname()[:2]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.sock.close()


def socket_of(host, family, kind=socket.SOCK_STREAM, proto=0, tos=None):
    sock = host.socket(family, kind, proto)
    if tos is not None:
        level, option = ((socket.IPPROTO_IPV6, socket.IPV6_TCLASS) if family == 6
                         else (socket.IPPROTO_IP, socket.IP_TOS))
        sock.setsockopt(level, option, tos)
    return sock


class Listener:
    """A listening socket on a host; accept() gives the next connection."""

    def __init__(self, host, family, port=0, address=None, proto=0, tos=None, backlog=256):
        self.family = family
        self.sock = socket_of(host, family, proto=proto, tos=tos)
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.sock.bind((address or host.addr(family), port))
        self.sock.listen(backlog)
        self.sock.settimeout(TIMEOUT)
        self.address, self.port = self.sock.getsockname()[:2]

    def accept(self):
        sock, address = self.sock.accept()
        return Peer(sock, address[:2])

    def serve(self, handler, count):
        """Accepts `count` connections in the background, each handled in a thread of its own."""
        def run():
            threads = []
            for _ in range(count):
                try:
                    peer = self.accept()
                except OSError:
                    break
                threads.append(threading.Thread(target=handler, args=(peer,), daemon=True))
                threads[-1].start()
            for thread in threads:
                thread.join()
        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        return thread

    def close(self):
        self.sock.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.sock.close()


def connect(host, address, port, family, source_port=None, proto=0, tos=None, timeout=TIMEOUT):
    """Connects; raises the OSError that connect() gave."""
    sock = socket_of(host, family, proto=proto, tos=tos)
    sock.settimeout(timeout)
    try:
        if source_port is not None:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            sock.bind((host.addr(family), source_port))
        sock.connect((address, port))
    except OSError:
        sock.close()
        raise
    return Peer(sock)


def connect_error(*args, **options):
    """The error of a connect() that should fail, or "connected"."""
    try:
        connect(*args, **options).close()
    except OSError as error:
        return error_name(error)
    return "connected"


def pair(client_host, listener, **options):
    """A connection: (client's end, server's end)."""
    client = connect(client_host, listener.address, listener.port, listener.family, **options)
    return client, listener.accept()


def exchange(sender, receiver, octets):
    """Sends everything in a thread; returns what the other end got, and how it ended."""
    thread = threading.Thread(target=sender.send, args=(octets,), daemon=True)
    thread.start()
    got, end = receiver.receive(len(octets))
    thread.join(TIMEOUT)
    return got, end


def fill(peer, limit, quiet=0.5):
    """Sends until nothing was taken for `quiet` seconds, or `limit` bytes; returns how many."""
    peer.sock.setblocking(False)
    block = data(1 << 16)
    sent, since = 0, time.monotonic()
    while sent < limit and time.monotonic() - since < quiet:
        _, writable, _ = select.select([], [peer.sock], [], 0.05)
        if not writable:
            continue
        try:
            sent += peer.sock.send(block[sent % len(block):])
            since = time.monotonic()
        except BlockingIOError:
            pass
    peer.sock.settimeout(TIMEOUT)
    return sent


class Sniffer:
    """Headers of the TCP packets that an interface receives."""

    def __init__(self, host, interface):
        def opened():
            sock = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(3))
            sock.bind((interface, 3))
            return sock
        self.sock = host.call(opened)
        self.sock.settimeout(0.2)

    def packets(self):
        """[{tos, source, destination, flags}] of the packets that came until now."""
        found = []
        while True:
            try:
                octets, address = self.sock.recvfrom(256)
            except TimeoutError:
                return found
            if address[2] != socket.PACKET_OUTGOING:
                packet = self._parse(octets)
                if packet:
                    found.append(packet)

    @staticmethod
    def _parse(octets):
        if octets[0] >> 4 == 4 and octets[9] == socket.IPPROTO_TCP:
            tos, tcp = octets[1], octets[(octets[0] & 15) * 4:]
        elif octets[0] >> 4 == 6 and octets[6] == socket.IPPROTO_TCP:
            tos, tcp = (octets[0] & 15) << 4 | octets[1] >> 4, octets[40:]
        else:
            return None
        source, destination = struct.unpack("!HH", tcp[:4])
        return {"tos": tos, "source": source, "destination": destination, "flags": tcp[13]}

    def close(self):
        self.sock.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.sock.close()
