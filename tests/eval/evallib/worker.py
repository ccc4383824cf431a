#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""One run in a process of its own, so that several may go on beside each other.

Reads {"module", "function", "settings"} as JSON; prints the result as JSON.
"""

import importlib
import json
import os
import signal
import sys

_HERE = os.path.dirname(os.path.realpath(__file__))
sys.path[:0] = [os.path.join(_HERE, ".."), os.path.join(_HERE, "..", "..", "lab")]
sys.dont_write_bytecode = True


def main():
    # Leaving by an exception takes the namespaces down.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    task = json.load(sys.stdin)
    function = getattr(importlib.import_module(task["module"]), task["function"])
    try:
        result = function(**task["settings"])
    except Exception as error:  # pylint: disable=broad-except
        result = {"error": f"{type(error).__name__}: {error}"}
    json.dump(result, sys.stdout)


if __name__ == "__main__":
    main()
