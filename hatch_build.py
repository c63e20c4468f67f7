"""Adds what wheels have and git has not: the report's JSON Schema and the manual pages."""

import os
import shutil
import subprocess
import sys
import tempfile
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class PackageFilesHook(BuildHookInterface[Any]):
    """Runs `docs/package_files.py`; a checkout, which may be read-only, is not written to."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Make the files. An editable install has the sources, and works while they are edited."""
        self.made = tempfile.mkdtemp()
        editable = version == "editable"
        script = os.path.join(self.root, "docs", "package_files.py")
        command = [sys.executable, "-I", "-S", script, self.root, self.made]
        subprocess.run(command, check=not editable)
        pages = os.path.join(self.made, "man")
        if self.target_name == "wheel" and os.path.isdir(pages):
            build_data["shared_data"][pages] = "share/man"
        if not editable:
            schema = os.path.join(self.made, "report.schema.json")
            build_data["force_include"][schema] = "probe_core/report.schema.json"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove what is in the wheel or the sdist now."""
        shutil.rmtree(self.made)
