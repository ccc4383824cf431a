# SPDX-License-Identifier: GPL-2.0-or-later
"""Connections through the lab whose ends write and read as told, for as long as wanted."""

import contextlib
import os
import socket
import threading

from . import peer
from .flowtest import KILO, MEGA


class Ends:
    """Both ends of one connection with threads that write and read as told, until stop()."""

    def __init__(self, lab, direction, write, read):
        self.direction = direction
        self.going, self.ended = True, threading.Event()
        with peer.Listener(lab.srv, 4) as listener:
            client, server = peer.pair(lab.ue, listener)
        self.peers = client, server
        self.port = client.name()[1]
        sender, receiver = (server, client) if direction == "downlink" else (client, server)
        client.send(b"x")	# an upload's first byte; a server would answer nothing
        if direction == "downlink":
            server.receive(1)
        self.threads = [threading.Thread(target=self._run, args=(write, sender), daemon=True),
                        threading.Thread(target=self._run, args=(read, receiver), daemon=True)]
        for thread in self.threads:
            thread.start()

    def _run(self, function, end):
        with contextlib.suppress(OSError):
            function(self, end)

    def stop(self):
        self.going = False
        self.ended.set()
        for end in self.peers:
            with contextlib.suppress(OSError):
                end.reset()
        for thread in self.threads:
            thread.join(5)


def write_all(ends, end):
    block = peer.data(256 * KILO)
    while ends.going:
        end.send(block)


def write_chunks(size, pause):
    def write(ends, end):
        block = peer.data(size)
        while ends.going:
            end.send(block)
            ends.ended.wait(pause)
    return write


def read_all(ends, end):
    while ends.going and end.sock.recv(1 << 18):
        pass


def read_slowly(rate):
    def read(ends, end):
        while ends.going and end.sock.recv(max(1, rate // 50)):
            ends.ended.wait(0.02)
    return read


def read_nothing(ends, _):
    ends.ended.wait()


def write_file(ends, end):
    """Without a copy: the sender shall need little CPU."""
    end.sock.settimeout(None)
    with open(os.memfd_create("data"), "wb+") as file:
        file.write(peer.data(MEGA))
        file.flush()
        while ends.going:
            os.sendfile(end.sock.fileno(), file.fileno(), 0, MEGA)


def drop_all(ends, end):
    """Reads without a copy."""
    end.sock.settimeout(None)
    unused = bytearray(MEGA)
    while ends.going and end.sock.recv_into(unused, MEGA, socket.MSG_TRUNC):
        pass
