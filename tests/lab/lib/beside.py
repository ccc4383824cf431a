# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs scenarios beside each other, each in a process of its own."""

import concurrent.futures
import json
import subprocess
import sys


class Pool:
    """Runs `program --json NAME`, at most `jobs` at a time."""

    def __init__(self, program, jobs):
        self._program = program
        self._jobs = jobs
        self._children = set()
        self._ended = False

    def run(self, names, report):
        """The results in the order of `names`; report(result) is called as each one ends."""
        with concurrent.futures.ThreadPoolExecutor(self._jobs) as executor:
            futures = [executor.submit(self._one, name) for name in names]
            try:
                for future in concurrent.futures.as_completed(futures):
                    report(future.result())
            except BaseException:
                self._end(futures)
                raise
        return [future.result() for future in futures]

    def _one(self, name):
        if self._ended:
            raise concurrent.futures.CancelledError
        # Its progress goes where ours goes; it takes down its own lab when it is ended.
        child = subprocess.Popen([sys.executable, self._program, "--json", name],
                                 stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        self._children.add(child)
        try:
            out = child.communicate()[0]
        finally:
            self._children.discard(child)
        try:
            return json.loads(out)["scenarios"][0]
        except (ValueError, KeyError, IndexError):
            return {"name": name, "result": "fail", "seconds": 0.0, "checks": [], "targets": [],
                    "data": {}, "error": f"ended with code {child.returncode} and no result"}

    def _end(self, futures):
        self._ended = True
        for future in futures:
            future.cancel()
        for child in list(self._children):
            child.terminate()
