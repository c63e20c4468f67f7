"""Slices, virtual GPUs, software renderers and displays never become a chip."""

import pytest

from probe_chipdb.database import Database
from probe_chipdb.exclusions import exclusion, hosted_in
from probe_chipdb.name_facts import facts_in


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("GRID V100D-8Q", "profile 8Q"),
        ("GRID A100-7-40C", "profile 40C"),
        ("GRID T4-1B4", "profile 1B4"),
        ("NVIDIA A40-48Q", "profile 48Q"),
        ("A100-7-40C", "profile 40C"),
        ("NVIDIA RTX6000-Ada-48Q", "profile 48Q"),
        ("NVIDIA A100-SXM4-40GB MIG 1g.5gb", "MIG slice"),
        ("NVIDIA H100 80GB HBM3 MIG 3g.40gb", "MIG slice"),
        ("llvmpipe (LLVM 15.0.7, 256 bits)", "renderer"),
        ("Google SwiftShader", "renderer"),
        ("Microsoft Basic Render Driver", "renderer"),
        ("ASPEED Graphics Family", "display"),
        ("Matrox G200eW3", "display"),
        ("SVGA3D; build: RELEASE; LLVM;", "display"),
        ("virtio_gpu", "display"),
        ("Vega 20 HDMI Audio [Radeon VII]", "another function"),
        ("NVIDIA Corporation AD102 High Definition Audio Controller", "another function"),
        ("TU102 USB 3.1 Host Controller", "another function"),
    ],
)
def test_no_chip(name: str, text: str) -> None:
    assert text in exclusion(facts_in(name), "")


@pytest.mark.parametrize(
    "name",
    ["Tesla V100-DGXS-32GB", "HL-225B", "NVIDIA A100-SXM4-80GB", "Adreno X1-85",
     "GeForce RTX 2080 with Max-Q Design", "NVIDIA L4", "GRID K520", "AMD Radeon R9 M375 (Venus)"],
)  # fmt: skip
def test_real_products_pass(name: str) -> None:
    assert exclusion(facts_in(name), "") == ""


def test_a_share_of_a_card_is_not_found_by_the_cards_pci_id(db: Database) -> None:
    match = db.match(pci="aaaa:0001", name="NVIDIA Fast 1 MIG 1g.5gb")
    assert match.chip is None
    assert "MIG slice" in (match.reason or "")


@pytest.mark.parametrize("pci", ["1a03:2000", "102b:0522", "1b36:0100", "1af4:1050", "15ad:0405"])
def test_display_vendors(db: Database, pci: str) -> None:
    match = db.match(pci=pci)
    assert match.chip is None
    assert "a display, not an accelerator" in (match.reason or "")


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("Virtio-GPU Venus (NVIDIA L4)", "NVIDIA L4"),
        ("NVIDIA L4 of a host", "NVIDIA L4"),
        ("İ Virtio-GPU Venus (NVIDIA L4)", "nvidia l4"),  # "İ" in lower case is two letters
        ("Virtio-GPU Venus (L4)", "nvidia l4"),
    ],
)
def test_the_hosts_device_is_as_the_name_writes_it(name: str, written: str) -> None:
    assert hosted_in({"host": "nvidia l4"}, name) == written
    assert hosted_in({}, name) == ""
