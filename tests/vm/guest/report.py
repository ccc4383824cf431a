# SPDX-License-Identifier: GPL-2.0-or-later
"""What the machine tells its host: one JSON object a line, in a folder that both see."""

import contextlib
import json
import os
import time
import traceback

FOLDER = "/run/edgepep-vm"


class Required(Exception):
    """A check failed without which its group makes no sense."""


class Report:
    """Checks and figures, each written down the moment it is known."""

    def __init__(self):
        self.group_name = ""
        self.began = time.monotonic()

    def write(self, **line):
        with open(os.path.join(FOLDER, "report"), "a", encoding="utf-8") as out:
            out.write(json.dumps(line) + "\n")

    def check(self, name, ok, detail=""):
        """One fact. Returns whether it holds."""
        self.write(check=f"{self.group_name}: {name}", ok=bool(ok), detail=str(detail)[:2000],
                   at=round(time.monotonic() - self.began, 2))
        return bool(ok)

    def require(self, name, ok, detail=""):
        if not self.check(name, ok, detail):
            raise Required(name)

    def equal(self, name, got, want):
        return self.check(name, got == want,
                          f"{got!r}" if got == want else f"got {got!r}, want {want!r}")

    def data(self, name, value):
        self.write(data=name, value=value)

    def skip(self, name, why):
        self.write(check=f"{self.group_name}: {name}", ok=True, skip=why)

    @contextlib.contextmanager
    def group(self, name):
        """Checks that belong together; an exception fails this group and no other."""
        outer, self.group_name = self.group_name, name
        try:
            yield
        except Required:
            pass
        except Exception as error:  # pylint: disable=broad-except
            place = traceback.extract_tb(error.__traceback__)[-1]
            self.check("ran to its end", False,
                       f"{type(error).__name__} at {os.path.basename(place.filename)}:"
                       f"{place.lineno}: {error}")
        finally:
            self.group_name = outer
