"""What probers contribute to a device's chain, whom the core believes, and what the rest reads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from fake_probers import Probers, gpu
from readiness_nodes import (
    DEVICE,
    LIBRARIES,
    VERSION,
    Node,
    amd,
    card_and_processor,
    nvidia,
    step_of,
    verdict,
)
from reports import report_of

import probe_core
from probe_core.api import Machine, finding
from probe_core.model.ids import STEPS
from probe_core.pipeline.refresh import refresh
from probe_core.testing import Tree

NOT_GRANTED = {
    "step": "granted",
    "status": "broken",
    "evidence": "NVML lists 1 of 2 GPUs, not this one",
    "code": "not-granted",
}


def fact(step: str, status: str, code: str | None = None) -> dict[str, str | None]:
    return {"step": step, "status": status, "evidence": f"{step} is {status}", "code": code}


def sighting(*facts: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return gpu(1, driver={"name": "nvidia"}, step_facts=list(facts), **fields)


def run(node: Node, probers: Probers) -> dict[str, Any]:
    return node.report(**probers.arguments)


def test_a_device_that_is_on_no_bus_is_there_as_its_prober_says(
    tmp_path: Path, probers: Probers
) -> None:
    probers.reports("acme", sighting(memory=None))
    device = run(Node(tmp_path), probers)["devices"][0]
    assert device["seen_by"] == ["acme"]
    step = step_of(device, "hardware")
    assert (step["status"], step["evidence"]) == ("ok", f"acme reports {device['id']}")


def test_a_fact_reaches_the_chain_with_its_prober_and_nothing_else(
    tmp_path: Path, probers: Probers
) -> None:
    probers.reports("acme", sighting(NOT_GRANTED, memory=None))
    report = run(nvidia(tmp_path), probers)
    device = report["devices"][0]
    assert verdict(device) == ("blocked", "granted", "not-granted")
    assert step_of(device, "granted") == {
        **NOT_GRANTED,
        "prober": "acme",
        "severity": "info",
    }
    assert "step_facts" not in device
    assert report["primary"] == "cpu:0"
    assert report["fallback"] == "no-accelerator"  # somebody wanted it so
    found = next(f for f in report["findings"] if f["code"] == "not-granted")
    assert (found["severity"], found["prober"], found["device"]) == ("info", "acme", DEVICE)


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("step", "code", "severity", "expected"),
    [
        ("runtime", "fabric-not-ready", "warning", "error"),
        ("runtime", "fabric-not-ready", "error", "error"),
        ("granted", "compute-prohibited", "info", "info"),
        ("granted", "compute-prohibited", "warning", "warning"),
    ],
)
def test_a_probers_finding_has_the_severity_of_its_cause(
    step: str, code: str, severity: str, expected: str, tmp_path: Path, probers: Probers
) -> None:
    about = {"code": code, "severity": severity, "what": "x", "why": "y", "fix": "z"}
    about |= {"device": DEVICE, "step": step}
    device = sighting(fact(step, "broken", code))
    probers.add(
        "acme", f"from probe_core.api import finding\nyield finding(**{about!r})\nyield {device!r}"
    )
    report = run(nvidia(tmp_path), probers)
    own = [f["severity"] for f in report["findings"] if f["step"] == step]
    assert own == [expected]


def test_a_slice_leaves_the_other_gpu_and_no_degraded_node(
    tmp_path: Path, probers: Probers
) -> None:
    node = nvidia(tmp_path)
    node.tree.pci("0000:02:00.0", "10de:2684", driver="nvidia", drm=(1, 129))
    node.nodes("/dev/nvidia1")
    node.file("/proc/driver/nvidia/gpus/0000:02:00.0/information", "Device Minor: 1\n")
    second = gpu(2, step_facts=[fact("responding", "ok")])
    probers.reports("acme", sighting(NOT_GRANTED, memory=None), second)
    report = run(node, probers)
    assert [verdict(device) for device in report["devices"][:2]] == [
        ("blocked", "granted", "not-granted"),
        ("ready", None, None),
    ]
    assert (report["primary"], report["fallback"]) == ("pci:0000:02:00.0", None)


def test_what_nvml_answers_of_one_gpu_proves_the_node_of_all(
    tmp_path: Path, probers: Probers
) -> None:
    """A slice was told as a container without nodes, though NVML listed one GPU of it."""
    node = nvidia(tmp_path)
    node.remove("/dev/nvidiactl")
    node.access["/dev/nvidiactl"] = "missing"
    node.tree.pci("0000:02:00.0", "10de:2684", driver="nvidia", drm=(1, 129))
    second = gpu(2, step_facts=[fact("responding", "ok")])
    probers.reports("acme", sighting(NOT_GRANTED, memory=None), second)
    report = run(node, probers)
    assert [verdict(device) for device in report["devices"][:2]] == [
        ("blocked", "granted", "not-granted"),
        ("ready", None, None),
    ]


def test_a_probers_finding_stands_for_all_devices_of_its_cause(
    tmp_path: Path, probers: Probers
) -> None:
    node = nvidia(tmp_path)
    node.tree.pci("0000:02:00.0", "10de:2684", driver="nvidia", drm=(1, 129))
    second = gpu(2, driver={"name": "nvidia"}, step_facts=[NOT_GRANTED], memory=None)
    told = finding("gpu-not-listed", what="x", why="y", fix="z", device=DEVICE, step="granted")
    probers.reports("acme", sighting(NOT_GRANTED, memory=None), second, told)
    codes = [f["code"] for f in run(node, probers)["findings"] if f["step"] == "granted"]
    assert codes == ["gpu-not-listed"]


def test_a_worse_source_that_contradicts_is_told_and_hides_nothing(
    tmp_path: Path, probers: Probers
) -> None:
    probers.reports("vendor", sighting(fact("responding", "ok")), priority=500)
    probers.reports("liar", sighting(NOT_GRANTED, memory=None), priority=100)
    report = run(nvidia(tmp_path), probers)
    assert verdict(report["devices"][0]) == ("ready", None, None)
    assert report["primary"] == DEVICE
    found = next(f for f in report["findings"] if f["code"] == "readiness-conflict")
    assert (found["prober"], found["device"], found["step"]) == ("liar", DEVICE, "granted")
    assert found["what"] == (f"liar reports that {report['devices'][0]['name']} cannot be used")
    assert found["why"] == "a better source disagrees; vendor: responding is ok"


def test_live_memory_of_a_better_source_contradicts_too(tmp_path: Path, probers: Probers) -> None:
    probers.reports("vendor", sighting(), priority=500)
    probers.reports("liar", sighting(NOT_GRANTED, memory=None), priority=100)
    report = run(nvidia(tmp_path), probers)
    assert report["primary"] == DEVICE
    assert "readiness-conflict" in {f["code"] for f in report["findings"]}


def test_a_liar_hides_what_only_it_reports(tmp_path: Path, probers: Probers) -> None:
    own = gpu(7, driver={"name": "nvidia"}, step_facts=[NOT_GRANTED])
    probers.reports("liar", own, priority=100)
    report = run(nvidia(tmp_path), probers)
    states = {device["id"]: device["readiness"]["state"] for device in report["devices"]}
    assert states["pci:0000:07:00.0"] == "blocked"
    assert states[DEVICE] == "ready"
    assert report["primary"] == DEVICE


@pytest.mark.heavy
@pytest.mark.parametrize("step", ["node", "permission"])
def test_the_core_judges_nodes_itself(step: str, tmp_path: Path, probers: Probers) -> None:
    probers.reports("acme", sighting(fact(step, "broken", "no-permission")))
    node = nvidia(tmp_path)
    assert verdict(run(node, probers)["devices"][0]) == ("ready", None, None)
    if step == "permission":  # a recording cannot tell, and then the prober's word counts
        node.access.clear()
        assert verdict(run(node, probers)["devices"][0])[1] == "permission"


def test_a_library_that_answered_outweighs_files(tmp_path: Path, probers: Probers) -> None:
    node = nvidia(tmp_path)
    node.nodes("/dev/nvidia0", answer="missing")
    node.container()
    assert verdict(node.device())[1] == "node"
    probers.reports("acme", sighting(fact("responding", "ok"), fact("library", "ok")))
    device = run(node, probers)["devices"][0]
    assert verdict(device) == ("ready", None, None)
    assert step_of(device, "node")["status"] == "unknown"
    assert step_of(device, "node")["evidence"] == "/dev/nvidia0: missing, and yet NVML answers"


def test_but_nvml_opens_no_uvm(tmp_path: Path, probers: Probers) -> None:
    node = nvidia(tmp_path)
    node.nodes("/dev/nvidia-uvm", answer="missing")
    node.container()
    probers.reports("acme", sighting(fact("responding", "ok")))
    assert verdict(run(node, probers)["devices"][0]) == ("blocked", "node", "uvm-missing")


@pytest.mark.heavy
def test_the_nodes_of_a_prober_are_asked(tmp_path: Path, probers: Probers) -> None:
    tree = Tree(tmp_path)
    tree.pci("0000:01:00.0", "1ed5:0200", driver="mtgpu")
    tree.file("/dev/mtgpu.0", "")
    probers.reports(
        "acme",
        {"ids": [DEVICE], "kind": "gpu", "vendor": "moorethreads", "nodes": ["/dev/mtgpu.0"]},
    )
    for answer, expected in (("ok", None), ("EACCES", "permission"), ("EPERM", "granted")):
        machine = Machine(str(tmp_path), access={"/dev/mtgpu.0": answer})
        device = report_of(machine, **probers.arguments)["devices"][0]
        assert device["nodes"] == ["/dev/mtgpu.0"]
        assert device["readiness"]["broken"] == expected


def test_a_mig_instance_without_its_capability(tmp_path: Path, probers: Probers) -> None:
    cap = "/dev/nvidia-caps/nvidia-cap30"
    part = {
        "ids": ["uuid:MIG-5c1d7a9e-0000-5c52-9d7b-000000000001"],
        "kind": "gpu",
        "vendor": "nvidia",
        "parent": DEVICE,
        "nodes": ["/dev/nvidiactl", cap],
        "step_facts": [fact("responding", "ok")],
    }
    probers.reports("acme", sighting(), part)
    node = nvidia(tmp_path)
    node.nodes(cap, answer="EACCES")
    devices = run(node, probers)["devices"]
    instance = next(device for device in devices if device["parent"])
    assert verdict(instance) == ("blocked", "granted", "mig-cap-denied")


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("body", "primary", "fallback"),
    [
        ("raise Unavailable('vfio', code='reserved-for-vm')", "cpu:0", "no-accelerator"),
        ("raise Unavailable('odd')", "cpu:0", "no-accelerator"),
        ("import os; os._exit(3)", "cpu:0", "degraded"),
    ],
)
def test_passthrough_is_no_degraded_node_unless_nothing_else_explains_a_failure(
    body: str, primary: str, fallback: str, tmp_path: Path, probers: Probers
) -> None:
    tree = Tree(tmp_path)
    tree.pci("0000:01:00.0", "10de:2684", driver="vfio-pci")
    probers.add("acme", body, when={"pci_vendor": ["10de"]})
    report = report_of(tree.machine(), **probers.arguments)
    assert (report["primary"], report["fallback"]) == (primary, fallback)


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("body", "state", "fallback"),
    [
        ("raise RuntimeError('bug')", "ready", None),  # the plugin's own mistake
        ("raise Unavailable('no client', code='client-missing')", "ready", None),
        ("raise Unavailable('it fails', code='x')", "blocked", "degraded"),
        ("raise Unavailable('it is lost', code='gpu-lost')", "blocked", "degraded"),
        ("import os; os._exit(3)", "blocked", "degraded"),
    ],
)
def test_how_its_vendors_prober_ended(
    body: str, state: str, fallback: str | None, tmp_path: Path, probers: Probers
) -> None:
    probers.add("acme", body, when={"pci_vendor": ["10de"]})
    report = run(nvidia(tmp_path), probers)
    assert report["devices"][0]["readiness"]["state"] == state
    assert report["fallback"] == fallback
    assert report["primary"] == (DEVICE if state == "ready" else "cpu:0")


def test_what_just_ran_is_not_to_be_installed(tmp_path: Path, probers: Probers) -> None:
    tree = Tree(tmp_path)
    tree.pci("0000:01:00.0", "1022:17f0", pci_class="118000", driver="amdxdna", accel=0)
    missing = [f for f in report_of(tree.machine())["findings"] if f["code"] == "prober-missing"]
    assert [f["fix"] for f in missing] == ["pip install 'probe-core[amd]'"]
    probers.add("amd", "return not_applicable('no GPU')")
    report = report_of(tree.machine(), **probers.arguments)
    missing = [f for f in report["findings"] if f["code"] == "prober-missing"]
    assert [f["fix"] for f in missing] == ["install a prober for it"]


def test_a_hidden_device_is_blocked_until_the_variable_is_another(tmp_path: Path) -> None:
    node = nvidia(tmp_path)
    node.environ["CUDA_VISIBLE_DEVICES"] = ""
    report = node.report()
    assert verdict(report["devices"][0]) == ("blocked", "visible", "hidden-by-variable")
    assert step_of(report["devices"][0], "runtime")["status"] == "ok"
    assert (report["primary"], report["fallback"]) == ("cpu:0", "no-accelerator")
    refresh(report, {})  # type: ignore[arg-type]
    assert verdict(report["devices"][0]) == ("ready", None, None)
    assert report["primary"] == DEVICE


def test_a_report_without_readiness_is_refreshed_as_before(tmp_path: Path) -> None:
    report = nvidia(tmp_path).report()
    for device in report["devices"]:
        del device["readiness"]
    refresh(report, {"CUDA_VISIBLE_DEVICES": ""})  # type: ignore[arg-type]
    assert report["primary"] == "cpu:0"
    assert probe_core.Report.from_json(report).devices[0].readiness.state == "unknown"


def test_known_devices_come_before_unknown_ones(tmp_path: Path, probers: Probers) -> None:
    node = amd(tmp_path)
    probers.reports("site", {"ids": ["site:0"], "kind": "gpu", "vendor": "acme"}, priority=900)
    report = run(node, probers)
    states = {device["id"]: device["readiness"]["state"] for device in report["devices"]}
    assert states["site:0"] == "unknown"
    assert report["primary"] == DEVICE


def test_a_limited_gpu_stays_primary(tmp_path: Path) -> None:
    node = nvidia(tmp_path, link=(1, 16.0), max_link=(16, 16.0))
    node.tree.pci("0000:00:02.0", "8086:a780", driver="i915", drm=(1, 129))
    assert node.report()["primary"] == DEVICE


def test_equal_devices_share_a_finding(tmp_path: Path) -> None:
    node = nvidia(tmp_path)
    node.tree.pci("0000:02:00.0", "10de:2684", driver="nvidia")
    node.file("/proc/driver/nvidia/gpus/0000:02:00.0/information", "Device Minor: 1\n")
    node.nodes(*node.access, "/dev/nvidia1", answer="missing")
    node.container()
    found = [f for f in node.report()["findings"] if f["code"] == "container-without-gpus"]
    assert len(found) == 1
    assert found[0]["device"] is None
    assert found[0]["what"].startswith(
        "2 × NVIDIA GeForce RTX 4090 (0000:01:00.0 and 0000:02:00.0)"
    )
    assert "--gpus all" in found[0]["fix"]


def test_mig_without_instances_limits_and_is_the_step_that_is_told(
    tmp_path: Path, probers: Probers
) -> None:
    broken = fact("granted", "broken", "mig-without-instances")
    probers.reports("acme", sighting(broken, name="NVIDIA A100", extra={"mig": {"enabled": True}}))
    device = run(nvidia(tmp_path), probers)["devices"][0]
    assert verdict(device) == ("limited", "granted", "mig-without-instances")


def test_a_part_of_the_gpus_of_a_container_is_a_notice(tmp_path: Path) -> None:
    node = nvidia(tmp_path)
    node.container()
    node.tree.pci("0000:02:00.0", "10de:2684", driver="nvidia")
    node.file("/proc/driver/nvidia/gpus/0000:02:00.0/information", "Device Minor: 1\n")
    node.nodes("/dev/nvidia1", answer="missing")
    report = node.report()
    assert [verdict(device)[0] for device in report["devices"][:2]] == ["ready", "blocked"]
    found = next(f for f in report["findings"] if f["step"] == "node")
    assert (found["code"], found["severity"]) == ("container-without-gpus", "info")


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("files", "environ", "expected"),
    [
        (("gfx942",), {}, ("limited", "runtime", "gfx-not-supported")),
        (("gfx942", "gfx1100"), {}, ("ready", None, None)),
        ((), {}, ("ready", None, None)),
        (("gfx942",), {"HSA_OVERRIDE_GFX_VERSION": "11.0.2"}, ("ready", None, None)),
    ],
)
def test_rocblas_has_code_for_the_gpu(
    files: tuple[str, ...],
    environ: dict[str, str],
    expected: tuple[str, str | None, str | None],
    tmp_path: Path,
    probers: Probers,
) -> None:
    node = amd(tmp_path)
    node.environ = environ
    for name in files:
        node.file(f"/opt/rocm/lib/rocblas/library/TensileLibrary_lazy_{name}.dat")
    card = {"ids": [DEVICE], "kind": "gpu", "vendor": "amd", "gfx": "gfx1100"}
    probers.reports("acme", card)
    assert verdict(run(node, probers)["devices"][0]) == expected


def test_the_cpu_runs_this() -> None:
    (cpu,) = (d for d in report_of(Machine(environ={}))["devices"] if d["kind"] == "cpu")
    assert cpu["readiness"] == {"state": "ready", "broken": None, "steps": []}


def test_steps_are_those_of_the_table() -> None:
    from probe_core.model.causes import CAUSES

    assert {cause.step for cause in CAUSES.values()} == set(STEPS)
    assert all(code == cause.code for code, cause in CAUSES.items())


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("power", "expected"),
    [
        ("active", ("blocked", "hardware", "off-the-bus")),
        ("suspended", ("blocked", "responding", "gpu-lost")),
    ],
)
def test_a_lost_gpu_is_off_the_bus_where_the_kernel_says_that_it_is_awake(
    power: str, expected: tuple[str, str, str], tmp_path: Path, probers: Probers
) -> None:
    node = nvidia(tmp_path, power=power, current_link_width=63)
    lost = sighting(fact("responding", "broken", "gpu-lost"), memory=None, power_state="unknown")
    probers.reports("acme", lost)
    assert verdict(run(node, probers)["devices"][0]) == expected


def test_an_override_is_of_rocm_alone(tmp_path: Path) -> None:
    """Vulkan shows the GPU; of ROCm it depends on the release whether it takes a number."""
    node = card_and_processor(tmp_path)
    own, other = node.report()["devices"][:2]
    assert (verdict(own)[0], verdict(other)[2]) == ("ready", "hsa-override-foreign")
    assert other["visibility"]["hip"]["visible"] is None
    assert other["visibility"]["vulkan"]["visible"] is not False
    node.environ["HSA_OVERRIDE_GFX_VERSION"] = "11"
    own, other = node.report()["devices"][:2]
    assert [verdict(device)[2] for device in (own, other)] == ["hsa-override-bad"] * 2
    assert [d["visibility"]["hip"]["visible"] for d in (own, other)] == [False, False]
    for value, about in (("9" * 41, ""), (f"{11:020}.{0:020}.0", "; the GPU is")):
        node.environ["HSA_OVERRIDE_GFX_VERSION"] = value
        steps = node.report()["devices"][1]["readiness"]["steps"]
        (evidence,) = [step["evidence"] for step in steps if step["status"] == "broken"]
        assert evidence.startswith(f"HSA_OVERRIDE_GFX_VERSION={value[:40]}{about}")


@pytest.mark.parametrize(
    ("driver", "code"), [("vfio-pci", "reserved-for-vm"), ("nouveau", "nouveau-bound")]
)
def test_an_answer_without_a_driver_is_shown_as_a_contradiction(
    driver: str, code: str, tmp_path: Path, probers: Probers
) -> None:
    answer = {**fact("responding", "ok"), "evidence": "NVML answered 31 queries"}
    probers.reports("vendor", {**gpu(1), "step_facts": [answer]})
    device = run(nvidia(tmp_path, driver=driver), probers)["devices"][0]
    assert verdict(device) == ("blocked", "driver", code)
    folder = "/sys/bus/pci/devices/0000:01:00.0"
    expected = f"{folder}/driver is {driver}; but vendor: NVML answered 31 queries"
    assert step_of(device, "driver")["evidence"] == expected


def test_an_answer_over_fewer_lanes_is_no_contradiction(tmp_path: Path, probers: Probers) -> None:
    probers.reports("vendor", {**gpu(1), "step_facts": [fact("responding", "ok")]})
    node = nvidia(tmp_path, link=(4, 16.0), max_link=(16, 16.0))
    evidence = step_of(run(node, probers)["devices"][0], "hardware")["evidence"]
    assert evidence.endswith("current_link_width is 4, max_link_width 16")


@pytest.mark.parametrize("head", [b"", b"\x7fELF\x01\x01"])
def test_an_answer_of_nvml_does_not_cover_a_broken_libcuda(
    head: bytes, tmp_path: Path, probers: Probers
) -> None:
    node = nvidia(tmp_path)
    node.file(f"{LIBRARIES}/libcuda.so.{VERSION}", head)
    answers = [fact("library", "ok"), fact("responding", "ok")]
    probers.reports("vendor", {**gpu(1), "step_facts": answers})
    device = run(node, probers)["devices"][0]
    assert verdict(device) == ("blocked", "runtime", "library-broken")
    assert step_of(device, "library")["status"] == "ok"
