"""Shapes of brand strings: exact, closest first, and never a digit too many."""

import pytest

from probe_chipdb.cpu_brand import brand_key, fits, weight
from probe_chipdb.entry import fields


@pytest.mark.parametrize(
    ("pattern", "key", "fitting"),
    [
        ("ryzen # 7#4#u", "ryzen 7 7840u", True),
        ("ryzen # 7#4#u", "ryzen 7 7840us", False),
        ("ryzen # 7#4#u", "ryzen 7 7830u", False),
        ("xeon platinum 84##*", "xeon platinum 8480c", True),
        ("xeon platinum 84##*", "xeon platinum 8480+", True),
        ("xeon platinum 84##*", "xeon platinum 8480", True),
        ("xeon platinum 84##*", "xeon platinum 84801", False),
        ("xeon platinum 84##*", "xeon platinum 848", False),
        ("xeon platinum 84##*", "xeon platinum 84801c", False),
        ("xeon platinum 84##", "xeon platinum 8480c", False),
        ("epyc 7#?3*", "epyc 73f3", True),
        ("epyc 7#?3*", "epyc 7763", True),
        ("epyc 7#?3*", "epyc 7 63", False),
        ("core i# ####", "core i7 4770", True),
        ("core i# ####", "core i7 4770k", False),
    ],
)
def test_fits(pattern: str, key: str, fitting: bool) -> None:
    assert fits(pattern, key) is fitting


def test_the_closer_rule_has_more_letters() -> None:
    assert weight("core i3 8121u") > weight("core i# 8###u")
    assert [weight(rule) for rule in ("core i3", "core i#", "c?re*", "#?*")] == [7, 6, 3, 0]


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("13th Gen Intel(R) Core(TM) i7-13700K", "core i7 13700k"),
        ("AMD FX(tm)-8350 Eight-Core Processor", "fx 8350"),
        ("Intel(R) Xeon(R) CPU E5-2670 0 @ 2.60GHz", "xeon e5 2670"),
        ("AMD Ryzen 5 5600X 6-Core Processor             ", "ryzen 5 5600x"),
        ("AMD EPYC 7763 64-Core Processor", "epyc 7763"),
        ("Cortex-A76", "cortex a76"),
        ("12th Gen Core(TM) i5-1240P", "core i5 1240p"),
        ("Intel(R) Xeon(R) Gold 6130 CPU @ 2.10GHz", "xeon gold 6130"),
        ("AMD EPYC 9754 128-Core Processor 0", "epyc 9754"),
    ],
)
def test_brand_key(name: str, key: str) -> None:
    assert brand_key(name) == key


@pytest.mark.parametrize("token", ["Gold 51,52", "a,b"])
def test_a_comma_in_a_brand_word_is_refused(token: str) -> None:
    """The built table separates the words of a rule by commas."""
    for rule in ("brand", "cpuid"):
        spec = fields.MATCH[rule].each.keys["prefix" if rule == "brand" else "brand"]  # type: ignore[attr-defined]
        assert [fault for _, fault, _ in spec.faults([token], "x")] == [
            f"{token!r} is not well formed"
        ]
