# SPDX-License-Identifier: GPL-2.0-or-later
"""What systemd does for a unit of Type=notify with WatchdogSec, and how a thread is made to hang."""

import ctypes
import os
import select
import signal
import socket
import threading
import time

from . import state

#: Shorter than in systemd/edgepep.service, to save time.
WATCHDOG_SECONDS = 1.5

_PTRACE_SEIZE, _PTRACE_INTERRUPT = 0x4206, 0x4207
_WALL = 0x40000000
_libc = ctypes.CDLL(None, use_errno=True)


class Supervisor:
    """Listens to the daemon's messages; kills it when keepalives stay out for WATCHDOG_SECONDS."""

    def __init__(self):
        self.path = os.path.join(state.current().new_folder(), "notify")
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.sock.bind(self.path)
        os.chmod(self.path, 0o666)
        self.ready = self.killed_at = self.last = None
        self.keepalives = 0
        self.longest_gap = 0.0      # between two messages, since watch()
        self._pid = None
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    @property
    def wrapper(self):
        """What goes before the daemon's command line."""
        return ["env", f"NOTIFY_SOCKET={self.path}",
                f"WATCHDOG_USEC={round(WATCHDOG_SECONDS * 1e6)}"]

    def watch(self, pid):
        self.killed_at, self.last, self.longest_gap = None, time.monotonic(), 0.0
        self._pid = pid

    def _run(self):
        while not self._end.is_set():
            if select.select([self.sock], [], [], 0.02)[0]:
                text = self.sock.recv(4096).decode()
                now = time.monotonic()
                if self._pid:
                    self.longest_gap = max(self.longest_gap, now - self.last)
                self.last = now
                self.ready = self.ready or "READY=1" in text
                self.keepalives += "WATCHDOG=1" in text
            elif (self._pid and not self.killed_at
                  and time.monotonic() - self.last > WATCHDOG_SECONDS):
                os.kill(self._pid, signal.SIGKILL)
                self.killed_at = time.monotonic()

    def close(self):
        self._end.set()
        self._thread.join()
        self.sock.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def hang_thread(thread):
    """Stops one thread of a process for good, by ptrace; the others go on.

    Only the calling thread may call reap_thread() afterwards, and must once the process was
    killed: until then the dead thread keeps the process from being waited for.
    """
    for request in (_PTRACE_SEIZE, _PTRACE_INTERRUPT):
        if _libc.ptrace(request, ctypes.c_long(thread), None, None) < 0:
            raise OSError(ctypes.get_errno(), "ptrace")
    os.waitpid(thread, _WALL)


def reap_thread(thread):
    """Takes note of the end of a thread that hang_thread() stopped."""
    while not os.WIFSIGNALED(os.waitpid(thread, _WALL)[1]):
        pass
