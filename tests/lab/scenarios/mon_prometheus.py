# SPDX-License-Identifier: GPL-2.0-or-later
"""A real Prometheus scrapes two gateways."""

import json
import os
import subprocess
import tempfile
import time

from lib import Link, paths, scenario, wait_until
from lib.monitor import Monitor
from lib.traffic import Iperf

CONF = """
global: {{scrape_interval: 1s, evaluation_interval: 1s}}
rule_files: [{rules}]
scrape_configs:
  - job_name: edgepep
    static_configs:
      - {{targets: ["10.99.0.1:9955"], labels: {{gateway: one}}}}
      - {{targets: ["10.99.0.2:9955"], labels: {{gateway: two}}}}
"""


class Prometheus:
    """Debian's, in a namespace, with its data in a folder that goes with it."""

    def __init__(self, host):
        self.host = host
        self.folder = tempfile.TemporaryDirectory(prefix="edgepep-prometheus-")
        conf = os.path.join(self.folder.name, "prometheus.yml")
        with open(conf, "w", encoding="ascii") as out:
            out.write(CONF.format(rules=os.path.join(paths.TOP, "conf/prometheus/edgepep.rules.yml")))
        self.process = host.popen(
            [paths.needed("prometheus", "prometheus"), "--config.file=" + conf,
             "--storage.tsdb.path=" + self.folder.name, "--web.listen-address=127.0.0.1:9090",
             "--log.level=error"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)

    def query(self, expression, at=None):
        """[(labels, value)]; empty while it is not up."""
        argv = ["promtool", "query", "instant", "-o", "json"]
        argv += [f"--time={at:.3f}"] if at else []
        answer = self.host.run([*argv, "http://127.0.0.1:9090", expression], check=False)
        if answer.returncode != 0:
            return []
        return [(s["metric"], float(s["value"][1])) for s in json.loads(answer.stdout)]

    def close(self):
        self.process.stop()
        self.folder.cleanup()


def payload_bytes(run):
    """All that iperf3 moved, in one direction."""
    return run.result()["end"]["sum_received"]["bytes"]


@scenario("mon-prometheus", "a real Prometheus scrapes two gateways; its rates agree with iperf3 within 3 %",
          timing=True)
def prometheus(t, amount=32 << 20):
    """The transfers lie within the window with silence around them, so both sides speak of the same
    bytes, however late a busy machine starts, scrapes or answers."""
    links = {"radio": Link(rate="40Mbit", rtt="10ms", buffer="1BDP"), "core": Link(rate="100Mbit", rtt="30ms")}
    paths.needed("prometheus", "prometheus")
    with t.lab(**links) as one, t.lab(**links) as two:
        one.gw.ip([f"link add mgmt0 type veth peer name mgmt0 netns {two.gw.name}",
                   "addr add 10.99.0.1/24 dev mgmt0", "link set mgmt0 up"])
        two.gw.ip(["addr add 10.99.0.2/24 dev mgmt0", "link set mgmt0 up"])
        monitors = [Monitor(lab, lab.start_proxy(), tcp=f"10.99.0.{i}:9955")
                    for i, lab in enumerate((one, two), 1)]
        server = Prometheus(one.gw)
        try:
            wait_until(lambda: len(server.query("edgepep_up offset 1s == 1")) == 2, 15,
                       "both were scraped a second ago")
            # One gateway downloads, the other uploads.
            start = time.time()
            runs = [Iperf(one.srv, one.ue, one.srv.addr(4), amount=amount, reverse=True),
                    Iperf(two.srv, two.ue, two.srv.addr(4), amount=amount)]
            told = [payload_bytes(run) for run in runs]
            window = round(time.time() - start) + 4
            end = start + window - 0.5
            wait_until(lambda: time.time() > end + 0.5, window + 5, "the window is over")
            query = (f"sum by (gateway, segment, direction) ((edgepep_segment_payload_bytes_total - "
                     f"edgepep_segment_payload_bytes_total offset {window}s) / {window})")
            rates = server.query(query, at=end)
            for gateway, direction, count in (("one", "downlink", told[0]), ("two", "uplink", told[1])):
                for segment in ("wireless", "wired"):
                    got = [v for m, v in rates if (m["gateway"], m["segment"], m["direction"])
                           == (gateway, segment, direction)]
                    t.require(f"gateway {gateway} has a {segment} {direction} rate", len(got) == 1, rates)
                    t.near(f"gateway {gateway}, {segment} {direction}, bytes/s", got[0], count / window,
                           relative=0.03)
            limits = {(m["gateway"], m["direction"], m["reason"]): v
                      for m, v in server.query("reason:edgepep_limited_flows:rate1m", at=end)}
            t.check("the recorded rule tells that the radio limits",
                    all(limits.get((gateway, direction, "wireless"), 0) > 0.05
                        for gateway, direction in (("one", "downlink"), ("two", "uplink"))), limits)
            t.equal("no scrape failed",
                    server.query(f"count(min_over_time(up[{window}s]) == 0)", at=end), [])
        finally:
            server.close()
            for monitor in monitors:
                monitor.close()
