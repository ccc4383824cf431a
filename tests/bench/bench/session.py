# SPDX-License-Identifier: GPL-2.0-or-later
"""The rounds of a run, and every figure that they gave."""

import statistics
import sys

from . import machine, measure


class Session:
    """Measures and keeps. values(test, lane): the records of all rounds, in order."""

    def __init__(self, world, patience):
        self.world = world
        self.patience = patience
        self.records = {}
        self.failures = []
        world_pids = world.pids()
        self._proxies = {name: lane.mover.pids() for name, lane in world.lanes.items()}
        proxies = {pid for pids in self._proxies.values() for pid in pids}
        self._others = [pid for pid in world_pids if pid not in proxies]

    def keep(self, test, lane, record):
        self.records.setdefault(test, {}).setdefault(lane, []).append(record)

    def run(self, test, function, lanes, tries=2, **options):
        """One measurement through each lane; a noisy one is repeated."""
        for name in lanes:
            for attempt in range(tries):
                self.patience.wait()
                window = machine.Window(self._proxies[name], self._others)
                try:
                    found = function(self.world, self.world.lanes[name], **options)
                except measure.Failed as failure:
                    self.failures.append(f"{test}: {failure}")
                    note(f"  {test} {name}: {failure}")
                    break
                record = {**window.done(), **found}     # its own count of CPU time is nearer
                if not record["noisy"] or attempt == tries - 1 or self.patience.left <= 0:
                    self.keep(test, name, record)
                    break

    def values(self, test, lane):
        return self.records.get(test, {}).get(lane, [])

    # -- statistics --------------------------------------------------------------------------------

    def ratios(self, test, lane, base, key):
        """Ratios round by round, quiet rounds only where there are any; and whether it is noisy."""
        pairs = list(zip(self.values(test, lane), self.values(test, base)))
        quiet = [(a, b) for a, b in pairs if not a["noisy"] and not b["noisy"]]
        return [a[key] / b[key] for a, b in quiet or pairs if b[key]], bool(pairs) and not quiet

    def median(self, test, lane, key):
        """(median over the quiet rounds, or over all when there is none; noisy)."""
        records = self.values(test, lane)
        quiet = [r for r in records if not r["noisy"]]
        chosen = [key(r) if callable(key) else r[key] for r in quiet or records]
        return (statistics.median(chosen) if chosen else None), bool(records) and not quiet


def note(text):
    """A line of progress."""
    print(text, file=sys.stderr, flush=True)
