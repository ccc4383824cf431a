#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""edgepepctl against a real edgepepd, in network namespaces: every command that talks to the daemon,
for people and as JSON, and what each of them says when there is no daemon.
"""
import fcntl
import json
import os
import pty
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
# pylint: disable=wrong-import-position
from rules_world import World, connect, listen, receive, wait_until

CTL = os.path.abspath(os.environ.get("EDGEPEPCTL", "./src/ctl/edgepepctl"))
DAEMON = os.path.abspath(os.environ.get("EDGEPEPD", "./src/proxy/edgepepd"))
MONITOR = os.path.abspath(os.environ.get("EDGEPEP_MON", "./src/mon/edgepep-mon"))
PORT = 8080
CONF = """wireless-interfaces = {{"radio0"}}
wired-interfaces = {{"core0"}}
workers = 2
run-dir = "{dir}"
user = "root"
group = "root"
leg wireless {{ congestion-control = "reno" }}
leg wired {{ congestion-control = "reno" }}
"""


class Ctl(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.dir)
        self.conf = f"{self.dir}/conf"
        self.write_conf()
        self.world = World()
        self.addCleanup(self.world.close)
        self.server = listen(self.world.srv, 4, self.world.SERVER[4], PORT)
        self.addCleanup(self.server.close)
        self.daemon = None
        self.addCleanup(self.kill)

    def write_conf(self, more=""):
        with open(self.conf, "w", encoding="ascii") as out:
            out.write(CONF.format(dir=self.dir) + more)

    def start(self):
        self.ctl("rules", "up")
        with self.world.gw:
            self.daemon = subprocess.Popen([DAEMON, "-c", self.conf], stderr=subprocess.DEVNULL)
        wait_until("the daemon answers", lambda: self.ask("status", code=None)[0] == 0)

    def kill(self):
        if self.daemon:
            self.daemon.kill()
            self.daemon.wait()
        self.daemon = None

    def ask(self, *words, code=0):
        """(exit code, stdout, stderr)"""
        with self.world.gw:
            done = subprocess.run([CTL, "-c", self.conf, *words], capture_output=True, text=True,
                                  timeout=30, check=False)
        if code is not None:
            self.assertEqual(done.returncode, code, f"{words}: {done.stderr}{done.stdout}")
        return done.returncode, done.stdout, done.stderr

    def ctl(self, *words, code=0):
        return self.ask(*words, code=code)[1]

    def ctl_json(self, *words, code=0):
        reply = json.loads(self.ctl("--json", *words, code=code))
        self.assertEqual(reply["ok"], code == 0)
        return reply

    def flow(self):
        client = connect(self.world.ue, 4, self.world.SERVER[4], PORT)
        self.addCleanup(client.close)
        server, _ = self.server.accept()
        self.addCleanup(server.close)
        server.sendall(b"x" * 100000)
        receive(client, 100000)
        return client, server

    def test_status(self):
        self.start()
        self.flow()
        status = self.ctl_json("status")
        self.assertEqual((status["state"], status["flows"], status["counters"]["split"]),
                         ("running", 1, 1))
        text = self.ctl("status")
        for part in ("running", "1 of at most", "radio0; congestion control reno", "1 flows split"):
            self.assertIn(part, text)

    def test_flows(self):
        self.start()
        flows = [self.flow() for _ in range(5)]
        wait_until("all in the list", lambda: len(self.ctl_json("flows")["flows"]) == 5)
        listed = self.ctl_json("flows", "--sort", "age", "--limit", "2")
        self.assertEqual((listed["matched"], len(listed["flows"])), (5, 2))
        self.assertEqual(listed["flows"][0]["client_port"], flows[0][0].getsockname()[1])
        self.assertEqual(self.ctl_json("flows", "--client", "10.1.0.2/32")["matched"], 5)
        self.assertEqual(self.ctl_json("flows", "--client", "fd00::/8")["matched"], 0)
        self.assertEqual(len(self.ctl("flows").splitlines()), 6)
        self.assertIn("3 more", self.ctl("flows", "--limit=2"))

    def test_history(self):
        self.write_conf(f'monitor {{ listen = "unix:{self.dir}/http.sock" }}\n')
        self.start()
        client, server = self.flow()
        flow = self.ctl_json("flows")["flows"][0]["id"]
        error = self.ask("flows", "history", flow, code=1)[2]
        self.assertIn("systemctl start edgepep-mon", error)
        with self.world.gw:
            monitor = subprocess.Popen([MONITOR, "-c", self.conf], stderr=subprocess.DEVNULL)
        try:
            wait_until("the monitor answers", lambda: os.path.exists(f"{self.dir}/http.sock") and
                       self.ask("flows", "history", flow, code=None)[0] == 0)

            def told():
                server.sendall(b"x" * 20000)
                receive(client, 20000)
                history.update(self.ctl_json("flows", "history", flow)["flow"]["history"] or {})
                return len(history.get("time", ())) > 2
            history = {}
            wait_until("three seconds of history", told)
            self.assertGreater(sum(history["downlink"]["bytes_per_second"]), 0)
            self.assertEqual(sum(history["uplink"]["bytes_per_second"]), 0)
            lines = self.ctl("flows", "history", flow, "--limit=2").splitlines()
            self.assertEqual((len(lines), lines[0].split()[:5]),
                             (3, ["TIME", "DOWN", "UP", "DOWN-LIMIT", "UP-LIMIT"]))
            self.assertIn("application", lines[2])
            self.assertIn("bit/s", lines[2])
            self.assertIn("no such flow", self.ask("flows", "history", "1-999999", code=1)[2])
            self.ask("flows", "history", "../status", code=2)
        finally:
            monitor.terminate()
            monitor.wait()

    def test_kill(self):
        self.start()
        client, server = self.flow()
        flow = self.ctl_json("flows")["flows"][0]["id"]
        self.assertIn(f"{client.getsockname()[1]}", self.ctl("flows", "show", flow))
        self.assertIn("was reset", self.ctl("flows", "kill", flow))
        for end in client, server:
            with self.assertRaises(ConnectionResetError):
                end.recv(1)
        self.ctl_json("flows", "kill", flow, code=1)
        closed = self.ctl_json("flows", "--closed")["flows"]
        self.assertEqual([f["close_reason"] for f in closed], ["killed"])
        self.assertEqual(self.ctl_json("flows", "show", flow)["flow"]["state"], "closed")

    def test_bypass(self):
        self.start()
        self.assertEqual(self.ctl_json("bypass", "on")["state"], "bypass")
        self.flow()
        self.assertEqual(self.ctl_json("status")["counters"]["bypassed"]["operator"], 1)
        self.ctl("bypass", "off")
        self.flow()
        self.assertEqual(self.ctl_json("status")["counters"]["split"], 1)

    def test_reload(self):
        self.start()
        self.assertIn("nothing changed", self.ctl("reload"))
        self.write_conf("accept = early\nmax-pending = 77\n")
        changes = {c["key"]: c for c in self.ctl_json("reload")["changes"]}
        self.assertEqual((changes["accept"]["before"], changes["accept"]["after"]),
                         ("verified", "early"))
        self.assertTrue(changes["max-pending"]["needs_restart"])
        self.write_conf("acept = early\n")
        # the daemon refuses it, and a configuration with errors does not shut an operator out
        self.assertEqual(self.ask("reload", code=None)[0], 1)

    def test_drain(self):
        self.start()
        client, server = self.flow()
        self.ctl("drain")
        self.flow()
        self.assertEqual(self.ctl_json("status")["counters"]["bypassed"]["drain"], 1)
        self.ctl("resume")
        self.assertEqual(self.ctl_json("status")["state"], "running")
        self.ctl("drain", "--deadline", "30s")
        client.close()
        server.close()
        self.assertEqual(self.daemon.wait(10), 0)

    def test_drain_deadline(self):
        self.start()
        client, _ = self.flow()
        self.ctl("drain", "--deadline=1s", "--wait")
        self.daemon.wait(1)
        with self.assertRaises(ConnectionResetError):
            client.recv(1)

    def on_terminal(self, rows, columns, *words, until):
        """What a command drew on a terminal of that size, up to some text; and "q"."""
        terminal, inside = pty.openpty()
        self.addCleanup(os.close, terminal)
        fcntl.ioctl(inside, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        with self.world.gw:
            command = subprocess.Popen([CTL, "-c", self.conf, *words], stdin=inside, stdout=inside,
                                       stderr=inside, env={**os.environ, "TERM": "xterm"})
        os.close(inside)
        screen = b""
        while until.encode() not in screen and select.select([terminal], [], [], 10)[0]:
            try:
                screen += os.read(terminal, 65536)
            except OSError:  # the command ended
                break
        os.write(terminal, b"q")
        self.assertEqual(command.wait(10), 0, screen)
        return screen.decode(errors="replace")

    def test_top(self):
        self.start()
        self.flow()
        with self.world.gw:
            top = subprocess.Popen([CTL, "-c", self.conf, "top", "--json"], stdout=subprocess.PIPE,
                                   text=True)
        self.addCleanup(top.kill)
        lines = [json.loads(top.stdout.readline()) for _ in range(2)]
        self.assertEqual([len(line["flows"]) for line in lines], [1, 1])
        top.send_signal(signal.SIGTERM)
        top.stdout.close()
        top.wait()
        screen = self.on_terminal(8, 70, "top", until="10.1.0.2")
        self.assertIn("flows 1 of", screen)
        self.assertIn("10.1.0.2", screen)
        self.assertIn("edgepepctl flows", self.ask("top", code=1)[2])  # no terminal

    def doctor(self, worst=None):
        """{check: [(severity, text, fix)]}"""
        code, out, _ = self.ask("--json", "doctor", code=None)
        report = json.loads(out)
        self.assertEqual(code, {"ok": 0, "note": 0, "warning": 1, "error": 3}[report["worst"]])
        if worst:
            self.assertEqual(report["worst"], worst, out)
        found = {}
        for f in report["findings"]:
            found.setdefault(f["check"], []).append((f["severity"], f["text"], f["fix"]))
        return found

    def assert_found(self, check, severity, text, fix=""):
        found = self.doctor().get(check, [])
        self.assertTrue([f for f in found if f[0] == severity and text in f[1] and fix in f[2]],
                        f"{check}: {found}")

    def test_doctor_healthy(self):
        self.start()
        self.flow()
        with self.world.gw:
            subprocess.run(["sysctl", "-qw", "net.core.somaxconn=4096"], check=True)
        found = self.doctor()
        bad = {check: f for check, f in found.items()
               for severity, *_ in f if severity in ("warning", "error")}
        self.assertEqual(bad, {})
        self.assertEqual({f[0] for f in found["rules"]}, {"ok"})

    def test_doctor_nothing(self):
        self.assert_found("rules", "error", "not loaded", "edgepep-rules")
        self.assert_found("routes", "error", "missing", "rules up")
        self.assert_found("daemon", "error", "is not running", "systemctl start edgepep")
        self.doctor("error")

    def test_doctor_rules(self):
        self.start()
        gw = self.world.gw
        gw.run("iptables", "-t", "mangle", "-I", "PREROUTING", "-p", "tcp", "-j", "ACCEPT")
        self.assert_found("order", "warning", "-A PREROUTING -p tcp -j ACCEPT", "rules up")
        self.ctl("rules", "up")
        self.assertNotIn("order", self.doctor())
        gw.run("ip6tables", "-t", "raw", "-D", "EDGEPEP-CLIENT", "1")
        self.assert_found("rules", "error", "ipv6: the rules are not those", "rules up")
        self.ctl("rules", "up")
        gw.run("ip", "rule", "del", "iif", "core0", "table", "7357")
        self.assert_found("routes", "error", "for interface core0 is missing")
        self.ctl("rules", "up")
        gw.run("ip", "route", "flush", "table", "7357")
        self.assert_found("routes", "error", "local route of table 7357")
        self.ctl("rules", "up")
        gw.run("ip", "route", "add", "192.0.2.0/24", "dev", "core0", "table", "7357")
        self.assert_found("routes", "error", "other routes", "table =")
        gw.run("ip", "rule", "add", "priority", "50", "table", "99")
        self.assert_found("routes", "warning", "priority 50", "rule-priority")
        gw.sysctl("net.ipv4.tcp_early_demux", 1)
        self.assert_found("early_demux", "warning", "is not 0")
        self.write_conf("steering { first-port = 18000 }")
        self.assert_found("rules", "error", "not those of this configuration")

    def test_doctor_host(self):
        self.start()
        gw = self.world.gw
        gw.sysctl("net.ipv4.ip_forward", 0)
        self.assert_found("forwarding", "error", "no IPv4", "ip_forward=1")
        gw.sysctl("net.ipv4.conf.radio0.rp_filter", 1)
        self.assert_found("rp_filter", "note", "radio0")
        gw.sysctl("net.ipv4.conf.all.src_valid_mark", 1)
        self.assert_found("src_valid_mark", "note", "core0")
        gw.sysctl("net.core.somaxconn", 128)
        self.assert_found("somaxconn", "warning", "128")
        gw.run("ip", "link", "set", "core0", "down")
        self.assert_found("interfaces", "error", "core0 is down", "ip link set core0 up")
        self.write_conf("class x { ports = {80} wireless-congestion-control = nope }")
        self.assert_found("controls", "warning", "nope (class x)", "modprobe tcp_nope")
        gw.run("iptables-legacy", "-t", "mangle", "-A", "INPUT", "-j", "ACCEPT")
        self.assert_found("firewall", "warning", "iptables-legacy")

    def test_doctor_daemon(self):
        self.start()
        self.assert_found("capability", "ok", "nothing else")
        self.ctl("bypass", "on")
        self.assert_found("daemon", "warning", "bypass", "resume")
        self.write_conf("steering { first-queue = 7001 }")
        self.assert_found("gate", "error", "queue 7002")
        self.write_conf()
        self.daemon.send_signal(signal.SIGSTOP)
        self.assert_found("daemon", "error", "it hangs", "restart")

    @unittest.skipUnless(shutil.which("iperf3"), "needs iperf3")
    def test_probe(self):
        self.start()
        world = self.world
        words = ["--server", world.SERVER[4], "--client", world.CLIENT[4], "--time", "1s",
                 "--client-exec", f"ip netns exec {world.ue.name}", "--direct"]
        error = self.ask("probe", *words, code=1)[2]
        self.assertIn("iperf3 -s -p 5201", error)
        for space in world.srv, world.ue:
            with space:
                server = subprocess.Popen(["iperf3", "-s"], stdout=subprocess.DEVNULL)
            self.addCleanup(server.wait)
            self.addCleanup(server.kill)
            wait_until("iperf3 listens", lambda s=space: ":5201" in s.run("ss", "-Htln"))
        for uplink in ([], ["--uplink"]):
            split = self.ctl_json("status")["counters"]["split"]
            found = self.ctl_json("probe", *words, *uplink)["measurements"]
            self.assertEqual([m["name"] for m in found],
                             ["wired", "wireless", "split", "end to end"])
            for m in found:
                self.assertGreater(m["bits_per_second"], 1e6)
                self.assertGreaterEqual(m["retransmits"], 0)
                self.assertNotEqual(m["rtt_us"], 0)  # null if the sender was iperf3's server, which tells none
            self.assertEqual(found[0 if uplink else 1]["congestion_control"], "reno")
            # a control connection and a data connection, of the split measurement alone
            self.assertEqual(self.ctl_json("status")["counters"]["split"], split + 2)
            self.assertEqual(self.ctl_json("status")["state"], "running")

    def test_no_daemon(self):
        for words in (("status",), ("reload",), ("drain",), ("resume",), ("bypass", "on"),
                      ("flows",), ("flows", "kill", "0-1")):
            code, out, error = self.ask("--json", *words, code=None)
            self.assertEqual(code, 1)
            self.assertFalse(json.loads(out)["ok"])
            self.assertIn("systemctl start edgepep", error)
            self.assertEqual(len(error.splitlines()), 1)

    def test_hung_daemon(self):
        self.start()
        self.daemon.send_signal(signal.SIGSTOP)
        self.assertIn("it hangs", self.ask("status", code=1)[2])

    def test_bad_usage(self):
        for words in ((), ("nonsense",), ("bypass",), ("bypass", "perhaps"), ("flows", "kill"),
                      ("flows", "kill", "x"), ("flows", "--sort=size"), ("flows", "--client=a"),
                      ("flows", "--limit=-1"), ("flows", "--client=10.0.0.0/33"), ("rules",),
                      ("drain", "--deadline=5"), ("drain", "--deadline=2 s"), ("status", "x"),
                      ("drain", "--deadline=25h"), ("status", "--nonsense"), ("probe",), ("probe", "--server=-x", "--client=y"),
                      ("probe", "--server=x", "--client=y", "--direct")):
            code, out, error = self.ask(*words, code=None)
            self.assertEqual((code, out, len(error.splitlines())), (2, "", 1), f"{words}: {error}")


if __name__ == "__main__":
    if os.getuid() != 0 or not all(shutil.which(p) for p in ("ip", "iptables")):
        print("SKIP: needs root, iproute2 and iptables")
        sys.exit(77)
    unittest.main(verbosity=2)
