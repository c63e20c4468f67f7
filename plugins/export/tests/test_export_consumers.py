"""The systems themselves read what is written for them: Debian's Prometheus and Slurm."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import time
import urllib.request
from pathlib import Path
from typing import Any

import pytest
import recorded
from export_nodes import LOST_NODE, MIG_NODE, MIXED, gpu, node
from reports import machine_of

import probe_core
from probe_core.testing.sightings import FILE
from probe_export import export

EIGHT = [gpu(number, "NVIDIA H100 80GB HBM3") for number in range(1, 9)]
NODES = {"eight": EIGHT, "mixed": MIXED, "mig": MIG_NODE, "lost": LOST_NODE, "none": []}


BAD = ("error", "fatal", "Ignoring")
"""Words of slurmd's lines about what it does not take."""


def tool(name: str) -> str:
    path = shutil.which(name) or shutil.which(name, path="/usr/sbin")
    if path is None:
        pytest.skip(f"{name} is not installed")
    return path


@pytest.mark.heavy
@pytest.mark.parametrize("name", NODES)
def test_promtool_finds_nothing_to_remark(name: str, tmp_path: Path) -> None:
    text = export("prometheus", node(NODES[name], tmp_path / "node"))  # type: ignore[arg-type]
    done = subprocess.run(
        [tool("promtool"), "check", "metrics"],
        input=text,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_node_exporter_takes_the_file(tmp_path: Path) -> None:
    program = tool("prometheus-node-exporter")
    folder = tmp_path / "textfile"
    folder.mkdir()
    report = node(MIXED, tmp_path / "node")
    (folder / "probe.prom").write_text(export("prometheus", report))  # type: ignore[arg-type]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    process = subprocess.Popen(
        [program, "--collector.disable-defaults", "--collector.textfile",
         f"--collector.textfile.directory={folder}", f"--web.listen-address={address}"],
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        text = scraped(f"http://{address}/metrics")
    finally:
        process.terminate()
        process.wait(10)
    assert "node_textfile_scrape_error 0" in text
    assert 'probecore_device_memory_size_bytes{device="0000:01:00.0"} 2.5769803776e+10' in text
    assert "probecore_devices_usable 2" in text


def scraped(url: str) -> str:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    end = time.monotonic() + 20
    while True:
        try:
            with opener.open(url, timeout=5) as answer:
                return str(answer.read().decode())
        except OSError:
            assert time.monotonic() < end
            time.sleep(0.05)


def slurmd(report: dict[str, Any], folder: Path) -> list[str]:
    """Return what slurmd makes of the two files, without starting its daemon.

    The nodes in /dev are replaced by links to one that is there: slurmd looks at each.
    """
    lines = export("slurm", report).splitlines()  # type: ignore[arg-type]
    wanted = next(line for line in lines if "NodeName=" in line).lstrip("# ")
    text = "\n".join(lines).replace("/dev/", f"{folder}/dev-")
    for word in text.replace(",", " ").replace("=", " ").split():
        if word.startswith(f"{folder}/dev-"):
            Path(word).parent.mkdir(parents=True, exist_ok=True)
            if not Path(word).is_symlink():
                Path(word).symlink_to("/dev/null")
    (folder / "gres.conf").write_text(text + "\n")
    settings = {
        "ClusterName": "test",
        "SlurmctldHost": "localhost",
        "AuthType": "auth/none",
        "CredType": "cred/none",
        "ProctrackType": "proctrack/linuxproc",
        "TaskPlugin": "task/none",
        "SlurmdParameters": "config_overrides",
        "SlurmdSpoolDir": f"{folder}/spool",
        "StateSaveLocation": f"{folder}/state",
        "GresTypes": "gpu",
    }
    text = "".join(f"{name}={value}\n" for name, value in settings.items())
    name = wanted.replace("NODENAME", "n1")
    name += "" if "Sockets=" in name else " CPUs=1"
    text += f"{name} NodeHostName=localhost\nPartitionName=all Nodes=ALL\n"
    (folder / "slurm.conf").write_text(text)
    done = subprocess.run(
        [tool("slurmd"), "-G", "-N", "n1", "-f", str(folder / "slurm.conf")],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "SLURM_CONF": str(folder / "slurm.conf")},
    )
    output = (done.stdout + done.stderr).splitlines()
    problems = [line for line in output if any(word in line for word in BAD)]
    assert (done.returncode, problems) == (0, [])
    return [line for line in output if "Gres Name=" in line]


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("name", "counts"),
    [
        ("eight", {"nvidia_h100_80gb_hbm3": 8}),
        ("mixed", {"nvidia_geforce_rtx_3090": 1, "nvidia_geforce_rtx_4090": 1}),
        ("mig", {"nvidia_a100-sxm4-80gb": 1, "nvidia_a100-sxm4-80gb_mig_3g.40gb": 2}),
        ("lost", {"nvidia_h100_80gb_hbm3": 1}),
    ],
)
def test_slurmd_takes_every_line(name: str, counts: dict[str, int], tmp_path: Path) -> None:
    lines = slurmd(node(NODES[name], tmp_path / "node"), tmp_path)
    types = [line.partition("Type=")[2].split()[0] for line in lines]
    assert {kind: types.count(kind) for kind in types} == counts


@pytest.mark.heavy
def test_slurmd_takes_sockets_and_the_cores_near_each_gpu(tmp_path: Path) -> None:
    machine = machine_of(recorded.read("dual-socket-epyc-9124--cpu"), tmp_path / "machine")
    name = "NVIDIA L40S"
    gpus = [gpu(1, name, 48, numa_node=0), gpu(2, name, 48, numa_node=1), gpu(3, name, 48)]
    Path(f"{machine.root}{FILE}").write_text(json.dumps(gpus))
    probers = {"sightings": {"target": "probe_core.testing.sightings"}}
    report = probe_core.probe(machine=machine, only=["sightings"], probers=probers).to_json()
    lines = export("slurm", report).splitlines()
    assert "Sockets=2 CoresPerSocket=16 ThreadsPerCore=2 RealMemory=381884" in lines[2]
    assert [line.partition("Cores=")[2].partition(" ")[0] for line in lines[4:]] == [
        "0-15",
        "16-31",
        "",
    ]
    read = slurmd(report, tmp_path)  # type: ignore[arg-type]
    assert len(read) == 3
    assert "Cores=0-15" in read[0]


def test_opentelemetrys_own_detector_reads_the_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    resources = pytest.importorskip("opentelemetry.sdk.resources")
    name, _, value = export("otel", node(MIXED, tmp_path / "node")).strip().partition("=")  # type: ignore[arg-type]
    monkeypatch.setenv(name, value)
    read = dict(resources.OTELResourceDetector().detect().attributes)
    assert read["probe.accelerator.names"] == "NVIDIA GeForce RTX 3090,NVIDIA GeForce RTX 4090"
    assert read["probe.accelerator.count"] == "2"


def test_the_resource_detector_gives_typed_attributes_and_never_raises(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    resources = pytest.importorskip("opentelemetry.sdk.resources")
    from probe_export.otel_detector import ProbeResourceDetector

    path = tmp_path / "report.json"
    path.write_text(json.dumps(node(MIXED, tmp_path / "node")))
    monkeypatch.setenv("PROBE_STATIC", str(path))
    read = dict(ProbeResourceDetector().detect().attributes)
    assert read["probe.accelerator.count"] == 2
    assert read["probe.accelerator.names"] == (
        "NVIDIA GeForce RTX 3090",
        "NVIDIA GeForce RTX 4090",
    )
    monkeypatch.setattr("probe_core.commands.probe_document", lambda: 1 / 0)
    assert dict(ProbeResourceDetector().detect().attributes) == {}
    assert resources.Resource.create() is not None


def test_ansible_shows_the_facts(tmp_path: Path) -> None:
    program = tool("ansible")
    folder = tmp_path / "facts.d"
    folder.mkdir()
    (folder / "probe.fact").write_text(export("ansible", node(MIXED, tmp_path / "node")))  # type: ignore[arg-type]
    module = f"filter=ansible_local fact_path={folder} gather_subset=!all,!min,local"
    done = subprocess.run(
        [program, "localhost", "-m", "ansible.builtin.setup", "-a", module],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "HOME": str(tmp_path), "ANSIBLE_NOCOLOR": "1"},
    )
    facts = json.loads(done.stdout.partition("=>")[2])["ansible_facts"]["ansible_local"]["probe"]
    assert facts["accelerators"] == 2
