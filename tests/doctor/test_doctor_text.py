"""The doctor's lines for people, whole: of a node with breaks, and of one that is well."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from probe_core.cli.doctor import _assumed, _check, _device
from probe_core.cli.doctor_text import _sentence, _subject, _tally, _verdict, lines
from probe_core.commands import CommandError
from probe_core.doctor.check import CHANGED
from probe_core.model.findings import NO_FIX

CONTEXT: Any = SimpleNamespace(width=80, terminal=True, colour=False, encodable=str)
IDS = [f"pci:0000:0{number}:00.0" for number in range(1, 7)]


def device(id: str, name: str | None = "Acme One", **facts: Any) -> dict[str, Any]:
    empty = {"driver": None, "link": None, "memory": None, "state": "ready"}
    return {"id": id, "name": name, **empty, "readiness": {"state": "ready"}, **facts}


def finding(code: str, severity: str = "error", **facts: Any) -> dict[str, Any]:
    empty = {"device": None, "evidence": None, "why": "because", "fix": NO_FIX}
    return {"code": code, "severity": severity, "what": f"what {code} is", **empty, **facts}


def check(status: str, **facts: Any) -> dict[str, Any]:
    return {"code": f"c-{status}", "status": status, "ms": 1.25, **facts}


def document(**parts: Any) -> Any:
    empty: dict[str, Any] = {"devices": [], "findings": [], "checks": [], "system": "Acme Linux"}
    return empty | parts


def test_what_is_wrong() -> None:
    follows = [{"what": f"what {number} is", "code": f"f{number}"} for number in range(5)]
    shown = document(
        devices=[device(id) for id in IDS],
        findings=[
            finding("first", device=IDS[0], fix="run it", evidence="a line", contradicts="a use"),
            finding("second", devices=IDS, follows=follows, has="9.0", needs="8.0"),
            finding("third", "warning", wheel="a wheel whose name is long", follows=follows[:4]),
            finding(CHANGED, "info", what="the driver"),
            finding("hint", "info", follows=follows[:3]),
        ],
        checks=[
            check("passed"),
            check("failed"),
            check("unknown", reason="it is closed", fix="open it"),
            check("unknown", reason="unseen", code="c-quiet"),
        ],
        wheels=[
            {"wheel": "a 1", "verdict": "native", "devices": IDS[:2]},
            {"wheel": "b 2", "verdict": "cpu-build", "devices": ["x:1", IDS[0]]},
            {"wheel": "c 3", "verdict": "unknown", "devices": IDS[:1]},
        ],
        baseline={
            "lost": [IDS[0], "x:1"],
            "saved": "2026-11-28T10:11:12Z",
            "changed": [{"fact": "driver", "before": None, "now": "9"}],
        },
    )
    assert (
        list(lines(shown, CONTEXT))
        == """\
 probe doctor: 2 errors, 1 warning, 1 hint · Acme Linux · changed since it
 worked: the driver

 ✕ first   Acme One  pci:0000:01:00.0
   what first is.
   seen   a line
   but    a use
   fix    run it

 ✕ second
   6 × Acme One pci:0000:01:00.0, pci:0000:02:00.0, pci:0000:03:00.0,
   pci:0000:04:00.0 and 2 more
   what second is.
   seen   because
   has    9.0
   needs  8.0
   so     what 0 is (f0)
   so     what 1 is (f1)
   so     what 2 is (f2)
          and 2 more of that kind

 ! third   a wheel whose name is long
   what third is.
   seen   because
   so     what 0 is (f0)
   so     what 1 is (f1)
   so     what 2 is (f2)
          and 1 more of that kind

 i hint
   what hint is.
   seen   because
   so     what 0 is (f0)
   so     what 1 is (f1)
   so     what 2 is (f2)

 ? c-unknown   it is closed
   fix    open it

   WHEEL  VERDICT           ON
   a 1    runs natively     2 × Acme One
   b 2    is a CPU build    x:1, Acme One
   c 3    cannot be judged  Acme One

 Acme One, x:1 was ready on 2026-11-28. Changed since:
   driver: none → 9

 1 other check passed, 2 could not look (probe doctor --all lists them).
 Attach this to a question:  probe doctor --bundle""".split("\n")
    )


def test_what_is_well() -> None:
    facts = {"driver": "acme 9", "link": "PCIe 5.0 x16", "memory": 24 << 30}
    shown = document(
        devices=[
            device(IDS[0], **facts),
            device(IDS[1], **facts),
            device(IDS[2], None, link="PCIe 4.0 x8", memory=1 << 30),
        ],
        checks=[check("passed"), check("passed"), check("not_applicable")],
        baseline={"lost": [], "saved": "2026-11-28T10:11:12Z", "changed": []},
    )
    assert (
        list(lines(shown, CONTEXT, show_all=True))
        == """\
 probe doctor: healthy. 2 checks passed, 1 does not apply here.

   2 × Acme One: ready
   driver acme 9
   link   PCIe 5.0 x16 each
   memory 24.0 GiB each
   pci:0000:03:00.0: ready
   link   PCIe 4.0 x8
   memory 1.0 GiB


CHECK             RESULT           MS
c-passed          passed          1.2
c-passed          passed          1.2
c-not_applicable  not applicable  1.2""".split("\n")
    )


def test_nothing_is_here() -> None:
    assert list(lines(document(), CONTEXT))[1:] == ["", "   no accelerator is here", ""]


def test_devices_without_one_name_are_not_counted() -> None:
    devices: Any = {id: device(id, f"Acme {id[-6]}") for id in IDS}
    for ids, subject in (
        ([], ""),
        (IDS[:1], f"Acme 1  {IDS[0]}"),
        (IDS[:2], f"{IDS[0]}, {IDS[1]}"),
        (IDS[:4], ", ".join(IDS[:4])),
        (IDS[:5], f"{', '.join(IDS[:4])} and 1 more"),
        (["x:1"], "x:1"),
    ):
        shown: Any = finding("a", devices=ids)
        assert _subject(shown, devices) == subject
    pair: Any = {id: device(id) for id in IDS[:2]}
    alike: Any = finding("a", devices=IDS[:2])
    assert _subject(alike, pair) == f"2 × Acme One  {IDS[0]}, {IDS[1]}"
    assert _subject(finding("a", device=IDS[0]), pair) == f"Acme One  {IDS[0]}"  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("statuses", "tally"),
    [
        ([], "0 checks passed"),
        (["passed"], "1 check passed"),
        (["passed"] * 2 + ["not_applicable"] * 2, "2 checks passed, 2 do not apply here"),
        (["unknown", "failed"], "0 checks passed, 1 could not look"),
    ],
)
def test_checks_are_counted(statuses: list[str], tally: str) -> None:
    checks: Any = [check(status) for status in statuses]
    assert _tally(checks) == tally


@pytest.mark.parametrize(
    ("node", "verdict"),
    [
        (None, "healthy"),
        ({"state": "some", "usable": ["a"], "grantable": ["a"]}, "healthy"),
        (
            {"state": "some", "usable": ["a"], "grantable": ["a", "b"]},
            "healthy; this process may use 1 of 2",
        ),
        ({"state": "none", "set_aside": ["a"]}, "healthy, no accelerator for jobs"),
        (
            {"state": "unknown", "usable": ["a"], "grantable": ["a"]},
            "nothing wrong found, and nothing known to be well",
        ),
    ],
)
def test_verdicts(node: Any, verdict: str) -> None:
    assert _verdict(document(node=node), False) == verdict


def test_a_check_needs_what_the_report_does_not() -> None:
    entry: Any = {"summary": "Whether it runs", "step": None, "needs": ["report", "/etc/a", "/b"]}
    assert _sentence(entry) == "it runs Needs: /etc/a, /b"
    assert _sentence(entry | {"needs": ["report"]}) == "it runs"


def arguments(**given: Any) -> Any:
    names = ("config", "codes", "machine", "bundle", "supposed")
    flags = dict.fromkeys(("save", "force", "next_boot"), False)
    return SimpleNamespace(**{**dict.fromkeys(names), **flags, **given})


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"codes": " , "}, "--only has no code; "),
        ({"save": True, "machine": "a"}, "--save keeps the state of this computer; leave out"),
        ({"next_boot": True, "save": True}, "--next-boot and --if look at another state; leave"),
        ({"next_boot": True, "bundle": "a"}, "--next-boot and --if look at another state; leave"),
        ({"supposed": "torch=2", "codes": "a"}, "--next-boot and --if look at another state;"),
        ({"force": True}, "--force overwrites an archive; name it with --bundle FILE"),
        ({"bundle": "/no/such/a.zip"}, "--bundle /no/such/a.zip: no such folder"),
        ({"supposed": "drver=5"}, "--if drver=5: no such assumption; did you mean 'driver'?"),
        ({"supposed": ""}, "--if : no such assumption; "),
        ({"supposed": "kernel"}, "--if kernel: no version; write it as kernel=6.8.0-62-generic"),
        ({"supposed": "torch=a b"}, "--if torch=a b: no version; write it as torch=2.11"),
        ({"supposed": "driver=5x"}, "--if driver=5x: no version; write driver=595"),
    ],
)
def test_options_that_contradict_each_other(given: dict[str, Any], sentence: str) -> None:
    with pytest.raises(CommandError) as raised:
        _check(arguments(**given))
    assert str(raised.value).startswith(f"doctor: {sentence}")


def test_options_that_do_not(tmp_path: Path) -> None:
    for given in (
        *({"codes": "a,b"}, {"save": True}, {"machine": "a", "bundle": str(tmp_path / "a")}),
        *({"bundle": "a.zip", "force": True}, {"next_boot": True}, {}),
    ):
        _check(arguments(**given))
    supposed = _assumed(arguments(supposed="driver=595.58, kernel=6.8.0-62_a", next_boot=True))
    assert supposed == {"boot": "next", "driver": "595.58", "kernel": "6.8.0-62_a"}
    assert _assumed(arguments()) == {}


def test_the_device_that_is_looked_at() -> None:
    devices = [{"kind": "gpu", "ids": [id, f"uuid:{at}A"]} for at, id in enumerate(IDS[:2])]
    listed = [{"id": "cpu:0", "kind": "cpu", "ids": ["cpu:0"]}]
    report: Any = {"devices": listed + [d | {"id": d["ids"][0]} for d in devices]}
    assert [_device(part, report) for part in (None, IDS[1], "uuid:0a", "02:00")] == [
        *(None, IDS[1], IDS[0], IDS[1])
    ]
    for part, sentence in (
        ("pci", f"--device pci names 2 devices; there are: {IDS[0]}, {IDS[1]}"),
        ("cpu:0", f"--device cpu:0: no device; there are: {IDS[0]}, {IDS[1]}"),
    ):
        with pytest.raises(CommandError) as raised:
            _device(part, report)
        assert str(raised.value) == f"doctor: {sentence}"
    with pytest.raises(CommandError, match="no device; there are: no accelerator"):
        _device("a", {"devices": listed})  # type: ignore[arg-type]
