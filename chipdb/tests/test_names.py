"""Names of others for our chips: each row's own example finds what the row means."""

import tomllib
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest

from probe_chipdb.database import Database
from probe_chipdb.facts import DRIVERS, Query
from probe_chipdb.name_lookup import has_codename
from probe_chipdb.rules import built
from probe_chipdb.spelling import normalise
from probe_chipdb.tools.check import check

DATA = Path(__file__).parents[1] / "data"
NAMES = {
    f"{file.stem}/{text}": entry
    for file in sorted((DATA / "names").glob("*.toml"))
    for text, entry in tomllib.loads(file.read_text()).items()
}


def named(real: Database, name: str) -> list[str]:
    """Return the ids of the chips that a name means, one or several."""
    match = real.match(name=name)
    return [chip.id for chip in ((match.chip,) if match.chip else match.candidates)]


def answer(db: Database, name: str, facts: dict[str, Any]) -> tuple[object, ...]:
    match = db.match(name=name, **facts)
    conflicts = [conflict.replace(repr(name), "") for conflict in match.conflicts]
    reason = (match.reason or "").replace(repr(name), "")
    found = (match.chip, match.candidates, match.parents, match.by, match.confidence)
    return (*found, conflicts, reason, match.units, match.profile, match.virtual)


# With a blank behind it, a name is no longer the very text that the table has read.


@pytest.mark.parametrize("kind", DRIVERS)
def test_the_table_has_read_own_names_as_the_rules_do(kind: str, real: Database) -> None:
    names = {name for chip in real.chips() for name in (chip.name, *chip.aliases)}
    own = [name for name in names if real.own_name(name)]
    assert len(own) > 3000
    for name in own:
        by_row, by_rules = (
            Query(name=text, name_kind=kind).read_name(real) for text in (name, f"{name} ")
        )
        by_rules.name = name
        read = [(getattr(by_row, slot), getattr(by_rules, slot)) for slot in Query.__slots__]
        assert not [pair for pair in read if pair[0] != pair[1]], name


@pytest.mark.parametrize(
    ("name", "row"),
    [
        ("NVIDIA GeForce RTX 4090", "nvidia geforce rtx 4090"),
        ("Tesla V100-SXM2-16GB", " tesla v100 sxm2 16gb"),
        ("Immortalis-G715 MC11", None),  # counts cores
        ("Intel(R) UHD Graphics", None),  # no product's
        ("Cyan Skillfish [BC-250]", None),  # as pci.ids writes, where a driver prints no brackets
        ("NVIDIA GeForce RTX 4090 ", None),
        ("", None),
    ],
)
def test_the_table_has_own_names_that_tell_a_product_alone(
    name: str, row: str | None, real: Database
) -> None:
    assert real.own_name(name) == row


@pytest.mark.heavy
def test_the_rules_of_names_agree_with_each_name_of_the_chip_of_an_id(real: Database) -> None:
    chips = [chip for chip in real.chips() if chip.pci]
    assert len(chips) > 500
    for chip, kind in zip(chips, cycle(DRIVERS), strict=False):
        device, _, revision = chip.pci[0].partition("@")
        device, _, subsystem = device.partition("/")
        facts = {"pci": device, "subsystem": subsystem, "revision": revision, "name_kind": kind}
        for name in (chip.name, *chip.aliases):
            assert answer(real, name, facts) == answer(real, f"{name} ", facts), (chip.id, name)


@pytest.mark.parametrize(
    ("live", "confidence"),
    [
        ({"gfx": "gfx942", "memory": 192 << 30}, "high"),
        ({"vendor": "nvidia"}, "high"),
        ({"gfx": "gfx1100"}, "medium"),
        ({"gfx": "gfx1100", "memory": 8 << 30}, None),
    ],
)
def test_an_own_name_hides_no_conflict(
    live: dict[str, object], confidence: str | None, real: Database
) -> None:
    name, facts = "AMD Instinct MI300X", {"pci": "1002:74a1", **live}
    assert answer(real, name, facts) == answer(real, f"{name} ", facts)
    assert answer(real, name, facts)[4] == confidence


@pytest.mark.parametrize("text", NAMES)
def test_an_example_finds_what_its_row_means(text: str, real: Database) -> None:
    means, example = NAMES[text]["means"], NAMES[text]["example"]
    match = real.match(name=example, name_kind="vulkan" if text.startswith("mesa/") else "name")
    chips = (match.chip,) if match.chip else match.parents or match.candidates
    assert chips
    if "/" in means[0]:
        assert sorted(chip.id for chip in chips) == sorted(means)
    else:
        assert all(has_codename(chip, tuple(means)) for chip in chips)


@pytest.mark.parametrize(
    ("line", "ids"),
    [
        ("VideoProcessor : NVIDIA GeForce GTX 1660 SUPER", "nvidia/geforce-gtx-1660-super"),
        ("TresPerNode=gres:gpu:mi210:4", "amd/instinct-mi210"),
        ("device: 'QUALCOMM Adreno(TM) 750 (OpenCL 3.0)'", "qualcomm/adreno-750"),
        # A part that says more of the product belongs to its name.
        ("board=RTX 4090, (Laptop)", "nvidia/geforce-rtx-4090-laptop-gpu"),
        ("board=RTX 4090, Ti", ""),
        ("board=RTX 4090, 48 GB", ""),
        # Words that are also others', two products, two devices, a die that is another's.
        ("case: Corsair, h1", ""),
        ("RTX 4090: or, RTX 4080", ""),
        ("GPUs: NVIDIA GeForce RTX 5070 Ti, AMD Radeon(TM) Graphics", ""),
        ("RTX 4090 (GB202)", ""),
        ("cpu=AMD Ryzen 9 7950X, gpu=NVIDIA GeForce RTX 4090", "nvidia/geforce-rtx-4090"),
    ],
)
def test_one_part_of_a_line_names_the_product(line: str, ids: str, real: Database) -> None:
    assert named(real, line) == ids.split()


@pytest.mark.parametrize(
    ("name", "ids"),
    [
        ("NVIDIA Corporation GM108M [GeForce 940MX]", "nvidia/geforce-940mx"),
        ("NVIDIA Corporation GM107M [GeForce 940MX]", "nvidia/geforce-940mx-gm107"),
        (
            "Intel Corporation Raptor Lake-P [Iris Xe Graphics]",
            "intel/iris-xe-graphics-raptor-lake-p intel/iris-xe-graphics-raptor-lake-u",
        ),
    ],
)
def test_the_die_before_a_bracket_narrows_the_product(name: str, ids: str, real: Database) -> None:
    assert named(real, name) == ids.split()


@pytest.mark.parametrize(
    ("title", "chip"),
    [
        ("Sapphire 11349-03-20G NITRO+ Radeon RX 9070 XT 16GB", "amd/radeon-rx-9070-xt"),
        ("PNY GeForce RTX 4070 Loud 12GB", "nvidia/geforce-rtx-4070"),
        ("PNY GeForce RTX 4090 Ti Loud", ""),  # never sold
        ("ASUS ROG Zephyrus G16 RTX 4090", ""),  # a laptop's, which its title does not say
        ("ASUS ROG Zephyrus RTX 4070 Laptop GPU", "nvidia/geforce-rtx-4070-laptop-gpu"),
    ],
)
def test_a_maker_s_own_words_say_nothing_of_the_product(
    title: str, chip: str, real: Database
) -> None:
    match = real.match(name=title)
    assert (match.chip.id if match.chip else "") == chip
    assert match.candidates == ()


def test_words_that_tell_products_apart_are_no_maker_s_own(real: Database) -> None:
    """What a title may lose behind a product's number is no word of any product's name there."""
    rules = built()
    known = {*rules.set("product_word"), *rules.roles(), *rules.set("board_line"), "series", "and"}
    lost = set()
    for chip in real.chips():
        name = normalise(chip.name).partition(" (")[0]
        words = name.split() if name.startswith(rules.set("title_brand")) else []
        first = next((at for at, word in enumerate(words) if not word.isalpha()), len(words))
        lost |= {word for word in words[first + 1 :] if word.isalpha() and word not in known}
    assert lost == set()


ROW = '[x1]\nmeans = ["acme/fast-1"]\nexample = "x1.48xlarge"\n'


@pytest.mark.parametrize(
    ("row", "fault"),
    [
        (ROW, ""),
        (ROW.replace("acme/fast-1", "acme/fast-none"), "example: the example 'x1.48xlarge' finds"),
        (ROW.replace("x1.48xlarge", "x1"), "example: the example 'x1' finds"),
        (ROW.replace("[x1]", '["X 1"]'), "is no entry; write [a-lower-case-name]"),
        (ROW.replace('example = "x1.48xlarge"\n', ""), "example: is missing"),
        ("x1 = 3\n", "is no entry; write [a-lower-case-name]"),
    ],
)
def test_the_check_looks_each_example_up(row: str, fault: str, data: Path) -> None:
    (data / "names").mkdir()
    (data / "names/amazon.toml").write_text(row)
    errors = [str(problem) for problem in check(str(data)).problems if problem.level == "error"]
    assert len(errors) == bool(fault)
    assert all(error.startswith("names/amazon.toml: [") and fault in error for error in errors)


def test_an_entry_without_a_size_has_one_that_is_sold(db: Database) -> None:
    sizes = [*range(100), 127, 128, 129, 191, 192, 193, *range(255, 290), 511, 512, 513]
    chips = {size: db.match(name=f"Acme Fast OEM {size}GB").chip for size in sizes}
    assert [size for size, chip in chips.items() if chip] == [
        *range(1, 7), 8, 10, 11, 12, 16, 18, 20, 24, 32, 36, 40, 48, 64, 72, 80, 94, 96, 128, 192,
        256, 288, 512,
    ]  # fmt: skip
