# SPDX-License-Identifier: GPL-2.0-or-later
"""RTT-adjusted pacing: queueing delay and retransmissions of many BBR flows."""

from evallib.figures import mean_value, ratio
from evallib.path import side_by_side
from evallib.simulator import simulate

NAME = "rtt-pacing"
TEXT = "pep_bbr_d against bbr over bottlenecks, latencies, flow counts and buffers"

CONTROLS = ["bbr", "pep_bbr", "pep_bbr_d"]
FLOWS = (1, 2, 4, 8, 16)
RTTS = (10, 40, 100)


def on_kernel(s, seconds, omit, seeds):
    """{(Mbit/s, ms, flows, BDP): {control: [results of the seeds]}}."""
    wanted = [(20, 20, 4, 5), (20, 20, 4, 0.5)]
    wanted += s.pick([], [(20, 20, 1, 5), (20, 20, 8, 5), (20, 80, 4, 5), (50, 20, 4, 5),
                          (20, 20, 4, 1)],
                     [(20, 20, 1, 5), (20, 20, 8, 5), (20, 80, 4, 5), (50, 20, 4, 5),
                      (20, 20, 4, 1), (20, 80, 4, 0.5), (50, 20, 4, 0.5), (20, 20, 16, 5)])
    places = {}
    for place in wanted:
        rate, rtt, flows, buffer = place
        for seed in range(1, seeds + 1):
            key = f"kernel {rate} Mbit/s, {rtt} ms, {flows} flows, {buffer} BDP seed {seed}"
            places.setdefault(place, {})[key] = side_by_side, {
                "controls": CONTROLS, "flows": flows, "seconds": seconds, "omit": omit,
                "seed": seed,
                "link": {"rate": f"{rate}Mbit", "rtt": f"{rtt}ms", "buffer": f"{buffer}BDP"}}
    return s.batch_by_control(places, CONTROLS)


def kernel_claims(s, kernel):
    for (rate, rtt, flows, buffer), at in kernel.items():
        where = f"{rate} Mbit/s, {rtt} ms, {flows} flow{'s' * (flows > 1)}, {buffer} BDP"
        s.remark(f"{where}: " + "; ".join(
            f"{c} {mean_value(r)} Mbit/s, queue {mean_value(r, 'queue_p50_ms')} ms, "
            f"{mean_value(r, 'retrans_percent')} % sent again" for c, r in at.items()) + ".")
        if buffer < 5:
            s.claim(f"{where}: retransmitted (bbr {mean_value(at['bbr'], 'retrans_percent')})",
                    "< 0.1 %", mean_value(at["pep_bbr_d"], "retrans_percent"), high=0.1,
                    unit="%")
            continue
        delay = ratio(at["pep_bbr_d"], at["bbr"], "queue_p50_ms")
        s.claim(f"{where}: queueing delay over bbr's", "clearly lower", delay, high=0.6, unit="x")
        rate_kept = ratio(at["pep_bbr_d"], at["bbr"])
        s.claim(f"{where}: throughput over bbr's", "very small cost", rate_kept, low=0.97,
                unit="x", number=1)
        if (rate, rtt, flows, buffer) == (20, 20, 4, 5):
            s.target("queueing delay over bbr's, 5 BDP", delay, "ratio", "<=", 0.5)


def simulated(s):
    """Maps over flows and latency, for each bottleneck and a small and a large buffer.

    strict is the form that reproduces the thesis; safe, the default, is for radio links.
    """
    kinds = (("BBR", "pep_bbr", []), ("safe", "pep_bbr_d", []),
             ("strict", "pep_bbr_d", [["param", "pep_bbr_d.rtt-pacing=strict"]]))
    worst = {}
    for rate in s.pick((20,), (10, 20, 50, 100), (10, 20, 50, 100)):
        for buffer in (0.5, 1, 5):
            got = {}
            for name, control, options in kinds:
                for flows in FLOWS:
                    for rtt in RTTS:
                        got[name, flows, rtt] = s.run(
                            f"simulated {name} {rate} Mbit/s, {flows} flows, {rtt} ms, "
                            f"{buffer} BDP",
                            simulate, controls=[control], seeds=s.pick(1, 3, 5), options=[
                                ["flows", str(flows)], ["rtt", f"{rtt}ms"],
                                ["rate", f"{rate}Mbit/s"], ["buffer", f"{buffer}bdp"],
                                ["time", "25s"], ["warmup", "12s"], *options])["controls"][control]
            for field, title in (("queue_p50_ms", "Median queueing delay (ms)"),
                                 ("retrans_percent", "Retransmitted (%)"),
                                 ("goodput_mbps", "Throughput (Mbit/s)")):
                s.heat(f"{field}-{rate}-{buffer}", f"{title}: simulated, {rate} Mbit/s, {buffer} "
                       "BDP", FLOWS, RTTS, {n: [[got[n, f, r][field] for f in FLOWS] for r in RTTS]
                                            for n, _, _ in kinds}, "flows", "RTT (ms)")
            worst[rate, buffer] = got
    _simulated_claims(s, worst)


def _simulated_claims(s, worst):
    large = [got for (_, buffer), got in worst.items() if buffer == 5]
    for name in ("safe", "strict"):
        delays = [got[name, f, r]["queue_p50_ms"] / max(got["BBR", f, r]["queue_p50_ms"], 0.1)
                  for got in large for f in FLOWS for r in RTTS if f > 1]
        kept = [got[name, f, r]["goodput_mbps"] / got["BBR", f, r]["goodput_mbps"]
                for got in large for f in FLOWS for r in RTTS]
        s.claim(f"{name}: queueing delay over BBR's, 5 BDP, mean of the maps, 2 flows and more "
                "(simulated)", "clearly lower", sum(delays) / len(delays), high=0.6, unit="x")
        s.claim(f"{name}: least throughput over BBR's, 5 BDP (simulated)", "very small cost",
                min(kept), low=0.95, unit="x", number=1)
        for small in (0.5, 1):
            again = sorted(got[name, f, r]["retrans_percent"] for (_, buffer), got in worst.items()
                           if buffer == small for f in FLOWS for r in RTTS)
            s.claim(f"{name}: retransmitted, {small} BDP, median of the maps (simulated)",
                    "< 0.1 %", again[len(again) // 2], high=0.1, unit="%")


def study(s):
    s.remark("The thesis' formula is in no copy that was found; safe and strict are two "
             "reconstructions. Kernel: safe, the default.")
    seconds, omit, seeds = s.pick((5.0, 11.0, 1), (12.0, 12.0, 3), (30.0, 12.0, 6))
    kernel_claims(s, on_kernel(s, seconds, omit, seeds))
    simulated(s)
