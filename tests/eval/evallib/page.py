# SPDX-License-Identifier: GPL-2.0-or-later
"""report.html: verdicts first, then each study with its plots, settings and seeds."""

import base64
import html
import json

from .figures import cell, ours

_STYLE = """body{font:15px/1.55 system-ui,sans-serif;max-width:72em;margin:2em auto;padding:0 1.2em;
color:#1f2933;background:#fff}h1{font-size:1.7em;margin-bottom:.2em}h2{margin-top:2.2em;
border-bottom:2px solid #d9e2ec;padding-bottom:.2em}nav a{margin-right:1.2em}
p.facts{color:#52606d}table{border-collapse:collapse;width:100%;margin:1em 0;font-size:.93em}
th,td{border-bottom:1px solid #e4e7eb;padding:.35em .6em;text-align:left;vertical-align:top}
th{background:#f0f4f8}td.number{text-align:right}td.number,td.study{white-space:nowrap}
.verdict{display:inline-block;padding:0 .55em;border-radius:.7em;font-weight:600;font-size:.9em;
white-space:nowrap}.reproduced{background:#d3f9d8;color:#1b5e20}.MISSED{background:#ffe3e3;
color:#9b1c1c}.unclear{background:#fff3bf;color:#7a5b00}.tiles{display:flex;gap:1em;flex-wrap:wrap}
.tile{border:1px solid #d9e2ec;border-radius:.5em;padding:.6em 1em;min-width:7em}
.tile b{display:block;font-size:1.6em}figure{margin:1.2em 0}img{max-width:100%;height:auto}
figcaption{color:#52606d;font-size:.92em}details{margin:.8em 0}summary{cursor:pointer;color:#2b6cb0}
td.late{color:#9b1c1c}code{background:#f0f4f8;padding:0 .25em}"""


def _e(value):
    return html.escape("" if value is None else str(value))


def _verdict(word):
    return f'<span class="verdict {_e(word)}">{_e(word)}</span>'


def _claims(claims):
    rows = []
    for c in claims:
        cells = (_e(c["claim"]), _e(c["published"]), _e(ours(c)))
        rows.append(f'<tr><td>{_verdict(c["verdict"])}</td><td class=study>{_e(c["study"])}</td>'
                    + "".join(f"<td>{x}</td>" for x in cells)
                    + f'<td class=number>{c["n"]}</td>'
                    + f'<td class=number>{_e(cell(c["ratio"]))}</td></tr>')
    return ("<table><tr><th>verdict</th><th>study</th><th>claim</th><th>published</th>"
            "<th>ours (95 % interval)</th><th>n</th><th>ratio</th></tr>" + "".join(rows)
            + "</table>")


def _tiles(claims):
    words = ("reproduced", "unclear", "MISSED")
    return '<div class=tiles>' + "".join(
        f'<div class=tile><b>{sum(c["verdict"] == w for c in claims)}</b>{_verdict(w)}</div>'
        for w in words) + "</div>"


def _runs(study):
    """Every run with its settings, seed and the emulator's lateness, folded away."""
    rows = []
    for r in study.runs:
        late = r["result"].get("lateness_p99_us")
        settings = json.dumps({k: v for k, v in r["settings"].items() if k != "seed"})
        rows.append(f"<tr><td>{_e(r['key'])}</td><td class=number>{_e(r['seed'])}</td>"
                    f'<td class="number{" late" if r["late"] else ""}">'
                    + ("simulated" if late is None else f"{late / 1000:.2f}")
                    + f"</td><td class=number>{r.get('beside', 0) or 1}</td>"
                    f"<td><code>{_e(settings)}</code></td></tr>")
    return (f"<details><summary>{len(rows)} runs: settings, seeds, lateness of the emulator"
            "</summary><table><tr><th>run</th><th>seed</th><th>late, p99 ms</th><th>at once</th>"
            "<th>settings</th></tr>" + "".join(rows) + "</table></details>")


def _figure(plot, path):
    with open(path, "rb") as image:
        data = base64.b64encode(image.read()).decode("ascii")
    return (f'<figure><img alt="{_e(plot["title"])}" src="data:image/png;base64,{data}">'
            f'<figcaption>{_e(plot["title"])}. Numbers: plots/{_e(plot["name"])}.csv</figcaption>'
            "</figure>")


def _study(study, drawn, error):
    late = sum(r["late"] for r in study.runs)
    parts = [f'<h2 id="{_e(study.name)}">{_e(study.name)}</h2>']
    if error:
        parts.append(f"<p><b>Could not end: {_e(error)}</b></p>")
    parts += [f"<p>{_e(text)}</p>" for text in study.remarks]
    parts.append(f"<p class=facts>{len(study.runs)} runs, {late} with a late emulator (99th "
                 "percentile above 2 ms) after a repetition.</p>")
    parts += [_figure(p, drawn[p["name"]]) for p in study.plots if p["name"] in drawn]
    return "\n".join([*parts, _runs(study)])


def page(result, studies, drawn):
    """The whole page; drawn: {name of plot: PNG file}."""
    facts = ", ".join(f"{k} {v}" for k, v in result["machine"].items())
    missed = [c for c in result["claims"] if c["verdict"] != "reproduced"]
    parts = ["<!DOCTYPE html><html lang=en><meta charset=utf-8><title>edgepep: evaluation</title>"
             f"<style>{_STYLE}</style><h1>What the source studies found, measured again</h1>"
             f"<p class=facts>{_e(facts)}; size: {_e(result.get('size'))}; build "
             f"{_e(result.get('build'))}. Every figure comes from the real proxy and kernel TCP "
             "over linkemu, unless its claim says that it is simulated.</p>",
             _tiles(result["claims"]),
             "<nav><p>" + "".join(f'<a href="#{_e(s.name)}">{_e(s.name)}</a>' for s in studies)
             + "</p></nav>"]
    if missed:
        parts += ["<h2>Missed and unclear</h2>", _claims(missed)]
    parts += ["<h2>All claims</h2>", _claims(result["claims"])]
    parts += [_study(s, drawn, result.get("errors", {}).get(s.name)) for s in studies]
    parts.append("<h2>How to read it</h2><p><b>unclear</b>: the 95 % confidence interval (Student; "
                 "of two values, their range) "
                 "reaches over the bound that decides. <b>n</b>: repetitions with seeds 1 to n; "
                 "ratios are geometric means of the ratios of runs with the same seed. "
                 "<b>ratio</b>: ours over the published number. Repeat with "
                 "<code>tests/eval/run</code>.</p>")
    return "\n".join(parts) + "</html>\n"
