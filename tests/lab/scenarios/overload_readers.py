# SPDX-License-Identifier: GPL-2.0-or-later
"""Many clients that do not read, or hardly: windows close, memory stays bounded, others go on."""

import re
import selectors
import socket
import time

from lib import peer, scenario, wait_until
from lib.flowtest import KILO, MEGA, short_links
from lib.process import cpu_seconds, resident
from lib.transfer import BOTH, PUSH, REQUEST, Plan, Transfers, describe, verdicts

_KINDS = (BOTH, REQUEST, PUSH)
_FLOWS = 150
_RELAY = 4 * MEGA
_BLOCK = peer.data(1 << 16)


def _attack(lab, listener):
    """Clients with small receive buffers, and their servers' ends."""
    clients, servers = [], []
    for _ in range(_FLOWS):
        sock = peer.socket_of(lab.ue, 4)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16 * KILO)
        sock.settimeout(peer.TIMEOUT)
        sock.connect((listener.address, listener.port))
        clients.append(sock)
        server = listener.accept().sock
        server.setblocking(False)
        servers.append(server)
    return clients, servers


def _fill_all(servers, quiet, limit):
    """Servers send all they can until nothing is taken any more; returns the bytes of each."""
    sent = dict.fromkeys(servers, 0)
    with selectors.DefaultSelector() as selector:
        for server in servers:
            selector.register(server, selectors.EVENT_WRITE)
        last = time.monotonic()
        while time.monotonic() - last < quiet and sum(sent.values()) < limit:
            for key, _ in selector.select(0.1):
                server = key.fileobj
                try:
                    at = sent[server] % len(_BLOCK)
                    sent[server] += server.send(_BLOCK[at:])
                    last = time.monotonic()
                except BlockingIOError:
                    pass
    return sent


def _drain(client, total):
    """Reads everything; returns whether it is what was sent."""
    at, right = 0, True
    while at < total:
        part = client.recv(1 << 16)
        if not part:
            break
        begin = at % len(_BLOCK)
        want = (_BLOCK * (len(part) // len(_BLOCK) + 2))[begin:begin + len(part)]
        right = right and part == want
        at += len(part)
    return right and at == total


def _socket_memory(host):
    """Bytes of kernel memory that the sockets of a host hold."""
    total = 0
    for fields in re.findall(r"skmem:\(([^)]*)\)", host.run(["ss", "-Htnmi"]).stdout):
        values = dict(re.findall(r"([a-z]+)(\d+)", fields))
        total += int(values.get("r", 0)) + int(values.get("w", 0)) + int(values.get("f", 0))
    return total


@scenario("overload-readers", "150 stalled and dripping clients: closed windows, bounded memory, "
                              "others go on")
def readers(t):
    with t.lab(**short_links()) as lab:
        # What a flow may queue in sockets is the operator's choice; the relay's part is ours.
        lab.gw.sysctl({"net.ipv4.tcp_rmem": "4096 65536 1048576",
                       "net.ipv4.tcp_wmem": "4096 65536 1048576"})
        lab.srv.sysctl({"net.ipv4.tcp_wmem": "4096 65536 262144"})
        proxy = lab.start_proxy(conf={"relay": {"memory": "4MiB", "buffer-max": "1MiB",
                                                "buffer-min": "64KiB"}})
        pid = proxy.process.pid
        memory = resident(pid)
        with peer.Listener(lab.srv, 4) as listener:
            clients, servers = _attack(lab, listener)
            wait_until(lambda: proxy.counters()["split"] == _FLOWS, 5, "all are split")
            sent = _fill_all(servers, quiet=1, limit=_FLOWS * 16 * MEGA)
            status = proxy.status()
            kernel = _socket_memory(lab.gw)
            t.data.update({"flows": _FLOWS, "sent_bytes": sum(sent.values()),
                           "most_of_one": max(sent.values()), "held_bytes": status["held_bytes"],
                           "socket_bytes": kernel, "resident_grown": resident(pid) - memory})
            t.check("windows are closed", max(sent.values()) < 4 * MEGA,
                    f"{max(sent.values()) >> 10} KiB of one flow")
            # One read of each worker may be under way when the cap is reached.
            t.check("the relay keeps its cap", status["held_bytes"] <= _RELAY + 2 * 256 * KILO,
                    status["held_bytes"])
            t.check("sockets of the gateway", kernel < _FLOWS * 3 * MEGA, f"{kernel >> 20} MiB")
            t.check("memory of the daemon", resident(pid) - memory < 2 * _RELAY + 16 * MEGA,
                    f"{resident(pid) - memory >> 10} KiB more")
            used = cpu_seconds(pid)
            time.sleep(1)
            t.check("a stalled flow costs nothing", cpu_seconds(pid) - used < 0.2,
                    f"{cpu_seconds(pid) - used:.2f} s CPU in 1 s")

            with t.group("others, beside stalled readers"), Transfers(lab, at_once=8) as others:
                results = others.run([Plan(n, _KINDS[n % 3], 300000, 300000) for n in range(40)])
                t.equal("work", verdicts(results), {"ok": 40})
                t.check("go through the proxy", proxy.counters()["split"] == _FLOWS + 40,
                        proxy.counters()["bypassed"])

            with t.group("others, beside dripping readers"), Transfers(lab, at_once=8) as others:
                for client in clients:
                    sent[servers[clients.index(client)]] -= len(client.recv(512))
                results = others.run([Plan(500 + n, _KINDS[n % 3], 300000, 300000)
                                      for n in range(40)])
                t.check("work", verdicts(results) == {"ok": 40},
                        f"{verdicts(results)} {describe(results, 'hung')}")

            for client in clients[10:]:
                client.close()
            wait_until(lambda: proxy.status()["flows"] <= 10, 10, "flows of those who left end")
            for number, client in enumerate(clients[:10]):
                # 512 bytes were read before: the rest of that block first.
                left = sent[servers[number]]
                head = b""
                while len(head) < len(_BLOCK) - 512:
                    head += client.recv(len(_BLOCK) - 512 - len(head))
                t.check(f"stalled client {number} gets every byte",
                        head == _BLOCK[512:] and _drain(client, left - len(head)), left)
                client.close()
            for server in servers:
                server.close()
        wait_until(lambda: proxy.status()["flows"] == 0, 10, "no flow is left")
        t.equal("bytes held at the end", proxy.status()["held_bytes"], 0)
        t.check("the daemon lives", proxy.alive(), proxy.log_tail())
