"""Which Python a command runs, and what is installed for it, of files alone."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from probe_core.machine import Machine
from probe_core.selection.interpreter import (
    command_line_python,
    installed,
    interpreter_of,
    site_folders,
    versions,
)


def program(path: Path, text: str = "\x7fELF", mode: int = 0o755) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)
    return str(path)


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("#!/opt/py/bin/python3.12\nimport x\n", "/opt/py/bin/python3.12"),
        ("#!/opt/py/bin/pypy3 -I\n", "/opt/py/bin/pypy3"),
        ("#!/usr/bin/env -S A=1 python\n", "{bin}/python"),
        ("#!/usr/bin/env python3 -u\n", "{bin}/python3"),
        ("#!/usr/bin/env python\n", "{bin}/python"),
        ("#!/usr/bin/env nowhere\n", "{bin}/python3"),
        ("#!/usr/bin/env\n", "{bin}/python3"),
        ("#!/usr/bin/env -i\n", "{bin}/python3"),
        ("#!/bin/sh\nexec /opt/py/bin/python3.12\n", "{bin}/python3"),
        ("#!/opt/py/bin/python3-config\n", "{bin}/python3"),
        ("#!/opt/py/bin/python.sh\n", "{bin}/python3"),
        ("#!\n", "{bin}/python3"),
        ("no script /opt/py/bin/python3.12\n", "{bin}/python3"),
        ("xx/opt/py/bin/python3.12\n", "{bin}/python3"),
        (f"#!{' ' * 242}/o/python3\n", "/o/python3"),  # Linux reads 256 bytes
        (f"#!{' ' * 248}/o/python3\n", "{bin}/python3"),
    ],
)
def test_the_first_line_of_a_script(tmp_path: Path, script: str, expected: str) -> None:
    folder = tmp_path / "bin"
    for name in ("python", "python3"):
        program(folder / name)
    program(folder / "job", script)
    environ = {"PATH": f"{tmp_path / 'none'}:{folder}"}
    assert interpreter_of(["job", "python"], environ) == expected.format(bin=folder)
    assert interpreter_of([f"{folder}/job"], environ) == expected.format(bin=folder)
    assert interpreter_of([f"{folder}/"], environ) == f"{folder}/python3"  # which cannot be read


def test_the_python_of_a_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    only = program(tmp_path / "a" / "python")
    (tmp_path / "b" / "python3").mkdir(parents=True)
    program(tmp_path / "c" / "python3", mode=0o644)
    environ = {"PATH": f"{tmp_path}/b:{tmp_path}/c:{tmp_path}/a"}
    assert interpreter_of([], environ) == only
    assert interpreter_of(["python", "-c", ""], environ) == only
    assert interpreter_of(["/opt/python3.13"], environ) == "/opt/python3.13"
    assert interpreter_of(["./python3.13"], environ) == f"{tmp_path}/python3.13"
    assert interpreter_of(["nowhere"], {"PATH": f"{tmp_path}/none"}) is None
    assert versions(["nowhere"], {"PATH": f"{tmp_path}/none"}) == {}
    # What starts the next word in an environment of its own.
    assert interpreter_of(["uv", "run", "x"], environ) == only
    own = program(tmp_path / ".venv" / "bin" / "python")
    assert interpreter_of(["uv", "run", "x"], environ) == own
    assert interpreter_of(["/bin/poetry", "run"], environ | {"VIRTUAL_ENV": ""}) == own
    assert interpreter_of(["uv", "pip", "x"], environ) == only
    active = program(tmp_path / "v" / "bin" / "python")
    assert interpreter_of(["uv", "run"], environ | {"VIRTUAL_ENV": f"{tmp_path}/v"}) == active


def site(base: Path, *packages: str) -> str:
    for name in packages:
        (base / name).mkdir(parents=True)
    return str(base)


@pytest.mark.parametrize("system", [None, "false", "TRUE"])
def test_where_packages_are_looked_for(tmp_path: Path, system: str | None) -> None:
    real = program(tmp_path / "usr" / "bin" / "python3.11")
    (tmp_path / "venv" / "bin").mkdir(parents=True)
    (tmp_path / "venv" / "bin" / "python").symlink_to(real)
    if system is not None:
        text = f"home = /usr/bin\nInclude-System-Site-Packages = {system}\n"
        (tmp_path / "venv" / "pyvenv.cfg").write_text(text)
    (tmp_path / "usr/lib/python3.12/site-packages").mkdir(parents=True)
    own = site(tmp_path / "venv/lib/python3.11/site-packages", "Tiny_Grad-0.12.0.dist-info")
    home = site(tmp_path / "home/.local/lib/python3.11/site-packages", "tiny_grad-1.0.egg-info")
    local = site(tmp_path / "usr/local/lib/python3.11/dist-packages", "other-1-py3.11.egg-info")
    base = site(tmp_path / "usr/lib/python3/dist-packages", "wrong-2.0", "nameless.dist-info")
    environ = {"PYTHONPATH": f"{tmp_path}/p::{tmp_path}/q", "HOME": f"{tmp_path}/home"}
    listed = [f"{tmp_path}/p", f"{tmp_path}/q"]
    python = f"{tmp_path}/venv/bin/python"
    found = site_folders(python, environ)
    assert found == [*listed, own] + ([] if system == "false" else [home, local, base])
    if system != "false":
        assert site_folders(python, {"PYTHONNOUSERSITE": "1", **environ})[3:] == [local, base]
        assert installed(("tiny-grad", "other", "wrong"), found) == {
            "tiny-grad": "0.12.0",
            "other": "1",
        }
    assert installed(("other",), [own, f"{tmp_path}/none", home]) == {}


def test_this_python_names_its_own_folders() -> None:
    found = site_folders(sys.executable, {"PYTHONPATH": "/p"})
    assert found[0] == "/p"
    assert len(found) > 1
    assert all(name.endswith(("site-packages", "dist-packages")) for name in found[1:])


@pytest.mark.skipif(os.name != "posix", reason="Windows has other names")
def test_the_python_of_the_command_line(tmp_path: Path) -> None:
    second = program(tmp_path / "b" / "python3")
    (tmp_path / "b" / "python").mkdir()
    program(tmp_path / "a" / "python", mode=0o644)
    machine = Machine(environ={"PATH": f":{tmp_path}/a:{tmp_path}/b"})
    assert command_line_python(machine) == second
    first = program(tmp_path / "c" / "python")
    machine = Machine(environ={"PATH": f"{tmp_path}/b:{tmp_path}/c"})
    assert command_line_python(machine) == first
    assert command_line_python(Machine(environ={})) == sys.executable
