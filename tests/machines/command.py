"""Runs the command as a user's shell would: in a process of its own, with a known environment."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from collections.abc import Mapping
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from textwrap import dedent
from unittest import mock

from probe_core.cli import main


def environment(*folders: Path, **variables: str) -> dict[str, str]:
    """Return an environment with this test's modules and `folders` on the path, and little else."""
    path = os.pathsep.join([*map(str, folders), *(p for p in sys.path if p)])
    plain = {"PATH": os.environ.get("PATH", ""), "PYTHONPATH": path, "HOME": "/nonexistent"}
    return plain | variables


def argv(*arguments: str | bytes) -> list[str | bytes]:
    return [sys.executable, "-m", "probe_core", *arguments]


def probe(
    *arguments: str | bytes, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run `probe` and return how it ended; it never waits for input."""
    return subprocess.run(
        argv(*arguments),
        env=environment() if env is None else dict(env),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=60,
    )


def probe_here(
    *arguments: str, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run `probe` in this process, as `probe` does elsewhere: for what needs no process of its own.

    Paths of PYTHONPATH are of no effect.
    """
    variables = environment() if env is None else env
    encoding = variables.get("PYTHONIOENCODING", "utf-8")
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding, newline="") for _ in range(2))
    with (
        mock.patch.dict(os.environ, variables, clear=True),
        redirect_stdout(out),
        redirect_stderr(err),
    ):
        try:
            status = main(arguments)
        except SystemExit as ended:  # as argparse ends
            status = ended.code if isinstance(ended.code, int) else 1
    for stream in (out, err):
        stream.seek(0)
    return subprocess.CompletedProcess(arguments, status, out.read(), err.read())


def install(folder: Path, name: str, body: str, manifest: str | None = None) -> None:
    """Install a prober into a folder, as a wheel would: a module and its entry point."""
    module = f"installed_{name}"
    (folder / f"{module}.py").write_text(dedent(body))
    if manifest is not None:
        (folder / f"{module}.prober.json").write_text(manifest)
    info = folder / f"probe_x_{name}-1.2.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: probe-x-{name}\nVersion: 1.2\n")
    (info / "entry_points.txt").write_text(f"[probe_core.probers.v1]\n{name} = {module}\n")
