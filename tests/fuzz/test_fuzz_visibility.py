"""Variables that hide devices, requests for devices, and amounts: any text."""

from __future__ import annotations

import json
from typing import Any

import pytest
from foreign import CHANCES, Chance
from hypothesis import given

from probe_core.pipeline.refresh import refresh
from probe_core.pipeline.static import complete_report
from probe_core.selection import SelectionError, select
from probe_core.sizes import parse_size
from probe_core.visibility import annotate, findings, see

VARIABLES = (
    "CUDA_VISIBLE_DEVICES CUDA_DEVICE_ORDER NVIDIA_VISIBLE_DEVICES NVIDIA_REQUIRE_CUDA"
    " CUDA_VERSION HIP_VISIBLE_DEVICES ROCR_VISIBLE_DEVICES GPU_DEVICE_ORDINAL ZE_AFFINITY_MASK"
    " ZE_FLAT_DEVICE_HIERARCHY ZE_ENABLE_PCI_ID_DEVICE_ORDER ONEAPI_DEVICE_SELECTOR"
    " GGML_VK_VISIBLE_DEVICES VK_LOADER_DRIVERS_SELECT VK_LOADER_DRIVERS_DISABLE VK_DRIVER_FILES"
    " VK_ICD_FILENAMES VK_LOADER_DEVICE_SELECT VK_LOADER_VENDOR_ID_FILTER"
    " VK_LOADER_DEVICE_ID_FILTER VK_LOADER_DRIVER_ID_FILTER MESA_VK_DEVICE_SELECT"
    " NODEVICE_SELECT VISIBLE_DEVICES HCQ_VISIBLE_DEVICES DEV"
).split()
ENTRIES = (
    "0 1 2 -1 010 0-1 0.0 0:0 GPU-1 GPU- MIG-GPU-1/1/0 MIG-1 all none void NoDevFiles PCI_BUS_ID"
    " FASTEST_FIRST COMPOSITE FLAT COMBINED level_zero:gpu opencl:* *:* !level_zero:0"
    " level_zero:0.*"
    " cuda:0,1 0x10de 10de:2684 pci:0000:11:00.0 *nvidia* ~all~ /etc/x/nvidia_icd.json KFD:0,1+AMD"
    " NVK+NV AMD CPU:LLVM 4x2 20GiB 1e3 nvidia.com/gpu=0 gpu:1"
).split()
SEPARATORS = [",", ",", ";", " ", ":", "", ", "]


def gpu(number: int, vendor: str) -> dict[str, Any]:
    address = f"pci:0000:{len(vendor)}{number}:00.0"
    return {
        "id": address,
        "ids": [address, f"uuid:GPU-{len(vendor)}{number}"],
        "kind": "gpu",
        "vendor": vendor,
        "name": f"{vendor} {number}",
        "memory": {"total": 1 << 34, "free": 1 << 33},
        "node_index": {"nvml": number, "kfd": number, "drm_render": 128 + number},
        "driver": {"name": vendor, "version": "580.1"},
        "pci": {"id": "10de:2684"},
        "extra": {"mig": "enabled"} if number == 2 else {},
        "seen_by": ["acme"],
    }


def node(count: int) -> list[dict[str, Any]]:
    """Return `count` GPUs of each vendor; NVIDIA's third is cut in two."""
    devices = [gpu(n, v) for v in ("nvidia", "amd", "intel", "arm") for n in range(count)]
    for number in range(2 if count > 2 else 0):
        part = gpu(number, "nvidia") | {"parent": "pci:0000:62:00.0", "extra": {"gi": number}}
        devices.append(part | {"id": f"uuid:MIG-{number}", "ids": [f"uuid:MIG-{number}"]})
    return devices


def document_of(devices: list[dict[str, Any]]) -> Any:
    """Return a report's document, completed as a static report is."""
    whole: Any = complete_report({"devices": devices})
    return whole


NODES = [document_of(node(count))["devices"] for count in range(4)]


def environ(chance: Chance) -> dict[str, str]:
    names = chance.sample(VARIABLES, chance.randrange(5))
    return {name: chance.words(ENTRIES, chance.choice(SEPARATORS)) for name in names}


@pytest.mark.heavy
@given(CHANCES)
def test_variables(chance: Chance) -> None:
    devices: Any = [dict(device) for device in chance.choice(NODES)]
    known = {device["id"] for device in devices}
    system = chance.choice(["linux", "linux", "windows", "darwin"])
    version = chance.choice([{}, {"tinygrad": chance.words(["0.12.0", "0.9"], ".")}])
    views = see(devices, environ(chance), os=system, versions=version)
    for view in (view for found in views.values() for view in found):
        assert all(set(mask.ids) <= known for mask in view.masks)
    annotate(devices, views)
    json.dumps([devices, findings(views)])


@pytest.mark.heavy
@given(CHANCES)
def test_devices_that_lack_much(chance: Chance) -> None:
    """A static report's devices may say little; see test_fuzz_settings for what they may say."""
    devices = [
        {
            key: value
            for key, value in device.items()
            if key in ("id", "kind") or chance.random() > 0.3
        }
        for device in chance.choice(NODES)
    ]
    document = document_of(devices)
    refresh(document, environ(chance))
    json.dumps(document)


@pytest.mark.heavy
@given(CHANCES)
def test_requests(chance: Chance) -> None:
    devices: Any = [dict(device) for device in chance.choice(NODES)]
    annotate(devices, see(devices, environ(chance)))
    wanted = chance.words(ENTRIES, chance.choice(SEPARATORS))
    memory = chance.choice([None, chance.words(["20", "GiB", "1e3", "MB"], "")])
    try:
        found = select({"devices": devices}, wanted, memory=memory)
    except SelectionError as error:
        told = error
    else:
        assert set(found.ids) <= {device["id"] for device in devices}
        json.dumps(found.environ({"devices": devices}, {}))
        return
    assert str(told)


@given(CHANCES)
def test_amounts_of_memory(chance: Chance) -> None:
    try:
        size = parse_size(chance.words(["20", "GiB", "1e3", "MB", ".5", "k"], ""))
    except ValueError:
        return
    assert 0 <= size < 1 << 62
