"""Resolves links for one look at a machine: each folder on the way is asked about once.

`os.path.realpath` asks about every folder of every path again: 47 lstat(2) for each GPU, whose
folders are those of its neighbours but for the last.
"""

from __future__ import annotations

import os

from probe_core.machine import Machine

MAX_PARTS = 64
"""Parts of a path that is resolved here, one call deep each: those of /sys have a dozen."""


def remembering(machine: Machine) -> Machine:
    """Return the machine with a memory of its links, to be dropped after one look.

    A recorded machine, and one of a class of its own, is returned as it is.
    """
    return _Remembering(machine) if machine.live and type(machine) is Machine else machine


class _Remembering(Machine):
    """The live machine while its links are taken not to change."""

    def __init__(self, machine: Machine) -> None:
        vars(self).update(vars(machine))
        self._real: dict[str, str] = {}

    def realpath(self, path: str) -> str:
        """Return the absolute path with all links resolved, as `Machine` does."""
        if not path.startswith("/") or path.count("/") > MAX_PARTS:
            return super().realpath(path)
        try:
            return self._resolved(path) or "/"
        except (OSError, ValueError):
            return ""

    def _resolved(self, path: str) -> str:
        """Return the real path; that of the root is empty."""
        real = self._real.get(path)
        if real is None:
            head, _, name = path.rpartition("/")
            parent = self._resolved(head) if head else ""
            if name in ("", "."):
                real = parent
            elif name == "..":
                real = parent.rpartition("/")[0]
            else:
                real = self._entry(parent, name)
            self._real[path] = real
        return real

    def _entry(self, parent: str, name: str) -> str:
        """Return the real path of what is called `name` in the real folder `parent`."""
        place = f"{parent}/{name}"
        if place not in self._real:
            self._real[place] = place  # before its target: two links may lead to each other
            try:
                target = os.readlink(place)
            except OSError:  # no link
                return place
            path = target if target.startswith("/") else f"{parent}/{target}"
            self._real[place] = self._resolved(path)
        return self._real[place]
