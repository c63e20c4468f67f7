"""The place where benchmarks run: an interpreter with the packages, installed as users have them.

A fresh virtual environment with wheels, compiled: an editable install or a first run without
bytecode would measure something else.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from measure import here

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = (
    "chipdb",
    ".",
    *(
        f"plugins/{p}"
        for p in "nvidia amd intel mali tinygrad cluster exo export wheels report watch".split()
    ),
)
RIVALS = (
    "psutil",
    "nvitop; sys_platform == 'linux'",
    "pyamdgpuinfo; sys_platform == 'linux' and platform_machine == 'x86_64'",
)
"""What the ways to compare with need besides what the plugins bring."""


@dataclass(frozen=True)
class Place:
    """An interpreter, its environment, and a folder for what a benchmark generates."""

    python: str
    environ: Mapping[str, str]
    folder: Path
    quick: bool

    @property
    def probe(self) -> list[str]:
        """The command `probe`, or its module where no script is installed."""
        script = Path(self.python).with_name("probe")
        return [str(script)] if script.exists() else [self.python, "-m", "probe_core"]

    def rounds(self, many: int, few: int = 5) -> int:
        """Return how often to measure."""
        return few if self.quick else many

    def has(self, module: str) -> bool:
        """Return whether the interpreter can import `module`."""
        code = f"import importlib.util as u, sys; sys.exit(u.find_spec({module!r}) is None)"
        run = subprocess.run([self.python, "-c", code], env=dict(self.environ), check=False)
        return run.returncode == 0

    def with_path(self, *folders: Path) -> dict[str, str]:
        """Return the environment with `folders` first on the path."""
        known = self.environ.get("PYTHONPATH")
        paths = [*map(str, folders), *([known] if known else [])]
        return {**self.environ, "PYTHONPATH": os.pathsep.join(paths)}


def this_interpreter(folder: Path, quick: bool) -> Place:
    """Return this interpreter as it is: quick to set up, and not what users have."""
    return Place(sys.executable, here(), folder, quick)


def given(python: str, folder: Path, quick: bool) -> Place:
    """Return an interpreter that has everything already."""
    return Place(os.path.abspath(python), _environ(folder), folder, quick)


def fresh(folder: Path, quick: bool) -> Place:
    """Make a virtual environment in `folder`, and install and compile the packages there."""
    home = folder / "venv"
    subprocess.run([sys.executable, "-m", "venv", str(home)], check=True)
    python = str(home / "bin" / "python")
    wanted = [str(ROOT / package) for package in PACKAGES]
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, *wanted, *RIVALS], check=True)
    library = next((home / "lib").glob("python3*"))
    subprocess.run([python, "-m", "compileall", "-q", str(library)], check=False)
    return Place(python, _environ(folder), folder, quick)


def temporary() -> tempfile.TemporaryDirectory[str]:
    """Return a folder for a run."""
    return tempfile.TemporaryDirectory(prefix="probe-bench-", ignore_cleanup_errors=True)


def _environ(folder: Path) -> dict[str, str]:
    """Return this environment without what would change how an interpreter starts.

    Nor does anything that the user has saved count: against a baseline of `probe doctor --save`
    each probe is compared, which takes 7 ms where the machine is another.
    """
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PYTHON", "PROBE_", "VIRTUAL_ENV", "COV_"))
    }
    own = ("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME")
    return kept | {name: str(folder / name.lower()) for name in own}
