# SPDX-License-Identifier: GPL-2.0-or-later
"""A network namespace: programs, sockets and settings inside it."""

import concurrent.futures
import ctypes
import os
import socket
import subprocess
import time

from . import state

CLONE_NEWNET = 0x40000000
_libc = ctypes.CDLL(None, use_errno=True)


class CommandFailed(Exception):
    """A program ended with an exit code other than 0."""


def wait_until(fact, timeout=5.0, what="", interval=0.01):
    """Polls fact() until it gives something true, which is returned; TimeoutError otherwise."""
    deadline = time.monotonic() + timeout
    while True:
        value = fact()
        if value:
            return value
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within {timeout:g} s: {what or fact.__name__}")
        time.sleep(interval)


class Process(subprocess.Popen):
    """A program in a namespace, ended by its pid when its lab ends."""

    def stop(self, timeout=5.0):
        """SIGTERM, then SIGKILL; returns the exit code."""
        if self.poll() is None:
            self.terminate()
            try:
                self.wait(timeout)
            except subprocess.TimeoutExpired:
                self.kill()
                self.wait()
        for stream in (self.stdin, self.stdout, self.stderr):
            if stream:
                stream.close()
        return self.returncode


class Namespace:
    """One host of the lab. `addr4` and `addr6` are filled in by the lab."""

    def __init__(self, role):
        self.role = role
        self.name = f"pep-{state.current().run}-{role}"
        while self.name in state.current().namespaces:	# a second lab beside the first
            self.name += "2"
        self.addr4 = self.addr6 = None
        self.processes = []
        state.current().add_namespace(self.name)
        subprocess.run(["ip", "netns", "add", self.name], check=True)
        self._threads = concurrent.futures.ThreadPoolExecutor(1, role, self._enter)

    def _enter(self):
        fd = os.open(f"/run/netns/{self.name}", os.O_RDONLY | os.O_CLOEXEC)
        try:
            if _libc.setns(fd, CLONE_NEWNET):
                raise OSError(ctypes.get_errno(), "setns")
        finally:
            os.close(fd)

    def addr(self, family):
        """The address of a family (4 or 6)."""
        return self.addr6 if family == 6 else self.addr4

    # -- programs ----------------------------------------------------------------------------------

    def popen(self, argv, **options):
        """Starts a program here; it is ended with the lab at the latest."""
        options.setdefault("start_new_session", True)
        process = Process(["ip", "netns", "exec", self.name, *map(str, argv)], **options)
        state.current().add_process(process.pid)
        self.processes.append(process)
        return process

    def run(self, argv, check=True, timeout=60, **options):
        """Runs a program to its end; returns the CompletedProcess with text output."""
        done = subprocess.run(["ip", "netns", "exec", self.name, *map(str, argv)],
                              capture_output=True, text=True, check=False, timeout=timeout,
                              **options)
        if check and done.returncode:
            raise CommandFailed(f"{self.role}: {' '.join(map(str, argv))}: exit code "
                                f"{done.returncode}: {(done.stderr or done.stdout).strip()}")
        return done

    def ip(self, commands):
        """Runs lines of `ip` commands at once."""
        text = commands if isinstance(commands, str) else "\n".join(commands)
        done = subprocess.run(["ip", "-n", self.name, "-batch", "-"], input=text, text=True,
                              capture_output=True, check=False)
        if done.returncode:
            raise CommandFailed(f"{self.role}: ip: {done.stderr.strip()}")

    # -- inside this process -----------------------------------------------------------------------

    def call(self, function, *args):
        """Runs function(*args) in a thread that is in this namespace."""
        return self._threads.submit(function, *args).result()

    def socket(self, family=4, kind=socket.SOCK_STREAM, proto=0):
        """A socket that lives in this namespace; usable from any thread of this process."""
        domain = socket.AF_INET6 if family == 6 else socket.AF_INET
        return self.call(socket.socket, domain, kind, proto)

    def sysctl(self, settings):
        """Sets {"net.ipv4.ip_forward": 1, ...}."""
        def write():
            for key, value in settings.items():
                with open("/proc/sys/" + key.replace(".", "/"), "w", encoding="ascii") as out:
                    out.write(f"{value}\n")
        self.call(write)

    def read_sysctl(self, key):
        def read():
            with open("/proc/sys/" + key.replace(".", "/"), encoding="ascii") as text:
                return text.read().strip()
        return self.call(read)

    # -- end ---------------------------------------------------------------------------------------

    def stop_processes(self):
        for process in self.processes:
            process.stop()
        self.processes = []

    def close(self):
        self.stop_processes()
        self._threads.shutdown()
        left = state.delete_namespaces([self.name])
        if not left:
            state.current().drop_namespaces([self.name])
