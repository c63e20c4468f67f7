"""What is kept of each answer of nvidia-ml-py, and of what equal boards were asked before."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from probe_nvidia.nvml import Asker, text

SPLIT, POWER, CORES = (
    "nvmlDeviceGetMigMode",
    "nvmlDeviceGetPowerUsage",
    "nvmlDeviceGetNumGpuCores",
)


class NVMLError(Exception):
    """As nvidia-ml-py raises it."""

    def __init__(self, value: object) -> None:
        super().__init__("an error of the driver")
        self.value = value


def undecodable() -> UnicodeDecodeError:
    return UnicodeDecodeError("utf-8", b"caf\xe9", 3, 4, "unexpected end")


class Client:
    """nvidia-ml-py with these answers in turn, under every name but `absent`."""

    def __init__(self, *answers: Any, absent: str = "") -> None:
        self._answers = list(answers)
        self._absent = absent

    def __getattr__(self, name: str) -> Any:
        if name == self._absent:
            raise AttributeError(name)
        return self._answer

    def _answer(self, handle: object, *_: object) -> Any:
        assert handle == "handle"
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def kept(asker: Asker) -> dict[str, Any]:
    """What it noted, without what is empty."""
    state = {
        "unknown": asker.unknown,
        "faults": asker.faults,
        "lost": asker.lost,
        "answers": asker.answers,
        "refused": asker.refused,
        "board": sorted(asker.board),
    }
    return {name: value for name, value in state.items() if value}


def ask(call: str, *answers: Any, absent: str = "", field: str | None = "field") -> Any:
    asker = Asker(Client(*answers, absent=absent), "handle")
    return asker.get(field, call, 7), kept(asker)


def test_what_is_kept_of_an_answer() -> None:
    unsupported = {"unknown": {"field": f"NVML_ERROR_NOT_SUPPORTED from {POWER}"}}
    refused = f"NVML_ERROR_NO_PERMISSION from {POWER}"
    lost = f"NVML_ERROR_GPU_IS_LOST from {POWER}"
    raised = f"{POWER}: ValueError: {'v' * 120}"
    assert [
        ask(POWER, 0),
        ask(CORES, 10496),
        ask(POWER, undecodable()),
        ask(POWER, absent=POWER),
        ask(POWER, NVMLError(3)),
        ask(POWER, NVMLError(3), field=None),
        ask(POWER, NVMLError(4)),
        ask(POWER, NVMLError(15)),
        ask(POWER, NVMLError(999)),
        ask(POWER, NVMLError(999), field=None),
        ask(POWER, NVMLError(True)),
        ask(POWER, ValueError("v" * 121)),
        ask(SPLIT, NVMLError(3)),
        ask(SPLIT, NVMLError(999)),
    ] == [
        (0, {"answers": 1}),
        (10496, {"board": [(CORES, 7)]}),
        (b"caf\xe9", {"answers": 1}),
        (None, {"unknown": {"field": f"this nvidia-ml-py has no {POWER}"}}),
        (None, unsupported),
        (None, {}),
        (None, {"unknown": {"field": refused}, "refused": {POWER}}),
        (None, {"unknown": {"field": lost}, "lost": lost, "faults": {"field": 15}}),
        (
            None,
            {"unknown": {"field": f"NVML_ERROR_UNKNOWN from {POWER}"}, "faults": {"field": 999}},
        ),
        (None, {"faults": {POWER: 999}}),
        (None, {"unknown": {"field": f"{POWER}: NVMLError: an error of the driver"}}),
        (None, {"unknown": {"field": raised}}),
        (
            None,
            {
                "unknown": {"field": f"NVML_ERROR_NOT_SUPPORTED from {SPLIT}"},
                "board": [(SPLIT, 7)],
            },
        ),
        (
            None,
            {"unknown": {"field": f"NVML_ERROR_UNKNOWN from {SPLIT}"}, "faults": {"field": 999}},
        ),
    ]


def second(call: str, first: Any, then: Any) -> Any:
    """Ask two equal boards for the same."""
    one = Asker(Client(first), "handle")
    one.get("field", call)
    other = Asker(Client(then), "handle")
    other.board = one.board
    return other.get("field", call), other.unknown


def test_equal_boards_are_asked_once_for_what_their_design_decides() -> None:
    lack = {"field": f"NVML_ERROR_NOT_SUPPORTED from {SPLIT}"}
    assert second(CORES, 10496, 1) == (10496, {})
    assert second(SPLIT, NVMLError(3), 1) == (None, lack)
    # One of them may be split, drawing power, or in trouble, and the other not.
    assert second(SPLIT, 1, 0) == (0, {})
    assert second(SPLIT, NVMLError(999), 0) == (0, {})
    assert second(POWER, 300, 200) == (200, {})
    assert second(POWER, NVMLError(3), 200) == (200, {})


def test_nothing_more_is_asked_of_a_lost_device() -> None:
    asker = Asker(Client(NVMLError(15)), "handle")
    assert asker.get("one", POWER) is None
    assert asker.get("two", SPLIT) is None
    reason = f"NVML_ERROR_GPU_IS_LOST from {POWER}"
    assert (asker.unknown, asker.lost_code) == ({"one": reason, "two": reason}, 15)


def first(*answers: Any, absent: str = "") -> Any:
    asker = Asker(Client(*answers, absent=absent), "handle")
    return asker.first("field", ("newer",), ("older", 1)), asker.unknown


def test_the_older_call_is_asked_where_the_newer_is_missing() -> None:
    assert first(5) == (5, {})
    assert first(5, absent="newer") == (5, {})
    assert first(NVMLError(13), 5) == (5, {})
    assert first(NVMLError(13), NVMLError(13)) == (
        None,
        {"field": "NVML_ERROR_FUNCTION_NOT_FOUND from older"},
    )
    assert first(NVMLError(3)) == (None, {"field": "NVML_ERROR_NOT_SUPPORTED from newer"})
    assert first(NVMLError(15)) == (None, {"field": "NVML_ERROR_GPU_IS_LOST from newer"})


def test_a_count_of_zero_is_none() -> None:
    asker = Asker(Client(0, 8), "handle")
    assert (asker.number("field", "call"), asker.number("other", "call")) == (None, 8)
    assert asker.unknown == {"field": "call answered 0"}


def test_field_values_that_the_device_lacks_are_left_out() -> None:
    answers = [
        SimpleNamespace(nvmlReturn=code, value=SimpleNamespace(uiVal=count))
        for code, count in ((0, 0), (3, 1), (0, 7))
    ]
    asker = Asker(Client(answers, NVMLError(13)), "handle")
    assert asker.values(1, 2, (3, 0)) == {1: 0, (3, 0): 7}
    assert asker.values(1) is None


def test_names_are_text() -> None:
    names = [b"A100\0rest", bytearray(b" A100 "), b"caf\xe9", " A100 ", "  ", b"", None, 7]
    assert [text(name) for name in names] == ["A100", "A100", "caf�", "A100", *[None] * 4]
