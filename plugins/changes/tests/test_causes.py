"""When a device fell, and which change comes first for it: short journals made by hand."""

from __future__ import annotations

from typing import Any

import pytest

from probe_changes.causes import Change, Fall, changes_between, changes_until, fall_of, ranked

A, B = "pci:a", "pci:b"
THERE = {f"device/{A}": "H100", f"device/{B}": "H100"}


def journal(*entries: dict[str, Any]) -> Any:
    """Return entries 1, 2 … at times t1, t2 …; a key `facts` or `broken` is left out with None."""
    return [{"n": n, "time": f"t{n}", **entry} for n, entry in enumerate(entries, 1)]


def broken(**codes: str | None) -> dict[str, Any]:
    return {"broken": {{"a": A, "b": B}[name]: code for name, code in codes.items()}}


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        ([{"facts": THERE}], None),
        # Broken from the beginning on: it never fell.
        ([{"facts": THERE, **broken(a="driver:x")}, {}], None),
        ([{"facts": THERE}, broken(a="driver:x")], (A, "driver:x", 2, "t1", "t2")),
        ([{"facts": THERE}, {}, broken(a="driver:x")], (A, "driver:x", 3, "t2", "t3")),
        # The break of now counts; the time stays that of the fall.
        (
            [{"facts": THERE}, broken(a="driver:x"), broken(a="node:y")],
            (A, "node:y", 3, "t1", "t2"),
        ),
        ([{"facts": THERE}, broken(a="driver:x"), broken(a=None)], None),
        (
            [{"facts": THERE}, broken(a="driver:x"), broken(a=None), {}, broken(a="node:y")],
            (A, "node:y", 5, "t4", "t5"),
        ),
        # Of several the earliest.
        (
            [{"facts": THERE}, broken(b="driver:x"), broken(a="driver:x")],
            (B, "driver:x", 2, "t1", "t2"),
        ),
        # It left the bus, came back, and came back broken.
        (
            [{"facts": THERE}, {"facts": {f"device/{A}": None}}],
            (A, "hardware:off-the-bus", 2, "t1", "t2"),
        ),
        ([{"facts": THERE}, {"facts": {f"device/{A}": None}}, {"facts": THERE}], None),
        (
            [
                {"facts": THERE},
                {"facts": {f"device/{A}": None}},
                {"facts": THERE, **broken(a="driver:x")},
            ],
            (A, "driver:x", 3, "t1", "t2"),
        ),
        # A device that was never there, and a fact of a device that is none itself.
        ([{"facts": {f"device/{B}": "x"}}, {"facts": {f"device/{A}": None}}], None),
        ([{"facts": {"device/pci:a power": "on"}}, {"facts": {"device/pci:a power": None}}], None),
        ([{"facts": {"driver/nvidia": "1"}}, {"facts": {"driver/nvidia": None}}], None),
        # What was broken before it left did not work: it is no fall of then.
        (
            [{"facts": THERE, **broken(a="driver:x")}, {"facts": {f"device/{A}": None}}],
            None,
        ),
    ],
)
def test_the_earliest_fall_that_lasts(entries: list[dict[str, Any]], expected: Any) -> None:
    fall = fall_of(journal(*entries))
    found = fall and (fall.device, fall.broken, fall.n, fall.ready, fall.time)
    assert found == expected


def test_the_fall_of_one_device() -> None:
    entries = journal({"facts": THERE}, broken(b="driver:x"), broken(a="node:y"))
    assert [fall.broken if (fall := fall_of(entries, name)) else None for name in (A, B, "c")] == [
        "node:y",
        "driver:x",
        None,
    ]


FACTS = journal(
    {"facts": {"kernel/release": "6.1", "driver/nvidia": "570", "setting/x": "1"}},
    {"facts": {"kernel/release": "6.8", "library/libcuda.so.1": "580"}},
    {"facts": {"driver/nvidia": None, "setting/x": "1"}},
    {"facts": {"driver/nvidia": "580", "kernel/release": "6.1"}},
)


def plain(changes: list[Change]) -> list[tuple[object, ...]]:
    return [(c.fact, c.before, c.now, c.n, c.time) for c in changes]


def test_what_is_otherwise_than_before() -> None:
    assert plain(changes_between(FACTS)) == [
        ("library/libcuda.so.1", None, "580", 2, "t2"),
        ("driver/nvidia", "570", "580", 4, "t4"),
    ]
    assert plain(changes_between(FACTS, "t3")) == [
        ("driver/nvidia", "570", "580", 4, "t4"),
        ("kernel/release", "6.8", "6.1", 4, "t4"),
    ]
    assert changes_between(FACTS[:1]) == []


def test_the_last_changes_up_to_an_entry() -> None:
    assert plain(changes_until(FACTS, 3)) == [
        ("kernel/release", "6.1", "6.8", 2, "t2"),
        ("library/libcuda.so.1", None, "580", 2, "t2"),
        ("driver/nvidia", "570", None, 3, "t3"),
    ]
    # A value with which it worked is no cause.
    assert [fact for fact, *_ in plain(changes_until(FACTS, 4))] == [
        "library/libcuda.so.1",
        "driver/nvidia",
    ]


def change(fact: str, n: int, now: str | None = "new") -> Change:
    return Change(fact, "old", now, n, f"t{n}")


@pytest.mark.parametrize(
    ("code", "facts", "first"),
    [
        ("driver:module-missing-for-kernel", ["driver/nvidia", "kernel/release"], "kernel/release"),
        ("driver:secure-boot", ["kernel/release", "firmware/Secure Boot"], "firmware/Secure Boot"),
        ("driver:secure-boot", ["firmware/bios", "driver/nvidia"], "driver/nvidia"),
        ("library:library-missing", ["library/libc.so.6", "library/libcuda.so.1"],
         "library/libcuda.so.1"),
        ("node:of a new code", ["kernel/release", "node/dev"], "node/dev"),
        ("visible:x", ["driver/nvidia", "variable/CUDA_VISIBLE_DEVICES"],
         "variable/CUDA_VISIBLE_DEVICES"),
        ("runtime:x", ["driver/nvidia", "library/libcudart"], "library/libcudart"),
        ("granted:x", ["group/video", "container/x"], "container/x"),
        ("permission:x", ["container/x", "group/video"], "group/video"),
        ("hardware:x", ["firmware/bios", "device/pci:a"], "device/pci:a"),
        # What follows from the break is last, whatever its class.
        ("driver:x", ["loaded/nvidia", "setting/x"], "setting/x"),
        ("driver:x", ["bound/pci:a", "library/x"], "library/x"),
    ],
)  # fmt: skip
def test_the_likeliest_first(code: str, facts: list[str], first: str) -> None:
    fall = Fall(A, code, 9, "t8", "t9")
    for order in (facts, facts[::-1]):
        assert ranked([change(fact, 5) for fact in order], fall)[0].fact == first


def test_among_equals_the_nearest_to_the_fall() -> None:
    fall = Fall(A, "driver:x", 9, "t8", "t9")
    far, near = change("driver/a", 3), change("driver/b", 7)
    assert ranked([far, near], fall) == [near, far]
    gone = change("driver/c", 8, None)
    assert ranked([gone, far, near], fall) == [near, far, gone]
    # Without a fall by class, then the latest.
    assert ranked([change("of no class", 8), far, near], None)[:2] == [near, far]
