"""What drivers and tools print, and what it must mean: no wrong answer, no needless unknown.

The tables are for people to extend: string, kind, the chip's id or "one of" or "unknown", and
where the string was seen. `\\t` and `\\\\` stand for themselves in a string.
"""

from pathlib import Path

import pytest

from probe_chipdb.database import Database

STRINGS = Path(__file__).parent / "strings"
Row = tuple[str, str, str]


def rows(*names: str) -> list[Row]:
    out = []
    for name in names:
        for line in (STRINGS / f"{name}.tsv").read_text(encoding="utf-8").splitlines():
            if not line.startswith("#"):
                text, kind, expected, _ = line.split("\t")
                out.append((text.replace("\\t", "\t").replace("\\\\", "\\"), kind, expected))
    return out


def meaning(db: Database, text: str, kind: str) -> str:
    match = db.match(name=text, name_kind=kind)
    if match.chip:
        return match.chip.id
    return "one of" if match.candidates else "unknown"


@pytest.mark.parametrize("table", ["names", "logs", "ids", "dt", "spelled"])
def test_every_string_means_what_the_table_says(real: Database, table: str) -> None:
    wrong = [
        (text, kind, expected, got)
        for text, kind, expected in rows(table)
        if (got := meaning(real, text, kind)) != expected
    ]
    assert wrong == []


@pytest.mark.parametrize("table", ["names", "logs"])
def test_without_its_kind_a_string_never_means_another_chip(real: Database, table: str) -> None:
    wrong = [
        (text, kind, expected, got)
        for text, kind, expected in rows(table)
        if (got := meaning(real, text, "name")) != expected and got not in ("one of", "unknown")
    ]
    assert wrong == []


def test_brand_strings_give_the_core(real: Database) -> None:
    wrong = []
    for text, _, expected in rows("cpuinfo"):
        arch = real.cpu(name=text).arch
        if (arch.id if arch else "unknown") != expected:
            wrong.append((text, expected, arch))
    assert wrong == []


def test_brand_strings_are_no_gpus(real: Database) -> None:
    """`Apple M3 Max` names both, and so does the APU among the Instincts; nothing else may."""
    confused = [
        text
        for text, _, _ in rows("cpuinfo")
        if real.match(name=text).chip and not text.startswith(("Apple", "AMD Instinct MI300A"))
    ]
    assert confused == []


@pytest.mark.heavy
@pytest.mark.parametrize("suffix", ["q7", " q7", "7q", " zz"])
def test_a_name_with_more_letters_is_never_the_product(real: Database, suffix: str) -> None:
    """No spelling rule goes by likeness: a letter more is another product, which is unknown."""
    mistaken = [
        (name, match.chip or match.candidates)
        for chip in real.chips()
        for name in (chip.name, *chip.aliases[:1])
        if "[" not in name and ")" not in name
        if (match := real.match(name=name + suffix)).chip or match.candidates
    ]
    assert mistaken == []


@pytest.mark.heavy
def test_a_name_with_a_memory_that_nobody_sold_is_never_the_product(real: Database) -> None:
    mistaken = [
        chip.id for chip in real.chips() if real.match(name=f"{chip.name} 7777GB").chip is not None
    ]
    assert mistaken == []


def answered(db: Database, text: str) -> str:
    """What a name is: a chip, one of several, unknown or none; and whether a share or virtual."""
    match = db.match(name=text)
    chips = match.parents if match.profile else match.candidates
    chip = match.parent if match.profile else match.chip
    refused = (match.reason or "").startswith("no chip of the table") and not match.profile
    what = chip.id if chip else "one of" if chips else "none" if refused else "unknown"
    return f"share {what}" if match.profile else f"virtual {what}" if match.virtual else what


@pytest.mark.heavy
def test_labels_lists_of_devices_types_of_machine_and_layers(real: Database) -> None:
    """Classes that were silent: each is answered, or refused as what it is."""
    table = rows("classes", "wild", "people")
    assert len(table) >= 1000
    wrong = [
        (text, expected, found)
        for text, _, expected in table
        if (found := answered(real, text)) != expected
    ]
    assert wrong == []


def test_the_tables_are_large_and_without_duplicates() -> None:
    strings = rows("names", "logs", "ids", "dt", "cpuinfo")
    assert len(strings) >= 1000
    spelled = rows("spelled")
    assert len({text for text, _, _ in spelled}) == len(spelled) >= 300
    assert len({(text, kind) for text, kind, _ in strings}) == len(strings)
    unknown = sum(expected == "unknown" for _, _, expected in strings)
    assert unknown >= 150
