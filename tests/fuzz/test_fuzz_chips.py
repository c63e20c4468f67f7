"""Chips: files of a site or a vendor, the built table, and every word that a driver may say."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from foreign import CHANCES, Chance, write_files
from hypothesis import given

from probe_chipdb import KINDS, Database, packages, table
from probe_core.resolve import open_chipdb

DATA = Path(__file__).parents[2] / "chipdb" / "data"
EXAMPLE = (DATA.parent / "examples/probe-chips-acme/src/acme_chips/x-series.toml").read_bytes()
CPU = (DATA / "arch" / "cpu.toml").read_bytes()[:3000]
SMALL = (
    b'[family]\ntitle = "One"\nvendor = "acme"\n\n[[chip]]\nid = "acme/one"\nname = "One"\n'
    b'arch = "ada"\nunits = 5\npci = ["10de:2684"]\nclock = { boost = 1500 }\n'
    b'memory = { gib = 24, type = "GDDR6X", bus = 384, gbs = 1008 }\nsource = ["acme-docs"]\n'
)
TEXTS = {name: (Path(table.__file__).parent / "table" / name).read_bytes() for name in table.FILES}
CHIPS = Database(table.built())
SAID = (
    "NVIDIA GeForce RTX 4090 AMD Radeon RX 7900 XTX Graphics (RADV NAVI31) Mali-G610 MC4 Apple M3"
    " Max Intel(R) Arc(TM) A770 [10de:2684] (rev a1) 10de:2684 1043:889a PCI\\VEN_10DE&DEV_2684"
    " pci:v000010DEd00002684sv arm:0xa867 rockchip,rk3588-mali gfx1100 8.9 80GB Laptop GPU Max-Q"
    " nvidia amd ada GRID V100D-8Q AuthenticAMD GenuineIntel Xeon(R) Gold 6 158 0x41 0xd0b"
).split()


@pytest.mark.heavy
@given(CHANCES)
def test_chip_files(tmp_path: Path, chance: Chance) -> None:
    path = tmp_path / "chips.toml"
    path.write_bytes(chance.mutate(EXAMPLE, SMALL, SMALL, CPU))
    database, findings = open_chipdb([str(path)])
    assert {finding["code"] for finding in findings} <= {"chip-file-unusable"}
    assert database is not None
    assert all(problem for problem in database.problems)
    for chip in (database.match(pci="10de:2684").chip, database.chip("acme/one")):
        assert chip is None or isinstance(chip.peaks(), tuple)


@pytest.mark.heavy
@given(CHANCES)
def test_built_tables(tmp_path: Path, chance: Chance) -> None:
    """A table that is no table is refused when it is opened; the core tells and goes on."""
    start = b"#probe-chipdb 1 2026.11.0\n" + TEXTS["index.txt"].partition(b"\n")[2][:2000]
    files = {**dict.fromkeys(table.FILES, b""), "index.txt": start}
    found = chance.files(files)
    write_files(tmp_path / "table", found)
    try:
        one = table.from_folder(str(tmp_path / "table"))
    except OSError:
        return
    assert one.version


@pytest.mark.heavy
@given(CHANCES)
def test_what_drivers_say(chance: Chance) -> None:
    words = {
        key: chance.words(SAID, chance.choice([" ", " ", "", ":", "-"]))
        for key in "pci subsystem revision gpu_id arch compute_capability gfx vendor name".split()
        if chance.random() < 0.4
    }
    match = CHIPS.match(
        **words,  # type: ignore[arg-type]
        dt=chance.sample(SAID, 2),
        units=chance.choice([None, None, 0, 128, -1, 1 << 63]),
        memory=chance.choice([None, None, 0, 24 << 30, -1, 1 << 63]),
        name_kind=chance.choice(KINDS),
    )
    assert match.chip is not None or match.reason
    json.dumps([peak.as_json() for peak in match.shared_peaks()])


@pytest.mark.heavy
@given(CHANCES)
def test_what_processors_say(chance: Chance) -> None:
    numbers = chance.choices([None, 6, 158, -1, 10**400, "0x41", "0xd0b", "x", ""], k=4)
    match = CHIPS.cpu(
        vendor=chance.words(SAID),
        family=numbers[0],
        model=numbers[1],
        implementer=numbers[2],
        part=numbers[3],
        name=chance.words(SAID),
        flags=chance.sample(["sse2", "avx2", "asimd", "amx_bf16", "\0"], 2),
    )
    assert match.reason
    match.peaks(chance.choice([0, 8, -1]), chance.choice([0.0, 3700.0]))


@pytest.mark.heavy
@given(CHANCES)
def test_architectures(chance: Chance) -> None:
    keys = "compute_capability gfx name metal_family gpu_id pci".split()
    words = {key: chance.words(SAID) for key in keys if chance.random() < 0.4}
    arch, reason = CHIPS.arch_for(**words, dt=chance.sample(SAID, 2))  # type: ignore[arg-type]
    assert arch is not None or reason


@pytest.mark.heavy
@given(CHANCES)
def test_ids_that_nobody_gave(chance: Chance) -> None:
    word = chance.words([*SAID, "nvidia/geforce-rtx-4090", "+", "\t"], "")
    assert CHIPS.chip(word) is None or word == "nvidia/geforce-rtx-4090"
    assert CHIPS.source(word) is None
    CHIPS.arch(word)


@pytest.mark.heavy
@given(CHANCES)
def test_packages_of_vendors(tmp_path: Path, chance: Chance) -> None:
    entries = chance.mutate(b"[probe_core.chipdb.v1]\nacme = acme_chips\n[x]\ny = z\n")
    files = {"probe_acme-1.0.dist-info/entry_points.txt": entries, "acme_chips/x.toml": SMALL}
    site = write_files(tmp_path / "site", files)
    for one in packages.find([str(site), "", "\0", "/nowhere", "\ud800"]):
        assert one.folder or one.problem
