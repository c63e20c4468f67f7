"""Runs by libraries: tinygrad with the same code on every device, and numpy on the CPU.

tinygrad's device is an argument: what is tried on a CPU is what runs on a GPU. Which GPU it opened
is asked by PCI address: a number may mean another than the one leased. What a device computed or
moved is read back and compared with what is known, before and after it is timed.
"""

from __future__ import annotations

import os
import random
from array import array
from time import perf_counter, process_time

from probe_bench import products
from probe_bench.cpu_runs import WrongResult
from probe_bench.statistics import Run
from probe_core.runtimes.bus_id import bus_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any


KERNEL_S = 0.05
"""Seconds of one kernel at most: a child that is killed in a longer one can wedge a GPU."""

_EDGES = {"CPU": (256, 512), "PYTHON": (4, 4)}
"""Smallest and largest matrices: tinygrad's CPU kernels gain nothing above 512 (measured on Zen 5),
and its emulator in Python takes a second for 16."""

_GPU_EDGES = (512, 8192)
_SUMS = {"fp64": "fp64", "fp32": "fp32", "fp16": "fp32", "bf16": "fp32", "int8": "int32"}
_TINYGRAD_TYPES = {
    "fp64": "float64",
    "fp32": "float32",
    "fp16": "float16",
    "bf16": "bfloat16",
    "int8": "int8",
    "int32": "int32",
}
_PREPARING = 3
"""Calls until a captured graph runs: tinygrad records at the second."""

_CHECKED_EDGE = 1024
"""Edge of the products that are compared with sums: their tiles of 64 occupy 256 multiprocessors,
and the host sums a million elements in 0.1 s."""

_SEEDS = 3
_SAMPLE = 1 << 14
"""Elements that the host looks at itself, beside the device's own count of wrong ones."""


class Tinygrad:
    """tinygrad on one device: the first of `backends` that opens. Raises `LookupError`.

    `address` is the ``pci:`` id of the device that is meant, where it has one.
    """

    def __init__(self, backends: Sequence[str], address: str | None) -> None:
        from importlib.metadata import version

        # Its CPU backend starts what CC names with options that clang alone has.
        if "clang" not in os.path.basename(os.environ.get("CC", "clang")):
            del os.environ["CC"]
        import tinygrad

        self._api: Any = tinygrad
        self.version = version("tinygrad")
        self.device = self._opened(backends, address)
        self._check: Callable[[], None] = _nothing

    def _opened(self, backends: Sequence[str], address: str | None) -> str:
        reasons = []
        for name in backends:
            try:
                self._api.Tensor([1.0], device=name).realize()
                self._check_single(name)
                check_opened(name, address)
                return name
            except OtherDevice:  # another interface would open that one, too
                raise
            except Exception as error:  # whatever a backend raises, the next may open
                reasons.append(f"{name}: {_reason(error)}")
        raise LookupError(f"tinygrad {self.version} opens no backend: {'; '.join(reasons)}")

    def _check_single(self, name: str) -> None:
        """Raise `LookupError` where OpenCL, which no lease confines, shows several devices."""
        ids = getattr(type(self._api.Device[name]), "device_ids", None)
        if name == "CL" and ids is not None and len(ids) != 1:
            raise LookupError(f"OpenCL shows {len(ids)} devices, and not which of them is meant")

    @property
    def by(self) -> str:
        """What computes: ``tinygrad 0.14.0 (CUDA)``."""
        return f"tinygrad {self.version} ({self.device})"

    def matmul(self, dtype: str, target_s: float) -> tuple[int, str, Callable[[], Run]]:
        """Return edge, type of the sums, and what multiplies square matrices once or more.

        Raises `WrongResult`, and what tinygrad raises for a type that it cannot compile.
        """
        least, most = edges(self.device)
        edge, step = least, self._matmul(least, dtype)
        while edge * 2 <= most:
            # Twice the edge is eight times the work.
            if _seconds(step, self._synchronize) * 8 > KERNEL_S:
                break
            edge *= 2
            step = self._matmul(edge, dtype)
        return edge, _SUMS[dtype], self._timed(step, 2.0 * edge**3, target_s)

    def check(self) -> None:
        """Compare what the last task left on the device; raises `WrongResult`."""
        self._check()

    def _matmul(self, edge: int, dtype: str) -> Callable[[], Any]:
        kind, sums = self._type(dtype), _SUMS[dtype]
        result_type = self._type(sums) if dtype == "int8" else kind
        rows, columns = products.signs(edge, 1), products.signs(edge, 2)
        first = self._matrix(rows, (edge, 1), edge, kind)
        second = self._matrix(columns, (1, edge), edge, kind)
        step = self._multiplying(sums, result_type)
        left: list[Any] = []

        def run() -> None:
            left[:] = [step(first, second)]

        def check() -> None:
            shown = left[0].cast(self._type("fp32")).contiguous().realize()
            place = products.unlike_signs(rows, columns, shown.data())
            if place is not None:
                where = f"row {place[0]}, column {place[1]}"
                raise WrongResult(f"a {dtype} product of edge {edge} is wrong in {where}")

        for _ in range(_PREPARING):
            run()
        check()
        self._check = check
        return run

    def _matrix(self, values: Sequence[int], shape: tuple[int, int], edge: int, kind: Any) -> Any:
        tensor = self._api.Tensor(values, dtype=self._type("fp32"), device=self.device)
        return tensor.reshape(shape).expand(edge, edge).cast(kind).contiguous().realize()

    def _multiplying(self, sums: str, result_type: Any) -> Any:
        """Return what multiplies two matrices, as one captured graph."""
        kind = self._type(sums)
        return self._api.TinyJit(
            lambda a, b: a.matmul(b, dtype=kind).cast(result_type).contiguous().realize()
        )

    def products(self, dtype: str, seconds: float) -> int:
        """Multiply known matrices for `seconds`; return how many products were compared whole.

        Raises `WrongResult` at the first wrong one. Three times the operands are new: the first
        product of each is held to the sums that it must have, the others to the first.
        """
        from time import monotonic

        edge = min(_CHECKED_EDGE, edges(self.device)[1])
        count, begin = 0, monotonic()
        step = self._multiplying(_SUMS[dtype], self._type("int32"))
        for seed in range(_SEEDS):
            operands = products.made(edge, products.RANGES[dtype], seed)
            first, second = (
                self._operand(content, edge, dtype) for content in (operands.first, operands.second)
            )
            right = b""
            while True:
                product = bytes(step(first, second).data())
                count += 1
                if not right:
                    right = product
                    _refuse(products.wrong(operands, product), dtype, edge, count)
                elif product != right:
                    _refuse(products.wrong(operands, product), dtype, edge, count)
                    raise WrongResult(f"two {dtype} products of the same matrices differ")
                if monotonic() - begin > seconds * (seed + 1) / _SEEDS:
                    break
        return count

    def _operand(self, content: bytes, edge: int, dtype: str) -> Any:
        """Return a matrix of signed bytes, in a type that holds them."""
        raw = self._api.Tensor(content, device=self.device).cast(self._type("int32"))
        signed = (raw + 128) % 256 - 128
        return signed.cast(self._type(dtype)).reshape(edge, edge).contiguous().realize()

    def memory(self, figure: str, size: int, target_s: float) -> Callable[[], Run]:
        """Return what goes through `size` bytes of the device's memory, in one direction.

        Raises `WrongResult` where the memory does not hold, or the sum is not, what it must.
        """
        count = size // 4
        tensor = self._api.Tensor.ones(count, dtype=self._type("int32"), device=self.device)
        buffer = tensor.contiguous().realize()
        graph = self._api.TinyJit(_STEPS[figure])
        left: list[Any] = []

        def step() -> None:
            left[:] = [graph(buffer)]

        def check() -> None:
            moved, wanted = left[0], count if figure == "read" else 2
            wrong = int((moved != wanted).sum().item())
            sample = array("i", bytes(moved.reshape(-1)[:_SAMPLE].contiguous().realize().data()))
            if wrong or any(value != wanted for value in sample):
                what = "a sum over" if figure == "read" else f"{max(wrong, 1)} elements of"
                raise WrongResult(f"{what} {size} bytes of memory is wrong after a {figure}")

        for _ in range(_PREPARING):
            step()
        check()
        self._check = check
        moved = size * (2 if figure == "copy" else 1)
        return self._timed(step, float(moved), target_s)

    def link(self, figure: str, size: int) -> Callable[[], Run]:
        """Return what moves `size` bytes between host and device once, and compares them.

        An upload is read back, outside of the time that counts. Raises `WrongResult`.
        """
        content = random.Random(1).randbytes(size)
        there: Any = self._api.Tensor(content, device=self.device).contiguous().realize()
        is_upload = figure == "upload"

        def run() -> Run:
            nonlocal there
            self._synchronize()
            begin = perf_counter()
            if is_upload:
                there = self._api.Tensor(content, device=self.device).realize()
                self._synchronize()
                seconds = perf_counter() - begin
                back = there.data()
            else:
                back = there.data()
                seconds = perf_counter() - begin
            if back.cast("B") != content:
                raise WrongResult(f"{size} bytes came back otherwise after the {figure}")
            return Run(float(size), max(seconds, 1e-9), None, None)

        self._check = _nothing  # each run is compared
        return run

    def _timed(self, step: Callable[[], Any], amount: float, target_s: float) -> Callable[[], Run]:
        """Return what calls `step` as often as takes about `target_s`, and waits for the device."""
        count = max(1, int(target_s / _seconds(step, self._synchronize)))

        def run() -> Run:
            begin, cpu = perf_counter(), process_time()
            for _ in range(count):
                step()
            self._synchronize()
            seconds = perf_counter() - begin
            # Of a GPU the CPU's time says nothing.
            busy = process_time() - cpu if self.device == "CPU" else None
            return Run(amount * count, seconds, busy, seconds if busy is not None else None)

        return run

    def _synchronize(self) -> None:
        self._api.Device[self.device].synchronize()

    def _type(self, dtype: str) -> Any:
        return getattr(self._api.dtypes, _TINYGRAD_TYPES[dtype])


_STEPS: dict[str, Callable[[Any], Any]] = {
    "read": lambda buffer: buffer.sum().realize(),
    "write": lambda buffer: (buffer.full_like(2)).contiguous().realize(),
    "copy": lambda buffer: (buffer + 1).realize(),
}
"""Direction to what tinygrad makes one kernel of, or two for a sum."""


def _nothing() -> None:
    """Compare nothing."""


def _refuse(found: products.Wrong | None, dtype: str, edge: int, count: int) -> None:
    if found is not None:
        text = f"product {count} of {dtype} matrices of edge {edge} is wrong: {found.where}"
        raise WrongResult(text)


def edges(device: str) -> tuple[int, int]:
    """Return the edges of the smallest and the largest matrices for a backend."""
    return _EDGES.get(device.partition(":")[0], _GPU_EDGES)


def _seconds(step: Callable[[], Any], synchronize: Callable[[], None]) -> float:
    """Return the time of one call, the better of two."""
    spans = []
    for _ in range(2):
        begin = perf_counter()
        step()
        synchronize()
        spans.append(perf_counter() - begin)
    return max(min(spans), 1e-7)


def _reason(error: BaseException) -> str:
    if isinstance(error, FileNotFoundError) and error.filename == "clang":
        return "it compiles with clang, which is not installed"
    text = str(error).strip().splitlines()
    return f"{type(error).__name__}: {text[0][:160]}" if text else type(error).__name__


# Matrix multiplication by numpy, where it is installed: its BLAS library's figure.

_TYPES = {"fp32": ("float32", 1024), "fp64": ("float64", 1024)}
"""Types that BLAS has, with the edge: others run in loops of numpy's own, 200 times slower."""


def matmul(dtype: str, threads: int) -> tuple[int, str, Callable[[], Run]]:
    """Return edge, library with version, and what multiplies square matrices once.

    Raises `LookupError` for a type that no BLAS has, `ImportError` without numpy.
    """
    if dtype not in _TYPES:
        raise LookupError(f"numpy has no fast {dtype} arithmetic")
    import numpy

    name, edge = _TYPES[dtype]
    first = numpy.ones((edge, edge), dtype=name)
    second, product = first.copy(), first.copy()
    numpy.matmul(first, second, out=product)
    if not (product == edge).all():
        raise WrongResult(f"a product of two matrices of ones is not {edge} everywhere")

    def run() -> Run:
        begin, cpu = perf_counter(), process_time()
        numpy.matmul(first, second, out=product)
        seconds = perf_counter() - begin
        # BLAS may use fewer threads than there are cores: at least one is always busy.
        busy = min(process_time() - cpu, seconds * threads)
        return Run(2.0 * edge**3, seconds, busy, min(seconds * threads, max(busy, seconds)))

    return edge, f"numpy {numpy.__version__} ({_blas(numpy)})", run


def _blas(numpy: Any) -> str:
    try:
        config = numpy.show_config(mode="dicts")
    except (AttributeError, TypeError):  # before numpy 1.25
        return "BLAS of unknown kind"
    return blas_name(config)


def blas_name(config: Mapping[str, Any]) -> str:
    """Return ``OpenBLAS 0.3.31`` of what `numpy.show_config` tells of its build."""
    blas = (config.get("Build Dependencies") or {}).get("blas") or {}
    name, version = str(blas.get("name") or ""), str(blas.get("version") or "")
    shown = "OpenBLAS" if "openblas" in name.lower() else name
    return f"{shown} {version}".strip() or "BLAS of unknown kind"


# Which GPU a library opened, by its PCI address.

# Backend of tinygrad → library, and its call that takes a buffer, its size and a number.
_BUS_ID_CALLS = {
    "CUDA": ("libcuda.so.1", "cuDeviceGetPCIBusId"),
    "HIP": ("libamdhip64.so", "hipDeviceGetPCIBusId"),
}


class OtherDevice(LookupError):
    """The library opened a device that was not leased."""


def check_opened(backend: str, expected: str | None) -> None:
    """Raise `OtherDevice` where the first device of a backend that is open is not `expected`.

    `expected` is a ``pci:`` id; without one, and where the backend does not tell, nothing is known
    and nothing raised. The figures of another GPU would stand under this one's name.
    """
    found = opened_address(backend) if expected else None
    if found and found != expected:
        raise OtherDevice(f"{backend} opens {found}, which is not the device that was leased")


def opened_address(backend: str) -> str | None:
    """Return the ``pci:`` id of a backend's first device, once its library is initialised."""
    if backend not in _BUS_ID_CALLS:
        return None
    import ctypes

    name, call = _BUS_ID_CALLS[backend]
    try:
        return bus_id(getattr(ctypes.CDLL(name), call), 0)
    except (AttributeError, OSError):
        return None
