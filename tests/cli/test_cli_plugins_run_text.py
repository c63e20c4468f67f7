"""What `probe plugins run` prints of values, of what merging makes of them, and at the end."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from probe_core.cli.plugins_run import end, head, item_lines
from probe_core.isolation.run import Run
from probe_core.registry.prober import Prober
from probe_core.testing.rehearsal import Item, Rehearsal

DEVICE: Any = {
    "ids": ["pci:0000:01:00.0", "acme:1"],
    "kind": "npu",
    "memory": {"total": 16 << 30, "kind": "dedicated"},
    "extra": {"lanes": 4, "parts": [1, 2]},
    "units": True,
    "unknown": {"name": "no file", "arch": "expected a text"},
}
FINDING: Any = {"code": "acme-hot", "what": "it is hot", "why": "90 C", "fix": "cool it"}
REFUSED = ["arch: expected a text", "colour is no field"]


@pytest.mark.parametrize(
    ("item", "lines"),
    [
        (
            Item(DEVICE, REFUSED),
            [
                "device 3: accepted, 2 values refused",
                "  ids              pci:0000:01:00.0, acme:1",
                "  kind             npu",
                "  memory.total     17179869184 (16.0 GiB)",
                "  memory.kind      dedicated",
                "  extra.lanes      4",
                "  extra.parts      [1, 2]",
                "  units            True",
                "  name             unknown: no file",
                "  refused          arch: expected a text",
                "  refused          colour is no field",
            ],
        ),
        (Item({"kind": "npu"}, []), ["device 3: accepted", "  kind             npu"]),
        (
            Item({"kind": "npu"}, ["x is no field"]),
            [
                "device 3: accepted, 1 value refused",
                "  kind             npu",
                "  refused          x is no field",
            ],
        ),
        (
            Item(None, ["it has no ids"]),
            ["device 3: refused", "  refused          it has no ids"],
        ),
        (
            Item(None, [], finding=FINDING, is_finding=True),
            [
                "finding 3: accepted",
                "  code             acme-hot",
                "  what             it is hot",
                "  why              90 C",
                "  fix              cool it",
            ],
        ),
    ],
)
def test_a_value(item: Item, lines: list[str]) -> None:
    assert list(item_lines(item, 3, 80)) == lines


def test_a_long_value_is_wrapped_below_itself() -> None:
    shown = list(item_lines(Item({"name": "aaaa bbbb cccc dddd eeee"}, []), 1, 41))  # type: ignore[typeddict-item]
    assert shown[1:] == ["  name             aaaa bbbb cccc dddd", " " * 19 + "eeee"]
    assert list(item_lines(Item({"name": ""}, []), 1, 41))[1:] == ["  name"]  # type: ignore[typeddict-item]
    narrow = list(item_lines(Item({"name": "aaaa bbbb cccc dddd eeee"}, []), 1, 10))  # type: ignore[typeddict-item]
    assert narrow[1:] == shown[1:]  # twenty columns at least


@pytest.mark.parametrize("isolated", [True, False])
def test_what_runs(isolated: bool) -> None:
    prober = Prober("acme", "acme_prober")
    prober.problems = [SimpleNamespace(reason="priority: expected a number")]  # type: ignore[list-item]
    decision: Any = SimpleNamespace(reason="--disable" if isolated else None)
    place = "in a child, as in a report" if isolated else "in this process, without a deadline"
    assert list(head(prober, decision, isolated)) == [
        f"prober 'acme' (acme_prober), {place}",
        "note: no manifest lies beside it; the defaults hold",
        "manifest refused: priority: expected a number",
        *(["note: a report would not run it here: --disable"] if isolated else []),
        "",
    ]


def merged(**changes: Any) -> Any:
    device = {
        "id": "pci:0000:01:00.0",
        "name": "Acme One",
        "seen_by": ["acme", "bus", "late"],
        "sources": {"name": "acme", "kind": "acme", "pci.id": "bus", "units": "bus"},
        "others": {"units": [{"prober": "acme"}], "arch": [{"prober": "bus"}]},
        "chip": {"id": "acme/one"},
        "unknown": {},
    }
    return device | changes


def told(code: str, prober: str = "acme") -> Any:
    return FINDING | {"code": code, "prober": prober, "severity": "warning"}


REPORT: Any = {
    "devices": [
        merged(),
        merged(id="acme:2", name=None, sources={}, seen_by=["acme"], chip=None,
               others={"arch": [{"prober": "acme"}]}),
        merged(id="acme:3", seen_by=["acme"], sources={}, others={}, chip=None,
               unknown={"chip": "no name"}),
        merged(id="other:1", seen_by=["bus"]),
    ],
    "primary": "pci:0000:01:00.0",
    "findings": [told("acme-hot"), told("acme-hot", "bus"), told("value-rejected")],
}  # fmt: skip


def rehearsed(status: str, reason: str | None, seconds: float, items: list[Item]) -> Rehearsal:
    made = Rehearsal(Prober("acme", "acme_prober"), print, print)
    made.items = items
    made.run = Run(made.prober, "0123456789abcdef", "", 0.0)  # as of a child: it has a tail
    made.run.tail = b"a line\n"
    made.run.status, made.run.reason = status, reason  # type: ignore[assignment]
    made.run.started, made.run.ended = 10.0, 10.0 + seconds
    return made


def test_what_merging_makes_of_it() -> None:
    items = [Item(DEVICE, REFUSED), Item(None, ["x"]), Item(None, [], is_finding=True)]
    assert list(end(rehearsed("ok", None, 0.25, items), REPORT, 80)) == [
        "  | a line",
        "",
        "merged with what the built-in probers report:",
        "  pci:0000:01:00.0  Acme One, the primary device",
        "    from acme      name, kind",
        "    from bus       pci.id, units",
        "    from late      nothing",
        "    not used       units: that of bus counts",
        "    chip           acme/one",
        "  acme:2  (no name)",
        "    from acme      nothing",
        "    not used       arch: that of a prober of higher priority counts",
        "    chip           unknown: it has none",
        "  acme:3  Acme One",
        "    from acme      nothing",
        "    chip           unknown: no name",
        "warning: it is hot: 90 C",
        "ok",
        "2 devices, 4 values refused, 250.0 ms (deadline 5 s)",
    ]


NONE, LATE = "0 devices, 0 values refused,", "a report would have ended it"


@pytest.mark.parametrize(
    ("status", "reason", "seconds", "lines"),
    [
        ("ok", None, 5.0, ["ok", f"{NONE} 5000.0 ms (deadline 5 s)"]),
        ("ok", None, 5.5, ["ok", f"{NONE} 5500.0 ms (deadline 5 s); {LATE}"]),
        ("crashed", "ended", 9.0, ["crashed: ended", f"{NONE} 9000.0 ms (deadline 5 s)"]),
    ],
)
def test_the_summary(status: str, reason: str | None, seconds: float, lines: list[str]) -> None:
    report: Any = {"devices": [], "findings": [], "primary": None}
    shown = list(end(rehearsed(status, reason, seconds, []), report, 100))
    assert shown == ["  | a line", *lines]
