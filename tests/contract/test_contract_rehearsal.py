"""A prober's run in the author's own process: what it yields, how it ends, what is shown of it."""

from __future__ import annotations

import bdb
import sys
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from trees import Tree

from probe_core import Machine
from probe_core.api import NotApplicable
from probe_core.cli.plugins_run import _fields, _flat, _row, end
from probe_core.registry.prober import HOST, Prober
from probe_core.testing import sightings
from probe_core.testing.rehearsal import Item, Rehearsal, author_frames, bus_sightings

HOOK = """
    from probe_core.api import Unavailable, finding, hookimpl, not_applicable
    @hookimpl
    def probe_devices(request):
"""


@pytest.fixture
def rehearsed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that runs a prober of this body; what it shows and announces is noted."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def run(body: str, before: str = HOOK) -> tuple[Rehearsal, list[Item], list[str]]:
        monkeypatch.delitem(sys.modules, "rehearsed_prober", raising=False)
        lines = "".join(f"        {line}\n" for line in dedent(body).splitlines())
        (tmp_path / "rehearsed_prober.py").write_text(dedent(before + lines))
        shown: list[Item] = []
        announced: list[str] = []
        prober = Prober("acme", "rehearsed_prober", HOST)
        rehearsal = Rehearsal(prober, shown.append, announced.append)
        monkeypatch.setattr(sys, "dont_write_bytecode", True)
        rehearsal.perform(Machine(str(tmp_path)), [])
        monkeypatch.delitem(sys.modules, "rehearsed_prober", raising=False)
        return rehearsal, shown, announced

    return run


def test_what_is_yielded_is_shown_at_once(rehearsed: Any) -> None:
    rehearsal, shown, announced = rehearsed(
        """
        request.touching("a:1")
        yield {"ids": ["a:1"], "kind": "npu", "memory_bytes": 5}
        yield {"ids": [5]}
        yield finding("acme-hot", what="it is hot", why="90 C", fix="cool it")
        yield {"finding": {"code": "acme-cold"}}
        assert request.serial
        """
    )
    assert rehearsal.items == shown
    assert [(item.noun, item.refused, len(item.rejected)) for item in shown] == [
        ("device", False, 1),
        ("device", True, 2),
        ("finding", False, 0),
        ("finding", True, 1),
    ]
    assert announced == ["a:1"]
    assert (rehearsal.run.status, rehearsal.error, rehearsal.mistake) == ("ok", None, None)
    assert rehearsal.seconds > 0


@pytest.mark.parametrize(
    ("body", "status", "reason", "is_mistake"),
    [
        ("return not_applicable('none here')", "not_applicable", "none here", False),
        ("raise Unavailable('locked', code='acme-x')", "unavailable", "locked", False),
        ("raise OSError('odd')", "call_error", "OSError: odd", True),
        ("raise KeyboardInterrupt", "call_error", "it was interrupted", True),
        ("raise SystemExit(3)", "call_error", "it called sys.exit(3)", True),
        ("import bdb; raise bdb.BdbQuit", "call_error", "it was ended in the debugger", False),
    ],
)
def test_how_it_ends(body: str, status: str, reason: str, is_mistake: bool, rehearsed: Any) -> None:
    rehearsal, shown, _ = rehearsed(body)
    assert (rehearsal.run.status, shown) == (status, [])
    assert reason in rehearsal.run.reason
    assert (rehearsal.mistake is not None) is is_mistake
    assert rehearsal.interrupted is ("Keyboard" in body)
    if isinstance(rehearsal.error, (OSError, bdb.BdbQuit)):
        trace = author_frames(rehearsal.error)
        assert trace is not None
        assert trace.tb_frame.f_globals["__name__"] == "rehearsed_prober"


@pytest.mark.parametrize(
    ("before", "reason"),
    [
        (
            "\n    raise OSError('odd')\n    if True:\n",
            "importing rehearsed_prober failed: OSError: odd",
        ),
        ("\n    if True:\n", "rehearsed_prober has no"),
    ],
)
def test_what_cannot_be_loaded(before: str, reason: str, rehearsed: Any) -> None:
    rehearsal, _, _ = rehearsed("pass", before)
    assert rehearsal.run.status == "load_error"
    assert reason in rehearsal.run.reason
    assert isinstance(rehearsal.error, OSError) is ("OSError" in before)


def test_what_is_shown_of_a_device() -> None:
    sighting: Any = {
        "ids": ["a:1", "b:1"],
        "memory": {"total": 1 << 34, "kind": "dedicated"},
        "links": [{"kind": "x"}],
        "extra": {},
        "units": 4,
        "unknown": {"name": "no file", "cores": "it is text"},
    }
    item = Item(sighting, ["cores: it is text"])
    assert list(_fields(item)) == [
        ("ids", "a:1, b:1"),
        ("memory.total", "17179869184 (16.0 GiB)"),
        ("memory.kind", "dedicated"),
        ("links", '[{"kind": "x"}]'),
        ("units", "4"),
        ("name", "unknown: no file"),
    ]
    assert list(_flat({"a": [1, "b"]}, "x.")) == [("x.a", '[1, "b"]')]
    assert list(_row("name", "", 80)) == ["  name"]
    words = "a" * 19
    assert list(_row("name", f"{words} {words}", 20)) == [
        f"  {'name':<16} {words}",
        " " * 19 + words,
    ]


def test_what_is_said_at_the_end(rehearsed: Any) -> None:
    rehearsal, _, _ = rehearsed("yield {'ids': ['a:1'], 'kind': 'npu', 'memory_bytes': 5}")
    device = {
        "id": "a:1",
        "name": None,
        "seen_by": ["acme", "bus"],
        "sources": {"kind": "acme", "pci.id": "bus", "name": "bus"},
        "others": {"name": [{"prober": "acme", "value": "x"}], "units": [{"prober": "other"}]},
        "chip": {"id": None},
        "unknown": {},
    }
    hot = {"prober": "acme", "code": "hot", "severity": "warning", "what": "hot", "why": "90 C"}
    report: Any = {"primary": "a:1", "devices": [device, device | {"seen_by": ["bus"]}]}
    report["findings"] = [hot, hot | {"prober": "other"}]
    shown = list(end(rehearsal, report, 100))
    assert shown[:-1] == [
        "",
        "merged with what the built-in probers report:",
        "  a:1  (no name), the primary device",
        "    from acme      kind",
        "    from bus       pci.id, name",
        "    not used       name: that of bus counts",
        "    chip           unknown: it has none",
        "warning: hot: 90 C",
        "ok",
    ]
    assert shown[-1].startswith("1 device, 1 value refused, ")


def test_what_the_bus_has(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    assert bus_sightings(tree.machine()) == []
    tree.pci("0000:01:00.0", "10de:2684")
    assert [s["ids"] for s in bus_sightings(tree.machine())] == [["pci:0000:01:00.0"]]


def test_sightings_of_a_made_up_machine(tmp_path: Path) -> None:
    request: Any = type("R", (), {"machine": Machine(str(tmp_path))})
    assert isinstance(sightings.probe_devices(request), NotApplicable)
    (tmp_path / "sightings.json").write_text('[{"ids": ["a:1"]}]')
    assert sightings.probe_devices(request) == [{"ids": ["a:1"]}]
