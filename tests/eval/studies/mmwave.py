# SPDX-License-Identifier: GPL-2.0-or-later
"""The segmented mmWave study: each segment alone, the whole path, and the whole path split."""

from evallib.path import transfer

NAME = "mmwave"
TEXT = "segments of a lossy 60 GHz path, blockage, and what splitting gives"

# The study's link carried 2500 Mbit/s; its ratios do not depend on the rate, since losses limit it.
RATE = "250Mbit"
RATE_MBPS = 250.0


def links(delay="80ms", loss="1%", core_loss="0.01%"):
    return {"radio": {"rate": RATE, "rtt": "1ms", "loss": loss, "buffer": "1MB"},
            "core": {"rate": RATE, "rtt": delay, "loss": core_loss, "buffer": "2500KB"}}


def median_run(s, key, **settings):
    """One run when it has to be quick, three otherwise; the middle one."""
    runs = s.repeated(key, transfer, 1 if s.quick else 3, **settings)
    return sorted(runs, key=lambda r: r["goodput_mbps"])[len(runs) // 2]


def headline(s, times):
    got = {mode: median_run(s, f"cubic {mode}", **links(), server="cubic", mode=mode, **times)
           for mode in ("e2e", "wired", "wireless", "split")}
    rate = {mode: r["goodput_mbps"] for mode, r in got.items()}
    s.claim("wired segment alone over end to end, 80 ms", "about 10 x", rate["wired"] / rate["e2e"],
            rate["wired"] / rate["e2e"] >= 5, "x", 10)
    s.claim("radio segment alone over end to end, 80 ms", "> 27 x (800 against 30 Mbit/s)",
            rate["wireless"] / rate["e2e"], rate["wireless"] / rate["e2e"] >= 10, "x", 26.7)
    s.claim("split over end to end, cubic server, 80 ms", "about 10 x (expected)",
            rate["split"] / rate["e2e"], rate["split"] / rate["e2e"] >= 10, "x", 10)
    s.target("split over end to end, cubic", rate["split"] / rate["e2e"], "ratio", ">=", 10)
    s.target("split over the slower segment", rate["split"] / min(rate["wired"], rate["wireless"]),
             "ratio", ">=", 0.9)


def other_servers(s, times):
    pairs = {}
    for name, server, upload in (("bbr", "bbr", False), ("upload cubic", "cubic", True)):
        for mode in ("e2e", "split"):
            pairs[name, mode] = median_run(s, f"{name} {mode}", **links(), server=server,
                                           mode=mode, upload=upload, **times)["goodput_mbps"]
    gain = pairs["bbr", "split"] / pairs["bbr", "e2e"]
    s.claim("split over end to end, bbr server", ">= 1 (must not lose)", gain, gain >= 0.97, "x", 1)
    s.target("split over end to end, bbr", gain, "ratio", ">=", 0.97)
    gain = pairs["upload cubic", "split"] / pairs["upload cubic", "e2e"]
    s.claim("split over end to end, upload, cubic UE", "> 1", gain, gain > 1, "x")


def sweeps(s, times):
    columns = {m: [] for m in ("e2e", "split")}
    for ms in ((10, 200) if s.quick else (10, 20, 50, 80, 150, 300)):
        for mode in columns:
            r = median_run(s, f"{ms} ms {mode}", **links(f"{ms}ms"), server="cubic", mode=mode,
                           **times)
            columns[mode].append((ms, r["goodput_mbps"]))
    s.plot("delay", "Download over the wired delay, cubic server", "wired RTT (ms)", "Mbit/s",
           columns, logy=True)
    low, high = columns["e2e"][0][1], columns["e2e"][-1][1]
    s.claim("end to end falls steeply with the wired delay", "steep fall from 10 ms on",
            low / high, low / high >= 2, "x")
    modes = ("e2e", "split") if s.quick else ("e2e", "wireless", "split")
    columns = {m: [] for m in modes}
    for loss in ((0.1, 5) if s.quick else (0.1, 0.5, 1, 2, 5, 10)):
        for mode in modes:
            r = median_run(s, f"loss {loss} {mode}", **links(loss=f"{loss}%"), server="cubic",
                           mode=mode, **times)
            columns[mode].append((loss, r["goodput_mbps"]))
    s.plot("loss", "Download over the radio's loss, cubic server, 80 ms", "loss (%)", "Mbit/s",
           columns, logx=True, logy=True)
    least = min(b[1] / a[1] for a, b in zip(columns["e2e"], columns["split"]))
    s.claim("split beats end to end at every radio loss", "radio segment far above end to end",
            least, least > 1, "x (least)")


def blockage(s):
    """Something in the beam; the published run is at 7 s and 15 s, the quick one is shorter."""
    first, length, whole = (2.0, 1.5, 5.5) if s.quick else (7.0, 3.0, 22.0)
    materials = {"metal": 0.2} if s.quick else {"metal": 0.2, "cardboard": 0.8, "body": 0.5}
    for name, left in materials.items():
        events = [f"at {first:g}s rate {RATE_MBPS * left:g}Mbit for {length:g}s"]
        if not s.quick:
            events.append(f"at 15s rate {RATE_MBPS * left:g}Mbit for {length:g}s")
        series = {}
        for mode, server in (("e2e", "cubic"), ("split", "cubic")):
            r = s.run(f"{name} {mode}", transfer, server=server, mode=mode, seconds=whole - 0.5,
                      omit=0.5, seed=1, core={"rate": RATE, "rtt": "10ms", "buffer": "2500KB"},
                      radio={"rate": RATE, "rtt": "1ms", "buffer": "300KB", "events": events})
            series[mode] = r["series"]
        s.plot(name, f"Blockage by {name}", "seconds", "Mbit/s", series)
        if name == "metal":
            open_, shut, back = (_average(series["split"], *span) for span in (
                (first - 1, first), (first + 0.5, first + length),
                (first + length + 0.5, first + length + 1.5)))
            s.claim("a metal plate takes the rate to a fifth (split)", "-80 %", shut / open_,
                    0.15 <= shut / open_ <= 0.25, "of the rate", 0.2)
            s.claim("the rate returns at once behind it (split)", "instant recovery",
                    back / open_, back / open_ >= 0.9, "of the rate within 1 s", 1)


def _average(series, start, end):
    values = [mbps for t, mbps in series if start < t <= end + 1e-9]
    return sum(values) / max(1, len(values))


def study(s):
    times = {"seconds": 3.0, "omit": 1.5} if s.quick else {"seconds": 12.0, "omit": 4.0}
    s.remark(f"Rates are a tenth of the study's ({RATE} in place of 2500), losses per packet that "
             "fits the MTU. The gateway sends to the UE with bbr.")
    headline(s, times)
    other_servers(s, times)
    sweeps(s, times)
    blockage(s)
