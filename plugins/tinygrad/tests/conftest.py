"""Builds packages named tinygrad that behave as the test says, of each generation."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import pytest

from probe_core.api import Machine, Request, Unavailable
from probe_tinygrad.prober import probe_devices

_TENSOR = """
class Tensor:
    def __init__(self, values, device): self.values, self.device = values, device
    def __mul__(self, factor): return Tensor([v * factor for v in self.values], self.device)
    def tolist(self): return Device.run(self.device, self.values)
"""
_DEVICE = """
import pathlib
{all_devices}
class NVKIface: gpus_info = []
class KFDIface: gpus = []
class cl: pass
class Opened: pass
class _Device:
    _devices = {names!r}
    def __getitem__(self, name):
        file = pathlib.Path(__file__).parent / f"open_{{name}}.py"
        if not file.exists(): raise ModuleNotFoundError(f"No module named 'ops_{{name.lower()}}'")
        exec(file.read_text(), globals())
        return Opened()
    def run(self, name, values):
        file = pathlib.Path(__file__).parent / f"run_{{name}}.py"
        scope = {{"values": values}}
        if file.exists(): exec(file.read_text(), scope)
        return scope["values"]
    {default}
Device = _Device()
"""
_DEFAULTS = {
    "targets": "DEFAULT = property(lambda self: 'X')",
    "names": "@property\n    def DEFAULT(self): return getenv('DEV')",
    "flags": "@property\n    def DEFAULT(self): return getenv('X')",
    "0.9": "@property\n    def DEFAULT(self):\n        for d in ['METAL', 'GPU', 'CLANG']: pass",
}


class Fake:
    """A fake tinygrad on the path: each backend opens unless a test replaces its module."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.package = root / "tinygrad"

    def install(self, *names: str, style: str = "targets", version: str = "9.9.9") -> Fake:
        """Write the package, with backends that are tried in the order of `names`."""
        self.package.mkdir(parents=True, exist_ok=True)
        (self.root / f"tinygrad-{version}.dist-info").mkdir()
        self.write("__init__", "from tinygrad.device import Device\n" + _TENSOR)
        listed = f"ALL_DEVICES = {list(names)!r}" if style != "0.9" else ""
        text = _DEVICE.format(all_devices=listed, names=list(names), default=_DEFAULTS[style])
        self.write("device", text)
        helpers = "class Target: pass\n" if style == "targets" else ""
        self.write(
            "helpers",
            helpers + "class Var:\n    value = 0\nclass ContextVar: _cache = {'DEBUG': Var()}\n",
        )
        for name in names:
            self.write(f"open_{name}", "")
        return self

    def write(self, module: str, text: str) -> Fake:
        (self.package / f"{module}.py").write_text(textwrap.dedent(text))
        return self

    def probe(self, *bus: dict[str, Any], deadline_s: float = 20.0, **environ: str) -> ProberAnswer:
        machine = Machine("/", environ={"TMPDIR": str(self.root), **environ})
        return ProberAnswer(Request(machine, bus, active=True, deadline_s=deadline_s))


class ProberAnswer:
    """A prober's answer, sorted."""

    def __init__(self, request: Request) -> None:
        self.devices: list[dict[str, Any]] = []
        self.findings: list[dict[str, Any]] = []
        self.unavailable: Unavailable | None = None
        answer: Any = probe_devices(request)
        try:
            for item in answer:
                (self.findings if "finding" in item else self.devices).append(item)
        except Unavailable as error:
            self.unavailable = error
        self.findings = [item["finding"] for item in self.findings]

    def finding(self, code: str) -> dict[str, Any]:
        """Return the one finding of that code."""
        (finding,) = [item for item in self.findings if item["code"] == code]
        return finding


@pytest.fixture(scope="session")
def new_fake() -> type[Fake]:
    """Return the builder of a package, for those that a test places itself."""
    return Fake


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fake:
    root = tmp_path / "site"
    root.mkdir()
    monkeypatch.syspath_prepend(str(root))
    return Fake(root)
