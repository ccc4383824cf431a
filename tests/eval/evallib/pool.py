# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs beside each other, each in a process and in namespaces of its own."""

import json
import os
import subprocess
import sys

from lib.framework import timing_lock

_WORKER = os.path.join(os.path.dirname(os.path.realpath(__file__)), "worker.py")
#: Tells a worker that whoever started it holds the lock on the machine's timing.
LOCKED = "EDGEPEP_EVAL_LOCKED"


def _start(function, settings):
    process = subprocess.Popen([sys.executable, _WORKER], text=True, stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, env={**os.environ, LOCKED: "1"})
    json.dump({"module": function.__module__, "function": function.__name__,
               "settings": settings}, process.stdin)
    process.stdin.close()
    return process


def _result(process):
    out = process.stdout.read()
    code = process.wait()
    try:
        return json.loads(out)
    except ValueError:
        return {"error": f"the run ended with code {code} and no result"}


def together(tasks):
    """[function(**settings) of each (function, settings)], all at once, while the machine is ours.

    A run that failed gives {"error": text}.
    """
    processes = []
    with timing_lock():
        try:
            processes += [_start(*task) for task in tasks]
            return [_result(process) for process in processes]
        finally:
            for process in processes:
                if process.poll() is None:
                    process.terminate()
                    process.wait()
                process.stdout.close()
