"""Does it fit: by three policies, with what would."""

from __future__ import annotations

from dataclasses import replace

import pytest

from probe_cluster import ClusterError, Member, Model, fit
from probe_cluster.planning.fitting import node_fit

GIB = 1 << 30
MODEL = Model(70_000_000_000, 80, 16.0)  # 130.4 GiB of weights


def node(name: str, total: int, free: int) -> Member:
    return Member(name, total * GIB, free * GIB, (free * GIB,))


def test_available_memory_decides_by_whole_layers() -> None:
    answer = fit([node("a", 128, 100), node("b", 64, 50)], MODEL, reserve=0.0)
    assert (answer.ok, answer.layers, answer.required) == (True, 80, 140_000_000_000)
    assert answer.sentence == "the model needs 130.4 GiB and the nodes have 150 GiB for it"


def test_what_would_fit_is_told_in_bits() -> None:
    answer = fit([node("a", 128, 100)], MODEL, reserve=0.0)
    assert (answer.ok, answer.layers, answer.bits) == (False, 61, 8.5)
    assert answer.sentence.endswith("the nodes have 100 GiB for it; at 8.5 bits it would fit")


def test_a_node_alone_is_offered_the_bits_that_probe_fit_offers() -> None:
    for bits in (8.5, 6.5, 5.5, 4.5, 3.5, 2.6):
        room = replace(MODEL, bits=bits).total_bytes + 80
        memory = {"kind": "dedicated", "total": room}
        document = {"devices": [{"id": "g", "kind": "gpu", "memory": memory}]}
        own = [Member("a", room, room, (room,))]
        assert fit(own, MODEL, reserve=0.0).bits == bits
        assert node_fit(document, MODEL, reserve=0.0).bits == bits


def test_what_would_fit_is_told_in_parameters() -> None:
    low = replace(MODEL, bits=2.0)
    answer = fit([node("a", 8, 8)], low, reserve=0.0)
    assert (answer.ok, answer.bits) == (False, None)
    # 8 GiB at 2 bits: 34.36 billion parameters, down to a whole layer and the search's step
    assert 34.3e9 < answer.params <= 34.36e9
    assert fit([node("a", 8, 8)], replace(low, params=answer.params), reserve=0.0).ok


def test_nothing_fits_where_there_is_nothing() -> None:
    answer = fit([Member("a", 0, 0, (0,))], MODEL)
    assert (answer.layers, answer.bits, answer.params) == (0, None, 0)
    assert answer.sentence.endswith("no model of as many layers would fit")


def test_the_kv_cache_counts() -> None:
    plain = Model(8_030_261_248, 32, 4.5, kv_heads=8, head_dim=128)
    small = [node("a", 8, 6)]
    assert fit(small, plain).ok
    # 128 KiB a token: 16 GiB at 131,072 tokens
    answer = fit(small, replace(plain, context=131_072))
    assert not answer.ok
    assert answer.required - plain.layer_bytes * 32 == 16 * GIB


def test_the_home_policy_wants_twice_the_weights_of_all_memory() -> None:
    model = replace(MODEL, bits=8.0)  # 70 GB: 140 GB wanted
    assert not fit([node("a", 130, 1)], model, "home").ok
    answer = fit([node("a", 130, 1), node("b", 8, 1)], model, "home")
    assert (answer.ok, answer.required) == (True, 140_000_000_000)
    assert fit([node("a", 128, 128)], model, "home").bits == 6.5


@pytest.mark.parametrize("reserve", [float("nan"), -0.1, 1.0, 2.0])
def test_a_reserve_that_is_no_share_is_refused(reserve: float) -> None:
    with pytest.raises(ClusterError, match="the reserve is a share of the memory below 1, not"):
        fit([node("a", 8, 8)], MODEL, reserve=reserve)


def test_a_reserve_is_left_free() -> None:
    tight = [node("a", 131, 131)]
    assert fit(tight, MODEL, reserve=0.0).ok
    assert not fit(tight, MODEL, reserve=0.05).ok


def test_senseless_questions_are_errors() -> None:
    with pytest.raises(ClusterError, match="'hope' is no policy; there are available, total, home"):
        fit([node("a", 1, 1)], MODEL, "hope")
    with pytest.raises(ClusterError, match="there is no node"):
        fit([], MODEL)
