# SPDX-License-Identifier: GPL-2.0-or-later
"""Scenarios: how one is written, found and run."""

import contextlib
import dataclasses
import fcntl
import importlib
import os
import pkgutil
import sys
import time
import traceback

from . import paths
from .lab import Lab

_registry = {}


class Skip(Exception):
    """Raised by a scenario that cannot run here; the text says why."""


class Fatal(Exception):
    """A required check failed; the rest of the scenario makes no sense."""


@dataclasses.dataclass
class Scenario:
    name: str
    text: str
    function: object
    timing: bool
    by_name_only: bool
    args: dict


def scenario(name, text, timing=False, by_name_only=False, **args):
    """Registers function(t, **args) under a name; may be stacked for several variants.

    timing: the results depend on a quiet machine, or it changes something of the whole host (loaded
    congestion controls); such scenarios never run beside others.
    by_name_only: too long for --all and --match, which leave it out.
    """
    def register(function):
        if name in _registry:
            raise ValueError(f"two scenarios are called {name}")
        _registry[name] = Scenario(name, text, function, timing, by_name_only, args)
        return function
    return register


def load_all():
    """All scenarios, by name."""
    package = importlib.import_module("scenarios")
    for module in sorted(m.name for m in pkgutil.iter_modules(package.__path__)):
        importlib.import_module("scenarios." + module)
    return dict(sorted(_registry.items()))


class Run:
    """What a scenario is given: it makes labs and takes down what was found."""

    def __init__(self, entry, verbose=False, keep=False):
        self.entry = entry
        self.verbose = verbose
        self.keep = keep
        self.checks, self.targets, self.data = [], [], {}
        self.result = "pass"
        self.error = None
        self.seconds = 0.0
        self._prefix = ""

    # -- for scenarios -----------------------------------------------------------------------------

    @contextlib.contextmanager
    def lab(self, **options):
        """A lab for a `with`; with --keep it stays after a failure until Enter is pressed."""
        with Lab(**options) as lab:
            try:
                yield lab
            except BaseException as error:
                self._show(lab, describe(error))
                raise
            failed = [c["name"] for c in self.checks if not c["pass"]]
            if failed:
                self._show(lab, failed[0])

    def _show(self, lab, why):
        if self.keep and sys.stdin.isatty():
            names = " ".join(host.name for host in lab.hosts.values())
            print(f"    kept ({why}): {names}; press Enter to go on", file=sys.stderr, flush=True)
            sys.stdin.readline()

    @contextlib.contextmanager
    def group(self, name):
        """Names of checks inside begin with it; an exception inside fails the group only."""
        outer, self._prefix = self._prefix, f"{self._prefix}{name}: "
        try:
            yield
        except Fatal:
            pass
        except Exception as error:  # pylint: disable=broad-except
            self.check("no exception", False, describe(error))
        finally:
            self._prefix = outer

    def check(self, name, ok, detail=""):
        """Takes down one fact. Returns whether it holds."""
        ok = bool(ok)
        self.checks.append({"name": self._prefix + name, "pass": ok, "detail": str(detail)})
        if self.verbose or not ok:
            print(f"    {'ok  ' if ok else 'FAIL'} {self._prefix}{name}"
                  + (f": {detail}" if detail != "" else ""), file=sys.stderr, flush=True)
        return ok

    def require(self, name, ok, detail=""):
        """A check without which the group, or the scenario, cannot go on."""
        if not self.check(name, ok, detail):
            raise Fatal(name)

    def equal(self, name, got, want):
        return self.check(name, got == want, f"got {got!r}, want {want!r}" if got != want
                          else f"{got!r}"[:80])

    def near(self, name, got, want, relative=0.0, absolute=0.0):
        allowed = abs(want) * relative + absolute
        return self.check(name, abs(got - want) <= allowed,
                          f"{got:.6g}, want {want:.6g} +- {allowed:.3g}")

    def target(self, name, value, unit, relation, bound):
        """A number measured against a target; missing it does not fail the scenario."""
        met = {">=": value >= bound, "<=": value <= bound}[relation]
        self.targets.append({"name": name, "value": value, "unit": unit,
                             "target": f"{relation} {bound:g}", "pass": met})
        return met

    @staticmethod
    def note(text):
        """A line of progress."""
        print(f"    {text}", file=sys.stderr, flush=True)

    # -- for the runner ----------------------------------------------------------------------------

    def execute(self):
        began = time.monotonic()
        try:
            with timing_lock() if self.entry.timing else contextlib.nullcontext():
                began = time.monotonic()
                self.entry.function(self, **self.entry.args)
            self.result = "pass" if all(c["pass"] for c in self.checks) else "fail"
        except Skip as reason:
            self.result, self.error = "skip", str(reason)
        except Fatal:
            self.result = "fail"
        except paths.Missing as missing:
            self.result, self.error = "fail", str(missing)
        except Exception as error:  # pylint: disable=broad-except
            self.result, self.error = "fail", describe(error)
            if self.verbose:
                traceback.print_exc()
        self.seconds = time.monotonic() - began

    def as_json(self):
        return {"name": self.entry.name, "result": self.result,
                "seconds": round(self.seconds, 2), "error": self.error, "checks": self.checks,
                "targets": self.targets, "data": self.data}


def describe(error):
    """An exception as one line with the place it came from."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [f for f in frames if "/scenarios/" in f.filename] or frames
    place = f"{os.path.basename(ours[-1].filename)}:{ours[-1].lineno}" if ours else "?"
    return f"{type(error).__name__} at {place}: {error}"


@contextlib.contextmanager
def timing_lock():
    """Held while results depend on a quiet machine."""
    os.makedirs(paths.STATE, mode=0o755, exist_ok=True)
    with open(os.path.join(paths.STATE, "timing.lock"), "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
