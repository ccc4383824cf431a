# SPDX-License-Identifier: GPL-2.0-or-later
"""Pages, video, uploads, and short requests beside a download: end to end and split."""

import statistics
import time

from evallib import path as paths
from evallib import web
from evallib.channel import trace

NAME = "everyday"
TEXT = "pages, video, uploads and mixed use, end to end and split"

#: (result, what is shown, larger is better).
MEASURES = (("page_s", "page load time", False),
            ("download_mbps", "download beside requests", True),
            ("upload_mbps", "upload", True),
            ("request_p50_ms", "short request beside a download", False))


def use(radio, core, server, mode, video_mbps, quick, seed=1):
    """All of it over one lab; medians."""
    radio, core = {**radio, "seed": 10 * seed + 1}, {**core, "seed": 10 * seed + 5}
    result = {}
    with paths.path(radio, core, server, mode, "bbr", ue="cubic") as (lab, proxy):
        web.serve(lab)
        lab.restart_links()
        result["page_s"] = round(statistics.median(
            web.page(lab, seed) for _ in range(3 if quick else 9)), 3)
        lab.restart_links()
        result["stalled_s"] = round(web.video(lab, video_mbps, 4 if quick else 30), 2)
        for upload in (False, True):
            lab.restart_links()
            bulk = paths.Bulk(lab.ue, lab.srv, lab.srv.addr4, upload, port=5001 + upload)
            try:
                time.sleep(1.0)
                first, began = bulk.received, time.monotonic()
                if upload:
                    time.sleep(2.5 if quick else 10)
                else:
                    times = web.interactive(lab, 2.5 if quick else 10)
                    result["request_p50_ms"] = round(statistics.median(times) * 1000, 1)
                    result["request_p95_ms"] = round(times[int(0.95 * len(times))] * 1000, 1)
                rate = (bulk.received - first) * 8 / (time.monotonic() - began) / 1e6
                result["upload_mbps" if upload else "download_mbps"] = round(rate, 3)
            finally:
                bulk.close()
        result["lateness_p99_us"] = paths.lateness(lab)
        if proxy and proxy.counters()["split"] < 10:
            raise RuntimeError("the proxy did not split: " + proxy.log_tail())
    return result


def places(s):
    lte = trace(s.folder, "everyday-lte", "lte", "--profile=eva", "--speed=60", "--sinr=15",
                "--time=20", "--seed=3", "--scale=0.5")
    mmwave = trace(s.folder, "everyday-mmwave", "mmwave", "--los=150", "--people=0.2", "--time=20",
                   "--seed=3")
    yield "lte", {"rtt": "30ms", "buffer": "300KB", "loss": "0.1%", "down": {"trace": lte},
                  "up": {"rate": "8Mbit"}}, 6
    yield "mmwave", {"rtt": "2ms", "buffer": "500KB", "loss": "0.5%", "down": {"trace": mmwave},
                     "up": {"rate": "50Mbit"}}, 15


def study(s):
    core = {"rate": "200Mbit", "rtt": "40ms", "loss": "0.01%", "buffer": "1MB"}
    s.remark("LTE: EVA 60 km/h at 15 dB, half of its rate, 0.1 % loss, 30 ms. mmWave: 150 Mbit/s "
             "in sight, people crossing, 0.5 % loss, 2 ms. Core 40 ms. The server is Python's HTTP "
             "server with persistent connections; a page has 40 objects over 6 connections.")
    for name, radio, mbps in places(s):
        for server in ("cubic", "bbr"):
            got = {}
            for mode in ("e2e", "split"):
                runs = s.repeated(f"{name} {server} {mode}", use, 1 if s.quick else 6, radio=radio,
                                  core=core, server=server, mode=mode, video_mbps=mbps,
                                  quick=s.quick)
                got[mode] = {k: statistics.fmean(r[k] for r in runs) for k in runs[0]}
            where = f"{name}, {server} server"
            for field, text, larger in MEASURES:
                gain = got["split"][field] / got["e2e"][field]
                gain = gain if larger else 1 / gain
                s.claim(f"{where}: {text}, split against end to end",
                        "never worse by more than 3 %", gain, gain >= 0.97, "x better")
                s.target(f"{where}: {text}, split", gain, "x better", ">=", 0.97)
            s.claim(f"{where}: seconds of video stalled, split", "no more than end to end "
                    f"({got['e2e']['stalled_s']:.2f})", got["split"]["stalled_s"],
                    got["split"]["stalled_s"] <= got["e2e"]["stalled_s"] + 0.05, "s")
