# SPDX-License-Identifier: GPL-2.0-or-later
"""edgepep-cca: loading, replacing and unloading while sockets use a control; what observers read."""

import contextlib
import json
import os
import socket
import struct
import subprocess
import tempfile
import time

from lib import paths, scenario, wait_until

from . import cca_pairs as bench

_SO_COOKIE = 57
NAME = "pep_bbr_d"  # the one that is taken out and put back


def _run(*words):
    return subprocess.run([paths.program("edgepep-cca"), *words], text=True, capture_output=True,
                          check=False, timeout=60)


def _loaded():
    return {c["name"]: c for c in bench.edgepep_cca("list")[1]["controls"]}


def _settings():
    """What is loaded, whoever uses it at the moment."""
    return {name: {k: v for k, v in control.items() if k != "sockets"}
            for name, control in _loaded().items()}


@contextlib.contextmanager
def _connection(control):
    """Two ends of a connection over loopback; the first sends under the control."""
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.socket() as near:
        near.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, control.encode())
        near.connect(listener.getsockname())
        far, _ = listener.accept()
        with far:
            yield near, far


def _transfer(near, far, size=4 << 20):
    """Moves bytes; True when all have come."""
    near.settimeout(10)
    far.settimeout(10)
    left = size
    while left:
        near.sendall(bytes(min(left, 65536)))
        want = min(left, 65536)
        while want:
            want -= len(far.recv(want))
        left -= min(left, 65536)
    return True


def _refusals(t):
    """Bad input names what was expected, ends with 2 and changes nothing."""
    before = _settings()
    for words, expected in (
            (("load", NAME, "-p", "probe-rtt=99999"), "from 0 to 2000"),
            (("load", NAME, "-p", "probe-rtt=-1"), "whole number"),
            (("load", NAME, "-p", "rtt-pacing=fast"), "off|safe|strict"),
            (("load", NAME, "-p", "speed=1"), "no parameter"),
            (("load", NAME, "-p", "probe-rtt"), "key=value"),
            (("load", "pep_cubic"), "pep_bbr_acd"),
            (("load", "-c", "/nonexistent/edgepep.conf"), "/nonexistent"),
            (("list", "extra"), "extra"),
            (("frobnicate",), "frobnicate")):
        done = _run(*words)
        t.check(f"{' '.join(words)} is refused", done.returncode == 2 and expected in done.stderr
                and len(done.stderr.splitlines()) == 1, f"{done.returncode}: {done.stderr.strip()}")
    t.equal("nothing was changed by it", _settings(), before)


def _configuration(t):
    """Parameters of the configuration file are used, and -p comes after them."""
    with tempfile.TemporaryDirectory(prefix="edgepep-lab-") as folder:
        path = os.path.join(folder, "edgepep.conf")
        with open(path, "w", encoding="ascii") as out:
            out.write('wireless-interfaces = { lo0 }\nwired-interfaces = { lo1 }\n'
                      f'cca "{NAME}" {{\n\tparam = {{ "cwnd-gain=600", "probe-rtt=100" }}\n}}\n')
        code, _ = bench.edgepep_cca("load", NAME, "-c", path, "-p", "probe-rtt=150", check=False)
        params = _loaded()[NAME]["params"]
        t.equal("parameters of the file are used", (code, params["cwnd-gain"]), (0, 600))
        t.equal("-p comes after the file", params["probe-rtt"], 150)
        with open(path, "a", encoding="ascii") as out:
            out.write('cca "pep_bbr_a" {\n\tparam = { "cut-gain=1" }\n}\n')
        done = _run("load", NAME, "-c", path)
        t.check("a bad value in the file is refused", done.returncode == 2
                and "cut-gain" in done.stderr, done.stderr.strip())
    bench.edgepep_cca("load", NAME)


@scenario("cca-load", "controls are loaded, replaced and unloaded without harm to sockets",
          timing=True)
def cca_load(t):
    bench.need_controls()
    # Closed sockets of a network that is gone can use a control for minutes: they keep the old one.
    bench.edgepep_cca("load", NAME, "-p", "cwnd-gain=700", "--replace")
    bench.edgepep_cca("load", NAME, "--replace")
    t.equal("nobody uses the new one", _loaded()[NAME]["sockets"], 0)
    try:
        t.equal("all are there", sorted(bench.available(bench.OURS)), sorted(bench.OURS))
        _, again = bench.edgepep_cca("load")
        t.equal("loading again changes nothing", {c["result"] for c in again["controls"]},
                {"already loaded"})
        _refusals(t)
        _configuration(t)

        with _connection(NAME) as (near, far):
            t.check("a socket moves data", _transfer(near, far))
            t.equal("it is counted", _loaded()[NAME]["sockets"], 1)
            code, _ = bench.edgepep_cca("load", NAME, "-p", "cwnd-gain=600", check=False)
            t.equal("other parameters are refused while it is in use", code, 4)
            t.equal("and the old ones stay", _loaded()[NAME]["params"]["cwnd-gain"], 512)
            _, done = bench.edgepep_cca("load", NAME, "-p", "cwnd-gain=600", "--replace")
            t.equal("--replace replaces it", done["controls"][0]["result"], "replaced")
            t.equal("new sockets get the new parameters",
                    _loaded()[NAME]["params"]["cwnd-gain"], 600)
            t.check("the old socket goes on", _transfer(near, far))
            with _connection(NAME) as (new, new_far):
                t.check("a new socket moves data beside it", _transfer(new, new_far))
                bench.edgepep_cca("unload", NAME)
                t.check("unloaded, the name is gone", NAME not in bench.available([NAME]))
                t.check("sockets go on after that", _transfer(near, far)
                        and _transfer(new, new_far))
                t.equal("under the same control", near.getsockopt(
                    socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16).rstrip(b"\0").decode(), NAME)
                with socket.socket() as late:
                    try:
                        late.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, NAME.encode())
                        t.check("nobody can select it any more", False)
                    except FileNotFoundError:
                        t.check("nobody can select it any more", True)
        done = _run("unload", NAME)
        t.equal("unloading twice is no error", (done.returncode, done.stdout.strip()),
                (0, f"{NAME}: was not loaded"))
        _, done = bench.edgepep_cca("load", NAME)
        t.equal("it can be loaded again", done["controls"][0]["result"], "loaded")

        # Without privilege: an answer, not a crash, and nothing changed.
        done = subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups",
                               paths.program("edgepep-cca"), "load", NAME], text=True,
                              capture_output=True, check=False)
        t.check("without privilege it says so", done.returncode == 1
                and "CAP_SYS_ADMIN" in done.stderr, f"{done.returncode}: {done.stderr.strip()}")
    finally:
        bench.edgepep_cca("load", "--replace")


def _flows():
    return {f["cookie"]: f for f in bench.edgepep_cca("flows")[1]["flows"]}


@scenario("cca-state", "observers see what a control believes of each connection",
          timing=True)
def cca_state(t):
    bench.need_controls()
    with bench.Pairs(bench.OURS, {"rate": "20Mbit", "rtt": "20ms", "buffer": "1BDP",
                                  "loss": "1%"}) as pairs:
        flows = {control: pairs.flow(control) for control in bench.OURS}
        cookies = {c: struct.unpack("Q", f.tx.getsockopt(socket.SOL_SOCKET, _SO_COOKIE, 8))[0]
                   for c, f in flows.items()}
        pump = bench.Pump(flows.values())
        try:
            time.sleep(3)
            seen = _flows()
            infos = {c: f.info() for c, f in flows.items()}
        finally:
            pump.stop()
        for control, cookie in cookies.items():
            with t.group(control):
                t.require("is listed under its socket's cookie", cookie in seen)
                state = seen[cookie]
                t.equal("by its name", state["name"], control)
                t.near("bandwidth is the link's", state["bandwidth_bytes_per_second"] * 8,
                       20e6 * 1448 / 1500, relative=0.25)
                t.near("least RTT is the kernel's", state["min_rtt_seconds"],
                       infos[control].min_rtt_us / 1e6, relative=0.1)
                if control in ("pep_bbr_acd", "pep_bbr_a", "pep_bwe"):
                    t.check("losses were judged", state["radio_losses"]
                            + state["congestive_losses"] > 3, json.dumps(state))
                if control == "pep_bwe":
                    t.check("its mode is one of its own", state["mode"] in ("start", "avoid"))
                else:
                    t.check("it is past its start", state["mode"] in ("probe-bw", "drain",
                                                                      "probe-rtt", "startup"))
                    t.check("pacing gain is that of a mode", 0.3 <= state["pacing_gain"] <= 2.9,
                            state["pacing_gain"])
        for flow in flows.values():
            flow.close()
        wait_until(lambda: not set(cookies.values()) & set(_flows()), 10,
                   "closed connections leave the list")
        t.check("closed connections leave the list", True)
