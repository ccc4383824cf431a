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
