# SPDX-License-Identifier: GPL-2.0-or-later
"""Programs that people use: curl against nginx, iperf3."""

import os
import tempfile

from lib import paths, peer, scenario, wait_until
from lib.flowtest import FAMILIES, MEGA, VARIANTS, each_variant, short_links
from lib.traffic import iperf_bps

_NGINX = """
daemon off;
master_process off;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
events {{ worker_connections 512; }}
http {{
    access_log {folder}/access.log;
    client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi; uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    server {{
        listen 80; listen [::]:80;
        root {folder}/www;
    }}
}}
"""


def _start_nginx(lab, folder, octets):
    os.makedirs(os.path.join(folder, "www"))
    os.chmod(folder, 0o755)
    with open(os.path.join(folder, "www", "file"), "wb") as out:
        out.write(octets)
    conf = os.path.join(folder, "nginx.conf")
    with open(conf, "w", encoding="ascii") as out:
        out.write(_NGINX.format(folder=folder))
    process = lab.srv.popen([paths.needed("nginx", "nginx-light"), "-c", conf, "-p", folder])

    def listens():
        text = lab.srv.run(["ss", "-Hltn", "sport = :80"]).stdout
        return process.poll() is None and len(text.splitlines()) == 2
    wait_until(listens, 5, "nginx listens")


def _logged(folder):
    with open(os.path.join(folder, "access.log"), encoding="utf-8") as text:
        return [line.split()[0] for line in text]


@each_variant("curl-nginx", "curl against nginx: digests, addresses, 64 in parallel")
def curl_nginx(t, variant):
    octets = peer.data(20 * MEGA, 4)
    curl = paths.needed("curl", "curl")
    with tempfile.TemporaryDirectory(prefix="edgepep-lab-") as folder, \
            t.lab(**short_links(), **VARIANTS[variant]) as lab:
        _start_nginx(lab, folder, octets)
        proxy = lab.start_proxy()
        for family in FAMILIES:
            with t.group(f"IPv{family}"):
                address = lab.srv.addr(family)
                url = f"http://[{address}]/file" if family == 6 else f"http://{address}/file"
                target = os.path.join(folder, f"got{family}")
                before = proxy.counters()["split"]
                lab.ue.run([curl, "-sS", "--fail", "--max-time", "20", "-o", target, url])
                with open(target, "rb") as text:
                    t.equal("sha256 of 20 MB", peer.digest(text.read()), peer.digest(octets))
                t.equal("split", proxy.counters()["split"] - before, 1)
                want = lab.ue.addr(family)
                if VARIANTS[variant].get("masquerade"):
                    want = lab.gw.wired6 if family == 6 else lab.gw.wired4
                t.equal("nginx logs the client's address", _logged(folder)[-1], want)
                # 64 at once, and parts of the file by range requests.
                before = proxy.counters()["split"]
                lab.ue.run([curl, "-sS", "--fail", "--max-time", "30", "--parallel",
                            "--parallel-max", "64", "-r", "0-99999", "-o", "/dev/null",
                            f"{url}?[1-64]"])
                done = _logged(folder).count(want)
                t.check("64 parallel requests are answered", done >= 65, done)
                split = proxy.counters()["split"] - before
                t.check("over many split connections", split >= 32, split)
                refused = lab.ue.run([curl, "-sS", "--max-time", "5", url.replace("/file", ":81/")],
                                     check=False)
                t.equal("a refused port: curl says so", refused.returncode, 7)


@scenario("iperf3", "iperf3 in both directions, 1 and 8 streams")
def iperf3(t):
    with t.lab(**short_links()) as lab:
        proxy = lab.start_proxy()
        for family in FAMILIES:
            for reverse in (False, True):
                for parallel in (1, 8):
                    name = f"IPv{family} {'down' if reverse else 'up'}, {parallel} at once"
                    before = proxy.counters()["split"]
                    bps = iperf_bps(lab.srv, lab.ue, lab.srv.addr(family), seconds=1,
                                    reverse=reverse, parallel=parallel)
                    t.check(f"{name}: data moves", bps > 20e6, f"{bps / 1e6:.0f} Mbit/s")
                    t.equal(f"{name}: split", proxy.counters()["split"] - before, parallel + 1)
