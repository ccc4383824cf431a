# SPDX-License-Identifier: GPL-2.0-or-later
"""The results as tables of text."""

from .report import RATES


def _ratio(value):
    if not value:
        return "-"
    return f"{value['median']:.2f} ({value['min']:.2f}-{value['max']:.2f})"


def _number(value, digits=3):
    return "-" if value is None else f"{value:.{digits}f}"


def table(title, head, rows):
    """Left-aligned columns under a title."""
    if not rows:
        return ""
    rows = [[str(cell) for cell in row] for row in rows]
    widths = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]
    lines = [title, *("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip()
                      for row in [head, *rows])]
    return "\n".join(lines) + "\n"


def _noise(row):
    return "NOISY" if row["noisy"] else ""


def _rates(results):
    rows = []
    for row in results["rates"]:
        factor = RATES[row["test"].split()[0]][2]
        cost = row.get("cpu_s_per_gb", row.get("cpu_us_per_connection"))
        rows.append([row["test"], row["lane"], _number(row["value"] * factor, 2), row["unit"],
                     _ratio(row["to_forward"]), _ratio(row.get("to_best_peer")), _number(cost),
                     _noise(row)])
    return table("Rates (proxy CPU: s/GB, or us/connection)",
                 ["test", "lane", "value", "", "to forwarding", "to best peer", "proxy CPU", ""],
                 rows)


def _targets(results):
    return table("Targets", ["", "what", "value", "unit", "target", ""],
                 [["met" if t["pass"] else "MISSED", t["name"], _number(t["value"]), t["unit"],
                   t["target"], _noise(t)] for t in results["targets"]])


def render(results):
    """All tables."""
    parts = [
        _rates(results),
        table("Times (ms)", ["test", "lane", "p50", "p99", "p50 added", "p99 added", ""],
              [[r["test"], r["lane"], _number(r["p50"], 4), _number(r["p99"], 4),
                _number(r.get("p50_added"), 4), _number(r.get("p99_added"), 4), _noise(r)]
               for r in results["times"]]),
        table("Memory of idle flows (KiB per flow, end hosts' own subtracted)",
              ["test", "lane", "echoed", "user", "kernel", "total", "fds", ""],
              [[r["test"], r["lane"], r["echoed"], _number(r["user"], 2), _number(r["kernel"], 2),
                _number(r["total"], 2), _number(r["fds"], 2), _noise(r)]
               for r in results["memory"]]),
        table("Age of data at a 2 MB/s reader (s)", ["lane", "age", ""],
              [[r["lane"], _number(r["value"]), _noise(r)] for r in results["ages"]]),
        table("Many active flows", ["flows", "lane", "Gbit/s", "to forwarding", "proxy CPU s/GB",
                                    ""],
              [[r["flows"], r["lane"], _number(r["value"] / 1e9, 2), _ratio(r["to_forward"]),
                _number(r["cpu_s_per_gb"]), _noise(r)] for r in results["scale"]]),
        table("SYNs at the gate, one worker on one CPU",
              ["test", "sent/s", "not seen", "CPU us/SYN", ""],
              [[r["test"], _number(r["sent_per_second"], 0), r["lost"],
                _number(r["cpu_us_per_syn"], 2), _noise(r)] for r in results["syns"]]),
        _targets(results)]
    parts += [f"FAILED {failure}\n" for failure in results["failures"]]
    return "\n".join(part for part in parts if part)
