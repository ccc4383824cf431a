# SPDX-License-Identifier: GPL-2.0-or-later
"""Means, their confidence intervals, and what they say of a bound."""

import math
import statistics

from lib.confidence import interval


class Value:
    """A mean of n values with its confidence interval (of two values: both), or a text.

    geometric: the mean and the interval of the logarithms, as fits ratios.
    """

    def __init__(self, *numbers, geometric=False):
        self.text = numbers[0] if isinstance(numbers[0], str) else None
        self.n = len(numbers)
        self.mean = self.ci = None
        if self.text:
            return
        if geometric and min(numbers) > 0:
            logs = [math.log(x) for x in numbers]
            self.mean, spread = math.exp(statistics.fmean(logs)), interval(logs)
            ends = spread and (self.mean * math.exp(-spread), self.mean * math.exp(spread))
        else:
            self.mean, spread = statistics.fmean(numbers), interval(numbers)
            ends = spread and (self.mean - spread, self.mean + spread)
        if self.n == 2:
            ends = min(numbers), max(numbers)  # Student's factor of 12.7 would say nothing
        if spread is not None:
            self.ci = [round(x, 4) for x in ends or (self.mean, self.mean)]

    def half(self):
        """Half of the interval, for an error bar; 0 when there is none."""
        return (self.ci[1] - self.ci[0]) / 2 if self.ci else 0

    def rounded(self):
        return self.text or round(self.mean, 4)

    def verdict(self, low, high):
        """reproduced, MISSED, or unclear where the interval reaches over the bound that decides."""
        met = (low is None or self.mean >= low) and (high is None or self.mean <= high)
        over = self.ci and any(bound is not None and self.ci[0] < bound < self.ci[1]
                               for bound in (low, high))
        return "unclear" if over else "reproduced" if met else "MISSED"

    def __str__(self):
        if self.text:
            return self.text
        return f"{self.mean:.4g}" + (f" ({self.ci[0]:.3g} to {self.ci[1]:.3g})" if self.ci else "")


def values(results, field="goodput_mbps"):
    return [r[field] for r in results]


def mean(results, field="goodput_mbps"):
    return statistics.fmean(values(results, field))


def mean_value(results, field="goodput_mbps"):
    """The mean of runs as a Value."""
    return Value(*values(results, field))


def point(x, results, field="goodput_mbps"):
    """A point of a curve: x, the mean of runs, half of its confidence interval."""
    got = mean_value(results, field)
    return x, got.mean, got.half()


def average(series, start, end):
    """Mean of a time series' part."""
    got = [mbps for t, mbps in series if start < t <= end + 1e-9]
    return sum(got) / max(1, len(got))


def ratio(above, below, field="goodput_mbps"):
    """The mean ratio of runs that belong together (same seed), as a Value."""
    return Value(*(a[field] / max(b[field], 1e-6) for a, b in zip(above, below, strict=True)),
                 geometric=True)


def median(results, field="goodput_mbps"):
    """The result in the middle."""
    return sorted(results, key=lambda r: r[field])[len(results) // 2]


def cell(value):
    """A value of a claim for people."""
    return "" if value is None else f"{value:.3g}" if isinstance(value, float) else str(value)


def ours(claim):
    """What we measured, with its confidence interval if it has one."""
    spread = "" if claim["ci"] is None else " ({:.3g} to {:.3g})".format(*claim["ci"])
    return f"{cell(claim['ours'])}{spread} {claim['unit']}".strip()
