"""What should be here against what is: settings, the saved baseline, the verdict."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from reports import plugins_together, recorded_machine, report_of, report_of_recording
from trees import Tree

from probe_core.config import BASELINE, Config
from probe_core.machine import Machine
from probe_core.model.expected import read
from probe_core.model.machine_types import known_types, of_type
from probe_core.model.verdict import NodeVerdict, is_integrated
from probe_core.pipeline.expected import compare, is_container_without_id, keys_of, saved_devices
from probe_core.readiness.vacant import bus_sign
from probe_core.setting_values import load_config

AMBIGUOUS = "desktop--intel-arc-a770-of-unknown-memory"
DGX = "dgx-h100--8x-nvidia-h100-80gb-hbm3"
DESKTOP = "desktop--nvidia-geforce-rtx-4090-and-intel-uhd-770"


def parts(text: str) -> list[tuple[object, ...]]:
    return [(w.count, w.name, w.memory, w.width, w.nvlinks, w.driver) for w in read(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("8xh100", [(8, "h100", None, None, None, None)]),
        ("8 × NVIDIA  H100 ", [(8, "NVIDIA H100", None, None, None, None)]),
        ("8 x h100", [(8, "h100", None, None, None, None)]),
        ("7900xtx + 2x 7900 xtx", [(1, "7900xtx", *[None] * 4), (2, "7900 xtx", *[None] * 4)]),
        ("rtx 4090", [(1, "rtx 4090", None, None, None, None)]),
        ("4xl40s+1xa2", [(4, "l40s", *[None] * 4), (1, "a2", *[None] * 4)]),
        ("4*l40s + a2", [(4, "l40s", *[None] * 4), (1, "a2", *[None] * 4)]),
        ("1x Ryzen AI Max+ 395", [(1, "Ryzen AI Max+ 395", *[None] * 4)]),
        ("8xh100:80GB", [(8, "h100", 80 << 30, None, None, None)]),
        ("8xh100:memory=80GiB, lanes=x16", [(8, "h100", 80 << 30, 16, None, None)]),
        ("8xh100:nvlink=18,driver=580", [(8, "h100", None, None, 18, "580")]),
        ("h" * 500, [(1, "h" * 500, *[None] * 4)]),
        ("none", []),
        (" None ", []),
        ("p5.48xlarge", [(8, "H100", *[None] * 4)]),
        ("standard_nd96isr_mi300x_v5", [(8, "MI300X", *[None] * 4)]),
        ("a3-ultragpu-8g:nvlink=18", [(8, "H200", None, None, 18, None)]),
        ("2x BM.GPU.H100.8", [(16, "H100", *[None] * 4)]),
        ("gpu_8x_h100_sxm5 + 1xt4", [(8, "H100", *[None] * 4), (1, "t4", *[None] * 4)]),
        ("gd-8xh200ib-i128", [(8, "H200", *[None] * 4)]),
        ("gb200-4x", [(4, "GB200", *[None] * 4)]),
        ("p9.48xlarge", [(1, "p9.48xlarge", *[None] * 4)]),
    ],
)
def test_an_expectation_is_read(text: str, expected: list[tuple[object, ...]]) -> None:
    assert parts(text) == expected


def test_mig_instances_have_a_count_and_a_profile() -> None:
    (wanted,) = read("1xa100:mig=7x1g.5gb")
    assert (wanted.instances, wanted.profile) == (7, "1g.5gb")
    (wanted,) = read("1xa100:mig=3g.20gb")
    assert (wanted.instances, wanted.profile) == (1, "3g.20gb")
    (wanted,) = read("1xa100:mig=none")
    assert (wanted.instances, wanted.profile) == (0, None)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "a name is missing; write [COUNTx]NAME"),
        ("8xh100 + ", "a name is missing"),
        ("0xh100", "0 of h100: write none for none at all"),
        ("h100:speed=3", "'speed' is nothing that an accelerator has: known: driver"),
        ("h100:lane=3", "did you mean 'lanes'?"),
        ("h100:80", None),
        ("h100:many", "is no amount of memory"),
        ("h100:mig=", "mig= has no value; MIG instances of each card"),
        ("h100:driver=", "driver= has no value"),
        ("h100:lanes=wide", "lanes=wide is no whole number"),
        ("h" * 501, "longer than 500 characters"),
    ],
)
def test_what_cannot_be_read_is_said(text: str, sentence: str | None) -> None:
    if sentence is None:  # bytes
        assert read(text)[0].memory == 80
        return
    with pytest.raises(ValueError, match=r".") as raised:
        read(text)
    assert sentence in str(raised.value)


def settings(text: str, environ: dict[str, str] | None = None) -> Config:
    arguments = {} if environ else {"expect": text}
    return load_config(arguments, environ or {})[0]


def chips() -> Any:
    from probe_core.resolve import open_chipdb

    return open_chipdb([], ())[0]


def outcome(
    name: str, text: str, *plugins: str
) -> tuple[dict[str, Any], list[tuple[str, str, str | None]]]:
    report = report_of_recording(name, *plugins)
    document, findings = compare(
        settings(text), Machine(), report["node"], report["devices"], chips(), unread
    )
    return dict(document or {}), [(f["code"], f["severity"], f["device"]) for f in findings]


def unread(path: str, limit: int) -> bytes:
    raise AssertionError(path)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (DGX, "8xh100"),
        (DGX, "8x H100 SXM"),
        (DGX, "8x nvidia/h100-sxm5-80gb"),
        (DGX, "8x nvidia"),
        (DGX, "6xgpu + 2xh100"),
        (DGX, "8xh100:80GB"),
        (DGX, "p5.48xlarge"),
        (DESKTOP, "1x RTX 4090"),
        (DESKTOP, "1xgpu + 1x RTX 4090"),  # the chip's name takes its card first
        (DESKTOP, "1x RTX 4090:24GB"),
        ("desktop--amd-radeon-rx-7900-xtx", "7900 xtx"),
        ("server--8x-amd-instinct-mi300x", "8x MI300X:192GB"),
        ("server--8x-intel-gaudi-2", "8x gaudi2"),
        ("tpu-vm--4x-google-tpu-v5e", "4x tpu v5e"),
        ("dgx-spark--nvidia-gb10", "gb10"),
        ("laptop--amd-radeon-780m-and-npu", "none"),
        ("vm-without-accelerator--cpu", "none"),
    ],
)
def test_what_is_here_is_what_should_be(name: str, text: str) -> None:
    document, findings = outcome(name, text)
    assert findings == []
    assert (document["absent"], document["extra"], document["unlike"]) == ([], [], [])


@pytest.mark.parametrize(
    ("name", "text", "absent", "found"),
    [
        (DGX, "9xh100", [("h100", 1)], ["fewer-than-expected"]),
        (DGX, "8xh200", [("h200", 8)], ["fewer-than-expected", "more-than-expected"]),
        (DGX, "4xh100", [], ["more-than-expected"]),
        (DGX, "4xh100+8xnvidia", [("nvidia", 4)], ["fewer-than-expected"]),
        (DESKTOP, "RTX 4090 D", [("RTX 4090 D", 1)], ["fewer-than-expected", "more-than-expected"]),
        (DESKTOP, "1x RTX 4090 + 1x amd", [("amd", 1)], ["fewer-than-expected"]),
        ("vm-without-accelerator--cpu", "1xt4", [("t4", 1)], ["fewer-than-expected"]),
        (DGX, "8xh1000", [], ["expectation-unusable"]),
        (DGX, "none", [], ["more-than-expected"]),
    ],
)
def test_what_is_not_as_it_should_be_is_found(
    name: str, text: str, absent: list[tuple[str, int]], found: list[str]
) -> None:
    document, findings = outcome(name, text)
    assert [(entry["name"], entry["count"]) for entry in document["absent"]] == absent
    assert [code for code, _, _ in findings] == found
    severities = {"fewer-than-expected": "error"}
    assert all(s == severities.get(code, "warning") for code, s, _ in findings)


@pytest.mark.parametrize(
    ("text", "more"), [("none", " and 4 more"), ("4xh100", ""), ("3xh100", " and 1 more")]
)
def test_four_of_those_that_nobody_expects_are_named(text: str, more: str) -> None:
    report = report_of_recording(DGX)
    _, (found,) = compare(
        settings(text), Machine(), report["node"], report["devices"], chips(), unread
    )
    assert found["what"].count(", ") == 3
    assert found["what"].rpartition(")")[2] == more


def test_a_device_without_a_name_is_named_by_its_vendor() -> None:
    report = report_of(recorded_machine(AMBIGUOUS), expect="2xh100", **plugins_together("intel"))
    (found,) = (f for f in report["findings"] if f["code"] == "more-than-expected")
    assert found["what"] == "more is here than expected: intel (pci:0000:0b:00.0)"


def test_a_long_name_that_no_chip_has_is_cut() -> None:
    document, _ = outcome("vm-without-accelerator--cpu", "z" * 81)
    assert [len(name) for name in document["unknown"]] == [80]


def test_nine_tenths_of_the_memory_are_as_much() -> None:
    report: Any = deepcopy(report_of_recording(DGX))
    least = int((80 << 30) * 0.9)
    for total, unlike in ((least, []), (least - (1 << 20), ["72.0 GiB"])):
        report["devices"][0]["memory"]["total"] = total
        document, _ = compare(
            settings("8xh100:80GB"), Machine(), report["node"], report["devices"], chips(), unread
        )
        assert document is not None
        assert [entry["found"] for entry in document["unlike"]] == unlike


def test_a_chip_s_own_memory_stands_for_what_was_not_read() -> None:
    report: Any = deepcopy(report_of_recording(DGX))
    for device in report["devices"]:
        device["memory"]["total"] = None
    for text, unlike in (("8xh100:80GB", []), ("8xh100:94GB", ["80 GiB"] * 8)):
        document, _ = compare(
            settings(text), Machine(), report["node"], report["devices"], chips(), unread
        )
        assert document is not None
        assert [entry["found"] for entry in document["unlike"]] == unlike


@pytest.mark.parametrize(
    ("kind", "chip", "is_card"),
    [
        ("dedicated", None, True),
        ("unified", "nvidia/h100-sxm5-80gb", False),
        (None, "nvidia/h100-sxm5-80gb", True),
        (None, None, False),
    ],
)
def test_nobody_expects_a_processor_s_own_graphics(
    kind: str | None, chip: str | None, is_card: bool
) -> None:
    device: Any = deepcopy(report_of_recording(DGX)["devices"][0])
    assert device["kind"] == "gpu"
    device["memory"]["kind"], device["chip"]["id"] = kind, chip
    node = report_of_recording(DGX)["node"]
    document, _ = compare(settings("none"), Machine(), node, [device], chips(), unread)
    assert document is not None
    assert document["extra"] == [device["id"]] * is_card


def test_without_chipdb_vendors_and_kinds_can_be_expected() -> None:
    report = report_of_recording(DGX)
    found = [
        compare(settings(text), Machine(), report["node"], report["devices"], None, unread)[1]
        for text in ("8x nvidia", "8xgpu")
    ]
    assert found == [[], []]


def test_less_memory_than_the_name_says_is_unlike() -> None:
    document, findings = outcome(DGX, "8xh100:94GB")
    assert len(document["unlike"]) == 8
    assert document["unlike"][0] == {
        "device": "pci:0000:1b:00.0",
        "fact": "memory",
        "expected": "94 GiB",
        "found": "80 GiB",
    }
    assert {entry[:2] for entry in findings} == {("unlike-expected", "error")}


def test_the_driver_is_compared_by_its_parts() -> None:
    assert outcome(DGX, "8xh100:driver=580", "nvidia")[1] == []
    assert outcome(DGX, "8xh100:driver=580.95", "nvidia")[1] == []
    assert len(outcome(DGX, "8xh100:driver=58", "nvidia")[1]) == 8


def test_a_variable_says_what_should_be_here() -> None:
    report = report_of_recording(DGX)
    config = settings("", {"PROBE_EXPECT": "9xh100"})
    document, (found,) = compare(
        config, Machine(), report["node"], report["devices"], chips(), unread
    )
    assert document is not None
    assert document["source"] == "PROBE_EXPECT"
    assert (found["setting"], found["variable"]) == ("expect", "PROBE_EXPECT")
    assert found["why"] == "expected: 9xh100 (PROBE_EXPECT)"


def test_a_node_on_which_all_is_absent_is_bad() -> None:
    report: Any = deepcopy(report_of_recording("vm-without-accelerator--cpu"))
    assert NodeVerdict(report).state == "none"
    document, findings = compare(
        settings("2xt4"), Machine(), report["node"], report["devices"], chips(), unread
    )
    report["expected"], report["findings"] = document, [*report["findings"], *findings]
    verdict = NodeVerdict(report)
    assert (verdict.state, verdict.absent, verdict.failed) == ("bad", 2, True)
    assert verdict.cause == "fewer-than-expected"


# The saved baseline.


def against(
    saved: list[dict[str, Any]],
    devices: list[Any],
    tmp_path: Path,
    node: str | None = "a",
    was: str | None = "a",
) -> tuple[Any, list[tuple[str, str, str | None]]]:
    content = {"schema": 1, "saved": "2026-10-01T00:00:00Z", "node": was, "accelerators": saved}
    machine = Machine(environ={"XDG_STATE_HOME": str(tmp_path)})

    def written(path: str, limit: int) -> bytes:
        assert path == str(tmp_path / "probe-core" / BASELINE)
        return json.dumps(content).encode()

    document, findings = compare(Config(), machine, {"id": node}, devices, chips(), written)  # type: ignore[arg-type, typeddict-item]
    return document, [(f["code"], f["severity"], f["device"]) for f in findings]


@pytest.fixture
def cards() -> list[Any]:
    return [d for d in deepcopy(report_of_recording(DGX))["devices"] if d["kind"] == "gpu"]


def test_what_was_saved_is_here(cards: list[Any], tmp_path: Path) -> None:
    document, findings = against(saved_devices(cards), cards, tmp_path)
    assert findings == []
    assert (document["source"], document["count"], document["absent"]) == ("baseline", 8, [])


def test_a_card_that_is_gone_is_named_by_its_slot(cards: list[Any], tmp_path: Path) -> None:
    saved = saved_devices(cards)
    gone = cards.pop(3)
    saved[3]["port"] = "no address"  # this computer's own bus is not looked at
    document, findings = against(saved, cards, tmp_path)
    assert findings == [("off-the-bus", "error", gone["id"])]
    assert document["absent"] == [
        {
            "name": "NVIDIA H100 80GB HBM3",
            "count": 1,
            "device": gone["id"],
            "place": gone["id"].removeprefix("pci:"),
            "port": "no address",
            "sign": None,
        }
    ]


def test_a_card_in_another_slot_is_no_loss(cards: list[Any], tmp_path: Path) -> None:
    saved = saved_devices(cards)
    cards[0]["id"] = "pci:0000:99:00.0"
    cards[0]["ids"][0] = "pci:0000:99:00.0"
    assert against(saved, cards, tmp_path)[1] == []


def test_cards_exchanged_for_equals_are_no_loss(cards: list[Any], tmp_path: Path) -> None:
    saved = saved_devices(cards)
    for number, card in enumerate(cards):
        card["id"], card["ids"] = f"pci:0000:a{number}:00.0", [f"pci:0000:a{number}:00.0"]
    assert against(saved, cards, tmp_path)[1] == []


def test_a_card_more_than_was_saved_is_no_finding(cards: list[Any], tmp_path: Path) -> None:
    saved = saved_devices(cards[1:])
    document, findings = against(saved, cards, tmp_path)
    assert (document["count"], document["absent"], findings) == (7, [], [])
    assert document["extra"] == [cards[0]["id"]]


def test_a_card_is_found_by_its_uuid_then_its_place_then_its_product(
    cards: list[Any], tmp_path: Path
) -> None:
    """The fifth of memory that one has less shows which one the saved entry was compared with."""
    own, *others = cards
    for card in cards:
        card["memory"]["total"] = 80 << 30
    own["ids"].append("uuid:GPU-1")
    saved = saved_devices([own])[0]
    for card in (own, others[3]):
        card["memory"]["total"] = 64 << 30

    def unlike(entry: dict[str, Any], devices: list[Any]) -> list[str]:
        document, _ = against([entry], devices, tmp_path)
        assert document["absent"] == []
        return [each["device"] for each in document["unlike"]]

    moved = {**own, "id": "pci:0000:99:00.0", "ids": ["pci:0000:99:00.0", "uuid:GPU-1"]}
    assert unlike(saved, [*others[:2], moved]) == [moved["id"]]
    bare = {**saved, "ids": [own["id"]]}
    assert unlike(bare, [*others[:2], own]) == [own["id"]]
    # By another name of the place, and by the place of an entry without a product.
    assert unlike({**bare, "id": "acme:1"}, [*others[:2], own]) == [own["id"]]
    assert unlike({**bare, "model": None, "name": "x"}, [*others[:2], own]) == [own["id"]]
    # Nothing is left but the product: the first of it.
    assert unlike({**bare, "id": "a", "ids": ["a"]}, [*others[:2], own]) == []
    named = {**bare, "id": "a", "ids": ["a"], "model": None}
    assert unlike(named, [others[3], own]) == [others[3]["id"]]
    document, _ = against([{**named, "name": "Other"}], cards, tmp_path)
    assert [entry["device"] for entry in document["absent"]] == ["a"]


@pytest.mark.parametrize(
    ("name", "chip", "saved"), [("Own", "Chip", "Own"), (None, "Chip", "Chip"), (None, None, None)]
)
def test_what_is_kept_of_a_card(
    name: str | None, chip: str | None, saved: str | None, cards: list[Any]
) -> None:
    card = {**cards[0], "name": name, "chip": {"name": chip}, "bridges": ["b:1", "b:2"]}
    card |= {"memory": {"total": 5}, "seen_by": ["bus"], "links": [], "power_state": "active"}
    part = {"kind": "gpu", "parent": card["id"]}
    kept = {
        **{"id": card["id"], "ids": card["ids"], "name": saved, "model": "10de:2330"},
        **{"port": "b:1", "memory": 5, "lanes": None, "nvlinks": None, "instances": 2},
    }
    assert saved_devices([card, part, part, {"kind": "cpu", "parent": None}]) == [kept]  # type: ignore[list-item, typeddict-item]
    assert saved_devices([card])[0]["instances"] is None
    assert saved_devices([{**card, "seen_by": ["bus", "nvidia"]}])[0]["instances"] == 0  # type: ignore[typeddict-item]


@pytest.mark.parametrize(
    ("now", "unlike"),
    [
        ({"width": 16, "active": 18, "parts": 2, "total": 80 << 30}, []),
        ({"width": 15, "active": 18, "parts": 2, "total": 80 << 30}, [("PCIe lanes", "16", "15")]),
        ({"width": 16, "active": 17, "parts": 2, "total": 80 << 30},
         [("active NVLinks", "18", "17")]),
        ({"width": 16, "active": 18, "parts": 1, "total": 80 << 30}, [("instances", "2", "1")]),
        ({"width": 16, "active": 18, "parts": 2, "total": int((80 << 30) * 0.9) - 1},
         [("memory", "80 GiB", "72.0 GiB")]),
        ({"width": None, "active": None, "parts": 3, "total": None}, []),
    ],
    ids=range(6),
)  # fmt: skip
def test_what_a_card_has_less_of(
    now: dict[str, Any], unlike: list[tuple[str, str, str]], cards: list[Any], tmp_path: Path
) -> None:
    card = cards[0]

    def devices(width: Any, active: Any, parts: int, total: Any) -> list[Any]:
        own = {**card, "memory": {**card["memory"], "total": total}, "power_state": "active"}
        own["links"] = [{"kind": "pcie", "local_width": width}]
        own["extra"] = {"nvlink": {"links": 18, "active": active}}
        part = {**card, "id": "part", "ids": ["part"], "parent": card["id"]}
        return [own, *[part] * parts]

    saved = saved_devices(devices(16, 18, 2, 80 << 30))
    document, _ = against(saved, devices(**now), tmp_path)
    assert [(each["fact"], each["expected"], each["found"]) for each in document["unlike"]] == [
        *unlike
    ]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"memory": {"kind": "shared"}}, True),
        ({"memory": {"kind": "unified"}}, True),
        ({"memory": {"kind": "dedicated"}}, False),
        ({"kind": "npu", "memory": {"kind": "shared"}}, False),
        ({"id": "pci:0000:00:02.0"}, True),
        ({"id": "pci:0000:00:02.0", "memory": {"kind": "dedicated"}}, False),
        ({"pci": {"id": "1002:164e"}}, True),
        ({"pci": {"id": "1002:744c"}}, False),
        ({}, False),
    ],
    ids=range(9),
)
def test_graphics_of_the_processor(fields: dict[str, Any], expected: bool) -> None:
    plain: Any = {"kind": "gpu", "id": "pci:0000:01:00.0", "pci": None, "memory": {"kind": None}}
    assert is_integrated(plain | fields) is expected


def test_another_product_in_the_slot_is_a_loss(cards: list[Any], tmp_path: Path) -> None:
    saved = saved_devices(cards)
    cards[0]["pci"]["id"], cards[0]["ids"] = "10de:26b9", [cards[0]["id"]]
    assert against(saved, cards, tmp_path)[1] == [("off-the-bus", "error", cards[0]["id"])]


def test_less_than_when_it_was_saved_is_a_warning(cards: list[Any], tmp_path: Path) -> None:
    for card in cards:
        card["memory"]["total"] = 80 << 30
    saved = saved_devices(cards)
    cards[2]["memory"]["total"] = 40 << 30
    document, findings = against(saved, cards, tmp_path)
    assert findings == [("unlike-expected", "warning", cards[2]["id"])]
    assert document["unlike"][0]["found"] == "40 GiB"


def test_every_type_of_a_cloud_has_what_chipdb_knows() -> None:
    database = chips()
    for type_, own in known_types():
        match = database.match(name=own.name)
        assert match.chip or match.candidates, type_
        assert own.source
        assert of_type(type_.upper()) == own
    vendors = {own.name: own.vendor for _, own in known_types()}
    assert (vendors["MI300X"], vendors["TPU v5e"], vendors["Trainium"], vendors["T4"]) == (
        *("amd", "google"),
        *("amazon", "nvidia"),
    )


PLACE, PORT = "0000:65:00.0", "0000:64:01.0"


@pytest.mark.parametrize(
    ("files", "sign"),
    [
        ({}, f"its port {PORT} is gone from the bus, too"),
        (
            {"power/runtime_status": "suspended", "current_link_width": "0"},
            f"its port {PORT} is powered down (power/runtime_status is suspended)",
        ),
        (
            {"power/runtime_status": "active", "current_link_width": "0"},
            f"the link of its port {PORT} is down (current_link_width is 0)",
        ),
        ({"current_link_width": "16"}, None),
        (
            {"current_link_width": "0", "/sys/bus/pci/slots/12/power": "0"},
            "its slot is switched off (/sys/bus/pci/slots/12/power is 0)",
        ),
        (
            {"current_link_width": "16", "/sys/bus/pci/slots/12/power": "1"},
            None,
        ),
    ],
)
def test_the_bus_shows_why_a_place_is_empty(
    tree: Tree, files: dict[str, str], sign: str | None
) -> None:
    tree.file("/sys/bus/pci/slots/12/address", PLACE[:-2])
    for name, content in files.items():
        place = name if name.startswith("/") else f"/sys/bus/pci/devices/{PORT}/{name}"
        tree.file(place, content)
    assert bus_sign(tree.machine(), PLACE, PORT) == sign


@pytest.mark.parametrize("port", [None, "", "../../../etc", "0000:64:01.0/..", "/etc:a:b"])
def test_a_port_that_is_no_address_is_not_looked_for(tree: Tree, port: str | None) -> None:
    assert bus_sign(tree.machine(), PLACE, port) is None


@pytest.mark.parametrize(("node", "was"), [("a", "b"), (None, "b"), ("a", None)])
def test_another_computers_baseline_says_nothing(
    node: str | None, was: str | None, cards: list[Any], tmp_path: Path
) -> None:
    assert against(saved_devices(cards), cards[1:], tmp_path, node, was) == (None, [])


@pytest.mark.parametrize(
    "saved",
    [5, [5], [{}], [{"ids": 5}], [{"ids": [], "memory": True}], [{"ids": [None]}] * 2000],
)
def test_a_damaged_baseline_raises_nothing(saved: Any, cards: list[Any], tmp_path: Path) -> None:
    against(saved, cards, tmp_path)


@pytest.mark.parametrize(
    ("id_", "container", "expected"),
    [(None, "docker", True), ("0" * 32, "docker", False), (None, None, False)],
)
def test_a_container_without_an_id(id_: str | None, container: str | None, expected: bool) -> None:
    """Of a node outside of one that shows no id, such as a bare chroot, nothing else tells."""
    node: Any = {"id": id_, "container": container}
    assert is_container_without_id(node) is expected


def test_the_command_compares_with_the_users_baseline(tmp_path: Path) -> None:
    environ = {**os.environ, "XDG_STATE_HOME": str(tmp_path), "PROBE_ONLY": "cpu,bus"}
    command = [sys.executable, "-m", "probe_core", "--json", "--strict"]

    def run() -> tuple[int, dict[str, Any]]:
        done = subprocess.run(
            command, env=environ, capture_output=True, text=True, timeout=60, check=False
        )
        return done.returncode, json.loads(done.stdout)

    status, report = run()
    assert "expected" not in report
    lost = {
        "id": "pci:fff0:01:00.0",
        "ids": ["uuid:GPU-1"],
        "name": "NVIDIA L4",
        "model": "10de:27b8",
    }
    file = tmp_path / "probe-core" / BASELINE
    file.parent.mkdir(mode=0o700)
    own = keys_of(Machine(), report["node"], report["devices"])
    content = {"schema": 1, "keys": own, "accelerators": [lost]}
    file.write_text(json.dumps(content))
    file.chmod(0o600)
    status, report = run()
    assert status == 1
    assert report["expected"]["absent"][0]["place"] == "fff0:01:00.0"
    assert report["findings"][0]["code"] == "off-the-bus"
