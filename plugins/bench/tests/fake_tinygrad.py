"""A tinygrad in plain Python, as far as the bench uses it: a device whose results can be wrong.

A call of a captured graph takes `step_s` of a clock that stands still otherwise.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from operator import mul
from types import SimpleNamespace
from typing import Any

_BYTES = {"uint8": "B", "int8": "b", "int32": "i", "bool": "i"}
_FLOATS = {"float16": "f", "bfloat16": "f", "float32": "f", "float64": "d"}
_NAMES = ("int8", "int32", *_FLOATS)


class Tensor:
    """Values in one list, with a shape of one or two dimensions."""

    opened: tuple[str, ...] = ()
    """Devices that open; another raises."""

    def __init__(
        self, values: Sequence[Any], dtype: str = "float32", device: str = "", shape: Any = None
    ) -> None:
        if device not in self.opened:
            raise RuntimeError(f"no {device} here\nsecond line")
        self.dtype = "uint8" if isinstance(values, bytes) else dtype
        self.values, self.device = list(values), device
        self.shape = shape or (len(self.values),)

    def _like(self, values: Sequence[Any], dtype: str = "", shape: Any = None) -> Tensor:
        return Tensor(values, dtype or self.dtype, self.device, shape or self.shape)

    @staticmethod
    def ones(count: int, dtype: str, device: str) -> Tensor:
        return Tensor([1] * count, dtype, device)

    def realize(self) -> Tensor:
        return self

    contiguous = realize

    def reshape(self, *shape: Any) -> Tensor:
        shape = shape[0] if isinstance(shape[0], tuple) else shape
        return self._like(self.values, shape=(len(self.values),) if shape == (-1,) else shape)

    def expand(self, rows: int, columns: int) -> Tensor:
        if self.shape[1] == 1:
            values = [value for value in self.values for _ in range(columns)]
        else:
            values = self.values * rows
        return self._like(values, shape=(rows, columns))

    def cast(self, dtype: str) -> Tensor:
        if dtype == self.dtype:
            return self
        if dtype in _FLOATS:
            return self._like([float(value) for value in self.values], dtype)
        bits = 8 if dtype == "int8" else 32
        half = 1 << (bits - 1)
        return self._like([(int(v) + half) % (2 * half) - half for v in self.values], dtype)

    def matmul(self, other: Tensor, dtype: str) -> Tensor:
        edge = self.shape[0]
        rows = [tuple(self.values[at : at + edge]) for at in range(0, edge * edge, edge)]
        columns = [tuple(other.values[at::edge]) for at in range(edge)]
        # A product of signs has two rows and two columns, whatever its edge.
        sums = {
            (row, column): sum(map(mul, row, column)) for row in {*rows} for column in {*columns}
        }
        known = {row: [sums[row, column] for column in columns] for row in {*rows}}
        return self._like([value for row in rows for value in known[row]], dtype)

    def full_like(self, value: int) -> Tensor:
        return self._like([value] * len(self.values))

    def sum(self) -> Tensor:
        return self._like([sum(self.values)], "int32", (1,))

    def item(self) -> Any:
        return self.values[0]

    def data(self) -> memoryview:
        return memoryview(array((_BYTES | _FLOATS)[self.dtype], self.values))

    def __add__(self, other: int) -> Tensor:
        return self._like([value + other for value in self.values])

    def __sub__(self, other: int) -> Tensor:
        return self._like([value - other for value in self.values])

    def __mod__(self, other: int) -> Tensor:
        return self._like([value % other for value in self.values])

    def __ne__(self, other: object) -> Any:
        return self._like([int(value != other) for value in self.values], "bool")

    def __getitem__(self, part: slice) -> Tensor:
        values = self.values[part]
        return self._like(values, shape=(len(values),))

    __hash__ = None  # type: ignore[assignment]


class Clock:
    """Seconds that pass by `wait` alone."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def wait(self, seconds: float) -> None:
        self.now += seconds


class Fake(SimpleNamespace):
    """The module. `spoil` gets the values of what a graph returns, and its call's number."""

    def __init__(self, clock: Clock, *opened: str) -> None:
        Tensor.opened = opened
        super().__init__(Tensor=Tensor, dtypes=SimpleNamespace(**{n: n for n in _NAMES}))
        self.clock, self.step_s, self.calls = clock, 2.0**-8, 0
        self.spoil: Callable[[list[Any], int], None] = lambda values, call: None
        self.waits = 0
        self.Device = {name: self._device() for name in opened}

    def _device(self) -> Any:
        def synchronize() -> None:
            self.waits += 1

        return SimpleNamespace(synchronize=synchronize)

    def TinyJit(self, function: Callable[..., Tensor]) -> Callable[..., Tensor]:
        def call(*arguments: Tensor) -> Tensor:
            self.calls += 1
            self.clock.wait(self.step_s)
            result = function(*arguments)
            self.spoil(result.values, self.calls)
            return result

        return call
