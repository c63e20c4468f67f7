"""`each_card`: the loop of probers and samplers that announces what it may ask."""

from __future__ import annotations

import pytest

from probe_core.api import Machine, Request, SampleRequest, each_card


class Card:
    def __init__(self, identity: str) -> None:
        self.id = identity


def request(kind: type[Request] = Request, **options: object) -> tuple[Request, list[str]]:
    touched: list[str] = []
    return kind(Machine("/"), announce=lambda _, name: touched.append(name), **options), touched


def test_each_card_that_may_be_asked_is_announced_just_before() -> None:
    asked, touched = request(avoid=["x:2"])
    seen = [(card, may, list(touched)) for card, may in each_card(asked, ["x:1", "x:2", "x:3"])]
    assert seen == [
        ("x:1", True, ["x:1"]),
        ("x:2", False, ["x:1"]),
        ("x:3", True, ["x:1", "x:3"]),
    ]


def test_a_sampler_leaves_out_what_sleeps_too() -> None:
    asked, touched = request(SampleRequest, avoid=["x:1"], asleep=["x:2"])
    assert [may for _, may in each_card(asked, ["x:1", "x:2", "x:3"])] == [False, False, True]
    assert touched == ["x:3"]


def test_a_probers_request_skips_what_is_avoided() -> None:
    asked, _ = request(avoid=["x:1", "uuid:A"])
    assert asked.skip("x:1")
    assert asked.skip("x:9", "uuid:A")
    assert not asked.skip("x:2")
    assert not asked.skip()


@pytest.mark.parametrize(
    ("cards", "identity"),
    [([Card("x:7")], None), ([{"name": "7"}], lambda card: f"x:{card['name']}")],
    ids=["its id", "a function"],
)
def test_a_card_has_its_id_or_a_function_that_gives_it(cards: list, identity: object) -> None:
    asked, touched = request()
    assert list(each_card(asked, cards, identity)) == [(cards[0], True)]
    assert touched == ["x:7"]
