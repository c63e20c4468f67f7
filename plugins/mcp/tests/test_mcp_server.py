"""The server as a client sees it: lines of the protocol, and the SDK's own client."""

from __future__ import annotations

import json
import os
import subprocess
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
def lines() -> list[dict[str, Any]]:
    """What each sort of answer is like: of a tool, of one that refuses, and of no tool.

    As lines, which the SDK's client is not imported for: that takes as long as the server.
    """
    about = {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    }
    calls = (("report", {}), ("fit", {"model": "/etc/passwd"}), ("reboot", {}))
    requests = [
        ("initialize", about),
        ("tools/list", {}),
        *(("tools/call", {"name": name, "arguments": given}) for name, given in calls),
    ]
    sent: list[dict[str, Any]] = [
        {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        for number, (method, params) in enumerate(requests)
    ]
    sent.insert(1, {"jsonrpc": "2.0", "method": "notifications/initialized"})
    done = subprocess.run(
        [sys.executable, "-m", "probe_core", "mcp", "--machine", str(DGX)],
        input="".join(json.dumps(message) + "\n" for message in sent),
        capture_output=True, text=True, timeout=100, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    answers = sorted(map(json.loads, done.stdout.splitlines()), key=lambda answer: answer["id"])
    assert [answer["id"] for answer in answers] == list(range(len(requests)))
    return answers


def test_a_tool_answers_or_refuses(lines: list[dict[str, Any]]) -> None:
    report, file, foreign = lines[2:]
    assert report["result"]["isError"] is False
    table = json.loads(report["result"]["content"][0]["text"])
    assert (table["total"], table["devices"][0]["name"]) == (11, "NVIDIA H100 80GB HBM3")
    assert (file["result"]["isError"], file["result"]["content"][0]["text"]) == (
        True,
        "Error executing tool fit: model: expected parameters or a name; files are not read",
    )
    assert foreign["result"]["isError"] is True


def test_every_tool_says_that_it_only_reads(lines: list[dict[str, Any]]) -> None:
    tools = lines[1]["result"]["tools"]
    assert tuple(tool["name"] for tool in tools) == TOOLS
    for tool in tools:
        assert tool["annotations"] == {
            "readOnlyHint": True,
            "destructiveHint": False,
            "idempotentHint": True,
            "openWorldHint": False,
        }
        assert tool["description"]
        for schema in tool["inputSchema"]["properties"].values():
            assert schema["type"] in ("string", "integer")  # no unions, which clients refuse


@pytest.mark.heavy
def test_the_report_in_brief_and_one_device_whole(talk: tuple[Any, list[Answer]]) -> None:
    assert tuple(tool.name for tool in talk[0]) == TOOLS
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
