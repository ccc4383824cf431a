# SPDX-License-Identifier: GPL-2.0-or-later
"""A network that lets the clients through but not us: the prefix is bypassed for a while."""

import threading
import time

from lib import peer, scenario, wait_until
from lib.flowtest import FAMILIES, short_links

_OTHER = {4: "10.5.0.1", 6: "fd00:5::1"}


def _dislike_gateway(lab):
    """core drops what the gateway itself sends to the servers' prefix: nobody has forwarded it yet."""
    lab.core.run(["iptables", "-t", "raw", "-A", "PREROUTING", "-d", "10.4.0.0/24", "-p", "tcp",
                  "-m", "ttl", "--ttl-eq", "64", "-j", "DROP"])
    lab.core.run(["ip6tables", "-t", "raw", "-A", "PREROUTING", "-d", "fd00:4::/64", "-p", "tcp",
                  "-m", "hl", "--hl-eq", "64", "-j", "DROP"])


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


@scenario("probation", "servers that answer the clients but not us: bypassed after three time-outs, "
                       "others are split")
def probation(t):
    with t.lab(**short_links()) as lab:
        lab.srv.ip(["addr add 10.5.0.1/32 dev lo", "addr add fd00:5::1/128 dev lo nodad"])
        lab.core.ip(["route add 10.5.0.0/24 via 10.4.0.2", "route add fd00:5::/64 via fd00:4::2"])
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
                by_port = {end.name()[1]: end for end in ends}
                for _ in range(3):
                    server = listener.accept()
                    end = by_port[server.address[1]]
                    t.check("data", peer.exchange(end, server, b"z" * 50000)[0] == b"z" * 50000)
                    end.close()
                    server.close()
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
            with t.group(f"IPv{family} another prefix"), \
                    peer.Listener(lab.srv, family, address=_OTHER[family]) as listener:
                split = proxy.counters()["split"]
                client, server = peer.pair(lab.ue, listener)
                t.check("works", peer.exchange(client, server, b"w" * 50000)[0] == b"w" * 50000)
                wait_until(lambda: proxy.counters()["split"] == split + 1, 3, "it is split")
                client.close()
                server.close()
