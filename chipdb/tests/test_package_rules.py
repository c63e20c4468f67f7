"""Rules of names that vendors' packages bring: as good as ours for their chips, for no others'."""

import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import probe_chipdb
from probe_chipdb.database import Database
from probe_chipdb.table import FILES, RULES, Table
from probe_chipdb.tools.check import check

ACME = Path(__file__).parents[1] / "examples/probe-chips-acme"

Install = Callable[..., Database]


@pytest.fixture
def install(tmp_path: Path) -> Install:
    """Acme's package as a wheel would install it, with another file of rules or names."""

    def installed(text: str = "", file: str = "rules/more.toml") -> Database:
        return install_in(tmp_path / "site", text, file)

    return installed


def install_in(site: Path, text: str = "", file: str = "rules/more.toml") -> Database:
    shutil.copytree(ACME / "src/acme_chips", site / "acme_chips")
    if text:
        (site / "acme_chips" / file).write_text(text)
    info = site / "probe_chips_acme-1.0.dist-info"
    info.mkdir()
    (info / "entry_points.txt").write_text("[probe_core.chipdb.v1]\nacme = acme_chips\n")
    return probe_chipdb.load(path=[str(site)])


@pytest.fixture(scope="module")
def acme(tmp_path_factory: pytest.TempPathFactory) -> Database:
    """Acme's package as it is."""
    return install_in(tmp_path_factory.mktemp("acme"))


def row(pattern: str, to: str = "acme x1", stage: str = "line", example: str = "x") -> str:
    return f'[[{stage}]]\npattern = "{pattern}"\nto = "{to}"\nexample = "{example}"\nexpect = "x"\n'


@pytest.mark.parametrize(
    ("name", "chip"),
    [
        ("acme-smi: slot 3: X1 Lite (busy)", "acme/x1-lite"),
        ("ACME-SMI: slot 12: X1 (idle)", "acme/x1"),
        ("Acme X-One 32GB", "acme/x1"),
        ("8x Acme XOne", "acme/x1"),
        ("acmecloud.x-8", "acme/x1"),
        ("Acme UID 0001", "acme/x1"),
        ("acme-smi: slot 3: X9 (busy)", None),
        ("acme-smi: slot 3: X1 (dead)", None),
        ("Acme X-One 7GB", None),
        ("acmecloud.y-8", None),
    ],
)
def test_rows_of_a_package_find_its_chips(acme: Database, name: str, chip: str | None) -> None:
    assert acme.problems == ()
    match = acme.match(name=name)
    assert (match.chip.id if match.chip else None) == chip
    assert acme.ids_of_name(name) == ((chip,) if chip else ())


def test_a_package_says_what_is_no_chip_of_its_own(acme: Database) -> None:
    match = acme.match(name="Acme Viewer 2")
    assert match.reason == (
        "no chip of the table: 'acme viewer' is Acme's remote display, not a chip"
    )


OWN = """
[family]
title = "Acme Z"
vendor = "acme"
kind = "npu"

[[chip]]
id = "acme/zed-9"
name = "Acme Zed 9"
form_factor = "oam"
memory = { gib = 64 }
"""
WORDS = """
[word.factor]
acmeslot = "oam"

[word.edition]
turbo = "turbo"
"""


@pytest.fixture(scope="module")
def zed(tmp_path_factory: pytest.TempPathFactory) -> Database:
    """Acme's package with a chip more, and rows and words for its names."""
    site = tmp_path_factory.mktemp("zed")
    more = row("z line {any}", "zed {any}", "form") + row("acme zed {any}", "zed {any}", "form")
    install_in(site, more + WORDS)
    (site / "acme_chips/zed.toml").write_text(OWN)
    return probe_chipdb.load(path=[str(site)])


@pytest.mark.parametrize(
    ("name", "chip"),
    [
        ("Acme Zed 9 64GB", "acme/zed-9"),
        ("Acme Zed 9 OAM", "acme/zed-9"),
        ("Acme Zed9 ACMESLOT", "acme/zed-9"),
        ("Z-line 9 64GB", "acme/zed-9"),
        ("8x Z-line 9", "acme/zed-9"),
        ("Acme Zed 9 PCIe", None),
        ("Acme Zed 9 48GB", None),
        ("Acme Zed 9 Turbo", None),
        ("Z-line 8", None),
    ],
)
def test_form_factors_words_and_spellings_of_a_package(
    zed: Database, name: str, chip: str | None
) -> None:
    """Its rows are read on both sides: of the name that is asked, and of its chips' names."""
    match = zed.match(name=name)
    assert (match.chip.id if match.chip else None) == chip


def test_the_shortcuts_see_them(acme: Database) -> None:
    name = "acme-smi: slot 0: X1 (busy)"
    assert probe_chipdb.canonical(name, database=acme) == ("acme/x1",)
    peak = probe_chipdb.peak(name, "bf16", database=acme)
    assert peak is not None
    assert peak.tflops == pytest.approx(98.304)


def test_they_travel_with_the_texts_of_a_table(acme: Database) -> None:
    """A host reads packages in a child, and makes the tables anew from their texts."""
    (own,) = [table for table in acme.tables() if table.origin.startswith("package:")]
    texts = {name: getattr(own, name.removesuffix(".txt")).data for name in FILES}
    texts[RULES] = own.rules.encode()
    db = probe_chipdb.load(packages=False, added=([], [Table(own.origin, "", texts)], ()))
    match = db.match(name="acme-smi: slot 3: X1 (busy)")
    assert match.chip is not None
    assert match.chip.id == "acme/x1"


TAKEN = [  # names that we know, refuse or answer with several
    "NVIDIA GeForce RTX 4090", "| 0 NVIDIA L4 Off | 00000000:00:03.0 Off | 0 |", "A100",
    "AMD Radeon Graphics", "llvmpipe (LLVM 15.0.7, 256 bits)", "NVIDIA H100 80GB HBM3 MIG 1g.10gb",
    "10de:2684", "p5.48xlarge", "RTX 4090 acmeboard",
]  # fmt: skip


@pytest.mark.parametrize("pattern", ["{any}", "{*}{any}", "{any}acmeboard", "{*} {any}{*}"])
def test_no_row_takes_what_is_known_without_it(install: Install, pattern: str) -> None:
    ours = probe_chipdb.load(packages=False)
    db = install(row(pattern))
    for name in TAKEN[:-1]:
        own, hostile = ours.match(name=name), db.match(name=name)
        assert (hostile.chip, hostile.candidates, hostile.reason) == (
            own.chip, own.candidates, own.reason,
        )  # fmt: skip


@pytest.mark.parametrize(
    ("pattern", "fault"),
    [
        ("{any}", "it has no text of its own"),
        ("nvidia geforce {any}", "its text (geforce, nvidia) is others', too"),
        ("geforce rtx 4095{*}", None),  # a number that no product has yet
        ("{any} 16gb", "its text (16gb) is others', too"),
        ("{w}, {any}", "it has no text of its own"),
        ("{acme|nvidia} {any}", "its text (acme, nvidia) is others', too"),
        ("acme tool: {any}", None),
        ("zqx {any}", None),  # a word that names somebody has three letters
        ("zq {any}", "its text (zq) is others', too"),
    ],
)
def test_a_row_needs_a_word_that_no_other_vendor_has(
    install: Install, pattern: str, fault: str | None
) -> None:
    text = row(pattern) if "4095" in pattern or "{any}" in pattern else ""
    db = install(text)
    (own,) = [table for table in db.tables() if table.origin.startswith("package:")]
    lines = [line.partition("\t")[0] for line in own.rules.splitlines()].count("line")
    assert lines == (1 if fault else 2)  # one is of the package itself
    problems = db.problems
    assert [problem.partition(": pattern: ")[2] for problem in problems] == (
        [f"{fault}; add a word of your own to the pattern"] if fault else []
    )


def test_a_row_gives_no_other_vendors_name_to_its_chips(install: Install) -> None:
    """A product to come: what a name claims to be rules out the chips of others."""
    db = install(row("{*}geforce rtx 4095{*}"))
    assert db.match(name="NVIDIA GeForce RTX 4095").chip is None


def test_what_a_row_makes_is_looked_up_in_the_package_alone(install: Install) -> None:
    db = install(row("acmeboard {any}", to="geforce rtx 4090"))
    assert db.match(name="acmeboard nine").chip is None
    assert db.ids_of_name("acmeboard nine") == ()


HOSTILE = [
    row("acme {*}a{*}a{*}a{*}a{*}a{*}a{*}a{*}a{*}z"),
    row("acme " + "{|a}" * 60 + "z"),
    row("acme {any}", to="acme {any}{any}{any}{any}{any}{any}{any}"),
    row("acme " + "{w} {*}" * 40 + "z", stage="form"),
    "".join(row(f"acme{at} {{any}}") for at in range(500)),
]


@pytest.mark.parametrize("text", HOSTILE, ids=["gaps", "choices", "growth", "words", "many"])
def test_no_row_costs_more_than_a_few_milliseconds(install: Install, text: str) -> None:
    db = install(text)
    db.match(name="acme first")
    name = "acme " + "a" * 200 + " a" * 900
    start = time.process_time()
    assert db.match(name=name).chip is None
    assert db.match(name="NVIDIA GeForce RTX 4090").chip is not None
    assert time.process_time() - start < 0.25


@pytest.mark.parametrize("end", ["\\n", "\\u2028", "\\u0085"])
def test_a_row_writes_no_line_of_its_own_into_the_rules(install: Install, end: str) -> None:
    """The rules are lines of columns: a tab or a line's end would make another row."""
    text = row("acme board {any}") + row(f"acme {{any}}{end}none{end}")
    db = install(text + row(rf"acme {{any}}{end}none\tdisplay\tis none\tgeforce"))
    assert all("it has a tab or a second line" in problem for problem in db.problems)
    assert 1 <= len(db.problems) <= 2
    assert db.match(name="NVIDIA GeForce RTX 4090").chip is not None
    assert db.match(name="acme-smi: slot 3: X1 (busy)").chip is not None
    assert db.ids_of_name("Acme Board Nine") == ("acme/x1",)


@pytest.mark.parametrize(
    ("file", "text", "fault"),
    [
        ("names/amazon.toml", '[p9]\nmeans = ["acme/x1"]\nexample = "p9.48xlarge"\n',
         "the names of 'amazon' are the project's"),
        ("names/acme-vm.toml", '[y]\nmeans = ["nvidia/l4"]\nexample = "acme.y"\n',
         "nvidia/l4 is no chip of this package"),
        ("rules/host.toml", row("{*}acme vm ({name})", "{name}", "host"),
         "a host's device is another vendor's"),
    ],
)  # fmt: skip
def test_names_of_others_are_left_out(install: Install, file: str, text: str, fault: str) -> None:
    db = install(text, file)
    (problem,) = db.problems
    assert fault in problem
    assert db.match(name="p9.48xlarge").chip is None


def test_more_rows_than_a_package_may_have_are_left_out(install: Install) -> None:
    db = install("".join(row(f"acme{at} {{any}}") for at in range(500)))
    assert all("beyond the 500 rows" in problem for problem in db.problems)
    assert len(db.problems) == 4  # the package has four of its own
    assert db.match(name="acme-smi: slot 3: X1 (busy)").chip is not None


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return Path(shutil.copytree(ACME, tmp_path / "acme"))


@pytest.mark.parametrize("part", ["", "src", "src/acme_chips"])
def test_the_check_reads_them_from_the_root_of_a_project_too(project: Path, part: str) -> None:
    assert [str(problem) for problem in check(str(project / part)).problems] == []
    more = row("acme tool: {any}", to="{any}", example="ACME tool: X1").replace('"x"', '"x2"')
    (project / "src/acme_chips/rules/more.toml").write_text(more + row("geforce {any}"))
    problems = [str(problem) for problem in check(str(project / part)).problems]
    assert any("the example 'ACME tool: X1' is 'x1'" in problem for problem in problems)
    assert any("its text (geforce) is others', too" in problem for problem in problems)


def test_the_check_warns_of_words_of_other_vendors(project: Path) -> None:
    more = row("acme geforce {any}", to="{any}", example="Acme GeForce X1").replace('"x"', '"x1"')
    (project / "src/acme_chips/rules/more.toml").write_text(more)
    (problem,) = check(str(project)).problems
    assert (problem.level, problem.fault) == (
        "warning", "'geforce' is a word of names of nvidia alone",
    )  # fmt: skip


def test_the_check_looks_the_example_of_a_machine_up(project: Path) -> None:
    names = project / "src/acme_chips/names/acme-cloud.toml"
    names.write_text(names.read_text().replace("acmecloud.x-8", "acmecloud.y-8"))
    (problem,) = check(str(project)).problems
    assert "the example 'acmecloud.y-8' finds" in str(problem)


def test_without_packages_nothing_is_compiled() -> None:
    assert probe_chipdb.load(packages=False).readers() == ()
