"""Computers that nobody has probed: the grammar, what is sold, and what is asked back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import probe_chipdb
from probe_cluster import ClusterError, Links, Member
from probe_cluster.planning.links import KINDS
from probe_cluster.planning.reading import read_members
from probe_cluster.planning.whatif import table, what_if
from probe_core.cli import main

GIB = 1 << 30
Home = dict[str, dict[str, Any]]


def members(*groups: str, links: Links | None = None) -> dict[str, Member]:
    return {each.id: each for each in read_members([], have=groups, links=links)}


@pytest.mark.parametrize(
    ("group", "nodes"),
    [
        # node → (GB of memory, GB/s, class of efficiency, equal devices)
        ("Mac Studio M3 Ultra 512GB", {"mac-studio-m3-ultra": (384, 819, "apple-m3", 1)}),
        ("mac studio m3 ultra 96gb", {"mac-studio-m3-ultra": (72, 819, "apple-m3", 1)}),
        ("Mac Studio M4 Max 36GB", {"mac-studio-m4-max": (27, 410, "apple-m3", 1)}),
        ("MacBook Pro M4 Max 128 GB", {"macbook-pro-m4-max": (96, 546, "apple-m3", 1)}),
        ("M2 Ultra 192GB", {"mac-studio-m2-ultra": (144, 819, "apple-m1-m2", 1)}),
        ("2x Mac mini M4 Pro 64GB", {
            "mac-mini-m4-pro-1": (48, 273, "apple-m3", 1),
            "mac-mini-m4-pro-2": (48, 273, "apple-m3", 1),
        }),
        ("DGX Spark", {"dgx-spark": (121.6, 273, "unified", 1)}),
        # M1 Pro is no M1, and no M1 Max
        ("MacBook Pro M1 Pro 16GB", {"macbook-pro-m1-pro": (12, 204.8, "apple-m1-m2", 1)}),
        ("M2 Pro 32GB", {"macbook-pro-m2-pro": (24, 204.8, "apple-m1-m2", 1)}),
        ("MacBook Pro M3 Pro 36GB", {"macbook-pro-m3-pro": (27, 153.6, "apple-m3", 1)}),
        ("M4 24GB", {"mac-mini-m4": (18, 120, "apple-m3", 1)}),
        ("Mac Studio M4 128GB", {"mac-studio-m4-max": (96, 546, "apple-m3", 1)}),
        ("Framework Desktop Ryzen AI Max+ 395 128GB", {
            "framework-desktop": (110.08, 256, "apu", 1),
        }),
        ("2x (2x RTX 3090 + Threadripper 128GB), 100gbe", {
            "2x-geforce-rtx-3090-1": (48, 936, "gddr-old", 2),
            "2x-geforce-rtx-3090-2": (48, 936, "gddr-old", 2),
        }),
        # Two devices a card: the memory tells which are counted.
        ("4x MI250X 128GB", {"8x-instinct-mi250x": (512, 1638, "hbm-cdna", 8)}),
        ("2x K80 12GB", {"2x-tesla-k80": (24, 240, "gddr-pascal", 2)}),
        ("Strix Halo 128GB", {"framework-desktop": (110.08, 256, "apu", 1)}),
        ("Raspberry Pi 5 8GB", {"raspberry-pi-5": (7.2, 17, "cpu", 1)}),
        ("RTX 4090", {"geforce-rtx-4090": (24, 1008, "gddr-new", 1)}),
        ("4x RTX 3090 + Threadripper 128GB", {
            "4x-geforce-rtx-3090": (96, 936, "gddr-old", 4),
        }),
        ("L20", {"l20": (48, 864, "gddr-new", 1)}),
        ("RTX 4090 + i9-14900K 64GB", {"geforce-rtx-4090": (24, 1008, "gddr-new", 1)}),
        ("RTX 4090 + AMD Ryzen 9 7950X", {"geforce-rtx-4090": (24, 1008, "gddr-new", 1)}),
        ("RTX 4090 + Ryzen AI Max+ 395 128GB", {
            "framework-desktop": (110.08, 256, "apu", 1),
            "geforce-rtx-4090": (24, 1008, "gddr-new", 1),
        }),
        ("2× RTX 3090 + RTX 4090", {"2x-geforce-rtx-3090-geforce-rtx-4090": (
            72, 959, "gddr-old", 1,
        )}),
        ("8x H100 SXM", {"8x-h100-80gb-hbm3": (640, 3350, "hbm", 8)}),
        ("8x MI300X", {"8x-instinct-mi300x": (1536, 5300, "hbm-cdna", 8)}),
        ("DGX H200", {"dgx-h200": (1128, 4800, "hbm", 8)}),
        ("p5.48xlarge", {"p5-48xlarge": (640, 3350, "hbm", 8)}),
        ("2x p4d.24xlarge", {
            "p4d-24xlarge-1": (320, 1555, "hbm", 8), "p4d-24xlarge-2": (320, 1555, "hbm", 8),
        }),
        ("g5.12xlarge", {"g5-12xlarge": (96, 600, "gddr-old", 4)}),
        ("Standard_ND128isr_GB200_v6", {"standard-nd128isr-gb200-v6": (744, 8000, "hbm", 4)}),
        ("gpu_8x_h100_sxm5", {"gpu-8x-h100-sxm5": (640, 3350, "hbm", 8)}),
        # A card's form, and a link
        ("H100 PCIe", {"h100-pcie": (80, 2039, "hbm", 1)}),
        ("2x H100 PCIe", {"2x-h100-pcie": (160, 2039, "hbm", 2)}),
        ("2x RTX 4090 pcie5", {"2x-geforce-rtx-4090": (48, 1008, "gddr-new", 2)}),
        ("gpu_1x_h100_pcie", {"gpu-1x-h100-pcie": (80, 2039, "hbm", 1)}),
        ("Mac mini M4 Pro 24GB + DGX Spark", {
            "mac-mini-m4-pro": (18, 273, "apple-m3", 1),
            "dgx-spark": (121.6, 273, "unified", 1),
        }),
    ],
)  # fmt: skip
def test_what_people_write(group: str, nodes: dict[str, tuple[float, float, str, int]]) -> None:
    found = members(group)
    assert list(found) == list(nodes)
    for name, (gib, gbs, class_, equal) in nodes.items():
        own = found[name]
        assert sum(own.usable("available")) / GIB == pytest.approx(gib, rel=0.01)
        assert (own.bandwidth or 0) / 1e9 == pytest.approx(gbs, rel=0.01)
        assert (own.class_, own.equal) == (class_, equal)
        assert own.reasons["origin"].startswith("not probed, figures of the maker: ")


@pytest.mark.parametrize(
    ("group", "sentence"),
    [
        ("Mac Studio M3 Ultra", "Mac Studio M3 Ultra is sold with 96, 256 or 512 GB: say which"),
        ("Mac Studio M3 Ultra 1TB", "is not sold with 1024 GB, but with 96, 256 or 512 GB"),
        ("Mac Studio", "'Mac Studio' may be one of Mac Studio M4 Max, Mac Studio M3 Ultra"),
        ("A100", "'A100' may be one of NVIDIA A100 80GB PCIe, NVIDIA A100-PCIE-40GB"),
        ("RTX 4090 16GB", "NVIDIA GeForce RTX 4090 has 24 GB, not 16"),
        ("RTX 4090 23GB", "NVIDIA GeForce RTX 4090 has 24 GB, not 23"),
        ("RTX 4090 25GB", "NVIDIA GeForce RTX 4090 has 24 GB, not 25"),
        ("1001x RTX 4090", "describes no computer: .*at most 1000 of a kind"),
        ("2x 4x RTX 3090", r"'4x RTX 3090' may be several cards: .* as 2x \(4x RTX 3090\)"),
        ("RTX 4090 24GB 2x", "'RTX 4090 24GB 2x' may be several cards"),
        ("2x HGX H200", "'HGX H200' may be several cards: write their number first, as in 8x H200"),
        ("GB200 NVL72", "'GB200 NVL72' may be several cards"),
        ("4x MI250X", "has 2 devices of 64 GB: write 4x MI250X 128GB for cards, 64GB for devices"),
        ("MI250X 100GB", "AMD Instinct MI250X has 64 GB, not 100"),
        ("RTX 4099", "'RTX 4099' is no machine and no card that is known; close: NVIDIA GeForce"),
        ("Mac Stduio M3 Ultra 96GB", "is no machine .*; close: Mac Studio M3 Ultra"),
        ("Threadripper 128GB", "'Threadripper' is a host without cards: write them first"),
        ("0x RTX 4090", "'0x RTX 4090' describes no computer: write 2x Mac Studio"),
        ("99999x RTX 4090", "describes no computer: .*at most 1000 of a kind"),
        ("", "'' describes no computer"),
        ("2x", "'2x' describes no computer"),
        ("2x ()", r"'2x \(\)' describes no computer"),
        ("日本", "'日本' describes no computer"),
        (
            "A100 PCIe",
            "'A100 PCIe' may be one of NVIDIA A100 80GB PCIe, NVIDIA A100-PCIE-40GB: say",
        ),
        ("RTX 4090, string", "'string' is no kind of link"),
        ("ecs.gn7i-c8g1.2xlarge", "how many NVIDIA A10 it has: write 4x nvidia/a10"),
        ("gpu_1x_a100", "'A100' may be one of NVIDIA A100 80GB PCIe"),
        ("DGX H100 80GB", "DGX H100 is known with the memory of its cards alone"),
    ],
)
def test_what_is_unknown_or_ambiguous_is_asked_back(group: str, sentence: str) -> None:
    with pytest.raises(ClusterError, match=sentence):
        what_if([group])


def test_a_link_joins_the_nodes_of_its_group_alone() -> None:
    links = Links()
    found = members("2x Mac mini M4 Pro 64GB, tb5", "2x DGX Spark, roce", links=links)
    assert len(found) == 4
    assert {pair: link.kind for pair, link in links.named().items()} == {
        ("mac-mini-m4-pro-1", "mac-mini-m4-pro-2"): "thunderbolt5",
        ("dgx-spark-1", "dgx-spark-2"): "roce",
    }


@pytest.mark.parametrize(
    ("group", "model", "chip", "shares", "inner", "gib", "gbs", "origin"),
    [
        ("2x H100 SXM", "2x H100 80GB HBM3", "NVIDIA H100 80GB HBM3", (2, 2), "nvlink4",
         (80, 80), 3350, "the chip database"),
        ("2x A100 PCIe 80GB", "2x A100 80GB PCIe", "NVIDIA A100 80GB PCIe", (2, 2), "pcie4",
         (80, 80), 1935, "the chip database"),
        ("2x MI300X", "2x Instinct MI300X", "AMD Instinct MI300X", (2, 2), "xgmi",
         (192, 192), 5300, "the chip database"),
        ("2x RTX 4090", "2x GeForce RTX 4090", "NVIDIA GeForce RTX 4090", (1, 2), "pcie4",
         (24, 24), 1008, "the chip database"),
        ("RTX 4090 + RTX 3090", "GeForce RTX 4090 GeForce RTX 3090", "NVIDIA GeForce RTX 4090",
         (1, 1), "pcie4", (24, 24), 970.667, "the chip database"),
        ("DGX Spark", "DGX Spark", "NVIDIA GB10", (1, 1), "pcie4", (121.6,), 273,
         "NVIDIA DGX Spark datasheet (recalled): ConnectX-7, 200 Gbit/s; ports: roce, 10gbe"),
    ],
)  # fmt: skip
def test_a_described_computer_as_a_member(
    group: str,
    model: str,
    chip: str,
    shares: tuple[int, int],
    inner: str,
    gib: tuple[float, ...],
    gbs: float,
    origin: str,
) -> None:
    (own,) = read_members([], have=[group])
    assert (own.model, own.chip, own.width, own.equal) == (model, chip, *shares)
    assert own.inner.kind == inner
    assert own.pools == tuple(round(each * GIB) for each in gib)
    assert own.memory == own.available == sum(own.pools)
    assert own.bandwidth == pytest.approx(gbs * 1e9, rel=1e-6)
    assert own.reasons["origin"] == f"not probed, figures of the maker: {origin}"


def test_cards_of_a_server_are_joined_by_what_it_has() -> None:
    found = members("8x H100 SXM", "4x RTX 4090", "8x MI300X", "DGX A100")
    kinds = [each.inner.kind for each in found.values()]
    assert kinds == ["nvlink4", "pcie4", "xgmi", "nvlink3"]


def test_a_file_of_lines_and_reports_beside(
    home: Home, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    desk, wish = tmp_path / "desk.json", tmp_path / "wish.txt"
    desk.write_text(json.dumps(home["desk"]))
    wish.write_text("# the next one\nMac Studio M3 Ultra 96GB  # refurbished\n\nRTX 5090\n")
    asked = ["partition", str(desk), "--have", str(wish), "--model", "llama-3.1-8b", "--bits", "q4"]
    assert main([*asked, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["engine"]["nodes"] == ["desk", "mac-studio-m3-ultra", "geforce-rtx-5090"]
    assert main(["fit", "llama-3.1-8b", "--have", "RTX 4090", "--bits", "q4"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("geforce-rtx-4090: yes: ")
    assert "geforce-rtx-4090: not probed, figures of the maker: the chip database" in printed


def test_every_machine_of_the_table_is_complete() -> None:
    database = probe_chipdb.load()
    for machine in table()["machine"]:
        assert machine["source"], machine["name"]
        chips = [machine.get("chip"), *machine.get("chips", {}).values()]
        for id_ in filter(None, chips):
            chip = database.chip(id_)
            assert chip is not None, id_
            assert chip.bandwidth, id_
        assert all(port in KINDS for port in machine["ports"]), machine["name"]
        if machine["kind"] == "cards":
            found = what_if([machine["name"]])
            assert len(found) == 1
            continue
        assert set(machine.get("chips", {})) <= set(map(str, machine["memory"]))
        for memory in machine["memory"]:
            (report,) = what_if([f"{machine['name']} {memory}GB"]).values()
            assert report["node"]["memory"]["total"] == memory * GIB
    for id_ in table()["cards"].values():
        assert database.chip(id_) is not None


@pytest.mark.parametrize(
    ("group", "plain"),
    [
        ("two RTX 3090", "2x RTX 3090"),
        ("an RTX 3090", "RTX 3090"),
        ("single RTX 3090", "RTX 3090"),
        ("one RTX 3090", "RTX 3090"),
        ("three RTX 3090", "3 x RTX 3090"),
        ("eleven RTX 3090", "11× RTX 3090"),
        ("Twelve x RTX 3090", "12 RTX 3090"),
        ("RTX 3090 x4", "4*RTX 3090"),
        ("RTX 4090 24 gib", "RTX 4090 24GB"),
        ("dual RTX 3090", "2x RTX 3090"),
        ("a Mac mini M4 Pro 64GB", "Mac mini M4 Pro 64GB"),
        ("2x RTX 3090 nvlink", "2x RTX 3090, nvlink"),
        ("two RTX 3090 with an nvlink", "2x RTX 3090, nvlink"),
        ("RTX 3090 nvlink", "RTX 3090, nvlink"),
        ("2x DGX Spark via 200gbe", "2x DGX Spark, 200gbe"),
        ("2x Mac Studio M3 Ultra 256GB over thunderbolt 5", "2x Mac Studio M3 Ultra 256GB, tb5"),
        ("7900XTX", "RX 7900 XTX"),
        ("GH200 480GB", "nvidia/gh200-480gb"),
    ],
)
def test_words_that_mean_the_same(group: str, plain: str) -> None:
    links, plain_links = Links(), Links()
    assert what_if([group], links) == what_if([plain], plain_links)
    assert {k: v.kind for k, v in links.named().items()} == {
        k: v.kind for k, v in plain_links.named().items()
    }


def test_memory_behind_a_name_selects_the_card_or_is_asked_for() -> None:
    (own,) = members("MI50 32GB").values()
    assert own.memory == 32 * GIB
    (smaller,) = members("A100 SXM 40GB").values()
    assert smaller.chip == "NVIDIA A100-SXM4-40GB"
    with pytest.raises(ClusterError, match="MI50 is sold with 16 or 32 GB: say which"):
        what_if(["MI50"])
    with pytest.raises(ClusterError, match="MI50 is not sold with 24 GB, but with 16 or 32 GB"):
        what_if(["MI50 24GB"])


def test_a_host_is_no_machine_of_a_longer_name() -> None:
    (own,) = members("RTX 5090 + Ryzen 64GB").values()
    assert (own.chip, own.memory) == ("NVIDIA GeForce RTX 5090", 32 * GIB)


@pytest.mark.parametrize(
    ("devices", "line"),
    [
        ("primary", "what-if:1  24.0 GiB  32 of 32"),
        ("cpu", "cpu:0   128.0 GiB  32 of 32"),
        ("what-if:0", "what-if:0  12.0 GiB  24 of 32"),
    ],
)
def test_devices_of_a_described_computer_can_be_chosen(
    devices: str, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    have = "RTX 3060 12GB + RTX 4090 + Threadripper 128GB"
    assert main(["fit", "llama-3.1-8b", "--have", have, "--devices", devices]) == 0
    assert line in capsys.readouterr().out.splitlines()


def test_the_processor_of_a_described_computer_needs_its_memory(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["fit", "8b", "--have", "Mac mini M4 Pro 64GB", "--devices", "cpu"]) == 0
    assert "cpu:0   64.0 GiB  32 of 32" in capsys.readouterr().out.splitlines()
    assert main(["fit", "8b", "--have", "RTX 4090", "--devices", "cpu"]) == 2
    assert "the report has no memory of this node" in capsys.readouterr().err


@pytest.mark.parametrize("card", ["RTX 4090", "RTX 5090", "L40S", "RTX PRO 6000"])
def test_cards_without_a_connector_have_no_nvlink(card: str) -> None:
    chip = what_if([f"2x {card}"]).popitem()[1]["devices"][0]["name"]
    found = probe_chipdb.load().match(name=chip).chip
    assert found is not None
    assert found.interconnect is not None
    kind = found.interconnect[0]
    with pytest.raises(ClusterError, match=f"has no connector for nvlink: .* over {kind};"):
        what_if([f"2x {card}, nvlink"])


@pytest.mark.parametrize(
    ("group", "sentence"),
    [
        ("2x RTX 4090, xgmi", "has no xgmi; leave the link out"),
        ("2x RTX 4090, 10gbe", "10gbe joins several computers, and .* is one: name the link by"),
    ],
)
def test_a_link_that_the_cards_of_a_computer_cannot_have(group: str, sentence: str) -> None:
    with pytest.raises(ClusterError, match=sentence):
        what_if([group])
