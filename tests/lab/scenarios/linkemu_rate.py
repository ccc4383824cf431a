# SPDX-License-Identifier: GPL-2.0-or-later
"""linkemu's transmitter against what was asked, by counters of the receiving interface."""

import os
import tempfile

from lib import Link, scenario, wait_until
from lib.traffic import Iperf, Probes, measured_rate, quantile


def _standing_queue(lab, direction):
    emulator = lab.emulators["radio"]
    wait_until(lambda: emulator.stats()[direction]["backlog_bytes"] > 3000, 5, "standing queue")


@scenario("linkemu-rate", "rates of 1 to 200 Mbit/s, each direction, are kept within 2 %",
          timing=True)
def linkemu_rate(t):
    for mbit, seconds in ((1, 3), (10, 2), (100, 2), (200, 2)):
        rate = f"{mbit}Mbit"
        with t.lab(radio=Link(rate=rate, buffer="200KB")) as lab:
            for direction, sender, receiver, interface in (
                    ("up", lab.ue, lab.srv, "core0"), ("down", lab.srv, lab.ue, "radio0")):
                load = Iperf(receiver, sender, receiver.addr(4), seconds=seconds + 1,
                             udp=f"{mbit * 1.2}M")
                _standing_queue(lab, direction)
                got = measured_rate(receiver, interface, seconds)
                load.stop()
                t.near(f"{rate} {direction}", got, mbit * 1e6, relative=0.02)
                t.data[f"{rate} {direction}"] = got


def _trace_lines():
    """One second: 5 packets each 20 ms in the first half, one each 20 ms in the second."""
    for ms in range(20, 1001, 20):
        yield from [ms] * (5 if ms <= 500 else 1)


@scenario("linkemu-trace", "a trace in the Mahimahi format is followed, packet by packet",
          timing=True)
def linkemu_trace(t):
    with tempfile.TemporaryDirectory(prefix="edgepep-lab-") as folder:
        path = os.path.join(folder, "steps.trace")
        with open(path, "w", encoding="ascii") as out:
            out.writelines(f"{ms}\n" for ms in _trace_lines())
        with t.lab(radio=Link(trace=path, buffer="10MB")) as lab:
            start = lab.emulators["radio"].restart()
            probes = Probes(lab.ue, lab.srv, count=360, interval=0, length=1500).wait()
        times = sorted(at - start for at in probes.received.values())
        t.equal("every packet arrives", len(times), 360)
        # Packets always wait, so each opportunity carries one.
        lines = list(_trace_lines())
        due = [ms / 1000 + period for period in range(3) for ms in lines][:360]
        late = [(at - want) * 1000 for at, want in zip(times, due)]
        t.check("none leaves before its opportunity", min(late) > -0.2, f"{min(late):.3f} ms")
        t.check("each leaves within 1 ms of it (p95)", quantile(late, 0.95) < 1,
                f"p50 {quantile(late, 0.5):.3f}, p95 {quantile(late, 0.95):.3f}, "
                f"max {max(late):.3f} ms")
        t.near("the period repeats: packets in 2 s", sum(at < 2.01 for at in times), 300, absolute=3)
        t.check("in order", probes.in_order())


@scenario("linkemu-blockage", "scripted blockage and rate change come when asked", timing=True)
def linkemu_blockage(t):
    link = Link(rate="20Mbit", delay="5ms", events=("at 1s block for 300ms",
                                                    "at 2s rate 5Mbit for 500ms"))
    with t.lab(radio=link) as lab:
        start = lab.emulators["radio"].restart()
        probes = Probes(lab.ue, lab.srv, count=2500, interval=0.0012, length=1500).wait()
        after = lab.emulators["radio"].stats()["up"]
    times = sorted(at - start for at in probes.received.values())

    def arrivals(low, high):
        return sum(low <= at < high for at in times)
    t.equal("no packet is lost", len(times), 2500)
    t.near("packets/s before", arrivals(0.2, 0.9) / 0.7, 1 / 0.0012, relative=0.02)
    t.equal("packets while blocked", arrivals(1.008, 1.304), 0)
    t.near("packets/s of the backlog after", arrivals(1.31, 1.5) / 0.19, 20e6 / 12000,
           relative=0.03)
    t.near("packets/s at the lower rate", arrivals(2.01, 2.5) / 0.49, 5e6 / 12000, relative=0.03)
    t.check("in order", probes.in_order())
    t.data["lateness_us"] = after["lateness_us"]
