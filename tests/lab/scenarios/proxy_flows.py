# SPDX-License-Identifier: GPL-2.0-or-later
"""Flows through the proxy: what each end sees of the other."""

import errno
import socket
import threading

from lib import peer, scenario, wait_until
from lib.flowtest import KILO, MEGA, VARIANTS, each_variant, run_table, short_links
from lib.lab import BLACKHOLE, UNREACHABLE

# -- who is who ------------------------------------------------------------------------------------


def source_kept(c):
    with c.listener() as listener:
        client, server = c.counted("split", lambda: c.pair(listener))
        with client, server:
            c.t.equal("the server sees the client's address and port", server.address,
                      (c.client_addr(), client.name()[1]))
            c.t.equal("the client sees the server's", client.sock.getpeername()[:2],
                      (listener.address, listener.port))


def same_port_to_two_servers(c):
    second = "fd00:4::3" if c.family == 6 else "10.4.0.3"
    have = c.lab.srv.run(["ip", "-o", "addr", "show", "to", second]).stdout
    if not have:
        c.lab.srv.ip(f"addr add {second}/{64 if c.family == 6 else 24} dev core0"
                     + (" nodad" if c.family == 6 else ""))
    with c.listener() as one, c.listener(address=second, port=one.port) as two:
        client1, server1 = c.pair(one, source_port=4242)
        client2, server2 = c.pair(two, source_port=4242)
        with client1, client2, server1, server2:
            if not c.masquerade:
                c.t.equal("both servers see the same port", (server1.address, server2.address),
                          (client1.name(), client2.name()))
            for client, server, seed in ((client1, server1, 1), (client2, server2, 2)):
                octets = peer.data(MEGA, seed)
                c.data(f"data from server {seed}", peer.exchange(server, client, octets)[0], octets)
                c.data(f"data to server {seed}", peer.exchange(client, server, octets)[0], octets)


def port_taken(c):
    """A socket of the gateway has the client's address and port: another port, counted."""
    with peer.socket_of(c.lab.gw, c.family) as other:
        level, option = ((socket.IPPROTO_IPV6, peer.IPV6_TRANSPARENT) if c.family == 6
                         else (socket.IPPROTO_IP, peer.IP_TRANSPARENT))
        other.setsockopt(level, option, 1)
        other.bind((c.lab.ue.addr(c.family), 4343))
        other.listen()
        with c.listener() as listener:
            client, server = c.counted("source_port_fallbacks",
                                       lambda: c.pair(listener, source_port=4343))
            with client, server:
                c.t.equal("the address is the client's", server.address[0], c.client_addr())
                c.t.check("the port is another", server.address[1] != 4343, server.address[1])
                octets = peer.data(MEGA)
                c.data("data", peer.exchange(server, client, octets)[0], octets)


def dscp_copied(c):
    """AF31 from the client, CS5 from the server; ECN bits are not ours to copy."""
    with c.listener(tos=0xa0) as listener, peer.Sniffer(c.lab.srv, "core0") as at_server, \
            peer.Sniffer(c.lab.ue, "radio0") as at_client:
        client, server = c.pair(listener, tos=0x68)
        with client, server:
            peer.exchange(client, server, peer.data(64 * KILO))
            peer.exchange(server, client, peer.data(64 * KILO))
            up = [p for p in at_server.packets() if p["destination"] == listener.port]
            down = [p for p in at_client.packets() if p["source"] == listener.port]
    for name, packets, want in (("uplink", up, 0x68), ("downlink", down, 0xa0)):
        c.t.check(f"{name}: packets seen", len(packets) > 20, len(packets))
        # The SYN-ACK of the wireless leg may leave before anything is known of the server (early).
        seen = {p["tos"] & 0xfc for p in packets if not p["flags"] & 2 or name == "uplink"}
        c.t.equal(f"{name}: DSCP of every packet", seen, {want})


def mptcp_bypassed(c):
    try:
        listener = c.listener(proto=peer.IPPROTO_MPTCP)
    except OSError as error:
        if error.errno in (errno.EPROTONOSUPPORT, errno.ENOPROTOOPT):
            return
        raise
    with listener:
        client, server = c.counted("bypassed.mptcp", lambda: c.pair(
            listener, proto=peer.IPPROTO_MPTCP))
        with client, server:
            octets = peer.data(MEGA)
            c.data("data", peer.exchange(client, server, octets)[0], octets)


def own_addresses_refused(c):
    """Connections to the gateway itself never become flows, the proxy's own ports above all."""
    def attempts():
        for address in (c.lab.gw.addr(c.family), c.wired_addr()):
            for port in (17000, 17001, 9):
                c.t.equal(f"{address} port {port}", peer.connect_error(
                    c.lab.ue, address, port, c.family, timeout=3), "ECONNREFUSED")
    c.counted("split", attempts, by=0)


def loop_refused(c):
    """A wrong route sends our own SYN back to the radio side: refused at the first hop."""
    address, hop, bits = ("fd00:97::1", "fd00:2::1", 128) if c.family == 6 else (
        "10.97.0.1", "10.2.0.1", 32)
    c.lab.gw.ip(f"route replace {address}/{bits} via {hop}")
    try:
        error = c.counted("refused.loop", lambda: peer.connect_error(
            c.lab.ue, address, 80, c.family, timeout=5))
        c.t.equal("connect()", error, "ECONNREFUSED")
    finally:
        c.lab.gw.ip(f"route del {address}/{bits}")


# -- data and ends ---------------------------------------------------------------------------------


def both_ways_at_once(c):
    up, down = peer.data(8 * MEGA, 1), peer.data(8 * MEGA, 2)
    got = {}
    with c.listener() as listener:
        client, server = c.pair(listener)
        with client, server:
            # Each end sends in a thread and receives what the other sends meanwhile.
            thread = threading.Thread(
                target=lambda: got.update(up=peer.exchange(server, server, down)[0]))
            thread.start()
            got["down"] = peer.exchange(client, client, up)[0]
            thread.join(20)
    c.data("downlink", got["down"], down)
    c.data("uplink", got.get("up", b""), up)


def fin_client_first(c):
    with c.listener() as listener:
        client, server = c.pair(listener)
        with server:
            client.send(b"request")
            client.close()
            c.t.equal("the server gets the data and a FIN", server.receive(),
                      (b"request", peer.FIN))
            c.counted("closed.finished", server.close)


def fin_server_first(c):
    with c.listener() as listener:
        client, server = c.pair(listener)
        with client:
            server.send(b"answer")
            server.close()
            c.t.equal("the client gets the data and a FIN", client.receive(), (b"answer", peer.FIN))
            c.counted("closed.finished", client.close)


def half_close_client(c):
    """The client sends, ends its direction, and awaits 20 MB."""
    request, answer = peer.data(MEGA, 1), peer.data(20 * MEGA, 2)
    with c.listener() as listener:
        client, server = c.pair(listener)
        with client, server:
            # In a thread: no buffer on the way has to be large enough for all of it.
            sender = threading.Thread(target=lambda: (client.send(request), client.finish()))
            sender.start()
            got, end = server.receive()
            sender.join()
            c.data("request", got, request)
            c.t.equal("the server sees the FIN", end, peer.FIN)
            got, end = peer.exchange(server, client, answer)
            c.data("answer after the FIN", got, answer)
            server.close()
            c.t.equal("the end", client.receive(), (b"", peer.FIN))


def half_close_server(c):
    """The server ends its direction, the client goes on for 20 MB."""
    upload = peer.data(20 * MEGA, 3)
    with c.listener() as listener:
        client, server = c.pair(listener)
        with client, server:
            server.send(b"go on")
            server.finish()
            c.t.equal("the client sees data and FIN", client.receive(), (b"go on", peer.FIN))
            got, _ = peer.exchange(client, server, upload)
            c.data("upload after the FIN", got, upload)
            client.close()
            c.t.equal("the end", server.receive(), (b"", peer.FIN))


def reset_by_client(c):
    with c.listener() as listener:
        client, server = c.pair(listener)
        with server:
            client.send(b"x")
            c.t.equal("before", server.receive(1), (b"x", None))
            c.counted("closed.client_reset", client.reset)
            c.t.equal("the server sees", server.receive(), (b"", "ECONNRESET"))


def reset_by_server(c):
    with c.listener() as listener:
        client, server = c.pair(listener)
        with client:
            server.send(b"x")
            c.t.equal("before", client.receive(1), (b"x", None))
            c.counted("closed.server_reset", server.reset)
            c.t.equal("the client sees", client.receive(), (b"", "ECONNRESET"))


def data_then_reset(c):
    """1000 bytes and a RST right behind: both arrive, and no FIN."""
    octets = peer.data(1000)
    with c.listener() as listener:
        client, server = c.pair(listener)
        with client:
            client.send(b"x")
            server.receive(1)
            server.send(octets)
            server.reset()
            got, end = client.receive()
            c.t.equal("how it ended", end, "ECONNRESET")
            c.data("data before it", got, octets)


def abort_midway(c):
    """The server dies in the middle of a transfer: the client never sees a clean end."""
    with c.listener() as listener:
        client, server = c.pair(listener)
        with client:
            peer.fill(server, 64 * MEGA, quiet=0.1)
            server.reset()
            c.t.equal("how it ended", client.receive()[1], "ECONNRESET")


def close_with_slow_reader(c):
    """The server sends 4 MB and closes; the client reads late, in small pieces, and gets all."""
    octets = peer.data(4 * MEGA, 5)
    with c.listener() as listener:
        client, server = c.pair(listener)
        with client:
            server.sock.settimeout(None)
            sender = threading.Thread(target=lambda: (server.send(octets), server.close()))
            sender.start()
            c.proxy.wait_held()
            got, end = b"", None
            while end is None:
                part, end = client.receive(64 * KILO)
                got += part
            sender.join(10)
    c.data("data", got, octets)
    c.t.equal("the end", end, peer.FIN)


# -- connecting ------------------------------------------------------------------------------------


def refused(c):
    with c.listener() as listener:
        port = listener.port
    error = c.counted("closed.refused", lambda: peer.connect_error(
        c.lab.ue, c.lab.srv.addr(c.family), port, c.family))
    c.t.equal("connect()", error, "ECONNREFUSED")


def unreachable(c):
    error = c.counted("closed.unreachable", lambda: peer.connect_error(
        c.lab.ue, UNREACHABLE[c.family], 80, c.family))
    c.t.equal("connect()", error, "EHOSTUNREACH")


def silent_server(c):
    """The client's attempt dies as it would have: no answer at all, not even when we give up.

    connect-timeout is 1.5 s; at 2 s the client's third SYN would begin another attempt.
    """
    error = c.counted("closed.connect_timeout", lambda: peer.connect_error(
        c.lab.ue, BLACKHOLE[c.family], 80, c.family, timeout=1.9))
    c.t.equal("connect()", error, "no answer")


# -- again and many --------------------------------------------------------------------------------


def _reconnect(c, listener, port):
    """As soon as the client's own host lets it have the port again."""
    def attempt():
        try:
            return c.pair(listener, source_port=port)
        except OSError as error:
            if error.errno in (errno.EADDRNOTAVAIL, errno.EADDRINUSE):
                return None
            raise
    return wait_until(attempt, 5, "the client's port is free again")


def reconnect_after_client_closed(c):
    c.lab.ue.sysctl({"net.ipv4.tcp_tw_reuse": 1})
    octets = peer.data(MEGA, 6)
    with c.listener() as listener:
        for turn in range(3):
            client, server = _reconnect(c, listener, 4444)
            c.data(f"turn {turn}", peer.exchange(client, server, octets)[0], octets)
            client.close()
            c.t.equal(f"turn {turn}: FIN", server.receive()[1], peer.FIN)
            server.close()


def reconnect_after_server_closed(c):
    octets = peer.data(MEGA, 7)
    with c.listener() as listener:
        for turn in range(3):
            client, server = _reconnect(c, listener, 4545)
            c.data(f"turn {turn}", peer.exchange(server, client, octets)[0], octets)
            server.close()
            c.t.equal(f"turn {turn}: FIN", client.receive()[1], peer.FIN)
            client.close()


def many_at_once(c):
    """64 connections in parallel, 512 KiB each way."""
    up, down = peer.data(512 * KILO, 8), peer.data(512 * KILO, 9)
    wrong = []

    def serve(end):
        try:
            with end:
                if end.receive(len(up))[0] != up:
                    wrong.append("uplink")
                end.send(down)
        except OSError as error:
            wrong.append(str(error))

    def use():
        try:
            with c.connect(listener) as end:
                end.send(up)
                if end.receive() != (down, peer.FIN):
                    wrong.append("downlink")
        except OSError as error:
            wrong.append(str(error))
    with c.listener() as listener:
        server = listener.serve(serve, 64)
        clients = [threading.Thread(target=use) for _ in range(64)]
        for thread in clients:
            thread.start()
        for thread in clients + [server]:
            thread.join(30)
    c.t.check("all data right", not wrong, wrong[:3])


def path_mtu(c):
    """Smaller MTUs behind the next routers: both legs learn them from ICMP and go on."""
    def narrow(mtu_core, mtu_radio):
        v6 = c.family == 6
        for host, net, interface, mtu in ((c.lab.core, 4, "srv0", mtu_core),
                                          (c.lab.radio, 1, "ue0", mtu_radio)):
            host.ip(f"route replace fd00:{net}::/64 dev {interface} proto kernel metric 256 mtu {mtu}"
                    if v6 else f"route replace 10.{net}.0.0/24 dev {interface} proto kernel "
                    f"scope link src 10.{net}.0.{1 if net == 4 else 2} mtu {mtu}")
    octets = peer.data(2 * MEGA, 12)
    with c.listener() as listener:
        client, server = c.pair(listener)
        with client, server:
            narrow(1400, 1300)
            try:
                c.data("uplink", peer.exchange(client, server, octets)[0], octets)
                c.data("downlink", peer.exchange(server, client, octets)[0], octets)
            finally:
                narrow(1500, 1500)


WHO = (source_kept, same_port_to_two_servers, port_taken, dscp_copied, mptcp_bypassed,
       own_addresses_refused, loop_refused)
DATA = (both_ways_at_once, fin_client_first, fin_server_first, half_close_client,
        half_close_server, reset_by_client, reset_by_server, data_then_reset, abort_midway,
        close_with_slow_reader, many_at_once, path_mtu)
CONNECT = (refused, unreachable, silent_server)
AGAIN = (reconnect_after_client_closed, reconnect_after_server_closed)


def _flows(t, table, variant, conf=None):
    with t.lab(**short_links(), **VARIANTS[variant]) as lab:
        proxy = lab.start_proxy(conf={"connect-timeout": "1500ms", **(conf or {})})
        run_table(t, table, lab, proxy, masquerade=VARIANTS[variant].get("masquerade", False))
        wait_until(lambda: proxy.status()["flows"] == 0, 5, "no flow is left")
        t.equal("bytes held at the end", proxy.status()["held_bytes"], 0)
        t.equal("flows ended for an unknown reason", proxy.counters()["closed"]["error"], 0)


for _name, _text, _table in (
        ("proxy-who", "addresses, ports, DSCP, MPTCP, own addresses", WHO),
        ("proxy-data", "data, FIN, half-close and RST in both directions", DATA),
        ("proxy-connect", "refused, unreachable and silent servers look as they are", CONNECT),
        ("proxy-again", "immediate reconnect from the same port", AGAIN)):
    each_variant(_name, _text, table=_table)(_flows)


@scenario("proxy-copy", "data and ends with the copy path instead of splice")
def proxy_copy(t):
    _flows(t, DATA, "", {"relay": {"splice": "off"}})
