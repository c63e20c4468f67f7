"""Equal devices compared: who has less is named with both numbers, and a class never is."""

from __future__ import annotations

from copy import deepcopy
from functools import cache
from typing import Any

import pytest
import recorded
from reports import report_of_recording

from probe_core.doctor.check import Request
from probe_core.doctor.checks.devices import links, siblings
from probe_core.machine import Machine
from probe_core.readiness.siblings import differences, lone_links

H100 = "dgx-h100--8x-nvidia-h100-80gb-hbm3"
FULL: dict[str, Any] = {
    "name": "NVIDIA H100 80GB HBM3",
    "power_state": "active",
    "memory": {"kind": "dedicated", "total": 85520809984},
    "links": [{"kind": "pcie", "local_width": 16, "local_max_width": 16, "local_generation": 5}],
    "processes": 1,
    "extra": {"nvlink": {"links": 18, "active": 18}},
    "clocks": {"max_mhz": 1980.0, "memory_max_mhz": 2619.0},
    "ecc": {"enabled": True, "pending": True, "remapped": 0},
    "power": {
        **{"limit_watts": 700.0, "default_watts": 700.0, "max_watts": 700.0, "reasons": []},
    },
}


@cache
def _machine() -> dict[str, Any]:
    return report_of_recording(H100)


def report(number: int = 8, *, changed: dict[int, dict[str, Any]] | None = None) -> dict[str, Any]:
    """Return a report of so many H100, some of them with other fields."""
    whole = deepcopy(_machine())
    cards = [device for device in whole["devices"] if device["kind"] == "gpu"][:number]
    assert len(cards) == number
    for place, card in enumerate(cards):
        card.update(deepcopy(FULL))
        card.update((changed or {}).get(place, {}))
    whole["devices"] = cards
    return whole


def findings(document: dict[str, Any]) -> list[dict[str, Any]]:
    request = Request(Machine("/nonexistent", {}, os="linux"), document)  # type: ignore[arg-type]
    return [finding for check in (siblings, links) for finding in check.run(request)["findings"]]


def sentences(document: dict[str, Any]) -> list[str]:
    return [difference.sentence for difference in differences(document["devices"])]


LESS: dict[str, tuple[dict[str, Any], str, str]] = {
    "lanes": (
        {"links": [{"kind": "pcie", "local_width": 8, "local_max_width": 8}], "processes": 0},
        "PCIe ×8, its 7 siblings ×16",
        "check slot, riser and bifurcation",
    ),
    "generation": (
        {"links": [{"kind": "pcie", "local_width": 16, "local_generation": 3}]},
        "PCIe generation 3, its 7 siblings 5",
        "check riser and cable",
    ),
    "links": (
        {"extra": {"nvlink": {"links": 18, "active": 17}}},
        "NVLinks active 17, its 7 siblings 18",
        "check its bridge or baseboard",
    ),
    "memory": (
        {"memory": {"kind": "dedicated", "total": 68719476736}},
        "memory 64 GiB, its 7 siblings 79.6 GiB",
        "compare ECC, partitions and firmware",
    ),
    "clock": (
        {"clocks": {"max_mhz": 1755.0, "memory_max_mhz": 2619.0}},
        "highest clock 1755 MHz, its 7 siblings 1980 MHz",
        "compare firmware and settings",
    ),
    "memory clock": (
        {"clocks": {"max_mhz": 1980.0, "memory_max_mhz": 1593.0}},
        "highest memory clock 1593 MHz, its 7 siblings 2619 MHz",
        "compare firmware and settings",
    ),
    "ECC": (
        {"ecc": {"enabled": False, "pending": False, "remapped": 0}},
        "ECC off, its 7 siblings on",
        "-e 1`, then reset the GPU",
    ),
    "rows": (
        {"ecc": {"enabled": True, "pending": True, "remapped": 4}},
        "replaced memory rows 4, its 7 siblings 0",
        "have the card replaced when rows run out",
    ),
    "power": (
        {"power": {"limit_watts": 500.0, "default_watts": 700.0, "max_watts": 700.0}},
        "power limit 500 W, its 7 siblings 700 W",
        "-pl 700`",
    ),
}


@pytest.mark.parametrize("name", LESS)
def test_the_one_that_has_less_is_named_with_both_numbers(name: str) -> None:
    changed, sentence, fix = LESS[name]
    document = report(changed={2: changed})
    (found,) = findings(document)
    assert (found["code"], found["severity"]) == ("unlike-siblings", "info")
    assert (found["device"], found["evidence"]) == (document["devices"][2]["id"], sentence)
    assert fix in found["fix"]


@pytest.mark.parametrize("name", LESS)
def test_a_whole_class_in_one_state_is_no_hint(name: str) -> None:
    changed = LESS[name][0]
    assert findings(report(changed=dict.fromkeys(range(8), changed))) == []


@pytest.mark.parametrize("name", LESS)
def test_two_alike_and_two_others_are_no_norm(name: str) -> None:
    assert sentences(report(4, changed=dict.fromkeys((0, 1), LESS[name][0]))) == []


@pytest.mark.parametrize("name", LESS)
def test_of_two_nobody_knows_which_is_right(name: str) -> None:
    assert sentences(report(2, changed={0: LESS[name][0]})) == []


def test_two_that_agree_are_enough() -> None:
    assert sentences(report(3, changed={1: LESS["lanes"][0]})) == ["PCIe ×8, its 2 siblings ×16"]


def test_two_of_eight_are_told_once_each() -> None:
    found = findings(report(changed=dict.fromkeys((1, 5), LESS["links"][0])))
    assert [finding["evidence"] for finding in found] == [
        "NVLinks active 17, its 6 siblings 18"
    ] * 2


def test_what_was_not_read_is_neither_less_nor_the_norm() -> None:
    unread: dict[str, Any] = {
        "memory": {"kind": None, "total": None},
        "links": [],
        "extra": None,
        "clocks": None,
        "ecc": None,
        "power": None,
    }
    assert findings(report(changed={3: unread})) == []
    assert findings(report(changed=dict.fromkeys(range(2, 8), unread))) == []
    lonely = dict.fromkeys(range(2, 8), unread)
    assert sentences(report(changed={**lonely, 0: LESS["lanes"][0]})) == []


def test_a_sleeping_device_shows_no_lanes() -> None:
    asleep = {**LESS["lanes"][0], "power_state": "suspended"}
    assert sentences(report(changed={0: asleep})) == []


def test_what_the_device_itself_tells_is_told_once() -> None:
    capped = deepcopy(LESS["power"][0])
    step = {"step": "responding", "status": "broken", "code": "power-capped", "evidence": "x"}
    capped["readiness"] = {"state": "limited", "broken": "responding", "steps": [step]}
    assert sentences(report(changed={0: capped})) == []


def test_another_product_and_another_board_are_no_siblings() -> None:
    other = {**LESS["memory"][0], "name": "NVIDIA H100 PCIe"}
    assert sentences(report(changed={0: other})) == []
    board = {**LESS["clock"][0], "pci": {"id": "10de:2330", "subsystem": "1043:0001"}}
    assert sentences(report(changed={0: board})) == []


def test_a_driver_reserves_some_memory_of_one() -> None:
    slightly = {"memory": {"kind": "dedicated", "total": 85520809984 - (512 << 20)}}
    assert sentences(report(changed={0: slightly})) == []


def test_instances_are_compared_with_nothing() -> None:
    changed = {place: {"parent": "pci:0000:00:01.0"} for place in range(8)}
    assert sentences(report(changed={**changed, 0: {**changed[0], **LESS["memory"][0]}})) == []


@pytest.mark.parametrize(
    ("states", "expected"),
    [
        ([(16, 18)], ["16 of 18 NVLinks are active"]),
        ([(0, 18)], []),  # no bridge, or alone in a virtual machine
        ([(18, 18)], []),
        ([(2, 4), (2, 4)], []),
        ([(4, 4), (3, 4)], ["3 of 4 NVLinks are active"]),
    ],
)
def test_the_links_of_few_cards(states: list[tuple[int, int]], expected: list[str]) -> None:
    changed = {
        place: {"extra": {"nvlink": {"links": count, "active": active}}}
        for place, (active, count) in enumerate(states)
    }
    found = findings(report(len(states), changed=changed))
    assert [finding["evidence"] for finding in found] == expected
    assert {finding["code"] for finding in found} <= {"nvlink-inactive"}
    assert {finding["severity"] for finding in found} <= {"info"}


@pytest.mark.parametrize("name", recorded.names())
def test_the_devices_of_a_recorded_machine_are_alike(name: str) -> None:
    devices = report_of_recording(name)["devices"]
    assert list(differences(devices)) == []
    assert list(lone_links(devices)) == []


def test_odd_facts_of_a_plugin_raise_nothing() -> None:
    odd = {"extra": {"nvlink": {"links": "18", "active": None}}}
    assert findings(report(changed={0: odd, 1: {"extra": {"nvlink": 3}}})) == []


@pytest.mark.parametrize(
    "idle",
    [
        {"processes": 0},
        {"power": {"limit_watts": 700.0, "default_watts": 700.0, "reasons": ["idle"]}},
        {"power": {"limit_watts": 700.0, "default_watts": 700.0, "reasons": None}},
        {"power_state": "suspended"},
    ],
)
def test_the_link_of_an_idle_device_is_slow_by_design(idle: dict[str, Any]) -> None:
    slow = {"links": [{"kind": "pcie", "local_width": 16, "local_generation": 1}], **idle}
    assert sentences(report(changed={2: slow})) == []
