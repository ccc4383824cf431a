# SPDX-License-Identifier: GPL-2.0-or-later
"""edgepep-mon on the lab's gateway, asked over a Unix socket, which knows no namespaces."""

import http.client
import json
import os
import socket
import subprocess
import time

from . import paths
from .netns import wait_until
from .proxy import USER


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=5)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(5)
        self.sock.connect(self.path)


class Monitor:
    """One edgepep-mon with the proxy's configuration. tcp: an address to listen on instead."""

    def __init__(self, lab, proxy, tcp=None):
        self.path = os.path.join(proxy.folder, "http.sock")
        self.address = tcp or "unix:" + self.path
        self.log_path = os.path.join(proxy.folder, "edgepep-mon.log")
        with open(self.log_path, "ab") as log:
            self.process = lab.gw.popen(
                [paths.program("edgepep-mon"), "-c", proxy.conf_path, "--listen", self.address,
                 "--user", USER], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        if not tcp:
            wait_until(self._answers, 5, "edgepep-mon answers")

    def _answers(self):
        try:
            return self.get("/healthz")[0] == 200
        except OSError:
            return False

    def get(self, path):
        """Status and body."""
        connection = _UnixConnection(self.path)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()

    def json(self, path):
        return json.loads(self.get(path)[1])

    def metrics(self):
        """{'name{labels}': value}"""
        lines = self.get("/metrics")[1].splitlines()
        return {name: float(value) for name, value in
                (line.rsplit(" ", 1) for line in lines if line and not line.startswith("#"))}

    def limited(self, direction):
        """Seconds so far by verdict, of all flows: {"wired": 12.0, ...}"""
        found = {}
        for name, value in self.metrics().items():
            if name.startswith("edgepep_segment_limited_seconds_total") and direction in name:
                found[name.split('reason="')[1].split('"')[0]] = value
        return found

    def wait_tick(self):
        """Waits until the monitor has looked once more."""
        before = self.json("/api/v1/segments")["time"]
        wait_until(lambda: self.json("/api/v1/segments")["time"] > before, 3, "a tick")

    def watch(self, direction, seconds):
        """Share of each verdict in the time to come."""
        self.wait_tick()
        before = self.limited(direction)
        time.sleep(seconds)
        self.wait_tick()
        after = self.limited(direction)
        spent = {reason: after[reason] - before[reason] for reason in after}
        total = sum(spent.values())
        return {reason: value / total if total else 0.0 for reason, value in spent.items()}

    def flow_limits(self, flow_id, direction):
        """The verdicts on one flow, one a second, as far as it was watched."""
        history = self.json(f"/api/v1/flows/{flow_id}")["history"]
        return history[direction]["limit"] if history else []

    def cpu_seconds(self):
        """CPU time that it has used."""
        with open(f"/proc/{self.process.pid}/schedstat", encoding="ascii") as stat:
            return int(stat.read().split()[0]) / 1e9

    def close(self):
        self.process.stop()
