"""Rules of names: each row by its own example, and patterns alone."""

import tomllib
from pathlib import Path

import pytest

from probe_chipdb import patterns
from probe_chipdb.entry.files import read_folder
from probe_chipdb.entry.name_rules import RuleFiles, RuleRow
from probe_chipdb.entry.validate import Data
from probe_chipdb.patterns import BadPattern, Pattern
from probe_chipdb.rules import Rules
from probe_chipdb.table import RULES, built_text
from probe_chipdb.tools.rules import row_problems

CHIPDB = Path(__file__).parents[1]
STRINGS = [
    row.split("\t")[0].lower()
    for file in sorted((CHIPDB / "tests/strings").glob("*.tsv"))
    for row in file.read_text(encoding="utf-8").splitlines()
    if row and not row.startswith("#")
]


@pytest.fixture(scope="module")
def files() -> RuleFiles:
    rules = RuleFiles()
    for file in sorted((CHIPDB / "data/rules").glob("*.toml")):
        for key, value in tomllib.loads(file.read_text()).items():
            rules.add(key, value)
    return rules


@pytest.fixture(scope="module")
def data() -> Data:
    """The rules alone, as the check reads them."""
    read = Data()
    for file in sorted((CHIPDB / "data/rules").glob("*.toml")):
        read.add_rules(file.name, tomllib.loads(file.read_text()))
    return read


@pytest.mark.heavy
def test_each_row_makes_of_its_example_what_it_expects_and_is_needed(data: Data) -> None:
    assert [str(problem) for problem in (*data.problems, *row_problems(data))] == []
    assert len(data.rules.rows) > 100


STAGES = [
    "form", "also", "short", "bare_name", "whole", "host", "fact", "bare", "line", "machine",
    "share", "board",
]  # fmt: skip


def first_rows(**changed: str) -> Data:
    """The rules with the first row of each stage alone, and what is changed in each of them."""
    few = Data()
    for file in sorted((CHIPDB / "data/rules").glob("*.toml")):
        rules = tomllib.loads(file.read_text())
        for key, value in rules.items():
            if isinstance(value, list) and "pattern" in value[0]:
                rules[key] = [value[0] | changed]
        few.add_rules(file.name, rules)
    return few


def test_the_first_row_of_each_stage_does_what_it_expects() -> None:
    data = first_rows()
    assert [stage for stage, _ in data.rules.rows] == STAGES
    assert list(row_problems(data)) == []


def test_a_row_that_expects_something_else_is_told() -> None:
    data = first_rows(expect="another text")
    problems = list(row_problems(data))
    assert [problem.entry.partition(" ")[0] for problem in problems] == STAGES
    for problem, (_, row) in zip(problems, first_rows().rules.rows, strict=True):
        assert problem.fault.startswith(f"the example {row['example']!r} is '")
        assert problem.fault.endswith(f"{row['expect']}'")


def test_a_row_that_its_example_does_not_need_is_told() -> None:
    problems = list(row_problems(first_rows(example="RTX 4090", expect="rtx 4090")))
    assert ("form", "the example 'RTX 4090' is the same without the row") in [
        (problem.entry.partition(" ")[0], problem.fault) for problem in problems
    ]


@pytest.mark.parametrize("stage", ["line", "fact", "form", "machine"])
@pytest.mark.parametrize("every", [48, pytest.param(1, marks=pytest.mark.heavy)])
def test_every_row_that_fits_a_text_is_found_for_it(
    files: RuleFiles, stage: str, every: int
) -> None:
    """The texts by which rows are sorted out beforehand leave out none that would fit.

    Shares, hosts and refusals are facts, too.
    """
    rules = files.read()
    texts = [" ".join(text.split()) for text in STRINGS[::every]]
    texts += [" ".join(row["example"].lower().split()) for _, row in files.rows]
    if stage in ("form", "machine"):
        mark = " " if stage == "form" else "-"
        texts = [text.replace("-", mark).replace("_", mark).replace(" ", mark) for text in texts]
    (rows,) = rules._stages[stage]
    each = [rows.rule(at) for at in range(len(rows._lines))]
    missed = [
        (text, rule._row[0])
        for text in texts
        for rule in each
        if rule.applied(text) and rule not in rules._passing(text, stage)
    ]
    assert missed == []
    assert len(texts) > (2200 if every == 1 else 600)
    assert len(each) > {"fact": 60, "machine": 20}.get(stage, 70)


def test_a_name_finds_no_row_by_its_first_letter_alone() -> None:
    """Each row that is found is read: lines begin with PCI ids, and "amd" with one's digit."""
    rules, text = Rules(built_text(RULES)), "amd instinct mi300x oam"
    assert [*rules.every(text, "fact")] == []
    assert [*rules._passing(text, "fact")] == []


def test_texts_that_a_row_needs_are_read_as_they_were_written() -> None:
    files = RuleFiles()
    files.add("set", {"mark": ["|", ";", "\\", "\\n", "é"]})
    pattern = "x{mark}{n}{*}y"
    files.add("line", [{"pattern": pattern, "to": "{mark}", "example": "x;1y", "expect": ";"}])
    (rows,) = files.read()._stages["line"]
    needs = {
        *rows.rule(0).needs[0],
        *(need for key in rows._index for need, _ in rows._entries(key)),
    }
    assert needs == {"y\x01", "\x01x|", "\x01x;", "\x01x\\", "\x01xé"}  # of `\n`, too
    marks = ["|", ";", "\\", "\\n", "é"]
    assert [files.read().rewritten(f"x{mark}1y", "line") for mark in marks] == marks
    assert files.read().rewritten("x1y", "line") == "x1y"


@pytest.mark.parametrize("mark", ["\t", "\n", "\x01", "\x02", "\x03", "\x04"])
def test_a_row_holds_no_letter_that_the_table_takes(mark: str) -> None:
    files = RuleFiles()
    row: RuleRow = {"pattern": f"x{mark}{{any}}", "example": "x", "expect": "x"}
    assert "control character" in files.fault(row)


def test_the_check_refuses_rows_that_do_nothing(tmp_path: Path) -> None:
    rules = tmp_path / "rules"
    rules.mkdir()
    (rules / "acme.toml").write_text(
        """
        [[line]]
        pattern = "acme {any}"
        example = "ACME Nine"
        expect = "nine"

        [[line]]
        pattern = "idle {any}"
        example = "ACME Ten"
        expect = "ten"

        [[line]]
        pattern = "wrong {any}"
        example = "wrong ten"
        expect = "eleven"
        """
    )
    faults = [problem.fault for problem in row_problems(read_folder(str(tmp_path)))]
    assert faults == [
        "the example 'ACME Ten' is the same without the row",
        "the example 'wrong ten' is 'ten'",
    ]


@pytest.mark.parametrize(
    ("row", "fault"),
    [
        ('pattern = "{none}"', "{none} is no kind of field and no set of words"),
        ('pattern = "{any"', "'{any' has a field that does not end"),
        ('pattern = "x{n}"', "it has no field any, name or part; write what the text becomes"),
        ('pattern = "{any}"\nof = "nobody"', "the group 'nobody' is not in [group]"),
    ],
)
def test_a_row_that_cannot_be_read_says_why(row: str, fault: str, tmp_path: Path) -> None:
    (tmp_path / "rules").mkdir()
    text = f'[[line]]\n{row}\nexample = "x"\nexpect = "x"\n'
    (tmp_path / "rules/acme.toml").write_text(text)
    assert [problem.fault for problem in read_folder(str(tmp_path)).problems] == [fault]


LINES = {word: word for word in ("oc v", "oc", "rog", "tuf", "dual", "elite", "aero", "ice", "orc")}
SETS = {"die": {"dg1": "dg1", "dg2": "dg2"}, "line": LINES}


@pytest.mark.parametrize(
    ("pattern", "text", "fields"),
    [
        ("{any} (uuid: {*}", "a100 (uuid: x)", {"any": "a100"}),
        ("{any} (uuid: {*}", "a100", None),
        ("{any} ({die}{| |-}{in})", "arc (dg2-x)", {"any": "arc", "die": "dg2", "in": "-x"}),
        ("{any} ({die}{| |-}{in})", "arc (dg3)", None),
        ("{name} ({in})", "x (a (b))", {"name": "x", "in": "a (b)"}),
        ("{any} {n} cores", "m1 10 cores", {"any": "m1", "n": "10"}),
        ("{n2}, {any}", "123, x", None),
        ("{hex4}:{hex4} {any}", "10de:2684 x", {"hex4": "10de", "any": "x"}),
        ("{a@hex4}:{b@hex4}", "10de:2684", {"a": "10de", "b": "2684"}),
        ("{part}, {*}", "a (b, c), d", {"part": "a (b, c)"}),
        ("{any}({+die})", "x (is dg1)", {"any": "x ", "+die": "is dg1"}),
        ("x {-die} y", "x loud y", {}),
        ("x {-die} y", "x dg1 y", None),
        ("x {-die} y", "x dgx1 y", None),
        ("{v@gpu|npu} {any}", "npu x", {"v": "npu", "any": "x"}),
        ('{any}{|"}{|,}', 'x",', {"any": "x"}),
        ('{any}{|"}{|,}', 'x,"', {"any": "x,"}),
        ("{any}{x|xx}", "axx", {"any": "a"}),
        ("{any}{x|xx}", "xx", {"any": "x"}),
        ("{any}{x|xx}", "x", None),
        ("ab{*}b", "ab", None),
        ("{w}.{any}, {n}", "a.b, 1, 2", {"w": "a", "any": "b, 1", "n": "2"}),
        ("{line} {any}", "oc v 2", {"line": "oc v", "any": "2"}),
        ("{line}{any}", "oc v2", {"line": "oc v", "any": "2"}),
        ("{line}{any}", "ocv2", {"line": "oc", "any": "v2"}),
        ("{line}", "white", None),
        ("{line}", "", None),
    ],
)
def test_patterns(pattern: str, text: str, fields: dict[str, str] | None) -> None:
    found = Pattern(pattern, SETS).fields(text)
    assert found is None or {label: found[label] for label in fields or {}} == fields
    assert (found is None) == (fields is None)


def test_a_pattern_takes_no_time_that_grows_with_its_text() -> None:
    pattern = Pattern("{*}a{*}a{*}({any}) {*}b", {})
    assert pattern.fields("a(" * 120) is None


def test_bad_pattern_is_a_value_error() -> None:
    with pytest.raises(BadPattern, match="no kind of field"):
        Pattern("{nothing}", {})


KINDS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    # kind: (texts that are one, texts that are none)
    "*": (("", "a b"), ()),
    "any": (("a", " "), ("",)),
    "name": (("a (b) [c]", "()"), ("", "(", "a)", ")(", "[")),
    "in": (("", "a (b)"), ("(", "]")),
    "part": (("a", "a (b, c)"), ("", "a, b", "(a", ",")),
    "w": (("a", "a-b"), ("", "a b")),
    "quoted": (("a", "a b"), ("", 'a"', "'a")),
    "alnum": (("a1",), ("", "a-1", "a b")),
    "before": (("", "a ", ",", "a(", "b)", "/"), ("a",)),
    "after": (("", " a", ",", "/a"), ("a", "a ")),
    "numbered": (("a1", "1"), ("a", "a 1", "")),
    "model": (("a 1b", "1"), ("1 a", "a", "")),
    "number": (("1", "1.5", "5."), ("", ".5", "1.2.3", "1a", "-1")),
    "version": (("1.2", "1.2.3", ".1"), ("", "12", ".", "1.a")),
    "slice": (
        ("1g.10gb", "1c.3g.40gb", "1g.10gb+me", "12g.5gb"),
        ("", "1g", "g.10gb", "1g.10", "1g.gb", "1x.10gb", "10gb", "1g.10gb0"),
    ),
    "vgpu": (("8q", "40c", "2b4", "1a"), ("", "q", "8", "8x", "8qx", "x8q")),
}
DIGITS = {
    # kind: (a letter that it takes, one that it does not, the least and the most of them)
    "letter": ("z", "A", 1, 1),
    "n": ("9", "a", 1, 9),
    "n2": ("9", "a", 1, 2),
    "n3": ("9", "a", 1, 3),
    "n4": ("9", "a", 4, 4),
    "n5": ("9", "a", 1, 5),
    "d1": ("9", "a", 1, 1),
    "d2": ("9", "a", 2, 2),
    "d3": ("9", "a", 3, 3),
    "hex": ("f", "g", 1, 16),
    "hex1": ("f", "g", 1, 1),
    "hex2": ("f", "g", 2, 2),
    "hex4": ("f", "g", 4, 4),
}


def test_every_kind_of_field_has_texts_here() -> None:
    assert (set(KINDS), set(DIGITS)) == (set(patterns.KINDS), set(patterns._DIGITS))


@pytest.mark.parametrize("kind", KINDS)
def test_which_texts_are_of_a_kind(kind: str) -> None:
    pattern = Pattern(f"{{{kind}}}", {})
    are, are_not = KINDS[kind]
    assert [text for text in are if pattern.fields(text) is None] == []
    assert [text for text in are_not if pattern.fields(text) is not None] == []


@pytest.mark.parametrize("kind", DIGITS)
def test_how_many_digits_are_of_a_kind(kind: str) -> None:
    taken, other, least, most = DIGITS[kind]
    pattern = Pattern(f"{{{kind}}}", {})
    fitting = [count for count in range(19) if pattern.fields(taken * count) is not None]
    assert fitting == [*range(least, most + 1)]
    assert pattern.fields(other * least) is None
