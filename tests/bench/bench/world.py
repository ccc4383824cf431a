# SPDX-License-Identifier: GPL-2.0-or-later
"""The benchmark's hosts: one client host, one server host, and a gateway for each mover of bytes.

    ue -- 10.61.N.0/24 -- gateway N -- 10.62.N.0/24 -- srv

Every gateway is there at once, so rounds can go from one to the next without restarting anything.
"""

import contextlib
import subprocess

from lib import paths
from lib.netns import Namespace, wait_until

WIRELESS, WIRED = "radio0", "core0"
SERVICES = 5300     # benchload serve
IPERF = 5201
WEB = 8080

_SYSCTL = {
    "net.ipv4.tcp_rmem": "4096 131072 33554432",
    "net.ipv4.tcp_wmem": "4096 16384 4194304",
    "net.ipv4.tcp_no_metrics_save": 1,
    "net.ipv4.conf.all.rp_filter": 0,
    "net.ipv4.conf.default.rp_filter": 0,
    "net.core.somaxconn": 16384,
    "net.ipv4.tcp_max_syn_backlog": 16384,
    "net.ipv4.ip_local_port_range": "1024 65000",
}

_WEB_CONF = """\
daemon off; worker_processes 2; pid {folder}/web.pid; error_log {folder}/web.log;
events {{ worker_connections 8000; }}
http {{ access_log off; keepalive_timeout 0;
  server {{ listen {port} backlog=16384 reuseport; location / {{ return 200 "ok\\n"; }} }} }}
"""


class Lane:
    """A gateway between the two hosts. control: of its own sockets, None leaves that to them."""

    def __init__(self, world, number, name, control=None):
        self.name = name
        self.mover = None
        self.gw = Namespace(f"gw{number}")
        self.server = f"10.62.{number}.2"
        gw, ue, srv = self.gw, world.ue, world.srv
        gw.sysctl({**_SYSCTL, "net.ipv4.ip_forward": 1})
        by = f" congctl {control}" if control else ""
        gw.ip(["link set lo up",
               f"link add {WIRELESS} type veth peer name u{number} netns {ue.name}",
               f"link add {WIRED} type veth peer name s{number} netns {srv.name}",
               f"addr add 10.61.{number}.1/24 dev {WIRELESS} noprefixroute",
               f"addr add 10.62.{number}.1/24 dev {WIRED} noprefixroute",
               f"link set {WIRELESS} up", f"link set {WIRED} up",
               f"route add 10.61.{number}.0/24 dev {WIRELESS} src 10.61.{number}.1{by}",
               f"route add 10.62.{number}.0/24 dev {WIRED} src 10.62.{number}.1{by}"])
        ue.ip([f"addr add 10.61.{number}.2/24 dev u{number}", f"link set u{number} up",
               f"route add 10.62.{number}.0/24 via 10.61.{number}.1 congctl cubic"])
        srv.ip([f"addr add 10.62.{number}.2/24 dev s{number}", f"link set s{number} up",
                f"route add 10.61.{number}.0/24 via 10.62.{number}.1 congctl cubic"])
        self.interfaces = ((gw, WIRELESS), (gw, WIRED), (ue, f"u{number}"), (srv, f"s{number}"))
        # Made-up clients of the SYN test live behind the client host.
        gw.ip(f"route add 10.64.0.0/10 via 10.61.{number}.2")


class World:
    """Hosts and servers; `lanes` by name."""

    def __init__(self, folder):
        self.folder = folder
        self.lanes = {}
        self.offload = True
        self._stack = contextlib.ExitStack()
        self.ue = self._host("ue")
        self.srv = self._host("srv")

    def _host(self, role):
        host = Namespace(role)
        self._stack.callback(host.close)
        host.sysctl(_SYSCTL)
        host.ip("link set lo up")
        return host

    def close(self):
        self._stack.close()

    def add_lane(self, name, mover, control=None):
        lane = Lane(self, len(self.lanes) + 1, name, control)
        self._stack.callback(lane.gw.close)
        self.lanes[name] = lane
        self._stack.callback(mover.stop)
        mover.start(lane)
        lane.mover = mover
        return lane

    def start_servers(self):
        serve = self.srv.popen([paths.built("tests/bench/load/benchload"), "serve", "--to",
                                f"0.0.0.0:{SERVICES}"], stdout=subprocess.PIPE, text=True)
        if serve.stdout.readline() != "ready\n":
            raise RuntimeError("benchload serve did not start")
        conf = f"{self.folder}/web.conf"
        with open(conf, "w", encoding="ascii") as out:
            out.write(_WEB_CONF.format(folder=self.folder, port=WEB))
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self.srv.popen([paths.needed("nginx", "nginx-light"), "-c", conf], **quiet)
        self.srv.popen([paths.needed("iperf3", "iperf3"), "-s", "-p", IPERF], **quiet)
        wait_until(lambda: self.srv.run(["ss", "-Hltn"]).stdout.count("LISTEN") >= 8, 5,
                   "the servers listen")

    def set_offload(self, on):
        """TSO, GSO and GRO of every interface."""
        if on == self.offload:
            return
        word = "on" if on else "off"
        for lane in self.lanes.values():
            for host, interface in lane.interfaces:
                host.run([paths.needed("ethtool", "ethtool"), "-K", interface, "tso", word, "gso",
                          word, "gro", word])
        self.offload = on

    def pids(self):
        """Processes in all of the hosts."""
        found = []
        for host in (self.ue, self.srv, *(lane.gw for lane in self.lanes.values())):
            found += pids_of(host)
        return found


def pids_of(host):
    text = subprocess.run(["ip", "netns", "pids", host.name], capture_output=True, text=True,
                          check=True).stdout
    return [int(word) for word in text.split()]
