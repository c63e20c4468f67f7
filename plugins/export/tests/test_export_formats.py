"""Each format's text of nodes that differ, and what all formats hold to."""

from __future__ import annotations

import copy
import json
import re
import string
import subprocess
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
import recorded
from export_nodes import CARD, LOST_NODE, MIG_NODE, MIXED, gpu, instance, node
from reports import report_of_recording

from probe_export import export, formats
from probe_export.capacity import capacity, label_value, slurm_type
from probe_export.dra import semver
from probe_export.ray import nvidia_type

NODES = {"mixed": MIXED, "mig": MIG_NODE, "lost": LOST_NODE, "none": []}
PREFIX = "feature.node.kubernetes.io/probe-"
PLAIN = set(string.ascii_letters + string.digits + "._-")


@pytest.fixture
def reports(tmp_path: Path) -> dict[str, dict[str, Any]]:
    return {name: node(devices, tmp_path / name) for name, devices in NODES.items()}


def labels(report: dict[str, Any]) -> dict[str, str]:
    lines = export("nfd", report).splitlines()  # type: ignore[arg-type]
    return dict(line.removeprefix(PREFIX).split("=") for line in lines)


@pytest.mark.heavy
def test_nfd_counts_each_model_of_a_mixed_node(reports: dict[str, dict[str, Any]]) -> None:
    assert labels(reports["mixed"]) == {
        "ready": "true",
        "gpu.count": "2",
        "gpu.NVIDIA-GeForce-RTX-3090.count": "1",
        "gpu.NVIDIA-GeForce-RTX-3090.memory": "24576",
        "gpu.NVIDIA-GeForce-RTX-4090.count": "1",
        "gpu.NVIDIA-GeForce-RTX-4090.memory": "24576",
        "gpu.vendor": "nvidia",
        "gpu.arch": "hopper",
        "gpu.compute": "9.0",
        "gpu.driver": "550.163.01",
        "memory": "64000",
    }


@pytest.mark.heavy
def test_nfd_counts_instances_and_not_the_card_that_is_cut(
    reports: dict[str, dict[str, Any]],
) -> None:
    table = labels(reports["mig"])
    assert table["gpu.count"] == "3"
    assert table["gpu.NVIDIA-A100-SXM4-80GB.count"] == "1"
    assert table["gpu.NVIDIA-A100-SXM4-80GB-MIG-3g.40gb.count"] == "2"


@pytest.mark.heavy
def test_nfd_says_why_a_device_is_missing(reports: dict[str, dict[str, Any]]) -> None:
    table = labels(reports["lost"])
    assert (table["gpu.count"], table["missing.count"]) == ("1", "1")
    assert table["missing.gpu-lost.count"] == "1"


@pytest.mark.heavy
def test_nfd_of_a_node_without_accelerators_is_ready_and_counts_none(
    reports: dict[str, dict[str, Any]],
) -> None:
    assert labels(reports["none"]) == {"ready": "true", "memory": "64000"}


def unjudged(report: dict[str, Any]) -> Any:
    """Return a report of whose first GPU nothing is known to be well."""
    result = copy.deepcopy(report)
    steps = [{"step": "responding", "status": "unknown", "evidence": "no plugin", "code": None}]
    readiness = {"state": "unknown", "broken": None, "steps": steps}
    next(d for d in result["devices"] if d["kind"] == "gpu")["readiness"] = readiness
    return result


@pytest.mark.heavy
def test_what_nobody_could_tell_is_counted_and_said(reports: dict[str, dict[str, Any]]) -> None:
    """`probe cluster` says unknown of it: a count alone claimed that it works."""
    known: Any = reports["mixed"]
    report = unjudged(known)
    count = labels(known)["gpu.count"]
    assert (labels(report)["gpu.count"], labels(report)["unknown.count"]) == (count, "1")
    assert "unknown.count" not in labels(known)
    name = "0000:01:00.0"
    line = f"# whether a job can use it is not known: {name}\n"
    assert line in export("slurm", report)
    assert line not in export("slurm", known)
    facts = [json.loads(export("ansible", each))["unknown"] for each in (known, report)]
    assert facts == [0, 1]
    ray = ["probe/unknown=1" in export("ray", each) for each in (known, report)]
    assert ray == [False, True]
    ready = 'probecore_device_ready{device="' + name
    text = [export("prometheus", each) for each in (known, report)]
    assert [ready in each for each in text] == [True, False]


@pytest.mark.parametrize(
    ("name", "ready"),
    [
        ("desktop--amd-radeon-rx-7900-xtx", "true"),
        ("vm-without-accelerator--cpu", "true"),
        ("desktop--nvidia-geforce-rtx-3060-without-driver", "false"),
        ("server--8x-amd-instinct-mi300x", None),
    ],
)
def test_nfd_says_ready_where_that_is_known(name: str, ready: str | None) -> None:
    assert labels(report_of_recording(name)).get("ready") == ready  # type: ignore[arg-type]


@pytest.mark.parametrize("name", recorded.names())
def test_every_label_is_one_that_kubernetes_takes(name: str) -> None:
    report = report_of_recording(name)
    for line in export("nfd", report).splitlines():  # type: ignore[arg-type]
        key, _, value = line.partition("=")
        label = key.removeprefix("feature.node.kubernetes.io/")
        for text in (label, value):
            assert 0 < len(text) <= 63
            assert set(text) <= PLAIN
            assert text[0].isalnum()
            assert text[-1].isalnum()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("NVIDIA H100 80GB HBM3", "NVIDIA-H100-80GB-HBM3"),
        ("Orin (nvgpu)", "Orin-nvgpu"),
        ("a" * 62 + " b", "a" * 62),
        ("Карта", ""),
        ("\udcff\n\0", ""),
        ("--x--", "x"),
    ],
)
def test_label_values_are_cut_then_stripped(text: str, expected: str) -> None:
    assert label_value(text) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("NVIDIA H100 80GB HBM3", "H100"),
        ("NVIDIA A100-SXM4-80GB", "A100"),
        ("NVIDIA GeForce RTX 4090", "GeForce-RTX-4090"),
        ("NVIDIA RTX 6000 Ada Generation", "RTX-6000"),
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", "RTX-PRO-6000"),
        ("Quadro RTX 8000", "RTX-8000"),
        ("Tesla V100-SXM2-16GB", "V100"),
        ("Orin (nvgpu)", "Orin-(nvgpu)"),
        ("NVIDIA L4", "L4"),
        ("NVIDIA GB10", "GB10"),
        ("NVIDIA", "NVIDIA"),
    ],
)
def test_ray_types_are_spelled_as_ray_does(name: str, expected: str) -> None:
    assert nvidia_type(name) == expected


@pytest.mark.heavy
def test_ray_offers_what_works_and_names_the_rest(reports: dict[str, dict[str, Any]]) -> None:
    assert export("ray", reports["mixed"]) == (  # type: ignore[arg-type]
        "--num-gpus=2"
        ' --resources={"accelerator_type:GeForce-RTX-3090":1,'
        '"accelerator_type:GeForce-RTX-4090":1,"vram_gib":48}'
        " --labels=probe/gpu.GeForce-RTX-3090.count=1,probe/gpu.GeForce-RTX-4090.count=1\n"
    )
    assert export("ray", reports["lost"]) == (  # type: ignore[arg-type]
        '--num-gpus=1 --resources={"accelerator_type:H100":1,"vram_gib":80}'
        " --labels=probe/gpu.H100.count=1,probe/missing.gpu-lost=1\n"
    )
    assert export("ray", reports["none"]) == "--num-gpus=0\n"  # type: ignore[arg-type]


@pytest.mark.heavy
def test_a_shell_takes_rays_options_as_they_are(reports: dict[str, dict[str, Any]]) -> None:
    text = export("ray", reports["mixed"])  # type: ignore[arg-type]
    script = 'for word in $(cat); do echo "$word"; done'
    done = subprocess.run(["sh", "-c", script], input=text, capture_output=True, text=True)
    assert done.stdout.split("\n")[:-1] == text.split()
    assert json.loads(done.stdout.split("\n")[1].removeprefix("--resources="))["vram_gib"] == 48


@pytest.mark.heavy
def test_slurm_lists_each_node_file_once(reports: dict[str, dict[str, Any]]) -> None:
    assert export("slurm", reports["mixed"]).splitlines() == [  # type: ignore[arg-type]
        "# gres.conf of this node, from `probe export slurm`. slurm.conf needs:",
        "#   GresTypes=gpu",
        (
            "#   NodeName=NODENAME Gres=gpu:nvidia_geforce_rtx_3090:1,gpu:nvidia_geforce_rtx_4090:1"
            " RealMemory=63360"
        ),
        "AutoDetect=off",
        "Name=gpu Type=nvidia_geforce_rtx_3090 File=/dev/nvidia0",
        "Name=gpu Type=nvidia_geforce_rtx_4090 File=/dev/nvidia1",
    ]


@pytest.mark.heavy
def test_slurm_gives_mig_instances_their_capabilities(reports: dict[str, dict[str, Any]]) -> None:
    lines = export("slurm", reports["mig"]).splitlines()[4:]  # type: ignore[arg-type]
    name = "nvidia_a100-sxm4-80gb"
    caps = "/dev/nvidia-caps/nvidia-cap"
    assert lines == [
        f"Name=gpu Type={name} File=/dev/nvidia0",
        f"Name=gpu Type={name}_mig_3g.40gb MultipleFiles=/dev/nvidia1,{caps}21,{caps}22",
        f"Name=gpu Type={name}_mig_3g.40gb MultipleFiles=/dev/nvidia1,{caps}30,{caps}31",
    ]


@pytest.mark.heavy
def test_slurm_leaves_out_what_is_blocked_or_has_no_known_node(
    reports: dict[str, dict[str, Any]], tmp_path: Path
) -> None:
    assert "# left out, gpu-lost: 0000:02:00.0" in export("slurm", reports["lost"])  # type: ignore[arg-type]
    unknown = node([gpu(3, "NVIDIA L4", nodes=["/dev/nvidiactl"])], tmp_path / "unknown")
    text = export("slurm", unknown)  # type: ignore[arg-type]
    assert "Name=gpu" not in text
    assert "# left out, its node in /dev is not known: 0000:03:00.0" in text


@pytest.mark.heavy
@pytest.mark.parametrize("name", [None, "显卡", "(((-)))"])
def test_slurm_takes_the_pci_id_where_the_name_is_no_type(name: Any, tmp_path: Path) -> None:
    known = gpu(2, "NVIDIA L4", 24)
    odd = gpu(1, "x", pci={"id": "10de:9999"}) | {"name": name}
    text = export("slurm", node([odd, known], tmp_path))  # type: ignore[arg-type]
    assert "Gres=gpu:pci_10de_9999:1,gpu:nvidia_l4:1 " in text
    assert "Name=gpu Type=pci_10de_9999 File=/dev/nvidia0\n" in text


@pytest.mark.parametrize(
    ("name", "pci", "expected"),
    [
        ("NVIDIA H100 80GB HBM3", "10de:2330", "nvidia_h100_80gb_hbm3"),
        (None, "10de:2330", "pci_10de_2330"),
        ("()", "10de:2330", "pci_10de_2330"),
        (None, None, None),
    ],
)
def test_the_type_of_a_card(name: str | None, pci: str | None, expected: str | None) -> None:
    device: Any = {"name": name, "pci": None if pci is None else {"id": pci}}
    assert slurm_type(device) == expected


def test_slurm_says_that_it_has_no_gpus_of_a_vendor(tmp_path: Path) -> None:
    mali = gpu(1, "Mali-G610", vendor="arm", nodes=["/dev/dri/renderD128"])
    text = export("slurm", node([mali], tmp_path))  # type: ignore[arg-type]
    assert "# left out, Slurm has no GPUs of arm: 0000:01:00.0\n" in text


def test_slurm_gives_no_instance_the_whole_card(tmp_path: Path) -> None:
    whole = {**instance(CARD, 21, "3g.40gb"), "nodes": CARD["nodes"]}
    text = export("slurm", node([CARD, whole], tmp_path))  # type: ignore[arg-type]
    assert "Name=gpu" not in text
    assert "# left out, its node in /dev is not known: 0000:02:00.0" in text


def test_slurm_links_are_counted_in_the_order_of_the_bus(tmp_path: Path) -> None:
    def linked(number: int, peer: int) -> dict[str, Any]:
        link = {"kind": "nvlink", "peer": f"pci:0000:{peer:02x}:00.0", "count": 4}
        return gpu(number, "NVIDIA RTX A6000", 48, links=[link])

    report = node([linked(2, 1), linked(1, 2), gpu(3, "NVIDIA RTX A6000", 48)], tmp_path / "pair")
    lines = export("slurm", report).splitlines()[4:]  # type: ignore[arg-type]
    assert [line.partition("Links=")[2] for line in lines] == ["-1,4,0", "4,-1,0", ""]


@pytest.mark.heavy
def test_prometheus_names_devices_once_and_leaves_unknown_out(
    reports: dict[str, dict[str, Any]],
) -> None:
    lines = export("prometheus", reports["lost"]).splitlines()  # type: ignore[arg-type]
    samples = [line for line in lines if not line.startswith("#")]
    assert 'probecore_device_ready{device="0000:01:00.0"} 1' in samples
    assert 'probecore_device_ready{device="0000:02:00.0"} 0' in samples
    assert "probecore_devices_usable 1" in samples
    assert 'probecore_devices{kind="gpu",state="blocked"} 1' in samples
    (about,) = [line for line in samples if "gpu-lost" in line]
    assert about.startswith("probecore_device_info{")
    assert not [line for line in lines if "None" in line or "nan" in line or "GPU-0" in line]
    assert len({line.rpartition(" ")[0] for line in samples}) == len(samples), "a series twice"


def test_prometheus_escapes_names(tmp_path: Path) -> None:
    report = node([gpu(1, 'a "quoted" \\ name')], tmp_path / "quoted")
    assert 'name="a \\"quoted\\" \\\\ name"' in export("prometheus", report)  # type: ignore[arg-type]


@pytest.mark.heavy
def test_instances_have_stable_names_without_uuids(reports: dict[str, dict[str, Any]]) -> None:
    text = export("prometheus", reports["mig"])  # type: ignore[arg-type]
    for number in (0, 1):
        assert f'{{device="0000:02:00.0",partition="3g.40gb.{number}"}}' in text
    assert "MIG-0000" not in text


@pytest.mark.heavy
def test_dra_has_strict_versions_and_one_type_a_value(reports: dict[str, dict[str, Any]]) -> None:
    devices = json.loads(export("dra", reports["mig"]))["devices"]  # type: ignore[arg-type]
    assert [device["name"] for device in devices] == [
        "dev-0000-01-00-0",
        "dev-0000-02-00-0-3g-40gb-0",
        "dev-0000-02-00-0-3g-40gb-1",
    ]
    attributes = devices[1]["attributes"]
    assert attributes["type"] == {"string": "mig"}
    assert attributes["profile"] == {"string": "3g.40gb"}
    assert attributes["driverVersion"] == {"version": "550.163.1"}
    assert attributes["cudaComputeCapability"] == {"version": "9.0.0"}
    assert devices[1]["capacity"] == {"memory": {"value": str(40 << 30)}}
    assert all(len(value) == 1 for device in devices for value in device["attributes"].values())


def test_dra_cuts_text_to_64_bytes_and_not_within_a_character(tmp_path: Path) -> None:
    report = node([gpu(1, "显" * 40)], tmp_path)
    (device,) = json.loads(export("dra", report))["devices"]  # type: ignore[arg-type]
    assert device["attributes"]["productName"] == {"string": "显" * 21}


@pytest.mark.parametrize(
    ("text", "expected"),
    [("550.163.01", "550.163.1"), ("9.0", "9.0.0"), ("6.8.0-60-generic", None), ("", None)],
)
def test_versions_are_semantic_or_absent(text: str, expected: str | None) -> None:
    assert semver(text) == expected


@pytest.mark.heavy
def test_shell_reads_the_variables(reports: dict[str, dict[str, Any]], tmp_path: Path) -> None:
    report = node([gpu(1, "it's $HOME `x`", 24)], tmp_path / "odd")
    file = tmp_path / "probe.env"
    file.write_text(export("env", report))  # type: ignore[arg-type]
    script = f'. {file}; echo $NODE_ACCELERATORS; echo "$NODE_ACCELERATOR_NAMES"'
    done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "1\nits $HOME `x`\n"


def test_a_node_without_accelerators_has_no_memory_of_them() -> None:
    report = report_of_recording("vm-without-accelerator--cpu")
    lines = export("env", report).splitlines()
    assert "NODE_ACCELERATORS='0'" in lines
    assert not [line for line in lines if line.startswith("NODE_ACCELERATOR_MEMORY_BYTES")]


@pytest.mark.heavy
def test_the_driver_of_shell_variables_is_the_primary_device_s(
    reports: dict[str, dict[str, Any]],
) -> None:
    report = copy.deepcopy(reports["mixed"])
    first, second = (device for device in report["devices"] if device["kind"] == "gpu")
    first["driver"] = {"name": "i915", "version": "6.11.0-29-generic"}
    report["primary"] = second["id"]
    text = export("env", report)  # type: ignore[arg-type]
    assert f"NODE_DRIVER_VERSION='{second['driver']['version']}'\n" in text


def test_a_driver_of_shell_variables_is_no_other_vendor_s() -> None:
    report = report_of_recording("desktop--nvidia-geforce-rtx-4090-and-intel-uhd-770")
    assert report["primary"] == "pci:0000:01:00.0"
    assert "NODE_ACCELERATORS='2'" in export("env", report)
    assert "NODE_DRIVER_VERSION" not in export("env", report)


def test_a_list_of_names_is_split_at_its_commas_alone() -> None:
    report = report_of_recording("laptop--amd-radeon-780m-and-npu")
    names = "AMD Radeon 780M Graphics,NPU; Hawk Point or Phoenix"
    assert f"NODE_ACCELERATOR_NAMES='{names}'\n" in export("env", report)
    (text,) = re.findall(r"accelerator\.names=([^,]*)", export("otel", report))
    assert unquote(text) == names


@pytest.mark.heavy
def test_otel_values_are_percent_encoded(reports: dict[str, dict[str, Any]]) -> None:
    text = export("otel", reports["lost"])  # type: ignore[arg-type]
    assert text == (
        "OTEL_RESOURCE_ATTRIBUTES=host.arch=amd64,os.type=linux,probe.accelerator.count=1,"
        "probe.accelerator.names=NVIDIA%20H100%2080GB%20HBM3,probe.accelerator.vendors=nvidia,"
        "probe.accelerator.missing=1,probe.accelerator.causes=gpu-lost\n"
    )


@pytest.mark.heavy
def test_ansible_facts_are_json(reports: dict[str, dict[str, Any]]) -> None:
    facts = json.loads(export("ansible", reports["mig"]))  # type: ignore[arg-type]
    assert (facts["accelerators"], facts["missing"]) == (3, 0)
    states = [device["state"] for device in facts["devices"]]
    assert states == ["blocked", "blocked", "ready", "blocked"]  # CUDA shows one instance alone


@pytest.mark.heavy
@pytest.mark.parametrize("format_", sorted(formats()))
def test_two_runs_write_the_same_bytes(format_: str, tmp_path: Path) -> None:
    first, second = (node(MIXED[::step], tmp_path / str(step)) for step in (1, -1))
    one, two = export(format_, first), export(format_, second)  # type: ignore[arg-type]
    volatile = ("duration", "report_time")
    assert [line for line in one.split("\n") if not any(word in line for word in volatile)] == [
        line for line in two.split("\n") if not any(word in line for word in volatile)
    ]


@pytest.mark.heavy
@pytest.mark.parametrize("name", recorded.names())
@pytest.mark.parametrize("format_", sorted(formats()))
def test_every_recorded_machine_can_be_exported(name: str, format_: str) -> None:
    report = report_of_recording(name)
    text = export(format_, report)  # type: ignore[arg-type]
    # Of a computer of which nothing can be read there is no label.
    has_lines = (name, format_) != ("empty-root--unknown-cpu", "nfd")
    assert (text != "", text.endswith("\n")) == (has_lines, has_lines)
    assert "None" not in text


def test_amd_gpus_have_their_render_nodes_and_rays_name() -> None:
    report = report_of_recording("server--8x-amd-instinct-mi300x", "amd")
    assert len(capacity(report)) == 8  # type: ignore[arg-type]
    assert "accelerator_type:AMD-Instinct-MI300X-OAM" in export("ray", report)  # type: ignore[arg-type]
    line = "Name=gpu Type=amd_instinct_mi300x_oam File=/dev/dri/renderD128"
    assert f"{line} Links=-1,1,1,1,1,1,1,1 Flags=amd_gpu_env" in export("slurm", report)  # type: ignore[arg-type]


LINKS: list[dict[str, Any]] = [
    {"name": "ens1", "kind": "ethernet", "state": "up", "bandwidth": 12_500_000_000},
    {"name": "eth9", "kind": "ethernet", "state": "down", "bandwidth": None, "driver": "r8169"},
    {
        "name": "mlx5_0/1",
        "kind": "rdma",
        "state": "up",
        "bandwidth": 50e9,
        "layer": "infiniband",
        "device": "pci:0000:81:00.0",
    },
]


def linked(reports: dict[str, dict[str, Any]]) -> Any:
    report = json.loads(json.dumps(reports["mixed"]))
    report["node"] |= {"network": LINKS, "id": "0123456789abcdef" * 2, "host": "n1.example"}
    return report


@pytest.mark.heavy
def test_links_are_exported_where_a_format_has_a_place(reports: dict[str, dict[str, Any]]) -> None:
    report = linked(reports)
    labels = export("nfd", report).splitlines()
    prefix = "feature.node.kubernetes.io/probe-"
    for label in ("rdma.count=1", "rdma.speed=400000", "network.speed=400000"):
        assert f"{prefix}{label}" in labels
    lines = export("prometheus", report).splitlines()
    rate = "probecore_network_bandwidth_bytes_per_second"
    place = 'pci="0000:81:00.0",layer="infiniband"'
    assert [line for line in lines if line.startswith("probecore_network")] == [
        'probecore_network_info{link="ens1",kind="ethernet"} 1',
        'probecore_network_info{link="eth9",kind="ethernet",driver="r8169"} 1',
        f'probecore_network_info{{link="mlx5_0/1",kind="rdma",{place}}} 1',
        'probecore_network_up{link="ens1"} 1',
        'probecore_network_up{link="eth9"} 0',
        'probecore_network_up{link="mlx5_0/1"} 1',
        f'{rate}{{link="ens1"}} 12500000000',
        f'{rate}{{link="mlx5_0/1"}} 50000000000.0',
    ]
    facts = json.loads(export("ansible", report))["network"]
    assert facts[1] == {"name": "eth9", "kind": "ethernet", "state": "down", "driver": "r8169"}


@pytest.mark.heavy
def test_node_id_and_host_name_are_exported_where_the_report_has_them(
    reports: dict[str, dict[str, Any]],
) -> None:
    report, without = linked(reports), reports["mixed"]
    for format_ in ("ansible", "env", "otel", "prometheus"):
        assert "n1.example" in export(format_, report)
    assert "NodeName=n1 Gres" in export("slurm", report)
    assert "host.id=0123456789abcdef0123456789abcdef," in export("otel", report)
    assert "host" not in json.loads(export("ansible", without))  # type: ignore[arg-type]


LABEL = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")
ODD = ("X" * 256, "\u00e9" * 256, "A b " * 64, "-" * 200, "x\udcff y", "GPU (rev 1)=a/b,c", "'\n#")


@pytest.mark.heavy
@pytest.mark.parametrize("name", ODD, ids=range(len(ODD)))
def test_names_that_are_no_label_are_cut_or_left_out(name: str, tmp_path: Path) -> None:
    report: Any = node([gpu(1, name), gpu(2, f"{name}Y")], tmp_path / "odd")
    labels = [line.split("=", 1) for line in export("nfd", report).splitlines()]
    for key, value in labels:
        assert LABEL.fullmatch(key.partition("/")[2]), key
        assert LABEL.fullmatch(value), value
    assert ["feature.node.kubernetes.io/probe-gpu.count", "2"] in labels
    words = export("ray", report).split()
    assert words[0] == "--num-gpus=2"
    for resource in json.loads(words[1].partition("=")[2]):
        assert LABEL.fullmatch(resource.rpartition(":")[2])
    for pair in [pair for word in words[2:] for pair in word.partition("=")[2].split(",")]:
        key, value = pair.split("=")
        assert LABEL.fullmatch(key.removeprefix("probe/")), key
        assert LABEL.fullmatch(value)
    for format_ in formats():
        assert export(format_, report).encode().endswith(b"\n")


@pytest.mark.heavy
@pytest.mark.parametrize("host", ["knoten-ü", "日本", "x" * 65, "a b", "-" * 300, ""])
def test_a_host_name_that_slurm_cannot_have_is_a_placeholder(host: str, tmp_path: Path) -> None:
    report: Any = node(MIXED, tmp_path / "node")
    report["node"]["host"] = host
    line = next(line for line in export("slurm", report).splitlines() if "NodeName=" in line)
    assert line.split()[1] == "NodeName=NODENAME"
