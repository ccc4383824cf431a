# SPDX-License-Identifier: GPL-2.0-or-later
"""The evaluation as JSON, CSV, PNG plots and one HTML page that needs no other file."""

import csv
import json
import os

from . import page, plots
from .figures import cell, ours

_COLUMNS = ("study", "claim", "published", "ours", "ci", "n", "unit", "ratio", "verdict")


def write(folder, result, studies):
    """All files; the JSON is `result` itself."""
    with open(os.path.join(folder, "result.json"), "w", encoding="utf-8") as out:
        json.dump(result, out, indent=1)
    with open(os.path.join(folder, "claims.csv"), "w", encoding="utf-8", newline="") as out:
        rows = csv.DictWriter(out, _COLUMNS)
        rows.writeheader()
        rows.writerows(result["claims"])
    with open(os.path.join(folder, "claims.md"), "w", encoding="utf-8") as out:
        out.write(markdown(result["claims"]))
    drawn = plots.draw(folder, [p for study in studies for p in study.plots])
    with open(os.path.join(folder, "report.html"), "w", encoding="utf-8") as out:
        out.write(page.page(result, studies, drawn))


def markdown(claims):
    """The table as doc/EVALUATION.md shows it."""
    lines = ["| study | claim | published | ours | n | ratio | verdict |",
             "|---|---|---|---|---|---|---|"]
    lines += [f"| {c['study']} | {c['claim']} | {c['published']} | {ours(c)} | {c['n']} | "
              f"{cell(c['ratio'])} | {c['verdict']} |" for c in claims]
    return "\n".join(lines) + "\n"


def text(result):
    """The table of claims for people."""
    return "\n".join(
        f"{c['verdict']:<11}{c['study']}: {c['claim']}: published {c['published']}, ours {ours(c)}"
        + (f" (ratio {c['ratio']:g})" if c["ratio"] is not None else "") for c in result["claims"])
