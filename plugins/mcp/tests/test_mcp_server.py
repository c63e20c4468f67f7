"""The server as a client sees it: the SDK's own client over standard input and output."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from probe_mcp.bounds import LIMIT
from probe_mcp.tools import TOOLS

MACHINES = Path(__file__).parents[3] / "tests" / "machines"
DGX = MACHINES / "dgx-h100--8x-nvidia-h100-80gb-hbm3.json"

Call = tuple[str, dict[str, Any]]
Answer = tuple[bool, Any]


def conversation(
    *calls: Call, machine: Path = DGX, started: Sequence[str] = (), **changes: str
) -> tuple[Any, list[Answer]]:
    """Return the tools that a server lists, and (whether it is an error, answer) of each call."""
    # Here: it takes each process of the tests a second to import it.
    import anyio
    from mcp import ClientSession, StdioServerParameters, stdio_client

    async def main() -> tuple[Any, list[Answer]]:
        command = [*started, "-m", "probe_core", "mcp", "--machine", str(machine)]
        parameters = StdioServerParameters(
            command=sys.executable, args=command, env=os.environ | changes
        )
        answers = []
        async with (
            stdio_client(parameters) as (read, write),
            ClientSession(read, write) as session,
        ):
            await session.initialize()
            tools = await session.list_tools()
            for name, arguments in calls:
                result = await session.call_tool(name, arguments)
                text = result.content[0].text  # type: ignore[union-attr]  # our answers are text
                assert len(text.encode()) <= LIMIT
                answers.append(
                    (bool(result.is_error), text if result.is_error else json.loads(text))
                )
        return tools.tools, answers

    return anyio.run(main)


@pytest.fixture(scope="module")
def talk() -> tuple[Any, list[Answer]]:
    """One conversation with every tool: a server takes a second to start."""
    return conversation(
        ("report", {}),
        ("report", {"device": "pci:0000:1b:00.0"}),
        ("report", {"device": "pci:0000:99:00.0"}),
        ("doctor", {}),
        ("doctor", {"device": "99:00.0"}),
        ("visible", {"runtime": "cuda"}),
        ("visible", {"runtime": "curda"}),
        ("chip", {"name": "10de:2684"}),
        ("chip", {"name": "--help"}),
        ("fit", {"model": "llama-3.1-8b", "bits": "4bit", "context": 8192}),
        ("fit", {"model": "/etc/passwd"}),
        ("fit", {"model": "--params=7b"}),
        ("expect", {"what": "9xh100"}),
        ("expect", {"what": "8xh100"}),
        ("expect", {"what": "8xh1000"}),
        ("expect", {"what": "h100:speed=3"}),
        ("chip", {}),
        ("reboot", {}),
    )


@pytest.fixture(scope="module")
def short() -> tuple[Any, list[Answer]]:
    """What each sort of answer is like: of a tool, of one that refuses, and of no tool."""
    return conversation(("report", {}), ("fit", {"model": "/etc/passwd"}), ("reboot", {}))


def test_a_tool_answers_or_refuses(short: tuple[Any, list[Answer]]) -> None:
    (_, report), file, foreign = short[1]
    assert (report["total"], report["devices"][0]["name"]) == (11, "NVIDIA H100 80GB HBM3")
    assert file == (
        True,
        "Error executing tool fit: model: expected parameters or a name; files are not read",
    )
    assert foreign[0]


def test_every_tool_says_that_it_only_reads(short: tuple[Any, list[Answer]]) -> None:
    tools, _ = short
    assert tuple(tool.name for tool in tools) == TOOLS
    for tool in tools:
        hints = tool.annotations
        assert (hints.read_only_hint, hints.destructive_hint) == (True, False)
        assert (hints.idempotent_hint, hints.open_world_hint) == (True, False)
        assert tool.description
        for schema in tool.input_schema["properties"].values():
            assert schema["type"] in ("string", "integer")  # no unions, which clients refuse


@pytest.mark.heavy
def test_the_report_in_brief_and_one_device_whole(talk: tuple[Any, list[Answer]]) -> None:
    (_, brief), (_, whole), unknown = talk[1][:3]
    assert (brief["total"], brief["truncated"], brief["cursor"]) == (11, False, None)
    device = brief["devices"][0]
    assert (device["name"], device["chip"]) == ("NVIDIA H100 80GB HBM3", "nvidia/h100-sxm5-80gb")
    assert device["readiness"]["state"]
    assert "peaks" not in device
    (own,) = whole["devices"]
    assert (own["id"], bool(own["peaks"]), bool(own["links"])) == ("pci:0000:1b:00.0", True, True)
    assert unknown[0]
    assert "no device has the id 'pci:0000:99:00.0'" in unknown[1]


@pytest.mark.heavy
def test_the_doctor_answers(talk: tuple[Any, list[Answer]]) -> None:
    (_, document), refused = talk[1][3:5]
    assert (document["healthy"], document["node"]["state"]) == (None, "unknown")
    assert all(check["status"] in ("failed", "unknown") for check in document["checks"])
    assert refused[0]
    assert "99:00.0" in refused[1]


@pytest.mark.heavy
def test_visibility_chip_and_fit_answer(talk: tuple[Any, list[Answer]]) -> None:
    (_, cuda), curda, (_, chips), option, (_, fit), file, words = talk[1][5:12]
    assert [entry["runtime"] for entry in cuda["runtimes"]] == ["cuda"]
    assert (curda[0], "curda" in curda[1]) == (True, True)
    assert chips["chips"][0]["match"]["id"] == "nvidia/geforce-rtx-4090"
    # What looks like an option is a name, and no chip is called so.
    assert option[0] or option[1]["chips"][0]["match"] is None
    assert fit["nodes"][0]["answer"] == "yes"
    assert fit["model"]["context"] == 8192
    for refused in (file, words):
        assert refused == (
            True,
            "Error executing tool fit: model: expected parameters or a name; files are not read",
        )


@pytest.mark.heavy
def test_an_expectation_is_compared(talk: tuple[Any, list[Answer]]) -> None:
    (_, short), (_, right), (_, unknown), wrong = talk[1][12:16]
    assert short["expected"]["absent"][0]["count"] == 1
    assert [entry["code"] for entry in short["findings"]] == ["fewer-than-expected"]
    assert (right["expected"]["absent"], right["findings"]) == ([], [])
    assert unknown["expected"]["unknown"] == ["h1000"]
    assert wrong[0]


@pytest.mark.heavy
def test_what_is_missing_or_no_tool_is_an_error(talk: tuple[Any, list[Answer]]) -> None:
    nameless, foreign = talk[1][16:]
    assert nameless[0]
    assert foreign[0]


@pytest.mark.heavy
def test_modules_of_the_clients_folder_are_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "json.py").write_text("raise SystemExit('taken')")
    (tmp_path / "probe_core").mkdir()
    (tmp_path / "probe_core" / "__init__.py").write_text("raise SystemExit('taken')")
    monkeypatch.chdir(tmp_path)
    _, [(is_error, answer)] = conversation(("chip", {"name": "h100"}), started=["-P"])
    assert not is_error, answer
    assert answer["chips"][0]["query"] == "h100"


@pytest.mark.heavy
def test_many_devices_come_in_pages(tmp_path: Path) -> None:
    facts = {"vendor": "0x10de", "device": "0x2330", "class": "0x030200"}
    places = [f"/sys/bus/pci/devices/0000:{at:02x}:00.0" for at in range(100)]
    files = {f"{place}/{name}": text for place in places for name, text in facts.items()}
    about = {"schema": 1, "os": "linux", "arch": "x86_64", "environ": {}, "origin": "invented"}
    recording = tmp_path / "many.json"
    recording.write_text(json.dumps({**about, "files": files}))
    seen: list[str] = []
    cursor: int | None = 0
    while cursor is not None:
        _, [(is_error, answer)] = conversation(("report", {"cursor": cursor}), machine=recording)
        assert not is_error, answer
        assert (answer["total"], answer["truncated"]) == (101, answer["cursor"] is not None)
        seen += [device["id"] for device in answer["devices"]]
        cursor = answer["cursor"]
    assert len(seen) == len(set(seen)) == 101
