# SPDX-License-Identifier: GPL-2.0-or-later
"""Who limits: each cause is made, and the verdicts of at least nine tenths of the time must name it.

Causes that leave the paths alone share a lab, causes in a path have one each; all run at the same
time, in both directions, so that a busy gateway is part of what the verdicts have to bear.
"""

import contextlib
import time

from lib import Link, scenario
from lib.ends import Ends, read_all, read_nothing, read_slowly, write_all, write_chunks
from lib.monitor import Monitor
from lib.netns import wait_until

SECONDS, SETTLE = 10, 3
DIRECTIONS = ("downlink", "uplink")
FAST_RADIO = {"rate": "200Mbit", "rtt": "10ms", "buffer": "1BDP"}
FAST_CORE = {"rate": "200Mbit", "rtt": "60ms", "buffer": "1BDP"}


class Watched:
    """A lab with proxy and monitor, and flows whose verdicts are to be looked at."""

    def __init__(self, lab, conf=None):
        self.lab = lab
        self.proxy = lab.start_proxy(conf=conf or {})
        self.monitor = Monitor(lab, self.proxy)
        self.flows = []		# (what, verdict, Ends)

    def add(self, what, verdict, direction, write, read):
        self.flows.append((f"{what}, {direction}", verdict, Ends(self.lab, direction, write, read)))

    def add_both(self, what, verdict, write, read):
        for direction in DIRECTIONS:
            self.add(what, verdict, direction, write, read)

    def cap_hits(self):
        return self.monitor.metrics()["edgepep_relay_cap_hits_total"]

    def watch(self):
        """Asks for the histories, so that the monitor keeps those of slow flows, too."""
        listed = {f["client_port"]: f["id"]
                  for f in self.monitor.json("/api/v1/flows?limit=100")["flows"]}
        for _, _, ends in self.flows:
            ends.id = listed[ends.port]
            self.monitor.flow_limits(ends.id, ends.direction)

    def check(self, t, seconds):
        """The verdicts of the last seconds, one a second; nothing moves in the other direction."""
        idle = []
        for what, verdict, ends in self.flows:
            history = self.monitor.json(f"/api/v1/flows/{ends.id}")["history"]
            told = {d: history[d]["limit"][-seconds:] for d in DIRECTIONS}
            right = told[ends.direction].count(verdict)
            t.data[what] = {"right": right, "of": seconds, "told": told}
            t.check(f"{what}: {verdict} in >= 90 % of the time",
                    right >= 0.9 * seconds == 0.9 * len(told[ends.direction]),
                    f"{right} of {seconds}" + ("" if right == seconds else
                                               ": " + " ".join(told[ends.direction])))
            idle += told["uplink" if ends.direction == "downlink" else "downlink"]
        t.check("idle directions: application in >= 90 % of the time",
                idle.count("application") >= 0.9 * len(idle),
                f"{idle.count('application')} of {len(idle)}")

    def close(self):
        for _, _, ends in self.flows:
            ends.stop()
        self.monitor.close()


@contextlib.contextmanager
def watched(t, *setups):
    """A Watched for each of the {"radio", "core": links, "conf", "sysctl": the gateway's}."""
    with contextlib.ExitStack() as stack:
        labs = [stack.enter_context(t.lab(radio=Link(**setup.get("radio", FAST_RADIO)),
                                          core=Link(**setup.get("core", FAST_CORE))))
                for setup in setups]
        found = []
        for lab, setup in zip(labs, setups):
            lab.gw.sysctl(setup.get("sysctl", {}))	# the daemon looks once a second only
            found.append(Watched(lab, setup.get("conf")))
            stack.callback(found[-1].close)
        yield found


def settle_and_check(t, seconds, *labs):
    time.sleep(SETTLE)
    for lab in labs:
        lab.watch()
    time.sleep(seconds + 1)
    for lab in labs:
        lab.check(t, seconds)


@scenario("mon-limits-ends", "who limits: a receiver that reads slowly or not at all, programs that "
          "write little; right in >= 90 % of the time", timing=True)
def limits_ends(t, seconds=SECONDS):
    with watched(t, {}) as (ends,):
        ends.add_both("a receiver that reads 500 kB/s", "receiver", write_all, read_slowly(500000))
        ends.add_both("a receiver that stopped", "receiver", write_all, read_nothing)
        for size, pause in ((20000, 0.05), (1000, 0.01), (200000, 0.4), (1, 60)):
            ends.add_both(f"{size} bytes each {pause * 1000:.0f} ms", "application",
                          write_chunks(size, pause), read_all)
        settle_and_check(t, seconds, ends)


#: what -> (verdict, links)
PATHS = {
    "slow core": ("wired", {"core": {"rate": "20Mbit", "rtt": "60ms", "buffer": "1BDP"}}),
    "lossy core": ("wired", {"core": {**FAST_CORE, "loss": "0.2%"}}),
    "slow radio": ("wireless", {"radio": {"rate": "20Mbit", "rtt": "10ms", "buffer": "2BDP"}}),
    "lossy radio": ("wireless", {"radio": {"rate": "50Mbit", "rtt": "10ms", "buffer": "2BDP",
                                           "loss": "2%"}}),
}


@scenario("mon-limits-paths", "who limits: slow and lossy radio and core", timing=True)
def limits_paths(t, seconds=SECONDS):
    with watched(t, *(links for _, links in PATHS.values())) as paths:
        for (what, (verdict, _)), path in zip(PATHS.items(), paths):
            path.add_both(what, verdict, write_all, read_all)
        settle_and_check(t, seconds, *paths)


@scenario("mon-limits-proxy", "who limits: the gateway's own window; not its memory, without which "
          "flows go on as fast as their path lets them", timing=True)
def limits_proxy(t, seconds=SECONDS):
    memory = {"relay": {"memory": "1MiB", "buffer-max": "1MiB"}, "workers": 1}
    with watched(t, {"sysctl": {"net.ipv4.tcp_rmem": "4096 131072 131072"}},
                 {**PATHS["slow core"][1], "conf": memory}) as (window, cap):
        window.add_both("our window of 64 KiB", "proxy", write_all, read_all)
        for number in range(24):
            cap.add(f"stalled reader {number}", "receiver", "downlink", write_all, read_nothing)
        wait_until(lambda: cap.cap_hits() > 0, 10, "the memory of all relays is full")
        hits = cap.cap_hits()
        cap.add_both("slow core, without memory", "wired", write_all, read_all)
        settle_and_check(t, seconds, window, cap)
        t.check("the flows went on without memory", cap.cap_hits() > hits + 100, cap.cap_hits() - hits)
