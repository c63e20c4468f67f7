"""The halving search finds every line, and only those that are there."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probe_chipdb import table
from probe_chipdb.database import Database
from probe_chipdb.entry.folder import read_folder
from probe_chipdb.entry.pack import texts
from probe_chipdb.row import CHIP, CLOCK, MEMORY
from probe_chipdb.table import SortedText, from_folder
from probe_chipdb.tools.diff import diff

keys = st.text(st.characters(codec="utf-8", categories=["L", "N", "P"]), min_size=1, max_size=12)


@given(st.sets(keys, max_size=40), keys)
def test_find(present: set[str], other: str) -> None:
    lines = sorted(present, key=str.encode)
    text = SortedText("".join(f"{key}\tvalue of {key}\n" for key in lines).encode())
    for key in present:
        assert text.find(key) == f"value of {key}"
    if other not in present:
        assert text.find(other) is None


def test_prefixes_do_not_confuse() -> None:
    lines = sorted(["a", "a-b", "a/b", "ab", "a b"], key=str.encode)
    text = SortedText("".join(f"{key}\t{key}!\n" for key in lines).encode())
    assert [text.find(key) for key in lines] == [f"{key}!" for key in lines]


def test_iterates_in_order() -> None:
    assert list(SortedText(b"a\t1\nb\t2\n")) == [("a", "1"), ("b", "2")]


def test_text_that_no_file_could_hold_is_not_there() -> None:
    assert SortedText(b"a\t1\n").find("\ud800") is None


def test_empty() -> None:
    assert SortedText(b"").find("x") is None


@pytest.mark.parametrize(
    "head",
    [
        "#probe-chipdb 3 2030.1.0\n",
        f"#probe-chipdb {'9' * 5000} 1\n",
        "#probe-chipdb 1 \n",
        "#probe-chipdb x\n",
        "#other 1 1\n",
        "",
    ],
)
def test_a_newer_or_foreign_table_is_refused(tmp_path: Path, head: str) -> None:
    for name in table.FILES:
        (tmp_path / name).write_text(head if name == "index.txt" else "")
    with pytest.raises(OSError, match="no table that this release can read"):
        table.from_folder(str(tmp_path))


def test_a_table_of_format_1_is_read(data: Path, tmp_path: Path) -> None:
    """Its rows end before `power_low`, its clocks before `game`, its figures before `low`."""
    files = texts(read_folder(str(data)))
    rows = [line.split("\t")[: CHIP.index("power_low")] for line in files["chips.txt"].splitlines()]
    for row in rows:
        for column, names, old in (("clock", CLOCK, 4), ("memory", MEMORY, 4)):
            at = CHIP.index(column)
            row[at] = ";".join((row[at].split(";") + [""] * old)[:old]) if row[at] else ""
            assert len(names) > old
        at = CHIP.index("published")
        row[at] = "|".join(";".join(item.split(";")[:5]) for item in row[at].split("|") if item)
    files["chips.txt"] = "".join("\t".join(row) + "\n" for row in rows)
    files["index.txt"] = "#probe-chipdb 1 2026.11.0\n" + files["index.txt"]
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    old = Database(from_folder(str(tmp_path)))
    laptop = old.chip("acme/fast-1-laptop")
    assert laptop is not None
    assert (laptop.clock.boost_low, laptop.clock.set_by, laptop.power_low) == (1000, None, None)
    fast = old.chip("acme/fast-1")
    assert fast is not None
    peak = fast.peak("fp16")
    assert peak is not None
    assert (peak.published, fast.memory.gbs, fast.unknown) == (102, 512, None)
    assert list(diff(old, Database(from_folder(str(tmp_path))))) == []
