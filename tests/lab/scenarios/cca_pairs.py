# SPDX-License-Identifier: GPL-2.0-or-later
"""Many links side by side, one for each congestion control, and bulk flows over them.

Controls that share a moment of the machine can be compared in seconds. Each link goes from a server's
namespace over one router (and one linkemu) to a client's; all have the same settings and seeds.
"""

import json
import selectors
import socket
import struct
import subprocess
import threading
import time

from lib import Skip, paths
from lib.link import half
from lib.netns import Namespace

OURS = ("pep_bbr", "pep_bbr_acd", "pep_bbr_a", "pep_bbr_d", "pep_bwe")
KERNELS = ("cubic", "reno", "bbr")

_PORT, _FAR_PORT = 5001, 5002
_CHUNK = bytes(256 * 1024)
_SYSCTL = {
    "net.ipv4.tcp_rmem": "4096 131072 33554432",
    "net.ipv4.tcp_wmem": "4096 16384 33554432",
    "net.ipv4.tcp_no_metrics_save": 1,
    "net.ipv4.conf.all.rp_filter": 0,
    "net.ipv4.conf.default.rp_filter": 0,
}


def edgepep_cca(*words, check=True):
    """Runs edgepep-cca --json; (exit code, answer)."""
    done = subprocess.run([paths.program("edgepep-cca"), "--json", *words], text=True,
                          capture_output=True, check=False, timeout=60)
    if check and done.returncode:
        raise RuntimeError(f"edgepep-cca {' '.join(words)}: {done.stderr.strip()}")
    return done.returncode, json.loads(done.stdout) if done.stdout.strip() else None


def need_controls():
    """Loads our controls, of this build and with its parameters, whoever uses others; skips where the
    kernel cannot."""
    code, probe = edgepep_cca("probe", check=False)
    if code == 3:
        raise Skip(probe["text"])
    edgepep_cca("load", "--replace")


def available(names):
    """Those of the names that the kernel has now."""
    with open("/proc/sys/net/ipv4/tcp_available_congestion_control", encoding="ascii") as text:
        known = text.read().split()
    return [name for name in names if name in known]


class TcpInfo:
    """The fields of struct tcp_info that are compared."""

    def __init__(self, sock):
        raw = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 232)
        self.min_rtt_us, = struct.unpack_from("I", raw, 148)
        self.pacing_rate, = struct.unpack_from("Q", raw, 104)
        self.delivery_rate, = struct.unpack_from("Q", raw, 160)
        self.bytes_sent, self.bytes_retrans = struct.unpack_from("QQ", raw, 200)


class Flow:
    """One bulk connection: the server sends as fast as it may."""

    def __init__(self, server, client, address, port=_PORT):
        with server.socket() as listener:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind((address, port))
            listener.listen(1)
            self.rx = client.socket()
            self.rx.connect((address, port))
            self.tx, _ = listener.accept()
        self.control = self.tx.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16)
        self.control = self.control.rstrip(b"\0").decode()
        for sock in (self.tx, self.rx):
            sock.setblocking(False)
        self.received = 0

    def info(self):
        return TcpInfo(self.tx)

    def close(self):
        for sock in (self.tx, self.rx):
            sock.close()


class Pump:
    """Moves the data of all flows in one thread."""

    def __init__(self, flows):
        self._flows = flows
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self):
        sink = bytearray(1 << 20)
        with selectors.EpollSelector() as loop:
            for flow in self._flows:
                loop.register(flow.tx, selectors.EVENT_WRITE, (flow, True))
                loop.register(flow.rx, selectors.EVENT_READ, (flow, False))
            while not self._end.is_set():
                for key, _ in loop.select(0.1):
                    flow, sends = key.data
                    try:
                        if sends:
                            flow.tx.send(_CHUNK)
                        else:
                            flow.received += flow.rx.recv_into(sink)
                    except BlockingIOError:
                        pass

    def stop(self):
        self._end.set()
        self._thread.join()


def _spec(queue, name, settings, seed):
    words = dict(settings)
    if "delay" not in words:
        words["delay"] = half(words["rtt"])
    words = [f"queue={queue}", f"name={name}", f"seed={seed}",
             *(f"{key}={value}" for key, value in words.items())]
    return ",".join(words)


class Pairs:
    """The namespaces and links; use it in a `with`. Losses and jitter are on the way to the client.

    far: delay that the ACKs of "far" flows get on top, for flows of different RTT in one bottleneck.
    """

    def __init__(self, controls, settings, seed=1, far=None):
        self.controls = list(controls)
        self._settings = settings
        self._seed = seed
        self._far = far
        self._spaces = []
        self.servers, self.clients, self.addresses = {}, {}, {}

    def _space(self, role):
        space = Namespace(role)
        self._spaces.append(space)
        space.sysctl(_SYSCTL)
        space.ip("link set lo up")
        return space

    def __enter__(self):
        try:
            self._build()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for space in reversed(self._spaces):
            space.close()

    def _build(self):
        self.router = self._space("router")
        self.router.sysctl({"net.ipv4.ip_forward": 1})
        rules = ["*filter"]
        back = {k: v for k, v in self._settings.items() if k in ("rtt", "delay", "rate")}
        links = []
        for i, control in enumerate(self.controls):
            self._pair(i, control)
            rules.append(f"-A FORWARD -i s{i} -o c{i} -j NFQUEUE --queue-num {3 * i + 1}")
            links += ["--link", _spec(3 * i + 1, control, self._settings, self._seed),
                      "--link", _spec(3 * i + 2, f"{control}-back", back, self._seed + 1000)]
            if self._far:
                rules.append(f"-A FORWARD -i c{i} -o s{i} -p tcp --dport {_FAR_PORT} "
                             f"-j NFQUEUE --queue-num {3 * i + 3}")
                links += ["--link", _spec(3 * i + 3, f"{control}-far", {"delay": self._far}, 1)]
            rules.append(f"-A FORWARD -i c{i} -o s{i} -j NFQUEUE --queue-num {3 * i + 2}")
        self.router.run(["iptables-restore"], input="\n".join([*rules, "COMMIT", ""]))
        self._linkemu = self.router.popen([paths.linkemu(), "--commands", *links], text=True,
                                          stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=1)
        if self._linkemu.stdout.readline() != "ready\n":
            raise RuntimeError("linkemu did not start")

    def _pair(self, i, control):
        server, client = self._space(f"s{i}"), self._space(f"c{i}")
        for host, side, net in ((server, "s", 2 * i), (client, "c", 2 * i + 1)):
            self.router.ip([f"link add {side}{i} type veth peer name end0 netns {host.name}",
                            f"link set {side}{i} up", f"addr add 10.77.{net}.1/24 dev {side}{i}"])
            host.ip(["link set end0 up", f"addr add 10.77.{net}.2/24 dev end0"])
        # The route decides, so restricted controls work too.
        server.ip(f"route add default via 10.77.{2 * i}.1 congctl {control}")
        client.ip(f"route add default via 10.77.{2 * i + 1}.1")
        self.servers[control], self.clients[control] = server, client
        self.addresses[control] = f"10.77.{2 * i}.2"

    def command(self, line):
        self._linkemu.stdin.write(line + "\n")
        answer = self._linkemu.stdout.readline().strip()
        if not answer or answer.startswith("error"):
            raise RuntimeError(f"linkemu: {line}: {answer or 'no answer'}")
        return answer

    def stats(self):
        return {link["name"]: link for link in json.loads(self.command("stats"))["links"]}

    def flow(self, control, far=False):
        flow = Flow(self.servers[control], self.clients[control], self.addresses[control],
                    _FAR_PORT if far else _PORT)
        if flow.control != control:
            raise RuntimeError(f"wanted {control}, the socket has {flow.control}")
        return flow


def jain(values):
    total = sum(values)
    return total * total / (len(values) * sum(v * v for v in values)) if total else 0.0


def measure(controls, settings, flows=1, seconds=4.0, omit=2.0, seed=1, far=None):
    """Runs bulk flows under every control at once; what each got. far: half of them see more delay.

    {control: {goodput_mbps, retrans_percent, queue_p50_ms, queue_p95_ms, jain, late_ms}}, the last the
    emulator's worst lateness, by which the whole line is to be judged.
    """
    with Pairs(controls, settings, seed, far) as pairs:
        running = {c: [pairs.flow(c, bool(far) and n >= flows / 2) for n in range(flows)]
                   for c in controls}
        pump = Pump([f for group in running.values() for f in group])
        try:
            time.sleep(omit)
            pairs.command("restart")
            began = time.monotonic()
            first = {c: [(f.received, f.info()) for f in group] for c, group in running.items()}
            time.sleep(seconds)
            stats = pairs.stats()
            took = time.monotonic() - began
            last = {c: [(f.received, f.info()) for f in group] for c, group in running.items()}
        finally:
            pump.stop()
            for group in running.values():
                for flow in group:
                    flow.close()
    return {c: _result(first[c], last[c], stats[c], took) for c in controls}


def _result(first, last, link, took):
    got = [(b[0] - a[0]) * 8 / took for a, b in zip(first, last)]
    sent = sum(b[1].bytes_sent - a[1].bytes_sent for a, b in zip(first, last))
    again = sum(b[1].bytes_retrans - a[1].bytes_retrans for a, b in zip(first, last))
    return {"goodput_mbps": round(sum(got) / 1e6, 3),
            "retrans_percent": round(100 * again / sent, 4) if sent else 0.0,
            "queue_p50_ms": round(link["queue_delay_us"]["p50"] / 1000, 3),
            "queue_p95_ms": round(link["queue_delay_us"]["p95"] / 1000, 3),
            "jain": round(jain(got), 4),
            "late_ms": round(link["lateness_us"]["max"] / 1000, 3)}
