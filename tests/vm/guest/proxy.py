# SPDX-License-Identifier: GPL-2.0-or-later
"""The installed proxy, through the doors an operator has: systemd, edgepepctl, the control socket."""

import json
import os
import socket
import time

from world import run, wait_until

UNIT = "edgepep.service"
CONTROL = "/run/edgepep/control.sock"


def systemctl(*args, check=True):
    return run("systemctl", *args, check=check)


def prop(name, unit=UNIT):
    return systemctl("show", "--value", "--property", name, unit).stdout.strip()


def pid():
    return int(prop("MainPID"))


def ask(request):
    """One request on the control socket, and its reply."""
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(10)
        sock.connect(CONTROL)
        sock.sendall(request.encode() + b"\n")
        with sock.makefile("rb") as reply:
            return json.loads(reply.readline())


def counters():
    return ask("status")["counters"]


def answers(other_than=0):
    """Whether the daemon is up and is not the process of that pid."""
    try:
        now = pid()
        return now not in (0, other_than) and ask("status").get("ok")
    except OSError:
        return False


def wait_answers(seconds, other_than=0):
    began = time.monotonic()
    wait_until(lambda: answers(other_than), seconds, "the daemon answers", 0.1)
    return time.monotonic() - began


def control_of_socket(lines):
    """{(local, peer): congestion control} from the output of `ss -tinH`."""
    found, ends = {}, None
    for line in lines.splitlines():
        words = line.split()
        if line[:1].isspace():
            if ends and words:
                found[ends] = words[0]
        elif len(words) >= 5:
            ends = (words[3], words[4])
    return found


def process_status(process):
    """Fields of /proc/PID/status."""
    with open(f"/proc/{process}/status", encoding="ascii") as lines:
        return dict(line.rstrip("\n").split(":\t", 1) for line in lines if ":\t" in line)

