# SPDX-License-Identifier: GPL-2.0-or-later
"""The initramfs: busybox, a handful of modules and our /init, as a cpio archive (format newc)."""

import os

from .kernel import Unavailable, fetch, unpack


class Cpio:
    """An archive of the kernel's initramfs format, uncompressed."""

    def __init__(self, path):
        self.out = open(path, "wb")  # pylint: disable=consider-using-with
        self.number = 0

    def _entry(self, name, mode, data):
        self.number += 1
        path = name.encode() + b"\0"
        fields = (self.number, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(path), 0)
        header = b"070701" + b"".join(b"%08X" % field for field in fields)
        for part in (header + path, data):
            self.out.write(part + b"\0" * (-len(part) % 4))

    def folder(self, name):
        self._entry(name, 0o040755, b"")

    def file(self, name, data, mode=0o755):
        self._entry(name, 0o100000 | mode, data)

    def close(self):
        self._entry("TRAILER!!!", 0, b"")
        self.out.close()


def read(path):
    with open(path, "rb") as data:
        return data.read()


def busybox(cache):
    """A static busybox: the host's, or one from the archive."""
    if os.path.exists("/usr/share/doc/busybox-static") and os.path.exists("/bin/busybox"):
        return "/bin/busybox"
    folder = os.path.join(cache, "busybox")
    if not os.path.exists(os.path.join(folder, "bin/busybox")):
        unpack(fetch("busybox-static", cache), folder, ["./bin/busybox"])
    if not os.path.exists(os.path.join(folder, "bin/busybox")):
        raise Unavailable("busybox-static holds no bin/busybox")
    return os.path.join(folder, "bin/busybox")


def build(path, kernel, cache, init, run):
    """Writes the archive. run: {path: data} of what shall be in the machine's /run."""
    archive = Cpio(path)
    archive.folder("bin")
    archive.file("bin/busybox", read(busybox(cache)))
    archive.file("init", read(init))
    archive.folder("modules")
    names = [os.path.basename(module) for module in kernel.first]
    for name, module in zip(names, kernel.first):
        archive.file("modules/" + name, read(module))
    archive.file("modules/order", "".join(name + "\n" for name in names).encode())
    folders = set()
    for name, data in run.items():
        parts = ("run/" + name).split("/")[:-1]
        for folder in ("/".join(parts[:end]) for end in range(1, len(parts) + 1)):
            if folder not in folders:
                archive.folder(folder)
                folders.add(folder)
        archive.file("run/" + name, data, 0o644)
    archive.close()
