# SPDX-License-Identifier: GPL-2.0-or-later
"""Timeouts, slow readers and limits."""

import time

from lib import peer, scenario, wait_until
from lib.flowtest import FAMILIES, KILO, MEGA, short_links


@scenario("proxy-vanished", "a UE that vanishes: user timeout, the server sees RST, counted")
def vanished(t):
    with t.lab(**short_links()) as lab:
        proxy = lab.start_proxy(conf={"leg wireless": {"user-timeout": "2s"}})
        for family in FAMILIES:
            with t.group(f"IPv{family}"), peer.Listener(lab.srv, family) as listener:
                before = proxy.counters()["closed"]["client_gone"]
                client, server = peer.pair(lab.ue, listener)
                server.send(b"hello")
                t.equal("before", client.receive(5), (b"hello", None))
                lab.emulators["radio"].set("loss 100%")
                gone = time.monotonic()
                server.send(peer.data(64 * KILO))
                t.equal("the server sees", server.receive()[1], "ECONNRESET")
                took = time.monotonic() - gone
                t.check("2 to 5 s later", 1.5 < took < 5, f"{took:.2f} s")
                proxy.wait_closed("client_gone", before + 1)
                lab.emulators["radio"].set("loss 0%")
                client.close()
                server.close()


@scenario("proxy-keepalive", "an idle flow whose UE vanished ends by keepalive")
def keepalive(t):
    with t.lab(**short_links()) as lab:
        proxy = lab.start_proxy(conf={"leg wireless": {
            "keepalive-idle": "1s", "keepalive-interval": "1s", "keepalive-count": 2,
            "user-timeout": "off"}})
        with peer.Listener(lab.srv, 4) as listener:
            kept_client, kept_server = peer.pair(lab.ue, listener)
            # A UE that is there keeps an idle flow: its answers are the proof.
            up = lab.emulators["radio"].stats()["up"]["packets_in"]
            wait_until(lambda: lab.emulators["radio"].stats()["up"]["packets_in"] >= up + 2, 5,
                       "two keepalives answered")
            t.equal("an idle flow stays", proxy.status()["flows"], 1)
            lab.emulators["radio"].set("loss 100%")
            t.equal("the server sees", kept_server.receive()[1], "ECONNRESET")
            proxy.wait_closed("client_gone", 1)
            kept_client.close()
            kept_server.close()


@scenario("proxy-half-close-timeout", "a half-closed flow lives while it moves, ends when silent")
def half_close_timeout(t):
    with t.lab(**short_links()) as lab:
        proxy = lab.start_proxy(conf={"half-close-timeout": "2s"})
        with peer.Listener(lab.srv, 4) as listener:
            client, server = peer.pair(lab.ue, listener)
            client.finish()
            t.equal("the server sees the FIN", server.receive(), (b"", peer.FIN))
            began = time.monotonic()
            while time.monotonic() - began < 4:
                server.send(b"tick")
                if client.receive(4) != (b"tick", None):
                    break
                time.sleep(0.5)
            t.check("alive after 4 s with a packet each 0.5 s", time.monotonic() - began >= 4,
                    f"{time.monotonic() - began:.1f} s")
            silent = time.monotonic()
            t.equal("the client sees", client.receive()[1], "ECONNRESET")
            took = time.monotonic() - silent
            t.check("2 to 5 s after the last packet", 1.5 < took < 5, f"{took:.2f} s")
            proxy.wait_closed("half_close_timeout", 1)
            client.close()
            server.close()


@scenario("proxy-slow-reader", "a client that does not read: few bytes are held, none is lost")
def slow_reader(t):
    with t.lab(**short_links()) as lab:
        proxy = lab.start_proxy(conf={"relay": {"buffer-max": "1MiB"}})
        for family in FAMILIES:
            with t.group(f"IPv{family}"), peer.Listener(lab.srv, family) as listener:
                client = peer.socket_of(lab.ue, family)
                client.setsockopt(1, 8, 64 * KILO)	# SO_RCVBUF: the client itself holds little
                client.settimeout(peer.TIMEOUT)
                client.connect((listener.address, listener.port))
                client, server = peer.Peer(client), listener.accept()
                sent = peer.fill(server, 200 * MEGA, quiet=1)
                held = proxy.status()["held_bytes"]
                t.data[f"IPv{family}"] = {"accepted_bytes": sent, "held_bytes": held}
                t.check("the relay holds at most its buffer and a pipe", held <= MEGA + 512 * KILO,
                        held)
                # Both legs' socket buffers and the ends' own come on top.
                t.check("the server is stopped", sent < 32 * MEGA, f"{sent / MEGA:.1f} MiB taken")
                block = peer.data(64 * KILO)
                server.finish()
                got, end = client.receive()
                whole, rest = divmod(len(got), len(block))
                t.equal("every byte arrives", (len(got), end), (sent, peer.FIN))
                t.check("and is right", all(
                    got[i * len(block):(i + 1) * len(block)] == block for i in range(whole))
                        and got[whole * len(block):] == block[:rest])
                client.close()
                server.close()


@scenario("proxy-flow-limits", "max-flows and max-flows-per-client: bypass or refuse, counted")
def flow_limits(t):
    for overload, counter in (("bypass", "bypassed"), ("refuse", "refused")):
        for key, reason in (("max-flows", "flow_limit"), ("max-flows-per-client", "client_limit")):
            with t.group(f"{key}, {overload}"), t.lab(**short_links()) as lab:
                proxy = lab.start_proxy(conf={key: 4, "workers": 1, "overload": overload})
                with peer.Listener(lab.srv, 4) as listener:
                    pairs = [peer.pair(lab.ue, listener) for _ in range(4)]
                    # A client is connected before the daemon has taken its connection.
                    wait_until(lambda: proxy.counters()["split"] == 4, 5, "four are split")
                    if overload == "bypass":
                        pairs.append(peer.pair(lab.ue, listener))
                        t.check("the fifth goes end to end", peer.exchange(
                            *pairs[4], b"x" * 1000)[0] == b"x" * 1000)
                    else:
                        t.equal("the fifth", peer.connect_error(
                            lab.ue, listener.address, listener.port, 4), "ECONNREFUSED")
                    found = proxy.counters()[counter]
                    t.equal("counted", found[reason if overload == "bypass" else "limit"], 1)
                    t.equal("still split", proxy.counters()["split"], 4)
                    for end in pairs[0]:
                        end.close()
                    proxy.wait_closed("finished", 1)
                    pairs.append(peer.pair(lab.ue, listener))
                    wait_until(lambda: proxy.counters()["split"] == 5, 3,
                               "there is room again: a fifth flow is split")
                    for client, server in pairs:
                        client.close()
                        server.close()


@scenario("proxy-descriptors", "few file descriptors: new flows go end to end, then it recovers")
def descriptors(t):
    with t.lab(**short_links()) as lab:
        proxy = lab.start_proxy(conf={"workers": 1}, nofile=200)
        limit = proxy.status()["flows_limit"]
        t.check("the limit follows the descriptors", 4 <= limit < 64, limit)
        with peer.Listener(lab.srv, 4) as listener:
            pairs = [peer.pair(lab.ue, listener) for _ in range(100)]
            wait_until(lambda: proxy.counters()["split"] >= limit, 3, "the limit is used")
            found = proxy.counters()
            t.equal("as many are split as the limit says", found["split"], limit)
            t.equal("all others go end to end", sum(found["bypassed"].values()),
                    100 - found["split"])
            for number, (client, server) in enumerate(pairs):
                if peer.exchange(client, server, b"y" * 1000)[0] != b"y" * 1000:
                    t.check(f"connection {number} works", False)
            for client, server in pairs:
                client.close()
                server.close()
            wait_until(lambda: proxy.status()["flows"] == 0, 5, "no flow is left")
            client, server = peer.pair(lab.ue, listener)
            wait_until(lambda: proxy.counters()["split"] == limit + 1, 3, "a new one is split")
            client.close()
            server.close()
        t.check("the daemon lives", proxy.alive(), proxy.log_tail())
