#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The dashboard in headless Chromium: it renders, moves, tells when the daemon is down, and complains
of nothing. Screenshots stay in the build folder as tests/unit/mon_page-*.png."""

import os
import re
import shutil
import signal
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
from mon_browser import Browser  # noqa: E402
from mon_lib import BUILD, Checks, World, end, wait_for  # noqa: E402

SHOTS = os.path.join(BUILD, "tests/unit/mon_page-{}.png")


def text(b, element):
    return b.evaluate(f"document.getElementById('{element}').textContent")


def state(b):
    return b.evaluate("document.documentElement?.dataset.state")


def painted(b, chart):
    """How many pixels of the chart's canvas are not transparent."""
    return b.evaluate(
        f"(() => {{ const c = document.querySelector('#{chart} canvas');"
        " const copy = Object.assign(document.createElement('canvas'), { width: c.width, height: c.height });"
        " const g = copy.getContext('2d', { willReadFrequently: true }); g.drawImage(c, 0, 0);"
        " const d = g.getImageData(0, 0, c.width, c.height).data;"
        " let n = 0; for (let i = 3; i < d.length; i += 4) if (d[i]) n++; return n; })()")


def renders(c, w, b):
    b.open(f"http://127.0.0.1:{w.port}/")
    wait_for("the page to be running", lambda: state(b) == "running")
    wait_for("rows", lambda: b.evaluate("document.querySelectorAll('#rows tr').length") == 40)
    time.sleep(3)
    for chart in ("limits", "down", "up", "rtt", "retrans", "held", "flows"):
        n = painted(b, f"chart-{chart}")
        c.ok(f"chart {chart} is drawn", n > 500, n)
    c.ok("throughput is told", re.search(r"[\d.]+ Mbit/s", text(b, "wireless-down")), text(b, "wireless-down"))
    c.ok("both round-trip times are told", "ms" in text(b, "wireless-rtt") and "ms" in text(b, "wired-rtt"))
    c.ok("it names who limits", "holds back" in text(b, "verdict"), text(b, "verdict"))
    c.ok("nothing sticks out to the right", b.evaluate("document.documentElement.scrollWidth <= innerWidth"),
         b.evaluate("[document.documentElement.scrollWidth, innerWidth]"))
    c.ok("bytes queued are no less than none", re.match(r"[\d.]+ [kM]?B$", text(b, "held")), text(b, "held"))
    b.screenshot(SHOTS.format("light"))
    before = text(b, "updated")
    wait_for("the page to move on", lambda: text(b, "updated") != before, 3)
    c.ok("it moves on each second", True)


def table(c, b):
    def rates():
        return b.evaluate("[...document.querySelectorAll('#rows td:nth-child(5)')].map((e) => e.textContent)")

    def megabits(cell):
        down, unit = re.match(r"([\d.]+) (\w+)", cell).groups()
        return float(down) * {"bit": 1e-6, "kbit": 1e-3, "Mbit": 1, "Gbit": 1e3}[unit]

    first = [megabits(r) for r in rates()]
    c.ok("the fastest flow comes first", first[0] > first[-1], first)
    press = "[...document.querySelectorAll('#columns button')].find((e) => e.textContent.includes('/ \\u2191')).click()"
    b.evaluate(press)
    wait_for("the order to turn", lambda: megabits(rates()[0]) < megabits(rates()[-1]), 4)
    c.equal("the order is told to screen readers", b.evaluate("document.querySelector('[aria-sort]').getAttribute('aria-sort')"), "ascending")
    b.evaluate(press)
    wait_for("it to turn back", lambda: megabits(rates()[0]) > megabits(rates()[-1]), 4)

    b.evaluate("(() => { const i = document.getElementById('client'); i.value = '10.45.0.300'; i.dispatchEvent(new Event('input')); })()")
    wait_for("a bad address to be marked", lambda: b.evaluate("document.getElementById('client').classList.contains('bad')"), 4)
    b.evaluate("(() => { const i = document.getElementById('client'); i.value = '10.45.0.2'; i.dispatchEvent(new Event('input')); })()")
    wait_for("one client's flows", lambda: 1 <= b.evaluate("document.querySelectorAll('#rows tr').length") < 5, 4)
    b.evaluate("(() => { const i = document.getElementById('client'); i.value = ''; i.dispatchEvent(new Event('input')); })()")
    b.evaluate("document.querySelector('#flow-state [data-value=closed]').click()")
    wait_for("closed flows", lambda: "finished" in text(b, "rows") or "client_reset" in text(b, "rows"), 6)
    b.evaluate("document.querySelector('#flow-state [data-value=live]').click()")
    wait_for("live ones again", lambda: "finished" not in text(b, "rows") and len(rates()) == 40, 6)
    c.ok("filter and closed flows work", True)


def one_flow(c, b):
    b.evaluate("document.querySelector('#rows tr').click()")
    wait_for("both legs", lambda: b.evaluate("document.querySelectorAll('#legs tr').length") > 15, 6)
    wait_for("its history", lambda: b.evaluate("flowCharts.rate.plot.data[0].length") >= 3, 6)
    c.ok("both legs side by side, and the flow's history", painted(b, "chart-flow-rate") > 100)
    c.ok("the flow is named", re.match(r"Flow \d+-\d+", text(b, "detail-title")), text(b, "detail-title"))
    time.sleep(2)
    b.screenshot(SHOTS.format("flow"))
    b.evaluate("document.getElementById('detail-close').click()")
    c.equal("it closes", b.evaluate("document.getElementById('detail').open"), False)


def small(c, b):
    """On a telephone: nothing sticks out, and both legs of a flow are seen."""
    b.call("Emulation.setDeviceMetricsOverride", width=390, height=1500, deviceScaleFactor=1, mobile=True)
    b.evaluate("document.querySelector('#rows tr').click()")
    wait_for("both legs", lambda: b.evaluate("document.querySelectorAll('#legs tr').length") > 15, 6)
    time.sleep(0.5)
    c.ok("small: nothing sticks out", b.evaluate("document.documentElement.scrollWidth <= innerWidth"))
    c.ok("small: both legs are seen", b.evaluate(
        "document.querySelector('.legs').getBoundingClientRect().right <= document.getElementById('detail').getBoundingClientRect().right"))
    b.screenshot(SHOTS.format("small"))
    b.evaluate("document.getElementById('detail-close').click()")
    b.call("Emulation.clearDeviceMetricsOverride")


def themes(c, b):
    def paper():
        return b.evaluate("getComputedStyle(document.body).backgroundColor")

    light = paper()
    b.set_dark(True)
    time.sleep(0.3)
    c.ok("dark when the system is", paper() != light, paper())
    b.screenshot(SHOTS.format("dark"))
    b.evaluate("document.getElementById('theme').click()")
    c.equal("light when asked for", paper(), light)
    b.evaluate("document.getElementById('theme').click()")
    c.ok("dark when asked for", paper() != light, paper())
    b.evaluate("document.getElementById('theme').click()")
    b.set_dark(False)


def down(c, w, b):
    b.log.clear()
    start = time.monotonic()
    w.daemon.send_signal(signal.SIGKILL)
    w.daemon.wait()
    wait_for("the page to say so", lambda: state(b) == "down")
    took = time.monotonic() - start
    c.ok(f"'proxy down' {took:.2f} s after the kill", took < 2, took)
    wait_for("the old numbers to go", lambda: {text(b, f"{s}-{what}") for s in ("wireless", "wired")
                                               for what in ("down", "up", "rtt", "min-rtt", "retrans")} == {"-"}, 3)
    c.ok("in words", "Proxy down" in text(b, "banner") and text(b, "state") == "proxy down", text(b, "banner"))
    b.screenshot(SHOTS.format("down"))
    w.start_daemon(flows=60)
    wait_for("recovery", lambda: state(b) == "running", 6)
    c.equal("the banner goes", b.evaluate("document.getElementById('banner').hidden"), True)
    end(w.daemon)
    w.start_daemon(flows=5, mode="draining")
    wait_for("draining", lambda: state(b) == "draining" and "Draining" in text(b, "banner"), 6)
    c.ok("draining is told", True)
    c.equal("no complaint", b.complaints(), [])
    w.mon.kill()
    w.mon.wait()
    wait_for("no answer", lambda: state(b) == "unreachable", 6)
    c.ok("a dead monitor is told apart", "No answer" in text(b, "banner"), text(b, "banner"))


def main():
    if not shutil.which("chromium"):
        print("skip chromium is not installed")
        sys.exit(77)
    c = Checks()
    with World() as w:
        w.start_daemon(flows=60)
        w.start_mon()
        b = Browser()
        w.callback(b.close)
        renders(c, w, b)
        table(c, b)
        one_flow(c, b)
        small(c, b)
        themes(c, b)
        # A question that the user typed wrong is answered 400: Chromium logs that, and nothing else.
        rest = [t for t in b.complaints() if "client=10.45.0.300" not in t]
        c.equal("complaints of the console", rest, [])
        outside = [u for u in b.hosts() if not u.startswith((f"http://127.0.0.1:{w.port}/", "data:", "about:"))]
        c.equal("requests to elsewhere", outside, [])
        down(c, w, b)
        b.set_dark(False)
    c.exit()


if __name__ == "__main__":
    main()
