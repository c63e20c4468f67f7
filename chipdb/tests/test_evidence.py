"""A figure is a vendor's only where its words were read, and stand beside it."""

from pathlib import Path

import pytest

from probe_chipdb.database import Database, load
from probe_chipdb.entry.evidence import is_quoted
from probe_chipdb.tools.check import check

FIGURE = "tflops = 102"
READ = 'tflops = 102, read = { at = "page 3", quote = "%s" }'
CLAIM = 'tflops = 51, reason = "x", source = "book", confidence = "vendor"'


def change(data: Path, old: str, new: str, file: str = "chips/acme/fast.toml") -> None:
    text = (data / file).read_text()
    assert old in text
    (data / file).write_text(text.replace(old, new, 1))


def errors(data: Path) -> list[str]:
    return [str(problem) for problem in check(str(data)).problems if problem.level == "error"]


def test_a_figure_is_the_vendors_where_it_was_read(data: Path) -> None:
    before = check(str(data))
    change(data, FIGURE, READ % "FP16 102 TFLOPS")
    after = check(str(data))
    assert errors(data) == []
    assert before.stated == {"vendor": 1, "third-party": 0, "recalled": 2}
    assert after.stated == {"vendor": 2, "third-party": 0, "recalled": 1}
    assert (
        "vendors' figures: 2 read, 0 quoted by others, 1 recalled; since 2022: " in after.summary()
    )


def test_its_words_can_be_looked_at(db: Database) -> None:
    npu = db.chip("acme/npu")
    assert npu is not None
    assert npu.reads == (("int8.matrix.int32", "dense", "book", "page 2", "6 TOPS"),)
    assert [peak.confidence for peak in npu.peaks()] == ["vendor"]


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        (
            FIGURE,
            READ % "FP16 204 TFLOPS",
            "\"fp16.matrix.fp32\" dense: the quotation 'FP16 204 TFLOPS' does not hold 102",
        ),
        (
            'source = "book" }]',
            'source = "guide", read = { at = "p", quote = "102" } }]',
            "'guide' was not read: its status is 'cited'; give the source",
        ),
        ("power = 200", 'power = 200\nconfidence = "vendor"', "is the vendor's without evidence"),
        (
            "power = 200",
            'power = 200\noverride = [{ rate = "fp32.vector.fp32", CLAIM }]',
            "\"fp32.vector.fp32\" dense: is the vendor's without evidence; add read",
        ),
        (
            "power = 200",
            'power = 200\nread = [{ source = "letter", at = "p", quote = "100 SM" }]',
            "read: 'letter' is unknown; write [source] with what was read",
        ),
    ],
)  # fmt: skip
def test_a_claim_without_evidence_is_refused(data: Path, old: str, new: str, sentence: str) -> None:
    change(data, old, new.replace("CLAIM", CLAIM))
    assert any(sentence in text for text in errors(data)), errors(data)


def test_a_document_of_several_vendors_is_refused(data: Path) -> None:
    change(data, 'source = "guide"', 'source = "book"', "chips/beta/beta.toml")
    (sentence,) = errors(data)
    assert "[book]: stands behind the own figures of acme, beta; make a source for" in sentence


@pytest.mark.parametrize(
    ("value", "quote", "boards", "expected"),
    [
        (1307.4, "Matrix FP16 2048 1307.4", 1, True),
        (181.05, "362.1", 2, True),
        (181.05, "362.1", 1, False),
        (1299, "1,299 FP8 TFLOPS", 1, True),
        (4600, "4.6 PFLOPS", 1, True),
        (0.5, "500 GFLOPS", 1, True),
        (660.6, "661", 1, True),
        (918, "FLOPs/s/chip 4.59e14 9.18e14", 1, True),
        (165, "int8_tc_flops: 165000000000000", 1, True),
        (918, "9.18e13", 1, False),
        (660.6, "165.2", 1, False),
        (4, "no figure", 1, False),
    ],
)
def test_a_quotation_holds_the_figure(
    value: float, quote: str, boards: int, expected: bool
) -> None:
    assert is_quoted(value, quote, boards) is expected


def test_no_figure_of_the_table_is_a_vendors_without_words() -> None:
    for chip in load().chips():
        read = {row[0] for row in chip.reads}
        for peak in chip.peaks():
            if "vendor" in (peak.confidence, peak.confirmed_by):
                assert peak.rate in read, (chip.id, peak)


@pytest.mark.parametrize(
    ("entry_point", "make", "expected"),
    [
        ("acme_chips", "acme_chips", []),
        (
            "acme_chip",
            "acme_chips",
            ["'acme_chip' is no package here; make the folder src/acme_chip"],
        ),
        ("acme_chips", "", ["'acme_chips' has no TOML file; put the files of chips into it"]),
    ],
)
def test_a_package_is_checked_where_its_entry_point_leads(
    entry_point: str, make: str, expected: list[str], tmp_path: Path
) -> None:
    (tmp_path / "pyproject.toml").write_text(
        '[project]\nname = "acme-chips"\n[project.entry-points."probe_core.chipdb.v1"]\n'
        f'acme = "{entry_point}"\n'
    )
    (tmp_path / "src" / "acme_chips").mkdir(parents=True)
    other = tmp_path / "src" / (make or "other")
    other.mkdir(exist_ok=True)
    (other / "chips.toml").write_text(
        '[family]\ntitle = "Acme"\nvendor = "acme"\nsource = ["sheet"]\n\n'
        '[source.sheet]\ntitle = "t"\npublisher = "Acme"\nref = "r"\nstatus = "cited"\n\n'
        '[[chip]]\nid = "acme/one"\nname = "Acme One Only"\n'
    )
    found = [str(problem) for problem in check(str(tmp_path)).problems]
    assert len(found) == len(expected)
    assert all(part in text for part, text in zip(expected, found, strict=True)), found


def test_advice_names_what_a_package_has(tmp_path: Path) -> None:
    (tmp_path / "chips.toml").write_text(
        '[family]\ntitle = "Acme"\nvendor = "acme"\nsource = ["sheet"]\n\n'
        '[[chip]]\nid = "acme/one"\nname = "Acme One Only"\narch = "ada-geforc"\n'
    )
    advice = "did you mean 'ada-geforce'? write [arch.ada-geforc] in this file"
    assert [str(problem).partition(": ")[2] for problem in check(str(tmp_path)).problems] == [
        "chip 'acme/one': source: 'sheet' is unknown; write [source.sheet] in this file",
        "chip 'acme/one': arch: 'ada-geforc' is unknown; " + advice,
    ]
