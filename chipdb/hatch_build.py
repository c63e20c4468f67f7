"""Makes what is not tracked: the table, from data/, and the schemas for editors.

It runs whenever a wheel, a source distribution or an editable install is made of this tree.
"""

import os
import sys
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class TableHook(BuildHookInterface[Any]):
    """Runs `probe_chipdb build` and `schema`. A bad entry stops all but an editable install."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Write table and schemas. Raises SystemExit when a wheel would lack an entry."""
        source = os.path.join(self.root, "src")
        sys.path.insert(0, source)
        try:
            from probe_chipdb.tools import build
        finally:
            sys.path.remove(source)
        build.write_schemas(os.path.join(self.root, "schema"))
        problems = build.build(
            os.path.join(self.root, "data"), os.path.join(self.root, build.TABLE)
        )
        if problems and version != "editable":
            raise SystemExit("probe-chipdb: " + "\n".join(map(str, problems)))
