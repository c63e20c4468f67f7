"""What becomes of tinygrad's answers: every sighting and every finding of a few, word for word."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from probe_core.api import Machine, Request, Unavailable
from probe_tinygrad.messages import About, Answer
from probe_tinygrad.report import lines
from probe_tinygrad.session import Answers

CARD = {"ids": ["pci:0000:41:00.0"], "kind": "gpu", "vendor": "nvidia"}
SECOND = {"ids": ["pci:0000:42:00.0"], "kind": "gpu", "vendor": "nvidia"}
RADEON = {"ids": ["pci:0000:03:00.0"], "kind": "gpu", "vendor": "amd"}
RUNS: Answer = {"opens": True, "executes": True}
FAILS: Answer = {"opens": True, "executes": False, "error": "RuntimeError: no lld"}
CLOSED: Answer = {"opens": False, "error": "OSError: no driver"}
ABOUT = About(
    version="0.14.0", backends=["NV", "DSP", "CPU"], style="targets", numbers=["DEBUG"],
    order=["NV", "DSP", "CPU"],
)  # fmt: skip


def answered(
    backends: Mapping[str, Answer], *bus: Mapping[str, Any], problem: str | None = None, **env: str
) -> list[Any]:
    answers = Answers()
    answers.backends.update(backends)
    answers.problem = problem
    return list(lines(answers, ABOUT, Request(Machine(environ=env), bus)))


def on(identity: str, backend: str, *, default: bool) -> dict[str, Any]:
    return {
        "ids": [identity],
        "kind": "cpu" if identity == "cpu:0" else "gpu",
        "backends": [f"tinygrad:{backend.lower()}"],
        "node_index": {f"tinygrad_{backend.lower()}": 0},
        "extra": {"tinygrad": {"version": "0.14.0", "default": default, "executed": [backend]}},
    }


def found(code: str, **fields: str) -> dict[str, Any]:
    every = ("what", "why", "fix", "device", "variable", "step", "evidence")
    own = dict.fromkeys(every) | {"severity": "warning"} | fields
    return {"finding": {"code": f"tinygrad-{code}", **own}}


USED, IDLE = on("cpu:0", "CPU", default=True), on("cpu:0", "CPU", default=False)
CHOOSE = {"severity": "info", "fix": "set DEV to choose another backend"}
INSTALL = "install the driver or library, or allow the device node, that the reason names"
UNMATCHED = {
    "severity": "info",
    "what": "tinygrad's NV:0 executes on an unknown device",
    "fix": "nothing is wrong; the backend is left out of the devices",
}


def fails(what: str, why: str) -> dict[str, Any]:
    more = {"fix": "set DEV to one that does: CPU", "severity": "error", "variable": "DEV"}
    sentence = f"tinygrad takes {what}, which does not execute"
    return found("default-fails", what=sentence, why=why, evidence=why, **more)


def on_cpu(count: str, why: str, **fields: str) -> dict[str, Any]:
    what = f"tinygrad executes on the CPU, though the bus shows {count}"
    card = CARD["ids"][0]
    return found("on-cpu", what=what, why=why, fix=INSTALL, device=card, **fields)


DRIVER = "NV: OSError: no driver"
KILLED = "it was killed by SIGSEGV"
CASES: dict[str, tuple[list[Any], list[Any]]] = {
    "the first that opens": (
        answered({"NV": {**RUNS, "places": [{"pci": "0000:41:00.0"}]}, "CPU": RUNS}, CARD),
        [
            on("pci:0000:41:00.0", "NV", default=True),
            IDLE,
            found(
                "default",
                what="tinygrad executes on NV, pci:0000:41:00.0",
                why="it is the first that opens",
                device="pci:0000:41:00.0",
                **CHOOSE,
            ),
        ],
    ),
    "it opens and does not execute": (
        answered({"DSP": FAILS, "CPU": RUNS}),
        [IDLE, fails("DSP (it opens first)", "RuntimeError: no lld")],
    ),
    "without an error": (
        answered({"DSP": {"opens": True}, "CPU": RUNS}),
        [IDLE, fails("DSP (it opens first)", "no error was given")],
    ),
    "the one that is named": (
        answered({"NV": CLOSED, "CPU": RUNS}, CARD, DEV="NV"),
        [IDLE, fails("NV (DEV=NV names it)", "OSError: no driver")],
    ),
    "a name that there is not": (
        answered({"CPU": RUNS}, DEV="FOO"),
        [IDLE, fails("FOO (DEV=FOO names it)", "it has no backend of that name")],
    ),
    "on the processor beside cards": (
        answered({"NV": CLOSED, "AMD": CLOSED, "CPU": RUNS}, CARD, SECOND),
        [USED, on_cpu("2 accelerators", DRIVER, evidence=DRIVER)],
    ),
    "beside a card of no backend": (
        answered({"CPU": RUNS}, CARD),
        [USED, on_cpu("1 accelerator", "it has no backend for hardware of that vendor")],
    ),
    "on the processor, as named": (
        answered({"CPU": RUNS}, CARD, DEV="CPU"),
        [
            USED,
            found(
                "default",
                what="tinygrad executes on CPU, cpu:0",
                why="DEV=CPU names it",
                device="cpu:0",
                variable="DEV",
                **CHOOSE,
            ),
        ],
    ),
    "on no hardware": (
        answered({"CPU": RUNS}, CARD, DEV="PYTHON"),
        [
            IDLE,
            found(
                "default",
                what="tinygrad executes on PYTHON, which is no hardware",
                why="DEV=PYTHON names it",
                variable="DEV",
                **CHOOSE,
            ),
        ],
    ),
    "one ended the process": (
        answered({"NV": {"opens": None, "broke": True, "error": KILLED}, "CPU": RUNS}, CARD),
        [
            USED,
            found(
                "backend-broke",
                what="tinygrad's backend NV broke its process",
                why=KILLED,
                fix="set DEV to another backend, or repair what NV needs",
                variable="DEV",
                evidence=KILLED,
            ),
            on_cpu("1 accelerator", f"NV: {KILLED}", evidence=f"NV: {KILLED}"),
        ],
    ),
    "one of two cards, unknown which": (
        answered({"NV": RUNS, "CPU": RUNS}, CARD, SECOND),
        [
            IDLE,
            found(
                "default",
                what="tinygrad executes on NV",
                why="it is the first that opens",
                **CHOOSE,
            ),
            found(
                "unmatched", why="NV does not report which of 2 nvidia devices it uses", **UNMATCHED
            ),
        ],
    ),
    "a card that the bus does not show": (
        answered({"NV": RUNS, "CPU": RUNS}, RADEON, DEV="CPU"),
        [
            USED,
            found(
                "default",
                what="tinygrad executes on CPU, cpu:0",
                why="DEV=CPU names it",
                device="cpu:0",
                variable="DEV",
                **CHOOSE,
            ),
            found("unmatched", why="the bus shows no nvidia device that NV could use", **UNMATCHED),
        ],
    ),
    "a variable on which it fails": (
        answered({"CPU": RUNS}, DEBUG="true"),
        [
            IDLE,
            found(
                "variable-breaks",
                what="tinygrad fails in this environment",
                why="DEBUG='true' is no number, and tinygrad reads it as one",
                fix="unset DEBUG, or give it the value that tinygrad expects",
                severity="error",
                variable="DEBUG",
            ),
        ],
    ),
}


@pytest.mark.parametrize(("lines", "expected"), CASES.values(), ids=CASES)
def test_answers_become(lines: list[Any], expected: list[Any]) -> None:
    assert lines == expected


def test_where_none_executes_the_processors_own_error_is_the_reason() -> None:
    """At most 300 letters of it, and that it gave up; nothing of cards."""
    closed: Answer = {"opens": False, "error": "e" * 301}
    with pytest.raises(Unavailable) as raised:
        answered({"CPU": closed, "NV": CLOSED}, CARD, problem="no time")
    sentence = f"no backend of tinygrad executes here; CPU: {'e' * 300}; it gave up: no time"
    assert (raised.value.reason, raised.value.code, raised.value.fix) == (
        sentence,
        "no-usable-backend",
        "install clang, which tinygrad compiles for the CPU with",
    )


def test_a_card_with_mig_instances_behind_the_first_is_not_listed(tmp_path: Path) -> None:
    places: Any = [{"pci": "0000:41:00.0"}, {"pci": "0000:42:00.0"}]
    driver = tmp_path / "proc" / "driver" / "nvidia"
    for minor, address in enumerate(("0000:41:00.0", "0000:42:00.0")):
        (driver / "gpus" / address).mkdir(parents=True)
        facts = f"Model: \t\t NVIDIA A100\nDevice Minor: \t {minor}\n"
        (driver / "gpus" / address / "information").write_text(facts)
        (driver / "capabilities" / f"gpu{minor}" / "mig").mkdir(parents=True)
    answers = Answers()
    answers.backends["NV"] = {**RUNS, "places": places}
    request = Request(Machine(str(tmp_path)), [CARD, SECOND])

    def listed() -> list[str]:
        return [one["ids"][0] for one in lines(answers, ABOUT, request) if "ids" in one]

    assert listed() == ["pci:0000:41:00.0", "pci:0000:42:00.0"]
    (driver / "capabilities" / "gpu1" / "mig" / "gi3").mkdir()
    assert listed() == ["pci:0000:41:00.0"]
