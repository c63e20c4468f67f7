"""Matrix multiplication by numpy, where it is installed: its BLAS library's figure."""

from __future__ import annotations

from time import perf_counter, process_time

from probe_bench.register_runs import WrongResult
from probe_bench.statistics import Run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

__all__ = ["blas_name", "matmul"]

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
    if product[0, 0] != edge:
        raise WrongResult(f"the product of two matrices of ones has {product[0, 0]} for {edge}")

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
