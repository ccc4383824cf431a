# SPDX-License-Identifier: GPL-2.0-or-later
"""What is shown in the machine: the installed proxy under its own units, on a stock kernel."""

import json
import os
import signal
import socket
import struct
import subprocess
import time

import proxy
from proxy import prop, systemctl
from report import FOLDER, Report
from traffic import Server, connect, exchange, payload, read_all
from world import World, run, wait_until

UNITS = ("edgepep-cca.service", "edgepep-rules.service", "edgepep.service", "edgepep-mon.service")
CONTROLS = ("pep_bbr", "pep_bbr_acd", "pep_bbr_a", "pep_bbr_d", "pep_bwe")
MONITOR = "http://127.0.0.1:9955"
PACKAGE = os.path.join(FOLDER, "edgepep.deb")    # there with --deb, in place of `make install`
OBJECTS = os.path.join(FOLDER, "test_cca_objects")     # a unit test; there when it was built
DROPIN = "/etc/edgepep/edgepep.conf.d/10-vm.conf"
SLOW = 20       # an emulated CPU is so many times slower; bounds of time allow for it


def rules_now():
    """Everything the steering could leave behind."""
    parts = [run("iptables-save").stdout, run("ip6tables-save").stdout, run("ip", "rule").stdout,
             run("ip", "-6", "rule").stdout,
             run("sysctl", "net.ipv4.tcp_early_demux", "net.ipv4.conf.radio0.rp_filter").stdout]
    lines = [line for part in parts for line in part.splitlines()]
    # Empty tables appear when a module is loaded; counters and dates are no rules.
    return [line.split(" [")[0] for line in lines
            if line and line[0] not in "#*" and line != "COMMIT" and " ACCEPT [" not in line]


def stock(report):
    release = os.uname().release
    report.check("the kernel is Debian's 6.1", release.startswith("6.1."), release)
    report.data("kernel", os.uname().version)
    with open("/proc/1/comm", encoding="ascii") as name:
        report.equal("systemd is init", name.read().strip(), "systemd")
    report.data("systemd", run("systemctl", "--version").stdout.splitlines()[0])
    state = systemctl("--failed", "--plain", "--no-legend").stdout
    report.equal("no unit has failed in booting", state, "")


def dpkg(*args):
    return run("dpkg", "--no-triggers", *args, check=False, timeout=240,
               env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"})


def install(report):
    if os.path.exists(PACKAGE):
        done = dpkg("-i", PACKAGE)
        report.require("the package installs", done.returncode == 0, done.stdout + done.stderr)
        report.equal("it starts nothing", prop("ActiveState"), "inactive")
    else:
        run("systemd-sysusers")
    users = [run("id", "-u", name, check=False).stdout.strip() for name in ("edgepep",
                                                                            "edgepep-mon")]
    report.check("sysusers makes the accounts", all(users) and len(set(users)) == 2, users)
    os.makedirs(os.path.dirname(DROPIN), exist_ok=True)
    with open(DROPIN, "w", encoding="ascii") as out:
        out.write('wireless-interfaces = {"radio0"}\nwired-interfaces = {"core0"}\nworkers = 2\n')
    done = run("edgepepd", "--check-config", check=False)
    report.check("the configuration is good", done.returncode == 0, done.stdout + done.stderr)


def units(report):
    began = time.monotonic()
    done = systemctl("start", *UNITS, check=False)
    report.data("start_s", round(time.monotonic() - began, 2))
    report.check("the units start", done.returncode == 0, done.stderr.strip())
    for unit in UNITS:
        report.equal(f"{unit} is active", prop("ActiveState", unit), "active")
    report.equal("edgepep.service is Type=notify", prop("Type"), "notify")
    report.check("the watchdog is armed", prop("WatchdogUSec") not in ("0", "infinity"),
                 prop("WatchdogUSec"))
    report.require("the daemon answers", proxy.answers())


def controls(report):
    with open("/proc/sys/net/ipv4/tcp_available_congestion_control", encoding="ascii") as names:
        known = names.read().split()
    missing = [name for name in CONTROLS if name not in known]
    report.check("the controls are registered", not missing, f"missing {missing} in {known}")
    listed = run("edgepep-cca", "list", check=False)
    report.check("edgepep-cca list knows them", all(n in listed.stdout for n in CONTROLS),
                 listed.stdout + listed.stderr)
    able = json.loads(run("edgepep-cca", "probe", "--json").stdout)
    report.equal("cong_control has its old signature", able["cong_control_arguments"], 2)
    report.equal("the objects made for it are taken", able["variant"], "2")
    report.data("edgepep-cca", able["text"])
    if os.path.exists(OBJECTS):
        done = run(OBJECTS, check=False, timeout=240)
        report.check("the verifier takes variant 2", done.returncode == 0
                     and "variant 2: every control loaded" in done.stdout + done.stderr,
                     done.stdout + done.stderr)
    report.check("observers find the state of connections", os.path.ismount("/run/edgepep-cca")
                 and os.listdir("/run/edgepep-cca"))


def traffic(report, world, server):
    before = proxy.counters()["split"]
    for family in (4, 6):
        futures = [world.ue.start(exchange, world.ue, server, family, 1 << 20, 1 << 21, seed)
                   for seed in range(4)]
        results = [future.result() for future in futures]
        report.check(f"IPv{family}: bytes are intact both ways", all(r.intact for r in results))
        report.check(f"IPv{family}: the client's address is kept",
                     all(r.kept_address for r in results))
        report.check(f"IPv{family}: the client's port is kept", all(r.kept_port for r in results))
    report.equal("every connection was split", proxy.counters()["split"] - before, 8)
    done = world.ue.start(refused, world.ue, server).result()
    report.equal("a refusing port is refused", done, "ConnectionRefusedError")


def refused(host, server):
    """How connecting to a closed port ends."""
    del host
    with socket.socket() as sock:
        sock.settimeout(10)
        try:
            sock.connect((server.host.addr[4], 9))
        except OSError as error:
            return type(error).__name__
    return "connected"


def legs(report, world, server):
    """Which control each leg has, as the kernel says."""
    sock = world.ue.start(connect, world.ue, server, 4).result()
    with sock:
        me = "%s:%d" % sock.getsockname()
        peer = f"{server.host.addr[4]}:5000"
        found = proxy.control_of_socket(run("ss", "-tinH").stdout)
        report.equal("the wireless leg's control", found.get((peer, me)), "pep_bbr_a")
        report.equal("the wired leg's control", found.get((me, peer)), "cubic")
        in_use = proxy.ask("status")["congestion_control"]["wireless"]
        report.check("no fallback", not in_use["fallback"], in_use)


def netem(report, world, server):
    """A radio of 20 ms that loses packets, by the kernel's own emulator."""
    run("tc", "qdisc", "add", "dev", "radio0", "root", "netem", "delay", "10ms", "loss", "3%",
        "rate", "20mbit", "limit", "200")
    try:
        future = world.ue.start(exchange, world.ue, server, 4, 1 << 16, 3 << 20, 77, 60)
        result = future.result()
    finally:
        run("tc", "qdisc", "del", "dev", "radio0", "root")
    report.check("bytes are intact over a lossy radio", result.intact)
    report.data("netem_3MiB_s", round(result.seconds, 2))


def monitor(report):
    metrics = run("curl", "-sS", "-m", "10", MONITOR + "/metrics", check=False).stdout
    values = {}
    for line in metrics.splitlines():
        if line and line[0] != "#":
            values[line.rsplit(" ", 1)[0]] = line.rsplit(" ", 1)[1]
    report.check("edgepep-mon serves metrics", len(values) > 20, f"{len(values)} series")
    report.check("they count what was split",
                 any("split" in name and float(value) > 0 for name, value in values.items()))
    report.equal("/readyz", run("curl", "-s", "-m", "10", "-o", "/dev/null", "-w", "%{http_code}",
                                MONITOR + "/readyz", check=False).stdout, "200")


def privileges(report):
    status = proxy.process_status(proxy.pid())
    wanted = (1 << 12) | (1 << 13)      # CAP_NET_ADMIN, CAP_NET_RAW
    report.equal("effective capabilities", int(status["CapEff"], 16) & ~wanted, 0)
    report.equal("permitted capabilities", int(status["CapPrm"], 16) & ~wanted, 0)
    report.equal("bounding set", int(status["CapBnd"], 16) & ~wanted, 0)
    report.check("not root", "0" not in status["Uid"].split(), status["Uid"])
    report.equal("no new privileges", status["NoNewPrivs"], "1")
    mon = proxy.process_status(int(prop("MainPID", "edgepep-mon.service")))
    report.equal("the monitor has no capability", int(mon["CapEff"], 16), 0)
    mode = os.stat(proxy.CONTROL).st_mode & 0o777
    report.equal("mode of the control socket", oct(mode), "0o660")


def doctor(report):
    done = run("edgepepctl", "doctor", "--json", check=False)
    with open(os.path.join(FOLDER, "doctor.json"), "w", encoding="utf-8") as out:
        out.write(done.stdout + done.stderr)
    report.check("doctor finds nothing severe", done.returncode in (0, 1), done.returncode)
    report.check("doctor prints JSON", isinstance(json.loads(done.stdout), (dict, list)))
    with open(os.path.join(FOLDER, "doctor.txt"), "w", encoding="utf-8") as out:
        out.write(run("edgepepctl", "doctor", check=False).stdout)


def reload(report, world, server):
    """Reloading daemon and rules keeps flows."""
    data = payload(5, 100_000)
    sock = world.ue.start(connect, world.ue, server, 4).result()
    with sock:
        generation = proxy.ask("status")["config_generation"]
        with open(DROPIN, "a", encoding="ascii") as out:
            out.write("max-flows-per-client = 1000\n")
        done = systemctl("reload", "edgepep.service", check=False)
        report.check("systemctl reload works", done.returncode == 0, done.stderr)
        report.check("the new configuration is in effect",
                     proxy.ask("status")["config_generation"] > generation)
        done = systemctl("reload", "edgepep-rules.service", check=False)
        report.check("the rules can be loaded again", done.returncode == 0, done.stderr)
        report.equal("the open flow lives on", proxy.ask("status")["flows"], 1)
        sock.sendall(struct.pack("!III", 0, len(data), 5))
        read_all(sock, 160)
        report.check("and moves data", read_all(sock, len(data)) == data)


class Knocker:
    """New connections, one after the other, from another thread, until stopped."""

    def __init__(self, world, server):
        self.results, self.failures = [], []
        self.over = False
        self.future = world.ue.start(self._run, world, server)

    def _run(self, world, server):
        seed = 1000
        while not self.over:
            seed += 1
            began = time.monotonic()
            try:
                result = exchange(world.ue, server, 4, 1000, 1000, seed, 30)
                self.results.append((began, result))
                if not result.intact:
                    self.failures.append((began, "bytes differ"))
            except (OSError, EOFError) as error:
                self.failures.append((began, repr(error)))
            time.sleep(0.02)

    def stop(self):
        self.over = True
        self.future.result()


def ending(sock):
    """How the rest of a connection ends, from the client's side."""
    try:
        while sock.recv(1 << 16):
            pass
    except OSError as error:
        return type(error).__name__
    return "clean end"


def fail_open(report, world, server, sent, name, recover_s):
    """The daemon dies or hangs: cut flows end with RST, new ones flow, systemd brings it back."""
    before = proxy.pid()
    restarts = int(prop("NRestarts"))
    cut = world.ue.start(connect, world.ue, server, 4).result()
    server.endings.clear()
    knocker = Knocker(world, server)
    try:
        wait_until(lambda: len(knocker.results) >= 3, 20, "connections through the proxy")
        began = time.monotonic()
        os.kill(before, sent)
        returned = proxy.wait_answers(recover_s + 60, before)
        wait_until(lambda: any(at > began + returned for at, _ in knocker.results), 30,
                   "a connection after the restart")
    finally:
        knocker.stop()
    report.check("systemd starts the daemon again", int(prop("NRestarts")) > restarts)
    report.data(f"{name}_restart_s", round(returned, 2))
    # A connection that was open when the daemon died is cut; those that began later must not be.
    failed = [what for at, what in knocker.failures if at > began]
    report.equal("no new connection fails", failed, [])
    after = [(at, result) for at, result in knocker.results if at + result.connect_s > began]
    first = min(at + result.connect_s for at, result in after if at > began) - began
    report.data(f"{name}_first_new_connection_s", round(first, 3))
    report.data(f"{name}_longest_connect_s", round(max(r.connect_s for _, r in after), 3))
    report.check(f"new connections are through within {recover_s} s",
                 max(result.connect_s for _, result in after) <= recover_s,
                 f"longest {max(result.connect_s for _, result in after):.3f} s")
    direct = sum(at > began for at, _ in after) - proxy.counters()["split"]
    report.data(f"{name}_direct_connections", direct)
    report.check("some went end to end meanwhile", direct > 0, f"{direct} direct")
    with cut:
        report.equal("the cut flow ends with RST at the client", ending(cut),
                     "ConnectionResetError")
    report.check("and at the server", wait_until(
        lambda: any(isinstance(e, ConnectionResetError) for e in server.endings), 10,
        "RST at the server"))
    split = proxy.counters()["split"]
    result = world.ue.start(exchange, world.ue, server, 4).result()
    report.check("connections are split again",
                 result.intact and proxy.counters()["split"] > split)


def restart(report, world, server):
    """systemctl restart: no new connection may fail."""
    before = proxy.pid()
    knocker = Knocker(world, server)
    try:
        wait_until(lambda: len(knocker.results) >= 2, 20, "connections through the proxy")
        done = systemctl("restart", "edgepep.service", check=False)
        report.check("systemctl restart works", done.returncode == 0, done.stderr)
        proxy.wait_answers(30, before)
        count = len(knocker.results)
        wait_until(lambda: len(knocker.results) > count + 2, 20, "connections afterwards")
    finally:
        knocker.stop()
    report.equal("no connection fails", [what for _, what in knocker.failures], [])


def upgrade(report, world, server):
    """Installing the package again: the daemon is a new one, and nobody outside sees it."""
    before, rules = proxy.pid(), rules_now()
    knocker = Knocker(world, server)
    try:
        done = dpkg("-i", PACKAGE)
        report.check("the package upgrades", done.returncode == 0, done.stdout + done.stderr)
        report.check("the daemon was restarted", proxy.answers(before))
    finally:
        knocker.stop()
    report.equal("no connection fails", [what for _, what in knocker.failures], [])
    report.equal("the rules stayed", rules_now(), rules)
    report.check("the operator's drop-in stayed", os.path.exists(DROPIN))


def purge(report, clean):
    systemctl("start", *UNITS)
    done = dpkg("--purge", "edgepep")
    report.check("the package goes", done.returncode == 0, done.stdout + done.stderr)
    report.equal("the rules are as before", rules_now(), clean)
    report.check("nothing is left", not any(os.path.exists(path) for path in (
        "/etc/edgepep", "/usr/sbin/edgepepd", "/lib/systemd/system/edgepep.service")))


def stop(report, clean, world, server):
    done = systemctl("stop", *UNITS, check=False)
    report.check("the units stop", done.returncode == 0, done.stderr)
    report.equal("the rules are as before", rules_now(), clean)
    result = world.ue.start(exchange, world.ue, server, 4).result()
    report.check("traffic flows without them", result.intact and result.kept_port)
    report.equal("no unit has failed", systemctl("--failed", "--plain", "--no-legend").stdout, "")


def keep_journal():
    with open(os.path.join(FOLDER, "journal.log"), "w", encoding="utf-8") as out:
        subprocess.run(["journalctl", "-b", "-o", "short-monotonic", "--no-pager"], stdout=out,
                       check=False)


def main():
    report = Report()
    with report.group("stock"):
        stock(report)
    with report.group("install"):
        install(report)
    world = World()
    server = Server(world.srv)
    clean = rules_now()
    within = (0.1 * SLOW, 2)        # of a kill, of a hang
    steps = [("controls", controls, ()), ("traffic", traffic, (world, server)),
             ("legs", legs, (world, server)), ("privileges", privileges, ()),
             ("doctor", doctor, ()), ("monitor", monitor, ()),
             ("netem", netem, (world, server)), ("reload", reload, (world, server)),
             ("killed", fail_open, (world, server, signal.SIGKILL, "killed", within[0])),
             ("hung", fail_open, (world, server, signal.SIGSTOP, "hung", within[1])),
             ("restart", restart, (world, server)), ("stop", stop, (clean, world, server))]
    if os.path.exists(PACKAGE):
        steps[-1:-1] = [("upgrade", upgrade, (world, server))]
        steps += [("purge", purge, (clean,))]
    with report.group("units"):
        units(report)
        for name, function, args in steps:
            with report.group(name):
                function(report, *args)
    keep_journal()
    report.write(done=True)


if __name__ == "__main__":
    main()
