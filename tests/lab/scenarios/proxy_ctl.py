# SPDX-License-Identifier: GPL-2.0-or-later
"""edgepepctl while flows run: status, flows, kill, reload, bypass, drain."""

import json

from lib import peer, scenario, wait_until
from lib.flowtest import FAMILIES, KILO, Case, short_links


def _flow_of(proxy, port):
    """The flow of a client's port as `edgepepctl flows` shows it, once it was sampled."""
    def found():
        return next((f for f in proxy.ctl_json("flows")["flows"] if f["client_port"] == port
                     and f["wireless"]["cca"] and f["wired"]["cca"]), None)
    return wait_until(found, 3, f"the flow of port {port} is listed with its controls")


@scenario("ctl-flows", "status and flows show what is; flows kill ends one flow with RST both ways")
def flows(t):
    with t.lab(**short_links()) as lab:
        proxy = lab.start_proxy()
        t.equal("no flow: exit code", proxy.ctl("flows").returncode, 0)
        for family in FAMILIES:
            case = Case(t, lab, proxy, family)
            with t.group(f"IPv{family}"), case.listener() as listener:
                client, server = case.pair(listener)
                other_client, other_server = case.pair(listener)
                peer.exchange(server, client, peer.data(300 * KILO))
                flow = _flow_of(proxy, client.name()[1])
                t.equal("client", flow["client"], lab.ue.addr(family))
                t.equal("server", (flow["server"], flow["server_port"]),
                        (listener.address, listener.port))
                t.equal("controls of the legs", (flow["wireless"]["cca"], flow["wired"]["cca"]),
                        ("bbr", "cubic"))
                t.check("--client finds it", any(
                    f["id"] == flow["id"] for f in proxy.ctl_json(
                        "flows", f"--client={lab.ue.addr(family)}")["flows"]))
                t.equal("--client of another finds none", proxy.ctl_json(
                    "flows", "--client=192.0.2.1")["flows"], [])
                shown = proxy.ctl("flows").stdout
                t.check("the list names the server's port", str(listener.port) in shown,
                        shown[:200])
                case.counted("closed.killed", lambda: proxy.ctl("flows", "kill", flow["id"]))
                t.equal("the client sees", client.receive()[1], "ECONNRESET")
                t.equal("the server sees", server.receive()[1], "ECONNRESET")
                octets = peer.data(100 * KILO)
                case.data("another flow goes on", peer.exchange(
                    other_server, other_client, octets)[0], octets)
                again = proxy.ctl("flows", "kill", flow["id"], check=False)
                t.check("killing it again fails with one line", again.returncode == 1 and
                        len(again.stderr.splitlines()) == 1, (again.returncode, again.stderr))
                for end in (client, server, other_client, other_server):
                    end.close()
        t.equal("kill of nonsense: exit code",
                proxy.ctl("flows", "kill", "nonsense", check=False).returncode in (1, 2), True)
        status = json.loads(proxy.ctl("status", "--json").stdout)
        t.equal("status counts the flows", status["counters"]["split"], 4)
        t.check("status for people", "running" in proxy.ctl("status").stdout)
        proxy.stop_daemon()
        stopped = proxy.ctl("status", check=False)
        t.check("without a daemon: exit code 1 and one line", stopped.returncode == 1 and
                len(stopped.stderr.strip().splitlines()) == 1, (stopped.returncode, stopped.stderr))


@scenario("ctl-reload", "reload: new flows get the new configuration, old ones stay; errors change "
          "nothing")
def reload(t):
    with t.lab(**short_links()) as lab:
        proxy = lab.start_proxy()
        case = Case(t, lab, proxy, 4)
        with case.listener() as listener:
            old = case.pair(listener)
            proxy.write_conf({"leg wireless": {"congestion-control": "reno"}, "workers": 1})
            answer = proxy.ctl_json("reload")
            changes = {c["key"]: c["needs_restart"] for c in answer["changes"]}
            t.equal("what changed", [key for key in changes if "congestion-control" in key and
                                     not changes[key]] != [], True)
            t.check("says what needs a restart", any(
                restart for key, restart in changes.items() if "workers" in key), changes)
            new = case.pair(listener)
            t.equal("a new flow", _flow_of(proxy, new[0].name()[1])["wireless"]["cca"], "reno")
            t.equal("the old flow", _flow_of(proxy, old[0].name()[1])["wireless"]["cca"], "bbr")
            octets = peer.data(100 * KILO)
            for name, (client, server) in (("old", old), ("new", new)):
                case.data(f"data of the {name} flow", peer.exchange(server, client, octets)[0],
                          octets)
            with open(proxy.conf_path, "a", encoding="utf-8") as out:
                out.write("nonsense = 1\n")
            failed = proxy.ctl("reload", check=False)
            t.check("a wrong file is refused with its line", failed.returncode == 1 and
                    "edgepep.conf:" in failed.stderr and "nonsense" in failed.stderr,
                    (failed.returncode, failed.stderr))
            proxy.write_conf()
            newest = case.pair(listener)
            flow = _flow_of(proxy, newest[0].name()[1])
            t.equal("flows after it", flow["wireless"]["cca"], "reno")
            for client, server in (old, new, newest):
                client.close()
                server.close()


@scenario("ctl-bypass", "bypass on and off: new flows go end to end and back, open ones stay")
def bypass(t):
    with t.lab(**short_links()) as lab:
        proxy = lab.start_proxy()
        for family in FAMILIES:
            case = Case(t, lab, proxy, family)
            with t.group(f"IPv{family}"), case.listener() as listener:
                pairs = [case.counted("split", lambda: case.pair(listener))]
                proxy.ctl("bypass", "on")
                pairs.append(case.counted("bypassed.operator", lambda: case.pair(listener)))
                t.equal("state", proxy.status()["state"], "bypass")
                proxy.ctl("bypass", "off")
                pairs.append(case.counted("split", lambda: case.pair(listener)))
                t.equal("state", proxy.status()["state"], "running")
                octets = peer.data(100 * KILO)
                for number, (client, server) in enumerate(pairs):
                    case.data(f"data of flow {number}", peer.exchange(server, client, octets)[0],
                              octets)
                    client.close()
                    server.close()


@scenario("ctl-drain", "drain: no new flows, open ones finish with every byte, then the daemon "
          "ends")
def drain(t):
    with t.lab(**short_links()) as lab:
        proxy = lab.start_proxy()
        case = Case(t, lab, proxy, 4)
        with case.listener() as listener:
            client, server = case.pair(listener)
            proxy.ctl("drain")
            direct = case.counted("bypassed.drain", lambda: case.pair(listener))
            octets = peer.data(2000 * KILO)
            case.data("data of the open flow", peer.exchange(server, client, octets)[0], octets)
            proxy.ctl("resume")
            split = case.counted("split", lambda: case.pair(listener))
            for end in split:
                end.close()
            proxy.ctl("drain", "--deadline=1min")
            thread_end = peer.exchange(client, server, octets)[0]
            case.data("data after the second drain", thread_end, octets)
            server.close()
            t.equal("the open flow ends with FIN", client.receive(), (b"", peer.FIN))
            client.close()
            wait_until(lambda: not proxy.alive(), 5, "the daemon ends with its last flow")
            t.equal("exit code", proxy.process.returncode, 0)
            got = peer.exchange(direct[1], direct[0], octets)[0]
            case.data("a direct flow goes on", got, octets)
            after = case.pair(listener)
            case.data("a new flow goes end to end", peer.exchange(after[1], after[0], octets)[0],
                      octets)
            for end in (*direct, *after):
                end.close()


@scenario("ctl-drain-deadline", "drain with a deadline: what is left then ends with RST")
def drain_deadline(t):
    with t.lab(**short_links()) as lab:
        proxy = lab.start_proxy()
        with peer.Listener(lab.srv, 4) as listener:
            client, server = peer.pair(lab.ue, listener)
            proxy.ctl("drain", "--deadline=1s")
            t.equal("the client sees", client.receive()[1], "ECONNRESET")
            t.equal("the server sees", server.receive()[1], "ECONNRESET")
            wait_until(lambda: not proxy.alive(), 3, "the daemon ends")
            t.equal("exit code", proxy.process.returncode, 0)
