"""What a host relies on at import: nothing heavy, no entry points, and probers by name."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import probe_exo
from probe_core.probing import registered_probers, unregister
from probe_exo.frozen import MODULES, register_probers


def loaded_by(code: str) -> set[str]:
    """Return the modules that a fresh interpreter has loaded after `code`."""
    path = [entry for entry in sys.path if entry]
    script = f"import sys; sys.path[:] = {path!r}\n{code}\nprint(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-I", "-c", script], capture_output=True, text=True, check=True
    )
    return set(done.stdout.split())


def test_importing_the_package_imports_nothing_else() -> None:
    assert not loaded_by("import probe_exo") & {"pydantic", "asyncio", "probe_core", "typing"}


def test_an_export_needs_no_module_that_takes_longer_than_it() -> None:
    """`probe export exo` takes 1.1 times as long as `probe --json` at most."""
    code = "import probe_exo.exporter, probe_export.export_command, probe_export.ansible"
    assert not loaded_by(code) & {"typing", "functools", "contextlib", "re", "enum", "dataclasses"}


def test_facts_for_current_exo_need_neither_pydantic_nor_attrs() -> None:
    code = "from probe_exo import *"
    assert not loaded_by(code) & {"pydantic", "attrs", "asyncio", "importlib.metadata"}


def test_old_exo_is_one_module_that_nothing_else_imports() -> None:
    folder = Path(probe_exo.__file__).parent
    users = {
        file.name
        for file in folder.glob("*.py")
        if re.search(r"^ *(import|from) .*\bdevice_capabilities\b", file.read_text("utf-8"), re.M)
    }
    assert users == {"device_capabilities_sync.py"}


def test_probers_are_registered_by_name_and_only_where_they_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(MODULES, "given", "exo_given_prober")
    monkeypatch.setitem(MODULES, "absent", "probe_of_nothing.prober")
    try:
        found = register_probers()
        assert "given" in found
        assert "absent" not in found
        assert registered_probers()["given"] == {"target": "exo_given_prober"}
        nvidia = registered_probers().get("nvidia")
        if nvidia is not None:  # its package is installed here, and so is its manifest
            assert nvidia["target"] == "probe_nvidia.prober"
            assert nvidia["when"]
    finally:
        for name in MODULES:
            unregister(name)


@pytest.mark.heavy
def test_a_forked_child_probes_for_itself() -> None:
    code = """
import os
from probe_exo.node import node_document
first = node_document()
child = os.fork()
if child == 0:
    second = node_document()
    os._exit(0 if second is not first and second["node"]["os"] == "linux" else 1)
assert os.waitpid(child, 0)[1] == 0
assert node_document() is first
"""
    if sys.platform != "linux":
        pytest.skip("forks, and Linux's report")
    loaded_by(code)
