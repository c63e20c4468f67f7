"""Every prober of this repository keeps the contract on machines that lack its hardware.

With hardware each is tested beside its source, on recorded and faked machines.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from probe_core.testing import ProberContract

PLUGINS = Path(__file__).resolve().parents[2] / "plugins"


class Own(ProberContract):
    """A prober that lies in `plugins/`, if it is installed here."""

    @pytest.fixture(autouse=True)
    def installed(self) -> None:
        package = self.target.partition(".")[0]
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"probe-{self.name} is not installed")


def own(prober: str, **more: object) -> type[Own]:
    body = {"name": prober, "target": f"probe_{prober}.prober", "project": PLUGINS / prober, **more}
    return type(f"Test{prober.title()}", (Own,), body)


TestAmd = own("amd")
TestApple = own("apple", absent="unavailable")  # every Mac has a GPU
TestIntel = own("intel")
TestMali = own("mali")
TestNvidia = own("nvidia")
TestPyamdgpuinfo = own("pyamdgpuinfo")
TestTinygrad = own("tinygrad")
TestWindows = own("windows")


def test_every_prober_of_the_repository_is_here() -> None:
    probers = {path.parents[2].name for path in PLUGINS.glob("*/src/*/prober.json")}
    checked = {name[4:].lower() for name, one in globals().items() if isinstance(one, type)}
    assert probers - {"synthetic"} <= checked
