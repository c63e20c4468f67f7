"""What a refusal says of many devices, and in which order devices stand."""

from __future__ import annotations

from typing import Any

from probe_core.model.ids import NO_PLACE
from probe_core.selection.candidates import Candidates, _rank
from probe_core.selection.choose import _with_memory
from probe_core.selection.refusals import Refusals


def device(number: int, **fields: Any) -> Any:
    name = f"pci:0000:{number:02x}:00.0"
    shown: Any = {"name": f"GPU {number}", "memory": None, "visibility": {"cuda": None}}
    return {"id": name, "ids": [name], **shown, **fields}


def test_eight_devices_are_named_and_the_others_counted() -> None:
    choice = Candidates("cuda", [])
    choice.visible = [device(number) for number in range(1, 11)]
    choice.unordered = {"pci:0000:02:00.0": {}}  # type: ignore[typeddict-item]
    for number in range(11, 21):
        hidden: Any = {"visible": False, "index": None, "reason": f"why {number}",
                       "variable": None, "step": None}  # fmt: skip
        choice.hidden[f"pci:0000:{number:02x}:00.0"] = hidden
    lines = str(Refusals("two", choice).error("there is one", "few", "buy one")).splitlines()
    named = [f"{'?' if at == 1 else at}: GPU {at + 1} (pci:0000:{at + 1:02x}:00.0)"
             for at in range(8)]  # fmt: skip
    assert lines == [
        "asked for two: there is one",
        f"visible to cuda: {'; '.join(named)} and 2 more",
        "hidden: " + "; ".join(f"pci:0000:{n:02x}:00.0 (why {n})" for n in range(11, 19)),
        "what would work: buy one",
    ]
    choice.visible, choice.hidden = [device(1, name=None)], {}
    assert str(Refusals("two", choice).error("there is one", "few")).splitlines()[1:] == [
        "visible to cuda: 0: pci:0000:01:00.0"
    ]
    choice.visible = []
    assert str(Refusals("two", choice).error("none", "few")).endswith("visible to cuda: nothing")


def test_devices_stand_by_their_number_and_without_one_by_their_address() -> None:
    devices = [device(4), device(3), device(2), device(1)]
    devices.append({"id": "dt:/gpu", "ids": ["dt:/gpu"]})
    indexes = {"pci:0000:04:00.0": 0, "pci:0000:03:00.0": 1}
    ranked = sorted(devices, key=lambda one: _rank(one, indexes))
    assert [one["id"] for one in ranked] == [
        *(f"pci:0000:0{number}:00.0" for number in (4, 3, 1, 2)), "dt:/gpu"
    ]  # fmt: skip
    assert _rank(devices[0], indexes) == (False, 0, (0, 4, 0, 0))
    assert _rank(devices[-1], indexes) == (True, 0, NO_PLACE)


def test_a_device_whose_free_memory_is_not_known_has_what_is_usable() -> None:
    choice = Candidates("cuda", [])
    free = [None, 0, 4, 5]
    choice.visible = [
        device(at, memory={"kind": "dedicated", "total": 8, "usable": 8, "free": size})
        for at, size in enumerate(free)
    ]
    assert [choice.visible.index(one) for one in _with_memory(choice, 5)] == [0, 3]
    assert [choice.visible.index(one) for one in _with_memory(choice, 1)] == [0, 2, 3]
    assert _with_memory(choice, None) == choice.visible
