"""Every slip that a data author can make: the check names file, entry, field and fix."""
# ruff: noqa: E501 - rows are whole sentences, as they are printed

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from probe_chipdb.__main__ import main
from probe_chipdb.tools.check import check
from probe_chipdb.tools.export import _per_device
from probe_chipdb.tools.rules import Figure, _difference

FAST = "chips/acme/fast.toml"


def errors(data: Path) -> list[str]:
    return [str(problem) for problem in check(str(data)).problems if problem.level == "error"]


def warnings(data: Path) -> list[str]:
    return [str(problem) for problem in check(str(data)).problems if problem.level == "warning"]


def change(data: Path, old: str, new: str, file: str = FAST) -> Path:
    path = data / file
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    return data


def test_good_data_passes(data: Path) -> None:
    result = check(str(data))
    assert errors(data) == []
    assert (result.chips, result.archs, result.full) == (7, 4, 6)
    assert (result.compared, result.within) == (1, 1)
    assert result.summary().startswith("7 chips (6 with peaks), 4 architectures; 1 of 1 published")


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("units = 100", "units = -100", "units: -100 is out of bounds; it should be 1 to 30000"),
        ("units = 100", "units = 100.5", "units: 100.5 should be whole; drop the fraction"),
        ("units = 100", "units = true", "units: True is no number; write 1 to 30000"),
        ("units = 100", 'units = "100"', "units: '100' is no number"),
        ("units = 100", "unit = 100", "unit: is no known key; did you mean 'units'?"),
        ("boost = 2000", "boost = nan", "clock.boost: nan is not finite; leave out what is not known"),
        ("boost = 2000", "boost = inf", "clock.boost: inf is not finite"),
        (
            "boost = 2000",
            "boost = 2.0",
            "clock.boost: 2 is out of bounds; it should be 50 to 7000 MHz (a slip of x0.001? 2000 would do)",
        ),
        ("boost = 2000", "boost = 2000000", "a slip of x1000? 2000 would do"),
        ("base = 1000", "base = 2500", "clock: base 2500 is above boost 2000; swap them"),
        ("gib = 16", "gib = 16384", "memory.gib: 16384 is out of bounds"),
        ("gib = 16", "gib = 1048576", "memory.gib: 1048576 is out of bounds; it should be "),
        ("gbs = 512", "gbs = 0.512", "memory: 0.512 GB/s over 256 bits is 0.016 Gb/s per pin, not possible for GDDR6"),
        ("gbs = 512", "gbs = 5120", "160 Gb/s per pin, not possible for GDDR6"),
        ('"aaaa:0001"', '"AAAA:0001"', "pci[0]: 'AAAA:0001' is not well formed; write vvvv:dddd"),
        ('"aaaa:0001"', '"aaaa:1"', "pci[0]: 'aaaa:1' is not well formed"),
        ('"aaaa:0001", ', '"aaaa:0009", ', "pci[1]: 'aaaa:0009' is there twice; remove one"),
        ('arch = "one"', 'arch = "won"', "arch: 'won' is unknown; name one of data/arch"),
        ('source = "book" }]', 'source = "boek" }]', "source: 'boek' is unknown; add it to data/sources"),
        ('id = "acme/fast-1"', 'id = "Acme/Fast 1"', "id: 'Acme/Fast 1' is not well formed; write vendor/slug"),
        ('id = "acme/fast-1"', 'id = "other/fast-1"', "id: begins with 'other', but the vendor is 'acme'"),
        ('id = "acme/fast-1"\n', "", "chip number 1: id: is missing; add it"),
        ('name = "Acme Fast 1"', 'name = ""', "name: a text of 0 characters"),
        ('name = "Acme Fast 1"', 'name = "a\\u0007b"', "has a control character; remove it"),
        ('name = "Acme Fast 1"', 'name = "GRID V100-8Q"', "can never match: it is a virtual GPU"),
        ('kind = "npu"', 'kind = "tpu"', "kind: 'tpu' is unknown; write one of gpu, npu, accelerator"),
        ('id = "acme/fast-1-8gb"', 'id = "acme/fast-1"', "id: the id is used already in chips/acme/fast.toml"),
        ("tflops = 102", "tflops = 204.8", "twice as much is the sparse figure"),
        ("tflops = 102", "tflops = 102400", "a slip of x1000: write TFLOPS (TOPS), not G or P"),
        ("tflops = 102", "tflops = 120", "published 120 but units x rate x clock gives 102.4 (-14.7%); correct"),
        ("fp16.matrix.fp32", "fp16.matrix", "published[0].rate: 'fp16.matrix' is not well formed; write dtype.path"),
        ("fp16.matrix.fp32", "fp16.tensor.fp32", "is not well formed"),
        ("fp16.matrix.fp32", "bf16.matrix.fp32", "the architecture has no such rate; use the rate key"),
        ("power = 200", "power = 200\npower2 = 1", "power2: is no known key; did you mean 'power'?"),
        ("power = 200", "power = 20", "51.2 fp32 TFLOPS at 20 W is 2.56 per watt; 0.001 to 0.8 was ever sold"),
        (
            "power = 200",
            'override = [{ rate = "fp32.vector.fp32", reason = "x", source = "book" }]',
            "override: fp32.vector.fp32 needs either tflops or absent = true",
        ),
        ("[family]", "[famly]", "famly: is no known table; did you mean 'family'?"),
        ('source = ["book"]', "", "source: is missing; name a source here or in [family]"),
        ('title = "Fast"', "title = [", "is no TOML"),
    ],
)  # fmt: skip
def test_bad_input(data: Path, old: str, new: str, sentence: str) -> None:
    sentences = errors(change(data, old, new))
    assert any(sentence in text for text in sentences), sentences
    assert all(text.startswith(("chips/acme/fast.toml: ", "chips\\acme")) for text in sentences)


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        (
            'keys = ["fp16.matrix.fp32"]',
            'keys = ["fp8.matrix.fp32"]',
            "sparse: 'fp8.matrix.fp32' is no rate of it",
        ),
        (
            'keys = ["fp16.matrix.fp32"]',
            'keys = ["fp32.vector.fp32"]',
            "is a vector path; only matrix paths are sparse",
        ),
        ('unit = "SM"\ncores_per_unit = 128', "cores_per_unit = 128", "unit: is missing; add it"),
        (
            '"fp32.vector.fp32" = 256',
            '"fp32" = 256',
            "the key is not well formed; write dtype.path.accumulate",
        ),
        ('source = ["book"]', 'source = ["other"]', "source: 'other' is unknown"),
        ("[two]", "[one]", "is no TOML"),
    ],
)
def test_bad_architecture(data: Path, old: str, new: str, sentence: str) -> None:
    sentences = errors(change(data, old, new, "arch/a.toml"))
    assert any(sentence in text for text in sentences), sentences


def test_an_explained_difference_passes(data: Path) -> None:
    change(data, "tflops = 102", "tflops = 120")
    change(data, "power = 200", 'explain = { "fp16.matrix.fp32" = "another clock" }')
    result = check(str(data))
    assert errors(data) == []
    assert (result.compared, result.within) == (1, 0)


def test_a_generic_name_must_not_mean_one_chip(data: Path) -> None:
    change(data, "year = 2024", 'aliases = ["Intel Graphics"]')
    assert errors(data) == [
        "chips/acme/fast.toml: chip 'acme/fast-1': aliases: 'Intel Graphics' names no product, yet only this chip has it; remove it, or give it to every chip that it may mean"
    ]


def test_chips_that_nothing_distinguishes(data: Path) -> None:
    path = data / FAST
    path.write_text(path.read_text() + '[[chip]]\nid = "acme/twin"\nname = "Acme NPU"\n'
                    'kind = "npu"\ndt = ["acme,npu-v2"]\n')  # fmt: skip
    assert any("nothing distinguishes it from acme/twin" in text for text in warnings(data))


def test_published_at_base_clock(data: Path) -> None:
    change(data, "tflops = 102,", 'tflops = 51, clock = "base",')
    assert errors(data) == []


def test_a_huge_file(data: Path) -> None:
    with open(data / "chips/acme/huge.toml", "wb") as file:
        file.truncate(2**30)
    assert errors(data) == [
        "chips/acme/huge.toml: is larger than 524288 bytes; split it into families"
    ]


def test_a_vendors_file_is_judged_against_the_built_table(tmp_path: Path) -> None:
    path = tmp_path / "x.toml"
    path.write_text('[family]\ntitle = "X"\nvendor = "xyz"\nsource = ["cuda-pg"]\n\n[[chip]]\n'
                    'id = "xyz/one"\nname = "Xyz One"\narch = "ada-geforce"\nunits = 4\n')  # fmt: skip
    assert errors(path) == []
    path.write_text(path.read_text().replace("xyz", "nvidia"))
    assert any(
        "the namespace 'nvidia' belongs to the built table" in text for text in warnings(path)
    )


def test_a_file_of_a_folder_is_judged_with_the_folder(data: Path) -> None:
    change(data, "units = 100", "units = -1")
    (data / "arch/b.toml").write_text("[four]\nname = 4\n")
    assert [problem.file for problem in check(str(data / FAST)).problems] == [FAST] * 2
    assert {problem.file for problem in check(str(data / "arch/b.toml")).problems} == {
        "arch/b.toml"
    }
    folder = {problem.file for problem in check(str(data / "arch")).problems}
    assert folder == {"arch/a.toml", "arch/b.toml"}  # the first is not laid out canonically


def test_a_name_that_another_chip_hides_is_an_error(data: Path) -> None:
    change(data, 'name = "Acme NPU"', 'name = "Acme NPU"\naliases = ["Beta B Max"]')
    assert any("'Beta B Max' does not find this chip" in text for text in errors(data)) is False
    change(data, '"Beta B Max"]', '"GRID X-8Q"]')
    assert any("'GRID X-8Q' can never match" in text for text in errors(data))


@pytest.fixture
def repository(data: Path) -> Path:
    """A tree like this one: the package beside the data, and a table that was built."""
    from probe_chipdb.tools import layout
    from probe_chipdb.tools.build import build

    (data.parent / "src/probe_chipdb").mkdir(parents=True)
    layout.fix(str(data))
    build(str(data), str(data.parent / "src/probe_chipdb/table"))
    return data


def test_the_repositorys_own_rules(repository: Path) -> None:
    assert [str(problem) for problem in check(str(repository)).problems] == []
    change(repository, "#:schema ../../../schema/chips.schema.json\n", "")
    assert any("the first line does not name the schema" in text for text in errors(repository))
    change(repository, "units = 90", "units = 91")
    assert any("the built table is older than the data" in text for text in errors(repository))


def test_fix_writes_the_schemas_line(repository: Path) -> None:
    from probe_chipdb.tools import layout

    path = repository / "sources/s.toml"
    text = path.read_text()
    path.write_text("#:schema elsewhere.json\n" + text.partition("\n")[2])
    assert layout.fix(str(repository)) == [str(path)]
    assert path.read_text() == text


def test_a_file_is_named_as_it_was_typed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It was called `.` once: the path relative to itself."""
    monkeypatch.chdir(tmp_path)
    Path("folder").mkdir()
    for name in ("x.toml", "./x.toml", "folder/x.toml"):
        Path(name).write_text("[[chips]]\nname = 3\n")
        assert main(["check", name]) == 1
        (line,) = capsys.readouterr().out.splitlines()
        assert line == f"error: {name}: chips: is no known table; did you mean 'chip'?"


@pytest.mark.parametrize(
    ("published", "sparsity", "fix"),
    [
        (194.0, "dense", "twice as much"),
        (206.0, "dense", "twice as much"),
        (193.0, "dense", "correct units"),
        (207.0, "dense", "correct units"),
        (200.0, "sparse", "correct units"),
        (97_000.0, "dense", "a slip of x1000: "),
        (103_000.0, "sparse", "a slip of x1000: "),
        (96_900.0, "dense", "correct units"),
        (103_100.0, "dense", "correct units"),
        (0.097, "dense", "a slip of x0.001: "),
        (0.0969, "dense", "correct units"),
    ],
)
def test_the_size_of_a_difference_tells_the_slip(published: float, sparsity: str, fix: str) -> None:
    fault, advice = _difference(Figure("fp32.vector.fp32", sparsity, published, 100.0))
    assert fault.startswith(f"published {published:g} but units x rate x clock gives 100 (")
    assert advice.startswith(fix)


def test_a_board_shares_its_power_among_its_devices() -> None:
    for power, boards, each in ((700, 1, 700.0), (100, 3, 33.33), (None, 2, None)):
        chip: Any = SimpleNamespace(power=power, boards=boards)
        assert _per_device(chip) == each
