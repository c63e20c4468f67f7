"""Adds to wheels what git has not: the manual pages, and what `package_files.py` here makes.

The same file in every plugin with a command, for an sdist of one has no other. A checkout's
`docs/package_files.py` makes the pages; an sdist brings them along.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class PackageFilesHook(BuildHookInterface[Any]):
    """Makes the files beside the checkout, which may be read-only, and removes them afterwards."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Make the files. An editable install has the sources, and works while they are edited."""
        self.made = tempfile.mkdtemp()
        editable = version == "editable"
        pages = self._pages(must=not editable)
        if self.target_name == "sdist":
            build_data["force_include"][pages] = "man"
        elif os.path.isdir(pages):
            build_data["shared_data"][pages] = "share/man"
        script = os.path.join(self.root, "package_files.py")
        if self.target_name == "wheel" and not editable and os.path.exists(script):
            files = os.path.join(self.made, "files")
            subprocess.run([sys.executable, script, files], check=True)
            build_data["force_include"][files] = "/"

    def _pages(self, must: bool) -> str:
        script = os.path.join(self.root, "..", "..", "docs", "package_files.py")
        if not os.path.exists(script):
            return os.path.join(self.root, "man")
        subprocess.run([sys.executable, "-I", "-S", script, self.root, self.made], check=must)
        return os.path.join(self.made, "man")

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove what is in the wheel or the sdist now."""
        shutil.rmtree(self.made)
