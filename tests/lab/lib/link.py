# SPDX-License-Identifier: GPL-2.0-or-later
"""Links and the linkemu process that a router puts them through."""

import dataclasses
import json
import subprocess

from . import paths

QUEUE_DOWN = 1
QUEUE_UP = 2


@dataclasses.dataclass
class Link:
    """A link; every value is text as linkemu takes it (`linkemu --help`), None leaves it out.

    The settings are for both directions; `down` (towards the UE) and `up` are dictionaries that
    override them for one. `rtt` is short for half of it as delay each way and for the base of a
    buffer in BDP. Losses are drawn with `seed` downwards and `seed` + 1 upwards.
    """

    rate: str = None
    trace: str = None
    delay: str = None
    rtt: str = None
    jitter: str = None
    buffer: str = None
    loss: str = None
    burst: str = None
    events: tuple = ()
    seed: int = 1
    down: dict = dataclasses.field(default_factory=dict)
    up: dict = dataclasses.field(default_factory=dict)

    def spec(self, direction):
        """The --link text of one direction."""
        values = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)
                  if f.name not in ("down", "up")}
        values["seed"] += direction == "up"
        override = getattr(self, direction)
        unknown = set(override) - set(values)
        if unknown:
            raise ValueError(f"Link: no setting {', '.join(sorted(unknown))}")
        values.update(override)
        if "trace" in override:
            values["rate"] = override.get("rate")
        elif "rate" in override:
            values["trace"] = None
        if values["rtt"] and not values["delay"]:
            values["delay"] = half(values["rtt"])
        events = values.pop("events")
        words = [f"queue={QUEUE_DOWN if direction == 'down' else QUEUE_UP}", f"name={direction}"]
        words += [f"{key}={value}" for key, value in values.items() if value is not None]
        words += [f"event={event}" for event in events]
        return ",".join(words)


def half(time):
    """Half of a time with unit: "1ms" -> "0.5ms"."""
    number = time.rstrip("nmus")
    return f"{float(number) / 2:g}{time[len(number):]}"


class Emulator:
    """linkemu in a router's namespace, for both directions."""

    def __init__(self, namespace, link):
        self.namespace = namespace
        self.process = namespace.popen(
            [paths.linkemu(), "--commands", "--link", link.spec("down"), "--link",
             link.spec("up")],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
        if self.process.stdout.readline() != "ready\n":
            raise RuntimeError(f"linkemu did not start in {namespace.role}")

    def command(self, line):
        """One command; returns the answer."""
        if self.process.poll() is not None:
            raise RuntimeError(f"linkemu of {self.namespace.role} ended: {self.process.returncode}")
        self.process.stdin.write(line + "\n")
        answer = self.process.stdout.readline().strip()
        if not answer or answer.startswith("error"):
            raise ValueError(f"linkemu: {line}: {answer or 'no answer'}")
        return answer

    def set(self, change, direction="all"):
        """Changes the running link: set("loss 100%"), set("rate 5Mbit", "down"), set("block")."""
        self.command(f"{direction} {change}")

    def restart(self):
        """Script, traces, random numbers and statistics begin again now; returns time.monotonic()
        of then."""
        return float(self.command("restart").split()[1])

    def stats(self):
        """{"down": {...}, "up": {...}}: see tests/lab/README.md."""
        return {link["name"]: link for link in json.loads(self.command("stats"))["links"]}
