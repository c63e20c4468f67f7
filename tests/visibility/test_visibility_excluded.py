"""Devices that a step of readiness keeps from this process are never selected, and are named."""

from __future__ import annotations

import random
from typing import Any

import pytest
import visibility_nodes as nodes
from visibility_nodes import blocked, ready

from probe_core.model import Report
from probe_core.model.verdict import (
    _refuses_jobs,
    blocking_step,
    state_word,
    usable_here,
    visible,
)
from probe_core.pipeline.refresh import refresh
from probe_core.selection import SelectionError, select
from probe_core.selection.environment import confine
from probe_core.visibility.availability import available_to
from probe_core.visibility.view import Mask, View

REASON = "it is not granted to this process: NVML lists 2 of 4 GPUs, not this one"


def gpus(count: int = 4) -> list[Any]:
    return [nodes.nvidia(slot, memory={"total": 80 << 30}) for slot in range(1, count + 1)]


def report(devices: list[Any], **environ: str) -> dict[str, Any]:
    document = nodes.report([dict(device) for device in devices])
    refresh(document, environ)
    return document


def sliced() -> list[Any]:
    evidence = "NVML lists 2 of 4 GPUs, not this one"
    all_four = gpus()
    return [
        blocked(all_four[0], "granted", "not-granted", evidence),
        ready(all_four[1]),
        blocked(all_four[2], "granted", "not-granted", evidence),
        ready(all_four[3]),
    ]


def test_only_granted_devices_are_selected() -> None:
    document = report(sliced())
    chosen = select(document)
    assert nodes.slots(chosen.ids) == [2, 4]
    assert chosen.excluded == {nodes.pci(1): REASON, nodes.pci(3): REASON}
    assert nodes.slots(select(document, "1,0").ids) == [4, 2]
    assert [nodes.slots([d["id"] for d in g]) for g in select(document, "2x1").groups] == [[2], [4]]


def test_a_request_for_more_names_what_is_left_out() -> None:
    with pytest.raises(SelectionError) as caught:
        select(report(sliced()), count=3)
    error = caught.value
    assert (error.code, error.fix, error.variable) == ("too-few", "ask for 2", None)
    assert error.hidden == {nodes.pci(1): REASON, nodes.pci(3): REASON}
    assert REASON in str(error)


def test_the_fix_is_that_of_the_finding_about_the_step() -> None:
    document = report([blocked(gpus()[0], "permission", "no-permission", "/dev/nvidia0: EACCES")])
    about = {"severity": "error", "device": nodes.pci(1), "what": "x", "why": "y"}
    document["findings"] += [
        about | {"code": "other", "fix": "something else", "step": "driver"},
        about | {"code": "no-permission", "fix": "usermod -aG video $USER", "step": "permission"},
    ]
    with pytest.raises(SelectionError) as caught:
        select(document, nodes.pci(1))
    assert (caught.value.code, caught.value.fix) == ("hidden", "usermod -aG video $USER")
    assert "a device node cannot be opened: /dev/nvidia0: EACCES" in caught.value.unmet
    with pytest.raises(SelectionError) as caught:
        select(document)
    assert (caught.value.code, caught.value.fix) == ("hidden", "usermod -aG video $USER")


def test_an_npu_without_rules_of_visibility_is_excluded_too() -> None:
    npu = nodes.whole({"id": "accel:0", "ids": ["accel:0"], "kind": "npu", "vendor": "acme"})
    other = npu | {"id": "accel:1", "ids": ["accel:1"]}
    document = report([blocked(npu, "driver", "npu-no-module", "no module acme"), ready(other)])
    assert select(document).ids == ["accel:1"]
    assert select(document).excluded == {"accel:0": "no driver: no module acme"}
    assert [device["id"] for device in visible(document)] == ["accel:1"]


def test_a_foreign_report_cannot_show_a_blocked_device() -> None:
    shown = {"visible": True, "index": 0, "reason": None}
    device = blocked(gpus()[0], "permission", "no-permission") | {"visibility": {"cuda": shown}}
    document = nodes.report([device])
    with pytest.raises(SelectionError, match="no permission: a fact"):
        select(document)
    assert visible(document, "cuda") == []
    assert usable_here(device).usable is False
    assert Report.from_json(document).visible("cuda") == ()


def test_python_and_json_agree() -> None:
    document = report(sliced())
    typed = Report.from_json(document)
    assert nodes.slots([device.id for device in typed.visible("cuda")]) == [2, 4]
    assert [device["id"] for device in visible(document, "cuda")] == [nodes.pci(2), nodes.pci(4)]
    assert [device["id"] for device in visible(document)] == [nodes.pci(2), nodes.pci(4)]
    assert [usable_here(device).usable is False for device in document["devices"]] == [
        True,
        False,
        True,
        False,
    ]


OUT, UNKNOWN, LISTED, COUNTED = (False, False), (None, None), (None, True), (False, True)


@pytest.mark.parametrize(
    ("runtime", "step", "code", "verdict"),
    [
        ("cuda", "granted", "compute-prohibited", LISTED),
        ("cuda", "permission", "no-permission", OUT),
        ("cuda", "responding", "gpu-lost", UNKNOWN),
        ("cuda", "hardware", "off-the-bus", UNKNOWN),
        ("cuda", "hardware", "rebar-off", OUT),
        ("vulkan", "driver", "nouveau-bound", UNKNOWN),
        ("vulkan", "driver", "no-driver", OUT),
        ("vulkan", "library", "version-mismatch", OUT),
        ("vulkan", "library", "nvml-missing", UNKNOWN),
        ("vulkan", "runtime", "libcuda-missing", UNKNOWN),
        ("vulkan", "hardware", "off-the-bus", UNKNOWN),
        ("vulkan", "permission", "no-permission", OUT),
        ("tinygrad", "driver", "no-driver", OUT),
        ("tinygrad", "granted", "gpu-excluded", OUT),
        ("tinygrad", "library", "nvml-missing", LISTED),
        ("tinygrad", "runtime", "libcuda-missing", LISTED),
        ("tinygrad", "responding", "gpu-lost", UNKNOWN),
        ("tinygrad", "hardware", "rebar-off", OUT),
        ("tinygrad", "permission", "no-permission", COUNTED),
        ("nvidia-container", "hardware", "rebar-off", OUT),
        ("nvidia-container", "hardware", "off-the-bus", UNKNOWN),
        ("nvidia-container", "granted", "gpu-excluded", OUT),
        ("nvidia-container", "runtime", "libcuda-missing", LISTED),
        ("nvidia-container", "permission", "no-permission", UNKNOWN),
    ],
)
def test_what_a_break_means_for_a_runtime(
    runtime: str, step: str, code: str, verdict: tuple[bool | None, bool | None]
) -> None:
    lost = blocked(gpus()[0], step, code, "a fact")
    entry = available_to([lost], runtime).withheld[lost["id"]]
    assert (entry.visible, entry.counted) == verdict
    assert (entry.step, entry.code) == (step, code)
    doubt = f"; whether {runtime} shows it all the same is not known"
    assert entry.reason.endswith(f": a fact{doubt if verdict[0] is None else ''}")
    # Without a driver nothing counts a card that is off the bus.
    gone = {**lost, "driver": None}
    if code == "off-the-bus":
        entry = available_to([gone], runtime).withheld[lost["id"]]
        assert (entry.visible, entry.counted) == OUT


def test_a_view_follows_what_is_withheld_below() -> None:
    ids = [device["id"] for device in gpus(5)]

    def view(count: int) -> View:
        own = View("cuda", ids, [Mask(ids), Mask(ids), Mask(ids[1:])])
        lost = [blocked(device, "responding", "gpu-lost") for device in gpus(count)]
        own.withhold(available_to(lost, "cuda"), ids)
        return own

    for above, below, complete in ((0, 1, True), (0, 4, False), (4, 1, False), (4, 4, False)):
        own = view(above)
        assert len(own.masks) == (2 if above else 3)
        own.withhold_as(view(below))
        assert (own.complete, len(own.masks)) == (complete, 2)
        assert own.withheld.keys() == {*ids[: max(above, below)]}
        assert own.uncertain is not None
    own = view(0)
    own.withhold_as(view(0))
    assert (own.complete, len(own.masks), own.withheld, own.uncertain) == (True, 3, {}, None)


def test_devices_of_another_vendor_than_the_runtimes_stay_unjudged() -> None:
    lost = blocked(gpus()[0], "responding", "gpu-lost", "NVML lost it")
    other = blocked(nodes.amd(9), "permission", "no-permission", "/dev/kfd: EACCES")
    available = available_to([lost, other], "nvidia-container", "nvidia")
    assert available.withheld.keys() == {lost["id"]}
    assert [device["id"] for device in available.devices][-1] == other["id"]
    assert available_to([lost, other], "vulkan").withheld.keys() == {lost["id"], other["id"]}


@pytest.mark.parametrize(("count", "complete"), [(3, True), (4, False)])
def test_of_many_devices_in_doubt_not_all_results_are_listed(count: int, complete: bool) -> None:
    lost = [blocked(device, "responding", "gpu-lost") for device in gpus(count)]
    ids = [device["id"] for device in lost]
    view = View("cuda", ids, [])
    view.withhold(available_to(lost, "cuda"), ids)
    assert (view.complete, view.pool) == (complete, ids)
    assert view.uncertain is not None
    view.withhold(available_to(gpus(1), "cuda"), ids)
    assert view.complete is complete


@pytest.mark.parametrize(
    ("lost", "numbered"),
    [
        (0, [[1, 2, 3, 4, 5]]),
        (1, [[2, 3, 4, 5], [1, 2, 3, 4, 5]]),
        (2, [[3, 4, 5], [1, 3, 4, 5], [2, 3, 4, 5], [1, 2, 3, 4, 5]]),
        (4, [[5], [1, 5], [1, 2, 5], [1, 2, 3, 5], [1, 2, 3, 4, 5]]),
    ],
)
def test_which_devices_may_take_numbers(lost: int, numbered: list[list[int]]) -> None:
    devices = gpus(5)
    devices[:lost] = [blocked(device, "responding", "gpu-lost") for device in devices[:lost]]
    found = available_to(devices, "cuda").alternatives()
    assert [nodes.slots([device["id"] for device in some]) for some in found] == numbered


def test_the_reason_of_a_doubt_is_the_doubtful_devices_own() -> None:
    own = gpus()
    sure = blocked(own[0], "permission", "no-permission", "/dev/nvidia0: EACCES")
    lost = blocked(own[1], "responding", "gpu-lost", "NVML lost it")
    available = available_to([sure, lost, ready(own[2])], "cuda")
    assert available.withheld.keys() == {nodes.pci(1), nodes.pci(2)}
    assert "NVML lost it" in str(available.uncertain)
    assert available_to([sure, ready(own[2])], "cuda").uncertain is None
    document = report([sure, lost, ready(own[2])])
    reason = document["devices"][2]["visibility"]["cuda"]["reason"]
    assert "NVML lost it" in reason
    assert "EACCES" not in reason


def test_a_device_in_doubt_is_hidden_all_the_same_when_it_is_blocked() -> None:
    document = report([blocked(gpus()[0], "responding", "gpu-lost"), ready(gpus()[1])])
    assert document["devices"][0]["visibility"]["cuda"]["visible"] is None
    assert usable_here(document["devices"][0]).usable is False
    assert [device["id"] for device in visible(document)] == [nodes.pci(2)]


def test_confining_counts_as_the_runtimes_do() -> None:
    unnamed = [device | {"ids": [device["id"]]} for device in sliced()]
    document = report(unnamed)
    changes = confine(document, document["devices"][3:], {})
    assert changes["CUDA_VISIBLE_DEVICES"] == "1", "CUDA counts what was granted"
    assert changes["DEV"] == ":3+NV", "tinygrad counts the kernel driver's cards"
    assert changes["GGML_VK_VISIBLE_DEVICES"] == "1"
    cards = [nodes.amd(slot, None, slot) for slot in (1, 2, 3)]
    some = [blocked(cards[0], "granted", "kfd-node-closed"), ready(cards[1]), ready(cards[2])]
    document = report(some)
    changes = confine(document, document["devices"][2:], {})
    assert (changes["ROCR_VISIBLE_DEVICES"], changes["DEV"]) == ("1", ":1+AMD")
    arcs = [blocked(nodes.intel(1), "permission", "no-permission"), ready(nodes.intel(2))]
    document = report(arcs)
    assert confine(document, document["devices"][1:], {})["ZE_AFFINITY_MASK"] == "0"


@pytest.mark.parametrize("seed", range(5))
def test_like_devices_keep_the_order_of_their_addresses(seed: int) -> None:
    devices = [ready(device) for device in gpus(6)]
    random.Random(seed).shuffle(devices)
    document = report(devices)
    assert nodes.slots(select(document, count=3).ids) == [1, 2, 3]
    assert nodes.slots(select(document, "3x2").ids) == [1, 2, 3, 4, 5, 6]
    models = [device | {"name": f"model {device['id']}"} for device in devices]
    assert nodes.slots(select(report(models)).ids) == [1, 2, 3, 4, 5, 6], "unnumbered ones too"
    assert nodes.slots(select(report(models), count=2).ids) == [1, 2]


WORDS = [
    ("hardware", "off-the-bus", "lost"),
    ("hardware", "bar-unassigned", "driver error"),
    ("driver", "module-not-loaded", "no driver"),
    ("driver", "nouveau-bound", "no driver"),
    ("driver", "reserved-for-vm", "passthrough"),
    ("driver", "gsp-firmware-missing", "driver error"),
    ("node", "container-without-gpus", "not granted"),
    ("node", "uvm-missing", "driver error"),
    ("permission", "no-permission", "no permission"),
    ("library", "version-mismatch", "driver error"),
    ("responding", "gpu-lost", "lost"),
    ("responding", "driver-hangs", "timed out"),
    ("responding", "gpu-reset-required", "driver error"),
    ("granted", "slurm-slice", "not granted"),
    ("granted", "compute-prohibited", "not granted"),
    ("runtime", "fabric-not-ready", "driver error"),
]


@pytest.mark.parametrize(("step", "code", "word"), WORDS)
def test_words_of_blocked_devices(step: str, code: str, word: str) -> None:
    device = blocked(gpus()[0], step, code)
    assert state_word(device) == word
    assert state_word(device | {"power_state": "suspended"}) == word


def limited(device: Any, code: str) -> Any:
    steps = [{"step": "responding", "status": "broken", "evidence": "x", "code": code}]
    return device | {"readiness": {"state": "limited", "broken": "responding", "steps": steps}}


def test_words_of_other_devices() -> None:
    gpu = gpus()[0]
    assert state_word(gpu) == "unknown"
    assert state_word(ready(gpu)) == "ready"
    assert state_word(ready(gpu) | {"power_state": "suspended"}) == "asleep"
    assert state_word(limited(gpu, "power-capped")) == "limited"
    assert state_word(limited(gpu, "mig-without-instances")) == "MIG mode"
    assert state_word(nodes.whole({"id": "cpu:0", "kind": "cpu"})) == "ready"
    assert state_word(nodes.whole({"id": "pci:0000:09:00.0", "kind": "display"})) == ""
    by_driver = report([gpu | {"driver": {"name": "vfio-pci"}}])["devices"][0]
    assert state_word(by_driver) == "passthrough"
    masked = report([ready(gpu)], CUDA_VISIBLE_DEVICES="")["devices"][0]
    assert state_word(masked) == "hidden"
    card = ready(gpu)
    parts = report([card, ready(nodes.mig(card, 1, 1))])["devices"]
    assert [state_word(part) for part in parts] == ["MIG mode", "ready"]


def test_the_step_that_blocks() -> None:
    device = blocked(gpus()[0], "driver", "nouveau-bound")
    narrow = {"step": "hardware", "status": "broken", "evidence": "x8", "code": "link-narrow"}
    device["readiness"]["steps"].insert(0, narrow)
    step = blocking_step(device)
    assert step is not None
    assert step["step"] == "driver"
    limits = {"step": "runtime", "status": "broken", "evidence": "x", "code": "level-zero-missing"}
    hidden_too = blocked(gpus()[0], "visible", "hidden-by-variable")
    hidden_too["readiness"]["steps"].append(limits)
    assert blocking_step(hidden_too) is None, "another environment shows it"
    by_hand = gpus()[0] | {"readiness": {"state": "blocked", "broken": None, "steps": []}}
    step = blocking_step(by_hand)
    assert step is not None
    assert (step["step"], state_word(by_hand)) == ("granted", "not granted")
    assert blocking_step(gpus()[0]) is None


@pytest.mark.parametrize(
    ("step", "code", "blocks", "refuses"),
    [
        ("library", "vendors-own", False, True),  # a code that only its prober knows
        ("visible", "vendors-own", False, False),
        ("visible", "mig-mode", False, True),
        ("responding", "off-the-bus", False, True),
        ("hardware", "link-narrow", False, False),
        ("hardware", "link-narrow", True, True),
        ("visible", "hidden-by-variable", False, False),
        ("runtime", "exclusive-taken", True, False),
    ],
)
def test_whether_a_step_keeps_a_device_from_every_job(
    step: str, code: str, blocks: bool, refuses: bool
) -> None:
    document: Any = {"step": step, "code": code, "status": "broken", "blocks": blocks}
    assert _refuses_jobs(document) is refuses
