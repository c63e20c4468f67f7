"""Register the probers of this project by name: a frozen application has no entry points."""

from __future__ import annotations

import json
import os
from importlib.util import find_spec
from typing import Any

from probe_cluster.planning.offers import table
from probe_core import child_entry, register

__all__ = ["MODULES", "child_entry", "register_probers"]

MODULES = {
    "nvidia": "probe_nvidia.prober",
    "amd": "probe_amd.prober",
    "intel": "probe_intel.prober",
    "mali": "probe_mali.prober",
    "apple": "probe_apple.prober",
    "windows": "probe_windows.prober",
}
"""Prober → its module; bundle the packages with their prober.json (``--collect-data``)."""


def register_probers() -> tuple[str, ...]:
    """Register every known prober whose package is there, and return their names.

    Call it after `child_entry()`, first thing in the application's main module. Nothing is
    imported: a prober's module is imported in its own process alone. The manifest is read where it
    was bundled; without one a prober runs with the core's defaults, whatever the node has.
    """
    names: list[str] = []
    for name, module in MODULES.items():
        # The top-level package only: finding a submodule would execute its parents.
        spec = find_spec(module.partition(".")[0])
        if spec is not None:
            folders = list(spec.submodule_search_locations or ())
            register(name, {**_manifest(folders, name), "target": module})
            names.append(name)
    return tuple(names)


def _manifest(folders: list[str], name: str) -> dict[str, Any]:
    """Return what the manifest in the package's folder says of a prober."""
    for folder in folders:
        try:
            with open(os.path.join(folder, "prober.json"), "rb") as file:
                document = json.load(file)
        except (OSError, ValueError):
            continue
        return dict(table(table(table(document).get("probers")).get(name)))
    return {}
