# SPDX-License-Identifier: GPL-2.0-or-later
"""edgepepd on the lab's gateway."""

import json
import os
import shutil
import signal
import socket
import subprocess

from . import paths, state
from .netns import CommandFailed, wait_until

_DEFAULTS = {
    "wireless-interfaces": ["radio0"],
    "wired-interfaces": ["core0"],
    "workers": 2,
    "leg wireless": {"congestion-control": "bbr"},
    "leg wired": {"congestion-control": "cubic"},
}

# Whom the daemon becomes: everybody has them, so that the lab needs no account of its own.
USER, GROUP = "nobody", "nogroup"


def conf_text(values, indent=""):
    """A configuration file from nested dictionaries: {"leg wireless": {...}, "workers": 2}."""
    lines = []
    for key, value in values.items():
        if isinstance(value, dict):
            lines += [f"{indent}{key} {{", conf_text(value, indent + "  ").rstrip("\n"),
                      f"{indent}}}"]
        elif isinstance(value, (list, tuple)):
            inside = ", ".join(json.dumps(str(item)) for item in value)
            lines.append(f"{indent}{key} = {{{inside}}}")
        elif isinstance(value, bool):
            lines.append(f"{indent}{key} = {'true' if value else 'false'}")
        else:
            lines.append(f"{indent}{key} = {json.dumps(str(value))}" if isinstance(value, str)
                         else f"{indent}{key} = {value}")
    return "\n".join(lines) + "\n"


def merged(base, over):
    result = dict(base)
    for key, value in over.items():
        if isinstance(value, dict) and isinstance(result.get(key), dict):
            result[key] = merged(result[key], value)
        elif value is None:
            result.pop(key, None)
        else:
            result[key] = value
    return result


class Proxy:
    """The rules and one daemon, with a configuration and a run-dir of its own.

    conf: settings over the lab's defaults, nested as in the file. rules: put the steering rules up.
    daemon: start edgepepd. nofile: its limit of file descriptors. wrapper: words
    before its command line. program: which edgepepd.
    """

    def __init__(self, lab, conf=None, rules=True, daemon=True, nofile=None,
                 wrapper=(), program=None):
        self.lab = lab
        self.rules = rules
        self.daemon = daemon
        self.nofile = nofile
        self.wrapper = wrapper
        self.program = program
        self.process = None
        self.folder = state.current().new_folder()
        self.conf_path = os.path.join(self.folder, "edgepep.conf")
        self.log_path = os.path.join(self.folder, "edgepepd.log")
        self.run_dir = os.path.join(self.folder, "run")
        os.mkdir(self.run_dir)
        shutil.chown(self.run_dir, USER, GROUP)
        self.values = merged({**_DEFAULTS, "run-dir": self.run_dir, "user": USER, "group": GROUP},
                             conf or {})
        self.write_conf()

    def write_conf(self, change=None):
        """Writes the configuration, first merging a change into it."""
        if change:
            self.values = merged(self.values, change)
        with open(self.conf_path, "w", encoding="utf-8") as out:
            out.write(conf_text(self.values))

    # -- edgepepctl --------------------------------------------------------------------------------

    def ctl(self, *args, check=True):
        """Runs edgepepctl on the gateway; returns the CompletedProcess."""
        return self.lab.gw.run([paths.program("edgepepctl"), "-c", self.conf_path, *args],
                               check=check)

    def ctl_json(self, *args):
        return json.loads(self.ctl(*args, "--json").stdout)

    # -- control socket ----------------------------------------------------------------------------

    def ask(self, request):
        """One request on the control socket; returns the reply, ok or not."""
        with socket.socket(socket.AF_UNIX) as sock:
            sock.settimeout(10)
            sock.connect(os.path.join(self.run_dir, "control.sock"))
            sock.sendall(request.encode() + b"\n")
            with sock.makefile("rb") as reply:
                return json.loads(reply.readline())

    def status(self):
        reply = self.ask("status")
        if not reply.get("ok"):
            raise CommandFailed(f"status: {reply.get('error')}")
        return reply

    def counters(self):
        return self.status()["counters"]

    def wait_held(self, octets=1, timeout=5):
        """Waits until the relay holds at least some bytes."""
        wait_until(lambda: self.status()["held_bytes"] >= octets, timeout,
                   f"the relay holds {octets} bytes")

    def wait_closed(self, reason, count, timeout=5):
        """Waits until `count` flows have ended for a reason."""
        wait_until(lambda: self.counters()["closed"][reason] >= count, timeout,
                   f"{count} flows closed with reason {reason}")

    def flows(self):
        """The list of open flows."""
        answer = self.ctl_json("flows")
        return answer["flows"] if isinstance(answer, dict) else answer

    # -- life --------------------------------------------------------------------------------------

    def start(self):
        if self.rules:
            self.ctl("rules", "up")
        if self.daemon:
            self.start_daemon()

    def start_daemon(self):
        argv = [*self.wrapper, self.program or paths.program("edgepepd"), "-c",
                self.conf_path]
        if self.nofile:
            argv = ["prlimit", f"--nofile={self.nofile}:{self.nofile}", *argv]
        with open(self.log_path, "ab") as log:
            self.process = self.lab.gw.popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        wait_until(self._ready, 10, "edgepepd answers on its control socket")

    def _ready(self):
        if self.process.poll() is not None:
            raise CommandFailed(f"edgepepd ended with exit code {self.process.returncode}: "
                                + self.log_tail())
        try:
            return self.ask("status").get("ok")
        except OSError:
            return False

    def log(self):
        try:
            with open(self.log_path, encoding="utf-8", errors="replace") as text:
                return text.read()
        except FileNotFoundError:
            return ""

    def log_tail(self, lines=8):
        return " | ".join(self.log().splitlines()[-lines:])

    def stop_daemon(self):
        """SIGTERM; returns the exit code."""
        if self.process is None:
            return None
        code = self.process.stop()
        self.process = None
        return code

    def kill_daemon(self):
        """SIGKILL, as a crash."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.process = None

    def alive(self):
        return self.process is not None and self.process.poll() is None

    def close(self):
        self.stop_daemon()
        if self.rules:
            self.ctl("rules", "down", check=False)
            self.rules = False
        if self.folder:
            state.current().drop_folder(self.folder)
            self.folder = None
