#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""edgepep-mon over HTTP: what it serves, what it refuses, and that nobody can hold it up."""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
from mon_lib import MON, Checks, World, end, read_all, status_of, wait_for  # noqa: E402

PROM = "text/plain; version=0.0.4; charset=utf-8"
OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"


def endpoints(c, w):
    for path, kind in (("/", "text/html; charset=utf-8"), ("/app.js", "text/javascript; charset=utf-8"),
                       ("/style.css", "text/css; charset=utf-8"), ("/healthz", "text/plain; charset=utf-8"),
                       ("/readyz", "text/plain; charset=utf-8"), ("/api/v1/status", "application/json"),
                       ("/api/v1/segments", "application/json"),
                       ("/api/v1/segments/history", "application/json"),
                       ("/api/v1/flows", "application/json"), ("/metrics", PROM)):
        status, headers, body = w.get(path)
        c.equal(f"{path} status", status, 200)
        c.equal(f"{path} type", headers["Content-Type"], kind)
        c.ok(f"{path} has a strict policy",
             "default-src 'none'" in headers["Content-Security-Policy"]
             and "unsafe" not in headers["Content-Security-Policy"], headers.items())
        status, headers, nothing = w.get(path, method="HEAD")
        c.ok(f"HEAD {path} has the length and no body",
             status == 200 and nothing == "" and int(headers["Content-Length"]) > 0,
             (status, nothing, headers.items()))
        c.ok(f"{path} names no other host", "://" not in body.replace("http://www.w3.org/", "")
             or path not in ("/", "/style.css", "/app.js"), body[:200])


def formats(c, w):
    accept = "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3,*/*;q=0.1"
    status, headers, body = w.get("/metrics", headers={"Accept": accept})
    c.equal("OpenMetrics by Accept", headers["Content-Type"], OPENMETRICS)
    c.ok("it ends as it must", body.endswith("\n# EOF\n"), body[-50:])
    for accept in ("*/*", "text/plain", "application/openmetrics-text;q=0, */*",
                   "text/html,application/xhtml+xml,*/*;q=0.8", "application/openmetrics-text;q=0.1,text/plain"):
        c.equal(f"type for Accept {accept!r}", w.get("/metrics", headers={"Accept": accept})[1]["Content-Type"], PROM)

    if shutil.which("promtool"):
        lint = subprocess.run(["promtool", "check", "metrics"], input=w.get("/metrics")[2],
                              capture_output=True, text=True, check=False)
        c.ok("promtool check metrics says nothing", lint.returncode == 0 and not lint.stdout + lint.stderr,
             lint.stdout + lint.stderr)
    else:
        print("skip promtool is not installed")


def questions(c, w):
    for path, status in (("/api/v1/flows?limit=3&sort=bytes&order=asc", 200), ("/api/v1/flows?state=closed", 200),
                         ("/api/v1/flows?client=10.45.0.2", 200), ("/api/v1/flows?client=2001%3adb8%3A%3a1", 200),
                         ("/api/v1/flows?limit=0", 400), ("/api/v1/flows?limit=501", 400),
                         ("/api/v1/flows?limit=-1", 400), ("/api/v1/flows?limit=", 400), ("/api/v1/flows?limit", 400),
                         ("/api/v1/flows?sort=nothing", 400), ("/api/v1/flows?order=up", 400),
                         ("/api/v1/flows?client=10.0.0.256", 400), ("/api/v1/flows?client=%00", 400),
                         ("/api/v1/flows?client=%g1", 400), ("/api/v1/flows?limit=1&limit=2", 400),
                         ("/api/v1/flows?bogus=1", 400), ("/api/v1/flows?client=" + "1" * 200, 400),
                         ("/api/v1/segments?seconds=600", 200), ("/api/v1/segments?seconds=601", 400),
                         ("/api/v1/segments/history?seconds=0", 400), ("/api/v1/segments?limit=1", 400),
                         ("/api/v1/flows/0-1", 200), ("/api/v1/flows/9-99", 404), ("/api/v1/flows/x", 400),
                         ("/api/v1/flows/0-1?x=1", 400), ("/nothing", 404), ("/api", 404), ("/..%2f..%2fetc/passwd", 404)):
        got, headers, body = w.get(path)
        c.equal(f"{path[:60]} status", got, status)
        if status != 200:
            c.ok(f"{path[:60]} explains", headers["Content-Type"] == "application/json" and '"error"' in body, body)
    flows = w.json("/api/v1/flows?limit=2&sort=bytes")["flows"]
    c.equal("as many flows as asked for", len(flows), 2)
    total = [f["downlink"]["bytes"] + f["uplink"]["bytes"] for f in flows]
    c.ok("the greater one comes first", total[0] >= total[1], total)
    client = flows[0]["client"]
    found = w.json(f"/api/v1/flows?client={client}")["flows"]
    c.ok("a client's flows only", found and all(f["client"] == client for f in found), found)
    one = w.json(f"/api/v1/flows/{flows[0]['id']}")
    c.ok("one flow has both legs and a history",
         one["wireless"]["tcp"]["rtt_us"] > 0 and one["wired"]["cca"] == "cubic" and one["history"], one)


def refusals(c, w):
    head = b"Host: x\r\n"
    rows = (
        ("no HTTP at all", b"hello\r\n\r\n", 400), ("TLS", b"\x16\x03\x01\x02\x00\x01\x00", 400),
        ("HTTP/0.9", b"GET /\r\n\r\n", 400), ("two blanks", b"GET  / HTTP/1.1\r\n" + head + b"\r\n", 400),
        ("no host", b"GET / HTTP/1.1\r\n\r\n", 400), ("two hosts", b"GET / HTTP/1.1\r\n" + head * 2 + b"\r\n", 400),
        ("a header without colon", b"GET / HTTP/1.1\r\n" + head + b"nonsense\r\n\r\n", 400),
        ("a folded header", b"GET / HTTP/1.1\r\n" + head + b"A: b\r\n c\r\n\r\n", 400),
        ("a NUL in a header", b"GET / HTTP/1.1\r\n" + head + b"A: \0\r\n\r\n", 400),
        ("a control character in the target", b"GET /\x01 HTTP/1.1\r\n" + head + b"\r\n", 400),
        ("two lengths", b"GET / HTTP/1.1\r\n" + head + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\n", 400),
        ("a bad length", b"GET / HTTP/1.1\r\n" + head + b"Content-Length: 0x1\r\n\r\n", 400),
        ("POST", b"POST /metrics HTTP/1.1\r\n" + head + b"Content-Length: 3\r\n\r\nabc", 405),
        ("DELETE", b"DELETE / HTTP/1.1\r\n" + head + b"\r\n", 405),
        ("a chunked body", b"GET / HTTP/1.1\r\n" + head + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 411),
        ("a long body", b"POST / HTTP/1.1\r\n" + head + b"Content-Length: 1000000\r\n\r\n" + b"x" * 1000000, 413),
        ("a huge length", b"GET / HTTP/1.1\r\n" + head + b"Content-Length: 99999999999999999999\r\n\r\n", 413),
        ("a long target", b"GET /" + b"a" * 2000 + b" HTTP/1.1\r\n" + head + b"\r\n", 414),
        ("an endless target", b"GET /" + b"a" * 100000, 414),
        ("an endless header", b"GET / HTTP/1.1\r\nA: " + b"b" * 100000, 431),
        ("too many headers", b"GET / HTTP/1.1\r\n" + head + b"A: b\r\n" * 100 + b"\r\n", 431),
        ("HTTP/2", b"GET / HTTP/2.0\r\n" + head + b"\r\n", 505),
        ("the preface of HTTP/2", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400),
    )
    for what, data, status in rows:
        c.equal(f"{what}: status", status_of(w.raw(data)), status)
    answer = w.raw(b"GET /healthz HTTP/1.0\r\n\r\n")
    c.ok("HTTP/1.0 without keep-alive is closed", status_of(answer) == 200 and answer.endswith(b"ok\n"), answer)
    answer = w.raw(b"\r\nGET /healthz HTTP/1.1\nHost: x\nConnection: close\n\n", piece=1)
    c.ok("bytes that trickle in are put together", answer.endswith(b"ok\n"), answer)
    answer = w.raw(b"GET http://any.where/healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    c.ok("a proxy's form of target", answer.endswith(b"ok\n"), answer)
    answer = w.raw(b"GET /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello"
                   b"GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n"
                   b"GET /nothing HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    c.ok("requests in one go are answered in order",
         answer.count(b"HTTP/1.1 200 OK") == 2 and answer.count(b"404 Not Found") == 1
         and answer.index(b"ok\n") < answer.index(b"ready\n"), answer)


def slow_clients(c, w):
    """Two hundred clients that never finish, and one that reads nothing, beside a normal one."""
    with contextlib.ExitStack() as stack:
        for _ in range(200):
            s = stack.enter_context(socket.create_connection(("127.0.0.1", w.port)))
            with contextlib.suppress(ConnectionError):
                s.sendall(b"GET /metrics HT")
        deaf = stack.enter_context(socket.create_connection(("127.0.0.1", w.port)))
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        for _ in range(50):
            deaf.sendall(b"GET /uPlot.iife.min.js HTTP/1.1\r\nHost: x\r\n\r\n")
        worst = 0.0
        for _ in range(20):
            start = time.monotonic()
            status = w.get("/metrics")[0]
            worst = max(worst, time.monotonic() - start)
            if status != 200:
                break
        c.ok(f"others are served at once (worst {worst * 1000:.1f} ms)", status == 200 and worst < 0.5, (status, worst))
        c.ok("connections are bounded", w.metrics()["edgepep_monitor_connections"] <= 128, w.metrics())

    start = time.monotonic()
    with socket.create_connection(("127.0.0.1", w.port), timeout=10) as s:
        s.sendall(b"GET / HTTP/1.1\r\n")
        for _ in range(20):	# a byte now and then does not win more time
            time.sleep(0.3)
            try:
                s.sendall(b"A")
            except ConnectionError:
                break
        answer = read_all(s)
    c.equal("a head that never ends: status", status_of(answer), 408)
    c.ok("within seconds", time.monotonic() - start < 8, time.monotonic() - start)


def is_open(s):
    """Whether the other side has not closed it."""
    try:
        s.setblocking(False)
        return s.recv(1, socket.MSG_PEEK) != b""
    except BlockingIOError:
        return True
    except ConnectionError:
        return False


def connection_limit(c, w):
    """At the limit the longest waiting client makes room; when all are busy, a new one is refused."""
    limit, ask = 128, b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
    refused = "edgepep_monitor_refused_connections_total"
    before = w.metrics()[refused]
    with contextlib.ExitStack() as stack:
        waiting = [stack.enter_context(socket.create_connection(("127.0.0.1", w.port), timeout=10))
                   for _ in range(limit + 50)]
        # The page is made anew once a second.
        wait_for("as many connections as the limit says",
                 lambda: w.metrics()["edgepep_monitor_connections"] == limit, 5)
        wait_for("the oldest to be closed", lambda: not any(is_open(s) for s in waiting[:50]))
        c.equal("the youngest stay", sum(is_open(s) for s in waiting[60:]), limit - 10)
        last = waiting[-1]
        last.setblocking(True)
        last.sendall(ask)
        c.ok("and are served", last.recv(100).startswith(b"HTTP/1.1 200"))
        c.equal("none was refused", w.metrics()[refused], before)
    with contextlib.ExitStack() as stack:
        for _ in range(limit):
            deaf = socket.socket()
            stack.enter_context(deaf)
            deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            deaf.connect(("127.0.0.1", w.port))
            deaf.sendall(b"GET /uPlot.iife.min.js HTTP/1.1\r\nHost: x\r\n\r\n" * 50)
            deaf.recv(1)	# the answer has begun, and never ends
        with socket.create_connection(("127.0.0.1", w.port), timeout=5) as s:
            answer = None
            with contextlib.suppress(ConnectionError):
                answer = s.recv(100)
            c.ok("beside busy ones a new client is refused at once", answer in (b"", None), answer)
    wait_for("service to come back", lambda: w.get("/healthz")[0] == 200)
    wait_for("that to be counted", lambda: w.metrics()[refused] > before, 5)


def numbers(c, w):
    """The fixed daemon moves 1 MB/s down and 250 kB/s up per flow."""
    wait_for("ten seconds of samples", lambda: w.json("/api/v1/segments?seconds=10")["interval_seconds"] > 9.5, 20)
    s = w.json("/api/v1/segments?seconds=10")
    for segment in ("wireless", "wired"):
        for direction, rate in (("downlink", 3e6), ("uplink", 75e4)):
            got = s[segment][direction]["bytes_per_second"]
            c.ok(f"{segment} {direction} is {rate:g} bytes/s (got {got:.0f})", abs(got / rate - 1) < 0.03, got)
    before, start = w.metrics(), time.monotonic()
    time.sleep(4)
    after, seconds = w.metrics(), time.monotonic() - start
    key = 'edgepep_segment_payload_bytes_total{segment="wired",direction="downlink",class="default"}'
    rate = (after[key] - before[key]) / seconds
    c.ok(f"/metrics says the same ({rate:.0f})", abs(rate / 3e6 - 1) < 0.04, rate)
    c.ok("limited time adds up to flow time", abs(
        sum(v for k, v in after.items() if k.startswith("edgepep_segment_limited_seconds_total") and "downlink" in k)
        - sum(v for k, v in before.items() if k.startswith("edgepep_segment_limited_seconds_total") and "downlink" in k)
        - 3 * seconds) < 3.2, seconds)
    c.equal("all three flows are listed", w.json("/api/v1/flows")["total"], 3)


def life_and_death(c, w):
    c.equal("ready", w.get("/readyz")[0], 200)
    w.daemon.send_signal(signal.SIGKILL)
    w.daemon.wait()
    took = wait_for("/readyz to tell", lambda: w.get("/readyz")[0] == 503)
    c.ok(f"a killed daemon is told after {took * 1000:.0f} ms", took < 2, took)
    c.ok("it says why", "not running" in w.get("/readyz")[2], w.get("/readyz")[2])
    c.equal("the monitor itself is healthy", w.get("/healthz")[0], 200)
    m = w.metrics()
    c.ok("metrics say down, and nothing of the past", m["edgepep_up"] == 0 and "edgepep_flows" not in m, m)
    c.equal("status says down", w.json("/api/v1/status")["up"], False)
    c.equal("no flows", w.json("/api/v1/flows")["total"], 0)

    for mode, text in (("draining", "draining"), ("bypass", "bypassed"), ("hung", "hangs")):
        w.start_daemon(mode=mode)
        wait_for(mode, lambda text=text: text in w.get("/readyz")[2])
        c.equal(f"{mode}: /readyz status", w.get("/readyz")[0], 503)
        end(w.daemon)
    w.start_daemon()
    took = wait_for("a new daemon to be followed", lambda: w.get("/readyz")[0] == 200)
    c.ok(f"a new daemon is followed after {took:.1f} s", took < 2.5, took)

    end(w.daemon)
    with open(w.stats, "wb") as out:
        out.write(b"not a segment" * 100)
    wait_for("the damaged file to be told", lambda: "not a stats segment" in w.get("/readyz")[2])
    c.equal("status says that it cannot see", w.json("/api/v1/status")["blind"], True)
    os.unlink(w.stats)


def command_line(c, w):
    def run(*args):
        return subprocess.run([MON, *args], capture_output=True, text=True, check=False, timeout=10)

    c.equal("--help exits", run("--help").returncode, 0)
    c.equal("--check-config exits", run("-c", w.conf, "--check-config").returncode, 0)
    c.equal("a bad option exits", run("--bogus").returncode, 2)
    c.equal("a stray word exits", run("word").returncode, 2)
    bad = os.path.join(w.dir, "bad.conf")
    with open(bad, "w", encoding="ascii") as out:
        out.write('wireless-interfaces = {"lo"}\nmonitor { listen = "nowhere" }\n')
    result = run("-c", bad, "--check-config")
    c.ok("a bad configuration is told with file and line", result.returncode == 2 and "bad.conf:2" in result.stderr, result)
    c.equal("no configuration exits", run("-c", "/nonexistent").returncode, 2)
    result = run("-c", w.conf, "--listen", f"127.0.0.1:{w.port}")
    c.ok("a taken address is told", result.returncode == 1 and "in use" in result.stderr, result)


def unix_socket(c):
    with World() as w:
        path = os.path.join(w.dir, "http.sock")
        stale = socket.socket(socket.AF_UNIX)
        stale.bind(path)
        stale.close()
        mon = subprocess.Popen([MON, "-c", w.conf, "--listen", "unix:" + path], stderr=subprocess.DEVNULL)
        w.callback(end, mon)

        def ask():
            with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as s:
                s.connect(path)
                s.sendall(b"GET /healthz HTTP/1.0\r\n\r\n")
                return status_of(read_all(s)) == 200
            return False
        wait_for("the socket", ask)
        c.ok("a Unix socket is served, a stale one replaced", ask())
        c.equal("readable by its group only", os.stat(path).st_mode & 0o777, 0o660)


def many_flows(c):
    with World() as w:
        w.start_daemon(flows=10000)
        w.start_mon()
        wait_for("the flows", lambda: w.json("/api/v1/flows?limit=1")["total"] > 9900)
        time.sleep(1.5)
        render = w.metrics()["edgepep_monitor_render_duration_seconds"]
        c.ok(f"10,000 flows are looked through in {render * 1000:.1f} ms a second", render < 0.1, render)
        times = []
        for _ in range(50):
            start = time.monotonic()
            w.get("/metrics")
            times.append(time.monotonic() - start)
        times.sort()
        c.ok(f"a scrape takes {times[25] * 1000:.2f} ms (median)", times[25] < 0.01, times)


def main():
    c = Checks()
    with World() as w:
        w.start_mon()
        c.equal("without a daemon it waits", w.get("/readyz")[0], 503)
        w.start_daemon()
        wait_for("the daemon to be seen", lambda: w.get("/readyz")[0] == 200)
        time.sleep(2.2)
        endpoints(c, w)
        formats(c, w)
        questions(c, w)
        refusals(c, w)
        slow_clients(c, w)
        connection_limit(c, w)
        life_and_death(c, w)
        command_line(c, w)
        c.ok("the monitor is still there", w.mon.poll() is None, w.mon.poll())
        end(w.mon)
        c.equal("it ends, when asked to, with", w.mon.returncode, 0)
    with World() as w:
        w.start_daemon(flows=3, mode="fixed")
        w.start_mon()
        numbers(c, w)
    unix_socket(c)
    many_flows(c)
    c.exit()


if __name__ == "__main__":
    main()
