"""Register the probers of this project by name: a frozen application has no entry points."""

from __future__ import annotations

from importlib.util import find_spec

from probe_core.probing import child_entry, register

__all__ = ["KNOWN", "child_entry", "register_probers"]

KNOWN = {
    "nvidia": "probe_nvidia.prober",
    "amd": "probe_amd.prober",
    "mali": "probe_mali.prober",
}
"""Prober → its module; bundle the packages with their prober.json."""


def register_probers() -> tuple[str, ...]:
    """Register every known prober whose package is there, and return their names.

    Call it after `child_entry()`, first thing in the application's main module. Importing nothing:
    a prober's module is imported in its own process alone.
    """
    found: list[str] = []
    for name, module in KNOWN.items():
        # The top-level package only: finding a submodule would execute its parents.
        if find_spec(module.partition(".")[0]) is not None:
            register(name, module)
            found.append(name)
    return tuple(found)
