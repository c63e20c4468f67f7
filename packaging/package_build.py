"""Adds to a plugin's wheel what git has not: manual pages, and what its `package_files.py` makes.

One file for all plugins with a command, which each `hatch_build.py` imports: from here in a
checkout, and from beside it in an sdist, which brings a copy and the pages along.
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
            build_data["force_include"][os.path.abspath(__file__)] = os.path.basename(__file__)
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
