"""Names of others for our chips: each row's own example finds what the row means."""

import tomllib
from pathlib import Path

import pytest

from probe_chipdb.database import Database
from probe_chipdb.name_lookup import has_codename
from probe_chipdb.tools.check import check

DATA = Path(__file__).parents[1] / "data"
NAMES = {
    f"{file.stem}/{text}": entry
    for file in sorted((DATA / "names").glob("*.toml"))
    for text, entry in tomllib.loads(file.read_text()).items()
}


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
