"""Compute capability alone does not fix the rates: the product class does, or only shared ones."""
# ruff: noqa: E501 - rows are whole sentences, as they are printed

import pytest

from probe_chipdb.database import Database
from probe_chipdb.peaks import Arch


@pytest.mark.parametrize(
    ("facts", "id_", "reason"),
    [
        ({"compute_capability": "8.9", "name": "Fast 7"}, "one", "compute capability 8.9, and the product class of 'fast 7'"),
        ({"compute_capability": "8.9", "name": "Pro 9"}, "two", "product class"),
        ({"compute_capability": "8.9", "name": "Big Edition"}, "two", "product class"),
        ({"compute_capability": "8.9", "name": "Other"}, "one+two", "only shared rates count"),
        ({"compute_capability": "8.9"}, "one+two", "covers one, two"),
        ({"gfx": "gfx1100"}, "three", "gfx target gfx1100"),
        ({"gfx": "gfx1100:xnack-"}, "three", "gfx target"),
        ({"gpu_id": "arm:0xa867"}, "three", "id arm:0xa867"),
        ({"dt": ("foo,bar", "beta,three")}, "three", "compatible beta,three"),
        ({"metal_family": "apple1"}, "vague", "Metal family apple1"),
        ({"pci": "BEEF:0001"}, "vague", "PCI id"),
    ],
)  # fmt: skip
def test_found(db: Database, facts: dict[str, str], id_: str, reason: str) -> None:
    arch, why = db.arch_for(**facts)
    assert arch is not None
    assert arch.id == id_
    assert reason in why


@pytest.mark.parametrize(
    "facts", [{}, {"compute_capability": "1.0"}, {"gfx": "gfx1"}, {"name": "Fast 7"}]
)
def test_not_found(db: Database, facts: dict[str, str]) -> None:
    assert db.arch_for(**facts) == (
        None,
        "no architecture of the table matches what the driver reports",
    )


def test_shared_rates(db: Database) -> None:
    joint = db.arch("one+two")
    assert isinstance(joint, Arch)
    assert joint.rates == {"fp32.vector.fp32": 256}
    assert (joint.family, joint.unit, joint.confidence) == ("one", "SM", "derived")
    assert joint.sparse_keys == frozenset()


def test_derive(db: Database) -> None:
    peaks = db.derive("one+two", units=10, clock_mhz=1000, clock="max", source="NVML")
    assert [(p.rate, round(p.tflops, 9), p.clock, p.confidence) for p in peaks] == [
        ("fp32.vector.fp32", 2.56, "max", "derived")
    ]
    assert peaks[0].source == (
        "10 SM x 256 op/clk x 1000 MHz max; rates [book]; only the rates that all of them share, "
        "counts and clock [NVML]"
    )
    assert db.derive("three", units=10, clock_mhz=1000)[0].confidence == "measured"


@pytest.mark.parametrize(
    ("arch", "units", "mhz"),
    [
        ("none", 1, 1000),
        ("one", None, 1000),
        ("one", 0, 1000),
        ("one", 1, None),
        ("vague", 1, 1000),
    ],
)
def test_derive_needs_everything(
    db: Database, arch: str, units: int | None, mhz: float | None
) -> None:
    assert db.derive(arch, units=units, clock_mhz=mhz) == ()


@pytest.mark.parametrize(
    ("gfx", "id_"),
    [
        ("gfx1154", "rdna35-gfx1154"),
        ("gfx1170", "rdna4m"),
        ("gfx1172", "rdna4m"),
        ("gfx1310", "rdna5"),
    ],
)
def test_a_target_of_2026_has_a_name_and_no_other_rates(real: Database, gfx: str, id_: str) -> None:
    arch, why = real.arch_for(gfx=gfx)
    assert arch is not None
    assert (arch.id, arch.rates, why) == (id_, {}, f"gfx target {gfx}")
    assert real.derive(arch.id, units=16, clock_mhz=2900) == ()
