"""Steps that a device and a few files decide: each bound from both sides, evidence as written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from readiness_nodes import DEVICE, FOLDER, LIBRARIES, PCI, VERSION, VERSION_TEXT

from probe_core.machine import Machine
from probe_core.readiness import judge
from probe_core.readiness.chain import combined, conclusion
from probe_core.readiness.driver_nodes import container_option, nodes_of, row_of
from probe_core.readiness.findings import Usable, finding_of, findings, severity_of
from probe_core.readiness.fixes import MAKERS, PARTS, fix_of, fix_of_machine
from probe_core.readiness.hardware import hardware, responding
from probe_core.readiness.library import unloadable
from probe_core.readiness.node import required
from probe_core.readiness.rocm import rocm
from probe_core.readiness.runtime import older_than_toolkit, runtime, visible
from probe_core.readiness.scene import Scene
from probe_core.testing import Tree

GIB = 1 << 30
LINK = {"kind": "pcie", "local_width": 16, "local_max_width": 16}
THERE = ("ok", None, f"{FOLDER}: there")


def gpu(**fields: Any) -> Any:
    """An RTX 4090 that works, with some facts changed."""
    known = {
        **{"id": DEVICE, "ids": [DEVICE], "kind": "gpu", "vendor": "nvidia", "name": "GPU"},
        **{"arch": "ada", "parent": None, "pci": {"address": PCI, "id": "10de:2684"}},
        **{"seen_by": ["bus"], "sources": {"driver.name": "bus"}, "driver": {"name": "nvidia"}},
        **{"chip": {"id": None, "candidates": []}, "power_state": "active", "node_index": {}},
        **{"links": [LINK], "memory": {"kind": "dedicated", "total": 24 * GIB}, "backends": {}},
    }
    return {**known, **fields}


def scene_of(root: Path, files: dict[str, Any], arch: str = "x86_64", **environ: str) -> Scene:
    tree = Tree(root)
    for path, content in files.items():
        tree.file(path, content)
    return Scene(Machine(str(root), environ, os="linux", arch=arch))


def shown(step: Any) -> tuple[str, str | None, str] | None:
    return step and (step["status"], step["code"], step["evidence"])


def regions(*starts: int, size: int = 256 << 20) -> str:
    return "".join(f"{start:#x} {start + size - 1:#x} 0x40200\n" for start in starts)


RESOURCE, RESIZE = f"{FOLDER}/resource", f"{FOLDER}/resource1_resize"
SMALL = regions(16, 1 << 32)
LOST = f"{FOLDER}/current_link_width"
STATUS = f"{FOLDER}/power/runtime_status"
OFF = ("broken", "off-the-bus", f"{LOST} is 63")
NARROW = f"{FOLDER}/current_link_width is 8, max_link_width 16"
REBAR = ("broken", "rebar-off", f"{RESOURCE}: region 1 is 256 MiB")
UNASSIGNED = ("broken", "bar-unassigned", f"{RESOURCE}: region 1 begins at 0")
FATAL = f"{FOLDER}/aer_dev_fatal"
BARE = {"driver": None, "sources": {}}
UNLINKED: dict[str, Any] = {"links": [], "power_state": "unknown"}
HALF = {"links": [{**LINK, "local_width": 8}]}


@pytest.mark.parametrize(
    ("fields", "files", "expected"),
    [
        ({}, {}, THERE),
        (
            {"seen_by": ["bus", "acme"], "pci": None, "ids": ["a:1"], "id": "a:1"},
            {},
            ("ok", None, "acme reports a:1"),
        ),
        (
            {"seen_by": ["bus"], "pci": None, "ids": ["a:1"], "id": "a:1"},
            {},
            ("ok", None, "a:1: there"),
        ),
        ({"seen_by": ["acme", "two"]}, {}, ("ok", None, f"acme reports {DEVICE}")),
        # Lanes.
        (HALF, {}, ("broken", "link-narrow", NARROW)),
        ({**HALF, "kind": "npu"}, {}, THERE),
        ({"links": [{**LINK, "local_width": 17}]}, {}, THERE),
        ({"links": [{**LINK, "local_width": None}]}, {}, THERE),
        ({"links": [{**LINK, "local_width": 8, "local_max_width": None}]}, {}, THERE),
        ({"links": [{**LINK, "kind": "nvlink"}]}, {}, THERE),
        ({**HALF, "memory": {"kind": "shared", "total": None}}, {}, THERE),
        ({**HALF, "memory": {"kind": "unified", "total": None}}, {}, THERE),
        ({**HALF, "power_state": "suspended"}, {STATUS: "active"}, THERE),
        ({**HALF, "power_state": "unknown"}, {STATUS: "suspended"}, THERE),
        ({**HALF, "power_state": "unknown"}, {STATUS: "active"}, ("broken", "link-narrow", NARROW)),
        ({**HALF, "power_state": None}, {STATUS: "suspended"}, ("broken", "link-narrow", NARROW)),
        # One that its driver could not wake is never suspended again.
        (
            {**HALF, "power_state": "suspended"},
            {STATUS: "error"},
            ("broken", "link-narrow", NARROW),
        ),
        # A function that answers nothing.
        (UNLINKED, {LOST: "63"}, OFF),
        (UNLINKED, {LOST: "62"}, THERE),
        (UNLINKED, {LOST: "63", STATUS: "unsupported"}, OFF),
        (
            UNLINKED,
            {LOST: "63", f"{FOLDER}/config": b"\xff" * 64},
            ("broken", "off-the-bus", f"{LOST} is 63; {FOLDER}/config is all ff"),
        ),
        (
            UNLINKED,
            {LOST: "63", f"{FOLDER}/config": b"\xff" * 63 + b"\0"},
            ("unknown", None, f"{LOST} is 63, but {FOLDER}/config can be read"),
        ),
        # Errors since the start.
        ({}, {FATAL: "DLP 1\nTOTAL_ERR_FATAL 0\n"}, THERE),
        ({}, {FATAL: "TOTAL_ERR_COR 7\n"}, THERE),
        (
            {},
            {FATAL: "TOTAL_ERR_FATAL 2\n"},
            ("broken", "aer-errors", f"{FATAL}: TOTAL_ERR_FATAL 2"),
        ),
        # The window, where bit n of the possible sizes is 2^n MiB: bit 8 is what it has.
        ({}, {RESOURCE: SMALL, RESIZE: "0000000000000300"}, REBAR),
        ({}, {RESOURCE: SMALL, RESIZE: "0000000000000200"}, REBAR),
        ({}, {RESOURCE: SMALL, RESIZE: "00000000000001ff"}, THERE),
        ({}, {RESOURCE: SMALL, RESIZE: "many"}, THERE),
        ({}, {RESOURCE: regions(16), RESIZE: "300"}, THERE),
        ({}, {RESOURCE: regions(16, 1 << 32, size=128 << 20), RESIZE: "300"}, THERE),
        ({}, {RESOURCE: SMALL}, THERE),
        (
            {"memory": {"kind": "dedicated", "total": 256 << 20}},
            {RESOURCE: SMALL, RESIZE: "300"},
            THERE,
        ),
        (
            {"memory": {"kind": "dedicated", "total": (256 << 20) + 1}},
            {RESOURCE: SMALL, RESIZE: "300"},
            REBAR,
        ),
        ({"memory": {"kind": "dedicated", "total": None}}, {RESOURCE: SMALL, RESIZE: "300"}, REBAR),
        ({"vendor": "amd"}, {RESOURCE: SMALL, RESIZE: "300"}, THERE),
        (
            {"vendor": "amd"},
            {RESOURCE: regions(1 << 32), f"{FOLDER}/resource0_resize": "300"},
            ("broken", "rebar-off", f"{RESOURCE}: region 0 is 256 MiB"),
        ),
        (
            {"vendor": "intel"},
            {RESOURCE: regions(16, 32, 1 << 32), f"{FOLDER}/resource2_resize": "300"},
            ("broken", "rebar-off", f"{RESOURCE}: region 2 is 256 MiB"),
        ),
        # Regions without an address, which only a card without a driver has.
        (BARE, {RESOURCE: regions(16, 0)}, UNASSIGNED),
        (BARE, {RESOURCE: regions(0, 0, 16)}, UNASSIGNED),
        ({}, {RESOURCE: regions(16, 0)}, THERE),
        (BARE, {RESOURCE: regions(16, 32)}, THERE),
        (BARE, {RESOURCE: regions(0, 0)}, THERE),
        (BARE, {RESOURCE: regions(16)}, THERE),
        (BARE, {RESOURCE: "0x0 0x0 0x0\n" * 6}, THERE),
        # The seventh is the ROM's.
        (BARE, {RESOURCE: "0x0 0x0 0x0\n" * 6 + regions(16)}, THERE),
        (BARE, {RESOURCE: "0x0 0x0 0x0\n" * 5 + regions(16)}, UNASSIGNED),
        (BARE, {RESOURCE: regions(16, 0) + "0x2 0x1 0x0\n"}, THERE),
        (BARE, {RESOURCE: regions(16, 0) + "0x2 0x10000000000000000 0x0\n"}, THERE),
        (BARE, {RESOURCE: regions(16, 0) + "0x2 0xffffffffffffffff 0x0\n"}, UNASSIGNED),
        (BARE, {RESOURCE: regions(16, 0) + "0x5 0x5 0x0\n"}, UNASSIGNED),
        (BARE, {RESOURCE: regions(16, 0) + "odd\n"}, THERE),
        ({**BARE, "kind": "npu"}, {RESOURCE: regions(16, 0)}, THERE),
        ({**BARE, "vendor": "acme"}, {RESOURCE: regions(16, 0)}, THERE),
    ],
)
def test_hardware(
    fields: dict[str, Any], files: dict[str, Any], expected: Any, tmp_path: Path
) -> None:
    assert shown(hardware(gpu(**fields), scene_of(tmp_path, files))) == expected


@pytest.mark.parametrize(
    ("arch", "chip", "code"),
    [
        ("ppc64le", "volta", None),
        ("aarch64", "hopper", None),
        ("aarch64", "blackwell", None),
        ("aarch64", "ada", "link-narrow"),
        ("x86_64", "hopper", "link-narrow"),
    ],
)
def test_where_pcie_is_narrow_by_design(
    arch: str, chip: str, code: str | None, tmp_path: Path
) -> None:
    assert hardware(gpu(**HALF, arch=chip), scene_of(tmp_path, {}, arch))["code"] == code


def test_a_library_that_answers_outweighs_a_lost_width(tmp_path: Path) -> None:
    scene = scene_of(tmp_path, {LOST: "63"})
    scene.answered.add(DEVICE)
    expected = ("unknown", None, f"{LOST} is 63, but the device answers its library")
    assert shown(hardware(gpu(**UNLINKED), scene)) == expected


def ended(status: str, **fields: Any) -> Any:
    return {"prober": "nvidia", "status": status, "reason": "why", **fields}


@pytest.mark.parametrize(
    ("fields", "failure", "expected"),
    [
        ({}, None, ("unknown", None, "no plugin queried it")),
        ({}, ended("timeout"), ("broken", "driver-hangs", "prober nvidia: timeout, why")),
        ({}, ended("crashed"), ("broken", "driver-crashes", "prober nvidia: crashed, why")),
        ({}, ended("error"), ("unknown", None, "prober nvidia: error, why")),
        ({}, ended("unavailable"), ("broken", "query-fails", "prober nvidia: unavailable, why")),
        (
            {},
            ended("unavailable", code="client-missing"),
            ("unknown", None, "prober nvidia: unavailable, why"),
        ),
        (
            {},
            ended("unavailable", code="module-missing"),
            ("broken", "query-fails", "prober nvidia: unavailable, why"),
        ),
        ({"power_state": "suspended"}, None, ("unknown", "asleep", "its power state is suspended")),
        (
            {"power_state": "suspending"},
            None,
            ("unknown", "asleep", "its power state is suspending"),
        ),
        (
            {"seen_by": ["bus", "acme"], "sources": {"memory.total": "acme"}},
            None,
            ("ok", None, "acme reads its memory"),
        ),
        (
            {"seen_by": ["bus", "acme"], "sources": {"memory.total": "chipdb"}},
            None,
            ("unknown", None, "acme asked nothing of the device itself"),
        ),
        (
            {"seen_by": ["bus", "acme"], "sources": {}, "power_state": "unknown"},
            None,
            (
                "broken",
                "not-responding",
                "acme reads neither memory nor runtimes; its power state is unknown",
            ),
        ),
        (
            {
                "seen_by": ["bus", "acme"],
                "sources": {},
                "power_state": "unknown",
                "kind": "display",
            },
            None,
            ("unknown", None, "acme asked nothing of the device itself"),
        ),
        (
            {
                "seen_by": ["acme"],
                "sources": {},
                "power_state": "unknown",
                "backends": {"cuda": {}},
            },
            None,
            ("unknown", None, "acme asked nothing of the device itself"),
        ),
    ],
)
def test_responding(fields: dict[str, Any], failure: Any, expected: Any, tmp_path: Path) -> None:
    scene = scene_of(tmp_path, {})
    scene.failures = {"10de": failure} if failure else {}
    assert shown(responding(gpu(**fields), scene)) == expected


HSA = "HSA_OVERRIDE_GFX_VERSION"
KFD = "/sys/class/kfd/kfd/topology/nodes"
ROCM_FILES = {"/opt/rocm/lib/libhsa-runtime64.so.1": b"\x7fELF\x02"}
FINE = ("ok", None, "/opt/rocm/lib/libhsa-runtime64.so.1: there")
LEFT_OUT = ("broken", "kfd-no-gpu", f"no node in {KFD} has the location of {PCI}")


def foreign(value: str, rest: str) -> tuple[str, str, str]:
    return ("broken", "hsa-override-foreign", f"{HSA}={value}; the GPU is {rest}")


@pytest.mark.parametrize(
    ("fields", "value", "expected"),
    [
        ({"gfx": "gfx1100"}, "11.0.0", FINE),
        (
            {"gfx": "gfx1100"},
            "",
            ("unknown", None, f"{HSA} is empty, which older ROCm takes for gfx000"),
        ),
        ({"gfx": "gfx1100"}, "10.3.0", foreign("10.3.0", "gfx1100, of major version 11")),
        ({"gfx": "gfx1100"}, "63.255.255", foreign("63.255.255", "gfx1100, of major version 11")),
        ({"gfx": "gfx1100"}, "64.0.0", ("broken", "hsa-override-bad", f"{HSA}=64.0.0")),
        ({"gfx": "gfx1100"}, "11.256.0", ("broken", "hsa-override-bad", f"{HSA}=11.256.0")),
        ({"gfx": "gfx1100"}, "11.0.256", ("broken", "hsa-override-bad", f"{HSA}=11.0.256")),
        ({"gfx": "gfx1100"}, "11.0", ("broken", "hsa-override-bad", f"{HSA}=11.0")),
        ({"gfx": "gfx1100"}, "1" * 41, ("broken", "hsa-override-bad", f"{HSA}={'1' * 40}")),
        ({"gfx": "gfx90a"}, "9.0.10", FINE),
        ({"gfx": "gfx906"}, "9.0.8", foreign("9.0.8", "gfx906, whose code is of another kind")),
        ({"gfx": "gfx908"}, "9.0.6", FINE),
        ({"gfx": "gfx90a"}, "9.0.6", foreign("9.0.6", "gfx90a, whose code is of another kind")),
        ({"gfx": "gfx942"}, "9.0.10", foreign("9.0.10", "gfx942, whose code is of another kind")),
        ({"gfx": "gfx942"}, "9.5.0", FINE),
        ({"gfx": "gfx906"}, "9.9.9", FINE),
        ({"gfx": "gfx906"}, "10.3.0", foreign("10.3.0", "gfx906, of major version 9")),
        *(
            ({"arch": arch}, "60.0.0", foreign("60.0.0", f"{arch}, of major version {major}"))
            for arch, major in [
                *[("gcn5", 9), ("cdna1", 9), ("cdna2", 9), ("cdna3", 9), ("cdna4", 9)],
                *[("rdna1", 10), ("rdna2", 10), ("rdna3", 11), ("rdna3.5", 11), ("rdna4", 12)],
            ]
        ),
        ({"arch": "gcn5"}, "9.0.0", FINE),
        ({"arch": "cdna1"}, "9.0.10", foreign("9.0.10", "cdna1, whose code is of another kind")),
        ({"arch": "cdna2"}, "9.4.2", foreign("9.4.2", "cdna2, whose code is of another kind")),
        ({"arch": "cdna3"}, "9.0.0", foreign("9.0.0", "cdna3, whose code is of another kind")),
        ({"arch": "gcn1"}, "9.0.0", FINE),
    ],
)
def test_the_override_of_rocm(
    fields: dict[str, Any], value: str, expected: Any, tmp_path: Path
) -> None:
    device = gpu(vendor="amd", driver={"name": "amdgpu"}, **fields)
    scene = scene_of(tmp_path, ROCM_FILES, **{HSA: value})
    assert shown(rocm(device, scene)) == expected
    # The variable of one node goes first, and which node that is nobody says.
    scene = scene_of(tmp_path, {}, **{HSA: value, f"{HSA}_0": "11.0.0"})
    assert shown(rocm(device, scene)) == FINE


@pytest.mark.parametrize(
    ("nodes", "index", "expected"),
    [
        (["location_id 0"], {}, LEFT_OUT),
        (["location_id 0"], {"kfd": 1}, FINE),
        (["location_id 0", "location_id 256\ndomain 0"], {}, FINE),
        (["location_id 0", "location_id 256"], {}, FINE),
        (["location_id 0", "location_id 256\ndomain 1"], {}, LEFT_OUT),
        (["location_id 0", "location_id 257"], {}, LEFT_OUT),
        (["location_id 0", "location_id 264"], {}, LEFT_OUT),
        (["location_id 0", "domain 0"], {}, FINE),
        ([], {}, FINE),
    ],
)
def test_the_topology_of_kfd(nodes: list[str], index: Any, expected: Any, tmp_path: Path) -> None:
    files = {f"{KFD}/{number}/properties": f"{text}\n" for number, text in enumerate(nodes)}
    device = gpu(vendor="amd", driver={"name": "amdgpu"}, gfx="gfx1100", node_index=index)
    assert shown(rocm(device, scene_of(tmp_path, {**ROCM_FILES, **files}))) == expected


def test_the_place_in_the_topology_has_bus_slot_and_function(tmp_path: Path) -> None:
    address = "0001:81:02.3"
    device = gpu(vendor="amd", driver={"name": "amdgpu"}, gfx="gfx1100", pci={"address": address})
    device |= {"id": f"pci:{address}", "ids": [f"pci:{address}"]}
    text = f"location_id {0x81 << 8 | 2 << 3 | 3}\ndomain 1\n"
    files = {**ROCM_FILES, f"{KFD}/0/properties": text}
    assert shown(rocm(device, scene_of(tmp_path, files))) == FINE


@pytest.mark.parametrize(
    ("toolkit", "driver", "name", "compat", "least"),
    [
        ("13.0.1", "579.99", "H100", False, 580),
        ("13.0.1", "580.0", "H100", False, None),
        ("12.8.0", "524.9", "H100", False, 525),
        ("12.8.0", "525.0", "H100", False, None),
        ("11.8.0", "449.9", "H100", False, 450),
        ("11.8.0", "450.0", "H100", False, None),
        ("10.2", "300.0", "H100", False, None),
        ("13.0", "570.0", "H100", True, None),
        ("13.0", "570.0", "NVIDIA GeForce RTX 4090", True, 580),
        ("odd", "570.0", "H100", False, None),
    ],
)
def test_the_driver_that_a_toolkit_of_an_image_needs(
    toolkit: str, driver: str, name: str, compat: bool, least: int | None, tmp_path: Path
) -> None:
    files: dict[str, Any] = {"/.dockerenv": ""}
    files |= {"/usr/local/cuda/compat/libcuda.so.1": b"\x7fELF"} if compat else {}
    scene = scene_of(tmp_path, files, CUDA_VERSION=toolkit)
    step = older_than_toolkit(gpu(name=name, driver={"name": "nvidia", "version": driver}), scene)
    text = f"CUDA_VERSION={toolkit} needs driver {least}; it is {driver.partition('.')[0]}"
    assert shown(step) == (least and ("broken", "driver-older-than-cuda", text))


def broken(code: str, **fields: Any) -> Any:
    return {"step": "driver", "status": "broken", "evidence": None, "code": code, **fields}


@pytest.mark.parametrize(
    ("maker", "fields", "expected"),
    [
        ("gfx", {"gfx": "gfx1100"}, "gfx1100"),
        ("gfx", {}, "this GPU"),
        ("address", {}, PCI),
        ("address", {"pci": None, "id": "a:1", "ids": ["a:1"]}, "a:1"),
        ("folder", {}, FOLDER),
        ("folder", {"pci": None, "id": "a:1", "ids": ["a:1"]}, "a:1"),
        ("vendor", {}, "nvidia"),
        ("vendor", {"vendor": None}, "its vendor"),
        ("selinux_boolean", {}, "container_use_xserver_devices"),
        ("selinux_boolean", {"vendor": "amd"}, "container_use_devices"),
        ("si_or_cik", {"arch": "gcn1"}, "amdgpu.si_support=1 radeon.si_support=0"),
        ("si_or_cik", {"arch": "gcn2.0"}, "amdgpu.cik_support=1 radeon.cik_support=0"),
        (
            "si_or_cik",
            {"arch": None},
            "amdgpu.si_support=1 radeon.si_support=0 amdgpu.cik_support=1 radeon.cik_support=0",
        ),
    ],
)
def test_names_in_fixes(maker: str, fields: dict[str, Any], expected: str, tmp_path: Path) -> None:
    scene = scene_of(tmp_path, {})
    assert MAKERS[maker](gpu(**fields), broken("nomodeset"), scene) == expected


@pytest.mark.parametrize(
    ("release", "package"),
    [
        ("6.12.4-arch1-1", "linux"),
        ("6.12.4-zen1-1-zen", "linux-zen"),
        ("6.6.63-1-lts", "linux-lts"),
        ("6.12.4-1-MANJARO", "linux612"),
        ("6.12.4", "linux"),
    ],
)
def test_the_package_of_a_kernel(release: str, package: str, tmp_path: Path) -> None:
    scene = scene_of(tmp_path, {"/proc/sys/kernel/osrelease": f"{release}\n"})
    assert MAKERS["kernel"](gpu(), broken("nomodeset"), scene) == package
    assert MAKERS["release"](gpu(), broken("nomodeset"), scene) == release


def test_a_release_that_nobody_knows_is_asked_of_the_shell(tmp_path: Path) -> None:
    assert MAKERS["release"](gpu(), broken("nomodeset"), scene_of(tmp_path, {})) == "$(uname -r)"


DOCKER, POD = {"/.dockerenv": ""}, {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}
UNIT = {"/proc/self/cgroup": "0::/system.slice/acme.service\n"}


@pytest.mark.parametrize(
    ("code", "places"),
    [
        ("nomodeset", ["host", "host", "host", "host"]),
        ("node-missing", ["host", "container", "pod", "host"]),
        ("not-granted", ["host", "container", "pod", "host"]),
        ("cgroup-denied", ["host", "container", "pod", "service"]),
        ("kfd-missing", ["host", "container", "pod", "host"]),
    ],
)
def test_where_a_fix_is_made(code: str, places: list[str], tmp_path: Path) -> None:
    scenes = [
        scene_of(tmp_path / "host", {"/proc/modules": ""}),
        scene_of(tmp_path / "docker", DOCKER),
        scene_of(tmp_path / "pod", {"/proc/modules": ""}, **POD),
        scene_of(tmp_path / "service", UNIT),
    ]
    assert [fix_of_machine(code, scene).action.where for scene in scenes] == places


def test_a_kernel_without_kfd_is_no_matter_of_a_container(tmp_path: Path) -> None:
    host, docker = scene_of(tmp_path / "host", {}), scene_of(tmp_path / "docker", DOCKER)
    text = "load amdgpu of a kernel with CONFIG_HSA_AMD"
    step = broken("kfd-missing")
    assert fix_of(gpu(vendor="amd"), step, host) == f"{text}, or use Vulkan"
    assert fix_of(gpu(vendor="amd"), {**step, "blocks": True}, host) == text
    inside = fix_of(gpu(vendor="amd"), step, docker)
    assert inside.startswith("start the container with `docker run --device=/dev/kfd")


def test_a_fix_of_the_host_says_so_inside_a_container(tmp_path: Path) -> None:
    lines = [
        fix_of_machine("nomodeset", scene_of(tmp_path / name, files)).line
        for name, files in (("host", {}), ("docker", DOCKER))
    ]
    assert lines == [lines[0], f"on the host: {lines[0]}"]


ELF, NVML = b"\x7fELF\x02", f"{LIBRARIES}/libnvidia-ml.so"
NO_NVML = "libnvidia-ml.so.1 is in no folder of the loader"
OTHER_NVML = f"/proc/driver/nvidia/version: {VERSION}; {NVML}.1 leads to 570.1"
NIXOS: dict[str, Any] = {"/etc/NIXOS": "", "/run/current-system/nixos-version": "25.05"}
NIXOS |= {f"{LIBRARIES}/libc.so.6": ELF}


@pytest.mark.parametrize(
    ("versions", "files", "expected"),
    [
        ({}, {}, ("unknown", None, f"{NO_NVML}; other folders may have it")),
        ({}, {f"{LIBRARIES}/libc.so.6": ELF}, ("broken", "library-missing", NO_NVML)),
        ({"libnvidia-ml": VERSION}, {}, ("ok", None, f"{NVML}.1: there")),
        ({}, {f"{NVML}.1": ELF, "/usr/lib64/libnvidia-ml.so.1": ELF},
         ("ok", None, f"{NVML}.1: there")),
        ({"libnvidia-ml": "570.1"}, {}, ("broken", "version-mismatch", OTHER_NVML)),
        ({"libnvidia-ml": "570.1", "libcuda": VERSION}, {},
         ("broken", "nvml-broken", f"{OTHER_NVML}; {LIBRARIES}/libcuda.so.1 fits the driver")),
        ({"libnvidia-ml": "570.1", "libcuda": "570.1"}, {},
         ("broken", "version-mismatch", OTHER_NVML)),
        ({"libnvidia-ml": "570.1"}, {f"{LIBRARIES}/libcuda.so.1": ELF},
         ("broken", "version-mismatch", OTHER_NVML)),
        ({}, NIXOS, ("broken", "library-missing", f"{NO_NVML}; /run/opengl-driver is absent")),
        ({}, {**NIXOS, "/run/opengl-driver/lib/x": ""},
         ("unknown", None, f"{NO_NVML}; other folders may have it")),
    ],
    ids=range(10),
)  # fmt: skip
def test_the_library_of_the_driver(
    versions: dict[str, str], files: dict[str, Any], expected: Any, tmp_path: Path
) -> None:
    tree = Tree(tmp_path)
    tree.file("/proc/driver/nvidia/version", VERSION_TEXT)
    for name, version in versions.items():
        tree.file(f"{LIBRARIES}/{name}.so.{version}", ELF)
        tree.link(f"{LIBRARIES}/{name}.so.1", f"{LIBRARIES}/{name}.so.{version}")
    device = gpu()
    judge([device], scene_of(tmp_path, files), ["library"])
    assert shown(device["readiness"]["steps"][0]) == expected


@pytest.mark.parametrize(
    ("fields", "release", "nodes"),
    [
        ({}, "6.6.87.2-microsoft-standard-WSL2", ["/dev/dxg"]),
        ({}, "6.8.0", []),
        ({"kind": "npu"}, "6.6.87.2-microsoft-standard-WSL2", []),
        ({"parent": "a:1"}, "6.6.87.2-microsoft-standard-WSL2", []),
    ],
    ids=range(4),
)
def test_the_node_of_what_no_bus_shows(
    fields: dict[str, Any], release: str, nodes: list[str], tmp_path: Path
) -> None:
    scene = scene_of(tmp_path, {"/proc/sys/kernel/osrelease": f"{release}\n"})
    assert required(gpu(seen_by=["acme"], **fields), scene) == nodes


LIBCUDA = f"{LIBRARIES}/libcuda.so.1"
NO_CUDA = "libcuda.so.1 is in no folder of the loader"


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({LIBCUDA: b"\x7fELF\x02"}, ("ok", None, f"{LIBCUDA}: there")),
        ({}, ("unknown", None, f"{NO_CUDA}; other folders may have it")),
        (
            {f"{LIBRARIES}/libnvidia-ml.so.1": b"\x7fELF\x02", f"{LIBRARIES}/libc.so.6": b""},
            ("broken", "libcuda-missing", NO_CUDA),
        ),
        (
            {f"{LIBRARIES}/libc.so.6": b""},
            ("unknown", None, f"{NO_CUDA}; other folders may have it"),
        ),
    ],
)
def test_the_library_of_cuda(files: dict[str, Any], expected: Any, tmp_path: Path) -> None:
    assert shown(runtime(gpu(), scene_of(tmp_path, files))) == expected


@pytest.mark.parametrize(
    ("head", "reason"),
    [
        (b"\x7fELF\x02\x01", None),
        (b"\x7fELF\x01\x02", "is a library for another word size (ELF class 1)"),
        (b"\x7fELF\x07\x01", "is damaged: its head is no ELF library's"),
    ],
)
def test_a_library_that_the_loader_refuses(head: bytes, reason: str | None, tmp_path: Path) -> None:
    expected = reason and f"{LIBCUDA} {reason}"
    assert unloadable(LIBCUDA, scene_of(tmp_path, {LIBCUDA: head})) == expected


def told(status: str, code: str | None = None, step: str = "library", **fields: Any) -> Any:
    return {"step": step, "status": status, "evidence": f"it is {status}", "code": code, **fields}


OK, BROKEN, OPEN, NONE = (
    told("ok"),
    told("broken", "nvml-missing"),
    told("unknown"),
    told("not_applicable"),
)
FACT = {"evidence": "it answers", "prober": "acme"}


@pytest.mark.parametrize(
    ("own", "fact", "taken"),
    [
        # Files that the core read outweigh what a prober does not know.
        (BROKEN, told("unknown", **FACT), "own"),
        (BROKEN, told("broken", "other", **FACT), "own"),
        (told("broken", "not-responding", "responding"), told("broken", "x", "responding"), "fact"),
        (told("broken", "x", "responding"), told("broken", "y", "responding"), "own"),
        (told("broken", "x", "driver"), told("ok", None, "driver", **FACT), "both"),
        (told("broken", "x", "driver"), told("unknown", None, "driver", **FACT), "own"),
        # Nodes and permission the core judges itself, as far as it can.
        (told("broken", "x", "node"), told("ok", None, "node", **FACT), "own"),
        (told("ok", None, "node"), told("broken", "x", "node", **FACT), "own"),
        (told("unknown", None, "node"), told("ok", None, "node", **FACT), "fact"),
        (told("unknown", None, "permission"), told("broken", "x", "permission", **FACT), "fact"),
        (told("not_applicable", None, "node"), told("ok", None, "node", **FACT), "own"),
        # Elsewhere a prober knows more.
        (OK, told("broken", "x", **FACT), "fact"),
        (OK, told("ok", **FACT), "fact"),
        (OK, told("unknown", **FACT), "own"),
        (NONE, told("unknown", **FACT), "own"),
        (NONE, told("ok", **FACT), "fact"),
        (OPEN, told("unknown", **FACT), "fact"),
        (OPEN, told("not_applicable", **FACT), "fact"),
        ({**OPEN, "opened": ["/dev/x"]}, told("ok", **FACT), "own"),
        ({**OPEN, "opened": ["/dev/x"]}, told("broken", "x", **FACT), "fact"),
    ],
)
def test_the_cores_judgement_and_a_probers_fact(own: Any, fact: Any, taken: str) -> None:
    text = f"{own['evidence']}; but acme: it answers"
    expected = {"own": own, "fact": fact, "both": {**own, "evidence": text}}[taken]
    assert combined(own, [fact, told("broken", "later")]) == expected
    assert combined(own, []) == own


@pytest.mark.parametrize(
    ("step", "code"),
    [
        ("library", "library-broken"),
        ("responding", "driver-hangs"),
        ("runtime", "library-broken"),
    ],
)
def test_an_answer_proves_a_step_whatever_files_look_like(
    step: str, code: str, tmp_path: Path
) -> None:
    files = {f"{LIBRARIES}/{name}.so.1": b"\x7fELF\x01" for name in ("libcuda", "libnvidia-ml")}
    scene = scene_of(tmp_path, files)
    scene.failures = {"10de": ended("timeout")}
    answer = told("ok", None, step, **FACT)

    def judged(fact: Any) -> Any:
        device = gpu(step_facts=[fact])
        assert judge([device], scene, [step]) == []
        return device["readiness"]["steps"]

    assert [each["code"] for each in judged({**answer, "status": "unknown"})] == [code]
    assert judged(answer) == [answer]


def chain(**steps: Any) -> list[Any]:
    return [{**step, "step": name} for name, step in steps.items()]


BLOCKING, LIMITING = told("broken", "nomodeset"), told("broken", "link-narrow")
UNRECORDED = told("unknown", "node-unrecorded")
NOBODY_KNOWS = told("unknown", "node-unknown")


@pytest.mark.parametrize(
    ("steps", "state", "first"),
    [
        (chain(hardware=OK, driver=OK, node=OK), "ready", None),
        (chain(hardware=OK, driver=OK, node=NONE), "ready", None),
        (chain(hardware=OK, driver=OPEN, node=OK), "unknown", None),
        (chain(hardware=OK, driver=OK, node=OPEN), "unknown", None),
        (chain(hardware=OK, driver=OK), "unknown", None),
        (chain(node=OK), "unknown", None),
        (chain(node=OK, responding=OK), "ready", None),
        (chain(node=OK, responding=OPEN), "unknown", None),
        (chain(driver=OPEN, node=OK, responding=OK), "ready", None),
        (chain(driver={**OPEN, "opened": ["x"]}, node=OK), "ready", None),
        (chain(driver=OK, node={**OPEN, "opened": ["x"]}), "ready", None),
        (chain(driver=OK, node=UNRECORDED), "unknown", None),
        (chain(driver=OK, node=UNRECORDED, responding=OK), "unknown", None),
        (chain(driver=OK, node=UNRECORDED, responding={**OK, "prober": "a"}), "ready", None),
        (chain(driver=OK, node=NOBODY_KNOWS, responding=OK), "ready", None),
        (chain(driver=OK, node=NOBODY_KNOWS, responding=OPEN), "unknown", None),
        (chain(hardware=LIMITING, driver=OK, node=OK), "limited", "hardware"),
        (chain(hardware=LIMITING, driver=BLOCKING, node=OK), "blocked", "driver"),
        (chain(hardware=OK, driver=BLOCKING), "blocked", "driver"),
    ],
)
def test_what_steps_amount_to(steps: list[Any], state: str, first: str | None) -> None:
    found = conclusion(steps)
    assert (found["state"], found["broken"]) == (state, first)
    # They are in the order of the table, whatever order they come in.
    assert conclusion(steps[::-1]) == found
    assert [step["step"] for step in found["steps"]] == [step["step"] for step in steps]


def test_steps_behind_one_that_blocks_are_not_judged() -> None:
    found = conclusion(chain(hardware=OK, driver=BLOCKING, node=OK, runtime=LIMITING))
    behind = ("unknown", "not judged: driver is broken")
    assert [(step["status"], step["evidence"]) for step in found["steps"]] == [
        ("ok", "it is ok"), ("broken", "it is broken"), behind, behind
    ]  # fmt: skip
    hidden = told("broken", "hidden-by-variable")
    found = conclusion(chain(driver=OK, node=OK, visible=hidden, runtime=OK))
    assert [step["status"] for step in found["steps"]].count("ok") == 3


CARD = {
    "/proc/driver/nvidia/gpus/0000:01:00.0/information": "Device Minor: \t 2\nGPU Excluded:\t No\n"
}
NODES = ("/dev/nvidia2", "/dev/nvidiactl", "/dev/nvidia-uvm")


def made(maker: str, root: Path, *answers: str, **fields: Any) -> str:
    """What a name stands for where the three nodes of a GPU answer so."""
    tree = Tree(root)
    for path, content in CARD.items():
        tree.file(path, content)
    access = dict(zip(NODES, answers, strict=False))
    scene = Scene(Machine(str(root), {}, os="linux", access=access))
    return str(MAKERS[maker](gpu(**fields), broken("node-missing"), scene))


@pytest.mark.parametrize(
    ("maker", "answers", "expected"),
    [
        ("missing_nodes", ("missing", "ok", "missing"), "-dev0 /dev/nvidia2 -dev1 /dev/nvidia-uvm"),
        ("missing_nodes", ("ok", "ok", "ok"), ""),
        ("device_rules", ("EPERM", "ok", "EPERM"),
         "`DeviceAllow=/dev/nvidia2 rw`, `DeviceAllow=/dev/nvidia-uvm rw`"),
        ("device_rules", ("ok", "ok", "ok"), "`DeviceAllow=its nodes rw`"),
        ("node", ("ok", "EACCES", "missing"), "/dev/nvidiactl"),
        ("node", ("ok", "unknown", "missing"), "/dev/nvidia-uvm"),
        ("node", ("ok", "ok", "ok"), "/dev/nvidiactl"),
        ("minor", ("missing", "ok", "ok"), "2"),
        ("minor", ("ok", "missing", "ok"), "0"),
    ],
)  # fmt: skip
def test_nodes_in_fixes(
    maker: str, answers: tuple[str, ...], expected: str, tmp_path: Path
) -> None:
    assert made(maker, tmp_path, *answers) == expected


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, "nvidia.com/gpu"),
        ({"vendor": "amd"}, "amd.com/gpu"),
        ({"vendor": "intel", "driver": {"name": "i915"}}, "gpu.intel.com/i915"),
        ({"vendor": "intel", "driver": None}, "gpu.intel.com/xe"),
        ({"vendor": "intel", "kind": "npu"}, "npu.intel.com/accel"),
        ({"vendor": "intel", "kind": "accelerator"}, "habana.ai/gaudi"),
        ({"vendor": "google", "kind": "npu"}, "google.com/tpu"),
        ({"vendor": "nvidia", "kind": "npu"}, "the resource of its plugin"),
        ({"vendor": None}, "the resource of its plugin"),
    ],
)
def test_the_resource_of_a_device_plugin(
    fields: dict[str, Any], expected: str, tmp_path: Path
) -> None:
    assert made("resource", tmp_path, **fields) == expected


@pytest.mark.parametrize(
    ("variable", "start"),
    [("PBS_JOBID", "PBS: "), ("LSB_JOBID", "LSF: "), ("FLUX_JOB_ID", "Flux: "), ("OTHER", "")],
)
def test_how_a_job_requests_a_gpu(variable: str, start: str, tmp_path: Path) -> None:
    scene = scene_of(tmp_path, {}, **{variable: "1"})
    found = MAKERS["job_request"](gpu(), broken("not-granted"), scene)
    assert found.startswith(start) if start else found == ""


@pytest.mark.parametrize(
    ("entry", "codes", "expected"),
    [
        (None, (), ("not_applicable", None, "no variable hides such a device")),
        ({"visible": True, "index": None}, (), ("ok", None, "cuda shows it")),
        ({"visible": True, "index": 0}, (), ("ok", None, "cuda shows it as 0")),
        ({"visible": False, "step": "node"}, (),
         ("unknown", None, "not judged: node keeps it from cuda")),
        ({"visible": None, "reason": "nobody knows"}, (), ("unknown", None, "nobody knows")),
        ({"visible": None, "step": "visible"}, (), ("unknown", None, "cuda does not show it")),
        ({"visible": False}, ("mig-without-instances",),
         ("unknown", None, "not judged: granted keeps it from cuda")),
        ({"visible": False, "variable": "A"}, ("other",),
         ("broken", "hidden-by-variable", "cuda does not show it")),
        ({"visible": False}, (), ("broken", "hidden-by-runtime", "cuda does not show it")),
        ({"visible": False, "variable": "A", "code": "variable-skips", "reason": "A=9"}, (),
         ("broken", "variable-skips", "A=9")),
    ],
    ids=range(10),
)  # fmt: skip
def test_what_a_runtime_shows(entry: Any, codes: tuple[str, ...], expected: Any) -> None:
    seen = {"cuda": {"reason": None, **entry}} if entry else {}
    readiness = {"steps": [{"code": code} for code in codes]}
    assert shown(visible(gpu(visibility=seen, readiness=readiness))) == expected


@pytest.mark.parametrize(
    ("cgroup", "service"),
    [
        ("0::/system.slice/ollama.service", "ollama.service"),
        ("0::/system.slice/system-a.slice/a@1.service", "a@1.service"),
        ("0::/user.slice/user-1000.slice/user@1000.service/app.slice/a.service", None),
        ("0::/system.slice/docker-ab.scope", None),
        ("5:devices:/\n0::/system.slice/b.service", "b.service"),
        ("", None),
    ],
)
def test_the_service_that_a_process_is_of(cgroup: str, service: str | None, tmp_path: Path) -> None:
    scene = scene_of(tmp_path, {"/proc/self/cgroup": f"{cgroup}\n"})
    assert scene.service == service
    assert MAKERS["service"](gpu(), broken("cgroup-denied"), scene) == (service or "NAME.service")


@pytest.mark.parametrize(
    ("names", "folders"),
    [
        ("/etc/ld.so.conf.d/*.conf", ["/a", "/b"]),
        ("ld.so.conf.d/a*", ["/c", "/a"]),
        ("/etc/ld.so.conf.d/ab.conf", ["/a"]),
        ("/etc/ld.so.conf.d/none", []),
        ("/etc/ld.so.conf.d/*.conf more", []),
    ],
)
def test_what_the_loader_is_told_to_include(names: str, folders: list[str], tmp_path: Path) -> None:
    place = "/etc/ld.so.conf.d"
    files = {
        f"{place}/ab.conf": "/a  # here\ninclude /etc/ld.so.conf.d/a.txt\nno/folder\n",
        f"{place}/b.conf": "/b\n",
        f"{place}/a.txt": "/c\n",
        "/etc/ld.so.conf": f"include {names}\n/d\n",
    }
    assert scene_of(tmp_path, files).libraries.configured == [*folders, "/d"]


@pytest.mark.parametrize(
    ("link", "node"),
    [("/sys/kernel/iommu_groups/17", 17), ("/sys/kernel/iommu_groups/x", 0), (None, 0)],
)
def test_the_node_of_an_iommu_group(link: str | None, node: int, tmp_path: Path) -> None:
    if link is not None:
        Tree(tmp_path).link(f"{FOLDER}/iommu_group", link)
    scene = scene_of(tmp_path, {})
    tpu, hailo = row_of("vfio-pci", "google"), row_of("hailo", "hailo")
    assert tpu is not None
    assert hailo is not None
    # Without the group it is the only one's first node.
    assert nodes_of(tpu, gpu(), scene) == (["/dev/vfio/vfio", f"/dev/vfio/{node}"], "")
    assert nodes_of(hailo, gpu(), scene) == (["/dev/hailo0"], "")


@pytest.mark.parametrize(
    ("driver", "vendor", "row"),
    [
        ("hailo1x_pci", "hailo", "Hailo-10H"),
        ("hailo1x", None, "Hailo-10H"),
        ("hailo1", "hailo", None),
        ("hailo10_pci", "hailo", None),
        ("hailo_pci", "hailo", "Hailo-8"),
        ("hailo_pci_x", "hailo", None),
        ("vfio-pci", "google", "Google TPU"),
        ("vfio-pci", "nvidia", None),
        (None, "google", None),
    ],
)
def test_the_row_of_a_driver(driver: str | None, vendor: str | None, row: str | None) -> None:
    found = row_of(driver, vendor)
    assert (found and found.name) == row


def test_a_driver_of_a_vendor_that_is_not_known_is_loaded(tmp_path: Path) -> None:
    host, docker = scene_of(tmp_path / "a", {}), scene_of(tmp_path / "b", DOCKER)

    def load(scene: Scene, **fields: Any) -> str:
        return "".join(PARTS["load"](gpu(**fields), broken("no-driver"), scene))

    assert load(host, vendor=None) == "install or load the driver of its vendor"
    assert load(host, vendor="acme") == "install or load the driver of acme"
    assert load(host).startswith("`sudo modprobe nvidia`")
    assert load(docker).startswith("on the host `sudo modprobe nvidia`")


@pytest.mark.parametrize(
    ("code", "files", "package"),
    [
        ("firmware-missing", {}, "linux-firmware"),
        ("library-missing", {}, "nvidia-utils"),
        (
            *("library-missing", DOCKER),
            "nvidia-container-toolkit on the host, which adds them",
        ),
        ("no-driver", {}, "NVIDIA's driver"),
    ],
)
def test_the_package_that_a_fix_names(
    code: str, files: dict[str, str], package: str, tmp_path: Path
) -> None:
    assert MAKERS["package"](gpu(), broken(code), scene_of(tmp_path, files)) == package


@pytest.mark.parametrize(
    ("fields", "inside"),
    [
        ({}, "--gpus all`, or CDI: `--device nvidia.com/gpu=all"),
        ({"id": "dt:/gpu@1", "ids": ["dt:/gpu@1"]}, "--runtime nvidia"),
        ({"vendor": "intel", "kind": "accelerator"},
         "--runtime=habana -e HABANA_VISIBLE_DEVICES=all"),
        ({"vendor": "acme", "kind": "accelerator"}, "--device=/dev/nvidiactl"),
        ({"vendor": "amd"},
         "--device=/dev/kfd --device=/dev/dri --group-add $(stat -c %g /dev/kfd)"),
    ],
    ids=range(5),
)  # fmt: skip
def test_how_docker_is_given_a_device(fields: dict[str, Any], inside: str, tmp_path: Path) -> None:
    scene = scene_of(tmp_path / "a", DOCKER)
    assert (
        MAKERS["option"](gpu(**fields), broken("node-missing"), scene) == f"`docker run {inside}`"
    )
    pod = scene_of(tmp_path / "b", {}, **POD)
    text = "the device in `resources.limits`"
    assert MAKERS["option"](gpu(**fields), broken("node-missing"), pod) == text


@pytest.mark.parametrize(
    ("sign", "inside"),
    [("/.dockerenv", "`docker run "), ("/run/.containerenv", "`podman run ")],
)
def test_how_a_container_is_given_a_device_on_usb(sign: str, inside: str, tmp_path: Path) -> None:
    device = gpu(id="usb:1-4", ids=["usb:1-4"], vendor="google", kind="npu", driver=None, pci=None)
    found = container_option(device, scene_of(tmp_path, {sign: ""}))
    assert found is not None
    assert found.startswith(inside)
    assert "/dev/bus/usb" in found


def placed(number: int, name: str | None) -> Any:
    address = f"0000:0{number}:00.0"
    return gpu(id=f"pci:{address}", pci={"address": address, "id": "10de:2684"}, name=name)


@pytest.mark.parametrize(
    ("count", "name", "named"),
    [
        (1, "GPU", "GPU (0000:01:00.0)"),
        (2, "GPU", "2 × GPU (0000:01:00.0 and 0000:02:00.0)"),
        (4, None, "0000:01:00.0, 0000:02:00.0, 0000:03:00.0 and 0000:04:00.0"),
        (5, "GPU", "5 × GPU (0000:01:00.0, 0000:02:00.0, 0000:03:00.0, 0000:04:00.0 and 1 more)"),
        (1, None, "0000:01:00.0"),
    ],
    ids=range(5),
)
def test_the_devices_of_a_finding(count: int, name: str | None, named: str, tmp_path: Path) -> None:
    group = [(placed(number, name), broken("nomodeset")) for number in range(1, count + 1)]
    found = finding_of(group, scene_of(tmp_path, {}), Usable(()))
    cause = "the kernel command line has nomodeset, with which nvidia does not start"
    assert found["what"] == f"{named}: {cause}"
    assert found["device"] == (group[0][0]["id"] if count == 1 else None)


FIRST, SECOND = "pci:0000:01:00.0", "pci:0000:02:00.0"


def reported(code: str, device: str | None, step: str | None, **fields: Any) -> Any:
    entry = {"code": code, "severity": "warning", "device": device, "step": step}
    return {**entry, "prober": "acme", "evidence": None, **fields}


@pytest.mark.parametrize(
    ("code", "prober", "entries", "left"),
    [
        ("library-missing", None, [], [None]),
        ("library-missing", None, [reported("of-acme", FIRST, "library")], [SECOND]),
        ("library-missing", None, [reported("library-missing", FIRST, None)], [SECOND]),
        ("library-missing", None, [reported("of-acme", FIRST, "granted")], [None]),
        ("library-missing", None, [reported("of-acme", None, "library")], [None]),
        (
            "library-missing",
            None,
            [reported("prober-unavailable", None, None, evidence="library-missing")],
            [],
        ),
        (
            "library-missing",
            None,
            [reported("prober-unavailable", None, None, evidence="driver-error")],
            [None],
        ),
        ("library-missing", None, [reported("x", None, None, evidence="library-missing")], [None]),
        # What a prober names one device for holds of all that it said the same of.
        ("of-acme", "acme", [reported("of-acme", FIRST, "library")], []),
        ("of-acme", "other", [reported("of-acme", FIRST, "library")], [SECOND]),
        ("of-acme", "acme", [reported("of-acme", FIRST, "library", prober=None)], [SECOND]),
        *[(code, None, [], []) for code in ("query-fails", "driver-crashes", "driver-hangs")],
        *[(code, "acme", [], [None]) for code in ("query-fails", "driver-crashes")],
    ],
    ids=range(16),
)
def test_what_is_told_already_is_no_finding(
    code: str, prober: str | None, entries: list[Any], left: list[str | None], tmp_path: Path
) -> None:
    devices = [placed(number, "GPU") for number in (1, 2)]
    for device in devices:
        step = broken(code, step="library", evidence="a file")
        device["readiness"] = conclusion([{**step, "prober": prober} if prober else step])
    found = findings(devices, scene_of(tmp_path, {}), entries)
    assert [entry["device"] for entry in found] == left


@pytest.mark.parametrize(
    ("code", "step", "shown_as", "severity"),
    [
        ("nomodeset", "driver", "nomodeset", "error"),
        ("reserved-for-vm", "driver", "no-driver", "info"),
        ("of-a-plugin", "driver", "no-driver", "error"),
        ("of-a-plugin", "node", "device-blocked", "error"),
        (None, "node", "device-blocked", "error"),
    ],
)
def test_the_code_of_a_finding(
    code: str | None, step: str, shown_as: str, severity: str, tmp_path: Path
) -> None:
    entry: Any = {**broken("x"), "code": code, "step": step}
    found = finding_of([(gpu(), entry)], scene_of(tmp_path, {}), Usable(()))
    assert (found["code"], found["severity"]) == (shown_as, severity)
    assert found["why"] == f"the step {step} is broken"


@pytest.mark.parametrize(
    ("code", "step", "others", "severity"),
    [
        ("no-permission", "permission", ["amd"], "error"),
        ("kfd-missing", "node", ["amd"], "info"),
        ("kfd-missing", "node", ["nvidia"], "error"),
        ("hsa-override-foreign", "runtime", ["amd"], "info"),
        ("hsa-override-bad", "runtime", ["amd"], "error"),
        ("cgroup-denied", "granted", ["amd"], "info"),
        ("cgroup-denied", "granted", [], "error"),
    ],
)
def test_a_break_beside_a_device_that_is_used(
    code: str, step: str, others: list[str], severity: str, tmp_path: Path
) -> None:
    ready = {"state": "ready", "steps": []}
    usable = Usable([gpu(vendor=own, readiness=ready, visibility={}) for own in others])
    entry: Any = {**broken(code), "step": step, "blocks": True}
    scene = scene_of(tmp_path, {})
    assert severity_of(gpu(vendor="amd"), entry, scene, usable) == severity


def test_what_grep_looks_for(tmp_path: Path) -> None:
    assert made("log_words", tmp_path) == "-e nvidia -e NVRM"
    assert made("log_words", tmp_path, vendor="amd", driver={"name": "amdgpu"}) == "-e amdgpu"
