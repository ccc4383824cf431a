# SPDX-License-Identifier: GPL-2.0-or-later
"""What doctor says about SYNs of its own that come in from the radio side."""

import json

from lib import paths, peer, scenario
from lib.flowtest import short_links


def _doctor(proxy):
    """Exit code, and what was found of the test SYNs as (severity, text, fix)."""
    done = proxy.ctl("doctor", "--json", check=False)
    return done.returncode, [(f["severity"], f["text"], f["fix"]) for f in
                             json.loads(done.stdout)["findings"] if f["check"] == "syn"]


@scenario("doctor-syn", "doctor lets SYNs in through the wireless interface: they reach the gate, or it "
                        "names what is before it")
def doctor_syn(t):
    with t.lab(**short_links()) as lab:
        proxy = lab.start_proxy()
        for when in ("fresh", "reloaded"):
            _, found = _doctor(proxy)
            t.equal(f"{when}: they reach the gate", [s for s, _, _ in found], ["ok", "ok"])
            proxy.ctl("rules", "up")
        t.equal("they are bypassed, counted as what they are",
                proxy.counters()["bypassed"]["malformed"], 64)
        with peer.Listener(lab.srv, 4) as listener:
            client, server = peer.pair(lab.ue, listener)
            t.check("clients are served", peer.exchange(client, server, b"c" * 1000)[0] == b"c" * 1000)
            client.close()
            server.close()

        with t.group("a rule before ours"):
            rule = ["PREROUTING", "-i", "radio0", "-p", "tcp", "-s", "198.51.100.0/24", "-j", "DROP"]
            lab.gw.run(["iptables", "-t", "raw", "-I", *rule])
            code, found = _doctor(proxy)
            lab.gw.run(["iptables", "-t", "raw", "-D", *rule])
            t.equal("severities, IPv4 and IPv6", [s for s, _, _ in found], ["error", "ok"])
            t.equal("exit code", code, 3)
            t.check("the cure names the place", found and "raw PREROUTING" in found[0][2], found)

        with t.group("no BPF for it"):
            done = lab.gw.run(["setpriv", "--bounding-set=-all,+net_admin,+net_raw,+dac_override",
                               "--inh-caps=-all", paths.program("edgepepctl"), "-c",
                               proxy.conf_path, "doctor", "--json"], check=False)
            found = [f for f in json.loads(done.stdout)["findings"] if f["check"] == "syn"]
            t.equal("it says so, as a note", {f["severity"] for f in found}, {"note"})
            t.check("and why", all("not permitted" in f["text"] for f in found), found)
