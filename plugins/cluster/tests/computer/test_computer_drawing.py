"""The pictures of a small topology, whole: each length of the SVG, each line of the graph."""

from __future__ import annotations

from probe_cluster.computer.drawing import dot_of, svg_of
from probe_cluster.computer.model import Device, Node, Topology
from probe_cluster.computer.text import lines_of
from probe_core.model.distance import Place


def place(number: int, numa: int | None, *bridges: str) -> Place:
    route = ("pci0000:00", *bridges) if bridges else ()
    return Place(f"pci:0000:0{number}:00.0", route, numa)


PORT = "0000:00:01.0"
TOPOLOGY = Topology(
    nodes=(Node(0, "Xeon", "0-3"), Node(1, "Xeon & more", None)),
    devices=(
        Device("GPU 0", "NVIDIA H100", place(1, 0, PORT), "0-3"),
        Device("GPU 1", "NVIDIA H100", place(2, 0, PORT), None),
        Device("NIC 0", "mlx5_0", place(3, None), None),
    ),
    rows=(("X", "NV18", "SYS"), ("NV18", "X", "SYS"), ("SYS", "SYS", "X")),
    meanings=("NV18 is 18 NVLinks", "SYS crosses packages"),
    link="UPI",
    silent=(),
)


def test_the_picture_to_the_pixel() -> None:
    # A card is 190 x 56: a bridge with two has 10 + 2 x 200 across, and 10 + 16 + 66 + 10 down.
    # NUMA 0 stands around it with three lines, NUMA 1 beside it, the card of no node below.
    head = 'xmlns="http://www.w3.org/2000/svg" width="670" height="354"'
    assert svg_of(TOPOLOGY).splitlines() == [
        f'<svg {head} font-family="sans-serif" font-size="11">',
        '<rect x="1" y="1" width="668" height="352" rx="4" fill="#ffffff" stroke="#6b7280"/>',
        '<text x="10" y="18" fill="#111827">NV18: GPU 0, GPU 1</text>',
        '<text x="10" y="34" fill="#111827">packages linked by UPI</text>',
        '<rect x="11" y="43" width="428" height="178" rx="4" fill="#f3f4f6" stroke="#6b7280"/>',
        '<text x="20" y="60" fill="#111827">NUMA 0</text>',
        '<text x="20" y="76" fill="#111827">Xeon</text>',
        '<text x="20" y="92" fill="#111827">CPUs 0-3</text>',
        '<rect x="21" y="101" width="408" height="100" rx="4" fill="#e5e7eb" stroke="#6b7280"/>',
        '<text x="30" y="118" fill="#111827">root port 00:01.0</text>',
        '<rect x="31" y="127" width="188" height="54" rx="4" fill="#dcfce7" stroke="#6b7280"/>',
        '<text x="40" y="144" fill="#111827">GPU 0  01:00.0</text>',
        '<text x="40" y="160" fill="#111827">NVIDIA H100</text>',
        '<rect x="231" y="127" width="188" height="54" rx="4" fill="#dcfce7" stroke="#6b7280"/>',
        '<text x="240" y="144" fill="#111827">GPU 1  02:00.0</text>',
        '<text x="240" y="160" fill="#111827">NVIDIA H100</text>',
        '<rect x="451" y="43" width="208" height="50" rx="4" fill="#f3f4f6" stroke="#6b7280"/>',
        '<text x="460" y="60" fill="#111827">NUMA 1</text>',
        '<text x="460" y="76" fill="#111827">Xeon &amp; more</text>',
        '<rect x="11" y="233" width="208" height="100" rx="4" fill="#f3f4f6" stroke="#6b7280"/>',
        '<text x="20" y="250" fill="#111827">NUMA node not known</text>',
        '<rect x="21" y="259" width="188" height="54" rx="4" fill="#dbeafe" stroke="#6b7280"/>',
        '<text x="30" y="276" fill="#111827">NIC 0  03:00.0</text>',
        '<text x="30" y="292" fill="#111827">mlx5_0</text>',
        "</svg>",
    ]


def test_long_names_are_cut_and_rows_have_four_cards() -> None:
    devices = tuple(
        Device(f"GPU {number}", "x" * 40, place(number, 0), None) for number in range(5)
    )
    rows = tuple(("X",) * 5 for _ in devices)
    lone = Topology((Node(0, "y" * 200, None),), devices, rows, (), None, ())
    picture = svg_of(lone)
    assert picture.count(f">{'x' * 28}</text>") == 5
    assert "linked" not in picture
    places = [line.split('"')[1:4:2] for line in picture.splitlines() if "#dcfce7" in line]
    assert places == [["21", "53"], ["221", "53"], ["421", "53"], ["621", "53"], ["21", "119"]]
    # The longest text, at 7 pixels a character, makes the box.
    assert f'width="{10 + 7 * 200 + 10 - 2}"' in picture


def test_the_graph_line_by_line() -> None:
    assert dot_of(TOPOLOGY).splitlines() == [
        "graph topology {",
        "  node [shape=box];",
        '  "numa0" [label="NUMA 0\\nXeon\\nCPUs 0-3"];',
        '  "numa1" [label="NUMA 1\\nXeon & more"];',
        '  "GPU 0" [label="GPU 0  01:00.0\\nNVIDIA H100"];',
        '  "GPU 1" [label="GPU 1  02:00.0\\nNVIDIA H100"];',
        '  "NIC 0" [label="NIC 0  03:00.0\\nmlx5_0"];',
        '  "pci0000:00" [label="pci0000:00"];',
        '  "0000:00:01.0" [label="00:01.0"];',
        '  "numa0" -- "numa1" [label="UPI"];',
        '  "numa0" -- "pci0000:00";',
        '  "pci0000:00" -- "0000:00:01.0";',
        '  "0000:00:01.0" -- "GPU 0";',
        '  "0000:00:01.0" -- "GPU 1";',
        '  "GPU 0" -- "GPU 1" [label="NV18"];',
        "}",
    ]


def test_the_table_line_by_line() -> None:
    assert list(lines_of(TOPOLOGY, 80)) == [
        "NUMA  PROCESSOR    CPUS",
        "0     Xeon         0-3",
        "1     Xeon & more  –",
        "Packages are linked by UPI.",
        "",
        "DEVICE  NAME         ADDRESS  NUMA  CPUS",
        "GPU 0   NVIDIA H100  01:00.0  0     0-3",
        "GPU 1   NVIDIA H100  02:00.0  0     –",
        "NIC 0   mlx5_0       03:00.0  –     –",
        "",
        "       GPU 0  GPU 1  NIC 0",
        "GPU 0  X      NV18   SYS",
        "GPU 1  NV18   X      SYS",
        "NIC 0  SYS    SYS    X",
        "",
        "NV18 is 18 NVLinks. SYS crosses packages.",
    ]
    silent = TOPOLOGY._replace(nodes=(), link=None, silent=("GPU 0", "GPU 1"))
    lines = list(lines_of(silent, 80))
    assert lines[:2] == ["No NUMA node is known.", ""]
    assert lines[-1] == "NVLink or xGMI of GPU 0, GPU 1: not known, the driver lists none."
    # Four cells of 7 need 26 columns: the last one's gap of 2 may stand outside.
    whole = [line for line in lines_of(TOPOLOGY, 26) if line.startswith("       ")]
    assert whole == ["       GPU 0  GPU 1  NIC 0"]
    blocks = [line for line in lines_of(TOPOLOGY, 25) if line.startswith("       ")]
    assert blocks == ["       GPU 0  GPU 1", "       NIC 0"]
    alone = TOPOLOGY._replace(devices=TOPOLOGY.devices[:1], rows=(("X",),))
    assert list(lines_of(alone, 80))[-1] == "GPU 0   NVIDIA H100  01:00.0  0     0-3"
    none = TOPOLOGY._replace(devices=(), rows=())
    assert list(lines_of(none, 80))[-1] == ("No accelerator and no network card on a PCI bus.")
