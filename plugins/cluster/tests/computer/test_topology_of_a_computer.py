"""`probe topology` without files: exact tables of recorded machines, and of hwloc for one tree."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from itertools import combinations
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from probe_core.cli import main
from probe_core.testing.tree import Tree

ROOT = Path(__file__).resolve().parents[4]
MACHINES = ROOT / "tests" / "machines"
H200 = ROOT / "plugins/nvidia/tests/recordings/vm-with-h200-driver-580.159.04.json"
Capsys = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")


def printed(capsys: Capsys, machine: Path, *options: str) -> str:
    """Return what the command prints from /sys alone: no plugin runs."""
    status = main(["topology", "--only", "cpu", "--machine", str(machine), *options])
    shown = capsys.readouterr()
    assert (status, shown.err) == (0, "")
    return shown.out


EIGHT = """\
      GPU0  GPU1  GPU2  GPU3  GPU4  GPU5  GPU6  GPU7
GPU0  X     NODE  NODE  NODE  SYS   SYS   SYS   SYS
GPU1  NODE  X     NODE  NODE  SYS   SYS   SYS   SYS
GPU2  NODE  NODE  X     NODE  SYS   SYS   SYS   SYS
GPU3  NODE  NODE  NODE  X     SYS   SYS   SYS   SYS
GPU4  SYS   SYS   SYS   SYS   X     NODE  NODE  NODE
GPU5  SYS   SYS   SYS   SYS   NODE  X     NODE  NODE
GPU6  SYS   SYS   SYS   SYS   NODE  NODE  X     NODE
GPU7  SYS   SYS   SYS   SYS   NODE  NODE  NODE  X
"""

DGX = f"""\
NUMA  PROCESSOR                  CPUS
0     Intel Xeon Platinum 8480C  0-55,112-167
1     Intel Xeon Platinum 8480C  56-111,168-223
Packages are linked by UPI.

DEVICE  NAME                   ADDRESS  NUMA  CPUS
GPU0    NVIDIA H100 80GB HBM3  1b:00.0  0     0-55,112-167
GPU1    NVIDIA H100 80GB HBM3  43:00.0  0     0-55,112-167
GPU2    NVIDIA H100 80GB HBM3  52:00.0  0     0-55,112-167
GPU3    NVIDIA H100 80GB HBM3  61:00.0  0     0-55,112-167
GPU4    NVIDIA H100 80GB HBM3  9d:00.0  1     56-111,168-223
GPU5    NVIDIA H100 80GB HBM3  c3:00.0  1     56-111,168-223
GPU6    NVIDIA H100 80GB HBM3  d1:00.0  1     56-111,168-223
GPU7    NVIDIA H100 80GB HBM3  df:00.0  1     56-111,168-223

{EIGHT}
NODE: within a NUMA node. SYS: between NUMA nodes, over UPI.
NVLink or xGMI of GPU0, GPU1, GPU2, GPU3, GPU4, GPU5, GPU6, GPU7: not known, the
driver lists none.
"""

MI300X = f"""\
NUMA  PROCESSOR      CPUS
0     AMD EPYC 9654  0-95
1     AMD EPYC 9654  96-191
Packages are linked by xGMI.

DEVICE  NAME                 ADDRESS  NUMA  CPUS
GPU0    AMD Instinct MI300X  05:00.0  0     0-95
GPU1    AMD Instinct MI300X  27:00.0  0     0-95
GPU2    AMD Instinct MI300X  47:00.0  0     0-95
GPU3    AMD Instinct MI300X  65:00.0  0     0-95
GPU4    AMD Instinct MI300X  85:00.0  1     96-191
GPU5    AMD Instinct MI300X  a7:00.0  1     96-191
GPU6    AMD Instinct MI300X  c7:00.0  1     96-191
GPU7    AMD Instinct MI300X  e5:00.0  1     96-191

{EIGHT}
NODE: within a NUMA node. SYS: between NUMA nodes, over xGMI.
NVLink or xGMI of GPU0, GPU1, GPU2, GPU3, GPU4, GPU5, GPU6, GPU7: not known, the
driver lists none.
"""

DESKTOP = """\
NUMA  PROCESSOR             CPUS
0     Intel Core i9-13900K  0-31

DEVICE  NAME                     ADDRESS  NUMA  CPUS
GPU0    Intel UHD Graphics 770   00:02.0  0     0-31
GPU1    NVIDIA GeForce RTX 4090  01:00.0  0     0-31

      GPU0  GPU1
GPU0  X     PHB
GPU1  PHB   X

PHB: the host bridge of a CPU.
"""

DUAL = """\
NUMA  PROCESSOR      CPUS
0     AMD EPYC 9124  0-15,32-47
1     AMD EPYC 9124  16-31,48-63
Packages are linked by xGMI.

No accelerator and no network card on a PCI bus.
"""

VM = """\
NUMA  PROCESSOR             CPUS
0     Intel Xeon Processor  0-15

DEVICE  NAME         ADDRESS  NUMA  CPUS
GPU0    NVIDIA H200  00:06.0  0     0-15
NIC0    eth0         00:03.0  0     0-15

      GPU0  NIC0
GPU0  X     PHB
NIC0  PHB   X

PHB: the host bridge of a CPU.
"""
"""`nvidia-smi topo -m` of this machine: one GPU, CPU affinity 0-15, NUMA affinity 0."""

TABLES = {
    MACHINES / "dgx-h100--8x-nvidia-h100-80gb-hbm3.json": DGX,
    MACHINES / "server--8x-amd-instinct-mi300x.json": MI300X,
    MACHINES / "desktop--nvidia-geforce-rtx-4090-and-intel-uhd-770.json": DESKTOP,
    MACHINES / "dual-socket-epyc-9124--cpu.json": DUAL,
    H200: VM,
}


@pytest.mark.parametrize("machine", TABLES, ids=lambda path: path.stem)
def test_the_table_of_a_recorded_machine(capsys: Capsys, machine: Path) -> None:
    text = printed(capsys, machine)
    assert text == TABLES[machine]
    assert max(map(len, text.splitlines())) <= 80


def test_a_machine_without_numa_nodes_says_so(capsys: Capsys) -> None:
    text = printed(capsys, MACHINES / "laptop--amd-radeon-780m-and-npu.json")
    assert text.startswith("No NUMA node is known.\n\nDEVICE ")
    assert "–     –\n" in text


def test_json_has_places_and_matrix(capsys: Capsys) -> None:
    document = json.loads(printed(capsys, H200, "--json"))
    assert document == {
        "schema": 1,
        "numa_nodes": [{"number": 0, "processor": "Intel Xeon Processor", "cpus": "0-15"}],
        "packages_linked_by": None,
        "devices": [
            {"label": "GPU0", "id": "pci:0000:00:06.0", "name": "NVIDIA H200", "numa_node": 0,
             "cpus": "0-15", "route": ["pci0000:00"]},
            {"label": "NIC0", "id": "pci:0000:00:03.0", "name": "eth0", "numa_node": 0,
             "cpus": "0-15", "route": ["pci0000:00"]},
        ],
        "distances": [["X", "PHB"], ["PHB", "X"]],
        "meanings": ["PHB: the host bridge of a CPU"],
        "direct_links_unknown": [],
    }  # fmt: skip


# A server of two packages: switches in a row, two host bridges on the first package.


def _config(bus: int, pci_class: int, below: tuple[int, int] | None = None) -> bytes:
    """Return the configuration space: hwloc reads from it which buses are below a bridge."""
    space = bytearray(256)
    space[9:12] = pci_class.to_bytes(3, "little")
    if below:
        space[0x0E], space[0x18], space[0x19], space[0x1A] = 1, bus, *below
    return bytes(space)


class Server:
    """A tree in /sys that probe-core and hwloc read alike."""

    def __init__(self, folder: Path) -> None:
        self.tree = Tree(folder)
        self.cpus("/sys/devices/system/node/online", "0-1")
        for node, mask in ((0, "00000003"), (1, "0000000c")):
            folder_of = f"/sys/devices/system/node/node{node}"
            self.tree.file(f"{folder_of}/cpumap", mask)
            self.tree.file(f"{folder_of}/cpulist", ("0-1", "2-3")[node])
            for cpu in (2 * node, 2 * node + 1):
                topology = f"/sys/devices/system/cpu/cpu{cpu}/topology"
                self.tree.file(f"{topology}/physical_package_id", node)
                self.tree.file(f"{topology}/core_id", cpu)
                for name in ("core_siblings", "package_cpus"):
                    self.tree.file(f"{topology}/{name}", mask)
                for name in ("thread_siblings", "core_cpus"):
                    self.tree.file(f"{topology}/{name}", f"{1 << cpu:08x}")
        for name in ("online", "present", "possible"):
            self.cpus(f"/sys/devices/system/cpu/{name}", "0-3")
        lines = (
            f"processor : {n}\nvendor_id : GenuineIntel\ncpu family : 6\nmodel : 143\n"
            "model name : Intel(R) Xeon(R) Platinum 8480C\n"
            for n in range(4)
        )
        self.tree.file("/proc/cpuinfo", "\n".join(lines))

    def cpus(self, path: str, numbers: str) -> None:
        self.tree.file(path, f"{numbers}\n")

    def bridge(self, under: str, address: str, first: int, last: int) -> str:
        folder = self.tree.bridge(f"0000:{address}", under=under)
        bus = int(address[:2], 16)
        self.tree.file(f"{folder}/local_cpus", "0000000c" if bus >= 0x80 else "00000003")
        self.tree.file(f"{folder}/config", _config(bus, 0x060400, (first, last)))
        return folder

    def card(self, under: str, address: str, kind: str, node: int) -> None:
        ids, pci_class = {"gpu": ("10de:2330", "030200"), "nic": ("15b3:1021", "020700")}[kind]
        folder = self.tree.pci(
            f"0000:{address}", ids, pci_class=pci_class, under=under, numa_node=node,
            local_cpulist=("0-1", "2-3")[node], local_cpus=("00000003", "0000000c")[node],
        )  # fmt: skip
        self.tree.file(f"{folder}/config", _config(int(address[:2], 16), int(pci_class, 16)))
        if kind == "nic":
            name = f"mlx5_{address[:2]}"
            port = f"{folder}/infiniband/{name}"
            self.tree.file(f"{port}/ports/1/state", "4: ACTIVE\n")
            self.tree.file(f"{port}/ports/1/rate", "400 Gb/sec (4X NDR)\n")
            self.tree.link(f"{port}/device", folder)
            self.tree.link(f"/sys/class/infiniband/{name}", port)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("server")
    made = Server(folder)
    first, second, third = (f"/sys/devices/pci0000:{bus}" for bus in ("00", "40", "80"))
    upper = made.bridge(made.bridge(first, "00:01.0", 0x01, 0x08), "01:00.0", 0x02, 0x08)
    made.card(made.bridge(upper, "02:00.0", 0x03, 0x03), "03:00.0", "gpu", 0)
    made.card(made.bridge(upper, "02:01.0", 0x04, 0x04), "04:00.0", "nic", 0)
    lower = made.bridge(made.bridge(upper, "02:02.0", 0x05, 0x08), "05:00.0", 0x06, 0x08)
    made.card(made.bridge(lower, "06:00.0", 0x07, 0x07), "07:00.0", "gpu", 0)
    made.card(made.bridge(lower, "06:01.0", 0x08, 0x08), "08:00.0", "nic", 0)
    made.card(made.bridge(first, "00:02.0", 0x09, 0x09), "09:00.0", "nic", 0)
    made.card(made.bridge(second, "40:01.0", 0x41, 0x41), "41:00.0", "gpu", 0)
    switch = made.bridge(made.bridge(third, "80:01.0", 0x81, 0x84), "81:00.0", 0x82, 0x84)
    made.card(made.bridge(switch, "82:00.0", 0x83, 0x83), "83:00.0", "gpu", 1)
    made.card(made.bridge(switch, "82:01.0", 0x84, 0x84), "84:00.0", "gpu", 1)
    return folder


MATRIX = """\
      GPU0  GPU1  GPU2  GPU3  GPU4  NIC0  NIC1  NIC2
GPU0  X     PXB   NODE  SYS   SYS   PIX   PXB   PHB
GPU1  PXB   X     NODE  SYS   SYS   PXB   PIX   PHB
GPU2  NODE  NODE  X     SYS   SYS   NODE  NODE  NODE
GPU3  SYS   SYS   SYS   X     PIX   SYS   SYS   SYS
GPU4  SYS   SYS   SYS   PIX   X     SYS   SYS   SYS
NIC0  PIX   PXB   NODE  SYS   SYS   X     PXB   PHB
NIC1  PXB   PIX   NODE  SYS   SYS   PXB   X     PHB
NIC2  PHB   PHB   NODE  SYS   SYS   PHB   PHB   X
"""


def test_switches_and_host_bridges_of_a_server(capsys: Capsys, server: Path) -> None:
    text = printed(capsys, server)
    assert MATRIX in text
    assert "NIC1    mlx5_08/1" in text
    assert "GPU3    NVIDIA H100 80GB HBM3  83:00.0  1     2-3" in text


def test_columns_that_do_not_fit_follow_in_a_block(
    capsys: Capsys, server: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    text = printed(capsys, server)
    assert "      GPU0  GPU1  GPU2  GPU3  GPU4  NIC0\n" in text
    assert "      NIC1  NIC2\nGPU0  PXB   PHB\n" in text


def _hwloc_words(folder: Path) -> dict[tuple[str, str], str]:
    """Return the word of each pair of devices by the tree that hwloc makes of the machine."""
    environ = {
        "PATH": os.environ["PATH"], "HWLOC_FSROOT": str(folder), "HWLOC_THISSYSTEM": "0",
        "HWLOC_COMPONENTS": "linux,stop",
    }  # fmt: skip
    command = ["lstopo-no-graphics", "--of", "xml", "--whole-io"]
    done = subprocess.run(command, env=environ, capture_output=True, timeout=60, check=True)
    above: dict[str, list[Any]] = {}

    def walk(element: Any, path: list[Any]) -> None:
        if element.get("type") == "PCIDev":
            above[element.get("pci_busid")] = path
        for child in element.findall("object"):
            walk(child, [*path, element])

    for top in ElementTree.fromstring(done.stdout).findall("object"):
        walk(top, [])
    words = {}
    for first, second in combinations(sorted(above), 2):
        pairs = zip(above[first], above[second], strict=False)
        shared = [mine for mine, theirs in pairs if mine is theirs]
        below = max(len(above[first]), len(above[second])) - len(shared)
        nearest = shared[-1]
        if nearest.get("type") == "Bridge":
            is_host = nearest.get("bridge_type") == "0-1"
            words[first, second] = "PHB" if is_host else "PIX" if below <= 1 else "PXB"
        else:
            words[first, second] = "SYS" if nearest.get("type") == "Machine" else "NODE"
    return words


@pytest.mark.skipif(not shutil.which("lstopo-no-graphics"), reason="hwloc is not installed")
def test_hwloc_finds_the_same(capsys: Capsys, server: Path) -> None:
    document = json.loads(printed(capsys, server, "--json"))
    ids = [device["id"].removeprefix("pci:") for device in document["devices"]]
    ours = {
        (ids[row], ids[column]): document["distances"][row][column]
        for row in range(len(ids))
        for column in range(len(ids))
        if ids[row] < ids[column]
    }
    assert ours == _hwloc_words(server)
    assert len(ours) == 28


def test_the_picture_has_boxes_in_boxes(capsys: Capsys, server: Path) -> None:
    picture = ElementTree.fromstring(printed(capsys, server, "--svg"))
    name = "{http://www.w3.org/2000/svg}"
    texts = [text.text for text in picture.iter(f"{name}text")]
    assert [text for text in texts if text and text.startswith(("NUMA", "PCIe", "root"))] == [
        "NUMA 0", "PCIe switch 01:00.0", "PCIe switch 05:00.0", "NUMA 1", "PCIe switch 81:00.0",
    ]  # fmt: skip
    boxes = [
        tuple(int(rect.get(key, "")) for key in ("x", "y", "width", "height"))
        for rect in picture.iter(f"{name}rect")
    ]
    assert len(boxes) == 1 + 2 + 3 + 8
    for first, second in combinations(boxes, 2):  # one holds the other, or they do not touch
        (x, y, w, h), (left, top, width, height) = first, second
        inside = x < left and y < top and left + width < x + w and top + height < y + h
        apart = x + w <= left or left + width <= x or y + h <= top or top + height <= y
        assert inside or apart


def test_the_graph_has_each_route_once(capsys: Capsys, server: Path) -> None:
    lines = printed(capsys, server, "--dot").splitlines()
    assert (lines[0], lines[-1]) == ("graph topology {", "}")
    edges = [line for line in lines if " -- " in line]
    assert len(edges) == len({*edges})
    assert '  "numa0" -- "numa1" [label="UPI"];' in edges
    assert '  "0000:06:00.0" -- "GPU1";' in edges
    assert '  "pci0000:80" -- "0000:80:01.0";' in edges


def test_files_and_forms_of_a_computer_do_not_mix(capsys: Capsys) -> None:
    assert main(["topology", "--dot", "a.json"]) == 2
    assert "--dot is for one computer" in capsys.readouterr().err
    assert main(["topology", "--json", "--svg"]) == 2
    assert "use one" in capsys.readouterr().err
