# SPDX-License-Identifier: GPL-2.0-or-later
"""What people do: pages, video in chunks, and short requests beside a download."""

import http.client
import os
import random
import subprocess
import sys
import threading
import time

_HTTPD = os.path.join(os.path.dirname(os.path.realpath(__file__)), "httpd.py")
CONNECTIONS = 6		# of a browser to one server


def serve(lab):
    """Starts the HTTP server on srv."""
    process = lab.srv.popen([sys.executable, _HTTPD, lab.srv.addr4], stdout=subprocess.PIPE,
                            stderr=subprocess.DEVNULL, text=True)
    if process.stdout.readline() != "ready\n":
        raise RuntimeError("the HTTP server did not start")


class Client:
    """One persistent connection of the UE, opened with the first request."""

    def __init__(self, lab):
        self._connection = http.client.HTTPConnection(lab.srv.addr4, 8080)
        self._sock = lab.ue.socket()
        self._sock.settimeout(30)
        self._address = (lab.srv.addr4, 8080)

    def get(self, size):
        """Fetches `size` bytes; returns the seconds it took."""
        began = time.monotonic()
        if self._connection.sock is None:
            self._sock.connect(self._address)
            self._connection.sock = self._sock
        self._connection.request("GET", f"/{size}")
        body = self._connection.getresponse().read()
        if len(body) != size:
            raise RuntimeError(f"asked for {size} bytes, got {len(body)}")
        return time.monotonic() - began

    def close(self):
        self._connection.close()
        self._sock.close()


def page(lab, seed=1, objects=40):
    """A page: the document, then its objects over several connections; seconds until all came.

    Sizes are spread like those of the web: many small ones, few large ones, about 1 MB together.
    """
    rng = random.Random(seed)
    sizes = [min(300000, int(rng.lognormvariate(9.4, 1.1))) + 200 for _ in range(objects)]
    clients = [Client(lab) for _ in range(CONNECTIONS)]
    errors = []

    def work(client):
        try:
            while True:
                client.get(sizes.pop())
        except IndexError:
            pass
        except (OSError, RuntimeError, http.client.HTTPException) as error:
            errors.append(error)

    began = time.monotonic()
    try:
        clients[0].get(30000)
        threads = [threading.Thread(target=work, args=(client,)) for client in clients]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        for client in clients:
            client.close()
    if errors:
        raise RuntimeError(f"page: {errors[0]}")
    return time.monotonic() - began


def video(lab, mbps, seconds, chunk=1.0, ahead=2.0):
    """Plays `seconds` of a video, fetching up to `ahead` seconds before.

    (seconds it stalled, seconds that fetching took, without the waits for a full store).

    Playing begins when the first chunk is there; that wait is no stall. Whoever waits for longer
    than the video lasts gives up.
    """
    client = Client(lab)
    size = int(mbps * 1e6 / 8 * chunk)
    stalled, have, clock, fetching = 0.0, 0.0, None, 0.0
    try:
        for _ in range(round(seconds / chunk)):
            fetching += client.get(size)
            now = time.monotonic()
            if clock is not None:
                have -= now - clock
                if have < 0:
                    stalled, have = stalled - have, 0.0
            if stalled > seconds:
                break
            clock, have = now, have + chunk
            if have > ahead:
                time.sleep(have - ahead)
                have, clock = ahead, time.monotonic()
    finally:
        client.close()
    return stalled, fetching


def interactive(lab, seconds, every=0.05, size=1000):
    """Short requests, one after the other; their times in seconds, sorted."""
    client = Client(lab)
    times = []
    until = time.monotonic() + seconds
    try:
        client.get(size)
        while time.monotonic() < until:
            times.append(client.get(size))
            time.sleep(every)
    finally:
        client.close()
    return sorted(times)
