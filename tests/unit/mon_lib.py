# SPDX-License-Identifier: GPL-2.0-or-later
"""What the monitor's tests share: a played daemon, a monitor, HTTP by hand, and checks."""

import contextlib
import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

BUILD = os.getcwd()
MON = os.path.join(BUILD, "src/mon/edgepep-mon")
WRITER = os.path.join(BUILD, "tests/unit/stats_writer")


class Checks:
    """Prints one line per check; exit() is the verdict."""

    def __init__(self):
        self.failed = 0
        self.passed = 0

    def ok(self, what, good, got=None):
        self.passed += bool(good)
        self.failed += not good
        print(("ok   " if good else "FAIL ") + what + ("" if good else f": {got!r}"), flush=True)

    def equal(self, what, got, wanted):
        self.ok(f"{what} is {wanted!r}", got == wanted, got)

    def exit(self):
        print(f"{self.passed} passed, {self.failed} failed")
        sys.exit(1 if self.failed or not self.passed else 0)


def wait_for(what, condition, seconds=10.0):
    """Polls; returns how long it took, or raises."""
    start = time.monotonic()
    while time.monotonic() - start < seconds:
        if condition():
            return time.monotonic() - start
        time.sleep(0.02)
    raise TimeoutError(what)


class World(contextlib.ExitStack):
    """A folder, and in it a daemon's segment and a monitor, all gone at the end."""

    def __init__(self):
        super().__init__()
        self.dir = tempfile.mkdtemp(prefix="edgepep-mon-")
        self.callback(shutil.rmtree, self.dir, True)
        self.stats = os.path.join(self.dir, "stats")
        self.conf = os.path.join(self.dir, "edgepep.conf")
        self.daemon = self.mon = None
        self.port = 0
        with open(self.conf, "w", encoding="ascii") as out:
            out.write('wireless-interfaces = {"lo"}\n'
                      f'run-dir = "{self.dir}"\n')

    def start_daemon(self, flows=12, mode="running"):
        self.daemon = subprocess.Popen([WRITER, self.stats, str(flows), mode],
                                       stdout=subprocess.PIPE)
        self.callback(end, self.daemon)
        assert self.daemon.stdout.readline() == b"ready\n"
        return self.daemon

    def start_mon(self, *args):
        self.log = open(os.path.join(self.dir, "mon.log"), "w+", encoding="utf-8")
        self.mon = subprocess.Popen([MON, "-c", self.conf, "--listen", "127.0.0.1:0", *args], stderr=self.log)
        self.callback(end, self.mon)
        wait_for("the monitor to listen", lambda: self.logged("listening"))
        self.port = port_of(self.mon.pid)
        return self.mon

    def logged(self, text):
        with open(os.path.join(self.dir, "mon.log"), encoding="utf-8") as log:
            return text in log.read()

    def get(self, path, method="GET", headers=None):
        """Status, headers, body."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        connection.request(method, path, headers=headers or {})
        answer = connection.getresponse()
        body = answer.read()
        connection.close()
        return answer.status, answer.headers, body.decode()

    def json(self, path):
        return json.loads(self.get(path)[2])

    def metrics(self):
        """{'name{labels}': value} of the samples, as text."""
        samples = {}
        for line in self.get("/metrics")[2].splitlines():
            if line and not line.startswith("#"):
                name, value = line.rsplit(" ", 1)
                samples[name] = float(value)
        return samples

    def raw(self, data, seconds=8.0, piece=None):
        """Sends bytes, returns everything that comes back until the server closes."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=seconds) as s:
            with contextlib.suppress(ConnectionError):
                if piece:
                    for i in range(0, len(data), piece):
                        s.sendall(data[i:i + piece])
                        time.sleep(0.01)
                else:
                    s.sendall(data)
            return read_all(s)


def read_all(s):
    got = b""
    with contextlib.suppress(ConnectionError, TimeoutError):
        while True:
            part = s.recv(65536)
            if not part:
                break
            got += part
    return got


def status_of(answer):
    match = re.match(rb"HTTP/1\.1 (\d{3}) ", answer)
    return int(match.group(1)) if match else 0


def port_of(pid):
    """The TCP port that the process listens on, from /proc."""
    inodes = set()
    for fd in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(OSError):
            match = re.match(r"socket:\[(\d+)\]", os.readlink(f"/proc/{pid}/fd/{fd}"))
            if match:
                inodes.add(match.group(1))
    with open("/proc/net/tcp", encoding="ascii") as table:
        for line in table.readlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and fields[9] in inodes:
                return int(fields[1].split(":")[1], 16)
    raise LookupError("no listening socket")


def end(process):
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
