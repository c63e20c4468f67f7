"""A request for devices is met or refused at once, and what it sets confines exactly."""

from __future__ import annotations

from typing import Any

import pytest
import visibility_nodes as nodes
from hypothesis import given, settings
from hypothesis import strategies as st

from probe_core.pipeline.refresh import refresh
from probe_core.selection import SelectionError, select
from probe_core.selection.environment import confine
from probe_core.selection.request import Request, plan
from probe_core.sizes import format_size, parse_size
from probe_core.visibility import see


def report(devices: list[Any], **environ: str) -> dict[str, Any]:
    document = nodes.report([nodes.whole(device) for device in devices])
    refresh(document, environ)
    return document


FOUR = nodes.h100s(4)


@pytest.mark.parametrize(
    ("wanted", "environ", "expected"),
    [
        ("0,2", {}, [1, 3]),
        ("2,0", {}, [3, 1]),
        (" 1 , 3 ", {}, [2, 4]),
        ("0,1", {"CUDA_VISIBLE_DEVICES": "3,1"}, [4, 2]),
        (nodes.UUIDS[2], {}, [3]),
        ("GPU-9e8d", {}, [2]),
        ("gpu-9E8D", {}, [2]),
        ("GPU-9e8d,0", {}, [2, 1]),
        ("pci:0000:04:00.0", {}, [4]),
        ("0000:04:00.0", {}, [4]),
        ("GPU-e429", {"CUDA_VISIBLE_DEVICES": "2"}, [3]),
        (None, {"CUDA_VISIBLE_DEVICES": "2,3"}, [3, 4]),
        ("all", {"CUDA_VISIBLE_DEVICES": "3,2"}, [4, 3]),
    ],
)
def test_lists(wanted: str | None, environ: dict[str, str], expected: list[int]) -> None:
    assert nodes.slots(select(report(FOUR, **environ), wanted).ids) == expected


REFUSED = [
    ("7", {}, "unknown", "one of 0, 1, 2, 3"),
    ("1", {"CUDA_VISIBLE_DEVICES": "3"}, "unknown", "one of 0"),
    ("0,0", {}, "repeated", "name each once"),
    ("0,GPU-9942", {}, "repeated", "name each once"),
    ("", {}, "syntax", "one of 0, 1, 2, 3"),
    ("0,,1", {}, "syntax", "one of 0, 1, 2, 3"),
    ("-1", {}, "syntax", "one of 0, 1, 2, 3"),
    ("GPU-f", {}, "unknown", "one of 0, 1, 2, 3"),
    ("GPU-e", {}, "unknown", "write more of the UUID"),
    ("hip:0", {}, "syntax", "--for hip, or a number of cuda"),
    ("cuda:7", {}, "unknown", "one of 0, 1, 2, 3"),
    ("cpu:0", {}, "unknown", "one of 0, 1, 2, 3"),
    ("2-0", {}, "syntax", "one of 0, 1, 2, 3"),
    ("0-9999999", {}, "syntax", "one of 0, 1, 2, 3"),
    ("0-1,1", {}, "repeated", "name each once"),
    ("GPU-9942", {"CUDA_VISIBLE_DEVICES": "1"}, "hidden", "change or unset CUDA_VISIBLE_DEVICES"),
    ("3x2", {}, "too-few", "ask for 4"),
    ("0x1", {}, "syntax", None),
    ("1", {"CUDA_VISIBLE_DEVICES": ""}, "unknown", "change or unset CUDA_VISIBLE_DEVICES"),
    (None, {"CUDA_VISIBLE_DEVICES": "-1"}, "hidden", "change or unset CUDA_VISIBLE_DEVICES"),
]


@pytest.mark.parametrize(("wanted", "environ", "code", "fix"), REFUSED)
def test_refusals(wanted: str | None, environ: dict[str, str], code: str, fix: str | None) -> None:
    with pytest.raises(SelectionError) as caught:
        select(report(FOUR, **environ), wanted)
    assert (caught.value.code, caught.value.fix) == (code, fix)


def test_the_error_tells_everything() -> None:
    with pytest.raises(SelectionError) as caught:
        select(report(FOUR, CUDA_VISIBLE_DEVICES="1,9"), "2")
    assert str(caught.value).split("\n") == [
        "asked for '2': there is no number 2",
        "visible to cuda: 0: NVIDIA H100 80GB HBM3 (pci:0000:02:00.0)",
        "hidden: "
        + "; ".join(
            f"pci:0000:0{slot}:00.0 (CUDA_VISIBLE_DEVICES='1,9': CUDA stops reading at '9', "
            "and it is not named before that)"
            for slot in (1, 3, 4)
        ),
        "what would work: one of 0",
    ]


MIXED = [nodes.nvidia(1), nodes.nvidia(2, name="NVIDIA T4"), nodes.amd(3, 1), nodes.amd(4, 2)]
AT = [f"pci:0000:0{slot}:00.0" for slot in range(5)]
IN_ORDER = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}


@pytest.mark.parametrize("runtime", ["opencl", "sycl", "tinygrad"])
def test_a_number_of_a_device_of_each_vendor_means_none(runtime: str) -> None:
    with pytest.raises(SelectionError) as caught:
        select(report(MIXED, **IN_ORDER), "0", runtime=runtime)
    error = caught.value
    assert (error.code, error.fix) == ("uncertain", "name devices by id")
    assert error.unmet == (
        f"{runtime} numbers each vendor's devices apart: number 0 may be any of {AT[1]}, {AT[3]}"
    )
    assert str(error).split("\n")[1].count("0: ") == 2
    chosen = select(report(MIXED, **IN_ORDER), AT[3], runtime=runtime)
    assert chosen.ids == [AT[3]]
    with pytest.raises(SelectionError) as caught:
        select(report(MIXED, **IN_ORDER), "7", runtime=runtime)
    words = caught.value.fix.removeprefix("one of ").split(", ")  # type: ignore[union-attr]
    assert (caught.value.code, sorted(words)) == ("unknown", AT[1:])
    with pytest.raises(SelectionError, match=f"--device {AT[2]}, or --gpus 1"):
        select(report(MIXED, **IN_ORDER), "t4", runtime=runtime)


def test_a_number_that_another_vendors_device_may_have_is_not_known() -> None:
    """OpenCL's number 0 of AMD is certain; it may be one of NVIDIA's two all the same."""
    document = report(MIXED)
    with pytest.raises(SelectionError) as caught:
        select(document, "0", runtime="opencl")
    assert caught.value.unmet.endswith(f"may be any of {AT[3]}, {AT[1]}, {AT[2]}")
    assert select(document, "0", runtime="hip").ids == [AT[3]]
    only = [*MIXED[:2], MIXED[2]]
    with pytest.raises(SelectionError, match="which device is number 1 is not known"):
        select(report(only), "1", runtime="opencl")
    with pytest.raises(SelectionError, match="there is no number 2") as caught:
        select(report(only), "2", runtime="cuda")
    assert caught.value.fix == f"one of {AT[1]}, {AT[2]}"


def test_a_message_lists_devices_by_the_runtimes_numbers() -> None:
    document = report(FOUR)
    entry = document["devices"][0]["visibility"]["cuda"]
    entry.update(visible=False, index=None, reason="compute mode prohibited")  # keeps number 0
    with pytest.raises(SelectionError) as caught:
        select(document, "0")
    assert caught.value.fix == "one of 1, 2, 3"
    assert f"cuda: 1: NVIDIA H100 80GB HBM3 ({AT[2]}); 2: " in str(caught.value)


def test_layouts_and_counts() -> None:
    document = report(FOUR)
    assert [[d["id"] for d in g] for g in select(document, "2x1").groups] == [
        ["pci:0000:01:00.0"],
        ["pci:0000:02:00.0"],
    ]
    assert nodes.slots(select(document, count=2).ids) == [1, 2]
    with pytest.raises(SelectionError, match="only 4 devices can be had") as caught:
        select(document, count=5)
    assert caught.value.fix == "ask for 4"
    with pytest.raises(SelectionError, match="exclude each other"):
        select(document, "0", count=1)


def test_count_among_hidden_ones_says_how_to_get_more() -> None:
    with pytest.raises(SelectionError) as caught:
        select(report(FOUR, CUDA_VISIBLE_DEVICES="0"), count=2)
    assert caught.value.fix == "ask for 1, or change or unset CUDA_VISIBLE_DEVICES"


def test_the_fix_of_a_card_for_a_guest_is_a_sentence_of_its_own() -> None:
    document = report(FOUR[:2])
    name = FOUR[1]["id"]
    step = {"step": "driver", "status": "broken", "evidence": "it is vfio-pci", "blocks": True}
    step["code"] = "reserved-for-vm"
    lent = next(device for device in document["devices"] if device["id"] == name)
    lent["readiness"] = {"state": "blocked", "broken": "driver", "steps": [step]}
    lent["visibility"] = {}
    found = {"code": "no-driver", "device": name, "step": "driver", "fix": "nothing, if meant"}
    document["findings"] = [found]
    with pytest.raises(SelectionError) as caught:
        select(document, count=2)
    assert caught.value.fix == "ask for 1; for the others: nothing, if meant"


def test_memory() -> None:
    devices = nodes.h100s(3)
    devices[0]["memory"] = {"kind": "dedicated", "total": 80 << 30, "free": 10 << 30}
    document = report(devices)
    assert nodes.slots(select(document, count=2, memory="20GiB").ids) == [2, 3]
    with pytest.raises(SelectionError) as caught:
        select(document, "0", memory="20GiB")
    assert "pci:0000:01:00.0 has 10 GiB free" in str(caught.value)
    assert caught.value.fix == "pci:0000:02:00.0 has enough"
    with pytest.raises(SelectionError) as caught:
        select(document, "0", memory=79 << 30)
    assert caught.value.fix == "pci:0000:02:00.0 has enough"
    with pytest.raises(SelectionError) as caught:
        select(document, count=3, memory="20GiB")
    assert (caught.value.code, caught.value.fix) == ("memory", "ask for 10 GiB each")


def test_of_memory_that_nobody_knows_no_amount_is_offered() -> None:
    devices = nodes.h100s(2)
    for device, free in zip(devices, (10 << 30, None), strict=True):
        device["memory"] = {"kind": "dedicated", "total": free, "free": free}
    with pytest.raises(SelectionError) as caught:
        select(report(devices), count=2, memory="1GiB")
    assert (caught.value.code, caught.value.fix) == ("memory", None)
    with pytest.raises(SelectionError) as caught:
        select(report(devices), count=1, memory="20GiB")
    assert (caught.value.code, caught.value.fix) == ("memory", "ask for 10 GiB each")


def test_order_that_only_the_driver_knows_is_refused_by_number_not_by_uuid() -> None:
    devices = [nodes.nvidia(1), nodes.nvidia(2, name="NVIDIA T4")]
    document = report(devices)
    with pytest.raises(SelectionError) as caught:
        select(document, "0")
    assert caught.value.code == "uncertain"
    assert "CUDA_DEVICE_ORDER=PCI_BUS_ID" in str(caught.value.fix)
    assert str(caught.value).splitlines()[1] == (
        "visible to cuda: ?: NVIDIA H100 80GB HBM3 (pci:0000:01:00.0); "
        "?: NVIDIA T4 (pci:0000:02:00.0)"
    )
    assert nodes.slots(select(document, nodes.UUIDS[1][:12]).ids) == [2]
    assert len(select(document, count=2)) == 2


def test_runtimes_have_other_names() -> None:
    document = report([nodes.intel(1)])
    for name in ("level-zero", "level_zero", "ZE", "oneapi"):
        assert len(select(document, "0", runtime=name)) == 1


def test_no_accelerator() -> None:
    document = report([{"id": "cpu:0", "kind": "cpu"}])
    for request in ({"wanted": "0"}, {"count": 1}, {}):
        with pytest.raises(SelectionError):
            select(document, **request)  # type: ignore[arg-type]


def test_npus_are_numbered_though_no_runtime_knows_them() -> None:
    npu = {"id": "dt:/npu", "ids": ["dt:/npu"], "kind": "npu", "vendor": "rockchip"}
    assert select(report([npu]), "0").ids == ["dt:/npu"]
    # Those that the runtime numbers keep their numbers, whatever stands before them.
    document = report([npu, *FOUR[:2]])
    for primary in (FOUR[0]["id"], None):
        document["primary"] = primary
        assert select(document).ids == [FOUR[0]["id"], FOUR[1]["id"], "dt:/npu"]


def test_a_count_takes_devices_of_one_kind() -> None:
    """A board's NPU is no second device for a program on its GPU; as the only one it may do."""
    npus: list[Any] = [
        {"id": name, "ids": [name], "kind": "npu", "vendor": "rockchip"}
        for name in ("dt:/npu@0", "dt:/npu@1")
    ]
    gpu = FOUR[0]
    assert select(report([npus[0], gpu]), count=1).ids == [gpu["id"]]
    assert select(report([npus[0], *FOUR[:2]]), count=2).ids == [FOUR[0]["id"], FOUR[1]["id"]]
    assert select(report([*npus, gpu]), count=2).ids == [npu["id"] for npu in npus]
    with pytest.raises(SelectionError) as caught:
        select(report([npus[0], gpu]), count=2)
    unmet = "only 1 of kind gpu can be had, and a count takes devices of one kind"
    assert (caught.value.unmet, caught.value.code) == (unmet, "too-few")
    assert caught.value.fix == "ask for 1, or name the devices"
    document: Any = report([npus[0], *FOUR[:2]])
    assert [device["id"] for device in plan(document, Request(2))[0]] == [
        FOUR[0]["id"],
        FOUR[1]["id"],
    ]
    with pytest.raises(SelectionError):
        plan(document, Request(3))


@pytest.mark.heavy
@given(text=st.text())
@settings(max_examples=200, deadline=None)
def test_any_text_is_met_or_refused(text: str) -> None:
    try:
        found = select(report(FOUR), text)
    except SelectionError:
        return
    assert found.ids


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("20GiB", 20 << 30),
        ("20G", 20 << 30),
        ("20 GB", 20 * 10**9),
        ("1.5TiB", 3 << 39),
        ("512m", 512 << 20),
        ("80e9", 80 * 10**9),
        (4096, 4096),
    ],
)
def test_sizes(text: str | int, count: int) -> None:
    assert parse_size(text) == count


@pytest.mark.parametrize(
    "text",
    ["", "x", "GiB", "-1GiB", "0", 0, "0.5", "1e-9k", "nan", "inf", "1e400", 1 << 62, "5 apples"],
)
def test_no_sizes(text: str | int) -> None:
    with pytest.raises(ValueError, match="is no amount of memory"):
        parse_size(text)


def test_sizes_are_written_short() -> None:
    assert [format_size(n) for n in (512, 20 << 30, 85520809984)] == ["512 B", "20 GiB", "79.6 GiB"]


NVIDIA, AMD, INTEL = (
    nodes.h100s(3),
    [nodes.amd(s, 100 + s) for s in (11, 12, 13)],
    [nodes.intel(slot) for slot in (21, 22)],
)
NODE = [*NVIDIA, *AMD, *INTEL]
_MAINS = {"nvidia": "cuda", "amd": "hip", "intel": "level-zero"}
_BEFORE = st.fixed_dictionaries(
    {},
    optional={
        "CUDA_VISIBLE_DEVICES": st.sampled_from(["0,1", "2", "GPU-9942", "", "-1", "1,1"]),
        "HIP_VISIBLE_DEVICES": st.sampled_from(["1", "0,2", "", '""']),
        "ROCR_VISIBLE_DEVICES": st.sampled_from(["2,0", "0x1", "GPU-000000000000006f"]),
        "ZE_AFFINITY_MASK": st.sampled_from(["1", "0,1", "9"]),
        "ONEAPI_DEVICE_SELECTOR": st.sampled_from(["level_zero:0", "*:gpu", "opencl:gpu"]),
        "GGML_VK_VISIBLE_DEVICES": st.sampled_from(["0", ""]),
        "GPU_DEVICE_ORDINAL": st.sampled_from(["1", "", "0,2"]),
        "DEV": st.sampled_from(["", "NVK:2+NV;:0+AMD", ":0+AMD;NV", "CPU"]),
    },
)


@pytest.mark.heavy
@given(environ=_BEFORE, data=st.data())
@settings(max_examples=300, deadline=None)
def test_what_is_set_confines_exactly_and_never_widens(
    environ: dict[str, str], data: st.DataObject
) -> None:
    before = see(NODE, environ)
    left = [name for runtime in _MAINS.values() for name in before[runtime][0].visible]
    chosen = data.draw(st.lists(st.sampled_from(left), unique=True) if left else st.just([]))
    devices = [next(d for d in NODE if d["id"] == name) for name in chosen]
    changed = dict(environ)
    for name, value in confine(nodes.report(NODE), devices, environ).items():
        if value is None:
            changed.pop(name, None)
        else:
            changed[name] = value
    after = see(NODE, changed)
    for vendor, runtime in _MAINS.items():
        mine = [device["id"] for device in devices if device["vendor"] == vendor]
        seen = after[runtime][0].visible
        assert (sorted(seen), len(seen)) == (sorted(mine), len(mine))
        if runtime != "level-zero":
            assert seen == mine
    seen = before["ggml-vulkan"][0].visible
    assert after["ggml-vulkan"][0].visible == [name for name in chosen if name in seen]
    for runtime in ("cuda", "rocr", "hip", "level-zero", "sycl", "opencl", "tinygrad"):
        may = {name for view in before[runtime] for name in view.possible}
        now = {name for view in after[runtime] for name in view.possible}
        assert now <= may & set(chosen) or changed.get("DEV") == "CPU", runtime


def test_without_uuids_numbers_in_pci_order_do() -> None:
    devices = [dict(device) | {"ids": [device["id"]]} for device in nodes.h100s(3)]
    changes = confine(nodes.report(devices), [devices[2], devices[0]], {})
    assert changes["CUDA_VISIBLE_DEVICES"] == "2,0"
    assert changes["CUDA_DEVICE_ORDER"] == "PCI_BUS_ID"


def test_partitions_of_one_unique_id_are_told_apart_by_number() -> None:
    card = nodes.amd(1, 7)
    parts = [
        card | {"id": f"kfd:{n}", "ids": [f"kfd:{n}", card["ids"][1]], "parent": card["id"]}
        for n in range(2)
    ]
    changes = confine(nodes.report([card, *parts]), [parts[1]], {})
    assert changes["ROCR_VISIBLE_DEVICES"] == "1"
    cards = [nodes.amd(1, 7), nodes.amd(2, 8)]
    changes = confine(nodes.report(cards), [cards[1]], {})
    assert changes["ROCR_VISIBLE_DEVICES"] == "GPU-0000000000000008"
    cards[1]["ids"] = [cards[1]["id"]]
    assert confine(nodes.report(cards), cards, {})["ROCR_VISIBLE_DEVICES"] == "0,1"


def test_tiles_hidden_before_stay_hidden() -> None:
    tiled = [nodes.intel(slot, code="0bd5", extra={"tiles": 2}) for slot in (1, 2)]
    environ = {"ZE_AFFINITY_MASK": "1,3"}
    assert confine(nodes.report(tiled), [tiled[0]], environ)["ZE_AFFINITY_MASK"] == "1"
    environ = {"ZE_AFFINITY_MASK": "0.1,1", "ZE_FLAT_DEVICE_HIERARCHY": "COMPOSITE"}
    assert confine(nodes.report(tiled), tiled, environ)["ZE_AFFINITY_MASK"] == "0.1,1"


def test_dev_keeps_what_it_said() -> None:
    document = nodes.report(FOUR)
    assert confine(document, FOUR[1:2], {})["DEV"] == ":1+NV"
    changes = confine(document, FOUR[1:3], {"DEV": "NVK:0,1,2+NV:NVCC"})
    assert changes["DEV"] == "NVK:1,2+NV:NVCC"
    assert confine(document, FOUR[1:2], {"DEV": "NVK:0+NV"})["DEV"] == "NVK:4+NV", "shows none"
    assert "DEV" not in confine(document, FOUR[1:2], {"DEV": "CPU"})


def test_dev_hides_the_backend_without_a_device() -> None:
    document = nodes.report([*FOUR, *AMD])
    assert confine(document, FOUR[1:2], {})["DEV"] == ":1+NV;:3+AMD"
    assert confine(document, AMD[2:], {})["DEV"] == ":2+AMD;:4+NV"
    assert confine(nodes.report(NODE), INTEL, {})["DEV"] == ":3+"


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("0.10.0", {"VISIBLE_DEVICES": "1"}),
        ("0.11.0", {"VISIBLE_DEVICES": "1"}),
        ("0.12.0", {"HCQ_VISIBLE_DEVICES": "1"}),
        ("0.13.0", {"DEV": ":1+NV"}),
        (None, {"DEV": ":1+NV", "VISIBLE_DEVICES": "1"}),
    ],
)
def test_tinygrad_has_a_variable_for_each_generation(
    version: str | None, expected: dict[str, str]
) -> None:
    versions = {"tinygrad": version} if version else None
    changes = confine(nodes.report(FOUR), FOUR[1:2], {}, versions=versions)
    names = ("DEV", "VISIBLE_DEVICES", "HCQ_VISIBLE_DEVICES")
    assert {name: changes[name] for name in names if name in changes} == expected
    after = see(FOUR, {k: v for k, v in changes.items() if v is not None}, versions=versions)
    assert after["tinygrad"][0].visible == [FOUR[1]["id"]]


def test_old_tinygrad_counts_cards_that_rocr_hides() -> None:
    changes = confine(nodes.report(AMD), AMD[2:], {"ROCR_VISIBLE_DEVICES": "1,2"})
    assert (changes["HIP_VISIBLE_DEVICES"], changes["VISIBLE_DEVICES"]) == ("0", "2")


def test_a_device_chosen_by_one_runtime_stays_hidden_from_another() -> None:
    changes = confine(nodes.report(FOUR), FOUR[:2], {"CUDA_VISIBLE_DEVICES": "1"})
    assert changes["CUDA_VISIBLE_DEVICES"] == nodes.UUIDS[1]
    changes = confine(nodes.report(AMD), AMD[:2], {"GPU_DEVICE_ORDINAL": "1"})
    assert (changes["HIP_VISIBLE_DEVICES"], changes["GPU_DEVICE_ORDINAL"]) == ("0,1", "1")


def test_cudas_variable_is_renewed_on_a_node_of_amd_alone() -> None:
    changes = confine(nodes.report(AMD), AMD[1:], {"CUDA_VISIBLE_DEVICES": "1,2"})
    assert changes["CUDA_VISIBLE_DEVICES"] == changes["HIP_VISIBLE_DEVICES"] == "0,1"
    assert "CUDA_VISIBLE_DEVICES" not in confine(nodes.report(AMD), AMD, {})
