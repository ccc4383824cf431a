# SPDX-License-Identifier: GPL-2.0-or-later
"""Networks and SYNs that a split does not suit: what is bypassed, for how long, and how it shows."""

import json
import socket
import struct
import threading
import time

from lib import peer, scenario, wait_until
from lib.flowtest import FAMILIES, short_links
from lib.traffic import bytes_sent

_OTHER = {4: "10.5.0.1", 6: "fd00:5::1"}
_TCP_FASTOPEN = 23


def _dislike_gateway(lab):
    """core drops what the gateway itself sends to the servers' prefix: nobody has forwarded it yet."""
    lab.core.run(["iptables", "-t", "raw", "-A", "PREROUTING", "-d", "10.4.0.0/24", "-p", "tcp",
                  "-m", "ttl", "--ttl-eq", "64", "-j", "DROP"])
    lab.core.run(["ip6tables", "-t", "raw", "-A", "PREROUTING", "-d", "fd00:4::/64", "-p", "tcp",
                  "-m", "hl", "--hl-eq", "64", "-j", "DROP"])


def _second_prefix(lab):
    """Servers of another prefix, on the same host."""
    lab.srv.ip(["addr add 10.5.0.1/32 dev lo", "addr add fd00:5::1/128 dev lo nodad"])
    lab.core.ip(["route add 10.5.0.0/24 via 10.4.0.2", "route add fd00:5::/64 via fd00:4::2"])


def _return_round_the_gateway(lab):
    """What the servers' first prefix sends back goes from core straight to radio."""
    lab.core.ip(f"link add back0 type veth peer name back0 netns {lab.radio.name}")
    for host, part in ((lab.radio, 1), (lab.core, 2)):
        host.ip(["link set back0 up", f"addr add 10.6.0.{part}/24 dev back0",
                 f"addr add fd00:6::{part}/64 dev back0 nodad"])
    lab.core.ip(["route add 10.1.0.0/24 via 10.6.0.1 table 77",
                 "route add fd00:1::/64 via fd00:6::1 table 77",
                 "rule add from 10.4.0.0/24 lookup 77"])
    lab.core.run(["ip", "-6", "rule", "add", "from", "fd00:4::/64", "lookup", "77"])


def _connect_all(lab, listener, count):
    """Connects at once; returns the clients' ends and the seconds the slowest took."""
    began, ends = time.monotonic(), []

    def run():
        ends.append(peer.connect(lab.ue, listener.address, listener.port, listener.family,
                                 timeout=20))
    threads = [threading.Thread(target=run, daemon=True) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return ends, time.monotonic() - began


def _move_data(t, listener, ends, octets, downlink):
    """Accepts what the clients' ends belong to, moves data over each, and closes both."""
    by_port = {end.name()[1]: end for end in ends}
    for _ in ends:
        server = listener.accept()
        end = by_port[server.address[1]]
        pair = (server, end) if downlink else (end, server)
        t.check("data", peer.exchange(*pair, octets)[0] == octets)
        end.close()
        server.close()


def _others_are_split(t, lab, proxy, family, octets, downlink):
    """A server of the other prefix."""
    with peer.Listener(lab.srv, family, address=_OTHER[family]) as listener:
        split = proxy.counters()["split"]
        client, server = peer.pair(lab.ue, listener)
        pair = (server, client) if downlink else (client, server)
        t.check("works", peer.exchange(*pair, octets)[0] == octets)
        wait_until(lambda: proxy.counters()["split"] == split + 1, 3, "it is split")
        client.close()
        server.close()


@scenario("probation", "servers that answer the clients but not us: bypassed after three time-outs, "
                       "others are split")
def probation(t):
    with t.lab(**short_links()) as lab:
        _second_prefix(lab)
        proxy = lab.start_proxy(conf={"connect-timeout": "1500ms", "workers": 1})
        _dislike_gateway(lab)
        for family in FAMILIES:
            with t.group(f"IPv{family}"), peer.Listener(lab.srv, family) as listener:
                before = proxy.counters()
                # Each connect times out once; the SYNs sent again find the prefix on probation.
                ends, took = _connect_all(lab, listener, 3)
                t.equal("all connect in the end", len(ends), 3)
                t.check("with their next SYN", took < 9, f"{took:.1f} s")
                after = proxy.counters()
                t.equal("time-outs counted", after["connect_failures"]["timeout"]
                        - before["connect_failures"]["timeout"], 3)
                t.equal("bypasses counted", after["bypassed"]["probation"]
                        - before["bypassed"]["probation"], 3)
                t.equal("none was split", after["split"] - before["split"], 0)
                _move_data(t, listener, ends, b"z" * 50000, downlink=False)
                ends, took = _connect_all(lab, listener, 5)
                t.check("the next ones wait for nobody", took < 1, f"{took:.2f} s")
                t.equal("bypassed", proxy.counters()["bypassed"]["probation"]
                        - before["bypassed"]["probation"], 8)
                for end in ends:
                    end.close()
                line = [l for l in proxy.log().splitlines() if "keep timing out" in l
                        and listener.address in l]
                t.check("told once, with server and seconds", len(line) == 1
                        and "seconds=60" in line[0], line)
            with t.group(f"IPv{family} another prefix"):
                _others_are_split(t, lab, proxy, family, b"w" * 50000, downlink=False)


@scenario("probation-asymmetric", "replies that go round the gateway: the prefix is bypassed and its "
                                  "connections work, visibly; others are split")
def asymmetric(t):
    with t.lab(**short_links()) as lab:
        _second_prefix(lab)
        _return_round_the_gateway(lab)
        proxy = lab.start_proxy(conf={"connect-timeout": "1500ms", "workers": 1})
        for family in FAMILIES:
            with t.group(f"IPv{family}"), peer.Listener(lab.srv, family) as listener:
                before = proxy.counters()
                ends, took = _connect_all(lab, listener, 3)
                t.equal("all connect in the end", len(ends), 3)
                t.check("with a SYN sent again", took < 9, f"{took:.1f} s")
                round_it = bytes_sent(lab.core, "back0")
                _move_data(t, listener, ends, peer.data(50000), downlink=True)
                t.check("replies do go round the gateway",
                        bytes_sent(lab.core, "back0") - round_it > 3 * 50000)
                ends, took = _connect_all(lab, listener, 5)
                t.check("the next ones wait for nobody", took < 1, f"{took:.2f} s")
                for end in ends:
                    end.close()
                after = proxy.counters()
                t.equal("time-outs counted", after["connect_failures"]["timeout"]
                        - before["connect_failures"]["timeout"], 3)
                t.equal("bypasses counted", after["bypassed"]["probation"]
                        - before["bypassed"]["probation"], 8)
                t.equal("none was split", after["split"] - before["split"], 0)
                t.check("told with server and seconds", any(
                    "keep timing out" in line and listener.address in line
                    and "seconds=60" in line for line in proxy.log().splitlines()))
            with t.group(f"IPv{family} a prefix with a straight way back"):
                _others_are_split(t, lab, proxy, family, b"w" * 5000, downlink=True)
        done = proxy.ctl("doctor", "--json", check=False)
        said = [finding["text"] for finding in json.loads(done.stdout)["findings"]]
        t.check("doctor tells it", any("servers kept failing" in text for text in said), said)


@scenario("bypass-fast-open", "SYNs with a TCP Fast Open cookie or data go end to end, data and all")
def fast_open(t):
    with t.lab(**short_links()) as lab:
        lab.srv.sysctl({"net.ipv4.tcp_fastopen": 3})
        lab.ue.sysctl({"net.ipv4.tcp_fastopen": 1, "net.ipv4.tcp_fastopen_blackhole_timeout_sec": 0})
        proxy = lab.start_proxy()
        for family in FAMILIES:
            with t.group(f"IPv{family}"), peer.Listener(lab.srv, family) as listener:
                listener.sock.setsockopt(socket.IPPROTO_TCP, _TCP_FASTOPEN, 16)
                before = proxy.counters()["bypassed"]["fast_open"]
                # The first SYN asks for a cookie, the second brings it, and data.
                for octets in (b"asks for a cookie", b"in the SYN"):
                    sock = lab.ue.socket(family)
                    sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO,
                                    struct.pack("ll", int(peer.TIMEOUT), 0))
                    sock.sendto(octets, socket.MSG_FASTOPEN, (listener.address, listener.port))
                    client, server = peer.Peer(sock), listener.accept()
                    client.finish()
                    t.equal("the server gets", server.receive(), (octets, peer.FIN))
                    client.close()
                    server.close()
                t.equal("bypassed, counted", proxy.counters()["bypassed"]["fast_open"] - before, 2)
        t.equal("none was split", proxy.counters()["split"], 0)
        t.check("data came in a SYN", _syn_data(lab.srv) >= 2, _syn_data(lab.srv))


def _syn_data(host):
    """Passive connections of a host whose SYN's data were taken."""
    def read():
        with open("/proc/thread-self/net/netstat", encoding="ascii") as text:
            rows = [line.split() for line in text if line.startswith("TcpExt:")]
        return int(dict(zip(*rows))["TCPFastOpenPassive"])
    return host.call(read)
