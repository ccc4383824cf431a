# SPDX-License-Identifier: GPL-2.0-or-later
"""linkemu's losses and buffers, by numbered packets."""

import statistics

from lib import Link, scenario
from lib.traffic import Iperf, Probes, counters, runs


def _share(t, name, lost, count, want):
    """Within four standard deviations of a binomial."""
    t.near(name, lost / count, want, absolute=4 * (want * (1 - want) / count) ** 0.5)


@scenario("linkemu-loss", "random loss has the asked size, for each MTU packet, and obeys the seed")
def linkemu_loss(t):
    count = 15000
    lost = {}
    for seed in (1, 1, 7):
        with t.lab(radio=Link(loss="1%", seed=seed)) as lab:
            now = Probes(lab.ue, lab.srv, count=count, interval=0.00005).lost()
            _share(t, f"seed {seed}: lost share up", len(now), count, 0.01)
            if seed in lost:
                t.check("the same seed loses the same packets", lost[seed] == now,
                        f"{len(now)} lost")
            lost[seed] = now
    t.check("another seed loses others", lost[1] != lost[7])


@scenario("linkemu-loss-gso", "a GSO burst of 64 KB loses single packets, also behind another link")
def linkemu_loss_gso(t):
    with t.lab(radio=Link(loss="2%"), core=Link(loss="2%", seed=9)) as lab:
        before = counters(lab.srv, "core0")
        data = Iperf(lab.srv, lab.ue, lab.srv.addr(4), seconds=2).result()
        octets, packets = (b - a for a, b in zip(before, counters(lab.srv, "core0")))
        links = {role: e.stats()["up"] for role, e in lab.emulators.items()}
    for role, up in links.items():
        t.check(f"{role}: packets fit the MTU", up["max_packet_bytes"] <= 1500,
                up["max_packet_bytes"])
        _share(t, f"{role}: lost share", up["dropped"]["loss"], up["packets_in"], 0.02)
        t.near(f"{role}: mean run of losses", up["dropped"]["loss"] / up["loss_runs"], 1 / 0.98,
               absolute=0.06)
        t.equal(f"{role}: none missed", up["dropped"]["kernel"], 0)
    t.equal("the second link gets what the first lets through", links["core"]["packets_in"],
            links["radio"]["packets_out"])
    # ARP and IPv6 neighbours of the last hop count as well.
    t.check("the server gets what the second lets through",
            0 <= packets - links["core"]["packets_out"] <= 20,
            f"{packets} and {links['core']['packets_out']}")
    t.check("what arrives are single packets", octets / packets <= 1500,
            f"{octets / packets:.0f} bytes")
    t.check("the sender saw the losses", data["end"]["sum_sent"]["retransmits"] > 50)


@scenario("linkemu-burst-loss", "burst loss (Gilbert-Elliott) has the asked share and run length")
def linkemu_burst_loss(t):
    count = 30000
    enter, leave = 0.005, 0.2
    with t.lab(radio=Link(burst="0.5%:20%", seed=3)) as lab:
        lost = Probes(lab.ue, lab.srv, count=count, interval=0.00005).lost()
    lengths = runs(lost)
    want = enter / (enter + leave)
    # Bursts come one by one, so their number has a Poisson spread.
    bursts = count * want * leave
    t.near("lost share", len(lost) / count, want, relative=4 * (2 / bursts) ** 0.5)
    t.near("mean run", statistics.mean(lengths), 1 / leave, relative=4 * (1 / bursts) ** 0.5)
    t.check("long runs occur", max(lengths) >= 12, max(lengths))


@scenario("linkemu-buffer", "drop-tail buffers hold what was asked, in bytes and in BDP")
def linkemu_buffer(t):
    for link in (Link(rate="10Mbit", buffer="100KB"),
                 Link(rate="10Mbit", rtt="40ms", buffer="2BDP")):
        name = f"buffer {link.buffer}"
        with t.lab(radio=link) as lab:
            # All at once; the transmitter takes a few while they come in.
            probes = Probes(lab.ue, lab.srv, count=300, interval=0, length=1500).wait()
            stats = lab.emulators["radio"].stats()["up"]
        took = (probes.sent[-1] - probes.sent[0]) * 10e6 / 8 / 1500
        held = 100000 // 1500
        t.equal(f"{name}: bytes", stats["buffer_bytes"], 100000)
        t.check(f"{name}: packets that passed", held <= len(probes.received) <= held + took + 3,
                f"{len(probes.received)}, want {held} to {held + took + 3:.1f}")
        t.check(f"{name}: dropped at the tail", probes.lost()[0] >= held and
                stats["dropped"]["buffer"] == len(probes.lost()),
                f"first {probes.lost()[0]}, linkemu says {stats['dropped']['buffer']}")
        t.check(f"{name}: never above it", 98500 <= stats["max_backlog_bytes"] <= 100000,
                stats["max_backlog_bytes"])
        delay = 0 if link.rtt is None else 20
        t.near(f"{name}: delay of a full buffer in ms", max(probes.delays()) * 1000,
               100000 * 8 / 10e6 * 1000 + delay, absolute=3)
