"""Precedence, disambiguation by live facts, conflicts, and answers that stay unknown."""

from collections.abc import Callable
from inspect import signature
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from probe_chipdb.chip import _COUNTS
from probe_chipdb.database import Database
from probe_chipdb.facts import Query
from probe_chipdb.matching import _is_confirmed
from probe_chipdb.name_facts import compatibles_in
from probe_chipdb.near import _score, near

GIB = 2**30
Make = Callable[..., Database]


def verdict(match: object) -> tuple[object, ...]:
    chip = match.chip  # type: ignore[attr-defined]
    return (chip.id if chip else None, match.by, match.confidence)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("facts", "answer"),
    [
        ({"pci": "aaaa:0001"}, ("acme/fast-1", "pci", "high")),
        ({"pci": "AAAA:0001"}, ("acme/fast-1", "pci", "high")),
        ({"pci": "0xaaaa:0x0001"}, ("acme/fast-1", "pci", "high")),
        ({"pci": "aaaa:0003"}, ("acme/fast-1-laptop", "pci", "high")),
        (
            {"pci": "aaaa:0003", "subsystem": "aaaa:1111"},
            ("acme/fast-oem", "pci-subsystem", "high"),
        ),
        ({"pci": "aaaa:0003", "subsystem": "aaaa:9999"}, ("acme/fast-1-laptop", "pci", "high")),
        ({"pci": "aaaa:0003", "revision": "c1"}, ("acme/fast-oem", "pci-revision", "high")),
        ({"pci": "aaaa:0003", "revision": "0xC1"}, ("acme/fast-oem", "pci-revision", "high")),
        ({"pci": "aaaa:0003", "revision": "a1"}, ("acme/fast-1-laptop", "pci", "high")),
        (
            {"pci": "aaaa:0003", "subsystem": "aaaa:2222", "revision": "c2"},
            ("acme/fast-oem", "pci-subsystem", "high"),
        ),
        ({"pci": "aaaa:0003", "subsystem": "aaaa:2222"}, ("acme/fast-1-laptop", "pci", "high")),
        ({"gpu_id": "arm:0xA867"}, ("beta/b-40", "gpu-id", "high")),
        ({"gpu_id": "arm:0xa8670000"}, ("beta/b-40", "gpu-id", "high")),
        ({"dt": ("other,first", "beta,soc-gpu")}, ("beta/b-40", "dt", "high")),
        ({"dt": ["acme,npu-v2"]}, ("acme/npu", "dt", "high")),
        ({"gfx": "gfx1100", "units": 30}, ("beta/b-30", "arch-units", "medium")),
        ({"gfx": "gfx1100:sramecc+", "units": 30}, ("beta/b-30", "arch-units", "medium")),
        ({"name": "gfx1100", "units": 40}, ("beta/b-40", "arch-units", "medium")),
        (
            {"name": "Radeon Graphics", "gfx": "gfx1100", "units": 30},
            ("beta/b-30", "arch-units", "medium"),
        ),
        ({"arch": "three", "units": 40}, ("beta/b-40", "arch-units", "medium")),
        ({"name": "Acme Fast 1 Laptop GPU"}, ("acme/fast-1-laptop", "name", "medium")),
        ({"name": "acme fast 1", "memory": 8 * GIB}, ("acme/fast-1-8gb", "name", "medium")),
        ({"name": "Acme Fast 1", "memory": int(15.0 * GIB)}, ("acme/fast-1", "name", "medium")),
        ({"name": "Beta B Max", "units": 30}, ("beta/b-30", "name", "medium")),
        ({"name": "x [aaaa:0001] (rev a1)", "name_kind": "lspci"}, ("acme/fast-1", "pci", "high")),
        ({"name": "x [aaaa:0003] (rev c1)"}, ("acme/fast-oem", "pci-revision", "high")),
        (
            {"pci": "aaaa:0003", "name": "x (rev c1)"},
            ("acme/fast-oem", "pci-revision", "high"),
        ),
        ({"name": "aaaa 0001", "name_kind": "pci"}, ("acme/fast-1", "pci", "high")),
        (
            {"name": "PCI\\VEN_AAAA&DEV_0003&SUBSYS_1111AAAA&REV_A1\\4&1A2B", "name_kind": "wmi"},
            ("acme/fast-oem", "pci-subsystem", "high"),
        ),
        (
            {"name": "pci:v0000AAAAd00000003sv0000AAAAsd00001111bc03sc00i00"},
            ("acme/fast-oem", "pci-subsystem", "high"),
        ),
        ({"name": "other,first\0beta,soc-gpu\0", "name_kind": "dt"}, ("beta/b-40", "dt", "high")),
    ],
)
def test_one_chip(db: Database, facts: dict[str, object], answer: tuple[object, ...]) -> None:
    match = db.match(**facts)  # type: ignore[arg-type]
    assert verdict(match) == answer
    assert match.conflicts == ()
    assert match.candidates == ()
    assert match.reason is None


@pytest.mark.parametrize(
    ("facts", "ids", "reason"),
    [
        ({"name": "Acme Fast 1"}, ["acme/fast-1", "acme/fast-1-8gb"], "memory size would decide"),
        ({"name": "Beta B Max"}, ["beta/b-30", "beta/b-40"], "unit count would decide"),
        ({"name": "Beta Graphics"}, ["beta/b-30", "beta/b-40"], "unit count would decide"),
        ({"pci": "aaaa:0009"}, ["acme/fast-1", "acme/fast-1-laptop"], "share the PCI id aaaa:0009"),
        (
            {"compute_capability": "8.9", "units": 100},
            ["acme/fast-1", "acme/fast-1-8gb"],
            "share the architecture and unit count; the memory size would decide",
        ),
    ],
)
def test_one_of(db: Database, facts: dict[str, object], ids: list[str], reason: str) -> None:
    match = db.match(**facts)  # type: ignore[arg-type]
    assert match.chip is None
    assert match.confidence is None
    assert [chip.id for chip in match.candidates] == ids
    assert reason in (match.reason or "")


def test_a_shared_pci_id_is_decided_by_units_or_name(db: Database) -> None:
    assert verdict(db.match(pci="aaaa:0009", units=80)) == ("acme/fast-1-laptop", "pci", "medium")
    named = db.match(pci="aaaa:0009", name="Acme Fast 1")
    assert verdict(named) == ("acme/fast-1", "pci", "medium")
    assert named.conflicts == ()


def test_pci_and_name_disagree(db: Database) -> None:
    match = db.match(pci="aaaa:0001", name="Acme Fast OEM")
    assert verdict(match) == ("acme/fast-1", "pci", "medium")
    assert match.conflicts == (
        "the PCI id aaaa:0001 means acme/fast-1, but the name 'Acme Fast OEM' means acme/fast-oem",
    )


def test_pci_and_live_units_disagree(db: Database) -> None:
    match = db.match(pci="aaaa:0001", units=64)
    assert verdict(match) == ("acme/fast-1", "pci", "medium")
    assert match.conflicts == ("acme/fast-1: the driver counts 64 SM, the product has 100",)


def test_pci_and_live_memory_disagree(db: Database) -> None:
    match = db.match(pci="aaaa:0001", memory=24 * GIB, units=64, name="Acme Fast OEM")
    assert verdict(match) == ("acme/fast-1", "pci", "low")


def test_memory_bounds(db: Database) -> None:
    assert db.match(pci="aaaa:0001", memory=int(0.905 * 16 * GIB)).conflicts == ()
    assert db.match(pci="aaaa:0001", memory=int(1.005 * 16 * GIB)).conflicts == ()
    too_much = db.match(pci="aaaa:0001", memory=int(1.02 * 16 * GIB))
    assert too_much.conflicts == (
        "acme/fast-1: the driver reports 16.3 GiB of memory, the product has 16",
    )
    assert len(db.match(pci="aaaa:0001", memory=int(0.89 * 16 * GIB)).conflicts) == 1


def test_pci_and_driver_architecture_disagree(db: Database) -> None:
    match = db.match(pci="aaaa:0001", compute_capability="9.0")
    assert verdict(match) == ("acme/fast-1", "pci", "medium")
    assert match.conflicts == ("acme/fast-1 is one, but the driver reports compute capability 9.0",)


def test_candidates_that_all_misfit_are_no_answer(db: Database) -> None:
    match = db.match(name="Acme Fast 1", memory=24 * GIB)
    assert match.chip is None
    assert match.conflicts == (
        "no candidate has the unit count and memory that the driver reports",
    )


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        ({}, "nothing that identifies a chip was given"),
        ({"name": "Acme Fast 2"}, "no chip is named 'Acme Fast 2'"),
        ({"name": "Acme Fast"}, "no chip is named"),
        ({"name": "Acme Fast 1 Ti"}, "no chip is named"),
        ({"pci": "aaaa:ffff"}, "no chip has PCI id aaaa:ffff"),
        ({"gpu_id": "arm:0x1234"}, "no chip has the id arm:0x1234"),
        ({"gpu_id": "nonsense"}, "no chip has the id nonsense"),
        ({"dt": ["x,y"]}, "no chip is compatible with x,y"),
        ({"name": "Radeon Graphics"}, "the name names no product"),
        (
            {"name": "Acme Fast OEM", "vendor": "beta"},
            "that fits the vendor and architecture (acme/fast-oem)",
        ),
        (
            {"name": "Acme Fast OEM", "compute_capability": "7.0"},
            "that fits the vendor and architecture",
        ),
        ({"name": "NVIDIA Acme Fast OEM"}, "that fits the vendor and architecture"),
    ],
)
def test_unknown(db: Database, facts: dict[str, object], reason: str) -> None:
    match = db.match(**facts)  # type: ignore[arg-type]
    assert (match.chip, match.by, match.confidence, match.candidates) == (None, None, None, ())
    assert reason in (match.reason or "")


def test_units_do_not_override_an_unknown_product_name(db: Database) -> None:
    """A new product on a known die must not become the old product."""
    assert db.match(name="Beta C", gfx="gfx1100", units=40).chip is None


def test_units_do_not_override_an_unknown_pci_id(db: Database) -> None:
    assert db.match(pci="bbbb:0001", arch="one", units=90).chip is None
    assert verdict(db.match(pci="bbbb:0001", gfx="gfx1100", units=40)) == (
        "beta/b-40",
        "arch-units",
        "medium",
    )


def test_known_name_with_unknown_pci_id_is_unsure(db: Database) -> None:
    match = db.match(pci="aaaa:ffff", name="Acme Fast OEM")
    assert verdict(match) == ("acme/fast-oem", "name", "low")
    assert match.conflicts == (
        "the name is known, but its PCI id aaaa:ffff is not: a newer variant?",
    )


def test_answers_are_kept_and_bounded(
    data: Path, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("probe_chipdb.database._MEMO", 2)
    db = make(data)
    first = db.match(pci="aaaa:0001")
    assert db.match(pci="aaaa:0001") is first
    for units in range(5):
        db.match(pci="aaaa:0001", units=units)
    assert db.match(pci="aaaa:0001") is not first


def test_unknown_kind_of_name(db: Database) -> None:
    with pytest.raises(ValueError, match="unknown kind 'x'"):
        db.match(name="y", name_kind="x")


def test_lookups_by_id(db: Database) -> None:
    assert db.chip("acme/none") is None
    assert db.arch("none") is None
    assert db.source("none") is None
    assert db.source("book") == {
        "title": "A datasheet",
        "publisher": "Acme",
        "ref": "acme.example: datasheet.pdf",
        "status": "read",
        "url": "https://acme.example/datasheet.pdf",
        "date": "2026-11-02",
    }
    assert [chip.id for chip in db.chips()] == [
        "acme/fast-1", "acme/fast-1-8gb", "acme/fast-1-laptop", "acme/fast-oem", "acme/npu",
        "beta/b-30", "beta/b-40",
    ]  # fmt: skip
    assert [arch.id for arch in db.archs()] == ["one", "three", "two", "vague"]


def test_near_shows_but_never_matches(db: Database) -> None:
    assert [chip.id for chip in db.near("fast 1 laptop", 1)] == ["acme/fast-1-laptop"]
    assert db.near("") == ()
    assert db.near("zzzzzz") == ()
    assert db.match(name="fast 1 laptop").chip is None


def test_a_clouds_type_of_machine_has_chips_and_a_cards_name_is_no_type(real: Database) -> None:
    names = (
        "p5.48xlarge",
        "Standard_ND96isr_MI300X_v5",
        "ecs.gn7i-c8g1.2xlarge",
        "H100",
        "L4",
        "TPU v5e",
    )
    assert [[chip.id for chip in real.of_machine_type(name)] for name in names] == [
        *(["nvidia/h100-sxm5-80gb"], ["amd/instinct-mi300x"], ["nvidia/a10"]),
        *([], [], []),
    ]


def test_a_name_that_even_the_driver_lacks_is_no_known_product(real: Database) -> None:
    facts = {"compute_capability": "8.9", "units": 128}
    for name in ("NVIDIA Graphics Device", "Graphics Device", "NVIDIA"):
        assert real.match(name=name, name_kind="nvml", **facts).chip is None  # type: ignore[arg-type]
    chip = real.match(name="NVIDIA Graphics Device", name_kind="nvml", pci="10de:2684").chip
    assert chip is not None
    assert chip.id == "nvidia/geforce-rtx-4090"


GIB = 2**30


def test_the_drivers_capability_name_and_memory_refute_a_pci_id(real: Database) -> None:
    """NVIDIA's mock of NVML gives a GB200 the id of an H100."""
    match = real.match(
        pci="10de:2330",
        compute_capability="10.0",
        name="NVIDIA GB200",
        name_kind="nvml",
        memory=184 * GIB,
    )
    assert match.chip is not None
    assert (match.chip.id, match.by, match.confidence) == ("nvidia/gb200", "name", "medium")
    (conflict,) = match.conflicts
    assert conflict == (
        "the PCI id 10de:2330 means nvidia/h100-sxm5-80gb (hopper), but the driver reports "
        "compute capability 10.0"
    )


@pytest.mark.parametrize(
    "facts",
    [
        {"compute_capability": "10.0", "memory": 80 * GIB},  # the memory is the H100's
        {"compute_capability": "9.0", "memory": 184 * GIB},  # the capability is the H100's
        {"memory": 184 * GIB},
    ],
)
def test_a_pci_id_holds_where_not_all_speak_against_it(
    real: Database, facts: dict[str, object]
) -> None:
    match = real.match(pci="10de:2330", name="NVIDIA GB200", **facts)  # type: ignore[arg-type]
    assert match.chip is None or match.chip.id == "nvidia/h100-sxm5-80gb"
    assert match.conflicts


def test_an_id_lists_name_does_not_choose_among_the_products_of_an_id(real: Database) -> None:
    """lspci prints one name for every card of a device id: that is the list speaking."""
    line = "Navi 44 [Radeon RX 9060 XT] [1002:7590]"
    match = real.match(name=line, name_kind="lspci")
    assert match.chip is None
    assert len(match.candidates) > 1


def test_no_chip_by_elimination_alone(real: Database) -> None:
    """4 GiB speak against an R9 270 with 2, and not for an R9 370 of unknown size."""
    name = "AMD Radeon R9 200 Series"
    match = real.match(pci="1002:6811", name=name, memory=4 * GIB)
    assert match.chip is None
    assert {chip.id for chip in match.candidates} == {"amd/radeon-r9-270", "amd/radeon-r9-370-oem"}


def test_the_registrys_memory_and_name_find_a_card_of_a_series(real: Database) -> None:
    match = real.match(
        pci="1002:6798", name="AMD Radeon R9 200 Series", name_kind="wmi", memory=3 * GIB
    )
    assert match.chip is not None
    assert match.chip.id == "amd/radeon-r9-280x"


@pytest.mark.parametrize(
    ("compatibles", "chip"),
    [
        (("arm,mali-bifrost", "rockchip,px30-evb", "rockchip,px30"), "arm/rk3326-mali-g31mp2"),
        (("arm,mali-valhall-csf", "rockchip,rk3588"), "arm/rk3588-mali-g610mp4"),
        (("hardkernel,rk3326-odroid-go2", "rockchip,rk3326", "arm,mali-bifrost"),
         "arm/rk3326-mali-g31mp2"),
        (("nvidia,p3509-0000+p3767-0000-super", "nvidia,p3767-0000"), "nvidia/jetson-orin-nx-16gb"),
        (("nvidia,p3768-0000+p3767-0005-super", "nvidia,p3767-0005", "nvidia,tegra234"),
         "nvidia/jetson-orin-nano-developer-kit-super"),
        (("arm,mali-bifrost", "foo,bar"), None),
        (("rockchip,rk3588",), None),
    ],
)  # fmt: skip
def test_a_generic_gpu_node_on_a_known_soc(
    real: Database, compatibles: tuple[str, ...], chip: str | None
) -> None:
    match = real.match(dt=compatibles)
    assert (match.chip.id if match.chip else None) == chip


def test_a_hardware_id_that_architecture_and_memory_refute_is_no_chip(real: Database) -> None:
    """Without a product's name nothing says what it is, and an H100's peaks would be wrong."""
    facts = {"pci": "10de:2330", "compute_capability": "10.0", "name": "Mock GPU"}
    match = real.match(**facts, memory=186 << 30)  # type: ignore[arg-type]
    assert (match.chip, match.candidates) == (None, ())
    (conflict,) = match.conflicts
    assert conflict == (
        "the PCI id 10de:2330 means nvidia/h100-sxm5-80gb (hopper), but the driver reports compute "
        "capability 10.0; the driver reports 186.0 GiB of memory, the product has 80"
    )
    kept = real.match(**facts, memory=80 << 30)  # type: ignore[arg-type]
    assert kept.chip is not None
    assert (kept.chip.id, kept.confidence) == ("nvidia/h100-sxm5-80gb", "medium")


def test_what_match_takes_is_what_it_looks_up() -> None:
    """The two signatures are the two places of a fact: its facts go on in their order."""
    taken, read = (list(signature(of).parameters.values()) for of in (Database.match, Query))
    assert [(p.name, p.default) for p in taken[1:]] == [(p.name, p.default) for p in read]


@pytest.mark.parametrize(
    ("kind", "own", "expected"),
    [
        ("pci", "", ("10de:2684", "1043:889a", "a1")),
        ("name", "", ("10de:2684", "1043:889a", "a1")),
        # Those of a tree's text are no ids, and where the device's own are known none of a name.
        ("dt", "", ("", "", "")),
        ("pci", "10de:2204", ("10de:2204", "", "")),
        ("name", "10de:2204", ("10de:2204", "", "")),
    ],
)
def test_ids_in_a_name_count_where_no_others_are(
    db: Database, kind: str, own: str, expected: tuple[str, str, str]
) -> None:
    query = Query(name="10DE:2684/1043:889A@a1", name_kind=kind, pci=own).read_name(db)
    assert (query.pci, query.subsystem, query.revision) == expected


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("a,b,c,d", ("a,b,c,d", "a,b", "c,d")),
        ("a,b,c,d,e,f", ("a,b,c,d,e,f", "a,b", "c,d", "e,f")),
        ("a,b,c", ("a,b,c",)),
        ("a,b,c,d,e", ("a,b,c,d,e",)),
        ("OF_COMPATIBLE_0=a,b\nOF_COMPATIBLE_1=c,d", ("a,b", "c,d")),
        ('compatible = "", ;', ()),
        ("of:NgpuT(null)Ca,bCc,d", ("a,b", "c,d")),
    ],
)
def test_names_of_a_device_tree_in_a_text(text: str, names: tuple[str, ...]) -> None:
    assert compatibles_in(text) == names


@pytest.mark.parametrize(
    ("units", "memory", "unit", "gib", "is_confirmed"),
    [
        (16, None, "SM", None, True),
        (16, None, "", 4.0, False),
        (None, 1, "SM", 4.0, True),
        (None, 1, "SM", None, False),
        (None, None, "SM", 4.0, False),
        (16, 1, "", None, False),
    ],
)
def test_a_live_fact_speaks_for_a_chip_that_has_it(
    units: int | None, memory: int | None, unit: str, gib: float | None, is_confirmed: bool
) -> None:
    fields = {_COUNTS: ""}
    memory_of = SimpleNamespace(gib=gib)
    chip: Any = SimpleNamespace(units=16 if unit else None, fields=fields, memory=memory_of)
    query: Any = SimpleNamespace(units=units, memory=memory)
    assert _is_confirmed(chip, query) is is_confirmed


def test_what_looks_like_a_name_by_words_and_then_by_letters() -> None:
    assert _score("rtx 4090", "rtx 4090") == 2.0
    assert _score("rtx 4090", "rtx 5080") == pytest.approx(0.5 + 0.75)
    assert _score("rtx 4090", "xrtx 5080") > 0  # its four first letters are there
    assert _score("rtxq 4090", "rtx 5080") == 0
    index = [("n:rtx 4090", "a"), ("n:tx 4090", "b c"), ("p:rtx 4090", "d"), ("n:zz", "e")]
    db: Any = SimpleNamespace(tables=lambda: [SimpleNamespace(index=index)], chip=str.upper)
    assert near(db, "RTX 4090", 9) == ("A", "B", "C")
    assert near(db, "TX 4090", 2) == ("B", "C")
    assert near(db, " ", 9) == ()
