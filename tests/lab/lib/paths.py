# SPDX-License-Identifier: GPL-2.0-or-later
"""Where programs and files are."""

import os
import shutil

TOP = os.path.realpath(os.path.join(os.path.dirname(__file__), "..", "..", ".."))
BUILD = os.path.realpath(os.environ.get("EDGEPEP_BUILD", os.path.join(TOP, "build")))
STATE = "/run/edgepep-lab"


class Missing(Exception):
    """A program that the lab needs is not there."""


def built(relative):
    """A program of ours, from the build folder."""
    path = os.path.join(BUILD, relative)
    if not os.access(path, os.X_OK):
        raise Missing(f"{path} is not built: run make, or set EDGEPEP_BUILD to the build folder")
    return path


def linkemu():
    return built("tests/lab/linkemu/linkemu")


def program(name):
    """A program of ours by name: edgepepd, edgepepctl, ... wherever the build puts it."""
    for folder in ("", "src/proxy", "src/ctl", "src/mon", "src/cca"):
        path = os.path.join(BUILD, folder, name)
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    return built(name)


def sanitized(name):
    """A program of ours with ASan and UBSan, from $EDGEPEP_BUILD_SANITIZED or build-clang; or None."""
    folder = os.environ.get("EDGEPEP_BUILD_SANITIZED", os.path.join(TOP, "build-clang"))
    path = os.path.join(os.path.realpath(folder), "src", "proxy", name)
    return path if os.access(path, os.X_OK) else None


def needed(name, package):
    """A program of the system."""
    path = shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
    if path is None:
        raise Missing(f"{name} is missing: install the package {package}")
    return path
