"""Checks what a recording keeps of probers that asked more than files, and of device nodes.

Structure and bounds alone: what a device's fields hold is checked when the answer is replayed, by
the code that checks a live one.
"""

from __future__ import annotations

from probe_core.model.ids import ID_LIMIT, STATUSES, is_prober_name
from probe_core.recording.paths import (
    MAX_ACCESS,
    MAX_ANSWERS,
    MAX_FRAMES,
    MAX_LIST,
    MAX_SENTENCE,
    BadRecording,
    check_path,
    shown,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from probe_core.model.document import Frame, RecordedAnswer

    Check = Callable[[object], bool]

_RESERVED = ("bus", "cpu", "fallback")  # the core's own, which read files on every machine

_WORD_LIMIT = 32
"""Characters of an answer of access(2): the longest name of an error number has 15."""


def check_answers(value: object) -> dict[str, RecordedAnswer]:
    """Return the value of `answers`; raises `BadRecording`."""
    if not isinstance(value, dict) or len(value) > MAX_ANSWERS:
        raise BadRecording(f"its answers are no table of at most {MAX_ANSWERS} probers")
    return {_prober(name): _answer(name, answer) for name, answer in value.items()}


def check_access(value: object) -> dict[str, str]:
    """Return the value of `access`, paths of device nodes to words; raises `BadRecording`."""
    if not isinstance(value, dict) or len(value) > MAX_ACCESS:
        raise BadRecording(f"its access is no table of at most {MAX_ACCESS} paths")
    for path, word in value.items():
        if not check_path(path).startswith("/dev/"):
            raise BadRecording(f"its access names {shown(path)}, which is no device node")
        plain = isinstance(word, str) and word.isascii() and word.isalnum()
        if not plain or len(word) > _WORD_LIMIT:
            raise BadRecording(f"its access to {shown(path)} is not ok, missing or an error's name")
    return dict(value)


def _prober(name: object) -> str:
    if not (isinstance(name, str) and is_prober_name(name)):
        raise BadRecording(f"{shown(name)} is no name of a prober, and has an answer")
    if name.lower() in _RESERVED:
        raise BadRecording(f"the prober {shown(name)} has an answer, and always reads files")
    return name


def _is_text(value: object) -> bool:
    return isinstance(value, str) and len(value) <= MAX_SENTENCE


def _is_id(value: object) -> bool:
    return isinstance(value, str) and 0 < len(value) <= ID_LIMIT


def _is_number(value: object) -> bool:
    # A bool is an int to Python; no seconds or milliseconds of a run are beyond a day's.
    return type(value) in (int, float) and 0 <= value < 1e8  # type: ignore[operator]


def _list_of(check: Check) -> Check:
    return lambda value: (
        isinstance(value, list) and len(value) <= MAX_LIST and all(map(check, value))
    )


_ANSWER: dict[str, Check] = {
    "distribution": _is_text,
    "version": _is_text,
    "api": _is_text,
    "priority": lambda value: type(value) is int and 1 <= value <= 999,
    "deadline_s": _is_number,
    "elapsed_ms": _is_number,
    "vendors": _list_of(_is_text),
    "frames": lambda value: isinstance(value, list) and len(value) <= MAX_FRAMES,
}

_FACTS: dict[str, Check] = {
    "code": _is_text,
    "fix": _is_text,
    "phase": lambda value: value in ("start", "import", "call", "cleanup"),
    "signal": _is_text,
    "exit_status": lambda value: type(value) is int and 0 <= value < 1 << 32,
    "stuck_at": _is_text,
    "avoided": _list_of(_is_id),
}


def _are_facts(value: object) -> bool:
    return isinstance(value, dict) and all(
        check(value[name]) for name, check in _FACTS.items() if name in value
    )


_FRAMES: dict[str, dict[str, Check]] = {
    "device": {"device": lambda value: isinstance(value, dict)},
    "finding": {"finding": lambda value: isinstance(value, dict)},
    "rejected": {"reason": _is_text},
    "unresponsive": {
        "device": _is_id,
        "ids": _list_of(_is_id),
        "how": lambda value: value in ("hangs", "crashes", "raises"),
        "reason": _is_text,
    },
    "end": {
        "status": lambda value: isinstance(value, str) and value in STATUSES,
        "reason": lambda value: value is None or _is_text(value),
        "facts": _are_facts,
        "abandoned": lambda value: type(value) is bool,
    },
}
"""Kind of a frame to what it must have."""

_OPTIONAL: dict[str, dict[str, Check]] = {"unresponsive": {"stuck_at": _is_text}}


def _answer(name: str, value: object) -> RecordedAnswer:
    table = _table(f"the answer of {name}", value, _ANSWER)
    parts: list[object] = table["frames"]  # type: ignore[assignment]
    frames = [_frame(f"frame {number} of {name}", part) for number, part in enumerate(parts)]
    if [frame["kind"] for frame in frames[-1:]] != ["end"]:
        raise BadRecording(f"the answer of {name} does not close with its end")
    if any(frame["kind"] == "end" for frame in frames[:-1]):
        raise BadRecording(f"the answer of {name} has two ends")
    status = frames[-1]["status"]
    if status != "ok" and not frames[-1]["reason"]:
        raise BadRecording(f"the answer of {name} is {status}, without a reason")
    return {**table, "frames": frames}  # type: ignore[typeddict-item]


def _frame(place: str, value: object) -> Frame:
    kind = value.get("kind") if isinstance(value, dict) else None
    if not isinstance(value, dict) or not isinstance(kind, str) or kind not in _FRAMES:
        raise BadRecording(f"{place} is of no known kind: {shown(kind)}")
    optional = {key: check for key, check in _OPTIONAL.get(kind, {}).items() if key in value}
    frame: dict[str, object] = {"kind": kind, **_table(place, value, _FRAMES[kind] | optional)}
    if isinstance(facts := frame.get("facts"), dict):
        frame["facts"] = {name: facts[name] for name in _FACTS if name in facts}
    return frame  # type: ignore[return-value]


def _table(place: str, value: object, checks: dict[str, Check]) -> dict[str, object]:
    """Return what `checks` name of a table; other keys are left out."""
    if not isinstance(value, dict):
        raise BadRecording(f"{place} is no table")
    for key, check in checks.items():
        if key not in value or not check(value[key]):
            found = shown(value[key]) if key in value else "nothing"
            raise BadRecording(f"{place}: {key} cannot be {found}")
    return {key: value[key] for key in checks}
