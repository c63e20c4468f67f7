"""Six faked machines in every format: the right devices, names and counts, as each consumer reads.

The consumers' own programs read the same text where they are installed.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import test_export_kit
from export_machines import MACHINES, fake, library, report
from test_export_consumers import slurmd
from test_export_series import checked_by_promtool

from probe_core.testing import ExporterContract
from probe_export import export, formats

CONTRACTS = [one() for one in vars(test_export_kit).values() if hasattr(one, "target")]
"""The contracts of our own formats: each says how its text counts accelerators."""

MIG = ("NVIDIA A100-SXM4-40GB MIG 3g.20gb", "NVIDIA A100-SXM4-40GB MIG 2g.10gb",
       "NVIDIA A100-SXM4-40GB MIG 1g.5gb")  # fmt: skip
NAMES: dict[str, tuple[str, ...]] = {
    "8 x H100": ("NVIDIA H100 80GB HBM3",) * 8,
    "4090 + 3090": ("NVIDIA GeForce RTX 4090", "NVIDIA GeForce RTX 3090"),
    "A100 with MIG": MIG,
    "8 x MI300X": ("AMD Instinct MI300X OAM",) * 8,
    "Mali board": ("Rockchip RK3588 Mali-G610 MP4", "Rockchip RK3588 NPU"),
    "no GPU": (),
}
"""The usable accelerators of each machine, in the order of the bus."""
READY = {"8 x MI300X": None, "Mali board": None}
"""Of these nobody tried the device nodes: a label would be a guess."""
GPUS = {name: len(own) for name, own in NAMES.items()} | {"Mali board": 1}
LABEL = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")
"""IsValidLabelValue and the name's part of IsQualifiedName in Kubernetes' apimachinery."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("six")
    try:
        library(path)
    except Exception as error:
        if type(error).__name__ != "NoCompiler":
            raise
        pytest.skip(str(error))
    return path


@pytest.fixture(params=MACHINES)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def made(name: str, folder: Path) -> Any:
    return report(name, folder)


@pytest.mark.heavy
def test_labels_are_kubernetes_labels(name: str, made: Any) -> None:
    labels = dict(line.split("=", 1) for line in export("nfd", made).splitlines())
    for key, value in labels.items():
        prefix, _, own = key.partition("/")
        assert prefix == "feature.node.kubernetes.io"
        assert LABEL.fullmatch(own), key
        assert LABEL.fullmatch(value), value
    plain = {key.rpartition("/probe-")[2]: value for key, value in labels.items()}
    assert int(plain.get("gpu.count", 0)) == GPUS[name]
    for product in set(NAMES[name]):
        spelled = product.replace(" ", "-")
        kind = "npu" if "NPU" in product else "gpu"
        assert int(plain[f"{kind}.{spelled}.count"]) == NAMES[name].count(product)
    assert plain.get("ready") == READY.get(name, "true")


RAY = {
    "8 x H100": (8, ["H100"]),
    "4090 + 3090": (2, ["GeForce-RTX-3090", "GeForce-RTX-4090"]),
    "A100 with MIG": (3, ["A100"]),
    "8 x MI300X": (8, ["AMD-Instinct-MI300X-OAM"]),
    "Mali board": (0, []),
    "no GPU": (0, []),
}
"""Ray 2.60: num_gpus, and its spelling of accelerator types. It serves neither Arm nor NPUs."""


@pytest.mark.heavy
def test_ray_gets_gpus_and_types(name: str, made: Any) -> None:
    words = export("ray", made).split()
    resources = next((w.partition("=")[2] for w in words if w.startswith("--resources")), "{}")
    types = [key.partition(":")[2] for key in json.loads(resources) if ":" in key]
    assert (int(words[0].removeprefix("--num-gpus=")), sorted(types)) == RAY[name]


SLURM = {
    "8 x H100": {f"/dev/nvidia{number}" for number in range(8)},
    "4090 + 3090": {"/dev/nvidia0", "/dev/nvidia1"},
    "A100 with MIG": {f"/dev/nvidia0,{caps}" for caps in (
        "/dev/nvidia-caps/nvidia-cap21,/dev/nvidia-caps/nvidia-cap22",
        "/dev/nvidia-caps/nvidia-cap30,/dev/nvidia-caps/nvidia-cap31",
        "/dev/nvidia-caps/nvidia-cap39,/dev/nvidia-caps/nvidia-cap40",
    )},
    "8 x MI300X": {f"/dev/dri/renderD{128 + 8 * number}" for number in range(8)},
    "Mali board": set(),
    "no GPU": set(),
}  # fmt: skip


def test_slurm_lists_the_nodes_of_every_gpu(name: str, made: Any) -> None:
    lines = [line for line in export("slurm", made).splitlines() if line.startswith("Name=gpu")]
    pairs = [dict(word.split("=", 1) for word in line.split()) for line in lines]
    files = [pair.get("File") or pair["MultipleFiles"] for pair in pairs]
    assert set(files) == SLURM[name]
    assert len(files) == len(set(files)), "slurmd ends when a file is listed twice"
    assert all(re.fullmatch("[a-z0-9_.-]+", pair["Type"]) for pair in pairs)


def test_minor_numbers_are_not_the_indices_of_nvml(folder: Path) -> None:
    text = export("slurm", report("4090 + 3090", folder))  # type: ignore[arg-type]
    assert "Type=nvidia_geforce_rtx_4090 File=/dev/nvidia1" in text
    assert "Type=nvidia_geforce_rtx_3090 File=/dev/nvidia0" in text


def test_slurmd_takes_the_lines(name: str, made: Any, tmp_path: Path) -> None:
    assert len(slurmd(made, tmp_path)) == len(SLURM[name])


def test_prometheus_has_each_device_once(name: str, made: Any) -> None:
    text = export("prometheus", made)
    checked_by_promtool(text)
    about = re.findall('^probecore_(?:device|partition)_info{.*name="([^"]*)"', text, re.M)
    whole = ["NVIDIA A100-SXM4-40GB"] if name == "A100 with MIG" else []
    assert sorted(about) == sorted([*NAMES[name], *whole])
    assert f"\nprobecore_devices_usable {len(NAMES[name])}\n" in text


def test_facts_and_variables_agree(name: str, made: Any) -> None:
    facts = json.loads(export("ansible", made))
    assert (facts["accelerators"], facts["missing"]) == (len(NAMES[name]), 0)
    lines = dict(line.split("=", 1) for line in export("env", made).splitlines())
    assert lines["NODE_ACCELERATORS"] == f"'{len(NAMES[name])}'"
    assert lines.get("NODE_ACCELERATOR_NAMES", "''") == f"'{','.join(NAMES[name])}'"


def test_unified_memory_is_not_counted_as_the_accelerators_own(folder: Path) -> None:
    made: Any = report("Mali board", folder)
    assert "NODE_ACCELERATOR_MEMORY_BYTES" not in export("env", made)
    assert "gpu.memory" not in export("nfd", made)
    assert "vram_gib" not in export("ray", made)


def test_resource_slices_are_within_the_apis_limits(name: str, made: Any) -> None:
    """k8s.io/api/resource/v1: names, 32 attributes, one typed value each, strings to 64."""
    devices = json.loads(export("dra", made))["devices"]
    # Of a MIG instance NVIDIA's own driver publishes the card's name and address, and the profile.
    assert [d["attributes"]["productName"]["string"] for d in devices if _named(d)] == [
        label.partition(" MIG ")[0] for label in NAMES[name] if label
    ]
    if name == "A100 with MIG":
        profiles = [d["attributes"]["profile"]["string"] for d in devices]
        assert profiles == ["3g.20gb", "2g.10gb", "1g.5gb"]
        units = [d["capacity"]["multiprocessors"]["value"] for d in devices]
        assert units == ["42", "28", "14"]
        address = "resource.kubernetes.io/pciBusID"
        assert {d["attributes"][address]["string"] for d in devices} == {"0000:3b:00.0"}
    if name == "8 x MI300X":
        assert {d["capacity"]["computeUnits"]["value"] for d in devices} == {"304"}
        assert {d["attributes"]["numaNode"]["int"] for d in devices} == {0, 1}
    for device in devices:
        assert re.fullmatch("[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", device["name"])
        assert len(device["attributes"]) + len(device["capacity"]) <= 32
        for key, value in device["attributes"].items():
            assert re.fullmatch("[A-Za-z_][A-Za-z0-9_]{0,31}", key.rpartition("/")[2])
            ((kind, own),) = value.items()
            assert kind in ("string", "int", "bool", "version")
            assert kind != "string" or len(own) <= 64
    assert len({device["name"] for device in devices}) == len(devices)


def _named(device: Any) -> bool:
    return "productName" in device["attributes"]


def test_opentelemetry_reads_the_attributes(name: str, made: Any) -> None:
    from urllib.parse import unquote

    variable, _, text = export("otel", made).rstrip("\n").partition("=")
    pairs = dict(pair.split("=") for pair in text.split(","))
    assert variable == "OTEL_RESOURCE_ATTRIBUTES"
    assert pairs["probe.accelerator.count"] == str(len(NAMES[name]))
    assert unquote(pairs.get("probe.accelerator.names", "")) == ",".join(NAMES[name])
    # Values of the semantic conventions (registry/attributes/host, os).
    assert pairs["host.arch"] in ("amd64", "arm64")
    assert pairs["os.type"] == "linux"


BOARD = {"nfd": 1, "ray": 0, "slurm": 0}
"""What these offer of the Mali board: GPUs alone, and of vendors that the system knows."""


@pytest.mark.parametrize("contract", CONTRACTS, ids=lambda contract: contract.name)
def test_a_format_offers_what_jobs_can_be_given(
    contract: ExporterContract, name: str, made: Any
) -> None:
    usable = BOARD.get(contract.name, 2) if name == "Mali board" else len(NAMES[name])
    assert contract.count(export(contract.name, made)) == usable


def test_every_format_is_compared() -> None:
    assert set(formats()) - {"exo"} == {contract.name for contract in CONTRACTS}
    compared = {"ansible", "dra", "env", "nfd", "otel", "prometheus", "ray", "slurm"}
    assert {contract.name for contract in CONTRACTS} >= compared
    assert fake("tree").H100_ADDRESSES
