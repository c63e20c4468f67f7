"""The types of entries name the fields that the check knows, and no others."""

from typing import get_type_hints

import pytest

from probe_chipdb.entry import fields
from probe_chipdb.entry.spec import ListOf, Spec, Table


def item(spec: Spec) -> dict[str, Spec]:
    """The fields of a table, or of a list of tables."""
    table = spec.each if isinstance(spec, ListOf) else spec
    assert isinstance(table, Table)
    return dict(table.keys)


@pytest.mark.parametrize(
    ("entry", "known"),
    [
        # The family's title is filled in from the file.
        (fields.ChipEntry, {*fields.CHIP, "family"}),
        (fields.ClockEntry, item(fields.CHIP["clock"])),
        (fields.MemoryEntry, item(fields.CHIP["memory"])),
        (fields.PublishedEntry, item(fields.CHIP["published"])),
        (fields.OverrideEntry, item(fields.CHIP["override"])),
        (fields.FamilyEntry, fields.FAMILY),
        (fields.ArchEntry, fields.ARCH),
        (fields.MatchEntry, fields.MATCH),
        (fields.SparseEntry, item(fields.ARCH["sparse"])),
        (fields.IsaStep, item(fields.ARCH["isa"])),
        (fields.CpuidRule, item(fields.MATCH["cpuid"])),
        (fields.MidrRule, item(fields.MATCH["midr"])),
        (fields.CpuBrandRule, item(fields.MATCH["brand"])),
        (fields.SourceEntry, fields.SOURCE),
    ],
)
def test_a_type_has_the_fields_of_its_check(entry: type, known: object) -> None:
    assert set(get_type_hints(entry)) == set(known)  # type: ignore[call-overload]


@pytest.mark.parametrize(
    ("entry", "spec"),
    [
        (fields.ArchEntry, fields.arch),
        (fields.SourceEntry, fields.source),
        (fields.PublishedEntry, fields.CHIP["published"].each),  # type: ignore[attr-defined]
        (fields.OverrideEntry, fields.CHIP["override"].each),  # type: ignore[attr-defined]
        (fields.CpuidRule, fields.MATCH["cpuid"].each),  # type: ignore[attr-defined]
        (fields.MidrRule, fields.MATCH["midr"].each),  # type: ignore[attr-defined]
    ],
)
def test_what_a_type_requires_the_check_requires(entry: type, spec: Table) -> None:
    assert entry.__required_keys__ == set(spec.need)  # type: ignore[attr-defined]
