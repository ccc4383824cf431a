# SPDX-License-Identifier: GPL-2.0-or-later
"""The topology ue - radio - gw - core - srv."""

import contextlib

from . import link as links
from . import paths
from .netns import Namespace, wait_until
from .proxy import Proxy

#: Interfaces of the gateway.
WIRELESS = "radio0"
WIRED = "core0"

#: Host routes on core that end in ICMP host unreachable, and that swallow everything.
UNREACHABLE = {4: "10.99.0.1", 6: "fd00:99::1"}
BLACKHOLE = {4: "10.98.0.1", 6: "fd00:98::1"}

# (left host, its interface, left address part), (right host, its interface), number of the network
_WIRES = (
    ("ue", "radio0", "radio", "ue0", 1),
    ("radio", "gw0", "gw", WIRELESS, 2),
    ("gw", WIRED, "core", "gw0", 3),
    ("core", "srv0", "srv", "core0", 4),
)

_SYSCTL = {
    "net.ipv4.tcp_rmem": "4096 131072 67108864",
    "net.ipv4.tcp_wmem": "4096 16384 67108864",
    "net.ipv4.tcp_no_metrics_save": 1,
    "net.ipv4.icmp_ratelimit": 0,
    "net.ipv6.icmp.ratelimit": 0,
    "net.ipv4.conf.all.rp_filter": 0,
    "net.ipv4.conf.default.rp_filter": 0,
    "net.ipv6.conf.all.accept_dad": 0,
    "net.ipv6.conf.default.accept_dad": 0,
    "net.ipv6.conf.default.accept_ra": 0,
}
_ROUTER = {"net.ipv4.ip_forward": 1, "net.ipv6.conf.all.forwarding": 1}


class Lab:
    """Builds the lab; use it in a `with`.

    radio, core: Link, or None for a plain wire. ue_control, server_control: congestion controls of
    the end hosts (by route; restricted ones work as well). conntrack: connection tracking in gw.
    masquerade: the wired side of gw hides the UEs' addresses (conntrack included). offload: TSO and
    the like on the hosts' interfaces.
    """

    def __init__(self, radio=None, core=None, ue_control="cubic", server_control="cubic",
                 conntrack=False, masquerade=False, offload=True):
        self.hosts = {}
        self.emulators = {}
        self._stack = contextlib.ExitStack()
        self._links = {"radio": radio, "core": core}
        self._controls = {"ue": ue_control, "srv": server_control}
        self._conntrack = conntrack or masquerade
        self._masquerade = masquerade
        self._offload = offload

    def __enter__(self):
        try:
            self._build()
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(self, *_):
        self._stack.close()

    def __getattr__(self, name):
        try:
            return self.__dict__["hosts"][name]
        except KeyError:
            raise AttributeError(name) from None

    # -- building ----------------------------------------------------------------------------------

    def _build(self):
        for role in ("ue", "radio", "gw", "core", "srv"):
            self.hosts[role] = Namespace(role)
            self._stack.callback(self.hosts[role].close)
        for role, host in self.hosts.items():
            host.sysctl({**_SYSCTL, **(_ROUTER if role in ("radio", "gw", "core") else {})})
            host.ip("link set lo up")
        for left, left_if, right, right_if, number in _WIRES:
            self._wire(left, left_if, right, right_if, number)
        self.hosts["srv"].addr4, self.hosts["srv"].addr6 = "10.4.0.2", "fd00:4::2"
        self.hosts["ue"].addr4, self.hosts["ue"].addr6 = "10.1.0.1", "fd00:1::1"
        # The gateway as the UE side and as the server side see it.
        self.hosts["gw"].addr4, self.hosts["gw"].addr6 = "10.2.0.2", "fd00:2::2"
        self.hosts["gw"].wired4, self.hosts["gw"].wired6 = "10.3.0.1", "fd00:3::1"
        self._routes()
        wait_until(self._addresses_ready, 5, "IPv6 addresses of the lab")
        self._tracking()
        for role in ("radio", "core"):
            if self._links[role] is not None:
                self._emulate(role, self._links[role])

    def _wire(self, left, left_if, right, right_if, number):
        a, b = self.hosts[left], self.hosts[right]
        # The end that comes up first has no carrier yet, and IPv6 would wait up to a second for the
        # kernel to say that it has one: take it down and up again.
        a.ip([f"link add {left_if} type veth peer name {right_if} netns {b.name}",
              f"link set {left_if} up"])
        b.ip([f"link set {right_if} up", f"addr add 10.{number}.0.2/24 dev {right_if}",
              f"addr add fd00:{number}::2/64 dev {right_if} nodad"])
        a.ip([f"link set {left_if} down", f"link set {left_if} up",
              f"addr add 10.{number}.0.1/24 dev {left_if}",
              f"addr add fd00:{number}::1/64 dev {left_if} nodad"])
        if not self._offload:
            for host, interface in ((a, left_if), (b, right_if)):
                host.run([paths.needed("ethtool", "ethtool"), "-K", interface, "tso", "off", "gso",
                          "off", "gro", "off", "tx", "off"])

    def _addresses_ready(self):
        """Both addresses of every interface are there and none is tentative any more."""
        def usable():
            with open("/proc/thread-self/net/if_inet6", encoding="ascii") as text:
                return sum(not int(line.split()[4], 16) & 0x40 for line in text)
        counts = [host.call(usable) for host in self.hosts.values()]
        return sum(counts) == len(counts) + 4 * len(_WIRES)

    def _routes(self):
        """No control on the gateway's routes: a route's choice would override the proxy's own."""
        for role, hop in (("ue", "1"), ("srv", "4")):
            last = "2" if role == "ue" else "1"
            control = self._controls[role]
            self.hosts[role].ip([
                f"route add default via 10.{hop}.0.{last} congctl {control}",
                f"route add default via fd00:{hop}::{last} congctl {control}"])
        self.hosts["radio"].ip(["route add default via 10.2.0.2",
                                "route add default via fd00:2::2"])
        self.hosts["gw"].ip(["route add 10.1.0.0/24 via 10.2.0.1",
                             "route add fd00:1::/64 via fd00:2::1",
                             "route add default via 10.3.0.2",
                             "route add default via fd00:3::2"])
        self.hosts["core"].ip(["route add default via 10.3.0.1",
                               "route add default via fd00:3::1",
                               f"route add unreachable {UNREACHABLE[4]}",
                               f"route add unreachable {UNREACHABLE[6]}",
                               f"route add blackhole {BLACKHOLE[4]}",
                               f"route add blackhole {BLACKHOLE[6]}"])

    def _tracking(self):
        """Without a rule that needs it, the kernel does not track connections in a namespace."""
        gw = self.hosts["gw"]
        for table in ("iptables", "ip6tables"):
            if self._masquerade:
                gw.run([table, "-t", "nat", "-A", "POSTROUTING", "-o", WIRED, "-j", "MASQUERADE"])
            if self._conntrack:
                gw.run([table, "-A", "FORWARD", "-m", "conntrack", "--ctstate", "INVALID", "-j",
                        "DROP"])

    def _emulate(self, role, link):
        """The queue takes packets once linkemu is there, so none is lost to the start."""
        host = self.hosts[role]
        self.emulators[role] = links.Emulator(host, link)
        up_in, up_out = ("ue0", "gw0") if role == "radio" else ("gw0", "srv0")
        for table in ("iptables", "ip6tables"):
            for queue, came, leaves in ((links.QUEUE_DOWN, up_out, up_in),
                                        (links.QUEUE_UP, up_in, up_out)):
                host.run([table, "-A", "FORWARD", "-i", came, "-o", leaves, "-j", "NFQUEUE",
                          "--queue-num", str(queue)])

    # -- use ---------------------------------------------------------------------------------------

    def start_proxy(self, **options):
        """Rules and daemon on the gateway; see Proxy."""
        proxy = Proxy(self, **options)
        self._stack.callback(proxy.close)
        proxy.start()
        return proxy

    def restart_links(self):
        """Scripts, traces and statistics of all links begin again."""
        for emulator in self.emulators.values():
            emulator.restart()
