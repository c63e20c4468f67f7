"""Builds the table from data/ whenever a wheel or an editable install is made of this tree."""

import os
import sys
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class TableHook(BuildHookInterface[Any]):
    """Runs `probe_chipdb build`. A bad entry stops a wheel, but not an editable install."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Write src/probe_chipdb/table. Raises SystemExit when a wheel would lack an entry."""
        source = os.path.join(self.root, "src")
        sys.path.insert(0, source)
        try:
            from probe_chipdb.tools.build import build
        finally:
            sys.path.remove(source)
        table = os.path.join(source, "probe_chipdb", "table")
        problems = build(os.path.join(self.root, "data"), table)
        if problems and version != "editable":
            raise SystemExit("probe-chipdb: " + "\n".join(map(str, problems)))
