#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs every test and counts. Called by ./check, which does the set-up."""

import argparse
import glob
import json
import os
import re
import subprocess
import sys
import time

TOP = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
BUILD = os.path.join(TOP, "build")


class Results:
    """What passed, failed and was skipped, and the names of the failures."""

    def __init__(self):
        self.steps = []

    def add(self, step, passed=0, failed=0, skipped=0, names=(), seconds=0.0):
        self.steps.append({"step": step, "passed": passed, "failed": failed, "skipped": skipped,
                           "failures": list(names), "seconds": round(seconds, 1)})

    def total(self, key):
        return sum(step[key] for step in self.steps)


def say(text):
    print(f"check: {text}", file=sys.stderr, flush=True)


def run(argv, cwd=TOP, env=None, log=None, timeout=1500):
    """Runs a program; its output goes to the log file. Returns the exit code (-1: time-out)."""
    with open(log, "wb") if log else open(os.devnull, "wb") as out:
        try:
            return subprocess.run(argv, cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=out,
                                  stderr=subprocess.STDOUT, timeout=timeout).returncode
        except subprocess.TimeoutExpired:
            return -1


def tail(path, lines=25):
    with open(path, encoding="utf-8", errors="replace") as text:
        return "".join(text.readlines()[-lines:])


def log_path(name):
    folder = os.path.join(BUILD, "check-logs")
    os.makedirs(folder, exist_ok=True)
    return os.path.join(folder, name + ".log")


def cpus():
    return len(os.sched_getaffinity(0))


def jobs():
    return f"-j{cpus()}"


def configure(folder, *args):
    os.makedirs(folder, exist_ok=True)
    return run([os.path.join(TOP, "configure"), *args], cwd=folder,
               log=log_path("configure-" + os.path.basename(folder)))


# -- steps -----------------------------------------------------------------------------------------


def read_trs(folder):
    """The verdicts that automake's driver left: {test: "PASS", ...}."""
    verdicts = {}
    for path in glob.glob(os.path.join(folder, "tests", "**", "*.trs"), recursive=True):
        with open(path, encoding="utf-8") as text:
            for kind in re.findall(r"^:test-result: (\w+)", text.read(), re.M)[:1]:
                verdicts[os.path.relpath(path, folder)[:-4]] = kind
    return verdicts


def failures(verdicts):
    return sorted(name for name, kind in verdicts.items() if kind in ("FAIL", "ERROR", "XPASS"))


def show_logs(folder, names):
    for name in names:
        own = os.path.join(folder, name + ".log")
        if os.path.exists(own):
            print(f"--- {name}\n{tail(own)}")


def automake(results, step, folder, *make_args):
    """`make check` in a build folder; each test program and script counts once.

    What fails beside others is run again alone, which is told: a machine can be too busy for a test,
    a fault of ours stays.
    """
    log = log_path(step)
    start = time.monotonic()
    for stale in glob.glob(os.path.join(folder, "tests", "**", "*.trs"), recursive=True):
        os.unlink(stale)
    code = run(["make", "-k", jobs(), "check", *make_args], cwd=folder, log=log)
    verdicts = read_trs(folder)
    bad = failures(verdicts)
    if bad:
        show_logs(folder, bad)
        say(f"{step}: again, alone: {' '.join(bad)}")
        for name in bad:
            os.unlink(os.path.join(folder, name + ".trs"))
        run(["make", "-k", "check", "TESTS=" + " ".join(bad)], cwd=folder, log=log + ".again")
        verdicts.update({name: read_trs(folder).get(name, "FAIL") for name in bad})
        bad = failures(verdicts)
        show_logs(folder, bad)
    elif code != 0:
        bad = [f"{step}: make ended with code {code}"]
        print(tail(log, 40))
    kinds = list(verdicts.values())
    results.add(step, kinds.count("PASS") + kinds.count("XFAIL"), len(bad), kinds.count("SKIP"),
                bad, time.monotonic() - start)


def unit(results):
    automake(results, "unit", BUILD)


def sanitized(results):
    """Another compiler, -Werror, ASan and UBSan: the programs of unit tests and fuzz seeds."""
    folder = os.path.join(TOP, "build-clang")
    code = configure(folder, "CC=clang", "CFLAGS=-O1 -g", "--enable-werror",
                     "--enable-sanitizers")
    if code != 0:
        results.add("clang-sanitizers", failed=1, names=["configure"])
        return
    automake(results, "clang-sanitizers", folder, "TESTS=$(UNIT_TESTS) $(FUZZ_TARGETS)")


def one(results, name, argv, skip_codes=(77,), env=None, timeout=600):
    """A program whose exit code is the verdict."""
    log = log_path(name)
    start = time.monotonic()
    try:
        code = run(argv, log=log, env=env, timeout=timeout)
    except FileNotFoundError:
        code = 77
    failed = code != 0 and code not in skip_codes
    if failed:
        print(f"--- {name}: {' '.join(argv)}\n{tail(log)}")
    results.add(name, int(code == 0), int(failed), int(code in skip_codes),
                [name] if failed else [], time.monotonic() - start)


def tracked(*patterns):
    listed = subprocess.run(["git", "ls-files", *patterns], cwd=TOP, capture_output=True,
                            text=True, check=False).stdout.split()
    return [name for name in listed if os.path.exists(os.path.join(TOP, name))]


def style(results):
    sources = [name for name in tracked("*.c", "*.h") if "/vendor/" not in name]
    if sources:
        one(results, "clang-format", ["clang-format", "--dry-run", "-Werror", *sources])
    scripts = [name for name in tracked("*.sh", "demo", "check", ".ci/run", "tests/*/run")
               if subprocess.run(["grep", "-q", "^#!/bin/\\(ba\\)\\?sh\\|^#!/usr/bin/env bash",
                                  name], cwd=TOP, check=False).returncode == 0]
    if scripts:
        one(results, "shellcheck", ["shellcheck", "-x", *scripts])
    pages = tracked("doc/*.[158]")
    if pages:
        one(results, "mandoc", ["mandoc", "-Tlint", "-Wwarning", *pages])
    python = tracked("*.py", "tests/*/run")
    python = [name for name in python if name not in scripts]
    if python:
        one(results, "python", ["/usr/bin/python3", "-c",
                                "import ast,sys\nfor n in sys.argv[1:]: ast.parse(open(n).read(), n)",
                                *python])


def run_lab(*args):
    """tests/lab/run --json; None when it gave no JSON."""
    log = log_path("lab")
    with open(log, "ab") as err:
        done = subprocess.run([os.path.join(TOP, "tests/lab/run"), "--json", *args], cwd=TOP,
                              env={**os.environ, "EDGEPEP_BUILD": BUILD},
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=err,
                              check=False)
    try:
        return json.loads(done.stdout)
    except ValueError:
        print(f"--- lab: no JSON, exit code {done.returncode}\n{tail(log)}")
        return None


def show_scenario(entry):
    wrong = [c for c in entry.get("checks", []) if not c.get("pass", c.get("ok", True))]
    print(f"--- lab {entry['name']}: {entry.get('error') or ''} {json.dumps(wrong, indent=1)[:3000]}",
          flush=True)


def lab(results):
    """Every scenario of the lab; one that fails is run once more, and both are told."""
    start = time.monotonic()
    # Most scenarios wait for delays and timers, not for a CPU.
    answer = run_lab("--all", "--jobs", str(cpus() + 1))
    if answer is None:
        results.add("lab", failed=1, names=["lab"], seconds=time.monotonic() - start)
        return
    with open(log_path("lab-results"), "w", encoding="utf-8") as out:
        json.dump(answer, out, indent=1)
    bad, again = [], []
    for entry in answer["scenarios"]:
        if entry["result"] in ("pass", "skip"):
            continue
        show_scenario(entry)
        say(f"lab: again: {entry['name']}")
        second = run_lab(entry["name"])
        if second is not None and second["failed"] == 0:
            again.append(entry["name"])
            continue
        bad.append(entry["name"])
        if second is not None:
            show_scenario(second["scenarios"][0])
    if again:
        print("lab: passed at the second try only: " + ", ".join(again))
    results.add("lab", answer["passed"] + len(again), len(bad), answer["skipped"], bad,
                time.monotonic() - start)


def distcheck(results):
    one(results, "distcheck", ["make", "-C", BUILD, "distcheck", "TESTS=", "check_PROGRAMS=",
                               f"AM_MAKEFLAGS={jobs()}"], timeout=900)


def machine(results):
    run_vm = os.path.join(TOP, "tests/vm/run")
    if os.path.exists(run_vm):
        one(results, "vm", [run_vm], env={**os.environ, "EDGEPEP_BUILD": BUILD}, timeout=600)


STEPS = {
    "style": (style, "formatting, shell, manual pages"),
    "unit": (unit, "unit tests, fuzz seeds, simulator (gcc)"),
    "clang": (sanitized, "the same with clang, -Werror, ASan and UBSan"),
    "lab": (lab, "end-to-end scenarios in network namespaces"),
    "vm": (machine, "Debian's stock kernel with systemd, under qemu"),
    "dist": (distcheck, "make distcheck"),
}


def main():
    parser = argparse.ArgumentParser(prog="check", description="Runs every test of edgepep.")
    parser.add_argument("--json", action="store_true", help="print the results as JSON too")
    parser.add_argument("--list", action="store_true", help="print the steps and end")
    parser.add_argument("steps", nargs="*", metavar="STEP", help="only these steps (see --list)")
    args = parser.parse_args()
    if args.list:
        for name, (_, text) in STEPS.items():
            print(f"{name:8}{text}")
        return 0
    for name in args.steps:
        if name not in STEPS:
            parser.error(f"no step '{name}', there are: {', '.join(STEPS)}")

    results = Results()
    for name in args.steps or STEPS:
        function, text = STEPS[name]
        say(f"{name}: {text} ...")
        start = time.monotonic()
        function(results)
        say(f"{name}: {time.monotonic() - start:.0f} s")

    if args.json:
        print(json.dumps({"steps": results.steps, "passed": results.total("passed"),
                          "failed": results.total("failed"),
                          "skipped": results.total("skipped")}, indent=1))
    for step in results.steps:
        print(f"{step['step']:20} {step['passed']:5} passed {step['failed']:4} failed "
              f"{step['skipped']:4} skipped {step['seconds']:8.1f} s"
              + ("   " + ", ".join(step["failures"]) if step["failures"] else ""))
    print(f"{results.total('passed')} passed, {results.total('failed')} failed, "
          f"{results.total('skipped')} skipped")
    return 1 if results.total("failed") else 0


if __name__ == "__main__":
    sys.exit(main())
