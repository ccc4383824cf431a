# SPDX-License-Identifier: GPL-2.0-or-later
"""The lab itself, without a proxy."""

from lib import Link, scenario
from lib.traffic import iperf_bps


@scenario("direct-transfer", "plain forwarding through both links reaches the asked rate",
          timing=True)
def direct_transfer(t):
    with t.lab(radio=Link(rate="500Mbit", rtt="2ms"), core=Link(rate="500Mbit", rtt="20ms")) as lab:
        for family in (4, 6):
            for reverse in (True, False):
                name = f"IPv{family} {'down' if reverse else 'up'} bit/s"
                want = 500e6 * 1448 / 1500
                # The links cannot be faster than asked; a machine that was busy gets a second try.
                for _ in range(2):
                    bps = iperf_bps(lab.srv, lab.ue, lab.srv.addr(family), seconds=3, omit=1,
                                    reverse=reverse)
                    if bps > 0.96 * want:
                        break
                t.data[name] = bps
                t.near(name, bps, want, relative=0.04)
        for role, emulator in lab.emulators.items():
            for direction, stats in emulator.stats().items():
                t.data[f"{role} {direction}"] = stats
                t.check(f"{role} {direction}: packets fit the MTU",
                        stats["max_packet_bytes"] <= 1500, stats["max_packet_bytes"])
                t.equal(f"{role} {direction}: none missed", stats["dropped"]["kernel"], 0)
