"""What serving costs, worked by hand for a device and a model of round figures."""

from __future__ import annotations

from dataclasses import replace

import pytest

from probe_cluster.planning import serving
from probe_cluster.planning.architecture import CacheGroup
from probe_cluster.planning.efficiency import Efficiency, ServingCosts
from probe_cluster.planning.links import Link
from probe_cluster.planning.model import Model
from probe_cluster.planning.serving import Device, Load, Split

# A token reads 400 of 1,000 bytes: 200 that all tokens read, and one of four experts of 200 each.
MODEL = Model(
    params=1000,
    layers=10,
    bits=8,
    active_params=400,
    hidden=50,
    kv_heads=2,
    head_dim=5,
    kv_bits=8,
    heads=4,
    experts=(4, 1),
)
DEVICE = Device(
    memory=2000,
    bandwidth=100.0,
    arithmetic=1000.0,
    attention=200.0,
    layer=0.5,
    efficiency=Efficiency(1.0, 0.0, "by hand"),
    costs=ServingCosts(
        cache=0.5, apart=0.5, reduce=0.5, reduce_pcie=0.25, step=3.0, request=0.125, chunk=8
    ),
    inner=Link("nvlink", 1000.0, 0.5, 0.25),
    outer=Link("pcie5", 100.0, 2.0),
    per_node=2,
)
ONE = Split(1, 1, False)
LOAD = Load(1, 10, 4)


def read_of(tokens: float) -> float:
    """Bytes that so many tokens read which choose their experts anew: 1 - 3/4^n of them."""
    return 200 + 800 * (1 - 0.75**tokens)


def test_bytes_of_a_model() -> None:
    assert (MODEL.weight_bytes, MODEL.hop_bytes) == (1000, 100)
    assert [MODEL.read_at_once(tokens) for tokens in (0.5, 1, 2)] == [400, 400, 550]
    assert serving._experts(MODEL) == 800
    assert [serving._weights(MODEL, 4, expert) for expert in (False, True)] == [250, 400]
    dense = replace(MODEL, experts=None, active_params=None)
    assert (serving._experts(dense), serving._weights(dense, 4, True)) == (0, 250)


def test_where_a_cache_lies() -> None:
    assert [serving._cache_parts(MODEL, tensor, False) for tensor in (1, 2, 4)] == [1, 2, 2]
    assert serving._cache_parts(MODEL, 4, True) == 4
    assert serving._cache_parts(replace(MODEL, kind="mla"), 4, False) == 1
    assert serving._cache_parts(replace(MODEL, kv_heads=None), 4, False) == 4


@pytest.mark.parametrize(
    ("tokens", "split", "size"),
    [
        (1, ONE, 400),
        (0.5, ONE, 400),
        (3, ONE, 550),  # two tokens beyond the first, of which half choose anew
        (3, Split(2, 1, False), 275),
        (3, Split(4, 1, True), 200 + (550 - 200) / 4),
    ],
)
def test_what_a_device_reads(tokens: float, split: Split, size: float) -> None:
    assert serving._read(MODEL, tokens, split, 0.5) == size


@pytest.mark.parametrize(
    ("tensor", "seconds"),
    [
        # A ring of n moves 2(n-1)/n of the 1,000 bytes; over PCIe at a quarter of its bandwidth.
        (2, 0.25 + 1000 / 500),
        (4, 2.0 + 1500 / 25),
    ],
)
def test_an_all_reduce(tensor: int, seconds: float) -> None:
    assert serving._reduce(DEVICE, MODEL, tensor, 10) == seconds


@pytest.mark.parametrize(
    ("tokens", "split", "seconds"),
    [
        (1, ONE, 4 + 5),  # bytes, then layers
        (20, ONE, 16 + 5),  # operations, which take longer than bytes
        (20, Split(2, 1, False), 8 + 5 + 10 * 2 * (0.25 + 2000 / 500)),
        (1, Split(1, 2, False), 4 + 5 + 2 * (0.5 + 0.1)),
        (1, Split(1, 4, False), 4 + 5 + 4 * (2.0 + 1.0)),
    ],
)
def test_a_pass_through_all_layers(tokens: float, split: Split, seconds: float) -> None:
    assert serving._pass(DEVICE, MODEL, split, tokens) == pytest.approx(seconds)


def test_the_attention_of_a_prompt() -> None:
    assert serving._attention(DEVICE, MODEL, LOAD, ONE) == 4 * (10 * 10 * 10 / 2) * 4 * 5 / 200
    assert serving._attention(DEVICE, MODEL, LOAD, Split(2, 1, False)) == 100
    windows = replace(MODEL, cache=(CacheGroup(4, 20, 3, 0), CacheGroup(6, 20, None, 0)))
    pairs = 4 * 10 * 6 / 2 + 6 * 10 * 10 / 2
    assert serving._attention(DEVICE, windows, LOAD, ONE) == 4 * pairs * 4 * 5 / 200
    assert serving._attention(replace(DEVICE, attention=None), MODEL, LOAD, ONE) == 0


def test_a_step_of_answers() -> None:
    """A pass, the caches of 12 tokens at half the bandwidth, the scheduler, and each request."""
    cache = 2 * 2 * 5 * 10 * 12
    assert serving._step(DEVICE, MODEL, LOAD, ONE, 1) == pytest.approx(9 + cache / 50 + 3 + 0.125)
    two = read_of(1.5) / 100 + 5 + 2 * cache / 50 + 3 + 0.25
    assert serving._step(DEVICE, MODEL, LOAD, ONE, 2) == pytest.approx(two)


def test_a_prompt_alone_and_beside_answers() -> None:
    """In parts of eight tokens."""
    alone = 10 / 8 * (read_of(4.5) / 100 + 5 + 3) + 200
    assert serving._prompt(DEVICE, MODEL, LOAD, ONE) == pytest.approx(alone)
    beside = 10 / 8 * (read_of(5) / 100 - read_of(1) / 100) + 200
    assert serving._pause(DEVICE, MODEL, LOAD, ONE, 1) == pytest.approx(beside)
    unknown = replace(DEVICE, arithmetic=None)
    assert serving._prompt(unknown, MODEL, LOAD, ONE) is None
    assert serving._pause(unknown, MODEL, LOAD, ONE, 1) == 0
