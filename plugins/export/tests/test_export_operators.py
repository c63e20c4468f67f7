"""The files in packaging/operators: each read by the tool that reads it at a site."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest
import yaml
from export_nodes import LOST, LOST_NODE, MIG_NODE, MIXED, gpu, node

from probe_core.testing.tree import Tree
from probe_export import export, pods

FOLDER = Path(__file__).resolve().parents[3] / "packaging" / "operators"


def tool(name: str) -> str:
    path = shutil.which(name, path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    if path is None:
        pytest.skip(f"{name} is not installed")
    return path


def run(*command: str, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env={**os.environ, **environ},
    )


@pytest.mark.parametrize("name", ["slurm-prolog.sh", "ray-start.sh"])
def test_scripts_pass_shellcheck_and_can_be_run(name: str) -> None:
    path = FOLDER / name
    done = run(tool("shellcheck"), str(path))
    assert (done.returncode, done.stdout) == (0, "")
    assert path.stat().st_mode & stat.S_IXUSR


def program(folder: Path, name: str, body: str) -> None:
    path = folder / name
    path.write_text(f"#!/bin/bash\n{body}\n")
    path.chmod(0o755)


@pytest.mark.parametrize(
    ("body", "gpus", "status", "printed"),
    [
        ("NODE_BLOCKING='0'", "0,1", 0, ""),
        (
            "NODE_BLOCKING='2'\nNODE_BLOCKING_CAUSES='gpu-lost,no-node'",
            "0",
            1,
            "2 of this node's accelerators cannot be used: gpu-lost,no-node\n",
        ),
        ("NODE_BLOCKING='2'", "", 0, ""),
        (
            "NODE_BLOCKING='0'\nNODE_EXPECTED='8'\nNODE_ABSENT='1'",
            "0",
            1,
            "1 of this node's accelerators are absent\n",
        ),
        ("NODE_BLOCKING='0'\nNODE_EXPECTED='8'\nNODE_ABSENT='0'", "0", 0, ""),
        ("exit 2", "0", 0, "probe ended with 2, the node was not checked\n"),
    ],
)
def test_the_prolog_refuses_a_node_that_is_not_ready(
    tmp_path: Path, body: str, gpus: str, status: int, printed: str
) -> None:
    text = body if body.startswith("exit") else f"cat <<'END'\n{body}\nEND"
    program(tmp_path, "probe", text)
    script = (FOLDER / "slurm-prolog.sh").read_text()
    assert "PATH=/opt/probe/bin:" in script
    own = tmp_path / "prolog.sh"
    own.write_text(script.replace("/opt/probe/bin", str(tmp_path)))
    # slurmd (22.05) runs it without a PATH: what the script sets alone would reach no program.
    environ = {"SLURM_JOB_GPUS": gpus}
    done = subprocess.run(
        [tool("bash"), str(own)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env=environ,
    )
    assert (done.returncode, done.stdout, done.stderr) == (status, "", printed)


def test_the_prolog_reads_what_env_writes(tmp_path: Path) -> None:
    report: Any = node(LOST_NODE, tmp_path / "node")
    lines = export("env", report).splitlines()
    assert "NODE_MISSING='1'" in lines
    assert "NODE_MISSING_CAUSES='gpu-lost'" in lines
    assert "NODE_BLOCKING='1'" in lines
    assert "NODE_BLOCKING_CAUSES='gpu-lost'" in lines


def test_graphics_of_a_processor_block_no_job_beside_cards(tmp_path: Path) -> None:
    """They are missing all the same: bind their driver, or switch them off in the firmware."""
    own = gpu(4, "AMD Radeon Graphics", step_facts=LOST)
    own |= {"vendor": "amd", "memory": {"kind": "shared", "total": 4 << 30}}
    beside = export("env", node([*MIXED, own], tmp_path / "beside")).splitlines()  # type: ignore[arg-type]
    assert ("NODE_MISSING='1'" in beside, "NODE_BLOCKING='0'" in beside) == (True, True)
    alone = export("env", node([own], tmp_path / "alone")).splitlines()  # type: ignore[arg-type]
    assert ("NODE_MISSING='1'" in alone, "NODE_BLOCKING='1'" in alone) == (True, True)


def test_what_is_absent_is_in_each_format(tmp_path: Path) -> None:
    report: Any = node(LOST_NODE, tmp_path / "node")
    assert "EXPECTED" not in export("env", report)
    absent = {"name": "l4", "count": 2, "device": None, "place": None}
    report["expected"] = {"source": "PROBE_EXPECT", "text": "8xl4", "count": 8, "absent": [absent]}
    lines = export("env", report).splitlines()
    assert ("NODE_EXPECTED='8'" in lines, "NODE_ABSENT='2'" in lines) == (True, True)
    metrics = export("prometheus", report).splitlines()
    assert ("probecore_devices_expected 8" in metrics, "probecore_devices_absent 2" in metrics) == (
        True,
        True,
    )
    labels = export("nfd", report)
    assert "expected.count=8\n" in labels
    assert "absent.count=2\n" in labels
    assert '"absent": 2' in export("ansible", report)
    assert "probe.accelerator.absent=2" in export("otel", report)


def test_the_wrapper_hands_every_option_to_ray(tmp_path: Path) -> None:
    report: Any = node(MIXED, tmp_path / "node")
    (tmp_path / "line").write_text(export("ray", report))
    program(tmp_path, "probe", f'[ "$*" = "export ray" ] && cat {tmp_path}/line')
    program(tmp_path, "ray", 'printf "%s\\n" "$@"')
    path = f"{tmp_path}:{os.environ['PATH']}"
    done = run(str(FOLDER / "ray-start.sh"), "--address=HEAD:6379", "--block", PATH=path)
    words = done.stdout.splitlines()
    assert (done.returncode, done.stderr) == (0, "")
    assert words[:2] == ["start", "--num-gpus=2"]
    assert json.loads(words[2].removeprefix("--resources="))["vram_gib"] == 48
    assert words[-2:] == ["--address=HEAD:6379", "--block"]
    program(tmp_path, "probe", "exit 3")
    done = run(str(FOLDER / "ray-start.sh"), "--head", PATH=path)
    assert (done.returncode, done.stdout) == (3, "")


def test_systemd_accepts_the_units(tmp_path: Path) -> None:
    name = tool("systemd-analyze")
    program(tmp_path, "probe", "exit 0")
    names = ("probe-textfile.service", "probe-textfile.timer", "probe-metrics.service")
    for unit in names:
        text = (FOLDER / unit).read_text()
        (tmp_path / unit).write_text(text.replace("/opt/probe/bin/probe", f"{tmp_path}/probe"))
    units = [str(tmp_path / unit) for unit in names]
    done = run(name, "verify", "--man=no", *units)
    ours = [line for line in done.stderr.splitlines() if "probe" in line]
    assert ours == []
    text = "".join(Path(unit).read_text() for unit in units)
    options = [line.split("=")[0] for line in text.splitlines() if not line.startswith("#")]
    hiding = {"PrivateDevices", "DevicePolicy", "ProcSubset", "PrivateNetwork"}
    assert hiding.isdisjoint(options)


def documents(name: str) -> list[Any]:
    return list(yaml.safe_load_all((FOLDER / name).read_text()))


def daemon_set() -> Any:
    return documents("probe-nfd.yaml")[0]


WRITABLE = {"probe-nfd.yaml": ["/features.d"], "probe-metrics.yaml": []}


@pytest.mark.parametrize("name", WRITABLE)
def test_the_daemon_sets_have_least_rights(name: str) -> None:
    pod = documents(name)[0]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    rights = container["securityContext"]
    assert pod["automountServiceAccountToken"] is False
    assert pod["enableServiceLinks"] is False
    assert not {"hostNetwork", "hostPID", "hostIPC", "serviceAccountName"} & set(pod)
    assert rights["capabilities"] == {"drop": ["ALL"]}
    assert (rights["privileged"], rights["allowPrivilegeEscalation"]) == (False, False)
    assert rights["readOnlyRootFilesystem"] is True
    writable = [m["mountPath"] for m in container["volumeMounts"] if not m.get("readOnly")]
    assert writable == WRITABLE[name]
    paths = {volume["name"]: volume["hostPath"]["path"] for volume in pod["volumes"]}
    assert {mount["name"] for mount in container["volumeMounts"]} == set(paths)


def test_the_labels_go_where_nfd_reads_them() -> None:
    (volume,) = (v for v in daemon_set()["spec"]["template"]["spec"]["volumes"]
                 if v["name"] == "features")  # fmt: skip
    # NFD's folder for local features (its documentation, "Local feature source").
    assert volume["hostPath"]["path"] == "/etc/kubernetes/node-feature-discovery/features.d"


def test_the_metrics_pod_sees_what_it_must_and_is_found() -> None:
    daemon, monitor = documents("probe-metrics.yaml")
    pod = daemon["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    # NVML, and with it the live memory of NVIDIA's cards, comes by the runtime and two variables.
    assert pod["runtimeClassName"] == "nvidia"
    assert {"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"} in container["env"]
    assert {"name": "NVIDIA_DRIVER_CAPABILITIES", "value": "utility"} in container["env"]
    assert "limits" not in container or "nvidia.com/gpu" not in container["resources"]["limits"]
    # The kubelet's socket is asked where it is mounted.
    (mount,) = container["volumeMounts"]
    assert pods.SOCKET.startswith(f"{mount['mountPath']}/")
    # What makes the pod ready does not depend on a GPU, or a node that hangs would vanish.
    (port,) = container["ports"]
    for probe in ("readinessProbe", "livenessProbe"):
        assert container[probe]["httpGet"] == {"path": "/healthz", "port": port["name"]}
    assert container["args"] == ["--listen", f"0.0.0.0:{port['containerPort']}"]
    labels = daemon["spec"]["template"]["metadata"]["labels"]
    assert daemon["spec"]["selector"]["matchLabels"].items() <= labels.items()
    assert monitor["spec"]["selector"]["matchLabels"].items() <= labels.items()
    (endpoint,) = monitor["spec"]["podMetricsEndpoints"]
    assert (endpoint["port"], endpoint["honorLabels"]) == (port["name"], True)
    assert monitor["metadata"]["namespace"] == daemon["metadata"]["namespace"]
    # Keys of PodMetricsEndpoint in Prometheus Operator's API, v1.
    assert set(endpoint) <= {"port", "interval", "honorLabels", "relabelings", "path", "scheme"}


@pytest.mark.heavy
def test_the_command_of_the_metrics_unit_serves(tmp_path: Path) -> None:
    """The unit's own words, at a free port of loopback, until SIGTERM."""
    unit = (FOLDER / "probe-metrics.service").read_text()
    (line,) = (x for x in unit.splitlines() if x.startswith("ExecStart="))
    words = line.replace("0.0.0.0:10935", "127.0.0.1:0").split()[1:]
    assert words[:3] == ["export", "prometheus", "--listen"]
    command = [sys.executable, "-m", "probe_core", *words]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    try:
        url = process.stderr.readline().split("serving ")[1].split(";")[0]
        text = ""
        for _ in range(2000):
            try:
                with urllib.request.urlopen(url, timeout=20) as answer:
                    text = answer.read().decode()
            except urllib.error.HTTPError as error:
                error.close()  # 503: come again
            if "probecore_build_info" in text and "probecore_node_cpu_busy_ratio" in text:
                break
            time.sleep(0.01)
        assert "probecore_node_memory_used_bytes" in text
    finally:
        process.terminate()
        assert process.wait(20) == 0
        process.stderr.close()


def test_kubernetes_accepts_the_daemon_sets(tmp_path: Path) -> None:
    kubernetes_takes(FOLDER / "probe-nfd.yaml")
    own = tmp_path / "daemon.yaml"  # the PodMonitor is no kind of Kubernetes itself
    own.write_text(yaml.safe_dump(documents("probe-metrics.yaml")[0]))
    kubernetes_takes(own)


@pytest.mark.parametrize("sightings", [LOST_NODE, MIXED, MIG_NODE])
def test_kubernetes_accepts_the_devices_of_a_slice(sightings: Any, tmp_path: Path) -> None:
    devices = json.loads(export("dra", node(sightings, tmp_path / "node")))["devices"]  # type: ignore[arg-type]
    assert devices
    resource = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": "n1-probe"},
        "spec": {
            "driver": "probe.example",
            "nodeName": "n1",
            "pool": {"name": "n1", "generation": 1, "resourceSliceCount": 1},
            "devices": devices,
        },
    }
    path = tmp_path / "slice.yaml"
    path.write_text(yaml.safe_dump(resource))
    kubernetes_takes(path)


def kubernetes_takes(path: Path) -> None:
    """Check a file with the schema of Kubernetes itself, in which no unknown key may stand."""
    done = run(tool("kubernetes-validate"), "-k", "1.37", "--strict", str(path))
    assert (done.returncode, done.stderr) == (0, "")
    assert "passed" in done.stdout


def test_the_daemon_sets_command_writes_labels(tmp_path: Path) -> None:
    """Its own words, with the host's files below another folder, until SIGTERM."""
    host = Tree(tmp_path / "host")
    host.release()
    host.memory(65_536_000, 64_000_000)
    host.pci("0000:01:00.0", "10de:2684", driver="nvidia")
    (container,) = daemon_set()["spec"]["template"]["spec"]["containers"]
    places = {"/host": str(host.root), "/features.d/probe": str(tmp_path / "probe")}
    words = [places.get(word, word) for word in (*container["command"], *container["args"])]
    assert words[:3] == ["probe", "export", "nfd"]
    process = subprocess.Popen([sys.executable, "-m", "probe_core", *words[1:]])
    try:
        for _ in range(1000):
            if (tmp_path / "probe").exists():
                break
            try:
                process.wait(0.02)
            except subprocess.TimeoutExpired:
                continue
    finally:
        process.terminate()
    assert process.wait(20) == 0
    text = (tmp_path / "probe").read_text()
    assert "feature.node.kubernetes.io/probe-gpu.count=1\n" in text
