# SPDX-License-Identifier: GPL-2.0-or-later
"""Debian's own kernel: fetched from the archive as a package and unpacked, never installed."""

import glob
import lzma
import os
import re
import shutil
import subprocess

PACKAGE = "linux-image-amd64"

# The folders of modules that a gateway, and booting from 9p, can need.
_FOLDERS = ("arch", "crypto", "drivers/net", "drivers/virtio", "fs/9p", "fs/fscache", "fs/netfs",
            "fs/autofs", "fs/overlayfs", "lib", "net")
_FIRST = ("virtio_pci", "9pnet_virtio", "9p", "overlay")
_XZ = b"\xfd7zXZ\x00"


class Unavailable(Exception):
    """The machine cannot be had here; the text says what is missing."""


def command(argv, cwd=None):
    """Output of a program; Unavailable when it fails."""
    try:
        done = subprocess.run(argv, cwd=cwd, capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        raise Unavailable(f"{argv[0]} is missing") from error
    if done.returncode:
        lines = (done.stderr or done.stdout).strip().splitlines() or ["no message"]
        raise Unavailable(f"{' '.join(argv)}: {lines[-1]}")
    return done.stdout


def real_package(name):
    """linux-image-amd64 is empty and depends on the package with the files."""
    for line in command(["apt-cache", "depends", name]).splitlines():
        found = re.match(r"\s*Depends: (linux-image-\d\S*)$", line)
        if found:
            return found[1]
    return name


def fetch(package, folder):
    """The package's .deb in the folder, from the archive unless it is there."""
    pattern = os.path.join(folder, glob.escape(package) + "_*.deb")
    if not glob.glob(pattern):
        command(["apt-get", "-q", "-o", "APT::Sandbox::User=root", "download", package], folder)
    debs = glob.glob(pattern)
    if not debs:
        raise Unavailable(f"apt-get download {package} left no file")
    return max(debs, key=os.path.getmtime)


def unpack(deb, folder, patterns):
    """Files of a package that match the patterns, into the folder."""
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", deb], stdout=subprocess.PIPE) as reader:
        done = subprocess.run(["tar", "-x", "-C", folder, "--no-same-owner", "--wildcards",
                               *patterns], stdin=reader.stdout, stderr=subprocess.PIPE, text=True,
                              check=False)
    if reader.returncode or done.returncode:
        shutil.rmtree(folder, ignore_errors=True)
        raise Unavailable(f"cannot unpack {deb}: {done.stderr.strip()}")


class Kernel:
    """`image` to boot, `release`, `modules` (the folder above <release>/), `first`: the modules
    that mount the root, as paths in the order of loading."""

    def __init__(self, cache, package=PACKAGE):
        os.makedirs(cache, exist_ok=True)
        self.deb = fetch(real_package(package), cache)
        self.folder = os.path.splitext(self.deb)[0]
        if not os.path.exists(os.path.join(self.folder, "complete")):
            self._prepare()
        self.release = os.listdir(os.path.join(self.folder, "lib/modules"))[0]
        self.modules = os.path.join(self.folder, "lib/modules")
        self.image = os.path.join(self.folder, "vmlinux")
        self.first = self._order(_FIRST)

    def _prepare(self):
        wanted = [f"./lib/modules/*/kernel/{folder}/*" for folder in _FOLDERS]
        unpack(self.deb, self.folder, ["./boot/vmlinuz-*", "./lib/modules/*/modules.*", *wanted])
        release = os.listdir(os.path.join(self.folder, "lib/modules"))[0]
        command(["/sbin/depmod", "-b", self.folder, release])
        self._decompress(os.path.join(self.folder, "boot", "vmlinuz-" + release),
                         os.path.join(self.folder, "vmlinux"))
        with open(os.path.join(self.folder, "complete"), "w", encoding="ascii"):
            pass

    @staticmethod
    def _decompress(source, target):
        """The ELF image inside: it boots as well, and unpacks here 20 times faster than there."""
        with open(source, "rb") as packed:
            data = packed.read()
        start = data.find(_XZ)
        if start < 0:
            raise Unavailable(f"{source} is not packed with xz")
        with open(target, "wb") as image:
            image.write(lzma.LZMADecompressor().decompress(data[start:]))

    def _order(self, names):
        base = os.path.join(self.modules, self.release)
        needs = {}
        with open(os.path.join(base, "modules.dep"), encoding="ascii") as lines:
            for line in lines:
                module, after = line.strip().split(":")
                needs[module] = after.split()
        order = []

        def add(path):
            for before in reversed(needs[path]):
                if before not in order:
                    add(before)
            if path not in order:
                order.append(path)

        for name in names:
            add(next(path for path in needs if os.path.basename(path).split(".")[0] == name))
        return [os.path.join(base, path) for path in order]
