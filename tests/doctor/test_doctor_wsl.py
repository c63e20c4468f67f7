"""Linux in Windows, and containers in it: what Windows gives lies elsewhere in a container."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from doctor_cases import complete
from readiness_nodes import LIBRARIES, Node
from reports import report_of

from probe_core.doctor.check import Request
from probe_core.doctor.examine import examine

DRIVER = "/usr/lib/wsl/drivers/nv_dispi.inf_amd64_0123"


def contained(root: Path, *files: str, **environ: str) -> Node:
    node = Node(root)
    node.tree.release("6.6.87.2-microsoft-standard-WSL2")
    node.container()
    node.nodes("/dev/dxg")
    node.environ |= environ
    for path in (f"{LIBRARIES}/libc.so.6", "/usr/lib/wsl/lib/libdxcore.so", *files):
        node.file(path, b"\x7fELF\x02")
    complete(node)
    return node


def findings(node: Node) -> list[dict[str, Any]]:
    report: Any = report_of(node.machine())
    document = examine(Request(node.machine(), report))
    return [dict(f) for f in document["findings"] if f["severity"] != "info"]


def test_a_container_has_the_library_in_the_folder_of_the_driver(tmp_path: Path) -> None:
    node = contained(tmp_path, f"{DRIVER}/libcuda.so.1.1", NVIDIA_VISIBLE_DEVICES="void")
    assert findings(node) == []


def test_its_loader_looks_there(tmp_path: Path) -> None:
    node = contained(tmp_path, f"{DRIVER}/libcuda.so.1.1", NVIDIA_VISIBLE_DEVICES="all")
    node.tree.link(f"{DRIVER}/libcuda.so.1", f"{DRIVER}/libcuda.so.1.1")
    node.file("/etc/ld.so.conf", "include /etc/ld.so.conf.d/*.conf\n")
    node.file("/etc/ld.so.conf.d/00-nvcr-1.conf", f"{DRIVER}\n")
    assert findings(node) == []


@pytest.mark.parametrize(
    ("environ", "codes"), [({"NVIDIA_VISIBLE_DEVICES": "all"}, ["wsl-no-library"]), ({}, [])]
)
def test_a_container_with_the_node_alone(
    environ: dict[str, str], codes: list[str], tmp_path: Path
) -> None:
    found = findings(contained(tmp_path, **environ))
    assert [finding["code"] for finding in found] == codes
    assert all("docker run --gpus all" in finding["fix"] for finding in found)
