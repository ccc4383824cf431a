# SPDX-License-Identifier: GPL-2.0-or-later
"""The emulated machine: qemu, its console log, and the lines that the tests in it report."""

import json
import os
import shutil
import subprocess
import time

from .kernel import Unavailable

QEMU = "qemu-system-x86_64"


def qemu():
    path = shutil.which(QEMU)
    if path is None:
        raise Unavailable(f"{QEMU} is missing: install the package qemu-system-x86")
    return path


def share(ident, path, read_only):
    return ["-fsdev", f"local,id={ident},path={path},security_model=none,multidevs=remap"
            + (",readonly=on" if read_only else ""),
            "-device", f"virtio-9p-pci,fsdev={ident},mount_tag={ident}"]


class Machine:
    """One boot. results: a folder that the machine can write to; console.log lands there."""

    def __init__(self, kernel, initramfs, installed, results, cpus=2, memory="1G"):
        self.results = results
        self.console = os.path.join(results, "console.log")
        append = ["console=ttyS0", "panic=-1", "nokaslr", "mitigations=off", "tsc=reliable",
                  "random.trust_cpu=on", "apparmor=0", "selinux=0", "audit=0", "quiet", "loglevel=4",
                  "systemd.unit=edgepep-vm.target", "systemd.condition-needs-update=no",
                  "systemd.show_status=no", "systemd.log_level=notice",
                  "edgepep.modules=" + kernel.modules]
        self.argv = [qemu(), "-nodefaults", "-no-user-config", "-machine", "q35,accel=tcg",
                     "-cpu", "max,la57=off", "-smp", str(cpus), "-m", memory, "-display", "none",
                     "-no-reboot", "-serial", "file:" + self.console,
                     "-device", "virtio-rng-pci",
                     *share("host", "/", True), *share("installed", installed, True),
                     *share("results", results, False),
                     "-kernel", kernel.image, "-initrd", initramfs, "-append", " ".join(append)]
        self.process = None
        self.read = 0

    def start(self):
        self.process = subprocess.Popen(self.argv, stdin=subprocess.DEVNULL,
                                        stderr=subprocess.PIPE, text=True)

    def lines(self):
        """Whole lines of the report that have come since the last call, parsed."""
        try:
            with open(os.path.join(self.results, "report"), encoding="utf-8") as text:
                text.seek(self.read)
                new = text.read()
        except FileNotFoundError:
            return []
        whole = new[:new.rfind("\n") + 1]
        self.read += len(whole.encode())
        return [json.loads(line) for line in whole.splitlines()]

    def follow(self, seconds, take):
        """Hands each line of the report to take() until the machine is off. False: too slow."""
        deadline = time.monotonic() + seconds
        while True:
            over = self.process.poll() is not None
            for line in self.lines():
                take(line)
            if over or time.monotonic() > deadline:
                return over
            time.sleep(0.1)

    def stop(self):
        """Ends it, by its pid; returns what qemu complained about."""
        if self.process is None:
            return ""
        if self.process.poll() is None:
            self.process.kill()
        return self.process.communicate()[1].strip()
