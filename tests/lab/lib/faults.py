# SPDX-License-Identifier: GPL-2.0-or-later
"""Makes calls of a running program fail: the other side of tests/fault/inject.c."""

import errno
import mmap
import os
import struct

from . import paths, state

_MAGIC, _MAX_RULES = 0x50454631, 32
_HEADER = struct.Struct("=II")
_RULE = struct.Struct("=16siIiIQQQQ")
_SIZE = _HEADER.size + _MAX_RULES * _RULE.size
_ERRNO, _VALUE = 1, 2


class Faults:
    """The rules of one program. wrapper: what goes before its argv."""

    def __init__(self):
        self.path = os.path.join(state.current().new_folder(), "faults")
        with open(self.path, "wb") as out:
            out.write(_HEADER.pack(_MAGIC, _SIZE) + bytes(_SIZE - _HEADER.size))
        os.chmod(self.path, 0o666)
        with open(self.path, "r+b") as file:
            self._map = mmap.mmap(file.fileno(), _SIZE)
        self._used = 0

    @property
    def wrapper(self):
        return ["env", f"LD_PRELOAD={paths.built('tests/fault/inject.so')}",
                f"EDGEPEP_FAULTS={self.path}"]

    def add(self, call, error=None, value=None, arg=-1, share=1.0, limit=0,
            after=0):
        """Lets a share of the calls fail with an errno's name, or changes their length to a
        value; lets some pass first."""
        at = _HEADER.size + self._used * _RULE.size
        self._used += 1
        code = getattr(errno, error) if error else value
        rule = _RULE.pack(b"", arg, _ERRNO if error else _VALUE, code, round(share * 65536), limit,
                          after, 0, 0)
        self._map[at:at + _RULE.size] = rule
        name = call.encode()
        self._map[at + 1:at + len(name)] = name[1:]
        self._map[at:at + 1] = name[:1]		# complete from here on

    def clear(self):
        """Takes all rules away; returns how often they struck."""
        struck = self.strikes()
        for number in range(self._used):
            at = _HEADER.size + number * _RULE.size
            self._map[at:at + _RULE.size] = bytes(_RULE.size)
        self._used = 0
        return struck

    def _sum(self, field):
        return sum(_RULE.unpack_from(self._map, _HEADER.size + n * _RULE.size)[field]
                   for n in range(self._used))

    def calls(self):
        """How many calls the rules looked at."""
        return self._sum(7)

    def strikes(self):
        return self._sum(8)
