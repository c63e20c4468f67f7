"""tinygrad's own process, in a copy of this one: each line that it writes."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from probe_tinygrad import child

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="the process is copied")


class Backend:
    """A device of a backend; of ``METAL`` with a name."""

    sysdevice = SimpleNamespace(name=lambda: "Apple M4")


class Devices:
    """tinygrad's `Device`: its backends, and how one is chosen."""

    _devices = ("METAL", "CPU", "WEBGPU", "QCOM", "DSP")

    def __getitem__(self, backend: str) -> Backend:
        if backend == "WEBGPU":
            raise RuntimeError("no\n adapter")
        if backend == "DSP":
            raise SystemExit
        return Backend()


class Tensor:
    def __init__(self, values: list[int], device: str) -> None:
        self.values, self.device = values, device

    def __mul__(self, factor: int) -> Tensor:
        if self.device == "QCOM":
            raise ExceptionGroup("two", [OSError("lost"), OSError("lost"), ValueError()])
        return Tensor([value * factor for value in self.values], self.device)

    def tolist(self) -> list[int]:
        return [] if self.device == "CPU" else self.values


@pytest.fixture
def tinygrad(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    (tmp_path / "other-1.0.dist-info").mkdir()
    (tmp_path / "tinygrad-0.12.3.dist-info").mkdir()
    package: Any = ModuleType("tinygrad")
    package.__file__ = str(tmp_path / "tinygrad/__init__.py")
    package.Device, package.Tensor = type("Device", (Devices,), {})(), Tensor
    package.device, package.helpers = ModuleType("device"), ModuleType("helpers")
    package.device.ALL_DEVICES = ["METAL", "AMD", "WEBGPU", "CPU"]
    numbers = {"DEBUG": SimpleNamespace(value=1), "IMAGE": SimpleNamespace(value=0)}
    package.helpers.ContextVar = SimpleNamespace(
        _cache={**numbers, "DEV": SimpleNamespace(value=""), "ODD": object()}
    )
    for name, module in (("", package), (".device", package.device), (".helpers", package.helpers)):
        monkeypatch.setitem(sys.modules, f"tinygrad{name}", module)
    return package


def lines_of(**job: object) -> list[Any]:
    """Run the process to its end, and return what it wrote."""
    reading, writing = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            os.dup2(writing, 1)
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            sys.argv = ["child", json.dumps({"also": [], "skip": [], **job})]
            child.main()
        finally:
            os._exit(99)
    os.close(writing)
    with open(reading, encoding="utf-8") as file:
        lines = [json.loads(line) for line in file]
    assert os.waitpid(pid, 0)[1] == 0
    return lines


ABOUT = {
    "version": "0.12.3",
    "backends": ["METAL", "CPU", "WEBGPU", "QCOM", "DSP"],
    "style": "flags",
    "numbers": ["DEBUG", "IMAGE", "ODD"],
    "order": ["METAL", "WEBGPU", "CPU"],
}
ANSWERS = {
    "METAL": {"opens": True, "executes": True, "places": [{"name": "Apple M4"}]},
    "WEBGPU": {"opens": False, "error": "RuntimeError: no adapter"},
    "CPU": {"opens": True, "executes": False, "places": [{}],
            "error": "it computed [] instead of [2, 4, 6]"},
    "QCOM": {"opens": True, "executes": False, "places": [{}],
             "error": "OSError: lost; ValueError"},
    "DSP": {"opens": False, "error": "SystemExit"},
}  # fmt: skip


def tried(*backends: str) -> list[Any]:
    steps = []
    for backend in backends:
        steps += [{"event": "try", "backend": backend},
                  {"event": "tried", "backend": backend, "answer": ANSWERS[backend]}]  # fmt: skip
    return [*steps, {"event": "end"}]


def test_each_backend_is_tried_in_tinygrads_order_then_the_others(tinygrad: Any) -> None:
    hello = {"event": "hello", "about": ABOUT}
    expected = [hello, *tried("METAL", "WEBGPU", "CPU", "QCOM", "DSP")]
    assert lines_of(also=["QCOM", "CPU", "DSP"]) == expected
    assert lines_of(skip=["METAL", "CPU"]) == [hello, *tried("WEBGPU")]


def test_a_tinygrad_that_cannot_be_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tinygrad", None)
    error = "ModuleNotFoundError: import of tinygrad halted; None in sys.modules"
    assert lines_of() == [{"event": "failed", "error": error}]


def of_dev(self: object) -> str | None:
    names = ("METAL", "CPU")
    return os.environ.get("DEV", names[0])


def of_flags(self: object) -> tuple[str, ...]:
    return ("METAL", "QCOM", "AMD")


@pytest.mark.parametrize(
    ("has_target", "default", "style", "order"),
    [
        (True, of_dev, "targets", ["METAL", "CPU"]),
        (False, of_dev, "names", ["METAL", "CPU"]),
        (False, property(of_dev), "names", ["METAL", "CPU"]),
        (False, of_flags, "flags", ["METAL", "QCOM"]),
        (False, SimpleNamespace(func=of_flags), "flags", ["METAL", "QCOM"]),
        (False, None, "flags", []),
    ],
)
def test_how_a_tinygrad_chooses_is_read_from_its_code(
    has_target: bool,
    default: Callable[[object], object],
    style: str,
    order: list[str],
    tinygrad: Any,
) -> None:
    del tinygrad.device.ALL_DEVICES
    if has_target:
        tinygrad.helpers.Target = object
    type(tinygrad.Device).DEFAULT = default
    found = child.describe_tinygrad(tinygrad)
    assert (found["style"], found["order"]) == (style, order)


def test_an_error_is_one_bounded_line() -> None:
    assert child.message(ValueError("x" * 700)) == f"ValueError: {'x' * 588}"
