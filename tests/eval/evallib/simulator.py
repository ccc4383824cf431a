# SPDX-License-Identifier: GPL-2.0-or-later
"""Cells in edgepep-sim: the same control code over a simulated bottleneck, without a kernel."""

import json
import os
import subprocess

from lib import paths


def _step_back():
    """Whoever measures times beside us goes first."""
    os.setpriority(os.PRIO_PROCESS, 0, 10)


def simulate(controls, options, seeds=1, seed=1, runs=False):
    """{"controls": {control: medians}}, or the list of runs.

    options: [[name, value], ...] of edgepep-sim.
    """
    argv = [paths.built("tests/sim/edgepep-sim"), "--json", f"--seeds={seeds}", f"--seed={seed}",
            "--cca=" + ",".join(controls)]
    argv += [f"--{name}={value}" for name, value in options]
    done = subprocess.run(argv, check=False, capture_output=True, text=True, timeout=900,
                          preexec_fn=_step_back)
    if done.returncode:
        raise RuntimeError(f"edgepep-sim: {done.stderr.strip()}")
    if runs:
        return json.loads(done.stdout)["runs"]
    return {"controls": {m.pop("cca"): m for m in json.loads(done.stdout)["medians"]},
            "simulated": True}
