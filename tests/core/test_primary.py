"""Which device comes first, which net the node fell into, and what the bus alone shows."""

from __future__ import annotations

from typing import Any

import pytest
from fake_probers import Probers, gpu
from reports import codes, report_of, report_of_recording
from trees import Tree

import probe_core
from probe_core.pipeline.conclude import in_order, last_findings, troubles
from probe_core.registry.prober import Prober, select
from probe_core.setting_values import load_config

NPU = {"ids": ["acme:0"], "kind": "npu", "name": "Acme", "memory": {"kind": "unified"}}
IGPU = {
    "ids": ["pci:0000:00:02.0"],
    "kind": "gpu",
    "vendor": "intel",
    "pci": {"id": "8086:a780"},
    "memory": {"kind": "unified", "total": 64 << 30},
}


def run(tree: Tree, probers: Probers, environ: dict[str, str] | None = None) -> dict[str, Any]:
    machine = probe_core.Machine(str(tree.root), environ)
    return report_of(machine, **probers.arguments)


def test_gpu_before_npu_before_cpu(tree: Tree, probers: Probers) -> None:
    probers.reports("a", NPU, gpu())
    report = run(tree, probers)
    assert [d["kind"] for d in report["devices"]] == ["gpu", "npu", "cpu"]
    assert (report["primary"], report["fallback"]) == ("pci:0000:01:00.0", None)


def test_npu_alone_is_primary(tree: Tree, probers: Probers) -> None:
    probers.reports("a", NPU)
    assert run(tree, probers)["primary"] == "acme:0"


def test_dedicated_memory_before_shared(tree: Tree, probers: Probers) -> None:
    probers.reports("a", IGPU, gpu())
    assert run(tree, probers)["primary"] == "pci:0000:01:00.0"


def test_lost_gpu_is_not_primary(tree: Tree, probers: Probers) -> None:
    lost = {k: v for k, v in gpu(1).items() if k not in ("backends", "memory")}
    probers.reports("a", lost | {"power_state": "unknown"}, gpu(2))
    assert run(tree, probers)["primary"] == "pci:0000:02:00.0"
    probers.reports("a", lost | {"power_state": "unknown"})
    report = run(tree, probers)
    assert (report["primary"], report["fallback"]) == ("cpu:0", "degraded")


def test_sleeping_gpu_of_which_nothing_was_asked_is_usable(tree: Tree, probers: Probers) -> None:
    asleep = {k: v for k, v in gpu(1).items() if k not in ("backends", "memory")}
    probers.reports("a", asleep | {"power_state": "suspended"})
    assert run(tree, probers)["primary"] == "pci:0000:01:00.0"


def test_higher_priority_comes_first(tree: Tree, probers: Probers) -> None:
    probers.reports("a", gpu(), priority=400)
    probers.reports("b", IGPU, priority=500)
    assert run(tree, probers)["primary"] == "pci:0000:00:02.0"


def test_faster_then_larger_comes_first(tree: Tree, probers: Probers) -> None:
    slow = gpu(1, name="NVIDIA GeForce RTX 3090", pci={"id": "10de:2204"})
    probers.reports("a", slow, gpu(2))
    assert run(tree, probers)["primary"] == "pci:0000:02:00.0"
    more = {"kind": "dedicated", "total": 48 << 30}
    probers.reports("a", gpu(1), gpu(2, memory=more))
    assert run(tree, probers)["primary"] == "pci:0000:02:00.0"


def test_of_equals_the_lowest_address_in_whatever_order_they_come(
    tree: Tree, probers: Probers
) -> None:
    order = [f"pci:0000:{number:02x}:00.0" for number in (1, 2, 10)]
    for numbers in ((10, 1, 2), (2, 10, 1)):
        probers.reports("a", *map(gpu, numbers))
        report = run(tree, probers)
        assert report["primary"] == "pci:0000:01:00.0"
        assert [one["id"] for one in report["devices"] if one["kind"] == "gpu"] == order


def test_hidden_device_is_not_primary(tree: Tree, probers: Probers) -> None:
    probers.reports("a", gpu(1), gpu(2))
    report = run(tree, probers, {"CUDA_VISIBLE_DEVICES": "", "CUDA_DEVICE_ORDER": "PCI_BUS_ID"})
    assert report["primary"] == "cpu:0"
    assert report["fallback"] == "no-accelerator"
    assert "hidden-by-variable" in codes(report)
    assert len([d for d in report["devices"] if d["kind"] == "gpu"]) == 2


def test_no_accelerator_and_nothing_failed(tree: Tree, probers: Probers) -> None:
    probers.add("a", "return not_applicable('nothing here')")
    report = run(tree, probers)
    assert (report["primary"], report["fallback"]) == ("cpu:0", "no-accelerator")


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (
            "raise Unavailable('driver not loaded', code='no-driver')",
            "unavailable",
            "prober-unavailable",
        ),
        ("raise RuntimeError('bug')", "call_error", "prober-failed"),
        ("import os; os._exit(3)", "crashed", "prober-failed"),
        ("return None", "invalid", "prober-failed"),
        ("import time; time.sleep(60)", "timeout", "prober-failed"),
    ],
)
def test_failure_without_accelerator_is_a_degraded_node(
    body: str, status: str, code: str, tree: Tree, probers: Probers
) -> None:
    probers.add("a", body, deadline_s=1.0 if "sleep" in body else 10.0)
    report = run(tree, probers)
    assert (report["primary"], report["fallback"]) == ("cpu:0", "degraded")
    outcome = next(o for o in report["outcomes"] if o["prober"] == "a")
    assert outcome["status"] == status
    assert outcome["reason"]
    assert code in codes(report)


def test_failure_beside_an_accelerator_is_told_but_not_degraded(
    tree: Tree, probers: Probers
) -> None:
    probers.reports("good", gpu())
    probers.add("bad", "raise RuntimeError('bug')")
    report = run(tree, probers)
    assert (report["primary"], report["fallback"]) == ("pci:0000:01:00.0", None)
    assert "prober-failed" in codes(report)


def test_devices_before_a_crash_are_kept(tree: Tree, probers: Probers) -> None:
    probers.add("a", f"yield {gpu()!r}\nimport os; os._exit(1)")
    report = run(tree, probers)
    outcome = next(o for o in report["outcomes"] if o["prober"] == "a")
    assert (outcome["status"], outcome["partial"], outcome["devices"]) == ("crashed", True, 1)
    assert report["devices"][0]["id"] == "pci:0000:01:00.0"


def test_devices_without_a_prober_are_told_once_each(tree: Tree, probers: Probers) -> None:
    for number, (ident, driver) in enumerate(
        [
            ("10de:2684", "nvidia"),
            ("10de:2684", ""),
            ("10de:2684", "vfio-pci"),
            ("1a03:2000", "ast"),
        ]
    ):
        folder = f"/sys/bus/pci/devices/0000:0{number}:00.0"
        vendor, _, device = ident.partition(":")
        for name, text in {"class": "0x030000", "vendor": vendor, "device": device}.items():
            tree.file(f"{folder}/{name}", text)
        if driver:
            tree.link(f"{folder}/driver", f"/sys/bus/pci/drivers/{driver}")
    report = run(tree, probers)
    told = {(f["device"], f["code"], f["severity"]) for f in report["findings"] if f["device"]}
    assert told == {
        ("pci:0000:00:00.0", "prober-missing", "info"),
        ("pci:0000:01:00.0", "no-driver", "error"),
        ("pci:0000:02:00.0", "no-driver", "info"),
        ("pci:0000:03:00.0", "display-only", "info"),
    }
    assert report["primary"] == "pci:0000:00:00.0"
    missing = next(f for f in report["findings"] if f["code"] == "prober-missing")
    assert missing["fix"] == "pip install 'probe-core[nvidia]'"


def device(name: str, kind: str = "gpu", parent: str | None = None) -> dict[str, Any]:
    identity = {"id": name, "ids": [name], "kind": kind, "parent": parent}
    return identity | {"vendor": None, "name": None, "pci": None}


@pytest.mark.parametrize(
    ("devices", "order"),
    [
        ([device("c", "cpu"), device("d", "display"), device("g")], "g c d"),
        ([device("p", parent="g"), device("c", "cpu"), device("g")], "g p c"),
        ([device("pp", parent="p"), device("p", parent="g"), device("g"), device("h")], "g p pp h"),
        ([device("c", "cpu"), device("p", parent="unseen")], "p c"),
        ([device("a", parent="a"), device("c", "cpu")], "a c"),
        ([device("c", "cpu"), device("a", parent="b"), device("b", parent="a")], "c a b"),
        ([], ""),
    ],
)
def test_order_of_devices(devices: list[dict[str, Any]], order: str) -> None:
    found = [one["id"] for one in in_order(devices)]
    assert " ".join(found) == order


@pytest.mark.parametrize("turned", [False, True])
def test_the_order_is_no_probers(turned: bool, tree: Tree, probers: Probers) -> None:
    """Two models in the order in which a library lists them: it may list the fastest first."""
    models = [
        gpu(3, name="A"),
        gpu(2, name="B"),
        gpu(1, name="C", kind="npu"),
        gpu(1, ids=["uuid:GPU-10"]),
        gpu(1, ids=["uuid:GPU-9"], name="D"),
        gpu(1, ids=["x:1"], parent="pci:0000:03:00.0"),
    ]
    probers.reports("a", *(models[::-1] if turned else models))
    report = report_of(tree.machine(), **probers.arguments)
    assert [device["id"] for device in report["devices"]] == [
        "pci:0000:02:00.0",
        "pci:0000:03:00.0",
        "x:1",
        "uuid:GPU-9",
        "uuid:GPU-10",
        "pci:0000:01:00.0",
        "cpu:0",
    ]


def test_disabling_the_cpu_prober_leaves_the_net(tree: Tree) -> None:
    report = report_of(tree.machine(), disable=["cpu", "bus"])
    assert [d["id"] for d in report["devices"]] == ["cpu:0"]
    assert report["devices"][0]["seen_by"] == ["fallback"]


def test_fallback_cannot_be_disabled_or_replaced(tree: Tree, probers: Probers) -> None:
    probers.reports("fallback", gpu())
    probers.reports("cpu", gpu(2))
    report = report_of(tree.machine(), disable=["fallback", "cpu"], probers=probers.targets)
    assert [d["id"] for d in report["devices"]] == ["cpu:0"]
    causes = {
        d["prober"]: d["cause"] for d in report["decisions"] if d["prober"] in probers.targets
    }
    assert causes == {"fallback": "rejected", "cpu": "rejected"}


def test_a_gpu_that_xen_passes_to_a_guest_is_neither_primary_nor_numbered(
    tree: Tree, probers: Probers
) -> None:
    for slot, driver in ((1, "pciback"), (2, "nvidia")):
        folder = f"/sys/bus/pci/devices/0000:0{slot}:00.0"
        for name, text in {"class": "0x030000", "vendor": "10de", "device": "2684"}.items():
            tree.file(f"{folder}/{name}", text)
        tree.link(f"{folder}/driver", f"/sys/bus/pci/drivers/{driver}")
    report = run(tree, probers, {})
    assert report["primary"] == "pci:0000:02:00.0"
    entries = {one["id"]: one["visibility"] for one in report["devices"] if one["kind"] == "gpu"}
    assert entries["pci:0000:02:00.0"]["cuda"]["index"] == 0
    assert entries["pci:0000:01:00.0"]["cuda"]["visible"] is False
    assert ("no-driver", "pci:0000:01:00.0") in [
        (one["code"], one["device"]) for one in report["findings"]
    ]


QAT = {"vendor": "0x8086", "device": "0x37c8", "class": "0x0b4000"}
VECTOR_ENGINE = {"vendor": "0x1bcf", "device": "0x001c", "class": "0x0b4000"}


def card(tree: Tree, address: str, driver: str | None, **files: str) -> None:
    folder = f"/sys/bus/pci/devices/{address}"
    for name, text in files.items():
        tree.file(f"{folder}/{name}", text)
    if driver:
        tree.link(f"{folder}/driver", f"/sys/bus/pci/drivers/{driver}")


@pytest.mark.parametrize("driver", [None, "c6xx"])
def test_a_crypto_card_is_no_accelerator(driver: str | None, tree: Tree) -> None:
    tree.file("/proc/meminfo", "MemTotal: 1 kB\n")
    card(tree, "0000:01:00.0", driver, **QAT)
    report = report_of(tree.machine())
    cards = [d for d in report["devices"] if d["id"] == "pci:0000:01:00.0"]
    assert [(d["kind"], d["name"]) for d in cards] == [("coprocessor", "unknown coprocessor")]
    assert (report["primary"], report["fallback"]) == ("cpu:0", "no-accelerator")
    assert codes(report) == ["prober-missing"]
    assert cards[0]["unknown"]["chip"] == "neither chipdb nor a plugin knows it as an accelerator"


def test_a_card_that_chipdb_knows_is_an_accelerator(tree: Tree) -> None:
    card(tree, "0000:01:00.0", "ve", **VECTOR_ENGINE)
    report = report_of(tree.machine())
    # Its driver is in no table of nodes: nothing shows that a program could open it.
    assert (report["primary"], report["fallback"]) == ("cpu:0", "no-accelerator")
    (device, _) = report["devices"]
    assert (device["kind"], device["sources"]["kind"]) == ("accelerator", "chipdb")
    assert device["name"] == "NEC Vector Engine 1.0"


def test_a_card_that_a_prober_knows_is_an_accelerator(tree: Tree, probers: Probers) -> None:
    card(tree, "0000:01:00.0", "acme", **{**QAT, "vendor": "0xffff", "class": "0x120000"})
    probers.reports("acme", {"ids": ["pci:0000:01:00.0"], "kind": "npu", "name": "Acme One"})
    report = run(tree, probers)
    assert report["devices"][0]["kind"] == "npu"
    assert report["devices"][0]["name"] == "Acme One"


def test_a_processor_that_this_process_may_not_use_is_not_primary(tree: Tree) -> None:
    tree.file("/sys/devices/system/cpu/online", "0-3")
    for first, listed in ((0, "0-1"), (2, "2-3")):
        for cpu in (first, first + 1):
            folder = f"/sys/devices/system/cpu/cpu{cpu}/topology"
            tree.file(f"{folder}/package_cpus_list", listed)
            tree.file(f"{folder}/core_cpus_list", str(cpu))
    tree.file("/proc/self/cgroup", "0::/\n")
    tree.file("/sys/fs/cgroup/cpuset.cpus.effective", "2-3")
    report = report_of(tree.machine())
    assert report["primary"] == "cpu:1"
    assert [d.get("allowed", {}).get("threads") for d in report["devices"]] == [0, None]


def refused(**facts: Any) -> Prober:
    prober = Prober("nvidia", "x", "probe-nvidia", "1.0")
    prober.when = [{"pci_vendor": ["10de"]}]
    for name, value in facts.items():
        setattr(prober, name, value)
    return prober


TRUST = "running as root, and /home/a/lib belongs to user 1000"


@pytest.mark.parametrize(
    ("prober", "settings", "severity", "why"),
    [
        (refused(distrust=TRUST), {}, "error", TRUST),
        (refused(api="2.0"), {}, "error", "needs API 2.0, this core has 1.0: upgrade probe-core"),
        (refused(), {"allow": ["other"]}, "info", "probe-nvidia is not on the allowlist"),
    ],
)
def test_a_prober_that_must_not_run_is_told_where_its_hardware_is(
    prober: Prober, settings: dict[str, Any], severity: str, why: str, tree: Tree
) -> None:
    tree.pci("0000:01:00.0", "10de:2684", driver="nvidia")
    tree.file("/proc/meminfo", "MemTotal: 1 kB\n")
    report: Any = report_of(tree.machine())
    config, _ = load_config(settings, {})
    decisions = select([prober], config, tree.machine(), ["10de"], None, ())
    told = [f for f in last_findings(report, decisions) if f["prober"] == "nvidia"]
    assert [(f["code"], f["severity"], f["why"]) for f in told] == [
        ("prober-refused", severity, why)
    ]
    assert codes({"findings": last_findings(report, decisions)}) == ["prober-refused"]
    kept = [*decisions] if severity == "error" else []
    assert troubles(report["devices"], decisions, []) == kept
    # Without its hardware nobody misses it; of what root must not read nobody knows what it is for.
    report["devices"] = [d for d in report["devices"] if d["kind"] == "cpu"]
    kept = [*decisions] if prober.distrust else []
    assert codes({"findings": last_findings(report, decisions)}) == ["prober-refused"] * len(kept)
    assert troubles(report["devices"], decisions, []) == kept


def test_plugins_that_root_must_not_run_for_one_reason_are_told_once(tree: Tree) -> None:
    tree.file("/proc/meminfo", "MemTotal: 1 kB\n")
    report: Any = report_of(tree.machine())
    probers = [refused(distrust=TRUST), refused(distrust=TRUST), refused(distrust="other")]
    for number, prober in enumerate(probers):
        prober.name = f"p{number}"
    config, _ = load_config({}, {})
    decisions = select(probers, config, tree.machine(), [], None, ())
    told = last_findings(report, decisions)
    assert [(f["what"], f["why"], f["severity"]) for f in told] == [
        ("2 probers did not run: p0 and p1", TRUST, "error"),
        ("probe-nvidia 1.0: prober 'p2' did not run", "other", "error"),
    ]
    assert "where root alone can write" in told[0]["fix"]


def test_a_limit_of_the_processors_is_told_beside_that_of_memory() -> None:
    report = report_of_recording("batch-job--6-of-32-cpus-and-6-of-8-memory-nodes")
    found = next(f for f in report["findings"] if f["code"] == "processors-limited")
    folder = "/sys/fs/cgroup/group1/group2"
    assert found["what"] == "this process may use 6 of 32 cores and 4.5 CPUs of time"
    assert found["why"] == (
        f"set in {folder}/group3/cpuset.cpus.effective and {folder}/cpu.max; the machine has more"
    )
    assert (found["severity"], found["evidence"]) == (
        "info",
        f"{folder}/group3/cpuset.cpus.effective",
    )
