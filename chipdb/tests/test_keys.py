"""Keys under which the table is searched, and what a part of a name may mean, at their bounds."""

from collections.abc import Callable
from pathlib import Path

import pytest

from probe_chipdb import shortcuts
from probe_chipdb.candidates import register_keys
from probe_chipdb.database import Database
from probe_chipdb.name_lookup import _describes, _is_short, _may_name

Make = Callable[..., Database]


@pytest.mark.parametrize(
    ("register", "keys"),
    [
        ("arm:0xa867", ["arm:0xa867"]),
        ("arm:0xffff", ["arm:0xffff"]),
        ("arm:0x10000", ["arm:0x10000", "arm:0x1"]),
        ("arm:0xa8670000", ["arm:0xa8670000", "arm:0xa867"]),
        ("apple:0x10000", ["apple:0x10000"]),
        ("arm:mali", []),
        ("arm", []),
    ],
)
def test_keys_of_a_register(real: Database, register: str, keys: list[str]) -> None:
    found = register_keys(real, register, "gm")
    assert [key for key in found if "/" not in key] == keys
    masked = [key for key in found if "/" in key]
    assert len(masked) == len(keys) * len(real.ids(f"gm:{register.partition(':')[0]}"))


PART = """
[[chip]]
id = "acme/{0}"
name = "Part {0}"
arch = "one"
units = 4
clock = {{ boost = 1000 }}
pci = ["{1}"]
"""
FAMILY = '[family]\ntitle = "Parts"\nvendor = "acme"\nkind = "gpu"\nsource = ["book"]\n'
KEYS = ("aaaa:0042", "aaaa:0042@c1", "aaaa:0042/aaaa:1111", "aaaa:0042/aaaa:1111@c1")


@pytest.mark.parametrize(
    ("more", "at", "by"),
    [
        ({}, 0, "pci"),
        ({"revision": "c1"}, 1, "pci-revision"),
        ({"subsystem": "aaaa:1111"}, 2, "pci-subsystem"),
        ({"subsystem": "aaaa:1111", "revision": "c1"}, 3, "pci-subsystem"),
        ({"subsystem": "aaaa:1111", "revision": "c2"}, 2, "pci-subsystem"),
        ({"subsystem": "aaaa:2222", "revision": "c1"}, 1, "pci-revision"),
        ({"subsystem": "aaaa:2222", "revision": "c2"}, 0, "pci"),
    ],
    ids=range(7),
)
def test_the_longest_key_of_a_pci_id_counts(
    data: Path, make: Make, more: dict[str, str], at: int, by: str
) -> None:
    parts = "".join(PART.format(f"p{number}", key) for number, key in enumerate(KEYS))
    (data / "chips" / "acme" / "parts.toml").write_text(FAMILY + parts)
    match = make(data).match(pci="aaaa:0042", **more)
    assert match.chip is not None
    assert (match.chip.id, match.by) == (f"acme/p{at}", by)


@pytest.mark.parametrize(
    ("vendor", "key", "may"),
    [
        ("", "rtx4090", True),
        ("", "gtx1", True),
        ("", "l40", False),
        ("nvidia", "l40", True),
        ("", "4090", False),
        ("", "titan", False),
        ("nvidia", "graphics", False),
    ],
)
def test_which_part_may_name_a_product(vendor: str, key: str, may: bool) -> None:
    assert _may_name(vendor, key) is may


@pytest.mark.parametrize(
    ("key", "names", "is_short"),
    [
        ("t4", ["x"], True),
        ("l40", ["a"], True),
        ("m3", ["apple m3 ultra"], False),
        ("m3", ["apple m30"], True),
        ("a1000", ["x"], False),
        ("4x", [], False),
        ("ab", [], False),
    ],
)
def test_which_part_is_too_short(key: str, names: list[str], is_short: bool) -> None:
    assert _is_short(key, names) is is_short


@pytest.mark.parametrize(
    ("name", "words", "others"),
    [
        ("RTX 4090", ["ad102", "ada", "sm_89", "8.9", "ada lovelace"], ["gb202", "", "rtx", "sm_"]),
        ("RX 7900 XTX", ["gfx1100", "rdna 3", "navi 31", "navi31"], ["ada", "gfx1201"]),
    ],
)
def test_a_die_and_an_architecture_describe_a_chip(
    real: Database, name: str, words: list[str], others: list[str]
) -> None:
    chip = real.match(name=name).chip
    assert chip is not None
    assert [_describes(real, chip, word) for word in words] == [True] * len(words)
    assert [_describes(real, chip, word) for word in others] == [False] * len(others)


def test_texts_of_a_caller_are_short() -> None:
    class Silent:
        def __str__(self) -> str:
            raise TypeError

    long = "x" * 64
    texts = (None, " a ", 9.0, long, f"{long}x", Silent())
    assert [shortcuts._text(text) for text in texts] == ["", "a", "9.0", long, "", ""]


@pytest.mark.parametrize(
    ("name", "facts", "is_nvidias"),
    [
        (None, {"pci": "10de:ffff"}, True),
        ("RTX 4090", {"pci": "1002:744c"}, False),
        (None, {}, False),
        ("", {}, False),
        ("NVIDIA Next 9", {}, True),
        ("Tesla V100", {}, True),
        ("Radeon RX 7900 XTX", {}, False),
        ("Kunlun P800", {}, False),
        ("Foo", {}, False),
    ],
)
def test_whose_capability_is_trusted(
    real: Database, name: str | None, facts: dict[str, object], is_nvidias: bool
) -> None:
    device = shortcuts.Device(name, {**facts, "capability": "8.9"})
    assert (device._trusted_capability(real) == "8.9") is is_nvidias


@pytest.mark.parametrize(
    ("facts", "is_derived"),
    [
        ({"units": 4, "clock_mhz": 1000}, True),
        ({"units": 4}, False),
        ({"clock_mhz": 1000}, False),
        ({"units": 4, "clock_mhz": 1000, "capability": "99.9"}, False),
    ],
)
def test_peaks_of_an_unknown_chip_need_its_units_and_clock(
    real: Database, facts: dict[str, object], is_derived: bool
) -> None:
    device = shortcuts.Device("NVIDIA Next 9", {"capability": "8.9", **facts})
    assert bool(device.derived(real)) is is_derived


def test_a_figure_has_four_places_in_json(real: Database) -> None:
    chip = real.match(name="NVIDIA L4").chip
    assert chip is not None
    peak = chip.peak("bf16", path="matrix")
    assert peak is not None
    assert (peak.tflops, peak.as_json()["tflops"]) == (pytest.approx(121.15968), 121.1597)
