"""The bounds of every field of an entry: what is at them passes, and what is beyond is refused."""

import pytest

from probe_chipdb.entry import fields
from probe_chipdb.entry.spec import ListOf, MapOf, Number, Spec, Table, Text

FILES: dict[str, Spec] = {
    "chip": fields.chip,
    "family": fields.family,
    "arch": fields.arch,
    "source": fields.source,
    "rules": Table(fields.RULES),
    "formats": Table(fields.FORMAT_TABLES),
}

NUMBERS = """
chip.year 1999 2035 whole
chip.units 1 30000 whole
chip.clock.base 50 7000
chip.clock.boost 50 7000
chip.clock.matrix 50 7000
chip.clock.boost_low 50 7000
chip.clock.game 50 7000
chip.memory.gib 0.0625 4096
chip.memory.bus 8 32768 whole
chip.memory.gbs 0.5 40000
chip.memory.gbs_low 0.5 40000
chip.power 0.3 5000
chip.power_low 0.3 5000
chip.power_limits.least 0 5000
chip.power_limits.most 0.3 5000
chip.power_limits.default 0.3 5000
chip.boards 1 64 whole
chip.shown 1 64 whole
chip.published.*.tflops 0.0001 1000000
chip.sustained.*.watts 0.3 5000
chip.sustained.*.runs 1 1000000 whole
chip.interconnect.gbs 1 20000
chip.sram.mib 0.1 1000000
chip.ecc.share 0.001 0.5
arch.cores_per_unit 1 1024 whole
arch.match.cpuid.*.family 0 300 whole
arch.match.midr.*.variant 0 15 whole
arch.sparse.factor 1 8
arch.rates.* 0.001 10000000
"""

CHARACTERS = """
16 arch.unit arch.match.cpuid.*.vendor
32 chip.memory.type chip.power_limits.driver chip.interconnect.kind arch.match.cpuid.*.flag
32 formats.row.*.since formats.row.*.seen
64 chip.codename arch.match.prefix.* arch.match.cpuid.*.name arch.match.cpuid.*.brand.*
64 arch.match.brand.*.pattern.* rules.set.*.* rules.word.*.*
96 chip.sustained.*.software arch.name source.publisher
100 rules.machine.*.example rules.machine.*.expect
128 chip.name family.title arch.match.dt.*
200 chip.read.*.at rules.none.*.reason rules.machine.*.to rules.host.*.to rules.host.*.unless
200 formats.row.*.at
256 chip.id chip.aliases.* rules.none.*.example rules.host.*.expect
300 chip.read.*.quote source.title formats.unknown.* formats.row.*.unknown
400 chip.override.*.reason chip.explain.* source.ref source.url rules.machine.*.pattern
400 rules.host.*.pattern rules.host.*.example formats.row.*.quote
600 chip.note family.note arch.note
"""

ITEMS = """
8 chip.read arch.read
16 chip.counts
64 chip.aliases chip.source arch.match.cpuid.*.models rules.host rules.none formats.row.*.formats
100 rules.machine rules.fact
200 arch.match.exact arch.match.cpuid.*.brand arch.match.brand.*.pattern rules.form
200 formats.group.* formats.row.*.archs
256 rules.set.* rules.none.*.words
400 chip.pci
500 rules.line formats.row
"""


def spec_at(path: str) -> Spec:
    """Return the kind of value of a field; a star is any item of a list, or any key of a map."""
    first, *parts = path.split(".")
    spec = FILES[first]
    for part in parts:
        if isinstance(spec, Table):
            spec = spec.keys[part]
        else:
            assert isinstance(spec, ListOf | MapOf)
            spec = spec.each
    return spec


def paths_of(table: str) -> list[tuple[int, str]]:
    lines = [line.split() for line in table.split("\n") if line]
    return [(int(most), path) for most, *paths in lines for path in paths]


def said(path: str, value: object) -> str:
    return "; ".join(fault for _, fault, _ in spec_at(path).faults(value, "x"))


@pytest.mark.parametrize("line", NUMBERS.split("\n")[1:-1], ids=lambda line: line.split()[0])
def test_a_number_is_within_its_bounds(line: str) -> None:
    path, low, high, *whole = line.split()
    spec = spec_at(path)
    assert isinstance(spec, Number)
    kind = int if whole else float
    ends = kind(low), kind(high)
    step = 1 if whole else 1e-6
    assert [said(path, end) for end in ends] == ["", ""]
    for beyond in (ends[0] - step, ends[1] + step):
        assert said(path, beyond).endswith("is out of bounds")
    assert bool(said(path, float(high))) == bool(whole)


@pytest.mark.parametrize(("most", "path"), paths_of(CHARACTERS))
def test_a_text_is_no_longer_than_it_may_be(most: int, path: str) -> None:
    assert isinstance(spec_at(path), Text)
    assert "characters" not in said(path, "a" * most)
    assert said(path, "a" * (most + 1)) == f"a text of {most + 1} characters"


@pytest.mark.parametrize(("most", "path"), paths_of(ITEMS))
def test_a_list_has_no_more_than_it_may_have(most: int, path: str) -> None:
    assert "a list of" not in said(path, list(range(most)))
    assert said(path, list(range(most + 1))).startswith(f"a list of {most + 1}")
