# SPDX-License-Identifier: GPL-2.0-or-later
"""Whether kernel and simulator agree, on a fixed set of cells."""

import importlib.machinery
import importlib.util
import os

from lib import Skip, paths, scenario

from .cca_pairs import KERNELS, OURS, available, edgepep_cca, measure

SECONDS, OMIT = 3, 1
MIXED = ("cubic", "bbr", "pep_bbr_a", "pep_bwe")
TRIES = 3  # a busy machine bunches packets for moments; what is wrong is so every time

# name; the link as linkemu takes it; the same as edgepep-sim takes it, with rate and rtt; flows;
# what half of the flows see as more delay. linkemu's jitter is up and down from the delay, the
# simulator's comes on top. linkemu loses packets before the buffer: no difference in a median. It
# serves 16 links: two for each control, three where flows differ in RTT.
CELLS = (
    ("1 % loss", {"rtt": "40ms", "buffer": "1BDP", "loss": "1%"},
     {"buffer": "1bdp", "loss": "1%"}, 1, None),
    ("jitter", {"rtt": "40ms", "buffer": "2BDP", "jitter": "10ms"},
     {"buffer": "200000B", "rtt": "30ms", "jitter": "20ms"}, 1, None),
    ("4 flows, 5 BDP", {"rtt": "20ms", "buffer": "5BDP"}, {"buffer": "5bdp", "flows": "4"}, 4, None),
    ("4 of 10 ms, 4 of 50 ms", {"rtt": "10ms", "buffer": "150kB"},
     {"buffer": "150kB", "flow": ["count=4,rtt=10ms", "count=4,rtt=50ms"]}, 8, "40ms"),
)


def _crosscheck():
    """tests/sim/crosscheck as a module."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../sim/crosscheck")
    loader = importlib.machinery.SourceFileLoader("crosscheck", os.path.normpath(path))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("crosscheck", loader))
    loader.exec_module(module)
    return module


def _measure(cell, link, flows, far):
    cell["controls"] = measure(available(MIXED if far else KERNELS + OURS), link, flows, SECONDS,
                               OMIT, far=far)


@scenario("cca-crosscheck", "kernel and simulator agree on order and value", timing=True)
def cca_crosscheck(t):
    crosscheck = _crosscheck()
    sim = paths.built("tests/sim/edgepep-sim")
    code, probe = edgepep_cca("probe", check=False)
    if code == 3:
        raise Skip(probe["text"])
    edgepep_cca("load", "--replace")  # those of another build would be compared otherwise
    t.data["cells"] = []
    for name, link, simulated, flows, far in CELLS:
        link = {"rate": "20Mbit", **link}
        cell = {"name": name, "settings": {
            "rate": link["rate"] + "/s", "rtt": link["rtt"], **simulated,
            "time": f"{SECONDS + OMIT}s", "warmup": f"{OMIT}s"}}
        for tries in range(1, TRIES + 1):
            _measure(cell, link, flows, far)
            facts = list(crosscheck.check(sim, [cell]))
            off = [fact for fact, ok, _ in facts if not ok]
            if not off:
                break
            late = max(got["late_ms"] for got in cell["controls"].values())
            t.note(f"try {tries}, emulator late by {late} ms: {'; '.join(off)}")
        for fact in facts:
            t.check(*fact)
        t.data["cells"].append(cell)
