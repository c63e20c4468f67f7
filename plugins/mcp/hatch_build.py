"""Adds manual pages to wheels, by `packaging/package_build.py` or the copy of it in an sdist."""

import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
sys.path[:0] = [str(FOLDER), str(FOLDER.parents[1] / "packaging")]

from package_build import PackageFilesHook as PackageFilesHook  # noqa: E402
