#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What is shipped for a fleet and what is documented agrees with what the monitor exports."""

import json
import os
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
from mon_lib import MON, Checks  # noqa: E402

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))


def source(*path):
    with open(os.path.join(TOP, *path), encoding="utf-8") as text:
        return text.read()


def exported():
    """Every name that a query may use: samples of histograms have three endings."""
    table = subprocess.run([MON, "--list-metrics"], capture_output=True, text=True, check=True).stdout
    names = set()
    for name, kind in re.findall(r"^\| `(\w+)` \| (\w+) \|", table, re.M):
        names |= {name + end for end in ("_bucket", "_sum", "_count")} if kind == "histogram" else {name}
    return table, names


def used(text):
    """Metrics of the monitor in a query; recorded ones have colons in their names."""
    return set(re.findall(r"(?<![\w:])edgepep_\w+(?![\w:])", text))


def promtool(c):
    if not shutil.which("promtool"):
        print("skip promtool is not installed")
        return
    folder = os.path.join(TOP, "conf/prometheus")
    for args in (["check", "rules", "edgepep.rules.yml"], ["check", "config", "prometheus.yml"],
                 ["test", "rules", "edgepep.rules_test.yml"]):
        result = subprocess.run(["promtool", *args], cwd=folder, capture_output=True, text=True, check=False)
        c.ok("promtool " + " ".join(args), result.returncode == 0, result.stdout + result.stderr)


def main():
    c = Checks()
    table, names = exported()
    c.ok("metrics are listed", len(names) > 50, names)
    c.ok("doc/METRICS.md has the table as it is (edgepep-mon --list-metrics prints it)",
         source("doc/METRICS.md").endswith("\n" + table))

    dashboard = json.loads(source("conf/grafana/edgepep.json"))
    queries = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    c.ok("the dashboard asks", len(queries) > 20, len(queries))
    c.equal("and asks for nothing that is not exported", set().union(*map(used, queries)) - names, set())
    c.equal("numbers of panels", len({p["id"] for p in dashboard["panels"]}), len(dashboard["panels"]))
    c.ok("its data source is a variable", all(t["datasource"]["uid"] == "${datasource}"
                                               for p in dashboard["panels"] for t in p["targets"]))
    rules = source("conf/prometheus/edgepep.rules.yml")
    expressions = "\n".join(re.findall(r"expr: ((?:[^\n]|\n {10})*)", rules))
    c.ok("the rules ask", len(used(expressions)) > 10, used(expressions))
    c.equal("for nothing that is not exported", used(expressions) - names, set())
    promtool(c)

    page = source("doc/edgepep-mon.8")
    help_text = subprocess.run([MON, "--help"], capture_output=True, text=True, check=True).stdout
    for option in re.findall(r"--([a-z-]+)", help_text):
        c.ok(f"the manual has --{option}", f"Fl -{option}" in page)
    for path in re.findall(r'"(/api/v1/[a-z/]+|/healthz|/readyz|/metrics)"', source("src/mon/api.c")):
        c.ok(f"the manual has {path}", f"It Pa {path}" in page)
    c.exit()


if __name__ == "__main__":
    main()
