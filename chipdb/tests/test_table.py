"""The halving search finds every line, and only those that are there."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probe_chipdb import table
from probe_chipdb.database import Database, load, load_by_position
from probe_chipdb.entry.files import read_folder
from probe_chipdb.entry.pack import texts
from probe_chipdb.table import CHIP, CLOCK, MEMORY, SortedFile, SortedText, from_folder
from probe_chipdb.tools.diff import diff

keys = st.text(st.characters(codec="utf-8", categories=["L", "N", "P"]), min_size=1, max_size=12)


@pytest.mark.heavy
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


def test_what_lies_before_the_start_is_no_line() -> None:
    lines = [(f"{at:03}", f"v{at}") for at in range(5)]
    data = b"#head 2 1.0\n" + "".join(f"{key}\t{value}\n" for key, value in lines).encode()
    text = SortedText(data, data.index(b"\n") + 1)
    asked = [*(key for key, _ in lines), "#head 2 1.0", "#head 2 1.0\n000", "", "9"]
    answers = [*(value for _, value in lines), None, None, None, None]
    for _ in range(30):  # halved at first, then looked up in a dictionary
        assert [text.find(key) for key in asked] == answers
    assert list(text) == lines
    assert list(SortedText(b"#head 2 1.0\n", 12)) == []


def test_text_that_no_file_could_hold_is_not_there() -> None:
    assert SortedText(b"a\t1\n").find("\ud800") is None


def test_empty() -> None:
    assert SortedText(b"").find("x") is None


@pytest.mark.heavy
@pytest.mark.parametrize("length", [0, 300, 3 * 4096], ids=["short", "some", "long"])
@given(present=st.sets(keys, max_size=60), other=keys)
def test_a_file_is_searched_as_a_text_is(
    present: set[str], other: str, length: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    lines = "".join(f"{key}\t{key}{'v' * length}\n" for key in sorted(present, key=str.encode))
    path = tmp_path_factory.mktemp("lines") / "lines.txt"
    path.write_bytes(b"head\n" + lines.encode())
    asked_before = SortedFile(str(path), 5)
    for key in {*present, other, "\ud800"}:
        # A new one each time: the ninth lookup of one reads the file whole.
        answer = SortedText(lines.encode()).find(key)
        assert SortedFile(str(path), 5).find(key) == answer == asked_before.find(key)
    assert list(SortedFile(str(path), 5)) == list(SortedText(lines.encode()))


def test_a_file_that_is_asked_often_is_read_once(tmp_path: Path) -> None:
    path = tmp_path / "lines.txt"
    path.write_text("".join(f"{number:05}\t{number}\n" for number in range(5000)))
    file, far = SortedFile(str(path)), range(0, 4500, 500)
    assert [file.find(f"{number:05}") for number in far] == list(map(str, far))
    path.unlink()
    assert [file.find(key) for key in ("04999", "05000")] == ["4999", None]


def test_lines_beside_those_that_were_read_are_not_read_again(tmp_path: Path) -> None:
    path = tmp_path / "lines.txt"
    path.write_text("".join(f"{number:05}\t{number}\n" for number in range(0, 10000, 2)))
    file = SortedFile(str(path))
    assert file.find("05000") == "5000"
    path.unlink()
    for number in range(4990, 5010):  # a piece of the file, in which the others would be
        assert file.find(f"{number:05}") == (None if number % 2 else str(number))
    for key in ("00000", "09998", "0", "1"):
        with pytest.raises(FileNotFoundError):
            file.find(key)


@pytest.mark.parametrize("text", ["a\t3\n", "a\t1\nb\t2\nc\t3\n", ""])
def test_a_file_that_was_replaced_answers_nothing(tmp_path: Path, text: str) -> None:
    path, other = tmp_path / "lines.txt", tmp_path / "other.txt"
    path.write_text("a\t1\nb\t2\n")
    file = SortedFile(str(path))
    other.write_text(text)
    other.replace(path)
    with pytest.raises(OSError, match=r"lines\.txt was replaced while it was in use"):
        file.find("a")


def test_the_built_table_gives_by_position_what_it_gives_whole() -> None:
    whole, parts = load(packages=False), load_by_position(packages=False)
    assert parts.version == whole.version
    for key in ("10de:2330", "1002:744c", "10de:0000", "106b:0001", ""):
        assert parts.ids(key) == whole.ids(key)
    assert parts.chips() == whole.chips()
    assert parts.source("nv-pci-ids") == whole.source("nv-pci-ids")


def test_without_pread_the_table_is_read_whole(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delattr("os.pread")
    assert isinstance(table.built_by_position().index, SortedText)


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
