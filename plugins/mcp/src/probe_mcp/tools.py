"""The tools: each asks `probe` one question, and gives a bounded answer as text.

Nothing here imports the SDK. A docstring is what a model reads about its tool.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from typing import Any

import anyio

from probe_core.wording import clean_text
from probe_mcp.bounds import bounded, brief_device

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


# Asks `probe` itself, in a process of its own: what a tool answers is what the command prints.
#
# The commands are fixed here and only read. A value of a client becomes part of one argument, never
# an option of its own.

DEADLINE_S = 60.0
"""Seconds that a command may take: a probe ends by its own deadlines long before."""

MOST_AT_ONCE = 2
"""Commands at once: a client may call many tools together."""

MAX_VALUE = 200
"""Characters of a value of a client: names of models and chips, ids, expectations."""


class Refused(Exception):
    """A question that has no answer; the message is one sentence."""


class Asker:
    """Runs commands of `probe` on this computer, or on a recorded `machine`."""

    def __init__(self, machine: str | None) -> None:
        self._machine = [] if machine is None else [f"--machine={machine}"]
        self._limiter: anyio.CapacityLimiter | None = None

    async def document(self, words: Sequence[str], *, probes: bool = True) -> Any:
        """Return what a command prints as JSON; raises `Refused` with its own sentence.

        `probes` tells whether the command looks at the machine.
        """
        options = ["--json", *(self._machine if probes else ())]
        # Options stand before what a client says: after `--` all are values. `-P` keeps modules of
        # the folder in which a client started the server out.
        python = [sys.executable, "-P", "-m", "probe_core"]
        command = [*python, *words[:1], *options, *words[1:]]
        self._limiter = self._limiter or anyio.CapacityLimiter(MOST_AT_ONCE)
        async with self._limiter:
            try:
                with anyio.fail_after(DEADLINE_S):
                    done = await anyio.run_process(command, stdin=subprocess.DEVNULL, check=False)
            except TimeoutError:
                raise Refused(f"probe did not answer within {DEADLINE_S:g} s") from None
        try:
            return json.loads(done.stdout)
        except (ValueError, RecursionError):
            lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
            reason = lines[0] if lines else f"probe ended with status {done.returncode}"
            raise Refused(clean_text(reason, 600)) from None


def value_of(name: str, text: str) -> str:
    """Return a client's text as one value; raises `Refused` for what no name is."""
    if len(text) > MAX_VALUE or not text.isprintable():
        raise Refused(f"{name}: expected at most {MAX_VALUE} printable characters")
    return text


# The tools of a server.

_MODEL = re.compile(r"\w[\w.+-]{0,99}(?:/\w[\w.+-]{0,99})?")


def _page(document: dict[str, Any], field: str, cursor: int) -> str:
    """Return a page of an answer as text."""
    return json.dumps(bounded(document, field, cursor), ensure_ascii=False)


class Tools:
    """The tools of one server, on this computer or on a recorded `machine`.

    Each raises `Refused` with one sentence for a question that has no answer.
    """

    def __init__(self, machine: str | None) -> None:
        self._asker = Asker(machine)

    async def report(self, device: str = "", cursor: int = 0) -> str:
        """List this node's devices in brief, with the node and the findings.

        With `device`, an id of that list, return this device alone with all that is known: links,
        memory, clocks, peaks, the steps of readiness and what each runtime shows.
        """
        document = await self._ask()
        devices = document.pop("devices")
        if device:
            devices = [entry for entry in devices if device in (entry["id"], *entry["ids"])]
            if not devices:
                raise Refused(f"no device has the id {value_of('device', device)!r}")
        else:
            devices = [brief_device(entry) for entry in devices]
            for name in ("outcomes", "decisions", "timings_ms"):
                document.pop(name, None)
        return _page({**document, "devices": devices}, "devices", cursor)

    async def doctor(self, device: str = "", cursor: int = 0) -> str:
        """Say why a device cannot be used: causes, their evidence, and the command that repairs.

        Nothing is repaired. `device` is an id; without one the whole node is looked at.
        """
        words = [f"--device={value_of('device', device)}"] if device else []
        document = await self._ask("doctor", *words)
        checks = document.get("checks") or []
        document["checks"] = [
            {name: check.get(name) for name in ("code", "status", "reason")}
            for check in checks
            if check.get("status") in ("failed", "unknown")
        ]
        return _page(document, "findings", cursor)

    async def visible(self, runtime: str = "") -> str:
        """Say which devices each runtime (cuda, hip, vulkan ...) shows here, and why."""
        words = [f"--for={value_of('runtime', runtime)}"] if runtime else []
        answer = await self._ask("visible", *words)
        runtimes = {runtime: answer} if runtime else answer
        entries = [{"runtime": name, "sees": value} for name, value in runtimes.items()]
        return _page({"runtimes": entries}, "runtimes", 0)

    async def chip(self, name: str) -> str:
        """Return what is known of a chip: by its name ("RTX 4090"), id or PCI id ("10de:2684")."""
        chips = await self._ask("chip", "--", value_of("name", name), probes=False)
        return _page({"chips": chips}, "chips", 0)

    async def fit(self, model: str, bits: str = "", context: int = 0) -> str:
        """Say whether a language model fits on this node, and on which devices.

        `model` is parameters ("70b") or a known name ("llama-3.1-70b"); `bits` how parameters are
        stored ("4bit", "fp8", "q4_k_m"; empty: as published); `context` tokens of KV cache.
        """
        if not _MODEL.fullmatch(model) or os.path.exists(model):
            raise Refused("model: expected parameters or a name; files are not read")
        words = [f"--bits={value_of('bits', bits)}"] if bits else []
        words += [f"--context={int(context)}"] if context > 0 else []
        document = await self._ask("fit", *words, "--", value_of("model", model))
        return _page(document, "nodes", 0)

    async def expect(self, what: str) -> str:
        """Compare this node with what should be here, as "8xh100", "4xl40s+1xa2", "p5.48xlarge".

        Returns what is absent, extra or unlike, with the findings about it.
        """
        document = await self._ask(f"--expect={value_of('what', what)}")
        expected = document.get("expected")
        if expected is None:
            raise Refused("the expectation was not understood; write it as 8xh100")
        findings = [entry for entry in document["findings"] if entry["setting"] == "expect"]
        return _page({"expected": expected, "findings": findings}, "findings", 0)

    async def _ask(self, *words: str, probes: bool = True) -> Any:
        return await self._asker.document(words, probes=probes)


TOOLS = ("report", "doctor", "visible", "chip", "fit", "expect")
"""The names of the tools: methods of `Tools`."""
