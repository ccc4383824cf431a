# SPDX-License-Identifier: GPL-2.0-or-later
"""A small part of tests/eval, so that the evaluation itself is tested."""

import json
import os
import sys
import tempfile

from lib import paths, scenario

sys.path.append(os.path.join(paths.TOP, "tests", "eval"))


# Not "timing": each transfer takes that lock itself.
@scenario("eval-smoke", "the evaluation: channels, runs end to end and split, resuming, report")
def eval_smoke(t):
    # pylint: disable=import-error,import-outside-toplevel
    from evallib import report
    from evallib.channel import mean_mbps, trace
    from evallib.path import transfer
    from evallib.session import Session
    from studies import mmwave
    with tempfile.TemporaryDirectory(prefix="edgepep-lab-") as folder:
        s = Session("smoke", folder, "quick")
        times = {"server": "cubic", "seconds": 2.5, "omit": 1.0, "seed": 1}
        got = {mode: s.run(f"mmwave {mode}", transfer, **mmwave.links(), mode=mode, **times)
               for mode in ("e2e", "split")}
        gain = got["split"]["goodput_mbps"] / got["e2e"]["goodput_mbps"]
        t.data["gain"] = gain
        t.check("split is far ahead on a lossy radio link", gain >= 4, f"{gain:.1f} x")
        path = trace(folder, "eva", "lte", "--profile=eva", "--scale=0.3", "--time=6")
        radio = {"rtt": "20ms", "buffer": "200KB", "down": {"trace": path},
                 "up": {"rate": "10Mbit"}}
        lte = s.run("lte split", transfer, radio=radio, core={"rate": "100Mbit", "rtt": "20ms"},
                    mode="split", **times)
        most = mean_mbps(path)
        t.check("a trace's rate bounds the goodput", 0.4 * most < lte["goodput_mbps"] < 1.3 * most,
                f"{lte['goodput_mbps']:.1f} of {most:.1f} Mbit/s")
        again = Session("smoke", folder, "quick")
        kept = again.run("mmwave e2e", lambda **_: t.check("a kept run is run again", False),
                         **mmwave.links(), mode="e2e", **times)
        t.equal("a finished run is kept", kept, got["e2e"])
        s.claim("gain", "about 10 x", gain, gain >= 10, "x", 10)
        s.plot("series", "Split", "seconds", "Mbit/s", {"split": got["split"]["series"]})
        result = {"machine": {}, "claims": s.claims, "targets": s.targets, "studies": [s.as_json()]}
        report.write(folder, result, [s])
        with open(os.path.join(folder, "report.html"), encoding="utf-8") as text:
            t.check("the report names the claim", "about 10 x" in text.read())
        with open(os.path.join(folder, "result.json"), encoding="utf-8") as text:
            t.equal("JSON holds every run", len(json.load(text)["studies"][0]["runs"]), 3)
