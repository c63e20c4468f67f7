"""A transfer is timed alone, from a device with nothing left to do until all has arrived."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest

from probe_bench.cpu_runs import WrongResult
from probe_bench.library_runs import Tinygrad

UPLOAD = ["synchronize", "realize", "synchronize", "data"]


class Tensor:
    """tinygrad's, as far as a transfer needs it: it notes what is done with it."""

    done: list[str]
    wrong = False

    def __init__(self, content: Any, device: str) -> None:
        self.content = content

    def contiguous(self) -> Tensor:
        return self

    def realize(self) -> Tensor:
        self.done.append("realize")
        return self

    def data(self) -> memoryview:
        self.done.append("data")
        content = bytearray(self.content)
        content[-1] ^= self.wrong
        return memoryview(content)


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Tinygrad:
    Tensor.done, Tensor.wrong = [], False
    device = SimpleNamespace(synchronize=lambda: Tensor.done.append("synchronize"))
    made = SimpleNamespace(Tensor=Tensor, Device={"CUDA": device})
    monkeypatch.setitem(sys.modules, "tinygrad", made)  # type: ignore[arg-type]
    return Tinygrad(["CUDA"], None)


@pytest.mark.parametrize(
    ("figure", "done"), [("upload", UPLOAD), ("download", ["synchronize", "data"])]
)
def test_a_transfer_is_alone_on_the_device(bench: Tinygrad, figure: str, done: list[str]) -> None:
    run = bench.link(figure, 64)
    Tensor.done.clear()
    taken = run()
    assert Tensor.done == done
    assert (taken.amount, taken.seconds > 0) == (64.0, True)
    Tensor.wrong = True
    with pytest.raises(WrongResult, match=f"^64 bytes came back otherwise after the {figure}$"):
        run()
