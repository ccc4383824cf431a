# SPDX-License-Identifier: GPL-2.0-or-later
"""The segmented mmWave study: each segment alone, the whole path, and the whole path split."""

from evallib.figures import Value, average, mean, mean_value, point, ratio
from evallib.path import transfer

NAME = "mmwave"
TEXT = "segments of a lossy 60 GHz path, blockage, and what splitting gives"

# The study's link carried 2500 Mbit/s; its ratios do not depend on the rate, since losses limit it.
RATE = "250Mbit"
RATE_MBPS = 250.0
#: (server's control, upload): the gain is to be largest for cubic servers.
ENDS = (("cubic", False), ("bbr", False), ("cubic", True), ("bbr", True))


def links(delay="80ms", loss="1%", core_loss="0.01%"):
    return {"radio": {"rate": RATE, "rtt": "1ms", "loss": loss, "buffer": "1MB"},
            "core": {"rate": RATE, "rtt": delay, "loss": core_loss, "buffer": "2500KB"}}


def _name(server, upload):
    return f"{'upload' if upload else 'download'}, {server} {'UE' if upload else 'server'}"


def repetitions(s, key, few=False, **settings):
    """A cell with every seed, one after the other: 250 Mbit/s fill the machine.

    few: one of a whole curve, of which the middle size takes one seed.
    """
    return [s.run(f"{key} seed {seed}", transfer, seed=seed, **settings)
            for seed in range(1, s.pick(1, 1 if few else 2, 6) + 1)]


def headline(s, times):
    got = {mode: repetitions(s, f"cubic {mode}", **links(), server="cubic", mode=mode, **times)
           for mode in ("e2e", "wired", "wireless", "split")}
    s.remark("80 ms wired with 0.01 %, 1 ms radio with 1 %, cubic: " + ", ".join(
        f"{mode} {mean_value(runs)} Mbit/s" for mode, runs in got.items())
        + " (published: end to end about 30, wired > 300, radio > 800 of 2500).")
    s.claim("wired segment alone over end to end, 80 ms", "about 10 x",
            ratio(got["wired"], got["e2e"]), low=5, unit="x", number=10)
    s.claim("radio segment alone over end to end, 80 ms", "> 27 x (800 against 30 Mbit/s)",
            ratio(got["wireless"], got["e2e"]), low=10, unit="x", number=26.7)
    gain = ratio(got["split"], got["e2e"])
    s.claim("split over end to end, cubic server, 80 ms", "about 10 x (expected)", gain, low=10,
            unit="x", number=10)
    s.target("split over end to end, cubic", gain, "ratio", ">=", 10)
    least = [min(w["goodput_mbps"], r["goodput_mbps"])
             for w, r in zip(got["wired"], got["wireless"])]
    share = Value(*(x["goodput_mbps"] / y for x, y in zip(got["split"], least)))
    s.claim("split over the slower segment alone", "(ours) >= 0.9", share, low=0.9, unit="x")
    s.target("split over the slower segment", share, "ratio", ">=", 0.9)


def bursts(s, times):
    """As netem loses: a whole GSO packet, about 15 segments, at once."""
    path = links()
    for link, share in (("radio", "0.067%:6.7%"), ("core", "0.00067%:6.7%")):
        path[link] = {k: v for k, v in path[link].items() if k != "loss"} | {"burst": share}
    got = {mode: repetitions(s, f"bursts cubic {mode}", **path, server="cubic", mode=mode, **times)
           for mode in ("e2e", "split")}
    s.claim("losses of 15 packets at once (netem on GSO packets): end to end", "about 30 Mbit/s",
            mean_value(got["e2e"]), low=15, high=60, unit="Mbit/s", number=30)
    s.claim("losses of 15 packets at once: split over end to end", "about 10 x (expected)",
            ratio(got["split"], got["e2e"]), low=5, unit="x", number=10)


def other_ends(s, times):
    for server, upload in ENDS[1:]:
        got = {mode: repetitions(s, f"{_name(server, upload)} {mode}", **links(), server=server,
                                 mode=mode, upload=upload, **times) for mode in ("e2e", "split")}
        gain = ratio(got["split"], got["e2e"])
        s.claim(f"split over end to end, {_name(server, upload)}", ">= 1 (must not lose)"
                if server == "bbr" else "> 1", gain, low=0.97, unit="x", number=1)
        s.target(f"split over end to end, {_name(server, upload)}", gain, "ratio", ">=", 0.97)
        if server == "bbr" and upload:
            other = repetitions(s, "upload, bbr UE split, bbr to the server", **links(),
                                server=server, mode="split", upload=True, wired="bbr", **times)
            s.claim("the same, with bbr in place of cubic from the gateway to the server",
                    ">= 1 (must not lose)", ratio(other, got["e2e"]), low=0.97, unit="x", number=1)


def _sweep(s, times, ends, xs, setting, fixed):
    """{mode: [(x, Mbit/s, CI)]}; a segment that a setting does not touch is measured once."""
    server, upload = ends
    columns = {}
    for mode in s.pick(("e2e", "split"), ("e2e", "wired", "wireless", "split"),
                       ("e2e", "wired", "wireless", "split")):
        if upload and mode in ("wired", "wireless"):
            continue
        for x in xs[:1] if mode == fixed else xs:
            runs = repetitions(s, f"{_name(server, upload)} {setting(x)} {mode}", few=True,
                               **links(**setting(x)), server=server, mode=mode, upload=upload,
                               **times)
            columns.setdefault(mode, []).append(point(x, runs))
        if mode == fixed:
            columns[mode] = [(x, *columns[mode][0][1:]) for x in xs]
    return columns


def sweeps(s, times):
    delays = s.pick((10, 300), (10, 80, 300), (10, 20, 50, 80, 150, 300))
    lost = s.pick((0.1, 10), (0.1, 1, 10), (0.1, 0.5, 1, 2, 5, 10))
    for ends in s.pick(ENDS[:1], ENDS[:1], ENDS):
        columns = _sweep(s, times, ends, delays, lambda ms: {"delay": f"{ms}ms"}, "wireless")
        s.plot("delay-" + "-".join(("up" if ends[1] else "down", ends[0])),
               f"Wired delay: {_name(*ends)}, 1 % radio loss", "wired RTT (ms)", "Mbit/s", columns,
               logx=True, logy=True)
        name = _name(*ends)
        if ends == ENDS[0]:
            low, high = columns["e2e"][0][1], columns["e2e"][-1][1]
            s.claim("end to end falls steeply with the wired delay, 10 to 300 ms",
                    "steep fall from 10 ms on", low / high, low=2, unit="x")
        _least(s, f"{name}: split over end to end, every wired delay", columns, ends)
        columns = _sweep(s, times, ends, lost, lambda p: {"loss": f"{p}%"}, "wired")
        s.plot("loss-" + "-".join(("up" if ends[1] else "down", ends[0])),
               f"Radio loss: {name}, 80 ms wired", "loss (%)", "Mbit/s", columns, logx=True,
               logy=True)
        _least(s, f"{name}: split over end to end, every radio loss", columns, ends)


def _least(s, text, columns, ends):
    least = min(b[1] / a[1] for a, b in zip(columns["e2e"], columns["split"]))
    bound = 0.97 if ends[0] == "bbr" else 1
    s.claim(text, "must not lose" if ends[0] == "bbr" else "radio segment far above end to end",
            least, low=bound, unit="x (least)")


def blockage(s):
    """Something in the beam at 7 s and 15 s; the quick one is shorter."""
    first, length, whole = s.pick((2.0, 1.5, 5.5), (7.0, 3.0, 22.0), (7.0, 3.0, 22.0))
    materials = s.pick({"metal": 0.2}, {"metal": 0.2, "cardboard": 0.8, "body": 0.5},
                       {"metal": 0.2, "cardboard": 0.8, "body": 0.5})
    for name, left in materials.items():
        events = [f"at {at:g}s rate {RATE_MBPS * left:g}Mbit for {length:g}s"
                  for at in s.pick((first,), (first, 15), (first, 15))]
        series = {}
        for mode in ("e2e", "split"):
            r = s.run(f"{name} {mode}", transfer, server="cubic", mode=mode, seconds=whole - 0.5,
                      omit=0.5, seed=1, core={"rate": RATE, "rtt": "10ms", "buffer": "2500KB"},
                      radio={"rate": RATE, "rtt": "1ms", "buffer": "300KB", "events": events})
            series[mode] = r["series"]
        s.plot(name, f"Blockage by {name}", "seconds", "Mbit/s", series)
        open_, shut, back = (average(series["split"], *span) for span in (
            (first - 1, first), (first + 0.5, first + length),
            (first + length + 0.5, first + length + 1.5)))
        published = {"metal": "-80 %", "cardboard": "less than metal", "body": "less than metal"}
        s.claim(f"{name} in the beam: rate that is left (split)", published[name], shut / open_,
                0.75 * left, 1.25 * left, "of the rate", left)
        s.claim(f"{name} out of the beam: the rate returns at once (split)", "instant recovery",
                back / open_, low=0.9, unit="of the rate within 1 s", number=1)


def ideal(s, times):
    """Nothing is lost: the link is full, split or not."""
    path = links("10ms")
    path = {k: {x: y for x, y in v.items() if x != "loss"} for k, v in path.items()}
    got = {mode: repetitions(s, f"ideal {mode}", **path, server="cubic", mode=mode, **times)
           for mode in ("e2e", "split")}
    s.claim("ideal link, split", "> 2500 Mbit/s, the link's rate", mean(got["split"])
            / (RATE_MBPS * 1448 / 1500), low=0.95, unit="of what the link carries", number=1)
    s.claim("ideal link, split over end to end", "(ours) >= 0.97", ratio(got["split"], got["e2e"]),
            low=0.97, unit="x")


def study(s):
    times = s.pick({"seconds": 3.0, "omit": 1.5}, {"seconds": 4.0, "omit": 2.0},
                   {"seconds": 12.0, "omit": 4.0})
    s.remark(f"Rates are a tenth of the study's ({RATE} in place of 2500), losses per packet that "
             "fits the MTU. The gateway sends to the UE with bbr, to the server with cubic.")
    headline(s, times)
    # In-order bytes jump when a hole closes: by 5 MB, which a short run would take for a rate.
    other_ends(s, s.pick(times, {"seconds": 8.0, "omit": 3.0}, times))
    ideal(s, times)
    sweeps(s, times)
    blockage(s)
    bursts(s, times)
