"""What `probe` and `probe_async` refuse, and how they say so."""

from __future__ import annotations

import asyncio
import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import probe_core

WRONG: list[tuple[dict[str, Any], str]] = [
    (
        {"machine": "tree"},
        "the argument 'machine' is 'tree': expected a probe_core.Machine, such as Machine('tree')",
    ),
    ({"machine": Path("tree")}, "'machine' is a PosixPath: expected a probe_core.Machine"),
    ({"machine": 3}, "the argument 'machine' is 3: expected a probe_core.Machine"),
    ({"hooks": "observer"}, "the argument 'hooks' is 'observer': expected a list of objects"),
    ({"hooks": 5}, "the argument 'hooks' is 5: expected a list of objects with host hooks"),
    ({"hooks": None}, "the argument 'hooks' is a NoneType: expected a list"),
    ({"probers": ["acme"]}, "the argument 'probers' is a list: expected a mapping of names"),
    ({"probers": {"acme": 3}}, "the prober 'acme' is a int"),
    ({"refresh": "yes"}, "the argument 'refresh' is 'yes': expected True or False"),
    ({"config": 3}, "the argument 'config' is 3: expected the path of a file"),
    ({"config": ""}, "the argument 'config' is '': expected the path of a file"),
    ({"config": b"x"}, "the argument 'config' is a bytes: expected the path of a file"),
    ({"only": 5}, "the arguments set 'only' to 5: expected names"),
    ({"timeout": "soon"}, "the arguments set 'timeout' to 'soon': not a number of seconds"),
    ({"active": "perhaps"}, "the arguments set 'active' to 'perhaps': expected 1 or 0"),
    ({"priority": 3}, "the arguments set 'priority' to 3: expected NAME=NUMBER"),
    ({"chipdb": 3.5}, "the arguments set 'chipdb' to 3.5"),
]


@pytest.mark.parametrize(("arguments", "message"), WRONG)
def test_a_wrong_argument_is_named(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(probe_core.ConfigError) as refused:
        probe_core.probe(**arguments)
    assert message in str(refused.value)
    with pytest.raises(probe_core.ConfigError) as awaited:
        asyncio.run(probe_core.probe_async(**arguments))
    assert str(awaited.value) == str(refused.value)


def test_probe_async_takes_what_probe_takes() -> None:
    both = [inspect.signature(call) for call in (probe_core.probe, probe_core.probe_async)]
    assert both[0].parameters == both[1].parameters
    assert both[0].return_annotation == both[1].return_annotation == "Report"


def test_an_unknown_argument_is_pythons_own_error() -> None:
    problem = re.escape("() got an unexpected keyword argument 'tiemout': did you mean 'timeout'?")
    calls: list[Callable[..., object]] = [probe_core.probe, probe_core.samples]
    calls += [probe_core.samples_async, lambda **n: asyncio.run(probe_core.probe_async(**n))]
    for call in calls:
        with pytest.raises(TypeError, match=problem):
            call(tiemout=3)
    with pytest.raises(TypeError, match=r"^probe.. got .* 'machien': did you mean 'machine'"):
        probe_core.probe(machien=None)  # type: ignore[call-arg]


def test_a_path_may_be_a_path(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text("timeout = 7\n")
    machine = probe_core.Machine(str(tmp_path))
    report = probe_core.probe(config=file, machine=machine, only=["bus", "cpu"])
    assert [f.code for f in report.findings if f.code == "config-ignored"] == []
