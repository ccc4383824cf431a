# SPDX-License-Identifier: GPL-2.0-or-later
"""accept = early, source = gateway, bypass lists and classes."""

from lib import peer, scenario, wait_until
from lib.flowtest import FAMILIES, KILO, Case, run_table, short_links
from lib.lab import BLACKHOLE, UNREACHABLE
from scenarios import proxy_flows


def early_end(c, address, port):
    """What a client sees that sends nothing. A reset may be here before connect() returns."""
    try:
        with peer.connect(c.lab.ue, address, port, c.family) as client:
            return client.receive()
    except ConnectionResetError:
        return b"", "ECONNRESET"


def early_refused(c):
    """The client is connected before anything is known; then it sees a reset, never a clean end."""
    with c.listener() as listener:
        port = listener.port
    c.t.equal("the end", early_end(c, c.lab.srv.addr(c.family), port), (b"", "ECONNRESET"))
    c.proxy.wait_closed("refused", 1)


def early_unreachable(c):
    c.t.equal("the end", early_end(c, UNREACHABLE[c.family], 80), (b"", "ECONNRESET"))
    c.proxy.wait_closed("unreachable", 1)


def early_silent(c):
    c.t.equal("the end", early_end(c, BLACKHOLE[c.family], 80), (b"", "ECONNRESET"))
    c.proxy.wait_closed("connect_timeout", 1)


def early_sends_first(c):
    """What the client sends before the server is there arrives."""
    octets = peer.data(300 * KILO)
    with c.listener() as listener:
        c.lab.emulators["core"].set("delay 150ms")
        client = c.connect(listener)
        client.send(octets[:100 * KILO])
        client.send(octets[100 * KILO:])
        client.finish()
        with listener.accept() as server:
            got, end = server.receive()
            c.data("data", got, octets)
            c.t.equal("the end", end, peer.FIN)
        client.close()
        c.lab.emulators["core"].set("delay 3ms")


@scenario("proxy-early", "accept = early: same data and ends; a failed connect resets the client")
def early(t):
    with t.lab(**short_links()) as lab:
        proxy = lab.start_proxy(conf={"accept": "early", "connect-timeout": "1500ms"})
        table = [f for f in proxy_flows.WHO + proxy_flows.DATA if f is not proxy_flows.loop_refused]
        run_table(t, table + [early_refused, early_unreachable, early_silent, early_sends_first],
                  lab, proxy)


def gateway_source(c):
    with c.listener() as listener:
        client, server = c.counted("split", lambda: c.pair(listener))
        with client, server:
            c.t.equal("the server sees the gateway", server.address[0], c.wired_addr())
            octets = peer.data(300 * KILO)
            c.data("data", peer.exchange(server, client, octets)[0], octets)


@scenario("proxy-source-gateway", "source = gateway: the server sees the gateway's address")
def source_gateway(t):
    with t.lab(**short_links()) as lab:
        proxy = lab.start_proxy(conf={"source": "gateway", "connect-timeout": "1500ms"})
        run_table(t, (gateway_source, *proxy_flows.CONNECT, proxy_flows.half_close_client,
                      proxy_flows.data_then_reset, proxy_flows.reset_by_client), lab, proxy)


@scenario("proxy-policy", "bypass lists and classes decide which flow is split, and how")
def policy(t):
    with t.lab(**short_links()) as lab:
        proxy = lab.start_proxy(conf={
            "bypass": {"ports": ["8081"]},
            "class quick": {"ports": ["8082"], "accept": "early",
                            "wireless-congestion-control": "reno",
                            "wired-congestion-control": "bbr"},
            "class never": {"ports": ["8083"], "bypass": "on"}})
        for family in FAMILIES:
            case = Case(t, lab, proxy, family)
            with t.group(f"IPv{family}"):
                for port, counter in ((8080, "split"), (8081, "bypassed.policy"), (8082, "split"),
                                      (8083, "bypassed.policy")):
                    with t.group(f"port {port}"), case.listener(port=port) as listener:
                        client, server = case.counted(counter, lambda: case.pair(listener))
                        with client, server:
                            octets = peer.data(100 * KILO)
                            case.data("data", peer.exchange(server, client, octets)[0], octets)
                            if counter == "split":
                                legs = _controls(lab, client.name()[1])
                                t.equal("controls of the legs", legs, {"reno", "bbr"}
                                        if port == 8082 else {"bbr", "cubic"})


def _controls(lab, port):
    """The congestion controls of the gateway's sockets that have a port."""
    def found():
        text = lab.gw.run(["ss", "-Htino", "state", "established",
                           f"( sport = :{port} or dport = :{port} )"]).stdout
        names = {word for word in text.split() if word in ("reno", "cubic", "bbr")}
        return names if len(names) == 2 else None
    return wait_until(found, 3, "both legs' congestion controls")
