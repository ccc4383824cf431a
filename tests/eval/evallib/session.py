# SPDX-License-Identifier: GPL-2.0-or-later
"""A study's runs, kept one file each so that a broken-off evaluation goes on where it stopped."""

import hashlib
import json
import os
import re
import sys
import time

from lib import paths

from . import pool
from .figures import Value

#: The emulator's own delay, 99th percentile, above which a run says little about short times.
LATE_US = 2000
#: How late we may read what a receiver has.
READ_LATE_S = 0.1
SIZES = ("quick", "mid", "full")


def build_id():
    """Names the programs that are measured: runs of another build are not kept."""
    digest = hashlib.sha256()
    for path in (*(paths.program(name) for name in ("edgepepd", "edgepep-cca")), paths.linkemu(),
                 paths.built("tests/sim/edgepep-sim")):
        with open(path, "rb") as program:
            digest.update(program.read())
    return digest.hexdigest()


def was_late(result):
    """Whether the machine was too busy for this result to be taken as it is."""
    return (result.get("lateness_p99_us", 0) > LATE_US
            or result.get("reader_late_s", 0) > READ_LATE_S)


def note(text):
    """A line of progress on stderr: stdout has results only."""
    print(f"eval: {text}", file=sys.stderr, flush=True)


class Session:
    """One study: what it ran, what it claims, what it plots."""

    def __init__(self, name, folder, size="quick", jobs=3, traces=()):
        self.name, self.size, self.folder = name, size, folder
        self.jobs, self.traces = jobs, traces
        self.runs, self.claims, self.targets, self.plots, self.remarks = [], [], [], [], []
        self.began = time.monotonic()
        self._build = build_id()
        os.makedirs(os.path.join(folder, "runs"), exist_ok=True)

    def pick(self, quick, mid, full):
        """What fits the size of the evaluation."""
        return {"quick": quick, "mid": mid, "full": full}[self.size]

    # -- runs --------------------------------------------------------------------------------------

    def _path(self, key, settings):
        slug = re.sub(r"[^a-z0-9.]+", "-", f"{self.name}-{key}".lower()).strip("-")[:90]
        digest = hashlib.sha256((self._build + json.dumps(settings, sort_keys=True)).encode()
                                ).hexdigest()[:10]
        return os.path.join(self.folder, "runs", f"{slug}-{digest}.json")

    def _kept(self, key, settings):
        try:
            with open(self._path(key, settings), encoding="utf-8") as text:
                kept = json.load(text)
        except (OSError, ValueError):
            return None
        note(f"{self.name}: {key}: kept from before")
        return kept

    def _keep(self, key, settings, result, **more):
        kept = {"study": self.name, "key": key, "settings": settings, "began": time.time(),
                "seed": settings.get("seed", 1), "repeated": False, "beside": 0, **more,
                "result": result, "late": was_late(result)}
        path = self._path(key, settings)
        with open(path + ".new", "w", encoding="utf-8") as out:
            json.dump(kept, out)
        os.rename(path + ".new", path)
        note(f"{self.name}: {key}: {summary(result)}" + " (emulator late)" * kept["late"])
        return kept

    def _again(self, result):
        """Whether to repeat a run; when quick, only where the machine stood still."""
        return was_late(result) and (self.size != "quick"
                                     or result.get("reader_late_s", 0) > 5 * READ_LATE_S)

    def run(self, key, function, **settings):
        """function(**settings) alone, or what it gave earlier.

        Where the machine was late, it is repeated once and marked.
        """
        kept = self._kept(key, settings)
        if kept is None:
            result, again = function(**settings), False
            if self._again(result):
                note(f"{self.name}: {key}: the machine was late, once more")
                result, again = function(**settings), True
            kept = self._keep(key, settings, result, repeated=again)
        self.runs.append(kept)
        return kept["result"]

    def batch(self, cells, beside=None):
        """Results by key of light runs, several of them beside each other (as many as `jobs`).

        cells: {key: (function, settings)}. Those that failed or had a late emulator
        get a second turn.
        """
        beside = max(1, self.jobs if beside is None else beside)
        done = {key: self._kept(key, settings) for key, (_, settings) in cells.items()}
        waiting = [key for key, kept in done.items() if kept is None]
        done.update(self._turn(cells, waiting, beside))
        again = [key for key in waiting if done[key] is None]
        done.update(self._turn(cells, again, beside, repeated=True))
        for key in [key for key in again if done[key] is None]:
            function, settings = cells[key]
            done[key] = self._keep(key, settings, function(**settings), repeated=True)
        self.runs += done.values()
        return {key: kept["result"] for key, kept in done.items()}

    def batch_by_control(self, places, controls):
        """{place: {control: [results]}} of runs with several controls. places: {place: cells}."""
        got = self.batch({key: cell for cells in places.values() for key, cell in cells.items()})
        return {place: {c: [got[key]["controls"][c] for key in cells] for c in controls}
                for place, cells in places.items()}

    def _turn(self, cells, keys, beside, **more):
        """{key: what is kept} of runs beside each other; None for what needs another turn."""
        done = {}
        for at in range(0, len(keys), beside):
            group = keys[at:at + beside]
            note(f"{self.name}: {at + 1} to {at + len(group)} of {len(keys)} beside each other")
            for key, result in zip(group, pool.together([cells[key] for key in group]),
                                   strict=True):
                if "error" in result or not more and self._again(result):
                    note(f"{self.name}: {key}: {result.get('error', 'the machine was late')}; "
                         "once more")
                    done[key] = None
                else:
                    done[key] = self._keep(key, cells[key][1], result, beside=len(group), **more)
        return done

    # -- what is told ------------------------------------------------------------------------------

    def claim(self, text, published, ours, low=None, high=None, unit="", number=None, met=None):
        """A row of the table.

        ours: a Value, a number or a text. low, high: what counts as reproduced (or met, if given).
        number: the published value to put ours in ratio with. A confidence interval that reaches
        over the bound that decides makes the verdict "unclear".
        """
        value = ours if isinstance(ours, Value) else Value(ours)
        verdict = value.verdict(low, high) if met is None else "reproduced" if met else "MISSED"
        self.claims.append({
            "study": self.name, "claim": text, "published": published, "ours": value.rounded(),
            "ci": value.ci, "n": value.n, "unit": unit,
            "ratio": round(value.mean / number, 3) if number else None, "verdict": verdict})

    def target(self, name, value, unit, relation, bound):
        number = float(value.mean if isinstance(value, Value) else value)
        met = {">=": number >= bound, "<=": number <= bound}[relation]
        self.targets.append({"name": f"{self.name}: {name}", "value": round(number, 4),
                             "unit": unit, "target": f"{relation} {bound:g}", "pass": met})

    def plot(self, name, title, xlabel, ylabel, series, logx=False, logy=False, ticks=None):
        """series: {label: [(x, y), ...]}, or (x, y, half of the confidence interval).

        ticks: names of x = 0, 1, ...
        """
        self.plots.append({"kind": "lines", "name": f"{self.name}-{name}", "title": title,
                           "xlabel": xlabel, "ylabel": ylabel, "series": series, "logx": logx,
                           "logy": logy, "ticks": ticks})

    def heat(self, name, title, columns, rows, maps, xlabel="", ylabel=""):
        """One coloured map a label, all in one picture. maps: {label: [[value, ...] for rows]}."""
        self.plots.append({"kind": "heat", "name": f"{self.name}-{name}", "title": title,
                           "xlabel": xlabel, "ylabel": ylabel, "columns": [str(c) for c in columns],
                           "rows": [str(r) for r in rows], "series": maps})

    def remark(self, text):
        self.remarks.append(text)

    def as_json(self):
        return {"study": self.name, "claims": self.claims, "remarks": self.remarks,
                "late_runs": [r["key"] for r in self.runs if r["late"]],
                "seconds": round(time.monotonic() - self.began, 1), "runs": self.runs,
                "plots": [{k: v for k, v in p.items() if k != "series"} for p in self.plots]}


def summary(result):
    """A few numbers of a result for the progress line."""
    if "goodput_mbps" in result:
        return f"{result['goodput_mbps']:.1f} Mbit/s"
    if "controls" in result:
        return ", ".join(f"{c} {r['goodput_mbps']:.1f}" for c, r in result["controls"].items())
    return ", ".join(f"{k} {v}" for k, v in result.items() if isinstance(v, (int, float)))[:90]
