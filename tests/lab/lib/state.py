# SPDX-License-Identifier: GPL-2.0-or-later
"""What each run has created, written down so that a crashed run can be cleaned up after."""

import atexit
import json
import os
import secrets
import shutil
import signal
import subprocess
import tempfile
import time

from . import paths


def start_time(pid):
    """Start time of a process in clock ticks, or None: tells a pid from its later reuse."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as stat:
            return int(stat.read().rpartition(")")[2].split()[19])
    except (OSError, IndexError, ValueError):
        return None


class State:
    """The file of one run. Entries are written before the thing itself is made."""

    def __init__(self):
        os.makedirs(paths.STATE, mode=0o755, exist_ok=True)
        self.run = secrets.token_hex(3)
        self.path = os.path.join(paths.STATE, self.run + ".json")
        self.namespaces = []
        self.processes = []
        self.folders = []
        self._write()

    def _write(self):
        data = {"pid": os.getpid(), "start": start_time(os.getpid()),
                "namespaces": self.namespaces, "processes": self.processes,
                "folders": self.folders}
        with open(self.path + ".new", "w", encoding="ascii") as out:
            json.dump(data, out)
        os.rename(self.path + ".new", self.path)

    def add_namespace(self, name):
        self.namespaces.append(name)
        self._write()

    def drop_namespaces(self, names):
        self.namespaces = [n for n in self.namespaces if n not in names]
        self._write()

    def add_process(self, pid):
        self.processes = [p for p in self.processes if start_time(p[0]) == p[1]]
        self.processes.append([pid, start_time(pid)])
        self._write()

    def new_folder(self):
        """A folder for files of this run, readable by everybody."""
        path = tempfile.mkdtemp(prefix=f"edgepep-lab-{self.run}-")
        os.chmod(path, 0o755)
        self.folders.append(path)
        self._write()
        return path

    def drop_folder(self, path):
        shutil.rmtree(path, ignore_errors=True)
        self.folders.remove(path)
        self._write()

    def close(self):
        for path in list(self.folders):
            self.drop_folder(path)
        if not self.namespaces and os.path.exists(self.path):
            os.unlink(self.path)


_current = None


def current():
    """The state of this process, made on first use."""
    global _current
    if _current is None:
        _current = State()
        atexit.register(close)
    return _current


def close():
    global _current
    if _current is not None:
        _current.close()
        _current = None


def delete_namespaces(names):
    """Deletes namespaces that exist; returns those that could not be deleted."""
    left = []
    for name in names:
        if not os.path.exists(f"/run/netns/{name}"):
            continue
        done = subprocess.run(["ip", "netns", "delete", name], stderr=subprocess.DEVNULL,
                              check=False)
        if done.returncode:
            left.append(name)
    return left


def _end_processes(processes):
    mine = [pid for pid, start in processes if start is not None and start_time(pid) == start]
    for sig in (signal.SIGTERM, signal.SIGKILL):
        for pid in mine:
            try:
                os.kill(pid, sig)
            except ProcessLookupError:
                pass
        deadline = time.monotonic() + 3
        while mine and time.monotonic() < deadline:
            mine = [pid for pid in mine if start_time(pid) is not None]
            time.sleep(0.02)


def cleanup_crashed():
    """Removes what runs that are no longer there have left. Returns one line for each."""
    lines = []
    if not os.path.isdir(paths.STATE):
        return lines
    for name in sorted(os.listdir(paths.STATE)):
        path = os.path.join(paths.STATE, name)
        if not name.endswith(".json"):
            continue
        try:
            with open(path, encoding="ascii") as text:
                data = json.load(text)
            pid, start = data["pid"], data["start"]
            namespaces, processes = data["namespaces"], data["processes"]
            folders = data.get("folders", [])
        except (OSError, ValueError, KeyError):
            lines.append(f"{path}: not readable, left alone")
            continue
        if start_time(pid) == start:
            lines.append(f"{name[:-5]}: still running (pid {pid}), left alone")
            continue
        _end_processes(processes)
        left = delete_namespaces(namespaces)
        if left:
            lines.append(f"{name[:-5]}: could not delete {' '.join(left)}")
            continue
        for folder in folders:
            shutil.rmtree(folder, ignore_errors=True)
        os.unlink(path)
        lines.append(f"{name[:-5]}: removed {len(namespaces)} namespaces")
    return lines
