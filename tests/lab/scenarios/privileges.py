# SPDX-License-Identifier: GPL-2.0-or-later
"""What edgepepd may still do once it runs, and what it refuses to start without."""

import grp
import os
import pwd
import shutil
import stat
import subprocess

from lib import paths, peer, scenario, wait_until
from lib.flowtest import short_links
from lib.process import child, status, threads
from lib.proxy import GROUP, USER

_NET_ADMIN, _NET_RAW = 1 << 12, 1 << 13
_NEEDED = _NET_ADMIN | _NET_RAW


def _public(proxy, name):
    """A copy of a program where every user can run it."""
    return shutil.copy(paths.program(name), proxy.folder)


def _as_user(lab, words):
    """Runs a program as the daemon's user without any privilege."""
    return lab.gw.run(["setpriv", f"--reuid={USER}", f"--regid={GROUP}", "--clear-groups",
                       "--inh-caps=-all", "--ambient-caps=-all", *words], check=False)


@scenario("privileges", "edgepepd runs as its user with CAP_NET_ADMIN and CAP_NET_RAW and nothing "
                        "else, for ever")
def privileges(t):
    uid, gid = pwd.getpwnam(USER).pw_uid, grp.getgrnam(GROUP).gr_gid
    with t.lab(**short_links()) as lab:
        proxy = lab.start_proxy()
        pid = proxy.process.pid
        tasks = threads(pid)
        t.check("main thread and workers", len(tasks) == 3, tasks)
        for name, thread in tasks.items():
            with t.group(f"thread {name}"):
                found = status(pid, thread)
                t.equal("user ids", found["Uid"].split(), [str(uid)] * 4)
                t.equal("group ids", found["Gid"].split(), [str(gid)] * 4)
                t.equal("other groups", found.get("Groups", "").split(), [])
                for field, want in (("CapPrm", _NEEDED), ("CapEff", _NEEDED), ("CapBnd", 0),
                                    ("CapInh", 0), ("CapAmb", 0)):
                    t.equal(field, int(found[field], 16), want)
                t.equal("NoNewPrivs", found["NoNewPrivs"], "1")

        with t.group("guard process"):
            guard = child(pid)
            found = status(guard)
            t.equal("user ids", found["Uid"].split(), [str(uid)] * 4)
            for field, want in (("CapPrm", _NET_ADMIN), ("CapEff", _NET_ADMIN), ("CapBnd", 0),
                                ("CapInh", 0), ("CapAmb", 0)):
                t.equal(field, int(found[field], 16), want)
            t.equal("NoNewPrivs", found["NoNewPrivs"], "1")
            # stdin, stdout, stderr, its end of the pair, the daemon, two queues
            t.equal("descriptors", len(os.listdir(f"/proc/{guard}/fd")), 7)

        with t.group("run-dir"):
            control = os.stat(os.path.join(proxy.run_dir, "control.sock"))
            t.equal("control socket mode", stat.S_IMODE(control.st_mode), 0o660)
            t.equal("control socket group", control.st_gid, gid)
            segment = os.stat(os.path.join(proxy.run_dir, "stats"))
            t.equal("stats segment mode", stat.S_IMODE(segment.st_mode), 0o640)
            t.equal("stats segment group", segment.st_gid, gid)

        with t.group("a stranger"):
            # "daemon": a user of every Debian system that is not in the control group.
            done = lab.gw.run(["setpriv", "--reuid=daemon", "--regid=daemon", "--clear-groups",
                               _public(proxy, "edgepepctl"), "-c", proxy.conf_path, "drain"],
                              check=False)
            t.check("cannot command the daemon", done.returncode != 0
                    and "ermission" in done.stderr, (done.returncode, done.stderr[-200:]))
            t.equal("the state is as before", proxy.status()["state"], "running")

        with t.group("with these privileges"), peer.Listener(lab.srv, 4) as listener:
            client, server = peer.pair(lab.ue, listener)
            octets = peer.data(200000)
            t.check("flows work", peer.exchange(client, server, octets)[0] == octets)
            t.equal("the server sees the client's address", server.address[0], lab.ue.addr(4))
            t.check("reload works", proxy.ask("reload").get("ok"))
            client.close()
            server.close()


@scenario("privileges-start", "what it cannot do without, edgepepd names in one line; capabilities "
                              "alone suffice without root")
def start(t):
    with t.lab() as lab:
        proxy = lab.start_proxy(daemon=False)
        argv = [_public(proxy, "edgepepd"), "-c", proxy.conf_path]
        none = _as_user(lab, argv)
        t.equal("without capabilities: exit code", none.returncode, 1)
        t.check("it names them", "CAP_NET" in none.stderr, none.stderr[-300:])
        t.check("in no more than two lines", len(none.stderr.splitlines()) <= 2, none.stderr)
        for missing in ("net_admin", "net_raw"):
            kept = "net_raw" if missing == "net_admin" else "net_admin"
            done = lab.gw.run(["setpriv", f"--reuid={USER}", f"--regid={GROUP}", "--clear-groups",
                               f"--inh-caps=-all,+{kept}", f"--ambient-caps=-all,+{kept}", *argv],
                              check=False)
            t.equal(f"without {missing}: exit code", done.returncode, 1)
            t.check(f"without {missing}: it is named", f"CAP_{missing.upper()}" in done.stderr,
                    done.stderr[-300:])
        # As systemd starts it: the user's process with ambient capabilities.
        process = lab.gw.popen(["setpriv", f"--reuid={USER}", f"--regid={GROUP}", "--clear-groups",
                                "--inh-caps=-all,+net_admin,+net_raw",
                                "--ambient-caps=-all,+net_admin,+net_raw", *argv],
                               stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                               stderr=subprocess.PIPE)
        proxy.process, proxy.daemon = process, True
        t.check("with both it starts", _started(proxy))
        found = status(process.pid)
        for field, want in (("CapPrm", _NEEDED), ("CapEff", _NEEDED), ("CapAmb", 0)):
            t.equal(field, int(found[field], 16), want)
        t.equal("NoNewPrivs", found["NoNewPrivs"], "1")
        with peer.Listener(lab.srv, 4) as listener:
            client, server = peer.pair(lab.ue, listener)
            t.check("flows work", peer.exchange(client, server, b"x" * 1000)[0] == b"x" * 1000)
            client.close()
            server.close()
        t.equal("split", proxy.counters()["split"], 1)
        t.equal("ends well", proxy.stop_daemon(), 0)


def _started(proxy):
    try:
        wait_until(lambda: proxy.process.poll() is not None or _answers(proxy), 10, "it answers")
    except TimeoutError:
        return False
    return proxy.process.poll() is None


def _answers(proxy):
    try:
        return proxy.ask("status").get("ok")
    except OSError:
        return False
