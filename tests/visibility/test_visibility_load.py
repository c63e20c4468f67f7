"""Which device is the idlest: processes first, then whole GiB of free memory."""

from __future__ import annotations

from typing import Any

from probe_core.selection.candidates import free_memory, load

GIB = 1 << 30


def device(processes: Any, free: int | None, usable: int | None = None, total: Any = None) -> Any:
    memory = {"free": free, "usable": usable, "total": total}
    return {"processes": processes, "memory": memory}


def test_the_idlest_first() -> None:
    order = [
        device([], 2 * GIB),
        device([], GIB),
        device([], None, GIB),
        device([], None, None, 9 * GIB),
        device([], None),
        device(None, 4 * GIB),
        device(None, None),
        device([1], 8 * GIB),
        device([1], None, 7 * GIB),
    ]
    loads = [load(each) for each in order]
    assert loads == sorted(loads)
    assert loads[1] == loads[2]
    assert len(set(loads)) == len(loads) - 1
    # A few MiB of a desktop do not decide.
    assert load(device([], GIB)) == load(device([], 2 * GIB - 1)) > load(device([], 2 * GIB))


def test_what_counts_as_free() -> None:
    assert free_memory(device([], 1, 2, 3)) == 1
    assert free_memory(device([], 0, 2, 3)) == 0
    assert free_memory(device([], None, 2, 3)) == 2
    assert free_memory(device([], None, None, 3)) == 3
    assert free_memory(device([], None)) is None
