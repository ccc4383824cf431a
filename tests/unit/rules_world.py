# SPDX-License-Identifier: GPL-2.0-or-later
"""Client, gateway and server as three network namespaces, all used from one process.

A socket belongs to the namespace in which it was made, so `with ns:` around its making is all that is
needed to hold a client, a gateway's daemon and a server in one program.
"""
import atexit
import contextlib
import ctypes
import os
import signal
import socket
import subprocess
import sys
import time

libc = ctypes.CDLL(None, use_errno=True)
CLONE_NEWNET = 0x40000000
signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))


class Namespace:
    """A named network namespace; `with` enters it, for the calling thread alone."""

    def __init__(self, name):
        self.name = name
        subprocess.run(["ip", "netns", "add", name], check=True)
        self.fd = os.open(f"/run/netns/{name}", os.O_RDONLY)
        self.home = []

    def __enter__(self):
        self.home.append(os.open("/proc/thread-self/ns/net", os.O_RDONLY))
        if libc.setns(self.fd, CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), "setns")
        return self

    def __exit__(self, *_):
        fd = self.home.pop()
        libc.setns(fd, CLONE_NEWNET)
        os.close(fd)

    def run(self, *words, check=True, **options):
        """Runs a program inside; returns what it printed."""
        with self:
            done = subprocess.run(words, capture_output=True, text=True, **options)
        if check and done.returncode != 0:
            raise AssertionError(f"{' '.join(words)}: {done.stderr}{done.stdout}")
        return done.stdout

    def sysctl(self, name, value):
        self.run("sysctl", "-qw", f"{name}={value}")

    def remove(self):
        """May be repeated, after it was interrupted."""
        with contextlib.suppress(OSError):
            os.close(self.fd)
        subprocess.run(["ip", "netns", "del", self.name], check=False, stderr=subprocess.DEVNULL)


class World:
    """ue0 -- radio0 [gateway] core0 -- srv0, with IPv4 and IPv6."""

    CLIENT = {4: "10.1.0.2", 6: "fd01::2"}
    SERVER = {4: "10.2.0.2", 6: "fd02::2"}
    GATEWAY = {4: "10.1.0.1", 6: "fd01::1"}
    NOWHERE = {4: "10.9.0.1", 6: "fd09::1"}  # the server's host answers "unreachable"

    def __init__(self):
        tag = os.getpid()
        self.spaces = []
        with contextlib.ExitStack() as undo:
            for name in ("ue", "gw", "srv"):
                space = Namespace(f"peprules-{name}-{tag}")
                undo.callback(space.remove)
                self.spaces.append(space)
            self.ue, self.gw, self.srv = self.spaces
            self._links()
            undo.pop_all()
        atexit.register(self.close)  # a test that is told to end leaves nothing behind either

    def _links(self):
        gw = self.gw
        for space in self.spaces:  # an address still being verified delays everything by seconds
            space.sysctl("net.ipv6.conf.default.accept_dad", 0)
        gw.run("ip", "link", "add", "radio0", "type", "veth", "peer", "name", "ue0",
               "netns", self.ue.name)
        gw.run("ip", "link", "add", "core0", "type", "veth", "peer", "name", "srv0",
               "netns", self.srv.name)
        for space, link, v4, v6 in (
                (self.ue, "ue0", "10.1.0.2/24", "fd01::2/64"),
                (gw, "radio0", "10.1.0.1/24", "fd01::1/64"),
                (gw, "core0", "10.2.0.1/24", "fd02::1/64"),
                (self.srv, "srv0", "10.2.0.2/24", "fd02::2/64")):
            space.run("ip", "link", "set", "lo", "up")
            space.run("ip", "link", "set", link, "up")
            space.run("ip", "addr", "add", v4, "dev", link)
            space.run("ip", "-6", "addr", "add", v6, "dev", link, "nodad")
        for space, v4, v6 in ((self.ue, "10.1.0.1", "fd01::1"), (self.srv, "10.2.0.1", "fd02::1")):
            space.run("ip", "route", "add", "default", "via", v4)
            space.run("ip", "-6", "route", "add", "default", "via", v6)
            space.sysctl("net.ipv4.tcp_max_tw_buckets", 0)  # the ends may use a port again at once
        for prefix in ("10.9.0.0/16", "fd09::/64"):
            via = "10.2.0.2" if prefix[0] == "1" else "fd02::2"
            gw.run("ip", "route", "add", prefix, "via", via)
            self.srv.run("ip", "route", "add", "unreachable", prefix)
        for space in (gw, self.srv):
            space.sysctl("net.ipv4.ip_forward", 1)
            space.sysctl("net.ipv6.conf.all.forwarding", 1)

    def close(self):
        while self.spaces:
            self.spaces[-1].remove()
            self.spaces.pop()


def family_of(version):
    return socket.AF_INET if version == 4 else socket.AF_INET6


def tcp(space, version):
    with space:
        sock = socket.socket(family_of(version), socket.SOCK_STREAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    sock.settimeout(5)
    return sock


def listen(space, version, address, port):
    sock = tcp(space, version)
    sock.bind((address, port))
    sock.listen(16)
    return sock


def connect(space, version, address, port, local_port=0, local="", timeout=5):
    sock = tcp(space, version)
    sock.settimeout(timeout)
    try:
        sock.bind((local, local_port))
        sock.connect((address, port))
    except OSError:
        sock.close()
        raise
    return sock


def wait_until(what, condition, seconds=5):
    """Waits for a fact."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return
        time.sleep(0.01)
    raise AssertionError(f"did not happen within {seconds} s: {what}")


def receive(sock, size):
    data = bytearray()
    while len(data) < size:
        piece = sock.recv(min(65536, size - len(data)))
        if not piece:
            break
        data += piece
    return bytes(data)
