# SPDX-License-Identifier: GPL-2.0-or-later
"""What moves the bytes of a lane: the kernel alone, edgepepd, or a peer."""

import os
import subprocess

from lib import paths
from lib.netns import wait_until
from lib.proxy import Proxy

from .world import WIRED, WIRELESS, pids_of

_PORT = 5001
_MARK = 1
_TABLE = 100

_HAPROXY = """\
global
  maxconn {connections}
  maxpipes 500
  nbthread {threads}
defaults
  mode tcp
  timeout connect 5s
  timeout client 300s
  timeout server 300s
{splice}
listen pep
  bind 0.0.0.0:{port} transparent backlog 16384
  source 0.0.0.0 usesrc clientip
  server orig 0.0.0.0
"""

_NGINX = """\
load_module {module};
daemon off; user root; worker_processes {threads}; pid {folder}/stream.pid;
error_log {folder}/stream.log warn;
events {{ worker_connections {connections}; }}
stream {{ server {{ listen 0.0.0.0:{port} backlog=16384;
  proxy_pass $server_addr:$server_port; proxy_bind $remote_addr transparent;
  proxy_buffer_size 64k; proxy_timeout 300s; }} }}
"""

# nginx cannot set IP_TRANSPARENT on a listener, but takes one that it is given as if from itself.
_HAND_OVER = """\
import os, socket, sys
s = socket.socket()
s.setsockopt(socket.SOL_IP, 19, 1)
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind(("0.0.0.0", {port})); s.listen(16384); s.set_inheritable(True)
os.environ["NGINX"] = "%d;" % s.fileno()
os.execv(sys.argv[1], sys.argv[1:])
"""


class Forward:
    """Plain forwarding: no rules, no proxy."""
    control = None
    text = "plain forwarding"

    def start(self, lane):
        pass

    def stop(self):
        pass

    def pids(self):
        return []


class Edgepep:
    """edgepepd with its own rules."""
    control = None

    def __init__(self, accept="verified", cca="cubic", workers=2):
        self.accept, self.cca, self.workers = accept, cca, workers
        self.text = f"edgepepd, accept {accept}, wireless leg {cca}"
        self.proxy = None

    def start(self, lane):
        self.proxy = Proxy(lane, conf={
            "accept": self.accept, "workers": self.workers,
            "leg wireless": {"congestion-control": self.cca},
            "leg wired": {"congestion-control": "cubic"}})
        self.proxy.start()
        if "cannot be used" in self.proxy.log():
            raise RuntimeError(f"congestion control {self.cca} is not there: run edgepep-cca load")

    def stop(self):
        if self.proxy:
            self.proxy.close()
            self.proxy = None

    def pids(self):
        return [self.proxy.process.pid]

    def counters(self):
        return self.proxy.counters()


class Peer:
    """Another proxy behind the TPROXY rules that its documentation asks for."""
    control = "cubic"

    def __init__(self, folder, threads=2):
        self.folder, self.threads = folder, threads
        self.lane = None

    def _steer(self):
        gw = self.lane.gw
        gw.ip([f"rule add fwmark {_MARK} lookup {_TABLE}",
               f"route add local default dev lo table {_TABLE}"])
        for rule in (["-i", WIRED, "-p", "tcp", "-m", "socket", "-j", "MARK", "--set-mark", _MARK],
                     ["-i", WIRELESS, "-p", "tcp", "-j", "TPROXY", "--on-port", _PORT,
                      "--tproxy-mark", _MARK]):
            gw.run(["iptables", "-t", "mangle", "-A", "PREROUTING", *rule])

    def _write(self, name, text):
        path = os.path.join(self.folder, f"{name}-{self.lane.name}.conf")
        with open(path, "w", encoding="ascii") as out:
            out.write(text)
        return path

    def _run(self, argv):
        process = self.lane.gw.popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_until(lambda: f":{_PORT}" in self.lane.gw.run(["ss", "-Hltn"]).stdout, 5,
                   f"{self.text} listens")
        if process.poll() is not None:
            raise RuntimeError(f"{self.text} ended with exit code {process.returncode}")

    def stop(self):
        """The namespace ends it."""

    def pids(self):
        return pids_of(self.lane.gw)


class Haproxy(Peer):
    def __init__(self, folder, splice, connections, threads=2):
        super().__init__(folder, threads)
        self.splice, self.connections = splice, connections
        self.text = "HAProxy with splice" if splice else "HAProxy"

    def start(self, lane):
        self.lane = lane
        options = "  option splice-request\n  option splice-response" if self.splice else ""
        conf = self._write("haproxy", _HAPROXY.format(
            connections=self.connections, threads=self.threads, splice=options, port=_PORT))
        self._run([paths.needed("haproxy", "haproxy"), "-db", "-f", conf])
        self._steer()


class Nginx(Peer):
    text = "nginx stream"
    MODULE = "/usr/lib/nginx/modules/ngx_stream_module.so"

    def __init__(self, folder, connections, threads=2):
        super().__init__(folder, threads)
        self.connections = connections

    def start(self, lane):
        self.lane = lane
        if not os.path.exists(self.MODULE):
            raise paths.Missing("nginx's stream module is missing: install the package "
                                "libnginx-mod-stream")
        conf = self._write("nginx", _NGINX.format(
            module=self.MODULE, connections=2 * self.connections, threads=self.threads, port=_PORT,
            folder=self.folder))
        self._run(["/usr/bin/python3", "-c", _HAND_OVER.format(port=_PORT),
                   paths.needed("nginx", "nginx-light"), "-c", conf])
        self._steer()
