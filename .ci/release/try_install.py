"""Installs from an index as users do: `PYTHON try_install.py INDEX VERSION BEFORE EXTRA...`

Each trial starts from an empty folder, home and cache, and from no configuration of pip or uv. It
prints a line for each, with its seconds, and ends with 1 when one failed. Those that have a limit
run alone, the others as many at once as there are processors. Only the standard library, so that
any Python runs it; uv and pipx come from the index as everything else.
"""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

# Seconds from an empty folder to the first answer, on two cores.
LIMITS = {"first answer with pip": 60.0, "first answer with uv": 15.0}
# Of the system alone: pip asks a rustc on the path for its version, which may write into the home.
_PATH = "/usr/bin:/bin"
# Of the environment of tools: pip, and what comes from the index.
_TOOLS = ("uv", "pipx")
# pip removes the manual pages, and leaves their folder.
_EMPTY = "venv/share/man"


class Trial:
    """An empty folder with a home of its own, in which commands are run."""

    def __init__(self, index: str, folder: Path, tools: Path) -> None:
        self.folder, self._pip = folder, tools / "pip"
        home = folder / "home"
        home.mkdir()
        self.environ = {
            "PATH": _PATH, "LANG": "C.UTF-8", "HOME": str(home), "TMPDIR": str(folder),
            "PIP_CONFIG_FILE": os.devnull,
            "PIP_INDEX_URL": index, "PIP_DISABLE_PIP_VERSION_CHECK": "1", "UV_DEFAULT_INDEX": index,
            "UV_PYTHON_DOWNLOADS": "never", "UV_NO_CONFIG": "1", "PIP_NO_INPUT": "1",
            "PIPX_DEFAULT_PYTHON": sys.executable, "UV_PYTHON": sys.executable,
        }  # fmt: skip

    def run(self, *command: str | Path) -> str:
        """Return what a command prints. Raises AssertionError with its output where it fails."""
        ran = subprocess.run(
            list(map(str, command)), cwd=self.folder, env=self.environ, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, check=False, timeout=600,
        )  # fmt: skip
        words = " ".join(map(str, command))
        assert ran.returncode == 0, f"{words}\n{ran.stdout[-1500:]}{ran.stderr[-1500:]}"
        return ran.stdout

    def environment(self, name: str = "venv", with_pip: bool = False) -> Path:
        """Make an environment; return its folder of commands."""
        venv.create(self.folder / name, with_pip=with_pip, symlinks=True)
        return self.folder / name / "bin"

    def pip(self, commands: Path, *arguments: str) -> str:
        """Run the tools' pip for an environment: pip in each takes two thirds of a trial."""
        return self.run(self._pip, "--python", commands / "python", *arguments)

    def versions(self, commands: Path) -> dict[str, str]:
        """Return what is installed in an environment."""
        listed = json.loads(self.pip(commands, "list", "--format=json"))
        return {package["name"]: package["version"] for package in listed}

    def answers(self, probe: Path, *plugins: str) -> None:
        """Run `probe`, and see that it reports a device and ran these plugins or says why not."""
        report = json.loads(self.run(probe, "--json"))
        assert report["devices"], "a report without a device"
        missing = set(plugins) - {outcome["prober"] for outcome in report["outcomes"]}
        assert not missing, f"the report knows nothing of {missing}"


def files_below(folder: Path) -> set[str]:
    """Return the files and links below a folder, and the folders that hold nothing."""
    return {
        str(path.relative_to(folder))
        for path in folder.rglob("*")
        if path.is_symlink() or not path.is_dir() or not any(path.iterdir())
    }


def first_answer_with_pip(trial: Trial) -> None:
    """From nothing to a report."""
    commands = trial.environment(with_pip=True)
    trial.run(commands / "pip", "install", "-q", "probe-core[nvidia]")
    assert trial.run(commands / "probe")


def one_extra(trial: Trial, extra: str) -> None:
    """An extra alone, whose requirements fit each other."""
    commands = trial.environment()
    trial.pip(commands, "install", "-q", f"probe-core[{extra}]")
    trial.pip(commands, "check")
    trial.answers(commands / "probe")


def every_extra(trial: Trial, extras: list[str]) -> None:
    """All extras together, which leave nothing when they have run and are removed."""
    commands = trial.environment()
    before, files = trial.versions(commands), files_below(trial.folder)
    trial.pip(commands, "install", "-q", f"probe-core[{','.join(extras)}]")
    trial.pip(commands, "check")
    trial.answers(commands / "probe", "bus", "cpu", "nvidia", "amd", "intel", "mali")
    trial.run(commands / "probe", "plugins")
    added = sorted(set(trial.versions(commands)) - set(before))
    trial.pip(commands, "uninstall", "-q", "-y", *added)
    left = {
        path for path in files_below(trial.folder) - files
        if not path.startswith("home/.cache/pip") and path != _EMPTY
    }  # fmt: skip
    assert not left, f"remains: {sorted(left)[:8]}"


def a_plugin_alone(trial: Trial) -> None:
    """`pip install probe-nvidia` brings the core along."""
    commands = trial.environment()
    trial.pip(commands, "install", "-q", "probe-nvidia")
    trial.answers(commands / "probe", "nvidia")


def an_upgrade(trial: Trial, before: str, version: str) -> None:
    """From the version before, of which no file stays."""
    commands = trial.environment()
    trial.pip(commands, "install", "-q", f"probe-core[all]=={before}")
    old = trial.versions(commands)
    assert old["probe-core"] == before, old
    trial.answers(commands / "probe")
    trial.pip(commands, "install", "-q", "-U", "--upgrade-strategy", "eager",
              "probe-core[all]")  # fmt: skip
    new = {name: v for name, v in trial.versions(commands).items() if name.startswith("probe-")}
    late = {name: v for name, v in new.items() if v != version and name != "probe-chipdb"}
    assert not late, f"not upgraded: {late}"
    trial.pip(commands, "check")
    trial.answers(commands / "probe")
    left = of_nobody(commands.parent)
    assert not left, f"the version before left {sorted(left)[:5]}"


def of_nobody(environment: Path) -> set[str]:
    """Return the files in an environment that have a name like ours, and that no RECORD lists."""
    (site,) = environment.glob("lib/python3.*/site-packages")
    listed = {
        os.path.relpath(os.path.normpath(site / row[0]), environment)
        for record in site.glob("*.dist-info/RECORD")
        for row in csv.reader(record.read_text("utf-8").splitlines())
    }
    return {
        path for path in files_below(environment)
        if "probe" in path and "__pycache__" not in path and path not in listed
    }  # fmt: skip


def first_answer_with_uv(trial: Trial, uv: Path) -> None:
    """From nothing to a report, uv being there."""
    trial.run(uv, "venv", "-q", "venv")
    python = trial.folder / "venv/bin/python"
    trial.run(uv, "pip", "install", "-q", "--compile-bytecode", "-p", python, "probe-core[nvidia]")
    assert trial.run(python.parent / "probe")


def with_uvx(trial: Trial, uv: Path) -> None:
    """`uvx` runs it without an installation."""
    report = json.loads(
        trial.run(uv, "tool", "run", "--from", "probe-core[nvidia]", "probe", "--json")
    )
    assert report["devices"]


def with_pipx(trial: Trial, pipx: Path) -> None:
    """`pipx run` too, and `pipx install`."""
    run = ("run", "--spec", "probe-core[nvidia]", "probe", "--json")
    assert json.loads(trial.run(pipx, *run))["devices"]
    trial.run(pipx, "install", "probe-core[all]")
    trial.answers(trial.folder / "home/.local/bin/probe", "nvidia")


def from_sources(trial: Trial) -> None:
    """From the source distributions, where somebody takes no wheel of ours."""
    commands = trial.environment()
    ours = "probe-core,probe-chipdb,probe-cluster"
    trial.pip(commands, "install", "-q", "--no-binary", ours, "probe-core[cluster]")
    trial.answers(commands / "probe")


def trials(
    version: str, before: str, extras: list[str], tools: Path
) -> Iterator[tuple[str, Callable[[Trial], None]]]:
    """Yield each trial: its name, and what it does."""
    yield "first answer with pip", first_answer_with_pip
    yield "first answer with uv", partial(first_answer_with_uv, uv=tools / "uv")
    yield "a plugin alone", a_plugin_alone
    for extra in extras:
        yield f"extra {extra}", partial(one_extra, extra=extra)
    yield "every extra, and its removal", partial(every_extra, extras=extras)
    yield "upgrade", partial(an_upgrade, before=before, version=version)
    yield "from sources", from_sources
    yield "uvx", partial(with_uvx, uv=tools / "uv")
    yield "pipx", partial(with_pipx, pipx=tools / "pipx")


def tried(index: str, tools: Path, name: str, trial: Callable[[Trial], None]) -> bool:
    """Run a trial in an empty folder, and print how it went."""
    with tempfile.TemporaryDirectory() as folder:
        started = time.monotonic()
        try:
            trial(Trial(index, Path(folder), tools))
        except Exception as error:  # each trial has its line, whatever happens in one
            print(f"FAILED  {name}: {error}", flush=True)
            return False
        took = time.monotonic() - started
    late = took > LIMITS.get(name, 600.0)
    print(f"{'LATE   ' if late else 'ok     '} {name}  {took:.1f} s", flush=True)
    return not late


def main(arguments: list[str]) -> int:
    """Run all trials; 1 when one failed."""
    index, version, before, *extras = arguments
    print(f"CPython {sys.version.split()[0]}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        tools = Path(folder) / "tools" / "bin"
        place = Trial(index, Path(folder), tools)
        place.run(place.environment("tools", with_pip=True) / "pip", "install", "-q", *_TOOLS)
        run = partial(tried, index, tools)
        every = dict(trials(version, before, extras, tools))
        alone = [run(name, trial) for name, trial in every.items() if name in LIMITS]
        rest = [(name, trial) for name, trial in every.items() if name not in LIMITS]
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            ok = all([*alone, *pool.map(lambda pair: run(*pair), rest)])
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
