# SPDX-License-Identifier: GPL-2.0-or-later
"""The evaluation as JSON, CSV, PNG plots and one HTML page that needs no other file."""

import base64
import csv
import html
import json
import os
import shutil
import subprocess

_COLUMNS = ("study", "claim", "published", "ours", "unit", "ratio", "verdict")
_STYLE = """body{font:15px/1.5 sans-serif;max-width:70em;margin:2em auto;padding:0 1em;color:#222}
table{border-collapse:collapse;width:100%;margin:1em 0}th,td{border-bottom:1px solid #ccc;
padding:.3em .5em;text-align:left;vertical-align:top}th{background:#f3f3f3}
.MISSED{color:#b00;font-weight:bold}.reproduced{color:#070}img{max-width:100%}"""


def _quoted(text):
    return "'" + str(text).replace("'", "''") + "'"


def draw(folder, plots):
    """PNG files through gnuplot, which may be missing; returns {name of plot: path}."""
    gnuplot = shutil.which("gnuplot")
    drawn = {}
    os.makedirs(os.path.join(folder, "plots"), exist_ok=True)
    for plot in plots:
        base = os.path.join(folder, "plots", plot["name"])
        with open(base + ".csv", "w", encoding="utf-8", newline="") as out:
            rows = csv.writer(out)
            rows.writerow(("series", plot["xlabel"], plot["ylabel"]))
            for label, points in plot["series"].items():
                rows.writerows((label, x, y) for x, y in points)
        if not gnuplot or not any(plot["series"].values()):
            continue
        script = ["set terminal pngcairo size 900,420 noenhanced",
                  f"set output {_quoted(base + '.png')}",
                  f"set title {_quoted(plot['title'])}",
                  f"set xlabel {_quoted(plot['xlabel'])}",
                  f"set ylabel {_quoted(plot['ylabel'])}", "set grid", "set key outside right"]
        script += ["set logscale x"] * plot["logx"] + ["set logscale y"] * plot["logy"]
        if not plot["logy"]:
            script.append("set yrange [0:*]")
        script.append("plot " + ", ".join(
            f"'-' with linespoints pt {7 + i % 6} ps 0.5 lw 1.5 title {_quoted(label)}"
            for i, label in enumerate(plot["series"])))
        for points in plot["series"].values():
            script += [f"{x} {y}" for x, y in points] + ["e"]
        done = subprocess.run([gnuplot], input="\n".join(script) + "\n", text=True, check=False,
                              capture_output=True)
        if done.returncode == 0 and os.path.exists(base + ".png"):
            drawn[plot["name"]] = base + ".png"
    return drawn


def _table(claims):
    rows = "".join("<tr>" + "".join(
        f'<td class="{html.escape(str(c[k])) if k == "verdict" else ""}">'
        f'{html.escape("" if c[k] is None else str(c[k]))}</td>' for k in _COLUMNS) + "</tr>"
                   for c in claims)
    return "<table><tr>" + "".join(f"<th>{k}</th>" for k in _COLUMNS) + f"</tr>{rows}</table>"


def _page(result, studies, drawn):
    parts = ["<!DOCTYPE html><html lang=en><meta charset=utf-8><title>edgepep: evaluation</title>"
             f"<style>{_STYLE}</style><h1>The studies on the real proxy</h1><p>"
             + html.escape(", ".join(f"{k} {v}" for k, v in result["machine"].items())) + "</p>",
             _table(result["claims"])]
    for study in studies:
        parts.append(f"<h2>{html.escape(study.name)}</h2>")
        parts += [f"<p>{html.escape(text)}</p>" for text in study.remarks]
        late = [r["key"] for r in study.runs if r["late"]]
        parts.append(f"<p>{len(study.runs)} runs, {len(late)} with a late emulator"
                     + html.escape(": " + ", ".join(late) if late else "") + ".</p>")
        for plot in study.plots:
            if plot["name"] in drawn:
                with open(drawn[plot["name"]], "rb") as image:
                    data = base64.b64encode(image.read()).decode("ascii")
                parts.append(f'<p><img alt="{html.escape(plot["title"])}" '
                             f'src="data:image/png;base64,{data}"></p>')
    return "\n".join(parts) + "</html>\n"


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
    drawn = draw(folder, [p for study in studies for p in study.plots])
    with open(os.path.join(folder, "report.html"), "w", encoding="utf-8") as out:
        out.write(_page(result, studies, drawn))


def markdown(claims):
    """The table as doc/EVALUATION.md shows it."""
    def cell(value):
        return "" if value is None else f"{value:.3g}" if isinstance(value, float) else str(value)
    lines = ["| study | claim | published | ours | ratio | verdict |", "|---|---|---|---|---|---|"]
    lines += [f"| {c['study']} | {c['claim']} | {c['published']} | {cell(c['ours'])} {c['unit']} | "
              f"{cell(c['ratio'])} | {c['verdict']} |" for c in claims]
    return "\n".join(lines) + "\n"


def text(result):
    """The table of claims for people."""
    lines = []
    for c in result["claims"]:
        ratio = "" if c["ratio"] is None else f" (ratio {c['ratio']:g})"
        lines.append(f"{c['verdict']:<11}{c['study']}: {c['claim']}: published {c['published']}, "
                     f"ours {c['ours']:g} {c['unit']}{ratio}" if isinstance(c["ours"], (int, float))
                     else f"{c['verdict']:<11}{c['study']}: {c['claim']}: published "
                     f"{c['published']}, ours {c['ours']}")
    return "\n".join(lines)
