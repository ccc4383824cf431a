# SPDX-License-Identifier: GPL-2.0-or-later
"""The lab: network namespaces, link emulation and what the scenarios are written with."""

from .framework import Skip, scenario
from .lab import Lab
from .link import Link
from .netns import CommandFailed, wait_until
from .proxy import Proxy

__all__ = ["CommandFailed", "Lab", "Link", "Proxy", "Skip", "scenario", "wait_until"]
