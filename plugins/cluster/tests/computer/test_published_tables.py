"""`probe topology` beside tables that nvidia-smi and rocm-smi printed on machines of other people.

Each names the thread in which it was published. What these tools do not print (PCI folders) is as
`lspci -t` beside the table has it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from probe_core.cli import main
from probe_core.testing.tree import Tree

MACHINES = Path(__file__).resolve().parents[4] / "tests" / "machines"
KFD = "/sys/class/kfd/kfd/topology/nodes"
Capsys = pytest.CaptureFixture[str]


def document(capsys: Capsys, machine: Path, *probers: str) -> dict[str, Any]:
    options = [word for prober in ("cpu", *probers) for word in ("--only", prober)]
    assert main(["topology", "--json", "--machine", str(machine), *options]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_cpus_and_numa_nodes_of_a_dgx_h100(capsys: Capsys) -> None:
    """`nvidia-smi topo -m`, columns "CPU Affinity" and "NUMA Affinity": vllm-project/vllm#13855."""
    found = document(capsys, MACHINES / "dgx-h100--8x-nvidia-h100-80gb-hbm3.json")
    printed = [("0-55,112-167", 0)] * 4 + [("56-111,168-223", 1)] * 4
    assert [(d["cpus"], d["numa_node"]) for d in found["devices"]] == printed


def test_two_cards_of_a_workstation(capsys: Capsys, tmp_path: Path) -> None:
    """PHB, 0-63, node 0: noonghunna/club-3090#1229, two RTX 5090 below ports of 0000:00."""
    tree = Tree(tmp_path)
    tree.file("/sys/devices/system/node/node0/cpulist", "0-63\n")
    tree.file("/sys/devices/system/node/online", "0\n")
    for port, address in (("0000:00:01.1", "0000:01:00.0"), ("0000:00:03.1", "0000:02:00.0")):
        tree.pci(address, "10de:2b85", under=tree.bridge(port), numa_node=0, local_cpulist="0-63")
    found = document(capsys, tmp_path)
    assert found["distances"] == [["X", "PHB"], ["PHB", "X"]]
    assert [(d["cpus"], d["numa_node"]) for d in found["devices"]] == [("0-63", 0)] * 2


def test_eight_mi300x_have_a_link_between_any_two(capsys: Capsys) -> None:
    """Weight 15 and type XGMI for all pairs: vllm-project/vllm#40008, of eight MI355X.

    NUMA nodes: ROCm/legacy-rocm-build#4740.
    """
    found = document(capsys, MACHINES / "server--8x-amd-instinct-mi300x.json", "amd")
    expected = [["X" if row == column else "XGMI1" for column in range(8)] for row in range(8)]
    assert found["distances"] == expected
    assert [d["numa_node"] for d in found["devices"]] == [0] * 4 + [1] * 4
    assert found["direct_links_unknown"] == []


MI250_WEIGHTS = """\
0 15 15 30 30 30 15 30
15 0 30 15 30 15 30 45
15 30 0 15 15 30 30 30
30 15 15 0 30 45 30 15
30 30 15 30 0 15 15 30
30 15 30 45 15 0 30 15
15 30 30 30 15 30 0 15
30 45 30 15 30 15 15 0
"""
"""`rocm-smi --showtopo`, "Weight between two GPUs", of four MI250: vllm-project/vllm#16840."""


def test_what_lies_between_the_gpus_of_four_mi250(capsys: Capsys, tmp_path: Path) -> None:
    """KFD lists each GPU of a hive: 15 a wire, so 30 and 45 lead through others."""
    tree = Tree(tmp_path)
    weights = [[int(text) for text in line.split()] for line in MI250_WEIGHTS.splitlines()]
    for row, own in enumerate(weights):
        bus = 0xC1 + 4 * row
        under = tree.bridge(f"0000:c0:{row + 1:02x}.0", under="/sys/devices/pci0000:c0")
        tree.pci(f"0000:{bus:02x}:00.0", "1002:740c", pci_class="038000", driver="amdgpu",
                 under=under, numa_node=0, mem_info_vram_total=64 << 30)  # fmt: skip
        tree.file(f"{KFD}/{row + 1}/properties", f"simd_count 416\nlocation_id {bus << 8}\n"
                  f"simd_per_cu 4\ngfx_target_version 90010\nunique_id {bus}\n")  # fmt: skip
        for column, weight in enumerate(own):
            if weight:
                rate = 50_000 if weight == 15 else 0
                tree.file(
                    f"{KFD}/{row + 1}/io_links/{column}/properties",
                    f"type 11\nnode_from {row + 1}\nnode_to {column + 1}\nweight {weight}\n"
                    f"min_bandwidth {rate}\nmax_bandwidth {rate}\n",
                )
    words = {0: "X", 15: "XGMI1", 30: "XGMI", 45: "XGMI"}
    found = document(capsys, tmp_path, "amd")
    assert found["distances"] == [[words[weight] for weight in own] for own in weights]
    assert found["meanings"] == ["XGMI1: one xGMI link", "XGMI: xGMI through other GPUs"]
