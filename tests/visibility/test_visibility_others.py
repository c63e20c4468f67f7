"""Vulkan, ggml, the NVIDIA container runtime, tinygrad by version, Metal, and the whole."""

from __future__ import annotations

import builtins
import json
import subprocess
import sys
import time
from typing import Any

import pytest
import visibility_nodes as nodes
from hypothesis import given, settings
from hypothesis import strategies as st

from probe_core.model.runtimes import RUNTIMES
from probe_core.model.verdict import visible
from probe_core.visibility import annotate, findings, load_rules, parts, see, tinygrad
from probe_core.visibility.view import quoted

IGPU = nodes.intel(0, name="Intel Iris Xe", code="9a49", memory={"kind": "shared"})
MIXED = [
    IGPU,
    nodes.amd(3, pci={"id": "1002:744c"}),
    nodes.nvidia(2, pci={"id": "10de:2684"}),
]


def vulkan(devices: list[Any] | None = None, **environ: str) -> Any:
    return see(devices or MIXED, environ)["vulkan"][0]


VULKAN = [
    ({}, [2, 3, 0]),  # discrete before integrated, then by PCI address
    ({"VK_LOADER_DEVICE_SELECT": "1002:744c"}, [3, 2, 0]),
    ({"VK_LOADER_DEVICE_SELECT": "0x8086:0x9A49"}, [0, 2, 3]),
    ({"VK_LOADER_DEVICE_SELECT": "1002"}, [2, 3, 0]),
    ({"VK_LOADER_DEVICE_SELECT": "1002:ffff"}, [2, 3, 0]),
    ({"VK_LOADER_VENDOR_ID_FILTER": "0x10de"}, [2]),
    ({"VK_LOADER_VENDOR_ID_FILTER": "4098"}, [3]),
    ({"VK_LOADER_VENDOR_ID_FILTER": "0x1000:0x10ff"}, [2, 3]),
    ({"VK_LOADER_VENDOR_ID_FILTER": ""}, [2, 3, 0]),
    ({"VK_LOADER_VENDOR_ID_FILTER": "x"}, []),
    ({"VK_LOADER_DEVICE_ID_FILTER": "0x744c,0x2684"}, [2, 3]),
    ({"VK_LOADER_DEVICE_ID_FILTER": "0x744c", "VK_LOADER_VENDOR_ID_FILTER": "0x10de"}, []),
    ({"VK_DRIVER_FILES": "/usr/share/vulkan/icd.d/nvidia_icd.json"}, [2]),
    ({"VK_ICD_FILENAMES": "/x/radeon_icd.x86_64.json:/x/intel_icd.x86_64.json"}, [3, 0]),
    ({"VK_DRIVER_FILES": "/x/lvp_icd.json"}, []),
    ({"VK_DRIVER_FILES": "/x/nvidia_icd.json", "VK_ICD_FILENAMES": "/x/radeon_icd.json"}, [2]),
    ({"MESA_VK_DEVICE_SELECT": "8086:9a49"}, [0, 2, 3]),
    ({"MESA_VK_DEVICE_SELECT": "8086:9a49!"}, [0]),
    ({"MESA_VK_DEVICE_SELECT": "8086:9a49!", "NODEVICE_SELECT": "1"}, [2, 3, 0]),
    ({"CUDA_VISIBLE_DEVICES": ""}, [2, 3, 0]),
]


@pytest.mark.parametrize(("environ", "expected"), VULKAN)
def test_vulkan(environ: dict[str, str], expected: list[int]) -> None:
    view = vulkan(**environ)
    assert view.certain
    assert nodes.slots(view.visible) == expected


def test_vulkan_cannot_know_drivers_of_another_name() -> None:
    view = vulkan(VK_DRIVER_FILES="/opt/my_icd.json")
    assert not view.certain
    assert {view.entry(name)["visible"] for name in view.pool} == {None}
    assert {vulkan(VK_LOADER_DRIVER_ID_FILTER="3").entry(n)["visible"] for n in view.pool} == {None}


GGML = [
    (None, [2, 3, 0]),
    ("0", [2]),
    ("2,0", [0, 2]),
    ("2 0", [0, 2]),
    ("", []),
    ("1,1", [3, 3]),
    ("1,x,0", [3]),
    ("1abc,0", [3]),
    ("abc", []),
    ("0,5", []),
    ("-1", []),
    ("01", [3]),
    ("0x1", [2]),
]


@pytest.mark.parametrize(("value", "expected"), GGML)
def test_ggml(value: str | None, expected: list[int]) -> None:
    environ = {} if value is None else {"GGML_VK_VISIBLE_DEVICES": value}
    assert nodes.slots(see(MIXED, environ)["ggml-vulkan"][0].masks[0].ids) == expected


def test_ggml_counts_what_the_loader_left() -> None:
    environ = {"VK_LOADER_VENDOR_ID_FILTER": "0x1002", "GGML_VK_VISIBLE_DEVICES": "0"}
    assert nodes.slots(see(MIXED, environ)["ggml-vulkan"][0].visible) == [3]


CONTAINER = [
    (None, []),
    ("", []),
    ("void", []),
    ("0,void", []),
    ("none", []),
    ("all", [1, 2, 3]),
    ("0", [1]),
    ("2,0", [1, 3]),
    (" 1 , 2 ", [2, 3]),
    ("0,,1", [1, 2]),
    ("0,0", [1]),
    (nodes.UUIDS[1], [2]),
    ("GPU-e429", [3]),
    ("GPU-e", [3]),
    ("GPU-", []),
    ("7", []),
    ("3", []),
    ("000000001", [2]),
    ("0000000001", []),
    ("0,7", []),
    ("-1", []),
    ("nvidia.com/gpu=1", [2]),
    ("0,all", [1, 2, 3]),
    ("nonsense", []),
]


@pytest.mark.parametrize(("value", "expected"), CONTAINER)
def test_nvidia_container(value: str | None, expected: list[int]) -> None:
    environ = {} if value is None else {"NVIDIA_VISIBLE_DEVICES": value}
    views = see(nodes.h100s(3), environ)
    assert nodes.slots(views["nvidia-container"][0].visible) == expected
    assert len(views["cuda"][0].visible) == 3  # it acts before the container starts


@pytest.mark.parametrize(
    ("environ", "reason"),
    [
        ({}, "NVIDIA_VISIBLE_DEVICES is not set: the container runtime adds no GPU"),
        (
            {"NVIDIA_VISIBLE_DEVICES": "0,void"},
            "NVIDIA_VISIBLE_DEVICES is '0,void': the container runtime adds no GPU",
        ),
        (
            {"NVIDIA_VISIBLE_DEVICES": "none"},
            "NVIDIA_VISIBLE_DEVICES='none' adds the driver but no GPU",
        ),
    ],
)
def test_why_a_container_gets_no_gpu(environ: dict[str, str], reason: str) -> None:
    (view,) = see(nodes.h100s(1), environ)["nvidia-container"]
    assert view.entry(view.pool[0])["reason"] == reason


def test_long_values_are_cut_in_sentences() -> None:
    assert [quoted("9" * count) for count in (60, 61)] == [repr("9" * 60), repr(f"{'9' * 57}...")]


def test_nvidia_container_and_mig() -> None:
    card = nodes.nvidia(1)
    cut = [nodes.mig(card, 1, 1), nodes.mig(card, 2, 2)]
    environ = {"NVIDIA_VISIBLE_DEVICES": "0:1"}
    views = see([card, *cut], environ)
    assert views["nvidia-container"][0].visible == [cut[1]["id"]]
    environ = {"NVIDIA_VISIBLE_DEVICES": cut[0]["id"][5:]}
    assert see([card, *cut], environ)["nvidia-container"][0].visible == [cut[0]["id"]]


TINYGRAD = [
    ("0.14.0", {}, [1, 2, 3, 4]),
    ("0.14.0", {"CUDA_VISIBLE_DEVICES": "1"}, [1, 2, 3, 4]),
    ("0.14.0", {"VISIBLE_DEVICES": "1"}, [1, 2, 3, 4]),
    ("0.14.0", {"DEV": "NV"}, [1, 2, 3, 4]),
    ("0.14.0", {"DEV": ":1+NV"}, [2]),
    ("0.14.0", {"DEV": "NVK:2,0+NV"}, [3, 1]),
    ("0.14.0", {"DEV": "NVK:1-2+nv:NVCC"}, [2, 3]),
    ("0.14.0", {"DEV": "KFD:0+AMD;NVK:3+NV"}, [4]),
    ("0.14.0", {"DEV": "KFD:0+AMD"}, [1, 2, 3, 4]),
    ("0.14.0", {"DEV": ":9+NV"}, []),
    ("0.14.0", {"DEV": ":2-4+NV"}, []),
    ("0.14.0", {"DEV": ":-1+NV"}, []),
    ("0.14.0", {"DEV": ":x+NV"}, []),
    ("0.14.0", {"DEV": "\udcff+;:"}, []),  # NV has no such interface
    ("0.13.0", {"HCQ_VISIBLE_DEVICES": "0"}, []),
    ("0.13", {"HCQ_VISIBLE_DEVICES": "0"}, []),
    ("0.13", {"DEV": ":1-2+NV"}, [2, 3]),
    ("0.12", {"HCQ_VISIBLE_DEVICES": "2,0"}, [3, 1]),
    ("0.9", {"VISIBLE_DEVICES": "2"}, [3]),
    ("0.8", {"VISIBLE_DEVICES": "2"}, [1, 2, 3, 4]),
    ("0.12.0", {"HCQ_VISIBLE_DEVICES": "2,0"}, [3, 1]),
    ("0.12.0", {"CUDA_VISIBLE_DEVICES": "2"}, [1, 2, 3, 4]),
    ("0.12.0", {"VISIBLE_DEVICES": "2"}, [1, 2, 3, 4]),
    ("0.11.0", {"CUDA_VISIBLE_DEVICES": "2"}, [3]),
    ("0.11.0", {"CUDA_VISIBLE_DEVICES": ""}, [1, 2, 3, 4]),
    ("0.11.0", {"CUDA_VISIBLE_DEVICES": "-1"}, []),  # the last of the ioctl's 64 places
    ("0.11.0", {"CUDA_VISIBLE_DEVICES": "GPU-9942190a"}, []),
    ("0.10.3", {"CUDA_VISIBLE_DEVICES": "0", "VISIBLE_DEVICES": "3,1"}, [4, 2]),
    ("0.10.3", {"CUDA_VISIBLE_DEVICES": "0", "VISIBLE_DEVICES": ""}, [1, 2, 3, 4]),
    ("0.9.2", {"CUDA_VISIBLE_DEVICES": "1, 3"}, [2, 4]),
    ("0.8.0", {"CUDA_VISIBLE_DEVICES": "1"}, [1, 2, 3, 4]),
    ("0.11.0", {"CUDA_VISIBLE_DEVICES": "4"}, []),
    ("0.11.0", {"HIP_VISIBLE_DEVICES": "1"}, [1, 2, 3, 4]),
]


@pytest.mark.parametrize(("version", "environ", "expected"), TINYGRAD)
def test_tinygrad(version: str, environ: dict[str, str], expected: list[int]) -> None:
    (view,) = tinygrad.see(nodes.h100s(4), environ, version)
    assert nodes.slots(view.visible) == expected


@pytest.mark.parametrize(
    ("version", "names"),
    [
        ("0.10.3", "CL GPU LLVM NV RDMA TINYFS X cl nv:1 NV:x"),  # which read it as a flag
        ("0.11.0", "GPU LLVM NV nv:1"),
        ("0.12.0", "CL NV TINYFS cl nv:1"),
        ("0.13.0", "CL NV RDMA TINYFS cl"),  # where a number is no part of a name
    ],
)
def test_devices_that_a_release_of_tinygrad_has(version: str, names: str) -> None:
    asked = "CL GPU LLVM NV RDMA TINYFS X cl nv:1 NV:x".split()
    views = {name: tinygrad.see(nodes.h100s(2), {"DEV": name}, version)[0] for name in asked}
    assert [name for name, view in views.items() if len(view.visible) == 2] == names.split()
    assert all(not view.visible for name, view in views.items() if name not in names.split())


def test_tinygrad_counts_a_card_in_mig_mode_and_cannot_open_it() -> None:
    """CUDA numbers its instances; NV numbers the kernel driver's cards and subscribes to none."""
    card = nodes.nvidia(1)
    devices = [card, nodes.mig(card, 1, 1), nodes.nvidia(2)]
    (view,) = tinygrad.see(devices, {})
    entries = view.entries()
    assert list(entries) == [card["id"], devices[2]["id"]]
    cut, other = entries.values()
    assert (cut["visible"], cut["index"], cut["code"]) == (False, None, "mig-mode")
    assert "the kernel driver serves its instances alone" in str(cut["reason"])
    assert (other["visible"], other["index"], view.certain) == (True, 1, True)
    (view,) = tinygrad.see([nodes.nvidia(1, extra={"mig": True}), devices[2]], {})
    cut, other = view.entries().values()
    assert (cut["visible"], other["index"], view.certain) == (None, 1, False)
    assert "whether NV can open it is not known" in str(cut["reason"])
    alone = nodes.mig(card, 1, 1) | {"parent": None}
    assert tinygrad.see([alone], {}) == [], "a container that was given an instance alone"


def test_tinygrad_on_amd_reads_hips_variable_before_0_12() -> None:
    devices = [nodes.amd(1), nodes.amd(2)]
    assert nodes.slots(
        tinygrad.see(devices, {"HIP_VISIBLE_DEVICES": "1"}, "0.11.0")[0].visible
    ) == [2]
    assert nodes.slots(tinygrad.see(devices, {"DEV": ":1+AMD"}, None)[0].visible) == [2]


def test_metal_has_no_variable() -> None:
    gpu = {"id": "apple:gpu", "kind": "gpu", "vendor": "apple", "memory": {"kind": "unified"}}
    mac: Any = [nodes.whole(gpu)]
    views = see(mac, {"CUDA_VISIBLE_DEVICES": ""}, os="darwin")
    assert list(views) == ["metal"]
    assert views["metal"][0].visible == ["apple:gpu"]


def test_metal_has_cards_before_the_processors_own_and_promises_no_order() -> None:
    kinds = ("shared", "dedicated", "dedicated")
    macs: Any = [
        nodes.whole({"id": f"x:{at}", "kind": "gpu", "vendor": "amd", "memory": {"kind": kind}})
        for at, kind in enumerate(kinds)
    ]
    view = see(macs, {}, os="darwin")["metal"][0]
    assert [mask.ids for mask in view.masks] == [["x:1", "x:2", "x:0"], ["x:2", "x:0", "x:1"]]
    assert view.uncertain == "macOS does not promise an order of several GPUs"


def test_no_gpu_no_views() -> None:
    devices: list[dict[str, Any]] = [
        {"id": "cpu:0", "kind": "cpu", "vendor": "intel"},
        {"id": "pci:0000:05:00.0", "kind": "display", "vendor": "aspeed"},
    ]
    full: Any = [nodes.whole(device) for device in devices]
    views = see(full, {"CUDA_VISIBLE_DEVICES": "0"})
    annotate(full, views)
    assert views == {}
    assert [device["visibility"] for device in full] == [{}, {}]


def test_a_runtime_is_listed_only_for_its_devices() -> None:
    devices = [dict(device) for device in MIXED]
    annotate(devices, see(devices, {}))
    told = [list(device["visibility"]) for device in devices]
    assert told[0] == ["level-zero", "sycl", "opencl", "vulkan", "ggml-vulkan"]
    assert told[1] == ["rocr", "hip", "sycl", "opencl", "vulkan", "ggml-vulkan", "tinygrad"]
    assert told[2] == [name for name in RUNTIMES if name not in _OTHERS]


_OTHERS = ("rocr", "hip", "level-zero", "metal")


def test_visible_devices_come_in_the_runtimes_order() -> None:
    devices = nodes.h100s(4)
    annotate(devices, see(devices, {"CUDA_VISIBLE_DEVICES": "2,0"}))
    report: Any = nodes.report([*devices, nodes.whole({"id": "cpu:0", "kind": "cpu"})])
    assert nodes.slots([device["id"] for device in visible(report, "cuda")]) == [3, 1]
    assert [device["id"] for device in visible(report)] == [
        "pci:0000:01:00.0",
        "pci:0000:03:00.0",
        "cpu:0",
    ]


def test_views_and_findings_are_json() -> None:
    environ = {"CUDA_VISIBLE_DEVICES": "0,\udcff", "ZE_AFFINITY_MASK": "9", "VK_DRIVER_FILES": "x"}
    views = see(MIXED, environ)
    text = json.dumps([view.as_json() for found in views.values() for view in found])
    assert "\udcff" not in json.loads(json.dumps(findings(views)))[0]["why"]
    assert json.loads(text)


_VARIABLES = [
    "CUDA_VISIBLE_DEVICES",
    "CUDA_DEVICE_ORDER",
    "HIP_VISIBLE_DEVICES",
    "ROCR_VISIBLE_DEVICES",
    "GPU_DEVICE_ORDINAL",
    "ZE_AFFINITY_MASK",
    "ZE_FLAT_DEVICE_HIERARCHY",
    "ZE_ENABLE_PCI_ID_DEVICE_ORDER",
    "ONEAPI_DEVICE_SELECTOR",
    "VK_DRIVER_FILES",
    "VK_LOADER_DEVICE_SELECT",
    "VK_LOADER_VENDOR_ID_FILTER",
    "VK_LOADER_DEVICE_ID_FILTER",
    "MESA_VK_DEVICE_SELECT",
    "GGML_VK_VISIBLE_DEVICES",
    "NVIDIA_VISIBLE_DEVICES",
    "DEV",
    "HCQ_VISIBLE_DEVICES",
    "VISIBLE_DEVICES",
]


@pytest.mark.heavy
@given(
    environ=st.dictionaries(
        st.sampled_from(_VARIABLES), st.text() | st.text(alphabet="0123,-+:;.GPU!*x ")
    ),
    version=st.sampled_from(["0.14.0", "0.12.0", "0.11.0", "", "x.y"]),
)
@settings(max_examples=200, deadline=None)
def test_no_environment_raises(environ: dict[str, str], version: str) -> None:
    card = nodes.nvidia(6)
    devices = [dict(device) for device in (*MIXED, card, nodes.mig(card, 1, 1))]
    views = see(devices, environ, versions={"tinygrad": version})
    annotate(devices, views)
    findings(views)
    for found in views.values():
        for view in found:
            assert set(view.possible) <= set(view.pool)


def test_eight_devices_and_all_runtimes_within_a_millisecond() -> None:
    devices = nodes.h100s(8)
    environ = {"CUDA_VISIBLE_DEVICES": "0,1,2,3", "NVIDIA_VISIBLE_DEVICES": "all"}
    annotate(devices, see(devices, environ))
    best = 1.0
    for _ in range(50):
        begun = time.perf_counter()
        annotate(devices, see(devices, environ))
        best = min(best, time.perf_counter() - begun)
    assert best < 0.001, f"{best * 1e3:.2f} ms"


def test_the_rules_import_nothing_but_themselves() -> None:
    code = (
        "import sys; before = set(sys.modules); import probe_core.visibility as v; "
        f"v.see([{nodes.nvidia(1)!r}], {{}}); "
        "print(sorted(m for m in set(sys.modules) - before if not m.startswith('probe_core')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['__future__']"


def test_the_rules_of_a_vendor_and_of_a_variable_are_parts() -> None:
    assert parts({"amd", None}, {}) == ["amd"]
    assert parts({"intel", "nvidia"}, {"CUDA_VISIBLE_DEVICES": "0"}) == ["nvidia", "intel"]
    assert parts({"nvidia"}, {"ONEAPI_DEVICE_SELECTOR": "cuda:0"}) == ["nvidia", "intel"]
    assert parts({"nvidia"}, {"VK_DRIVER_FILES": "/x"}) == ["nvidia", "vulkan drivers"]
    assert parts({"amd"}, {"GGML_VK_VISIBLE_DEVICES": ""}) == ["amd", "vulkan drivers"]
    assert parts({"amd"}, {"DEV": "AMD"}) == ["amd", "tinygrad's DEV"]


@pytest.mark.parametrize(
    ("vendors", "system", "rules"),
    [
        ((), "linux", "opencl vulkan"),
        (("nvidia",), "linux", "container cuda opencl tinygrad vulkan"),
        (("amd",), "linux", "amd opencl tinygrad vulkan"),
        (("intel",), "windows", "oneapi opencl vulkan"),
        (("amd", "intel"), "linux", "amd oneapi opencl tinygrad vulkan"),
        (("nvidia", "apple"), "darwin", "metal"),
    ],
)
def test_the_rules_of_other_vendors_are_not_loaded(
    vendors: tuple[str, ...], system: str, rules: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: set[str] = set()
    own = builtins.__import__

    def noted(name: str, *more: Any) -> Any:
        if name == "probe_core.visibility":
            asked.update(more[2])
        return own(name, *more)

    monkeypatch.setattr(builtins, "__import__", noted)
    load_rules(vendors, system)
    assert asked == set(rules.split())
