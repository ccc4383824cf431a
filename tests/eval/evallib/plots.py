# SPDX-License-Identifier: GPL-2.0-or-later
"""PNG plots through gnuplot (package gnuplot-nox), and the numbers behind each as CSV."""

import csv
import math
import os
import shutil
import subprocess

_COLOURS = ("#2b6cb0", "#c05621", "#2f855a", "#b83280", "#6b46c1", "#4a5568", "#b7791f", "#0f766e")


def _quoted(text):
    return "'" + str(text).replace("'", "''") + "'"


def _save(base, plot):
    with open(base + ".csv", "w", encoding="utf-8", newline="") as out:
        rows = csv.writer(out)
        if plot["kind"] == "heat":
            rows.writerow(("map", plot["ylabel"], *plot["columns"]))
            for label, lines in plot["series"].items():
                rows.writerows((label, row, *values) for row, values in
                               zip(plot["rows"], lines, strict=True))
            return
        rows.writerow(("series", plot["xlabel"], plot["ylabel"], "ci"))
        for label, points in plot["series"].items():
            rows.writerows((label, *point) for point in points)


def _ticks(axis, names):
    return f"set {axis}tics (" + ", ".join(f"{_quoted(n)} {i}" for i, n in enumerate(names)) + ")"


def _lines(plot):
    """Curves, with error bars where points have a third value."""
    script = [f"set title {_quoted(plot['title'])}", f"set xlabel {_quoted(plot['xlabel'])}",
              f"set ylabel {_quoted(plot['ylabel'])}", "set grid lc rgb '#dddddd'",
              "set key outside right", "set border 3 lc rgb '#888888'", "set tics nomirror"]
    script += ["set logscale x"] * plot["logx"]
    script.append("set logscale y" if plot["logy"] else "set yrange [0:*]")
    if plot["ticks"]:
        script += [_ticks("x", plot["ticks"]), f"set xrange [-0.3:{len(plot['ticks']) - 0.7}]"]
    words, data = [], []
    for i, (label, points) in enumerate(plot["series"].items()):
        look = f"pt {7 + i % 6} ps 0.6 lw 1.6 lc rgb {_quoted(_COLOURS[i % len(_COLOURS)])}"
        bars = any(len(p) > 2 and p[2] for p in points)
        shift = 0.04 * (i - len(plot["series"]) / 2) if plot["ticks"] else 0
        rows = [" ".join(str(v) for v in (p[0] + shift, *p[1:])) for p in points] + ["e"]
        words.append(f"'-' with linespoints {look} title {_quoted(label)}")
        data += rows
        if bars:
            words.append(f"'-' with yerrorbars {look} notitle")
            data += rows
    return script + ["plot " + ", ".join(words)] + data


def _heat(plot):
    """One map a label, on one scale, with the values written into them."""
    maps = plot["series"]
    values = [v for lines in maps.values() for row in lines for v in row]
    low, high = min(values), max(values)
    across = min(4, len(maps))
    script = [f"set multiplot layout {math.ceil(len(maps) / across)},{across} "
              f"title {_quoted(plot['title'])}",
              "set palette defined (0 '#f7fbff', 0.5 '#6baed6', 1 '#08306b')",
              f"set cbrange [{low:g}:{high if high > low else low + 1:g}]", "unset colorbox",
              f"set xlabel {_quoted(plot['xlabel'])}", f"set ylabel {_quoted(plot['ylabel'])}",
              _ticks("x", plot["columns"]), _ticks("y", plot["rows"]), "set tics scale 0",
              f"set xrange [-0.5:{len(plot['columns']) - 0.5}]",
              f"set yrange [-0.5:{len(plot['rows']) - 0.5}]", "unset key"]
    middle = (low + high) / 2
    for label, lines in maps.items():
        cells = [(x, y, value) for y, row in enumerate(lines) for x, value in enumerate(row)]
        script += [f"set title {_quoted(label)}", "unset label"]
        script += [f"set label {_quoted(f'{value:.3g}')} at {x},{y} center front tc rgb "
                   + ("'#ffffff'" if value > middle else "'#222222'") for x, y, value in cells]
        script += ["plot '-' using 1:2:3 with image"]
        script += [f"{x} {y} {value}" for x, y, value in cells] + ["e"]
    return script + ["unset multiplot"]


def _size(plot):
    if plot["kind"] == "lines":
        return 940, 420
    across = min(4, len(plot["series"]))
    return 60 + 270 * across, 60 + 270 * math.ceil(len(plot["series"]) / across)


def draw(folder, plots):
    """Writes each plot's CSV and, with gnuplot, its PNG; returns {name of plot: path}."""
    gnuplot = shutil.which("gnuplot")
    drawn = {}
    os.makedirs(os.path.join(folder, "plots"), exist_ok=True)
    for plot in plots:
        base = os.path.join(folder, "plots", plot["name"])
        _save(base, plot)
        if not gnuplot or not any(plot["series"].values()):
            continue
        width, height = _size(plot)
        script = [f"set terminal pngcairo size {width},{height} noenhanced font 'sans,10'",
                  "set datafile separator whitespace", f"set output {_quoted(base + '.png')}",
                  *(_heat(plot) if plot["kind"] == "heat" else _lines(plot))]
        done = subprocess.run([gnuplot], input="\n".join(script) + "\n", text=True, check=False,
                              capture_output=True)
        if done.returncode == 0 and os.path.exists(base + ".png"):
            drawn[plot["name"]] = base + ".png"
    return drawn
