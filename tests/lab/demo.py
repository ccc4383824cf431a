#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The main job, shown: end to end against split. Called by ./demo after the set-up."""

import argparse
import json
import os
import signal
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
sys.dont_write_bytecode = True

from lib import Lab, Link, paths, radio_trace, state  # noqa: E402
from lib.framework import timing_lock  # noqa: E402
from lib.traffic import Iperf  # noqa: E402

WIRED_CONTROL = "cubic"		# of the gateway towards the server; downloads do not use it


class Case:
    """One path with one server. targets: {name: (function of the result, unit, bound)}."""

    def __init__(self, name, text, server_control, radio, core, targets):
        self.name, self.text, self.server_control = name, text, server_control
        self.radio, self.core, self.targets = radio, core, targets


def cases(folder):
    def gain(r):
        return r["split_bps"] / r["end_to_end_bps"]

    def of_slower(r):
        return r["split_bps"] / min(r["wired_bps"], r["wireless_bps"])
    lte = os.path.join(folder, "lte.trace")
    mean = radio_trace.write_lte(lte)
    mmwave_radio = Link(rate="500Mbit", rtt="1ms", loss="1%", buffer="2MB", seed=11)
    mmwave_core = Link(rate="500Mbit", rtt="80ms", loss="0.01%", buffer="5MB", seed=21)
    return [
        Case("mmwave", "radio 500 Mbit/s, 1 ms, 1 % loss; core 500 Mbit/s, 80 ms, 0.01 % loss",
             "cubic", mmwave_radio, mmwave_core,
             {"split over end to end": (gain, 10),
              "split over the slower segment": (of_slower, 0.9)}),
        Case("mmwave-bbr", "the same path, a server on bbr", "bbr", mmwave_radio, mmwave_core,
             {"split over end to end": (gain, 1)}),
        Case("lte", f"radio by a synthetic LTE trace, mean {mean / 1e6:.1f} Mbit/s, 30 ms, 0.1 % "
             "loss; core 100 Mbit/s, 50 ms, 0.01 % loss", "cubic",
             Link(rtt="30ms", loss="0.1%", buffer="400KB", seed=31,
                  down={"trace": lte}, up={"rate": "10Mbit"}),
             Link(rate="100Mbit", rtt="50ms", loss="0.01%", buffer="625KB", seed=41),
             {"split over end to end": (gain, 1)}),
    ]


def progress(text):
    """A line on stderr, so that stdout has the result only."""
    print(f"demo: {text}", file=sys.stderr, flush=True)


def measure(lab, what, sender, receiver, address, options, control=None):
    """The receiver fetches from the sender; returns bit/s of payload."""
    lab.restart_links()
    data = Iperf(sender, receiver, address, seconds=options.seconds, omit=options.omit,
                 reverse=True, control=control).result()
    bps = data["end"]["sum_received"]["bits_per_second"]
    progress(f"  {what}: {bps / 1e6:.1f} Mbit/s")
    return bps


def run_case(case, options):
    progress(f"case {case.name}: {case.text}; server on {case.server_control}")
    wireless = options.wireless_control
    with timing_lock(), Lab(radio=case.radio, core=case.core,
                            server_control=case.server_control) as lab:
        result = {"name": case.name, "path": case.text}
        result["end_to_end_bps"] = measure(
            lab, "end to end", lab.srv, lab.ue, lab.srv.addr4, options)
        result["wired_bps"] = measure(
            lab, f"wired segment alone ({case.server_control})", lab.srv, lab.gw,
            lab.srv.addr4, options)
        result["wireless_bps"] = measure(
            lab, f"wireless segment alone ({wireless})", lab.gw, lab.ue, lab.gw.addr4,
            options, control=wireless)
        proxy = lab.start_proxy(conf={"leg wireless": {"congestion-control": wireless},
                                      "leg wired": {"congestion-control": WIRED_CONTROL}})
        used = proxy.status()["congestion_control"]
        result["split_bps"] = measure(
            lab, f"split by edgepepd ({case.server_control} + "
            f"{used['wireless']['in_use']})", lab.srv, lab.ue, lab.srv.addr4, options)
        split = proxy.counters()["split"]
        if split < 2:	# iperf3's control connection and the transfer
            raise RuntimeError(f"the proxy split {split} connections, not the transfer; its log: "
                               + proxy.log_tail())
        result["controls"] = {
            "end_to_end": {"server": case.server_control},
            "wired": {"server": case.server_control},
            "wireless": {"gateway": wireless},
            "split": {"server": case.server_control, "gateway": used["wireless"]["in_use"]}}
        result["wireless_control_fallback"] = used["wireless"]["fallback"]
    result["gain"] = result["split_bps"] / result["end_to_end_bps"]
    result["of_slower_segment"] = result["split_bps"] / min(result["wired_bps"],
                                                            result["wireless_bps"])
    targets = [{"name": f"{case.name}: {name}", "value": value(result), "unit": "ratio",
                "target": f">= {bound:g}", "pass": value(result) >= bound}
               for name, (value, bound) in case.targets.items()]
    return result, targets


def mbit(bps):
    return f"{bps / 1e6:.1f}"


def print_table(results, targets):
    """Side by side: what each sender used, and what it reached."""
    rows = [("Mbit/s of payload", *(r["name"] for r in results)),
            ("server uses", *(r["controls"]["end_to_end"]["server"] for r in results)),
            ("gateway uses, to the UE", *(r["controls"]["split"]["gateway"] for r in results)),
            None,
            ("wired segment alone", *(mbit(r["wired_bps"]) for r in results)),
            ("wireless segment alone", *(mbit(r["wireless_bps"]) for r in results)),
            None,
            ("end to end, no proxy", *(mbit(r["end_to_end_bps"]) for r in results)),
            ("split by edgepepd", *(mbit(r["split_bps"]) for r in results)),
            None,
            ("split over end to end", *(f"{r['gain']:.2f} x" for r in results)),
            ("split over slower segment", *(f"{r['of_slower_segment']:.2f}" for r in results))]
    width = 26 + 14 * len(results)
    print()
    for row in rows:
        print("-" * width if row is None else
              f"{row[0]:<26}" + "".join(f"{cell:>14}" for cell in row[1:]))
    print("\nPaths (delays are round trips, losses in each direction):")
    for result in results:
        print(f"  {result['name']}: {result['path']}")
    print("\nTargets:")
    for target in targets:
        print(f"  {'met   ' if target['pass'] else 'MISSED'} {target['name']}: "
              f"{target['value']:.2f}, {target['target']}")


def parse_options(argv):
    parser = argparse.ArgumentParser(
        prog="./demo", description="Builds edgepep and a lab of network namespaces, and runs real "
        "transfers over emulated radio and core links: end to end, each segment alone, and split "
        "by edgepepd. Needs root; installs missing Debian packages.")
    parser.add_argument("--json", action="store_true", help="print the results as JSON")
    parser.add_argument("--quick", action="store_true",
                        help="short transfers: for a look, not for numbers")
    parser.add_argument("--case", action="append", metavar="NAME",
                        help="only this case (mmwave, mmwave-bbr, lte); may be given again")
    parser.add_argument("--wireless-control", metavar="NAME", default="bbr",
                        help="congestion control of the gateway towards the UE (default bbr)")
    parser.add_argument("--seconds", type=int, default=None, help="length of each transfer")
    parser.add_argument("--omit", type=int, default=None,
                        help="seconds left out at the start of each, while it is in slow start")
    options = parser.parse_args(argv)
    options.seconds = options.seconds or (4 if options.quick else 16)
    options.omit = options.omit if options.omit is not None else (2 if options.quick else 4)
    return parser, options


def main(argv):
    parser, options = parse_options(argv)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    results, targets = [], []
    with tempfile.TemporaryDirectory(prefix="edgepep-demo-") as folder:
        chosen = cases(folder)
        unknown = set(options.case or ()) - {c.name for c in chosen}
        if unknown:
            parser.error(f"no case {', '.join(sorted(unknown))}; there are "
                         + ", ".join(c.name for c in chosen))
        try:
            for case in chosen:
                if options.case and case.name not in options.case:
                    continue
                result, met = run_case(case, options)
                results.append(result)
                targets += met
        except paths.Missing as missing:
            print(f"demo: {missing}", file=sys.stderr)
            return 1
        finally:
            state.close()
    if options.json:
        print(json.dumps({"cases": results, "targets": targets, "seconds": options.seconds,
                          "omitted_seconds": options.omit}, indent=1))
    else:
        print_table(results, targets)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
