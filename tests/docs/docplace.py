"""A fresh environment for each page: a reader's machine that has the core and nothing else."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import venv
from pathlib import Path

from docpages import ROOT

__all__ = ["Place"]

_SCRIPTS = {
    "probe": "from probe_core.cli import main",
    "pip": "from pip._internal.cli.main import main",
}


FRAMEWORKS = Path(__file__).parent / "frameworks"
# A notebook runs its cells inside a running event loop, where `await` stands at the top level.
_NOTEBOOK = """
import ast, asyncio, sys

async def cell():
    code = compile(sys.argv[1], "cell", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    result = eval(code, {"__name__": "__main__"})
    if result is not None:
        await result

asyncio.run(cell())
"""


class Place:
    """A folder to work in, and a virtual environment of its own.

    What the tests' own interpreter can import can be imported there too, so nothing is fetched.
    `frameworks` is a folder of packages that go first: by default of stand-ins for what is large.
    A block has `seconds`; then it is killed with all that it started.
    """

    seconds = 180.0

    def __init__(self, folder: Path, frameworks: Path = FRAMEWORKS) -> None:
        self._frameworks = frameworks
        self.work = folder / "work"
        self.work.mkdir()
        self._output = folder / "output"
        self._pytest = folder / "pytest"
        self._venv = folder / "venv"
        venv.create(self._venv, with_pip=False, symlinks=True)
        self._python = self._venv / "bin" / "python"
        self._share_path()
        for script, line in _SCRIPTS.items():
            self._write_script(script, line)

    def _share_path(self) -> None:
        site = next((self._venv / "lib").glob("python*/site-packages"))
        own = sys.base_prefix + "/lib/python"
        paths = [p for p in sys.path if os.path.isdir(p) and ("site-" in p or own not in p)]
        ours = [ROOT, ROOT / "chipdb/src", ROOT / "plugins/synthetic/src"]
        shared = [str(self._frameworks), *map(str, ours), *paths]
        (site / "shared.pth").write_text("\n".join(dict.fromkeys(shared)) + "\n")

    def _write_script(self, script: str, line: str) -> None:
        path = self._venv / "bin" / script
        path.write_text(f"#!{self._python}\nimport sys\n{line}\nsys.exit(main())\n")
        path.chmod(0o755)

    def environ(self) -> dict[str, str]:
        """Return the environment of a reader: nothing of the tests' own, and no network for pip."""
        return {
            "PATH": f"{self._venv / 'bin'}:/usr/local/bin:/usr/bin:/bin",
            "HOME": str(self.work),
            "LANG": "C.UTF-8",
            "NO_COLOR": "1",
            "COLUMNS": "100",
            "PIP_NO_INDEX": "1",
            "PIP_NO_DEPS": "1",
            "PIP_NO_BUILD_ISOLATION": "0",  # pip reads this one as "no-build-isolation = 0"
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
            "PIP_ROOT_USER_ACTION": "ignore",
            "REPOSITORY": str(ROOT),
            # Below pytest's own folder it would delete what earlier runs left: that takes a minute.
            "PYTEST_ADDOPTS": f"-p no:cacheprovider --basetemp={self._pytest}",
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        }

    def run(
        self, language: str, text: str, *, notebook: bool = False
    ) -> subprocess.CompletedProcess[str]:
        """Run a block of shell or Python; output and errors come together, in order."""
        shell = ["bash", "-euo", "pipefail", "-c", text]
        code = [_NOTEBOOK, text] if notebook else [text]
        command = [str(self._python), "-c", *code] if language == "python" else shell
        # Into a file: a daemon that a block leaves behind, as Ray's do, holds a pipe open, and
        # reading it to its end would outlast any limit of time.
        with open(self._output, "w+", encoding="utf-8") as output:
            process = subprocess.Popen(
                command,
                cwd=self.work,
                env=self.environ(),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            try:
                # A page may run a whole suite, or mypy without its cache.
                status = process.wait(self.seconds)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                status = process.wait()
                output.write(f"killed after {self.seconds:g} s\n")
            output.seek(0)
            return subprocess.CompletedProcess(command, status, stdout=output.read())

    def write(self, path: str, text: str) -> None:
        """Write a file below the folder to work in."""
        target = self.work / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, "utf-8")

    def add(self, where: str, text: str) -> None:
        """Insert `text` into a file before a line: ``PATH, before LINE`` (without its indent)."""
        path, _, wanted = where.partition(", before ")
        target = self.work / path
        lines = target.read_text("utf-8").splitlines(keepends=True)
        places = [number for number, line in enumerate(lines) if line.strip() == wanted]
        assert len(places) == 1, f"{path} has {len(places)} lines {wanted!r}"
        lines.insert(places[0], text)
        target.write_text("".join(lines), "utf-8")
