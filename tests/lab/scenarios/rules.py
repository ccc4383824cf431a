# SPDX-License-Identifier: GPL-2.0-or-later
"""Steering rules leave the gateway as they found it."""

import os
import re

from lib import scenario
from lib.flowtest import VARIANTS, each_variant

_COMMANDS = (
    ("iptables-save", "-c"), ("ip6tables-save", "-c"),
    ("ip", "rule"), ("ip", "-6", "rule"),
    ("ip", "route", "show", "table", "all"), ("ip", "-6", "route", "show", "table", "all"),
)
# The kernel changes these by itself.
_MOVING = re.compile(r"netfilter/nf_conntrack_count|random|stable_secret|tcp_fastopen_key")


def _normal(text):
    """Without dates and counters, which move by themselves."""
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    return "\n".join(re.sub(r"\[\d+:\d+\]", "[n:n]", re.sub(r" expires \d+sec", "", line))
                     for line in lines)


def _sysctls():
    """Every network setting of the namespace that the calling thread is in."""
    lines = []
    for folder, _, names in os.walk("/proc/sys/net"):
        for name in names:
            path = os.path.join(folder, name)
            if _MOVING.search(path):
                continue
            try:
                with open(path, encoding="ascii", errors="replace") as text:
                    lines.append(f"{path[14:]} {text.read().strip()}")
            except OSError:
                continue
    return "\n".join(sorted(lines))


def snapshot(host):
    """Everything that `rules up` may change."""
    facts = {" ".join(c): _normal(host.run(list(c)).stdout) for c in _COMMANDS}
    facts["ipset"] = host.run(["ipset", "list"], check=False).stdout \
        if host.run(["sh", "-c", "command -v ipset"], check=False).returncode == 0 else ""
    facts["sysctl"] = host.call(_sysctls)
    return facts


def _same(t, name, before, after):
    for key in before:
        if before[key] == after[key]:
            t.check(f"{name}: {key}", True)
            continue
        old, new = set(before[key].splitlines()), set(after[key].splitlines())
        t.check(f"{name}: {key}", False,
                f"gone: {sorted(old - new)[:3]}, new: {sorted(new - old)[:3]}")


@each_variant("rules-identity", "rules up and down leave tables, routes and sysctls as they were")
def identity(t, variant):
    with t.lab(**VARIANTS[variant]) as lab:
        gw = lab.gw
        # Rules and marks of somebody else, which must survive.
        for table in ("iptables", "ip6tables"):
            gw.run([table, "-t", "mangle", "-A", "PREROUTING", "-i", "core0", "-j", "MARK",
                    "--set-xmark", "0x1/0xff"])
            gw.run([table, "-t", "filter", "-N", "OTHERS"])
            gw.run([table, "-t", "filter", "-A", "FORWARD", "-j", "OTHERS"])
            gw.run([table, "-t", "raw", "-A", "PREROUTING", "-p", "udp", "-j", "ACCEPT"])
            gw.run([table, "-t", "mangle", "-L", "-n"])
            gw.run([table, "-t", "filter", "-L", "-n"])
        gw.ip(["rule add fwmark 0x2/0xff lookup 99 priority 99",
               "route add 10.77.0.0/16 via 10.3.0.2 table 99"])
        before = snapshot(gw)
        proxy = lab.start_proxy(rules=False, daemon=False)
        t.equal("up", proxy.ctl("rules", "up").returncode, 0)
        up = snapshot(gw)
        t.check("up changes something", up != before)
        t.equal("up again", proxy.ctl("rules", "up").returncode, 0)
        _same(t, "up twice", up, snapshot(gw))
        t.equal("down", proxy.ctl("rules", "down").returncode, 0)
        _same(t, "down", before, snapshot(gw))
        t.equal("down again", proxy.ctl("rules", "down", check=False).returncode, 0)
        _same(t, "down twice", before, snapshot(gw))
        printed = proxy.ctl("rules", "print").stdout
        t.check("print shows the rules", "TPROXY" in printed and "NFQUEUE" in printed)
        _same(t, "print changes nothing", before, snapshot(gw))
        # A crash in between: the state file is gone, the rules are there.
        proxy.ctl("rules", "up")
        gw.run(["sh", "-c", f"rm -f {proxy.run_dir}/rules.state"])
        t.equal("up over rules of a crashed run", proxy.ctl("rules", "up").returncode, 0)
        proxy.ctl("rules", "down")
        after = snapshot(gw)
        for key in ("iptables-save -c", "ip6tables-save -c", "ip rule", "ip -6 rule"):
            _same(t, "down after a crash", {key: before[key]}, after)


@scenario("rules-errors", "wrong interface, wrong configuration: one clear line and exit code 2")
def errors(t):
    with t.lab() as lab:
        proxy = lab.start_proxy(rules=False, daemon=False)
        before = snapshot(lab.gw)
        for name, change, wants in (
                ("no such interface", {"wireless-interfaces": ["nope0"]},
                 ("nope0", "edgepep.conf: wireless-interfaces")),
                ("unknown key", {"wireless-interfacez": ["radio0"]},
                 ("wireless-interfacez", "edgepep.conf:")),
                ("bad value", {"accept": "perhaps"},
                 ("perhaps", "verified", "edgepep.conf:"))):
            saved = proxy.values
            proxy.write_conf(change)
            done = proxy.ctl("rules", "up", check=False)
            t.equal(f"{name}: exit code", done.returncode, 2)
            lines = done.stderr.strip().splitlines()
            t.check(f"{name}: one line", len(lines) == 1, done.stderr.strip()[:200])
            for want in wants:
                t.check(f"{name}: says {want}", want in done.stderr, done.stderr.strip()[:200])
            proxy.values = saved
            proxy.write_conf()
        _same(t, "nothing changed", before, snapshot(lab.gw))
