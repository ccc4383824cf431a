# SPDX-License-Identifier: GPL-2.0-or-later
"""What the scenarios with a proxy share: variants of the gateway, and one case of a table."""

from . import peer
from .framework import scenario
from .link import Link
from .netns import wait_until

#: How the gateway is set up beside the proxy: suffix of the scenario's name -> options of Lab.
VARIANTS = {
    "": {},
    "-conntrack": {"conntrack": True},
    "-masquerade": {"masquerade": True},
}

_TEXTS = {"": "", "-conntrack": ", with conntrack", "-masquerade": ", behind MASQUERADE"}

FAMILIES = (4, 6)
KILO, MEGA = 1 << 10, 1 << 20


def each_variant(name, text, **args):
    """Registers function(t, variant, **args) for each variant, as name + variant."""
    def register(function):
        for variant in VARIANTS:
            scenario(name + variant, text + _TEXTS[variant], variant=variant, **args)(function)
        return function
    return register


def short_links():
    """Delays that make the order of things as in the field, no limits that cost time."""
    return {"radio": Link(rtt="2ms"), "core": Link(rtt="6ms")}


class Case:
    """A lab with a proxy and one address family, as the functions of a table get it."""

    def __init__(self, t, lab, proxy, family, masquerade=False):
        self.t, self.lab, self.proxy, self.family = t, lab, proxy, family
        self.masquerade = masquerade

    def listener(self, **options):
        return peer.Listener(self.lab.srv, self.family, **options)

    def connect(self, listener, **options):
        return peer.connect(self.lab.ue, listener.address, listener.port, self.family, **options)

    def pair(self, listener, **options):
        return peer.pair(self.lab.ue, listener, **options)

    def client_addr(self):
        """The client's address as the server should see it."""
        gw = self.lab.gw
        if self.masquerade:
            return gw.wired6 if self.family == 6 else gw.wired4
        return self.lab.ue.addr(self.family)

    def wired_addr(self):
        return self.lab.gw.wired6 if self.family == 6 else self.lab.gw.wired4

    def counted(self, path, function, by=1):
        """Runs function() and checks that the counter a.b.c rises by a number."""
        def value():
            found = self.proxy.counters()
            for key in path.split("."):
                found = found[key]
            return found
        before = value()
        result = function()
        try:
            wait_until(lambda: value() >= before + by, 3, path)
        except TimeoutError:
            pass
        self.t.equal(f"counted as {path}", value() - before, by)
        return result

    def data(self, name, got, want):
        """Compares by digest, and says where two transfers part."""
        ok = peer.digest(got) == peer.digest(want)
        detail = f"{len(got)} bytes"
        if not ok and len(got) == len(want):
            detail += ", first difference at " + str(next(
                i for i, (a, b) in enumerate(zip(got, want)) if a != b))
        elif not ok:
            detail += f" of {len(want)}"
        return self.t.check(name, ok, detail)


def run_table(t, table, lab, proxy, families=FAMILIES, masquerade=False):
    """Runs every function of a table on each family; an error ends one function only."""
    for family in families:
        for function in table:
            with t.group(f"IPv{family} {function.__name__}"):
                function(Case(t, lab, proxy, family, masquerade))
            if proxy.daemon and not t.check(f"IPv{family} {function.__name__}: the daemon lives",
                                            proxy.alive(), proxy.log_tail()):
                return
