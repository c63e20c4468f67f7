"""Data files and variables that others write: chips, visibility, and the files of a machine."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from probe_core.api import NotApplicable, Request
from probe_core.machine import Machine
from probe_core.probers import builtin_probers
from probe_core.resolve import open_chipdb
from probe_core.sightings import check_sighting
from probe_core.visibility import see

# How long: `FUZZ_EXAMPLES=100000 python -m pytest tests/fuzz -n 4` by hand.
fuzz = settings(
    max_examples=int(os.environ.get("FUZZ_EXAMPLES", "100")),
    derandomize="FUZZ_EXAMPLES" not in os.environ,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
)
LISTS = (
    st.text(alphabet="0123456789,-;.: GPUMIGabcdefx*\t", max_size=30)
    | st.text(max_size=20)
    | st.lists(
        st.sampled_from("0 1 2 -1 010 1abc GPU-1 GPU- MIG-GPU-1/1/0 all none * ! 0.1".split())
    ).map(",".join)
)
VARIABLES = (
    "CUDA_VISIBLE_DEVICES HIP_VISIBLE_DEVICES ROCR_VISIBLE_DEVICES ZE_AFFINITY_MASK"
    " ZE_FLAT_DEVICE_HIERARCHY ONEAPI_DEVICE_SELECTOR GPU_DEVICE_ORDINAL CUDA_DEVICE_ORDER"
    " NVIDIA_VISIBLE_DEVICES GGML_VK_VISIBLE_DEVICES VK_LOADER_DRIVERS_SELECT MESA_VK_DEVICE_SELECT"
    " VISIBLE_DEVICES DEV SYCL_DEVICE_ALLOWLIST VK_DRIVER_FILES"
).split()


def gpu(number: int, vendor: str) -> dict[str, Any]:
    address = f"pci:0000:{len(vendor)}{number}:00.0"
    return {
        "id": address,
        "ids": [address, f"uuid:GPU-{len(vendor)}{number}"],
        "kind": "gpu",
        "vendor": vendor,
        "name": f"{vendor} {number}",
        "memory": {"total": 1 << 34},
        "node_index": {"nvml": number, "drm_render": 128 + number},
        "unknown": {},
        "sources": {},
        "driver": {},
        "backends": [],
        "pci": {"id": "10de:2684"},
        "seen_by": ["acme"],
    }


@fuzz
@given(st.dictionaries(st.sampled_from(VARIABLES), LISTS), st.integers(0, 3))
def test_visibility(environ: dict[str, str], count: int) -> None:
    devices = [gpu(n, v) for v in ("nvidia", "amd", "intel") for n in range(count)]
    known = {device["id"] for device in devices}
    views = see(devices, environ)
    for views_of_one in views.values():
        for view in views_of_one:
            for mask in view.masks:
                assert set(mask.ids) <= known


CHIPS = st.text(max_size=200) | st.lists(
    st.sampled_from(
        [
            "[[chip]]\n",
            'id = "acme/one"\n',
            'name = "One"\n',
            'arch = "ada"\n',
            "units = 5\n",
            "units = -1\n",
            'pci = ["10de:2684"]\n',
            "[chip.memory]\n",
            "total = 9e999\n",
            "peaks = [1, 2]\n",
            "[arch.x]\n",
            "schema = 1\n",
            "x = [[[[[[1]]]]]]\n",
        ]
    )
).map("".join)


@fuzz
@given(CHIPS)
def test_chip_files(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    path = tmp_path_factory.mktemp("chips") / "chips.toml"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    database, findings = open_chipdb([str(path)])
    assert database is not None or findings


FILES = [
    "proc/meminfo",
    "proc/cpuinfo",
    "proc/self/cgroup",
    "sys/bus/pci/devices/0000:01:00.0/vendor",
    "sys/bus/pci/devices/0000:01:00.0/device",
    "sys/bus/pci/devices/0000:01:00.0/class",
    "sys/bus/pci/devices/0000:01:00.0/numa_node",
    "sys/bus/pci/devices/0000:01:00.0/current_link_speed",
    "sys/bus/pci/devices/0000:01:00.0/current_link_width",
    "sys/bus/pci/devices/0000:01:00.0/power/runtime_status",
    "sys/devices/system/cpu/online",
    "sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq",
    "sys/devices/system/cpu/cpu0/topology/core_id",
    "sys/devices/system/node/node0/cpulist",
    "sys/firmware/devicetree/base/gpu@fb000000/compatible",
    "sys/firmware/devicetree/base/model",
    "sys/class/drm/card0/dev",
    "sys/class/misc/mali0/dev",
]
CONTENTS = (
    st.binary(max_size=60)
    | st.sampled_from(
        [
            b"",
            b"0x10de\n",
            b"0x030000\n",
            b"-1\n",
            b"99999999999999999999\n",
            b"0-4294967295\n",
            b"3-1",
        ]
    )
    | st.text(max_size=30).map(lambda text: text.encode("utf-8", "surrogatepass"))
)


@fuzz
@given(st.dictionaries(st.sampled_from(FILES), CONTENTS, max_size=8))
def test_the_files_of_a_machine(
    tmp_path_factory: pytest.TempPathFactory, files: dict[str, bytes]
) -> None:
    root = tmp_path_factory.mktemp("machine")
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(content)
    machine = Machine(str(root))
    for prober in builtin_probers():
        assert prober.builtin is not None
        answer = prober.builtin(Request(machine))
        if isinstance(answer, NotApplicable):
            continue
        for sighting in answer:
            checked, _ = check_sighting(sighting)
            json.dumps(checked, allow_nan=False)
