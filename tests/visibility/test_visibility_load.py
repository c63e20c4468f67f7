"""Which device is the idlest: processes first, then whole GiB of free memory."""

from __future__ import annotations

from typing import Any

from reports import report_of_recording

from probe_core.selection import select
from probe_core.selection.candidates import free_memory, load
from probe_core.selection.choose import roomiest_group
from probe_core.selection.request import Request, plan

GIB = 1 << 30


def device(
    processes: Any, free: int | None, usable: int | None = None, total: Any = None, **memory: Any
) -> Any:
    memory = {"kind": "dedicated", "free": free, "usable": usable, "total": total, **memory}
    return {"kind": "gpu", "processes": processes, "memory": memory}


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
        device([], 31 * GIB, kind="unified"),
    ]
    loads = [load(each) for each in order]
    assert loads == sorted(loads)
    assert loads[1] == loads[2]
    assert len(set(loads)) == len(loads) - 1
    # A few MiB of a desktop do not decide.
    assert load(device([], GIB)) == load(device([], 2 * GIB - 1)) > load(device([], 2 * GIB))


def test_a_processor_s_graphics_are_taken_last() -> None:
    """The Radeon of a Ryzen has the RAM of 64 GB, of which a card of 24 GB has less."""
    report = report_of_recording("desktop--amd-radeon-rx-7900-xtx", "amd")
    card, graphics = "pci:0000:03:00.0", "pci:0000:16:00.0"
    assert [free_memory(own) for own in report["devices"][:2]] == [24679284736, 32644268032]
    for count, ids in ((1, [card]), (2, [card, graphics])):
        (group,) = select(report, count=count).groups
        assert [own["id"] for own in group] == ids
        assert [own["id"] for own in plan(report, Request(count))[0]] == [card, graphics]


def test_what_counts_as_much_is_a_card_s() -> None:
    links = {"vendor": "amd", "ids": [], "links": []}
    cards = [device([], free * GIB) | {"id": str(free)} | links for free in (20, 24)]
    graphics = device([], 33 * GIB, kind="unified") | {"id": "graphics"} | links
    assert roomiest_group([*cards, graphics], 1) == [cards[1]]


def test_what_counts_as_free() -> None:
    assert free_memory(device([], 1, 2, 3)) == 1
    assert free_memory(device([], 0, 2, 3)) == 0
    assert free_memory(device([], None, 2, 3)) == 2
    assert free_memory(device([], None, None, 3)) == 3
    assert free_memory(device([], None)) is None
