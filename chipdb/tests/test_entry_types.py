"""The types of entries name the fields that the check knows, and no others."""

from typing import get_type_hints

import pytest

from probe_chipdb.entry import fields, types
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
        (types.ChipEntry, {*fields.CHIP, "family"}),
        (types.ClockEntry, item(fields.CHIP["clock"])),
        (types.MemoryEntry, item(fields.CHIP["memory"])),
        (types.PublishedEntry, item(fields.CHIP["published"])),
        (types.OverrideEntry, item(fields.CHIP["override"])),
        (types.FamilyEntry, fields.FAMILY),
        (types.ArchEntry, fields.ARCH),
        (types.MatchEntry, fields.MATCH),
        (types.SparseEntry, item(fields.ARCH["sparse"])),
        (types.IsaStep, item(fields.ARCH["isa"])),
        (types.CpuidRule, item(fields.MATCH["cpuid"])),
        (types.MidrRule, item(fields.MATCH["midr"])),
        (types.CpuBrandRule, item(fields.MATCH["brand"])),
        (types.SourceEntry, fields.SOURCE),
    ],
)
def test_a_type_has_the_fields_of_its_check(entry: type, known: object) -> None:
    assert set(get_type_hints(entry)) == set(known)  # type: ignore[call-overload]


@pytest.mark.parametrize(
    ("entry", "spec"),
    [
        (types.ArchEntry, fields.arch),
        (types.SourceEntry, fields.source),
        (types.PublishedEntry, fields.CHIP["published"].each),  # type: ignore[attr-defined]
        (types.OverrideEntry, fields.CHIP["override"].each),  # type: ignore[attr-defined]
        (types.CpuidRule, fields.MATCH["cpuid"].each),  # type: ignore[attr-defined]
        (types.MidrRule, fields.MATCH["midr"].each),  # type: ignore[attr-defined]
    ],
)
def test_what_a_type_requires_the_check_requires(entry: type, spec: Table) -> None:
    assert entry.__required_keys__ == set(spec.need)  # type: ignore[attr-defined]
