"""What a layer and what serving costs, worked by hand for devices and models of round figures."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from probe_cluster.planning import predict, serving
from probe_cluster.planning.architecture import CacheGroup
from probe_cluster.planning.efficiency import Efficiency, ServingCosts
from probe_cluster.planning.links import Link
from probe_cluster.planning.members import Member
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
INNER = Link("nvlink", 1000.0, 0.5, 0.25)
DEVICE = Device(
    memory=2000,
    bandwidth=100.0,
    arithmetic=1000.0,
    attention=200.0,
    layer=0.5,
    begins=0.0,
    efficiency=Efficiency(1.0, 0.0, "by hand"),
    costs=ServingCosts(
        cache=0.5,
        apart=0.5,
        reduce=0.5,
        reduce_pcie=0.25,
        layer=1.0,
        begins=0.0,
        mixed=True,
        step=3.0,
        request=0.125,
        chunk=8,
    ),
    inner=INNER,
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
        # The longest of four stages has three of the ten layers, and the others wait for it.
        (1, Split(1, 4, False), (4 + 5) * 12 / 10 + 4 * (2.0 + 1.0)),
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
    """A pass, the caches of 12 tokens at half the bandwidth, the scheduler, each request more."""
    cache = 2 * 2 * 5 * 10 * 12
    assert serving._step(DEVICE, MODEL, LOAD, ONE, 1) == pytest.approx(9 + cache / 50 + 3)
    two = read_of(1.5) / 100 + 5 + 2 * cache / 50 + 3 + 0.125
    assert serving._step(DEVICE, MODEL, LOAD, ONE, 2) == pytest.approx(two)


def test_a_prompt_alone_and_beside_answers() -> None:
    """In parts of eight tokens."""
    alone = 10 / 8 * (read_of(4.5) / 100 + 5 + 3) + 200
    assert serving._prompt(DEVICE, MODEL, LOAD, ONE) == pytest.approx(alone)
    beside = 10 / 8 * (read_of(5) / 100 - read_of(1) / 100) + 200
    assert serving._pause(DEVICE, MODEL, LOAD, ONE, 1) == pytest.approx(beside)
    slower = replace(DEVICE, begins=0.25)
    more = 10 / 8 * 10 * 0.25
    assert serving._prompt(slower, MODEL, LOAD, ONE) == pytest.approx(alone + more)
    assert serving._pause(slower, MODEL, LOAD, ONE, 1) == pytest.approx(beside + more)
    apart = replace(DEVICE, costs=DEVICE.costs._replace(mixed=False))
    waiting = 10 / 8 * (read_of(4.5) / 100 + 5) + 200
    assert serving._pause(apart, MODEL, LOAD, ONE, 1) == pytest.approx(waiting)
    unknown = replace(DEVICE, arithmetic=None)
    assert serving._prompt(unknown, MODEL, LOAD, ONE) is None
    assert serving._pause(unknown, MODEL, LOAD, ONE, 1) == 0


# A layer of this one is 100 bytes and 200 operations.
DENSE = Model(params=1000, layers=10, bits=8, hidden=50, heads=4, kv_heads=2)
NODE = Member("a", 1000, bandwidth=50.0, fp16=1e-10, width=4, inner=INNER)
FITTED = replace(NODE, efficiency=Efficiency(0.5, 0.125, "by hand"))


@pytest.mark.parametrize(
    ("member", "seconds"),
    [
        (NODE, 2.0),  # 100 bytes and 200 operations take as long
        (replace(NODE, fp16=5e-11), 4.0),
        (replace(NODE, fp16=5e-11, fp32=8e-11), 2.5),  # the faster of the two precisions
        (replace(NODE, fp16=None), 2.0),
        (FITTED, 4.0 + 0.125),
        (replace(FITTED, fp16=4e-11), 5.0 + 0.125),
        (replace(NODE, bandwidth=None), None),
    ],
)
def test_a_layer_on_one_device(member: Member, seconds: float | None) -> None:
    assert predict.whole_seconds(member, DENSE) == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("heads", "kv_heads", "kind", "found"),
    [
        (8, 8, "dense", [2, 4, 8]),
        (8, 2, "dense", [2]),
        (8, None, "dense", [2, 4, 8]),
        (8, 1, "mla", [2, 4, 8]),
        (12, 4, "dense", [2, 4]),
        (7, 7, "dense", []),
        (None, 8, "dense", []),
    ],
)
def test_into_how_many_parts_a_layer_can_be_split(
    heads: int | None, kv_heads: int | None, kind: str, found: list[int]
) -> None:
    assert predict.widths(replace(DENSE, heads=heads, kv_heads=kv_heads, kind=kind)) == found


def test_a_layer_that_is_split() -> None:
    """Two all-reduces of a quarter of a second, and what does not shrink by being split."""
    two = predict.split_seconds([FITTED, replace(FITTED, bandwidth=25.0)], DENSE, 0.25)
    assert two == 4.0 + 0.125 + 0.5
    assert predict.split_seconds([FITTED] * 4, DENSE, 0.25) == 1.0 + 0.125 + 0.5
    slow = replace(FITTED, fp16=1e-11)  # 20 seconds of arithmetic, of which each has a quarter
    assert predict.split_seconds([slow] * 4, DENSE, 0.25) == pytest.approx(5.0 + 0.125 + 0.5)
    assert predict.split_seconds([FITTED, NODE], DENSE, 0.25) is None
    cached = replace(DENSE, context=10, head_dim=5, kv_bits=8)  # 200 bytes of cache per layer
    assert predict.split_seconds([FITTED] * 2, cached, 0.0) == 300 / 2 / 25 + 0.125
    latent = replace(cached, kind="mla", cache=(CacheGroup(10, 20, None, 0),))
    assert predict.split_seconds([FITTED] * 2, latent, 0.0) == pytest.approx(
        (100 / 2 + 200) / 25 + FITTED.efficiency.layer_seconds("mla")  # type: ignore[union-attr]
    )


def test_layers_that_a_memory_holds() -> None:
    """Of each memory a share is left free, and no layer lies in two."""
    node = replace(NODE, width=1, pools=(450, 350))
    assert predict.layer_cap(node, DENSE, "available", 0.0) == 4 + 3
    assert predict.layer_cap(node, DENSE, "available", 0.2) == 3 + 2
    assert predict.layer_cap(node, DENSE, "total", 0.0) == 10
    two = replace(FITTED, width=2, pools=(450, 350, 250, 150), inner=replace(INNER, reduce=0.0))
    assert predict.split_width(two, DENSE) == 2
    # In halves of 50 bytes on pairs of memories, of which the smaller counts.
    assert predict.layer_cap(two, DENSE, "available", 0.0) == 7 + 3


PEAKS: Any = {
    "arithmetic": {
        "vllm": {"hbm": 0.5}, "llama-cpp": {"hbm": 0.25}, "arch": {"hopper": 2.0},
        "engine": {"fast": 1.5}, "bits": {"8": 0.8}, "kind": {"experts": 0.5},
    }
}  # fmt: skip
EIGHT, FOUR = 300 * 0.8 / 100, 1.5 * 300 * 0.8 / 100


def operations(
    quant: str, arch: str, computes: str = "vllm", int8: float | None = 300.0, **more: Any
) -> Any:
    """Operations of weights and of attention, in shares of the device's peak of 100 TFLOPS."""
    facts = {"half": 100.0, "int8": int8, "class_": "hbm", "equal": 1, **more}
    member: Any = SimpleNamespace(offer=SimpleNamespace(arch=arch), **facts)
    efficiency = Efficiency(1.0, 0.0, "by hand", computes=computes)
    model = replace(MODEL, quant=quant, kind=more.get("kind", "dense"))
    weights, attention = serving._arithmetic(member, efficiency, model, PEAKS)
    return (weights and round(weights / 1e14, 9), attention and round(attention / 1e14, 9))


@pytest.mark.parametrize(
    ("quant", "arch", "times"),
    [
        ("bf16", "ada", 1.0),
        *(("fp8", arch, EIGHT) for arch in ("ada", "blackwell-gb202", "cdna3", "cdna4")),
        ("fp8_fp4", "ada", EIGHT),
        ("fp8", "ampere", 1.0),
        ("int8", "ampere", EIGHT),
        ("int8", "ada", EIGHT),
        ("int8", "turing", 1.0),
        ("mxfp4", "cdna4", EIGHT),
        ("mxfp4", "cdna3", 1.0),
        ("mxfp4", "blackwell-gb202", FOUR),
        ("nvfp4", "blackwell-gb202", FOUR),
        ("nvfp4", "cdna4", 1.0),
        ("nvfp4", "ada", 1.0),
    ],
)
def test_weights_compute_in_the_precision_that_the_chip_has_for_them(
    quant: str, arch: str, times: float
) -> None:
    assert operations(quant, arch) == (round(0.5 * times, 9), 0.5)
    # llama.cpp has kernels of fewer bits for Blackwell's four alone.
    beside = times if times == FOUR else 1.0
    assert operations(quant, arch, "llama-cpp") == (round(0.25 * beside, 9), 0.25)


def test_peaks_that_nobody_knows() -> None:
    assert operations("fp8", "ada", int8=None) == (0.5, 0.5)
    assert operations("nvfp4", "blackwell", int8=None) == (None, None)
    assert operations("bf16", "ada", half=None) == (None, None)
    assert operations("bf16", "ada", class_="other") == (None, None)


def test_what_a_share_is_multiplied_with() -> None:
    assert operations("bf16", "hopper") == (1.0, 1.0)
    assert operations("bf16", "ada", equal=2) == (0.25, 0.25)
    assert operations("bf16", "ada", equal=0) == (0.5, 0.5)
    assert operations("bf16", "ada", kind="experts") == (0.25, 0.5)
