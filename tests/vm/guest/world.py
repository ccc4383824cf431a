# SPDX-License-Identifier: GPL-2.0-or-later
"""The network inside the machine: it is the gateway itself, with a phone and a server beside it.

    ue ─── radio0 [ the machine ] core0 ─── srv
    10.1.0.1  10.1.0.2      10.2.0.2   10.2.0.1      (fd00:1::1 ... fd00:2::1)
"""

import concurrent.futures
import ctypes
import os
import subprocess
import time

_CLONE_NEWNET = 0x40000000
_libc = ctypes.CDLL(None, use_errno=True)


def run(*argv, check=True, timeout=60, **options):
    """A program's CompletedProcess with text output; RuntimeError with its words when it fails."""
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=timeout,
                          **options)
    if check and done.returncode:
        words = (done.stderr or done.stdout).strip()
        raise RuntimeError(f"{' '.join(argv)}: exit code {done.returncode}: {words[-600:]}")
    return done


def wait_until(fact, seconds, what, interval=0.05):
    """What fact() gives once it is true; TimeoutError otherwise."""
    deadline = time.monotonic() + seconds
    while True:
        value = fact()
        if value:
            return value
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within {seconds} s: {what}")
        time.sleep(interval)


class Host:
    """A network namespace, joined to the gateway by a veth pair."""

    def __init__(self, name, port, net):
        self.name, self.port = name, port
        self.addr = {4: f"10.{net}.0.1", 6: f"fd00:{net}::1"}
        gateway = {4: f"10.{net}.0.2", 6: f"fd00:{net}::2"}
        run("ip", "netns", "add", name)
        run("ip", "link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", name)
        run("ip", "-batch", "-", input=f"addr add {gateway[4]}/24 dev {port}\n"
            f"addr add {gateway[6]}/64 dev {port} nodad\nlink set {port} up\n")
        run("ip", "-n", name, "-batch", "-", input=f"link set lo up\n"
            f"addr add {self.addr[4]}/24 dev eth0\naddr add {self.addr[6]}/64 dev eth0 nodad\n"
            f"link set eth0 up\nroute add default via {gateway[4]}\n"
            f"route add default via {gateway[6]}\n")
        self.pool = concurrent.futures.ThreadPoolExecutor(16, name, self._enter)

    def _enter(self):
        fd = os.open(f"/run/netns/{self.name}", os.O_RDONLY | os.O_CLOEXEC)
        try:
            if _libc.setns(fd, _CLONE_NEWNET):
                raise OSError(ctypes.get_errno(), "setns")
        finally:
            os.close(fd)

    def start(self, function, *args):
        """Runs function(*args) in this namespace; returns the Future."""
        return self.pool.submit(function, *args)


class World:
    """The gateway's two neighbours."""

    def __init__(self):
        for key in ("ipv4.ip_forward", "ipv6.conf.all.forwarding"):
            with open("/proc/sys/net/" + key.replace(".", "/"), "w", encoding="ascii") as out:
                out.write("1\n")
        self.ue = Host("ue", "radio0", 1)
        self.srv = Host("srv", "core0", 2)
