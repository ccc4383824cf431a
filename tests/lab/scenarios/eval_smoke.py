# SPDX-License-Identifier: GPL-2.0-or-later
"""A small part of tests/eval, so that the evaluation itself is tested."""

import json
import os
import shutil
import sys
import tempfile

from lib import paths, scenario

sys.path.append(os.path.join(paths.TOP, "tests", "eval"))


def _runs(t, s, transfer, mmwave, times):
    """On a lossy radio link, end to end and split."""
    got = {mode: s.run(f"mmwave {mode}", transfer, **mmwave.links(), mode=mode, **times)
           for mode in ("e2e", "split")}
    gain = got["split"]["goodput_mbps"] / got["e2e"]["goodput_mbps"]
    t.data["gain"] = gain
    t.check("split is far ahead on a lossy radio link", gain >= 4, f"{gain:.1f} x")
    return got, gain


def _beside(t, s, transfer, times, channel):
    """Two runs beside each other over a trace."""
    path = channel.trace(s.folder, "eva", "lte", "--profile=eva", "--scale=0.3", "--time=6")
    radio = {"rtt": "20ms", "buffer": "200KB", "down": {"trace": path}, "up": {"rate": "10Mbit"}}
    cells = {mode: (transfer, {"radio": radio, "core": {"rate": "100Mbit", "rtt": "20ms"},
                               "mode": mode, **times}) for mode in ("e2e", "split")}
    most = channel.mean_mbps(path)
    for mode, result in s.batch(cells).items():
        t.check(f"a trace's rate bounds the goodput, {mode}, beside another",
                0.4 * most < result["goodput_mbps"] < 1.3 * most,
                f"{result['goodput_mbps']:.1f} of {most:.1f} Mbit/s")


def _verdicts(t, figures):
    t.equal("a mean within bounds", figures.Value(1.0, 1.1).verdict(None, 3), "reproduced")
    t.equal("a mean outside", figures.Value(0.5, 0.51, 0.52).verdict(0.97, None), "MISSED")
    t.equal("an interval over the bound", figures.Value(0.9, 1.1).verdict(0.97, None), "unclear")
    value = figures.Value(2.0, 4.0, 8.0, geometric=True)
    t.near("a mean of ratios", value.mean, 4.0, relative=1e-9)
    t.check("whose interval stays above nothing", 0 < value.ci[0] < 4 < value.ci[1], value.ci)


# Not "timing": each transfer takes that lock itself.
@scenario("eval-smoke", "the evaluation: channels, runs end to end and split, resuming, report")
def eval_smoke(t):
    # pylint: disable=import-error,import-outside-toplevel
    from evallib import channel, figures, report
    from evallib.path import transfer
    from evallib.session import Session
    from studies import mmwave
    _verdicts(t, figures)
    with tempfile.TemporaryDirectory(prefix="edgepep-lab-") as folder:
        s = Session("smoke", folder, "quick")
        times = {"server": "cubic", "seconds": 2.0, "omit": 1.0, "seed": 1}
        got, gain = _runs(t, s, transfer, mmwave, times)
        _beside(t, s, transfer, times, channel)
        again = Session("smoke", folder, "quick")
        kept = again.run("mmwave e2e", lambda **_: t.check("a kept run is run again", False),
                         **mmwave.links(), mode="e2e", **times)
        t.equal("a finished run is kept", kept, got["e2e"])
        s.claim("gain", "about 10 x", gain, low=10, unit="x", number=10)
        s.plot("series", "Split", "seconds", "Mbit/s", {"split": got["split"]["series"]})
        s.heat("map", "Map", (1, 2), (3, 4), {"a": [[1, 2], [3, 4]]})
        result = {"machine": {}, "claims": s.claims, "targets": s.targets, "studies": [s.as_json()]}
        report.write(folder, result, [s])
        with open(os.path.join(folder, "report.html"), encoding="utf-8") as text:
            page = text.read()
        t.check("the report names the claim", "about 10 x" in page)
        if shutil.which("gnuplot"):
            t.equal("the report shows both plots", page.count("data:image/png;base64,"), 2)
        with open(os.path.join(folder, "result.json"), encoding="utf-8") as text:
            t.equal("JSON holds every run", len(json.load(text)["studies"][0]["runs"]), 4)
