"""Writes a good plugin, spoilt as a test says, and binds the contract to it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from probe_core.testing import Case, Machine, ProberContract

GOOD = '''"""Acme accelerators."""
from probe_core.api import Unavailable, hookimpl, not_applicable

@hookimpl
def probe_devices(request):
    machine = request.machine
    names = machine.listdir("/sys/class/acme")
    if not names:
        return not_applicable("no /sys/class/acme")
    if machine.exists("/sys/class/acme/locked"):
        raise Unavailable("the driver is locked", code="driver-locked")
    return ask(request, names)

def ask(request, names):
    for name in names:
        identity = f"acme:{name}"
        if identity in request.avoid:
            continue
        request.touching(identity)
        yield describe(request.machine, name)

def describe(machine, name):
    device = {"ids": [f"acme:{name}"], "kind": "npu", "unknown": {}}
    text = machine.read(f"/sys/class/acme/{name}/name")
    if text:
        device["name"] = text
    else:
        device["unknown"]["name"] = "the driver does not say"
    units = machine.read_int(f"/sys/class/acme/{name}/units")
    if units and units < 1000:
        device["units"] = units
    return device

@hookimpl
def sample_devices(request):
    names = request.machine.listdir("/sys/class/acme")
    return samples(request, names) if names else not_applicable("no Acme here")

def samples(request, names):
    for name in names:
        device = f"acme:{name}"
        if request.skip(device):
            continue
        request.touching(device)
        yield figures(request.machine, device, name)

def figures(machine, device, name):
    sample = {"device": device}
    load = machine.read_int(f"/sys/class/acme/{name}/load")
    if load is not None and 0 <= load <= 100:
        sample["busy"] = load / 100
    return sample
'''
RECORDS = {"files": ["/sys/class/acme/*/name", "/sys/class/acme/*/units", "/sys/class/acme/locked"]}
MANIFEST = {
    "summary": "Acme",
    "api": "1.0",
    "priority": 400,
    "deadline_s": 3.0,
    "records": RECORDS,
}
WHEN = {"os": ["linux"], "any_path": ["/sys/class/acme"]}
PROJECT = """
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"
[project]
name = "probe-acme"
version = "1.0"
dependencies = ["probe-core>=1.0"]
[project.entry-points."probe_core.probers.v1"]
acme = "x_acme.prober"
[tool.hatch.build.targets.wheel]
packages = ["src/x_acme"]
"""


class Contract(ProberContract):
    """Bound to the plugin that the fixture writes; not collected itself."""

    name = "acme"
    target = "x_acme.prober"

    def hardware(self, root: Path) -> Case:
        (root / "dev").mkdir()
        (root / "dev/acme0").touch()
        for number in range(2):
            folder = root / f"sys/class/acme/acme{number}"
            folder.mkdir(parents=True)
            (folder / "name").write_text(f"Acme {number}\n")
            (folder / "units").write_text("8\n")
        return Case(Machine(str(root)))

    def sampled(self, root: Path) -> Case:
        case = self.hardware(root)
        for number in range(2):
            (root / f"sys/class/acme/acme{number}/load").write_text("25\n")
        return case

    def broken(self, root: Path) -> Mapping[str, Case]:
        (root / "sys/class/acme/locked").mkdir(parents=True)
        return {"locked": Case(Machine(str(root)))}

    def lacking(self, root: Path) -> Mapping[str, Case]:
        (root / "sys/class/acme").mkdir(parents=True)
        return {"a driver without a device": Case(Machine(str(root)))}


Plugin = Callable[..., Contract]


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Plugin:
    """Return a function that writes the plugin, spoilt as told, and binds the contract to it."""
    package = tmp_path / "plugin/src/x_acme"
    package.mkdir(parents=True)
    monkeypatch.syspath_prepend(str(package.parent))

    def write(
        *changes: tuple[str, str],
        manifest: Any = None,
        project: tuple[str, str] = ("", ""),
        **attributes: Any,
    ) -> Contract:
        source = GOOD
        for old, new in changes:
            assert old in source
            source = source.replace(old, new)
        for name, text in (("__init__.py", ""), ("py.typed", ""), ("prober.py", source)):
            (package / name).write_text(text)
        fields = {**MANIFEST, "when": WHEN, **(manifest or {})}
        if manifest is not False:
            text = json.dumps({"schema": 1, "probers": {"acme": fields}})
            (package / "prober.json").write_text(text)
        (tmp_path / "plugin/pyproject.toml").write_text(PROJECT.replace(*project))
        made = type("Made", (Contract,), {"project": tmp_path / "plugin", **attributes})
        contract: Contract = made()
        return contract

    return write
