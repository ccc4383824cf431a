# SPDX-License-Identifier: GPL-2.0-or-later
"""Traces by tests/lab/chan, made once in the output folder."""

import os
import subprocess

from lib import paths


def trace(folder, name, kind, *options):
    """Path of a trace; options are those of chan. It is made anew, which is the same each time."""
    os.makedirs(os.path.join(folder, "traces"), exist_ok=True)
    path = os.path.abspath(os.path.join(folder, "traces", name + ".trace"))
    subprocess.run([paths.built("tests/lab/chan/chan"), kind, f"--output={path}", *options],
                   check=True)
    return path


def mean_mbps(path, seconds=None):
    """What a trace carries as IP packets on average, in its first seconds."""
    with open(path, encoding="ascii") as text:
        lines = [int(line) for line in text]
    end = min(lines[-1], seconds * 1000) if seconds else lines[-1]
    return sum(line <= end for line in lines) * 12 / end
