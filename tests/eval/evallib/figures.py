# SPDX-License-Identifier: GPL-2.0-or-later
"""Means, their confidence intervals, and what they say of a bound."""

import statistics

_STUDENT = {2: 12.71, 3: 4.30, 4: 3.18, 5: 2.78, 6: 2.57, 7: 2.45, 8: 2.36, 9: 2.31, 10: 2.26}


def interval(values):
    """Half of the 95 % confidence interval of a mean (Student); None for a single value."""
    if len(values) < 2:
        return None
    return _STUDENT.get(len(values), 2.1) * statistics.stdev(values) / len(values) ** 0.5


class Value:
    """A mean of n values with its confidence interval, or a text."""

    def __init__(self, *values):
        self.text = values[0] if isinstance(values[0], str) else None
        self.n = len(values)
        self.mean = None if self.text else statistics.fmean(values)
        spread = None if self.text else interval(values)
        self.ci = None if spread is None else round(spread, 4)

    def rounded(self):
        return self.text or round(self.mean, 4)

    def verdict(self, low, high):
        """reproduced, MISSED, or unclear where the interval reaches over the bound that decides."""
        met = (low is None or self.mean >= low) and (high is None or self.mean <= high)
        spread = self.ci or 0
        over = any(bound is not None and abs(self.mean - bound) < spread for bound in (low, high))
        return "unclear" if over else "reproduced" if met else "MISSED"

    def __str__(self):
        if self.text:
            return self.text
        return f"{self.mean:.4g}" + (f" +- {self.ci:.2g} (n {self.n})" if self.n > 1 else "")


def values(results, field="goodput_mbps"):
    return [r[field] for r in results]


def mean(results, field="goodput_mbps"):
    return statistics.fmean(values(results, field))


def ratio(above, below, field="goodput_mbps"):
    """The mean of the ratios of runs that belong together (same seed), as a Value."""
    return Value(*(a[field] / max(b[field], 1e-6) for a, b in zip(above, below, strict=True)))


def median(results, field="goodput_mbps"):
    """The result in the middle."""
    return sorted(results, key=lambda r: r[field])[len(results) // 2]


def cell(value):
    """A value of a claim for people."""
    return "" if value is None else f"{value:.3g}" if isinstance(value, float) else str(value)


def ours(claim):
    """What we measured, with its confidence interval if it has one."""
    spread = "" if claim["ci"] is None else f" +- {claim['ci']:.2g}"
    return f"{cell(claim['ours'])}{spread} {claim['unit']}".strip()
