# SPDX-License-Identifier: GPL-2.0-or-later
"""Whether kernel and simulator agree, on a fixed set of cells."""

import importlib.machinery
import importlib.util
import os
import time

from lib import Link, paths, scenario
from lib.traffic import Iperf

SECONDS, OMIT = 4, 1

# name, link, flows, controls
CELLS = (
    ("clean", {"rate": "20Mbit", "rtt": "20ms", "buffer": "1BDP"}, 1, ("cubic", "reno", "bbr")),
    ("0.1 % loss", {"rate": "50Mbit", "rtt": "20ms", "buffer": "1BDP", "loss": "0.1%"}, 1,
     ("cubic", "reno", "bbr")),
    ("1 % loss", {"rate": "20Mbit", "rtt": "40ms", "buffer": "1BDP", "loss": "1%"}, 1,
     ("cubic", "bbr")),
    ("4 flows, deep buffer", {"rate": "20Mbit", "rtt": "20ms", "buffer": "5BDP"}, 4, ("bbr",)),
)


def _crosscheck():
    """tests/sim/crosscheck as a module."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../sim/crosscheck")
    loader = importlib.machinery.SourceFileLoader("crosscheck", os.path.normpath(path))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("crosscheck", loader))
    loader.exec_module(module)
    return module


def _settings(link, flows):
    """The cell as edgepep-sim takes it. The lab takes its losses before the buffer: no difference
    that a median shows."""
    settings = {"rate": link["rate"] + "/s", "rtt": link["rtt"],
                "buffer": link["buffer"].lower(), "loss": link.get("loss", "0%"),
                "flows": str(flows), "time": f"{SECONDS + OMIT}s", "warmup": f"{OMIT}s"}
    return settings


def _measure(t, link, flows, control):
    """Downloads from srv under a control; what the simulator reports of the same."""
    down = {"loss": link["loss"]} if "loss" in link else {}
    plain = {key: value for key, value in link.items() if key != "loss"}
    with t.lab(radio=Link(**plain, down=down), server_control=control) as lab:
        load = Iperf(lab.srv, lab.ue, lab.srv.addr(4), seconds=SECONDS, omit=OMIT, reverse=True,
                     parallel=flows)
        time.sleep(OMIT)
        lab.restart_links()
        end = load.result()["end"]
        queue_us = lab.emulators["radio"].stats()["down"]["queue_delay_us"]["p50"]
    packets = end["sum_sent"]["bytes"] / 1448
    return {"goodput_mbps": end["sum_received"]["bits_per_second"] / 1e6,
            "retrans_percent": 100 * end["sum_sent"]["retransmits"] / packets,
            "queue_p50_ms": queue_us / 1000}


@scenario("cca-crosscheck", "kernel and simulator agree on order and value", timing=True)
def cca_crosscheck(t):
    crosscheck = _crosscheck()
    cells = [{"name": name, "settings": _settings(link, flows),
              "controls": {control: _measure(t, link, flows, control) for control in controls}}
             for name, link, flows, controls in CELLS]
    for name, ok, detail in crosscheck.check(paths.built("tests/sim/edgepep-sim"), cells):
        t.check(name, ok, detail)
    t.data["cells"] = cells
