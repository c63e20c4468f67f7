"""Whose a name is already, before an author chooses it; and which plugins are known."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path

from probe_core.registry.discover import discover
from probe_core.registry.locate import find_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import TypedDict

    class KnownPlugin(TypedDict):
        """One entry of `known_plugins.toml`, which describes the keys."""

        distribution: str
        probers: list[str]
        group: str
        devices: str
        needs: str
        licence: str
        source: str
        tested: str
        kit: str


__all__ = ["LIST", "known_plugins", "taken"]

LIST = Path(__file__).parent / "known_plugins.toml"


def known_plugins() -> list[KnownPlugin]:
    """Return the listed plugins, in the file's order."""
    entries: list[KnownPlugin] = tomllib.loads(LIST.read_text("utf-8"))["plugin"]
    return entries


def taken(name: str) -> Iterator[str]:
    """Yield a sentence for each who has the name of a new prober, its distribution or its package.

    A name that is taken can still be right: for a prober that replaces another.
    """
    package = f"probe_{name.replace('-', '_')}"
    installed = {prober.name: prober.owner for prober in discover({})[0]}
    if name in installed:
        yield (
            f"{installed[name]} has a prober {name!r}: of two, the one of higher priority runs"
            " and the other is skipped"
        )
    for plugin in known_plugins():
        listed = name in plugin["probers"] or plugin["distribution"] == f"probe-{name}"
        if listed and name not in installed:
            yield f"{plugin['distribution']} is a known plugin ({plugin['devices']})"
    place = find_module(package)[0]
    if place is not None:
        where = os.path.dirname(place.file or place.folder)
        yield f"the module {package} can be imported already, from {where}"
