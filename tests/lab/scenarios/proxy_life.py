# SPDX-License-Identifier: GPL-2.0-or-later
"""The daemon comes, goes and dies: what happens to flows."""

import time

from lib import peer, scenario, wait_until
from lib.flowtest import FAMILIES, KILO, MEGA, VARIANTS, each_variant, short_links


def _moves_data(t, name, client, server, size=256 * KILO):
    octets = peer.data(size)
    t.check(f"{name}: uplink", peer.exchange(client, server, octets)[0] == octets)
    t.check(f"{name}: downlink", peer.exchange(server, client, octets)[0] == octets)


def _direct_flow(t, lab, family, name):
    """A new flow works without the proxy; returns the seconds to connect."""
    with peer.Listener(lab.srv, family) as listener:
        began = time.monotonic()
        client, server = peer.pair(lab.ue, listener)
        took = time.monotonic() - began
        with client, server:
            _moves_data(t, name, client, server)
    return took


@each_variant("proxy-older-flows", "flows older than rules and daemon go on, through up and down")
def older_flows(t, variant):
    with t.lab(**short_links(), **VARIANTS[variant]) as lab:
        listeners = [peer.Listener(lab.srv, family) for family in FAMILIES]
        old = [peer.pair(lab.ue, listener) for listener in listeners]
        for family, (client, server) in zip(FAMILIES, old):
            _moves_data(t, f"IPv{family} before", client, server)
        proxy = lab.start_proxy()
        for family, (client, server) in zip(FAMILIES, old):
            _moves_data(t, f"IPv{family} with the proxy", client, server, MEGA)
        t.equal("none of it is a flow of the proxy", proxy.counters()["split"], 0)
        new = [peer.pair(lab.ue, listener) for listener in listeners]
        for family, (client, server) in zip(FAMILIES, new):
            _moves_data(t, f"IPv{family} new flow", client, server)
            client.close()
            server.close()
        t.equal("new ones are", proxy.counters()["split"], 2)
        proxy.stop_daemon()
        for family, (client, server) in zip(FAMILIES, old):
            _moves_data(t, f"IPv{family} after the daemon", client, server)
        proxy.close()
        for family, (client, server) in zip(FAMILIES, old):
            _moves_data(t, f"IPv{family} after rules down", client, server)
            client.close()
            t.equal(f"IPv{family} ends with FIN", server.receive(), (b"", peer.FIN))
            server.close()
        for listener in listeners:
            listener.close()


@each_variant("proxy-absent", "rules without a daemon: new flows go end to end (fail-open)")
def absent(t, variant):
    with t.lab(**short_links(), **VARIANTS[variant]) as lab:
        lab.start_proxy(daemon=False)
        for family in FAMILIES:
            with t.group(f"IPv{family}"):
                took = _direct_flow(t, lab, family, "direct")
                t.check("connects at once", took < 0.9, f"{took:.3f} s")
                t.equal("refused is refused", peer.connect_error(
                    lab.ue, lab.srv.addr(family), 9, family), "ECONNREFUSED")


@scenario("proxy-fail-closed", "fail = closed: no daemon, no new flow; a daemon brings them back")
def fail_closed(t):
    with t.lab(**short_links()) as lab:
        proxy = lab.start_proxy(conf={"fail": "closed"}, daemon=False)
        for family in FAMILIES:
            with peer.Listener(lab.srv, family) as listener:
                t.equal(f"IPv{family} without daemon", peer.connect_error(
                    lab.ue, listener.address, listener.port, family, timeout=1.5), "no answer")
        proxy.start_daemon()
        for family in FAMILIES:
            _direct_flow(t, lab, family, f"IPv{family} with daemon")
        t.check("they are split", proxy.counters()["split"] >= 2)


@each_variant("proxy-killed", "kill -9: cut flows see RST, new ones go direct at once")
def killed(t, variant):
    with t.lab(**short_links(), **VARIANTS[variant]) as lab:
        proxy = lab.start_proxy()
        cut = {}
        for family in FAMILIES:
            with peer.Listener(lab.srv, family) as listener:
                busy = peer.pair(lab.ue, listener)
                idle = peer.pair(lab.ue, listener)
            # In the middle of a download: the client has read a part.
            peer.fill(busy[1], 4 * MEGA, quiet=0.1)
            busy[0].receive(64 * KILO)
            cut[family] = (busy, idle)
        t.equal("flows before", proxy.status()["flows"], 4)
        proxy.kill_daemon()
        died = time.monotonic()
        for family in FAMILIES:
            with t.group(f"IPv{family}"):
                took = _direct_flow(t, lab, family, "new flow")
                # A lost SYN costs a second; failopen-kill measures the time.
                t.check("new flow connects at once", took < 0.9, f"{took:.3f} s, "
                        f"{time.monotonic() - died:.3f} s after the kill")
                (busy_client, busy_server), (idle_client, idle_server) = cut[family]
                for name, end in (("busy client", busy_client), ("busy server", busy_server),
                                  ("idle client", idle_client), ("idle server", idle_server)):
                    t.equal(f"{name} sees RST", end.receive()[1], "ECONNRESET")
                    end.close()
        proxy.start_daemon()
        for family in FAMILIES:
            _direct_flow(t, lab, family, f"IPv{family} after the restart")
        t.check("they are split again", proxy.counters()["split"] >= 2, proxy.counters()["split"])


@scenario("proxy-same-port-after-kill", "a direct flow on the 4-tuple of a flow that the proxy had")
def same_port_after_kill(t):
    with t.lab(**short_links()) as lab:
        lab.ue.sysctl({"net.ipv4.tcp_tw_reuse": 1})
        proxy = lab.start_proxy()
        for family in FAMILIES:
            with t.group(f"IPv{family}"), peer.Listener(lab.srv, family) as listener:
                # The server closes first: the gateway is left with a TIME_WAIT of the client.
                client, server = peer.pair(lab.ue, listener, source_port=4747)
                server.close()
                t.equal("end of the split flow", client.receive(), (b"", peer.FIN))
                client.close()
                proxy.wait_closed("finished", 1)
                proxy.kill_daemon()
                began = time.monotonic()
                client, server = wait_until(lambda: _try_pair(lab, listener, 4747), 5)
                t.check("the direct flow connects at once", time.monotonic() - began < 0.9,
                        f"{time.monotonic() - began:.3f} s")
                with client, server:
                    _moves_data(t, "direct", client, server)
                proxy.start_daemon()


def _try_pair(lab, listener, port):
    try:
        return peer.pair(lab.ue, listener, source_port=port)
    except OSError:
        return None


@scenario("proxy-stop", "SIGTERM: flows end with RST, the exit code is 0, sockets are gone")
def stop(t):
    with t.lab(**short_links()) as lab:
        proxy = lab.start_proxy()
        with peer.Listener(lab.srv, 4) as listener:
            client, server = peer.pair(lab.ue, listener)
        began = time.monotonic()
        t.equal("exit code", proxy.stop_daemon(), 0)
        t.check("within 2 s", time.monotonic() - began < 2, f"{time.monotonic() - began:.2f} s")
        t.equal("the client sees", client.receive()[1], "ECONNRESET")
        t.equal("the server sees", server.receive()[1], "ECONNRESET")
        left = lab.gw.run(["ss", "-Htan", "state", "connected", "exclude", "time-wait"]).stdout
        t.equal("sockets left on the gateway", left.strip(), "")
        _direct_flow(t, lab, 4, "new flow")
