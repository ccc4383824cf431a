# SPDX-License-Identifier: GPL-2.0-or-later
"""Pages, video, uploads, and short requests beside a download: end to end and split."""

import statistics
import time

from evallib import path as paths
from evallib import web
from evallib.channel import trace
from evallib.figures import Value, mean, point, values

NAME = "everyday"
TEXT = "pages, video, uploads and mixed use, end to end and split"

#: (result, what is shown, larger is better, its unit).
MEASURES = (("page_s", "page load time", False, "s"),
            ("video_s", "video: time to fetch all chunks", False, "s"),
            ("download_mbps", "download beside requests", True, "Mbit/s"),
            ("upload_mbps", "upload", True, "Mbit/s"),
            ("request_p50_ms", "short request beside a download", False, "ms"))
#: How a path is gone: end to end, or split with the proxy's default towards the UE or another.
WAYS = {"e2e": ("e2e", "bbr"), "split": ("split", "pep_bbr_a"),
        "split, pep_bbr_d": ("split", "pep_bbr_d")}
CORE = {"rate": "200Mbit", "rtt": "40ms", "loss": "0.01%", "buffer": "1MB"}


def use(radio, core, server, way, video_mbps, pages, play, bulk, seed=1):
    """All of it over one lab: page loads, `play` s of video, `bulk` s of transfers."""
    mode, wireless = WAYS[way]
    radio, core = {**radio, "seed": 10 * seed + 1}, {**core, "seed": 10 * seed + 5}
    result = {}
    with paths.path(radio, core, server, mode, wireless) as (lab, proxy):
        web.serve(lab)
        lab.restart_links()
        result["page_s"] = round(statistics.median(
            web.page(lab, seed + n) for n in range(pages)), 3)
        lab.restart_links()
        stalled, fetching = web.video(lab, video_mbps, play)
        result |= {"stalled_s": round(stalled, 2), "video_s": round(fetching, 3)}
        result |= _bulks(lab, bulk)
        result["lateness_p99_us"] = paths.lateness(lab)
        if proxy and proxy.counters()["split"] < 10:
            raise RuntimeError("the proxy did not split: " + proxy.log_tail())
    return result


def _bulks(lab, seconds):
    """A download with short requests beside it, then an upload."""
    result = {}
    for upload in (False, True):
        lab.restart_links()
        bulk = paths.Bulk(lab.ue, lab.srv, lab.srv.addr4, upload, port=5001 + upload)
        try:
            time.sleep(1.0)
            first, began = paths.received(bulk), time.monotonic()
            if upload:
                time.sleep(seconds)
            else:
                times = web.interactive(lab, seconds)
                result["request_p50_ms"] = round(statistics.median(times) * 1000, 1)
                result["request_p95_ms"] = round(times[int(0.95 * len(times))] * 1000, 1)
            rate = (paths.received(bulk) - first) * 8 / (time.monotonic() - began) / 1e6
            result["upload_mbps" if upload else "download_mbps"] = round(rate, 3)
        finally:
            bulk.close()
    return result


def places(s, seed):
    """(name, radio link, rate of the video) of each place."""
    lte = trace(s.folder, f"everyday-lte-{seed}", "lte", "--profile=eva", "--speed=60",
                "--sinr=15", "--time=20", f"--seed={seed}", "--scale=0.5")
    mmwave = trace(s.folder, f"everyday-mmwave-{seed}", "mmwave", "--los=120", "--people=0.2",
                   "--time=20", f"--seed={seed}")
    yield "lte", {"rtt": "30ms", "buffer": "300KB", "loss": "0.1%", "down": {"trace": lte},
                  "up": {"rate": "8Mbit"}}, 6
    yield "mmwave", {"rtt": "2ms", "buffer": "500KB", "loss": "0.5%", "down": {"trace": mmwave},
                     "up": {"rate": "50Mbit"}}, 15


def measure(s):
    """{(place, server, way): [results of the seeds]}."""
    size = s.pick({"pages": 3, "play": 4, "bulk": 2.5}, {"pages": 5, "play": 12, "bulk": 6},
                  {"pages": 9, "play": 30, "bulk": 10})
    got = {}
    for place, beside in (("lte", s.jobs), ("mmwave", min(2, s.jobs))):
        cells, by = {}, {}
        for seed in range(1, s.pick(1, {"lte": 4, "mmwave": 2}[place], 6) + 1):
            radio, mbps = next((r, m) for n, r, m in places(s, seed) if n == place)
            for server in ("cubic", "bbr"):
                for way in WAYS:
                    key = f"{place} {server} {way} seed {seed}"
                    cells[key] = use, {"radio": radio, "core": CORE, "server": server,
                                       "way": way, "video_mbps": mbps, "seed": seed, **size}
                    by.setdefault((place, server, way), []).append(key)
        done = s.batch(cells, beside)
        got |= {place: [done[key] for key in keys] for place, keys in by.items()}
    return got


def compare(s, name, server, got):
    e2e, split, short = (got[name, server, way] for way in WAYS)
    where = f"{name}, {server} server"
    for field, text, larger, unit in MEASURES:
        pairs = zip(values(split, field), values(e2e, field), strict=True)
        gain = Value(*(a / b if larger else b / a for a, b in pairs), geometric=True)
        s.claim(f"{where}: {text}, split against end to end ({mean(split, field):.3g} against "
                f"{mean(e2e, field):.3g} {unit})", "never worse by more than 3 %", gain, low=0.97,
                unit="x better")
        s.target(f"{where}: {text}, split", gain, "x better", ">=", 0.97)
    without = mean(e2e, "stalled_s")
    s.claim(f"{where}: video stalled, split", f"no more than end to end ({without:.2f} s)",
            mean(split, "stalled_s"), high=without + 0.05, unit="s")
    gain = Value(*(a / b for a, b in zip(values(e2e, "request_p50_ms"),
                                         values(short, "request_p50_ms"), strict=True)),
                 geometric=True)
    s.claim(f"{where}: the same request with pep_bbr_d towards the UE "
            f"({mean(short, 'request_p50_ms'):.3g} ms, download {mean(short, 'download_mbps'):.3g} "
            "Mbit/s)", "never worse by more than 3 %", gain, low=0.97, unit="x better")


def study(s):
    s.remark("LTE: EVA 60 km/h at 15 dB, half of its rate, 0.1 % loss, 30 ms. mmWave: 120 Mbit/s "
             "in sight, people crossing, 0.5 % loss, 2 ms. Core 40 ms. The server is Python's HTTP "
             "server with persistent connections; a page has 40 objects over 6 connections; a "
             "video comes in chunks of 1 s, 2 s ahead.")
    got = measure(s)
    for name in ("lte", "mmwave"):
        for server in ("cubic", "bbr"):
            compare(s, name, server, got)
    kinds = [(n, c) for n in ("lte", "mmwave") for c in ("cubic", "bbr")]
    for field, text, _, unit in MEASURES:
        s.plot(field, text, "", unit, {
            way: [point(i, got[*kind, way], field) for i, kind in enumerate(kinds)]
            for way in WAYS},
               ticks=[f"{n}, {c}" for n, c in kinds])
