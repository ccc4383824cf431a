# SPDX-License-Identifier: GPL-2.0-or-later
"""Small things that users of such proxies have reported, and hosts that are set up in odd ways."""

import collections
import json
import random
import socket
import threading

from lib import Link, peer, scenario, wait_until
from lib.faults import Faults
from lib.flowtest import FAMILIES, KILO, MEGA, short_links


def _udp_echo(lab, family, port):
    """What a datagram of the client's brings back."""
    with lab.srv.socket(family, socket.SOCK_DGRAM) as server, \
            lab.ue.socket(family, socket.SOCK_DGRAM) as client:
        for sock in (server, client):
            sock.settimeout(5)
        server.bind((lab.srv.addr(family), port))
        client.sendto(b"ping", (lab.srv.addr(family), port))
        octets, sender = server.recvfrom(100)
        server.sendto(octets[::-1], sender)
        return client.recv(100), sender[0]


@scenario("platform-flows", "UDP is left alone, flows are spread over the workers, little unsent is queued "
                            "towards the radio, no buffer is set by hand")
def flows(t):
    faults = Faults()
    with t.lab(radio=Link(rate="20Mbit", rtt="4ms", buffer="512KiB"), core=Link(rtt="40ms")) as lab:
        faults.add("setsockopt", "ENOMEM", arg=socket.SOL_SOCKET << 16 | socket.SO_RCVBUF, share=0)
        faults.add("setsockopt", "ENOMEM", arg=socket.SOL_SOCKET << 16 | socket.SO_SNDBUF, share=0)
        proxy = lab.start_proxy(conf={"leg wireless": {"notsent-lowat": "64KiB"}},
                                wrapper=faults.wrapper)
        for family in FAMILIES:
            for port in (443, 53):
                t.equal(f"IPv{family} UDP port {port}", _udp_echo(lab, family, port),
                        (b"gnip", lab.ue.addr(family)))
        t.equal("the gate has not seen UDP", proxy.counters()["syns"], 0)

        with peer.Listener(lab.srv, 4) as listener:
            # Many clients' ports: those that one client's kernel gives in a row stay together.
            ports = random.Random(26).sample(range(10000, 30000), 64)
            pairs = [peer.pair(lab.ue, listener, source_port=port) for port in ports]
            wait_until(lambda: proxy.counters()["split"] == 64, 5, "all are split")
            workers = collections.Counter(
                f["id"].split("-")[0] for f in proxy.ctl_json("flows", "--limit=100")["flows"])
            t.check("each worker has its part of 64 flows", len(workers) == 2
                    and min(workers.values()) >= 20, dict(workers))
            t.data["flows of each worker"] = dict(workers)
            for ends in pairs:
                for end in ends:
                    end.close()
            wait_until(lambda: proxy.status()["flows"] == 0, 5, "no flow is left")

            client, server = peer.pair(lab.ue, listener)
            octets = peer.data(4 * MEGA)
            received = []
            reader = _in_background(lambda: received.append(client.receive(len(octets))[0]))
            writer = _in_background(lambda: server.send(octets))
            unsent = 0
            while reader.is_alive():
                for flow in proxy.flows():
                    sample = flow["wireless"]["tcp"]    # once a second
                    unsent = max(unsent, sample["notsent_bytes"] if sample else 0)
                reader.join(0.1)
            writer.join()
            t.check("every byte arrives", received == [octets])
            t.data["most unsent bytes"] = unsent
            # One write of up to a pipe's bytes is taken while less than the mark is unsent.
            t.check("little lies unsent in the wireless leg", 0 < unsent <= (64 + 256) * KILO, unsent)
            # One call of either ends the kernel's own tuning of a socket.
            t.equal("calls of SO_RCVBUF and SO_SNDBUF", faults.calls(), 0)
            client.close()
            server.close()


def _in_background(function):
    thread = threading.Thread(target=function, daemon=True)
    thread.start()
    return thread


@scenario("platform-ipv4-only", "a gateway whose IPv6 is disabled: rules and daemon come up, IPv4 is split")
def ipv4_only(t):
    with t.lab(**short_links()) as lab:
        lab.gw.sysctl({"net.ipv6.conf.all.disable_ipv6": 1, "net.ipv6.conf.lo.disable_ipv6": 1})
        proxy = lab.start_proxy()
        with peer.Listener(lab.srv, 4) as listener:
            client, server = peer.pair(lab.ue, listener)
            octets = peer.data(100000)
            t.check("flows work", peer.exchange(client, server, octets)[0] == octets)
            client.close()
            server.close()
        t.equal("split", proxy.counters()["split"], 1)


@scenario("platform-doctor", "doctor finds what the host has against us: bridged frames in the rules, a "
                             "bridge port, offload, too few descriptors; with the cure, exit code 3")
def doctor(t):
    with t.lab(**short_links()) as lab:
        proxy = lab.start_proxy(conf={"max-flows": 2000})

        def find(check, severity, text, cure):
            done = proxy.ctl("doctor", "--json", check=False)
            found = [f for f in json.loads(done.stdout)["findings"] if f["check"] == check]
            t.check(f"{severity}: {text}", any(
                f["severity"] == severity and text in f["text"] and cure in f["fix"]
                for f in found), found)
            return done.returncode

        find("descriptors", "ok", "enough for max-flows 2000", "")
        lab.gw.run(["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups", "prlimit",
                    f"--pid={proxy.process.pid}", "--nofile=1000:"])
        lab.gw.run(["ethtool", "-K", "radio0", "gro", "off"])
        lab.gw.ip("link add br77 type bridge")
        lab.gw.sysctl({"net.bridge.bridge-nf-call-iptables": 1})
        find("descriptors", "warning", "1000 descriptors do not suffice", "LimitNOFILE=4128")
        find("offload", "note", "radio0 does not merge packets", "ethtool -K radio0 gro on")
        code = find("bridge", "warning", "bridge-nf-call-iptables is 1",
                    "bridge-nf-call-iptables=0")
        t.equal("exit code with warnings", code, 1)
        lab.gw.ip("link set core0 master br77")
        code = find("bridge", "error", "core0 is a port of bridge br77", "name 'br77'")
        t.equal("exit code with errors", code, 3)
