"""From sightings to chips and peaks: what beats what, and what happens when nothing is known."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from fake_probers import Probers, gpu
from reports import codes, report_of
from trees import Tree

import probe_chipdb
from probe_core.resolve import resolve

MIG = {
    "ids": ["uuid:MIG-11111111-1111-4111-8111-111111111111"],
    "kind": "gpu",
    "name": "NVIDIA A100-SXM4-40GB MIG 1g.5gb",
    "parent": "pci:0000:01:00.0",
    "memory": {"kind": "dedicated", "total": 4983881728},
}
A100 = gpu(
    1,
    name="NVIDIA A100-SXM4-40GB",
    pci={"id": "10de:20b0"},
    units=108,
    memory={"kind": "dedicated", "total": 42505273344},
)


def run(tree: Tree, probers: Probers, **options: Any) -> dict[str, Any]:
    return report_of(tree.machine(), **probers.arguments, **options)


def first(tree: Tree, probers: Probers, *devices: dict[str, Any]) -> dict[str, Any]:
    probers.reports("a", *devices, priority=500)
    device: dict[str, Any] = run(tree, probers)["devices"][0]
    return device


def finding_of(report: dict[str, Any], code: str) -> dict[str, Any]:
    """Return the one finding with that code."""
    (finding,) = (f for f in report["findings"] if f["code"] == code)
    return dict(finding)


def rounded(device: dict[str, Any], *names: str) -> list[float]:
    return [float(f"{device[name]:.4g}") for name in names or ("fp32", "fp16", "int8")]


def test_known_chip(tree: Tree, probers: Probers) -> None:
    device = first(tree, probers, gpu())
    assert device["chip"] == {
        "id": "nvidia/geforce-rtx-4090",
        "by": "pci",
        "confidence": "high",
        "candidates": [],
        "name": "NVIDIA GeForce RTX 4090",
    }
    assert rounded(device) == [82.58, 165.2, 660.6]
    assert (device["units"], device["cores"], device["arch"]) == (128, 16384, "ada")
    assert device["sources"]["units"] == device["sources"]["peaks"] == "chipdb"
    assert device["sources"]["name"] == "a"
    assert device["unknown"].get("units") is None


def test_live_units_beat_the_table_and_the_nominal_figures_stay(
    tree: Tree, probers: Probers
) -> None:
    device = first(tree, probers, gpu(units=64))
    assert rounded(device) == [41.29, 82.58, 330.3]
    assert device["units"] == 64
    assert device["sources"]["units"] == "a"
    nominal = device["chip"]["nominal"]
    assert nominal["units"] == 128
    assert rounded(nominal) == [82.58, 165.2, 660.6]


def test_drivers_clock_does_not_beat_the_table(tree: Tree, probers: Probers) -> None:
    device = first(tree, probers, gpu(clocks={"max_mhz": 3105.0}))
    assert rounded(device) == [82.58, 165.2, 660.6]
    assert {peak["clock"] for peak in device["peaks"]} == {"boost"}


def test_tables_bandwidth_beats_the_drivers_and_both_are_kept(tree: Tree, probers: Probers) -> None:
    device = first(tree, probers, gpu(bandwidth=1.1e12))
    assert device["bandwidth"] == 1_008_000_000_000
    assert device["others"]["bandwidth"] == [{"prober": "a", "value": 1.1e12}]
    assert device["sources"]["bandwidth"] == "chipdb"


def test_mig_instance_gets_its_share_never_the_cards_figures(tree: Tree, probers: Probers) -> None:
    probers.reports("a", A100, MIG | {"units": 14})
    card, part, _ = run(tree, probers)["devices"]
    assert rounded(card) == [19.49, 311.9, 623.7]
    assert rounded(part) == [2.527, 40.43, 80.86]
    assert (part["parent"], part["units"], part["arch"]) == (card["id"], 14, "ampere")
    assert (part["chip"]["id"], part["chip"]["by"]) == ("nvidia/a100-sxm4-40gb", "parent")
    assert part["memory"]["total"] == 4983881728
    assert part["bandwidth"] is None
    assert part["unknown"]["bandwidth"] == "no driver reports a part's share of the bandwidth"
    assert part["peaks"][0]["source"].startswith("14 of 108 units of: ")
    assert {peak["confidence"] for peak in part["peaks"]} == {"derived"}
    assert "published" not in part["peaks"][0]


def test_share_gives_the_units_too(tree: Tree, probers: Probers) -> None:
    probers.reports("a", A100, MIG | {"share": {"units": 42, "of": 108}})
    part = run(tree, probers)["devices"][1]
    assert part["units"] == 42
    assert rounded(part, "fp32") == [7.58]


def test_part_of_unknown_size_has_no_peaks(tree: Tree, probers: Probers) -> None:
    probers.reports("a", A100, MIG)
    part = run(tree, probers)["devices"][1]
    assert (part["peaks"], part["fp16"]) == ([], None)
    assert part["unknown"]["fp16"] == "how many of the parent's units this part has is not known"


def test_part_whose_parent_nobody_saw_stands_alone(tree: Tree, probers: Probers) -> None:
    probers.reports("a", MIG)
    report = run(tree, probers)
    part = report["devices"][0]
    assert part["parent"] == "pci:0000:01:00.0"
    assert part["chip"]["by"] != "parent"


UNKNOWN = {
    "ids": ["pci:0000:01:00.0"],
    "kind": "gpu",
    "vendor": "nvidia",
    "name": "NVIDIA RTX 9999 Secret",
    "pci": {"id": "10de:ffff"},
    "compute_capability": "8.0",
    "units": 100,
    "clocks": {"max_mhz": 1000.0},
    "memory": {"kind": "dedicated", "total": 8 << 30},
    "backends": ["cuda"],
}


def test_unknown_chip_of_a_known_architecture_is_derived(tree: Tree, probers: Probers) -> None:
    probers.reports("a", UNKNOWN)
    report = run(tree, probers)
    device = report["devices"][0]
    assert device["chip"]["id"] is None
    assert device["unknown"]["chip"]
    assert device["unknown"]["bandwidth"] == "unknown chip"
    assert device["fp32"] == 100 * 128 * 1e-3  # 128 operations per clock and SM of an A100
    assert device["fp16"] == 100 * 2048 * 1e-3
    assert {peak["confidence"] for peak in device["peaks"]} == {"derived"}
    assert {peak["clock"] for peak in device["peaks"]} == {"max"}
    assert "an upper bound: a driver's maximum is no boost clock" in device["peaks"][0]["source"]
    assert device["sources"]["peaks"] == "derived"
    assert "chip-unknown" in codes(report)
    unknown = finding_of(report, "chip-unknown")
    assert unknown["device"] == device["id"]
    assert unknown["evidence"] == (
        "pci=10de:ffff, compute_capability=8.0, units=100, memory=8589934592,"
        " name=NVIDIA RTX 9999 Secret"
    )


def test_a_share_of_a_card_is_no_chip_to_be_added(tree: Tree, probers: Probers) -> None:
    probers.reports("a", {**UNKNOWN, "pci": {"id": "10de:20b5"}, "name": "GRID A100D-8C"})
    said = finding_of(run(tree, probers), "chip-unknown")
    assert said["what"] == "GRID A100D-8C is a share of a card"
    assert said["fix"] == "nothing to do"


@pytest.mark.parametrize(
    ("missing", "reason"),
    [
        ("units", "the driver gives no unit count"),
        ("clocks", "the driver gives no clock"),
        ("compute_capability", "unknown chip"),
    ],
)
def test_unknown_chip_with_too_few_facts(
    missing: str, reason: str, tree: Tree, probers: Probers
) -> None:
    probers.reports("a", {k: v for k, v in UNKNOWN.items() if k != missing})
    device = run(tree, probers)["devices"][0]
    assert (device["peaks"], device["fp32"], device["bandwidth"]) == ([], None, None)
    assert reason in device["unknown"]["peaks"]
    assert device["unknown"]["fp32"] == device["unknown"]["peaks"]


def test_ambiguous_chip_names_its_candidates(tree: Tree, probers: Probers) -> None:
    probers.reports(
        "a",
        {
            "ids": ["pci:0000:01:00.0"],
            "kind": "gpu",
            "vendor": "intel",
            "pci": {"id": "8086:56a0"},
            "memory": {"kind": "dedicated", "total": 16 << 30},
        },
        {"ids": ["pci:0000:02:00.0"], "kind": "gpu", "vendor": "intel", "pci": {"id": "8086:56a0"}},
    )
    report = run(tree, probers)
    certain, ambiguous = report["devices"][:2]
    assert certain["chip"]["id"] == "intel/arc-a770-graphics-16gb"
    assert ambiguous["chip"]["id"] is None
    assert len(ambiguous["chip"]["candidates"]) == 2
    assert ambiguous["peaks"] == []
    finding = finding_of(report, "chip-ambiguous")
    assert (finding["device"], finding["evidence"]) == (ambiguous["id"], "pci=8086:56a0")


def test_name_that_disagrees_with_the_id_is_a_recorded_conflict(
    tree: Tree, probers: Probers
) -> None:
    probers.reports("a", gpu(name="NVIDIA GeForce RTX 3090"))
    report = run(tree, probers)
    device = report["devices"][0]
    assert device["chip"]["id"] == "nvidia/geforce-rtx-4090"
    assert device["chip"]["confidence"] != "high"
    assert "nvidia/geforce-rtx-3090" in device["chip"]["conflicts"][0]
    assert "chip-conflict" in codes(report)
    conflict = finding_of(report, "chip-conflict")
    assert conflict["device"] == device["id"]
    assert "pci=10de:2684" in conflict["evidence"]
    assert "name=NVIDIA GeForce RTX 3090" in conflict["evidence"]


def test_near_names_are_never_taken(tree: Tree, probers: Probers) -> None:
    for number, name in enumerate(("GeForce RTX 4091", "RTX 409", "GeForce RTX 4090 Tii")):
        probers.reports(
            f"p{number}",
            {
                "ids": [f"pci:0000:0{number + 1}:00.0"],
                "kind": "gpu",
                "vendor": "nvidia",
                "name": name,
            },
        )
    gpus = [d for d in run(tree, probers)["devices"] if d["kind"] == "gpu"]
    assert len(gpus) == 3
    assert [d["chip"]["id"] for d in gpus] == [None] * 3
    assert [d["fp16"] for d in gpus] == [None] * 3


def test_reported_peaks_are_kept(tree: Tree, probers: Probers) -> None:
    peak = {
        "dtype": "int8",
        "path": "matrix",
        "accumulate": "int32",
        "sparsity": "dense",
        "clock": "boost",
        "tflops": 26.0,
        "source": "the module's data sheet",
    }
    npu = {"ids": ["acme:0"], "kind": "npu", "vendor": "acme", "name": "Acme 1", "peaks": [peak]}
    device = first(tree, probers, npu)
    assert device["int8"] == 26.0
    assert device["peaks"] == [{**peak, "confidence": "reported"}]
    assert device["sources"]["peaks"] == "a"


def test_shorthands_follow_their_convention(tree: Tree, probers: Probers) -> None:
    device = first(tree, probers, gpu())
    peaks = {
        (p["dtype"], p["path"], p["accumulate"], p["sparsity"]): p["tflops"]
        for p in device["peaks"]
    }
    assert device["fp32"] == peaks["fp32", "vector", "fp32", "dense"]
    assert device["fp16"] == peaks["fp16", "matrix", "fp32", "dense"]
    assert device["fp16"] < peaks["fp16", "matrix", "fp16", "dense"]
    assert device["int8"] == peaks["int8", "matrix", "int32", "dense"]
    assert device["int8"] < peaks["int8", "matrix", "int32", "sparse"]


def test_vectors_fp32_counts_dual_issue_once(tree: Tree, probers: Probers) -> None:
    card = gpu(vendor="amd", name=None, pci={"id": "1002:744c", "revision": "c8"}, backends=["hip"])
    assert rounded(first(tree, probers, card), "fp32") == [61.44]


SITE = """
[family]
title = "Ours"
vendor = "acme"
kind = "npu"

[[chip]]
id = "acme/one"
name = "Acme One"
pci = ["1ac0:0001"]
units = 4
override = [{ rate = "int8.matrix.int32", tflops = 40, reason = "data sheet", source = "s" }]

[source.s]
title = "Acme data sheet"
publisher = "Acme"
ref = "https://acme.example/ds.pdf"
status = "read"
"""


def test_sites_chip_file_wins(tree: Tree, probers: Probers, tmp_path: Path) -> None:
    file = tmp_path / "site.toml"
    file.write_text(SITE)
    npu = {"ids": ["pci:0000:01:00.0"], "kind": "npu", "pci": {"id": "1ac0:0001"}}
    probers.reports("a", npu)
    report = run(tree, probers, chipdb=str(file))
    device = report["devices"][0]
    assert [f["why"] for f in report["findings"] if f["code"] == "chipdb-problem"] == []
    assert (device["chip"]["id"], device["name"], device["int8"]) == ("acme/one", "Acme One", 40.0)
    missing = run(tree, probers, chipdb=str(tmp_path / "none.toml"))
    problem = finding_of(missing, "chipdb-problem")
    assert "none.toml" in problem["why"]
    assert "none.toml" in problem["evidence"]


def test_broken_chip_file_is_a_finding(tree: Tree, probers: Probers, tmp_path: Path) -> None:
    file = tmp_path / "site.toml"
    file.write_text("this is no TOML = = =")
    report = run(tree, probers, chipdb=str(file))
    assert "site.toml" in finding_of(report, "chipdb-problem")["why"]
    assert report["chipdb"]


HIDDEN = """
import sys
sys.path[:] = eval(sys.argv[2])
class Hide:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "probe_chipdb":
            raise {error}
sys.meta_path.insert(0, Hide())
import json, probe_core
print(json.dumps(probe_core.probe(machine=probe_core.Machine(sys.argv[1]), only="cpu").to_json()))
"""


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        ("ModuleNotFoundError(name)", "chipdb is not installed"),
        ("RuntimeError('broken wheel')", "RuntimeError: broken wheel"),
    ],
)
def test_without_chipdb_there_is_a_report_with_the_reason(
    error: str, reason: str, tree: Tree
) -> None:
    import json

    from reports import validated

    folder = "/sys/bus/pci/devices/0000:01:00.0"
    for name, text in {"class": "0x030000", "vendor": "0x10de", "device": "0x2684"}.items():
        tree.file(f"{folder}/{name}", text)
    done = subprocess.run(
        [sys.executable, "-c", HIDDEN.format(error=error), str(tree.root), repr(sys.path)],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    report = validated(json.loads(done.stdout))
    assert report["chipdb"] is None
    missing = finding_of(report, "chipdb-missing")
    assert missing["why"] == reason
    assert missing["evidence"].startswith(error.partition("(")[0])
    gpu_ = report["devices"][0]
    assert (gpu_["chip"]["id"], gpu_["fp16"], gpu_["peaks"]) == (None, None, [])
    assert gpu_["unknown"]["chip"] == gpu_["unknown"]["fp16"] == "chipdb is not installed"


def test_display_is_not_resolved(tree: Tree, probers: Probers) -> None:
    display = {"ids": ["pci:0000:01:00.0"], "kind": "display", "pci": {"id": "10de:2684"}}
    probers.reports("a", display)
    device = run(tree, probers)["devices"][-1]
    assert (device["kind"], device["chip"]["id"], device["peaks"]) == ("display", None, [])
    assert device["unknown"]["chip"] == "a display adapter that cannot compute"


def test_one_conflict_of_equal_gpus_is_reported_once_per_node(tree: Tree, probers: Probers) -> None:
    """NVIDIA's mock of NVML gives each of a node's GB200s the PCI id of an H100."""
    probers.reports(
        "mock",
        *(
            {
                "ids": [f"pci:0000:0{number}:00.0"],
                "kind": "gpu",
                "vendor": "nvidia",
                "name": "NVIDIA GB200",
                "compute_capability": "10.0",
                "pci": {"id": "10de:2330"},
                "memory": {"kind": "dedicated", "total": 184 << 30},
            }
            for number in range(1, 5)
        ),
    )
    report = run(tree, probers)
    gpus = [device for device in report["devices"] if device["kind"] == "gpu"]
    assert [gpu["chip"]["id"] for gpu in gpus] == ["nvidia/gb200"] * 4
    assert all("10de:2330" in gpu["chip"]["conflicts"][0] for gpu in gpus)
    conflicts = [finding for finding in report["findings"] if finding["code"] == "chip-conflict"]
    assert [finding["device"] for finding in conflicts] == [gpus[0]["id"]]
    assert conflicts[0]["what"].endswith("(4 devices, the same for each)")


LAPTOP = gpu(1, name="NVIDIA GeForce RTX 4090 Laptop GPU", pci={"id": "10de:2717"}, units=76)


def fp32_of(tree: Tree, probers: Probers, **live: Any) -> dict[str, Any]:
    """Return the fp32 vector peak of a laptop's GPU with these live facts."""
    device = first(tree, probers, {**LAPTOP, **live})
    (peak,) = [p for p in device["peaks"] if (p["dtype"], p["path"]) == ("fp32", "vector")]
    return dict(peak)


def test_a_range_has_a_condition(tree: Tree, probers: Probers) -> None:
    peak = fp32_of(tree, probers)
    assert (round(peak["low"], 2), round(peak["tflops"], 2)) == (28.31, 39.69)
    assert peak["condition"] == (
        "the maker of the laptop sets clock and power within the vendor's range"
    )


def test_a_live_maximum_clock_lowers_the_top_of_a_range(tree: Tree, probers: Probers) -> None:
    peak = fp32_of(tree, probers, clocks={"max_mhz": 1700}, power={"limit_watts": 100})
    assert (round(peak["low"], 2), round(peak["tflops"], 2)) == (28.31, 33.08)
    assert (peak["clock"], peak["mhz"]) == ("max", 1700)


def test_a_live_power_limit_decides_at_the_ends(tree: Tree, probers: Probers) -> None:
    peak = fp32_of(tree, probers, clocks={"max_mhz": 3105}, power={"limit_watts": 80})
    assert (peak.get("low"), round(peak["tflops"], 2)) == (None, 28.31)


def test_one_device_that_cannot_be_resolved_costs_no_other(tree: Tree, probers: Probers) -> None:
    probers.reports("a", gpu(1), gpu(2), priority=500)
    devices: Any = run(tree, probers)["devices"]
    asked = []

    def broken(device: Any) -> str | None:
        asked.append(device["id"])
        if device["id"] == "pci:0000:01:00.0":
            raise KeyError("its table")
        return None

    (finding,) = resolve(devices, probe_chipdb.load(), broken)
    assert asked == ["pci:0000:01:00.0", "pci:0000:02:00.0"]
    assert finding["code"] == "chipdb-problem"
    assert finding["device"] == "pci:0000:01:00.0"
    assert finding["evidence"] == "KeyError: 'its table'"
