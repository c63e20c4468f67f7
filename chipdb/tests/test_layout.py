"""One layout, reached in one step, that never changes what a file says."""

import errno
import os
import tomllib
from pathlib import Path

import pytest

from probe_chipdb.entry.files import toml_files
from probe_chipdb.tools import layout

DATA = Path(__file__).parents[1] / "data"

MESSY = """\
[family]\r
title = "X"   \r


# about the chip
[[chip]]
name="A # not a comment"
pci = [
  "aaaa:0001",  # the first
]
# why this id
id   = "x/a"
units = 3
[[chip]]
id = "x/b"
"""

NEAT = """\
[family]
title = "X"

# about the chip
[[chip]]
# why this id
id = "x/a"
name = "A # not a comment"
units = 3
pci = [
  "aaaa:0001",  # the first
]

[[chip]]
id = "x/b"
"""


def test_canonical() -> None:
    assert layout.canonical(MESSY) == NEAT
    assert layout.canonical(NEAT) == NEAT


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("# of the file\n[a]\nx = 1\n", "# of the file\n\n[a]\nx = 1\n"),
        ("[a]\nx = 1\n# ends a\n[b]\n", "[a]\nx = 1\n# ends a\n\n[b]\n"),
        ("[a]\nx = 1\n\n# of b\n# more\n[b]\n", "[a]\nx = 1\n\n# of b\n# more\n[b]\n"),
        ("[a]\n\nx = 1\n# of y\ny = 2\n", "[a]\nx = 1\n# of y\ny = 2\n"),
        ("[a]\n\n\n# ends all\n", "[a]\n# ends all\n"),
        # The order is a chip's alone.
        ('[family]\nunits = 3\nid = "x"\n', '[family]\nunits = 3\nid = "x"\n'),
        ('[[chip]]\nunits = 3\nid = "x"\n', '[[chip]]\nid = "x"\nunits = 3\n'),
    ],
)
def test_comments_stay_with_their_tables(text: str, expected: str) -> None:
    assert layout.canonical(text) == expected


def test_long_texts_are_left_alone() -> None:
    text = 'a = """\nx  \n\n\n"""\n\n\nb=1'
    assert layout.canonical(text) == text


FILES = sorted(toml_files(str(DATA)))
EVERY_FOURTH = [
    path if number % 4 == 0 else pytest.param(path, marks=pytest.mark.heavy)
    for number, path in enumerate(FILES)
]


@pytest.mark.parametrize("path", EVERY_FOURTH, ids=lambda path: Path(path).name)
def test_real_files_keep_their_meaning(path: str) -> None:
    text = Path(path).read_text(encoding="utf-8")
    written = layout.canonical(text)
    assert tomllib.loads(written) == tomllib.loads(text)
    assert layout.canonical(written) == written


def test_data_stays_where_the_disk_is_full(tmp_path: Path) -> None:
    resource = pytest.importorskip("resource")
    path = tmp_path / "a.toml"
    path.write_text(MESSY, newline="")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20, limits[1]))
    try:
        with pytest.raises(OSError, match=os.strerror(errno.EFBIG)):
            layout.fix(str(tmp_path))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert list(tmp_path.iterdir()) == [path]
    assert path.read_bytes() == MESSY.encode()


def test_problems_and_fix(tmp_path: Path) -> None:
    path = tmp_path / "x.toml"
    path.write_bytes(MESSY.encode())
    (problem,) = layout.problems(str(tmp_path))
    assert str(problem) == "x.toml: line 1: is not laid out canonically; run check --fix"
    assert layout.fix(str(tmp_path)) == [str(path)]
    assert path.read_bytes() == NEAT.encode()
    assert list(layout.problems(str(tmp_path))) == []
    assert layout.fix(str(tmp_path)) == []


def test_keys_get_blanks_and_their_order_and_values_stay() -> None:
    """Comments go with what follows them, lines of a value with the line that begins it."""
    block = [
        "[[chip]]",
        "# of units",
        "units=1",
        'id="a=b"',
        "memory={gib=16}",
        "pci = [",
        '  "a",',
        "]",
    ]
    assert layout._ordered([*block, "# last"]) == [
        "[[chip]]", 'id = "a=b"', "# of units", "units = 1", "memory = {gib=16}", "pci = [",
        '  "a",', "]", "# last",
    ]  # fmt: skip
    assert layout._ordered(["[[chip]]", "  no key"]) == ["[[chip]]", "  no key"]
