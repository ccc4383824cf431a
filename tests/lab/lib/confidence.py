# SPDX-License-Identifier: GPL-2.0-or-later
"""How far a mean of few values can be trusted."""

import math
import statistics

#: Student's factor for 95 %, by how many values there are.
_STUDENT = {2: 12.71, 3: 4.30, 4: 3.18, 5: 2.78, 6: 2.57, 7: 2.45, 8: 2.36, 9: 2.31, 10: 2.26,
            15: 2.14, 20: 2.09}


def interval(numbers):
    """Half of the 95 % confidence interval of a mean (Student); None for a single value.

    A little wide for numbers of values that the table does not have.
    """
    if len(numbers) < 2:
        return None
    factor = _STUDENT[max(n for n in _STUDENT if n <= len(numbers))]
    return factor * statistics.stdev(numbers) / math.sqrt(len(numbers))


def pseudo_median(numbers, sigmas=1.96):
    """(middle, low, high): Hodges-Lehmann's estimate and its interval by Wilcoxon's signed ranks, of 95 %
    if nothing else is asked. For numbers with stragglers, which bend a mean."""
    n = len(numbers)
    means = sorted((a + b) / 2 for i, a in enumerate(numbers) for b in numbers[i:])
    ranks = n * (n + 1) / 4 - sigmas * math.sqrt(n * (n + 1) * (2 * n + 1) / 24)
    cut = max(0, math.floor(ranks))
    return statistics.median(means), means[cut], means[-1 - cut]
