# SPDX-License-Identifier: GPL-2.0-or-later
"""A study's runs, kept one file each so that a broken-off evaluation goes on where it stopped."""

import hashlib
import json
import os
import re
import statistics
import sys
import time

from lib import paths

#: The emulator's own delay, 99th percentile, above which a run says little about short times.
LATE_US = 2000


def build_id():
    """Names the programs that are measured: runs of another build are not kept."""
    digest = hashlib.sha256()
    for path in (*(paths.program(name) for name in ("edgepepd", "edgepep-cca")), paths.linkemu(),
                 paths.built("tests/sim/edgepep-sim")):
        with open(path, "rb") as program:
            digest.update(program.read())
    return digest.hexdigest()


def note(text):
    """A line of progress on stderr: stdout has results only."""
    print(f"eval: {text}", file=sys.stderr, flush=True)


class Session:
    """One study: what it ran, what it claims, what it plots."""

    def __init__(self, name, folder, quick):
        self.name, self.quick = name, quick
        self.folder = folder
        self.runs, self.claims, self.targets, self.plots, self.remarks = [], [], [], [], []
        self.began = time.monotonic()
        self._build = build_id()
        os.makedirs(os.path.join(folder, "runs"), exist_ok=True)

    def _path(self, key, settings):
        slug = re.sub(r"[^a-z0-9.]+", "-", f"{self.name}-{key}".lower()).strip("-")[:90]
        digest = hashlib.sha256((self._build + json.dumps(settings, sort_keys=True)).encode()
                                ).hexdigest()[:10]
        return os.path.join(self.folder, "runs", f"{slug}-{digest}.json")

    def run(self, key, function, **settings):
        """function(**settings), or what it gave earlier.

        Where the emulator was late, it is repeated once (not when it has to be quick) and marked.
        """
        path = self._path(key, settings)
        try:
            with open(path, encoding="utf-8") as text:
                kept = json.load(text)
            note(f"{self.name}: {key}: kept from before")
        except (OSError, ValueError):
            began = time.time()
            kept = {"study": self.name, "key": key, "settings": settings, "began": began,
                    "seed": settings.get("seed", 1), "repeated": False}
            kept["result"] = function(**settings)
            if kept["result"].get("lateness_p99_us", 0) > LATE_US and not self.quick:
                note(f"{self.name}: {key}: the emulator was late, once more")
                kept["result"], kept["repeated"] = function(**settings), True
            kept["late"] = kept["result"].get("lateness_p99_us", 0) > LATE_US
            kept["seconds"] = round(time.time() - began, 2)
            with open(path + ".new", "w", encoding="utf-8") as out:
                json.dump(kept, out)
            os.rename(path + ".new", path)
            note(f"{self.name}: {key}: {summary(kept['result'])}"
                 + (" (emulator late)" if kept["late"] else ""))
        self.runs.append(kept)
        return kept["result"]

    def repeated(self, key, function, seeds, **settings):
        """The results over several seeds."""
        return [self.run(f"{key} seed {seed}", function, seed=seed, **settings)
                for seed in range(1, seeds + 1)]

    def claim(self, text, published, ours, met, unit="", number=None):
        """A row of the table. number: the published value to put ours in ratio with, if any."""
        self.claims.append({
            "study": self.name, "claim": text, "published": published,
            "ours": round(ours, 4) if isinstance(ours, float) else ours, "unit": unit,
            "ratio": round(ours / number, 3) if number else None,
            "verdict": "reproduced" if met else "MISSED"})

    def target(self, name, value, unit, relation, bound):
        met = {">=": value >= bound, "<=": value <= bound}[relation]
        self.targets.append({"name": f"{self.name}: {name}", "value": round(value, 4),
                             "unit": unit, "target": f"{relation} {bound:g}", "pass": met})

    def plot(self, name, title, xlabel, ylabel, series, logx=False, logy=False):
        """series: {label: [(x, y), ...]}."""
        self.plots.append({"name": f"{self.name}-{name}", "title": title, "xlabel": xlabel,
                           "ylabel": ylabel, "series": series, "logx": logx, "logy": logy})

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


def mean(results, field="goodput_mbps"):
    return statistics.fmean(r[field] for r in results)


def interval(values):
    """Half of the 95 % confidence interval of a mean (Student); 0 for a single value."""
    student = {2: 12.71, 3: 4.30, 4: 3.18, 5: 2.78, 6: 2.57, 7: 2.45, 8: 2.36}
    if len(values) < 2:
        return 0.0
    return student.get(len(values), 2.0) * statistics.stdev(values) / len(values) ** 0.5
