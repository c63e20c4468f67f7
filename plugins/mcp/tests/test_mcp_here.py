"""The command and the server in this process: what they offer, and what they refuse."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import pytest
from command import probe_here

from probe_mcp.tools import DEADLINE_S, TOOLS, Asker, Refused, Tools


def test_the_tools_are_listed() -> None:
    done = probe_here("mcp", "--list")
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert [line.split()[0] for line in lines] == list(TOOLS)
    for name, line in zip(TOOLS, lines, strict=True):
        about = getattr(Tools, name).__doc__.strip().splitlines()[0]
        assert line == f"{name:<8} {about}"


def test_a_machine_that_is_not_there_is_refused() -> None:
    done = probe_here("mcp", "--machine", "/nonexistent/machine.json")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("probe mcp: --machine /nonexistent/machine.json: ")


def test_without_the_sdk_the_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mcp.server.mcpserver", None)  # type: ignore[arg-type]
    monkeypatch.delitem(sys.modules, "probe_mcp.server", raising=False)
    done = probe_here("mcp")
    reason = "mcp.server.mcpserver cannot be imported; install probe-mcp anew, which brings it"
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"probe mcp: {reason}\n"


def test_a_refusal_of_a_tool_is_an_error_with_its_sentence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from mcp.server.mcpserver.exceptions import ToolError

    from probe_mcp.server import _refusing, server

    made = server("machine.json")
    listed: Any = asyncio.run(made.list_tools())
    assert [tool.name for tool in listed] == list(TOOLS)
    for tool in listed:
        hints = tool.annotations
        assert (hints.read_only_hint, hints.destructive_hint) == (True, False)
        assert (hints.idempotent_hint, hints.open_world_hint) == (True, False)

    async def refuses(word: str) -> str:
        raise Refused(f"no {word}")

    async def answers(word: str) -> str:
        return word

    with pytest.raises(ToolError, match=r"^no report$"):
        asyncio.run(_refusing(refuses)("report"))  # type: ignore[arg-type]
    assert asyncio.run(_refusing(answers)("report")) == "report"  # type: ignore[arg-type]


def test_a_command_that_does_not_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    async def hangs(*words: object, **options: object) -> None:
        raise TimeoutError

    monkeypatch.setattr("anyio.run_process", hangs)
    with pytest.raises(Refused, match=rf"^probe did not answer within {DEADLINE_S:g} s$"):
        asyncio.run(Asker(None).document(["chip"]))
