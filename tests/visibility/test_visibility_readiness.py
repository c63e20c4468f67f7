"""Visibility starts from what this process may use: slices, refused nodes, missing drivers.

Sources: CUDA numbers from 0 what the process can open (Slurm, gres.conf, ConstrainDevices); ROCr
skips KFD nodes whose gpu_id cannot be read (ROCT-Thunk-Interface, topology.c) and KFD refuses them
to a device cgroup without the render node (kfd_priv.h, `kfd_devcgroup_check_permission`); RADV
takes amdgpu alone (radv_physical_device.c); NVK serves GPUs under nouveau; nvidia's card list is
one for all processes (nv.c, `nvidia_read_card_info`).
"""

from __future__ import annotations

from typing import Any

import pytest
import visibility_nodes as nodes
from visibility_nodes import blocked, ready

from probe_core.model.ids import STEPS
from probe_core.model.verdict import native_runtime, state_word, usable_here
from probe_core.selection import select
from probe_core.visibility import annotate, findings, see

NVIDIA = ("cuda", "sycl", "opencl", "vulkan", "ggml-vulkan", "nvidia-container", "tinygrad")
NOT_LISTED = ("granted", "not-granted", "NVML lists 2 of 8 GPUs, not this one")


def slice_of(devices: list[Any], slots: tuple[int, ...], *step: str) -> list[Any]:
    """Return the devices of which this process was granted those in `slots` alone."""
    return [
        ready(device) if nodes.slots([device["id"]])[0] in slots else blocked(device, *step)
        for device in devices
    ]


def seen(devices: list[Any], environ: dict[str, str] | None = None, **more: Any) -> list[Any]:
    annotate(devices, see(devices, environ or {}, **more))
    return devices


def numbers(devices: list[Any], runtime: str) -> dict[int, int | None]:
    """Return the slot of each device that the runtime surely shows, with its index."""
    entries = {nodes.slots([d["id"]])[0]: d["visibility"].get(runtime) for d in devices}
    return {slot: entry["index"] for slot, entry in entries.items() if entry and entry["visible"]}


def sights(devices: list[Any], slot: int) -> dict[str, bool | None]:
    """Return whether each runtime shows the device in a slot."""
    (device,) = (device for device in devices if device["id"] == nodes.pci(slot))
    return {name: entry["visible"] for name, entry in device["visibility"].items()}


def nvml_slice() -> list[Any]:
    devices = nodes.h100s(8)
    for number, slot in enumerate((4, 6)):
        devices[slot - 1]["node_index"] = {"nvml": number}
    return slice_of(devices, (4, 6), *NOT_LISTED)


def test_nvml_lists_two_of_eight() -> None:
    devices = seen(nvml_slice())
    for runtime in ("cuda", "sycl", "opencl", "vulkan", "ggml-vulkan"):
        assert numbers(devices, runtime) == {4: 0, 6: 1}, runtime
    entry = devices[0]["visibility"]["cuda"]
    assert entry == {
        "visible": False,
        "index": None,
        "reason": "it is not granted to this process: NVML lists 2 of 8 GPUs, not this one",
        "variable": None,
        "step": "granted",
        "code": "not-granted",
    }
    assert not any(visible for visible in sights(devices, 1).values())


@pytest.mark.parametrize("order", [(0, 1, 2, 3, 4, 5, 6, 7), (7, 3, 0, 5, 1, 6, 2, 4)])
def test_the_order_in_which_a_prober_yields_changes_nothing(order: tuple[int, ...]) -> None:
    devices = nvml_slice()
    shuffled = seen([devices[place] for place in order])
    assert numbers(shuffled, "cuda") == {4: 0, 6: 1}
    assert numbers(shuffled, "vulkan") == {4: 0, 6: 1}


@pytest.mark.parametrize(
    ("value", "expected"), [("0", {4: 0}), ("1", {6: 0}), ("1,0", {6: 0, 4: 1}), ("3,5", {})]
)
def test_the_variable_counts_inside_the_slice(value: str, expected: dict[int, int]) -> None:
    devices = seen(nvml_slice(), {"CUDA_VISIBLE_DEVICES": value})
    assert numbers(devices, "cuda") == expected
    entries = [device["visibility"]["cuda"] for device in devices]
    hidden = [entry["step"] for entry in entries if not entry["visible"]]
    assert hidden.count("granted") == 6, "what is not granted is not blamed on the variable"
    if value == "3,5":
        assert entries[3]["variable"] == "CUDA_VISIBLE_DEVICES"


def test_tinygrad_numbers_every_card_of_the_kernel_driver() -> None:
    devices = seen(nvml_slice())
    assert numbers(devices, "tinygrad") == {4: 3, 6: 5}
    assert sights(devices, 1)["tinygrad"] is False
    devices = seen(nvml_slice(), {"DEV": ":5+NV"})
    assert numbers(devices, "tinygrad") == {6: 0}
    devices = seen(nvml_slice(), {"DEV": ":0+NV"})
    assert numbers(devices, "tinygrad") == {}


def test_a_container_may_be_started_outside_the_slice() -> None:
    devices = seen(nvml_slice(), {"NVIDIA_VISIBLE_DEVICES": "all"})
    entries = [device["visibility"]["nvidia-container"] for device in devices]
    assert [entry["visible"] for entry in entries] == [None] * 3 + [True, None, True, None, None]
    assert entries[3]["one_of"] == [0, 3]
    assert entries[0]["step"] == "granted"


def test_kfd_gives_one_of_eight() -> None:
    devices = [nodes.amd(slot, slot, 9 - slot) for slot in range(1, 9)]
    evidence = "/sys/class/kfd/kfd/topology/nodes/2/gpu_id cannot be read: EPERM"
    devices = seen(slice_of(devices, (5,), "granted", "kfd-node-closed", evidence))
    for runtime in ("rocr", "hip", "sycl", "opencl", "vulkan", "ggml-vulkan", "tinygrad"):
        assert numbers(devices, runtime) == {5: 0}, runtime
        assert sights(devices, 1)[runtime] is False, runtime
    assert devices[0]["visibility"]["hip"]["code"] == "kfd-node-closed"


def test_kfds_own_order_decides_among_the_granted() -> None:
    devices = [nodes.amd(slot, slot, 9 - slot) for slot in range(1, 9)]
    devices = seen(slice_of(devices, (2, 5), "granted", "kfd-node-closed"))
    assert numbers(devices, "hip") == {5: 0, 2: 1}
    assert numbers(devices, "vulkan") == {2: 0, 5: 1}, "the loader's by address"


def test_missing_render_nodes_of_other_amd_cards() -> None:
    devices = [nodes.amd(slot, slot, slot) for slot in range(1, 5)]
    evidence = "/dev/dri/renderD129 is absent"
    devices = seen(slice_of(devices, (3,), "node", "container-without-gpus", evidence))
    for runtime in ("rocr", "hip", "vulkan", "ggml-vulkan"):
        assert numbers(devices, runtime) == {3: 0}, runtime
        assert sights(devices, 1)[runtime] is False, f"{runtime}: /dev/kfd is there for card 3"


def test_refused_amd_nodes_may_be_kfd_alone() -> None:
    devices = [nodes.amd(slot, slot, slot) for slot in (1, 2)]
    devices = seen([blocked(device, "permission", "not-in-group") for device in devices])
    assert sights(devices, 1)["hip"] is False
    assert sights(devices, 1)["vulkan"] is None
    entry = devices[0]["visibility"]["vulkan"]
    assert entry["step"] == "permission"
    assert str(entry["reason"]).endswith("whether vulkan shows it all the same is not known")


def test_intel_needs_the_render_node_for_everything() -> None:
    devices = slice_of([nodes.intel(1), nodes.intel(2)], (2,), "permission", "no-permission")
    seen(devices)
    for runtime in ("level-zero", "sycl", "opencl", "vulkan", "ggml-vulkan"):
        assert numbers(devices, runtime) == {2: 0}, runtime
        assert sights(devices, 1)[runtime] is False, runtime


OUT_OF_EVERYTHING = [
    ("driver", "driver-not-installed"),
    ("driver", "module-not-loaded"),
    ("driver", "reserved-for-vm"),
    ("driver", "basic-display"),
    ("hardware", "bar-unassigned"),
    ("granted", "gpu-excluded"),
]


@pytest.mark.parametrize(("step", "code"), OUT_OF_EVERYTHING)
@pytest.mark.parametrize("vendor", ["nvidia", "amd", "intel"])
def test_no_runtime_shows_or_counts_it(vendor: str, step: str, code: str) -> None:
    maker = {"nvidia": nodes.nvidia, "amd": nodes.amd, "intel": nodes.intel}[vendor]
    first = maker(1, driver={"name": "vfio-pci"} if code == "reserved-for-vm" else None)
    devices = seen([blocked(first, step, code), ready(maker(2)), ready(maker(3))])
    for runtime, visible in sights(devices, 1).items():
        assert visible is False, runtime
        if runtime != "nvidia-container":  # unset, it gives no GPU
            assert numbers(devices, runtime) == {2: 0, 3: 1}, runtime


@pytest.mark.parametrize("vendor", ["nvidia", "amd", "intel"])
@pytest.mark.parametrize("step", [step for step in STEPS if step != "visible"])
def test_no_blocked_device_is_visible_with_certainty(vendor: str, step: str) -> None:
    maker = {"nvidia": nodes.nvidia, "amd": nodes.amd, "intel": nodes.intel}[vendor]
    codes = ["", "nouveau-bound", "kfd-missing", "library-missing", "version-mismatch", "gpu-lost"]
    codes += ["compute-prohibited", "uvm-missing", "cgroup-denied", "libcuda-missing", "nonsense"]
    for code in codes:
        devices = seen([blocked(maker(1), step, code), ready(maker(2))])
        assert True not in sights(devices, 1).values(), code
        native = {"nvidia": "cuda", "amd": "hip", "intel": "level-zero"}[vendor]
        assert 2 in numbers(devices, native), "a dead device hides no living one"
        for runtime, entry in devices[0]["visibility"].items():
            assert entry["step"] == step or runtime == "nvidia-container", "unset, it gives none"
            assert entry["reason"]


def test_nouveau_leaves_vulkan_in_doubt() -> None:
    first = nodes.nvidia(1, driver={"name": "nouveau"})
    devices = seen([blocked(first, "driver", "nouveau-bound"), ready(nodes.nvidia(2))])
    assert sights(devices, 1)["cuda"] is False
    assert sights(devices, 1)["tinygrad"] is False
    assert sights(devices, 1)["vulkan"] is None
    assert numbers(devices, "cuda") == {2: 0}
    assert devices[1]["visibility"]["vulkan"]["one_of"] == [0, 1]


def test_a_missing_library_leaves_vulkan_and_tinygrad_in_doubt() -> None:
    gpus = [blocked(gpu, "library", "library-missing") for gpu in nodes.h100s(2)]
    devices = seen(gpus)
    told = sights(devices, 1)
    assert {name: told[name] for name in ("cuda", "opencl", "sycl")} == dict.fromkeys(
        ("cuda", "opencl", "sycl"), False
    )
    assert {told[name] for name in ("vulkan", "ggml-vulkan", "tinygrad")} == {None}
    mismatch = seen([blocked(gpu, "library", "version-mismatch") for gpu in nodes.h100s(2)])
    assert sights(mismatch, 1)["vulkan"] is False, "its driver is of the same version"


def test_of_a_lost_gpu_only_its_broken_step_is_a_finding() -> None:
    """That CUDA may number it has no repair of its own; what stands behind it may be another."""
    first, lost, last = nodes.h100s(3)
    gpus = [ready(first), blocked(lost, "responding", "gpu-lost"), ready(last)]
    for value, doubtful in (("0", []), ("0,2", [last["id"]])):
        told = findings(see(gpus, {"CUDA_VISIBLE_DEVICES": value}))
        told = [one for one in told if one["code"] == "order-unknown"]
        expected = [f"which GPUs CUDA shows is not known: one of {name}" for name in doubtful]
        assert [one["what"] for one in told] == expected


def test_a_lost_gpu_may_still_take_a_number() -> None:
    gpus = nodes.h100s(3)
    devices = seen([ready(gpus[0]), blocked(gpus[1], "responding", "gpu-lost"), ready(gpus[2])])
    cuda = [device["visibility"]["cuda"] for device in devices]
    assert [entry["visible"] for entry in cuda] == [True, None, True]
    assert cuda[0]["index"] == 0, "in front of it nothing changes"
    assert cuda[2]["index"] is None
    assert cuda[2]["one_of"] == [1, 2]
    named = seen(devices, {"CUDA_VISIBLE_DEVICES": "1"})
    assert [d["visibility"]["cuda"]["visible"] for d in named] == [False, None, None]
    by_uuid = seen(devices, {"CUDA_VISIBLE_DEVICES": nodes.UUIDS[2]})
    assert numbers(by_uuid, "cuda") == {3: 0}


def test_many_lost_gpus_leave_every_number_possible() -> None:
    gpus = nodes.h100s(6)
    lost = [blocked(gpu, "responding", "gpu-lost") for gpu in gpus[:5]]
    devices = seen([*lost, ready(gpus[5])], {"CUDA_VISIBLE_DEVICES": "3"})
    assert devices[5]["visibility"]["cuda"]["visible"] is None
    devices = seen([*lost, ready(gpus[5])])
    entry = devices[5]["visibility"]["cuda"]
    assert (entry["visible"], entry["index"]) == (True, None)


def test_a_prohibited_compute_mode_keeps_the_number() -> None:
    gpus = nodes.h100s(3)
    first = blocked(gpus[0], "granted", "compute-prohibited", "compute mode is 2")
    devices = seen([first, ready(gpus[1]), ready(gpus[2])])
    assert numbers(devices, "cuda") == {2: 1, 3: 2}
    assert sights(devices, 1)["cuda"] is None
    assert see(devices, {})["cuda"][0].certain is False
    hidden = seen(devices, {"CUDA_VISIBLE_DEVICES": "1"})
    assert sights(hidden, 1)["cuda"] is False
    assert hidden[0]["visibility"]["cuda"]["step"] == "visible"


def test_instances_without_their_gpu() -> None:
    card = nodes.nvidia(1)
    parts = [nodes.mig(card, number, number) for number in (1, 2)]
    closed = blocked(parts[1], "granted", "mig-cap-denied", "/dev/nvidia-caps/nvidia-cap21: EPERM")
    devices = seen([blocked(card, *NOT_LISTED), ready(parts[0]), closed])
    cuda = [device["visibility"]["cuda"] for device in devices]
    assert [(entry["visible"], entry["index"]) for entry in cuda] == [
        (False, None),
        (True, 0),
        (False, None),
    ]
    assert [entry.get("step") for entry in cuda] == ["granted", None, "granted"]


def test_mig_mode_has_a_code_of_its_own() -> None:
    card = ready(nodes.nvidia(1))
    devices = seen([card, ready(nodes.mig(card, 1, 1)), ready(nodes.nvidia(2))])
    entry = devices[0]["visibility"]["cuda"]
    assert (entry["step"], entry["code"], entry["variable"]) == ("visible", "mig-mode", None)


def test_a_part_fails_with_its_whole_unless_it_is_judged_itself() -> None:
    card = blocked(nodes.nvidia(1), "driver", "module-not-loaded")
    devices = seen([card, nodes.mig(card, 1, 1), ready(nodes.mig(card, 2, 2))])
    assert [d["visibility"]["cuda"]["visible"] for d in devices] == [False, False, True]


def partition(card: Any, number: int) -> Any:
    name = f"amd:partition-{number}"
    more = {"id": name, "ids": [name], "parent": card["id"]}
    return nodes.amd(1, None, number) | more


def test_one_partition_of_a_card_is_the_only_device() -> None:
    card = nodes.amd(1, 7)
    parts = [partition(card, number) for number in (1, 2, 3)]
    closed = [blocked(part, "granted", "kfd-node-closed") for part in (parts[0], parts[2])]
    devices = seen([ready(card), closed[0], ready(parts[1]), closed[1]])
    entries = [device["visibility"].get("hip") for device in devices]
    assert entries[0] is None, "the card itself is no HIP device"
    assert [(entry["visible"], entry["index"]) for entry in entries[1:]] == [
        (False, None),
        (True, 0),
        (False, None),
    ]
    alone = seen([ready(parts[1])])
    assert alone[0]["visibility"]["hip"]["index"] == 0, "a container shows no card"
    none = seen([ready(card), *(blocked(part, *NOT_LISTED) for part in parts)])
    assert not any((d["visibility"].get("hip") or {}).get("visible") for d in none)


def test_a_card_without_kfd_is_vulkans_alone() -> None:
    steps = [{"step": "node", "status": "broken", "evidence": "no /dev/kfd", "code": "kfd-missing"}]
    limited = {"state": "limited", "broken": "node", "steps": steps}
    devices = seen([nodes.amd(1, 1) | {"readiness": limited}])
    told = sights(devices, 1)
    assert told == {
        "rocr": False,
        "hip": False,
        "sycl": False,
        "opencl": False,
        "vulkan": True,
        "ggml-vulkan": True,
        "tinygrad": False,
    }
    card = devices[0]
    assert (native_runtime(card), state_word(card), usable_here(card).usable) == (
        "vulkan",
        "limited",
        True,
    )
    assert select(nodes.report(devices)).runtime == "vulkan"


def test_readiness_replaces_the_rules_about_drivers() -> None:
    odd = nodes.nvidia(1, driver={"name": "nouveau"})
    assert numbers(seen([ready(odd)]), "cuda") == {1: 0}, "whoever judged it knows more"
    unknown = odd | {"readiness": {"state": "unknown", "broken": None, "steps": []}}
    devices = seen([unknown])
    assert numbers(devices, "cuda") == {}
    entry = devices[0]["visibility"]["cuda"]
    assert (entry["step"], entry["code"]) == ("driver", "nouveau-bound")
    assert numbers(devices, "vulkan") == {1: 0}


def test_what_a_variable_hid_when_the_report_was_made_blocks_nothing() -> None:
    steps = [
        {"step": "responding", "status": "broken", "evidence": "a limit", "code": "power-capped"},
        {"step": "visible", "status": "broken", "evidence": "x", "code": "hidden-by-variable"},
    ]
    hidden = {"state": "blocked", "broken": "visible", "steps": steps}
    devices = seen([nodes.nvidia(1) | {"readiness": hidden}, ready(nodes.nvidia(2))])
    assert numbers(devices, "cuda") == {1: 0, 2: 1}


def test_a_runtime_that_cannot_start_shows_nothing() -> None:
    gpus = [blocked(gpu, "runtime", "libcuda-missing") for gpu in nodes.h100s(2)]
    devices = seen(gpus)
    assert sights(devices, 1)["cuda"] is False
    assert sights(devices, 1)["vulkan"] is None


def test_nothing_is_told_of_variables_that_do_not_decide() -> None:
    devices = seen(nvml_slice())
    assert findings(see(devices, {})) == []
    found = findings(see(devices, {"CUDA_VISIBLE_DEVICES": "0"}))
    assert [(one["code"], one["device"]) for one in found] == [("hidden-by-variable", nodes.pci(6))]


def test_a_dev_on_which_tinygrad_raises_is_a_finding() -> None:
    for value in ("A+B+C", "nvk:0+NV", "BOGUS"):
        found = findings(see(nodes.h100s(2), {"DEV": value}))
        faults = [one for one in found if one["code"] == "variable-breaks"]
        assert [(one["variable"], one["step"]) for one in faults] == [("DEV", "visible")], value
        assert value in faults[0]["why"]


def test_metal_and_pal_withhold_too() -> None:
    mac = blocked(nodes.amd(1, vendor="apple"), "responding", "gpu-lost")
    assert sights(seen([mac], os="darwin"), 1) == {"metal": None}
    cards = [blocked(nodes.amd(1), "driver", "basic-display"), ready(nodes.amd(2))]
    devices = seen(cards, os="windows")
    assert numbers(devices, "hip") == {2: 0}
    assert sights(devices, 1)["vulkan"] is False


NO_LIBRARY = ("library", "library-missing", "libnvidia-ml.so.1 is in no folder of the loader")


@pytest.mark.parametrize(
    ("value", "codes"),
    [
        ("0", []),  # as Slurm and Ray set it in a job
        ("0,1", []),
        ("2", ["variable-stops-at"]),
        ("0 1", ["variable-stops-at"]),
    ],
)
def test_a_number_of_a_job_is_no_fault_where_no_gpu_can_be_used(
    value: str, codes: list[str]
) -> None:
    devices = slice_of(nodes.h100s(2), (), *NO_LIBRARY)
    said = findings(see(devices, {"CUDA_VISIBLE_DEVICES": value}))
    assert [one["code"] for one in said] == codes
