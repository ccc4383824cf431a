# SPDX-License-Identifier: GPL-2.0-or-later
"""Synthetic radio channels as delivery traces, the same on every machine."""

import math
import random


def lte_rates(seconds=20, seed=1, mean_mbit=16.0, step_ms=20):
    """Rates in Mbit/s, one a step: slow shadowing, fast fading, and a deep fade now and then.

    Shaped after what is seen of LTE at the edge of a cell: 2 to 35 Mbit/s around the mean, half of
    the variation within a few hundred ms.
    """
    rng = random.Random(seed)
    slow = fast = 0.0
    fade = 0
    for step in range(seconds * 1000 // step_ms):
        slow += 0.03 * (0.35 * math.sin(2 * math.pi * step * step_ms / 7000) - slow) \
            + rng.gauss(0, 0.03)
        fast = 0.9 * fast + rng.gauss(0, 0.14)
        if fade == 0 and rng.random() < 0.004:
            fade = rng.randint(5, 12)
        fade = max(0, fade - 1)
        yield min(35.0, max(2.0, mean_mbit * math.exp(slow + fast) * (0.25 if fade else 1)))


def write_lte(path, **options):
    """Writes a trace in the Mahimahi format; returns its mean rate in bit/s."""
    step_ms = options.setdefault("step_ms", 20)
    credit, ms, lines = 0.0, 0, []
    for mbit in lte_rates(**options):
        for _ in range(step_ms):
            ms += 1
            credit += mbit * 1000 / 8 / 1500
            while credit >= 1:
                lines.append(ms)
                credit -= 1
    # The last line is the period.
    lines.append(ms)
    with open(path, "w", encoding="ascii") as out:
        out.writelines(f"{line}\n" for line in lines)
    return len(lines) * 1500 * 8 * 1000 / ms
