"""Shares of a card name the card and their profile; a virtual machine's view names the host's."""

import pytest

from probe_chipdb.database import Database
from probe_chipdb.exclusions import share_in
from probe_chipdb.name_facts import facts_in


@pytest.mark.parametrize(
    ("name", "parent", "profile"),
    [
        ("NVIDIA-H100-80GB-HBM3-MIG-1g.10gb", "nvidia/h100-sxm5-80gb", "1g.10gb"),
        ("NVIDIA A100-SXM4-80GB MIG 3g.40gb", "nvidia/a100-sxm4-80gb", "3g.40gb"),
        ("NVIDIA-A100-SXM4-80GB-MIG-3g.40gb-SHARED", "nvidia/a100-sxm4-80gb", "3g.40gb"),
        ("NVIDIA H100 NVL MIG 1c.2g.24gb", "nvidia/h100-nvl", "1c.2g.24gb"),
        ("NVIDIA H200 MIG 1g.18gb+me", "nvidia/h200-sxm5-141gb", "1g.18gb+me"),
        ("NVIDIA-L40S-SHARED", "nvidia/l40s", "shared"),
        ("GRID V100D-8Q", "nvidia/tesla-v100-pcie-32gb", "8Q"),
        ("GRID A100DX-7-80C", "nvidia/a100-sxm4-80gb", "80C"),
        ("NVIDIA H100L-94C", "nvidia/h100-nvl", "94C"),
        ("NVIDIA H200X-141C", "nvidia/h200-sxm5-141gb", "141C"),
        ("NVIDIA RTX Pro 6000 Blackwell DC-96Q", "nvidia/rtx-pro-6000-blackwell-server-edition",
         "96Q"),
        ("MIG 1g.10gb Device 0: (UUID: MIG-c7)", None, "1g.10gb"),
        ("1g.10gb", None, "1g.10gb"),
        ("gpu:nvidia_a100_80gb_pcie_1g.10gb:1", "nvidia/a100-80gb-pcie", "1g.10gb"),
        ("nvidia_h100_80gb_hbm3_1g.10gb", "nvidia/h100-sxm5-80gb", "1g.10gb"),
        ("nvidia.com/mig-3g.40gb", None, "3g.40gb"),
        ("GRID A100-1-5C MIG 1g.5gb", "nvidia/a100-pcie-40gb", "1g.5gb"),
        ("NVIDIA RTX5000-Ada-32Q", "nvidia/rtx-5000-ada-generation", "32Q"),
    ],
)  # fmt: skip
def test_a_share_names_its_card(
    real: Database, name: str, parent: str | None, profile: str
) -> None:
    match = real.match(name=name)
    assert (match.chip, match.candidates) == (None, ())
    assert (match.parent.id if match.parent else None) == parent
    assert match.profile == profile
    assert "a share of a card, not the card" in (match.reason or "")


def test_a_share_of_one_of_several_cards_lists_them(real: Database) -> None:
    match = real.match(name="GRID RTX6000-24Q")
    assert match.parent is None
    assert len(match.parents) == 2


def test_the_cards_pci_id_is_the_parents(real: Database) -> None:
    match = real.match(pci="10de:2330", name="MIG 1g.10gb")
    assert match.parent is not None
    assert match.parent.id == "nvidia/h100-sxm5-80gb"


@pytest.mark.parametrize(
    "name", ["HL-225B", "NVIDIA L4", "1g", "g.10gb", "1g.gb", "a.b.c", "-", ""]
)
def test_no_share(name: str) -> None:
    assert share_in(facts_in(name)) is None


def test_a_virtual_machine_sees_the_hosts_chip(real: Database) -> None:
    for name in (
        "Virtio-GPU Venus (NVIDIA GeForce RTX 4060)",
        "virgl (GeForce RTX 4060/PCIe/SSE2)",
    ):
        match = real.match(pci="1af4:1050", name=name)
        assert match.chip is not None
        assert (match.chip.id, match.virtual) == ("nvidia/geforce-rtx-4060", True)
    assert not real.match(name="NVIDIA GeForce RTX 4060").virtual


def test_a_software_renderer_stays_none_behind_a_host(real: Database) -> None:
    match = real.match(name="Virtio-GPU Venus (llvmpipe (LLVM 20.1.2, 256 bits))")
    assert match.chip is None
    assert "renderer in software" in (match.reason or "")
    assert facts_in("virgl (unclosed")["host"] == "unclosed"
