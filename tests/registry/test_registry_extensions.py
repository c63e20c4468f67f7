"""Commands and formats of other distributions: their names, where they lie, and who may be used."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from probe_core.machine.trust import Trust
from probe_core.registry import EntryPoint
from probe_core.registry.extensions import (
    Extension,
    locate_extension,
    name_rejection,
    rejections,
    shown,
)

GROUP = "probe_core.commands.v1"
FORM = "a name has 1 to 32 ASCII letters, digits or '-'; rename it"


def entry(name: str = "fan", target: str = "x_fan:run", group: str = GROUP) -> EntryPoint:
    return EntryPoint(group, name, target, "/site/probe_fan-1.0.dist-info", "probe-fan", "1.0")


@pytest.mark.parametrize(
    ("name", "reason"),
    [("fan", None), ("2-fan", None), ("a" * 32, None), ("a" * 33, FORM), ("-fan", FORM),
     ("-", FORM), ("fan_speed", FORM), ("f\u00e4n", FORM), ("f n", FORM)],
)  # fmt: skip
def test_names_of_extensions(name: str, reason: str | None) -> None:
    assert name_rejection(entry(name), GROUP) == reason


def test_another_version_of_the_contract_is_named() -> None:
    other = "probe_core.commands.v2"
    assert name_rejection(entry(group=other), GROUP) == (
        f"it needs {other}, this core has {GROUP}; upgrade probe-core"
    )


def test_where_an_extension_lies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "x_fan.py").write_text("raise SystemExit\n")
    plain = Extension(entry())
    assert (plain.module, plain.owner) == ("x_fan", "probe-fan 1.0")
    assert locate_extension(plain, "command", Trust()) is None
    metadata = "/site/probe_fan-1.0.dist-info/entry_points.txt"
    assert plain.manifest is None
    assert plain.files[0] == metadata
    assert f"{tmp_path}/x_fan.py" in plain.files
    (tmp_path / "x_fan.command.json").write_text("{}")
    described = Extension(entry())
    assert locate_extension(described, "command", Trust()) is None
    assert described.manifest == f"{tmp_path}/x_fan.command.json"
    assert described.files == [*plain.files, described.manifest]
    for target in ("x_gone:run", "x-fan:run", ""):
        reason = locate_extension(Extension(entry(target=target)), "command", Trust())
        module = target.partition(":")[0]
        assert reason == f"its module {module!r} does not exist; reinstall probe-fan"


@pytest.mark.parametrize(
    ("allow", "is_allowed"),
    [(None, True), (("probe-fan",), True), (("probe-x",), False), ((), False)],
)
def test_the_allowlist_counts(allow: tuple[str, ...] | None, is_allowed: bool) -> None:
    made = Extension(entry())
    made.files = []
    (reason,) = rejections([made], allow, Trust())
    assert (reason is None) is is_allowed


def test_a_wrong_value_is_shown_briefly() -> None:
    nested: Any = []
    for _ in range(100_000):
        nested = [nested]
    assert [shown("\u00e4"), shown("x" * 99)] == ["'\\xe4'", "'" + "x" * 59]
    assert shown(nested) == "something nested too deep"
    while nested:  # freed level by level, as `del` would recurse in C
        nested = nested.pop()
