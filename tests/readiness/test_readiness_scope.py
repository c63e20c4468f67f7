"""Each node that a runtime needs, closed in each way, whatever probers reported: never ready."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from shutil import rmtree
from typing import Any

import pytest
import readiness_nodes as nodes
from fake_probers import Probers
from readiness_nodes import DEVICE, FOLDER, Node, amd, intel, nvidia, step_of, verdict
from weights import mostly_heavy

from probe_core.model.causes import CAUSES
from probe_core.readiness.driver_nodes import ROWS, row_of

Judged = Callable[..., dict[str, Any]]

REFUSALS = ("missing", "EACCES", "EPERM", "ENXIO")

ACCEL, RENDER = "/dev/accel/accel0", "/dev/dri/renderD128"

# Name of a row to PCI ids, PCI class, driver, what its folder in /sys has, and all of its nodes.
CARDS: dict[str, tuple[str, str, str, str, tuple[str, ...]]] = {
    "ascend": (
        "19e5:d802",
        "120000",
        "devdrv_device_driver",
        "",
        ("/dev/davinci0", "/dev/davinci_manager", "/dev/devmm_svm", "/dev/hisi_hdc"),
    ),
    "cambricon": (
        "cabc:0370",
        "120000",
        "cambricon-pci-drv",
        "",
        ("/dev/cambricon_dev0", "/dev/cambricon_ctl"),
    ),
    "gaudi": ("1da3:1020", "120000", "habanalabs", "accel", (ACCEL,)),
    "neuron": ("1d0f:7264", "088000", "neuron-driver", "", ("/dev/neuron0",)),
    "tpu": ("1ae0:0063", "120000", "vfio-pci", "iommu_group", ("/dev/vfio/5", "/dev/vfio/vfio")),
    "tenstorrent": (
        "1e52:401e",
        "120000",
        "tenstorrent",
        "tenstorrent/tenstorrent!0",
        ("/dev/tenstorrent/0",),
    ),
    "hailo": ("1e60:2864", "120000", "hailo", "hailo_chardev/hailo0", ("/dev/hailo0",)),
    "hailo-10": ("1e60:45c4", "120000", "hailo1x", "hailo1x/h1x-0", ("/dev/h1x-0",)),
    "coral": ("1ac1:089a", "088000", "apex", "apex/apex_0", ("/dev/apex_0",)),
    "xdna": ("1022:17f0", "118000", "amdxdna", "accel", (ACCEL,)),
    "intel-npu": ("8086:643e", "120000", "intel_vpu", "accel", (ACCEL,)),
    "qaic": ("17cb:a100", "120000", "qaic", "accel", (ACCEL,)),
    "xrt": ("10ee:5005", "120000", "xocl", "drm", (RENDER,)),
    "biren": (
        "1ee0:0106",
        "120000",
        "biren",
        "biren/card_0",
        ("/dev/biren-m", "/dev/biren/card_0"),
    ),
    "moorethreads": ("1ed5:0200", "030000", "mtgpu", "drm", ("/dev/mtgpu.0", RENDER)),
    "iluvatar": ("1e3e:0002", "120000", "iluvatar", "", ("/dev/iluvatar0",)),
    "metax": ("9999:4001", "120000", "metax", "drm", ("/dev/mxcd", RENDER)),
    "hygon": ("1d94:62b7", "120000", "hydcu", "drm", ("/dev/kfd", "/dev/mkfd", RENDER)),
    "rebellions": ("1eff:1220", "120000", "rebellions", "", ("/dev/rbln0",)),
    "furiosa": ("1ed2:0001", "120000", "furiosa_rngd", "", ("/dev/rngd/npu0mgmt",)),
}


def card(root: Path, name: str) -> Node:
    """Return a machine with one accelerator, its driver, and every node that its programs open."""
    ids, pci_class, driver, below, paths = CARDS[name]
    node = Node(root)
    more: dict[str, Any] = {"accel": {"accel": 0}, "drm": {"drm": (0, 128)}}.get(below, {})
    folder = node.tree.pci(nodes.PCI, ids, pci_class=pci_class, driver=driver, **more)
    if below == "iommu_group":
        node.tree.link(f"{folder}/{below}", "/sys/kernel/iommu_groups/5")
    elif "/" in below:
        node.file(f"{folder}/{below}/dev", "510:0\n")
    node.nodes(*paths)
    return node


GPUS = {"nvidia": nvidia, "amd": amd, "intel": intel}
NODES = {
    "nvidia": nodes.NVIDIA_NODES,
    "amd": nodes.AMD_NODES,
    "intel": nodes.INTEL_NODES,
    **{name: paths for name, (*_, paths) in CARDS.items()},
}


def computer(root: Path, name: str) -> Node:
    return GPUS[name](root) if name in GPUS else card(root, name)


@pytest.fixture
def judged(probers: Probers) -> Judged:
    """Return the report of a machine of that name, with a prober's claims where there are any."""

    def report(node: Node, name: str, *facts: dict[str, Any]) -> dict[str, Any]:
        # No published list of PCI ids has Biren's cards, so that a prober must say what it is.
        if facts or name == "biren":
            kind = "gpu" if name in (*GPUS, "moorethreads") else "accelerator"
            probers.reports("acme", reported(*facts, kind=kind), priority=900)
        return node.report(**probers.arguments)

    return report


def accelerator(report: dict[str, Any]) -> dict[str, Any]:
    return next(device for device in report["devices"] if device["id"] == DEVICE)


def fact(step: str, status: str = "ok", **more: Any) -> dict[str, Any]:
    return {"step": step, "status": status, "evidence": f"{step} is {status}", **more}


STEPS = ("driver", "node", "permission", "library", "granted", "runtime")
ALL_WELL = [fact(step) for step in STEPS]
"""What a prober may claim of each step without having opened a node."""

ANSWERS = [*ALL_WELL, fact("responding")]


def reported(*facts: dict[str, Any], kind: str = "gpu") -> dict[str, Any]:
    return {"ids": [DEVICE], "kind": kind, "step_facts": list(facts)}


EXPECTED = {
    "missing": ("node", "node-missing"),
    "EACCES": ("permission", "no-permission"),
    "EPERM": ("granted", "cgroup-denied"),
    "ENXIO": ("node", "node-without-driver"),
}
UVM, KFD = "/dev/nvidia-uvm", "/dev/kfd"


def expected(name: str, path: str, refusal: str) -> tuple[str, str, str]:
    """Return state, step and code."""
    if path == UVM and refusal in ("missing", "ENXIO"):
        return "blocked", "node", "uvm-missing"
    if (name, path, refusal) == ("amd", KFD, "missing"):
        return "limited", "node", "kfd-missing"
    return "blocked", *EXPECTED[refusal]


CASES = [(name, path, r) for name, paths in NODES.items() for path in paths for r in REFUSALS]


@pytest.mark.parametrize("case", mostly_heavy(CASES, 5), ids="-".join)
def test_a_closed_node_is_never_ready(
    case: tuple[str, str, str], tmp_path: Path, judged: Judged
) -> None:
    name, path, refusal = case
    node = computer(tmp_path, name)
    node.nodes(path, answer=refusal)
    report = judged(node, name)
    device = accelerator(report)
    assert verdict(device) == expected(name, path, refusal)
    step = step_of(device, device["readiness"]["broken"])
    assert path in step["evidence"]
    found = next(f for f in report["findings"] if f["step"] == step["step"])
    assert found["code"] == step["code"]
    assert path in found["evidence"]
    assert path in found["what"] + found["fix"]


@pytest.mark.heavy
@pytest.mark.parametrize(("name", "path", "refusal"), CASES)
def test_no_claim_of_a_prober_opens_a_closed_node(
    name: str, path: str, refusal: str, tmp_path: Path, judged: Judged
) -> None:
    node = computer(tmp_path, name)
    node.nodes(path, answer=refusal)
    is_opened_by_nvml = name == "nvidia" and path != UVM
    device = accelerator(judged(node, name, *(ALL_WELL if is_opened_by_nvml else ANSWERS)))
    assert verdict(device) == expected(name, path, refusal)
    assert path in step_of(device, device["readiness"]["broken"])["evidence"]


@pytest.mark.parametrize("name", NODES)
def test_every_such_machine_is_ready_with_its_nodes(
    name: str, tmp_path: Path, judged: Judged
) -> None:
    report = judged(computer(tmp_path, name), name)
    device = accelerator(report)
    assert verdict(device) == ("ready", None, None)
    assert report["primary"] == DEVICE
    assert {f["code"] for f in report["findings"]} & set(CAUSES) == set()


@pytest.mark.parametrize("name", mostly_heavy(CARDS, 5))
def test_a_container_without_any_of_them(name: str, tmp_path: Path, judged: Judged) -> None:
    node = card(tmp_path, name)
    node.nodes(*NODES[name], answer="missing")
    node.container()
    report = judged(node, name)
    device = accelerator(report)
    assert verdict(device) == ("blocked", "node", "container-without-gpus")
    assert all(path in step_of(device, "node")["evidence"] for path in NODES[name])
    found = next(f for f in report["findings"] if f["code"] == "container-without-gpus")
    row = row_of(CARDS[name][2], device["vendor"])
    assert row is not None
    option = row.container
    option = f"`docker run {option[1:]}" if option.startswith("`-") else option
    assert found["fix"] == f"start the container with {option}"


@pytest.mark.parametrize("name", mostly_heavy(CARDS, 5))
def test_a_recording_without_dev_proves_nothing(name: str, tmp_path: Path, judged: Judged) -> None:
    node = card(tmp_path, name)
    node.nodes(*NODES[name], answer="missing")
    node.access.clear()
    rmtree(tmp_path / "dev", ignore_errors=True)
    report = judged(node, name)
    assert verdict(accelerator(report)) == ("unknown", None, None)
    assert {f["code"] for f in report["findings"]} & set(CAUSES) == set()


def test_every_row_has_a_machine_here() -> None:
    assert [row.maker for row in ROWS if row.drivers] == list(CARDS)
    assert all(row.source and row.container for row in ROWS)


def test_a_driver_in_no_row_is_never_ready(tmp_path: Path) -> None:
    node = Node(tmp_path)
    node.tree.pci(nodes.PCI, "cabc:0370", pci_class="120000", driver="acme-npu")
    node.file("/dev/acme0")
    device = node.device()
    assert verdict(device) == ("unknown", None, None)
    assert step_of(device, "driver")["status"] == "ok"
    assert step_of(device, "node")["code"] == "node-unknown"


def test_but_its_own_library_knows(tmp_path: Path, probers: Probers) -> None:
    node = Node(tmp_path)
    node.tree.pci(nodes.PCI, "cabc:0370", pci_class="120000", driver="acme-npu")
    probers.reports("acme", reported(fact("responding")))
    report = node.report(**probers.arguments)
    assert verdict(accelerator(report)) == ("ready", None, None)
    assert report["primary"] == DEVICE


# --- what an answer proves


@pytest.mark.parametrize("refusal", REFUSALS)
@pytest.mark.parametrize("path", ["/dev/nvidiactl", "/dev/nvidia0"])
def test_what_nvml_opened_is_open(
    path: str, refusal: str, tmp_path: Path, probers: Probers
) -> None:
    node = nvidia(tmp_path)
    node.nodes(path, answer=refusal)
    probers.reports("acme", reported(fact("responding"), fact("granted")))
    device = accelerator(node.report(**probers.arguments))
    assert verdict(device) == ("ready", None, None)
    name = {"EACCES": "permission", "EPERM": "granted"}.get(refusal, "node")
    step = step_of(device, name)
    assert (step["status"], step["opened"]) == ("unknown", [path])
    assert step["evidence"] == f"{path}: {refusal}, and yet NVML answers"


@pytest.mark.parametrize("refusal", REFUSALS)
def test_nvml_opens_no_uvm_and_a_refusal_of_it_stands_beside_one_that_is_set_aside(
    refusal: str, tmp_path: Path, probers: Probers
) -> None:
    """A GPU was ready and primary whose nvidia-uvm the cgroup refused."""
    node = nvidia(tmp_path)
    node.nodes("/dev/nvidia0", UVM, answer=refusal)
    probers.reports("acme", reported(fact("responding"), fact("granted")))
    report = node.report(**probers.arguments)
    device = accelerator(report)
    assert verdict(device) == expected("nvidia", UVM, refusal)
    evidence = step_of(device, device["readiness"]["broken"])["evidence"]
    assert UVM in evidence
    assert "/dev/nvidia0" not in evidence
    assert report["primary"] == "cpu:0"


def two(root: Path) -> Node:
    node = nvidia(root)
    node.tree.pci("0000:02:00.0", "10de:2684", driver="nvidia", drm=(1, 129))
    node.file("/proc/driver/nvidia/gpus/0000:02:00.0/information", "Device Minor: 1\n")
    node.nodes("/dev/nvidia1")
    return node


@pytest.mark.parametrize(
    ("path", "states"),
    [("/dev/nvidiactl", ["ready", "ready"]), ("/dev/nvidia1", ["ready", "blocked"])],
)
def test_the_control_node_is_that_of_all_gpus_and_their_own_is_not(
    path: str, states: list[str], tmp_path: Path, probers: Probers
) -> None:
    node = two(tmp_path)
    node.nodes(path, answer="EPERM")
    probers.reports("acme", reported(fact("responding")))
    report = node.report(**probers.arguments)
    assert [device["readiness"]["state"] for device in report["devices"][:2]] == states


def test_a_prober_says_what_it_opened(tmp_path: Path, probers: Probers) -> None:
    node = amd(tmp_path)
    node.nodes(KFD, answer="EPERM")
    probers.reports("acme", reported(fact("responding", opened=[KFD])))
    device = accelerator(node.report(**probers.arguments))
    assert verdict(device) == ("ready", None, None)
    assert step_of(device, "granted")["evidence"] == f"{KFD}: EPERM, and yet acme answers"
    assert step_of(device, "responding")["opened"] == [KFD]


def test_a_prober_that_read_files_says_that_it_opened_nothing(
    tmp_path: Path, probers: Probers
) -> None:
    node = nvidia(tmp_path)
    node.nodes("/dev/nvidia0", answer="EACCES")
    probers.reports("acme", reported(fact("responding", opened=[])))
    device = accelerator(node.report(**probers.arguments))
    assert verdict(device) == ("blocked", "permission", "no-permission")


def test_the_scope_of_one_answer_takes_nothing_from_another(
    tmp_path: Path, probers: Probers
) -> None:
    node = nvidia(tmp_path)
    node.nodes("/dev/nvidia0", answer="EACCES")
    probers.reports("nvml", reported(fact("responding")))
    probers.reports("files", reported(fact("responding", opened=[])))
    assert verdict(accelerator(node.report(**probers.arguments))) == ("ready", None, None)


def test_an_odd_scope_costs_its_fact_and_not_the_device(tmp_path: Path, probers: Probers) -> None:
    probers.reports("acme", reported(fact("responding", opened="/dev/kfd")))
    report = amd(tmp_path).report(**probers.arguments)
    assert verdict(accelerator(report)) == ("ready", None, None)
    assert "value-rejected" in {f["code"] for f in report["findings"]}


def test_evidence_that_contradicts_itself_shows_both_sides_and_the_worse_counts(
    tmp_path: Path, probers: Probers
) -> None:
    node = Node(tmp_path)
    node.tree.pci(nodes.PCI, "10de:2684", driver="vfio-pci")
    probers.reports("acme", reported(fact("driver")))
    device = accelerator(node.report(**probers.arguments))
    assert verdict(device) == ("blocked", "driver", "reserved-for-vm")
    text = f"{FOLDER}/driver is vfio-pci; but acme: driver is ok"
    assert step_of(device, "driver")["evidence"] == text


# --- groups


def test_the_group_is_the_vendors(tmp_path: Path) -> None:
    node = card(tmp_path, "ascend")
    node.nodes("/dev/davinci0", answer="EACCES")
    node.file("/etc/passwd", "root:x:0:0::/root:/bin/sh\nada:x:1000:1000::/home/ada:/bin/sh\n")
    node.file("/etc/group", "video:x:44:\nHwHiAiUser:x:1001:\n")
    ids = "Uid:\t1000\t1000\t1000\t1000\nGid:\t1000\t1000\t1000\t1000\nGroups:\t1000 44 \n"
    node.file("/proc/self/status", ids)
    step = step_of(node.device(), "permission")
    assert step["code"] == "not-in-group"
    assert step["evidence"].endswith("this process is not in group HwHiAiUser")
    found = next(f for f in node.report()["findings"] if f["code"] == "not-in-group")
    assert found["fix"] == "`sudo usermod -aG HwHiAiUser $USER`, then log in again"


def test_the_node_of_the_second_gpu_is_made_with_its_number(tmp_path: Path) -> None:
    node = two(tmp_path)
    node.nodes("/dev/nvidia1", answer="missing")
    found = next(f for f in node.report()["findings"] if f["code"] == "node-missing")
    assert found["fix"] == "`sudo nvidia-modprobe -c 1 -u` (package nvidia-modprobe)"


# --- nodes of several cards


def test_a_card_of_several_whose_own_node_is_not_known_is_neither_ready_nor_blocked(
    tmp_path: Path,
) -> None:
    node = card(tmp_path, "ascend")
    node.tree.pci("0000:02:00.0", "19e5:d802", pci_class="120000", driver="devdrv_device_driver")
    node.container()
    report = node.report()
    assert [verdict(device)[0] for device in report["devices"][:2]] == ["unknown", "unknown"]
    evidence = "1 nodes like /dev/davinci0 for 2 devices: which of them is its own is not known"
    assert step_of(accelerator(report), "node")["evidence"] == evidence
    node.nodes("/dev/davinci1")
    assert [verdict(d)[0] for d in node.report()["devices"][:2]] == ["ready", "ready"]


def test_an_older_gaudi_is_opened_through_its_own_class(tmp_path: Path) -> None:
    node = Node(tmp_path)
    folder = node.tree.pci(nodes.PCI, "1da3:1020", pci_class="120000", driver="habanalabs")
    for name in ("hl0", "hl_controlD0"):
        node.file(f"{folder}/habanalabs/{name}/dev", "239:0\n")
    node.nodes("/dev/hl0", answer="EACCES")
    device = node.device()
    assert verdict(device) == ("blocked", "permission", "no-permission")
    assert "/dev/hl0" in step_of(device, "permission")["evidence"]


@pytest.mark.parametrize("name", ["xdna", "hailo", "tpu", "metax"])
def test_a_driver_that_links_no_node_yet_is_unknown(name: str, tmp_path: Path) -> None:
    ids, pci_class, driver, _, paths = CARDS[name]
    node = Node(tmp_path)
    node.tree.pci(nodes.PCI, ids, pci_class=pci_class, driver=driver)
    node.nodes(*(path for path in paths if path.startswith(("/dev/vfio/vfio", "/dev/mxcd"))))
    node.file("/dev/null")
    device = node.device()
    assert verdict(device) == ("unknown", None, None)
    assert step_of(device, "node")["evidence"] == "nothing in /sys names its node"


# --- GPUs


def without_drm(root: Path) -> Node:
    node = Node(root)
    node.tree.pci(nodes.PCI, "1002:744c", driver="amdgpu")
    return node


@pytest.mark.parametrize("paths", [(), (KFD,)])
def test_amdgpu_without_any_node_of_drm(paths: tuple[str, ...], tmp_path: Path) -> None:
    """A card without /dev/dri was ready: nobody knew its nodes."""
    node = without_drm(tmp_path)
    node.nodes(*paths)
    report = node.report()
    device = accelerator(report)
    assert verdict(device) == ("blocked", "node", "node-missing")
    assert f"{FOLDER}/drm is absent" in step_of(device, "node")["evidence"]
    assert report["primary"] == "cpu:0"
    # /dev/kfd may be there: it is not what is missing (ollama/ollama#17104).
    finding = next(entry for entry in report["findings"] if entry["code"] == "node-missing")
    assert finding["what"].endswith(": /dev/dri/renderD* is missing")


def test_in_a_container_nobody_is_accused_of_it_and_it_is_not_primary(tmp_path: Path) -> None:
    node = without_drm(tmp_path)
    node.container()
    report = node.report()
    assert verdict(accelerator(report)) == ("unknown", None, None)
    assert report["primary"] == "cpu:0"
