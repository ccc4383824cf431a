# SPDX-License-Identifier: GPL-2.0-or-later
"""linkemu's delays, by the clock of sender and receiver, which is one."""

import statistics

from lib import Link, scenario
from lib.traffic import Iperf, Probes, quantile


def _within(t, name, delays, want_ms):
    """Judged at p95: the last few percent also show what else the machine had to do."""
    p1, p50, p95, p99 = (quantile(delays, q) * 1000 for q in (0.01, 0.5, 0.95, 0.99))
    t.check(name, want_ms <= p1 and p50 <= want_ms + 0.5 and p95 <= want_ms + 1,
            f"p1 {p1:.3f}, p50 {p50:.3f}, p95 {p95:.3f}, p99 {p99:.3f} ms, want {want_ms:g} to "
            f"{want_ms + 1:g}")
    t.data[name] = {"p1_ms": p1, "p50_ms": p50, "p95_ms": p95, "p99_ms": p99}


@scenario("linkemu-delay", "one-way delay is exact within 1 ms, idle and beside 200 Mbit/s",
          timing=True)
def linkemu_delay(t):
    for delay in (0.5, 10, 100):
        with t.lab(radio=Link(delay=f"{delay}ms")) as lab:
            for family in (4, 6):
                probes = Probes(lab.ue, lab.srv, family, count=200, interval=0.003)
                _within(t, f"{delay:g} ms, IPv{family} up", probes.delays(), delay)
            _within(t, f"{delay:g} ms, IPv4 down",
                    Probes(lab.srv, lab.ue, count=200, interval=0.003).delays(), delay)
    with t.lab(radio=Link(rate="1Gbit", delay="20ms"), core=Link(rate="1Gbit", delay="5ms")) as lab:
        load = Iperf(lab.srv, lab.ue, lab.srv.addr(4), seconds=4, udp="200M",
                     extra=("--pacing-timer", "100"))
        probes = Probes(lab.ue, lab.srv, count=800, interval=0.003)
        _within(t, "25 ms on two links, beside 200 Mbit/s", probes.delays(), 25)
        load.stop()


@scenario("linkemu-jitter", "jitter has the asked size and keeps packets in order", timing=True)
def linkemu_jitter(t):
    for kind, deviation in (("uniform", 5 / 3 ** 0.5), ("normal", 5)):
        with t.lab(radio=Link(delay="30ms", jitter=f"5ms:{kind}")) as lab:
            # So far apart that no packet waits for the one before.
            probes = Probes(lab.ue, lab.srv, count=160, interval=0.03)
            delays = [d * 1000 for d in probes.delays()]
            t.near(f"{kind}: mean of the delay in ms", statistics.mean(delays), 30, absolute=1.2)
            t.near(f"{kind}: deviation in ms", statistics.stdev(delays), deviation, relative=0.2)
            if kind == "uniform":
                t.check("uniform: within its bounds", 25 <= min(delays) and max(delays) <= 36,
                        f"{min(delays):.2f} to {max(delays):.2f} ms")
            dense = Probes(lab.ue, lab.srv, count=3000, interval=0.0002)
            t.check(f"{kind}: dense traffic stays in order", dense.in_order())
            t.equal(f"{kind}: nothing is lost", len(dense.lost()), 0)
