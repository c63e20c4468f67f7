"""Predictions against published speeds, and what each says of its range and basis."""

from __future__ import annotations

import importlib
import json
import math
import tomllib
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from probe_cluster import ClusterError, Links, Member, fit, member, plan
from probe_cluster.planning import efficiency
from probe_cluster.planning.efficiency import (
    device_class,
    efficiency_of,
    hop_software,
    range_of,
    table,
)
from probe_cluster.planning.engines import ENGINES as ENGINES_KEYS
from probe_cluster.planning.engines import file_form
from probe_cluster.planning.links import KINDS, Link, parse_kind
from probe_cluster.planning.members import with_engine
from probe_cluster.planning.model_spec import parse_model
from probe_cluster.planning.predict import split_seconds
from probe_cluster.planning.reading import read_members
from probe_core.cli import main

PUBLISHED = Path(__file__).parents[4] / "tests" / "bench" / "published.toml"
TIB = 1 << 40
WIDER = "800 cases of llama-cpp on one device, of 214 publications"
ENGINES = {"llama.cpp-rpc": "llama.cpp"}
ARCHES = {
    "H100": "hopper", "H20": "hopper", "B200": "blackwell-gb100", "B300": "blackwell-gb300",
    "MI": "cdna3", "V100": "volta", "20": "turing", "T4": "turing", "1650": "turing",
    "2000E": "ada",
}  # fmt: skip
# PCIe inside a node is no link of a cluster, and llama.cpp hands layers on without RPC there.
PCIE = Link("pcie", 32e9, 50e-6)
Home = dict[str, dict[str, Any]]


def predicted(row: list[Any], chips: dict[str, Any]) -> float:
    """Return tokens per second as the package's own plans predict them."""
    name, bits, chip, layout, engine, link, _, _, context = row
    form = file_form(ENGINES.get(engine, engine))
    model = parse_model({"model": name, "bits": bits, "context": context, "form": form})
    kind, gbs, *more = chips[chip]
    cores, tera = (more[0], []) if kind == "cpu" else (None, more)
    operations = tera[0] * 1e3 / gbs if tera else None
    dies = 2 if "Ultra" in chip else 1
    arch = next((arch for start, arch in ARCHES.items() if chip.startswith(start)), "")
    reached = efficiency_of(
        kind, ENGINES.get(engine, engine), operations, dies=dies, cores=cores, arch=arch
    )
    assert reached is not None
    nodes = int(layout.rstrip("PT"))
    size = model.total_bytes * 10
    members = [
        Member(f"n{at}", size, size, (size,), bandwidth=gbs * 1e9, efficiency=reached)
        for at in range(nodes)
    ]
    if layout.endswith("T"):
        # distributed-llama PR 64: by sockets, which the package plans no split for.
        reduce = parse_kind(link).reduce_among(nodes)
        seconds = split_seconds(members, model, reduce or 900e-6)
        assert seconds is not None
        return 1 / (seconds * model.layers)
    default = PCIE if link == "pcie" else KINDS.get(link)
    software = 0.0 if link == "pcie" else hop_software(ENGINES.get(engine, engine))
    links = Links(default=default, software=software)
    speed = plan("bandwidth", members, model, links=links).tokens_per_second
    assert speed is not None
    return speed


def published() -> tuple[list[list[Any]], dict[str, Any]]:
    """Return the rows that are fitted, and all of the file."""
    data = tomllib.loads(PUBLISHED.read_text())
    out = {source for sources in data["left-out"].values() for source in sources}
    rows = data["rows"]["measured"]
    assert {row[7] for row in rows} == set(data["sources"]) >= out
    return [row for row in rows if row[7] not in out], data


@pytest.mark.heavy
def test_published_speeds_are_predicted() -> None:
    rows, data = published()
    errors = [abs(math.log(predicted(row, data["chips"]) / row[6])) for row in rows]
    assert len(rows) >= 140
    assert median(errors) <= 0.12
    assert sorted(errors)[math.ceil(0.9 * len(errors)) - 1] <= 0.33


def test_ranges_are_of_the_rows_that_are_there() -> None:
    rows, data = published()
    classes: dict[tuple[str, str, str], set[tuple[int, str]]] = {}
    for at, row in enumerate(rows):
        computes = ENGINES_KEYS[ENGINES.get(row[4], row[4])].computes or ""
        mode = {"P": "pipeline", "T": "tensor"}.get(row[3][-1], "one")
        key = (computes, data["chips"][row[2]][0], mode)
        classes.setdefault(key, set()).add((at, row[7]))
    for key, own in classes.items():
        found = range_of(*key)
        assert found is not None, key
        assert (found.cases, found.publications) == (len(own), len({source for _, source in own}))
        assert found.factor > 1.0
    assert range_of("vllm", "cpu", "one") is None


@pytest.mark.heavy
@pytest.mark.timeout(900)
def test_ranges_are_what_the_script_computes(monkeypatch: pytest.MonkeyPatch) -> None:
    # It fits all figures once for each publication: minutes of one core.
    bench = str(PUBLISHED.parent)
    monkeypatch.syspath_prepend(bench)
    ranges = importlib.import_module("ranges")
    found = [*ranges.of_one(), *ranges.of_many()]
    path = Path(efficiency.__file__).with_name("ranges.toml")
    assert path.read_text() == ranges.document(found)
    inside = [each.size <= math.log(like.factor) for each in found if (like := range_of(*each.key))]
    # The rows that the ranges were made of: more than nine of ten, as few cases take the largest.
    assert sum(inside) / len(inside) >= 0.9


@pytest.mark.parametrize(
    ("card", "share"),
    [
        # 2.14 TFLOPS of 112 GB/s, on which the figure was fitted; 11.76 of 346; 11.34 of 484.
        ("nvidia/geforce-gtx-1050-ti", 0.36),
        ("Tesla P40", 0.641),
        ("GTX 1080 Ti", 0.442),
        # Maxwell lacks the instructions that bound it.
        ("Tesla M40", 0.36),
    ],
)
def test_pascal_reads_as_fast_as_it_computes(card: str, share: float) -> None:
    for group in (card, f"2x {card}"):
        (own,) = read_members([], have=[group])
        assert own.efficiency is not None
        assert own.efficiency.share == pytest.approx(share, abs=0.006)


@pytest.mark.parametrize(
    ("card", "share", "of_vllm"),
    [
        # 0.053 for each operation, of Q4_K_M:
        # 66.9 TFLOPS of 3350 GB/s, halved; 66.9 of 4800; 19.5 of 2039.
        ("H100 SXM", 0.529, 0.79),
        ("H200", 0.369, 0.79),
        ("A100-SXM4-80GB", 0.507, 0.79),
        # What its memory gives is less than its arithmetic does.
        ("V100-SXM2-32GB", 0.75, 0.79),
        ("MI300X", 0.39, 0.90),
    ],
)
def test_llama_cpp_reads_no_faster_than_it_computes(
    card: str, share: float, of_vllm: float
) -> None:
    (own,) = read_members([], have=[card])
    by_llama = with_engine(own, "llama.cpp").efficiency
    assert by_llama is not None
    assert by_llama.share == pytest.approx(share, abs=0.001)
    by_vllm = with_engine(own, "vllm").efficiency
    assert by_vllm is not None
    assert by_vllm.share == of_vllm


@pytest.mark.parametrize(
    ("machine", "share"),
    [
        # 0.021 for each operation: 10.6 TFLOPS of 409.6 GB/s; 3.58 of 102.4.
        ("MacBook Pro M1 Max 64GB", 0.544),
        ("MacBook Air M2 24GB", 0.734),
        # Of M3 and later nothing shows such a bound.
        ("MacBook Pro M4 Max 128GB", 0.770),
    ],
)
def test_llama_cpp_is_bound_by_arithmetic_on_the_first_of_apple(machine: str, share: float) -> None:
    (own,) = read_members([], have=[machine])
    by_llama, by_mlx = (with_engine(own, name).efficiency for name in ("llama.cpp", "mlx"))
    assert by_llama is not None
    assert by_mlx is not None
    assert (by_llama.share, by_mlx.share) == (pytest.approx(share, abs=0.001), 0.89)


def test_arithmetic_is_that_of_weights_whatever_their_bytes() -> None:
    (own,) = read_members([], have=["H200"])
    by_llama, by_vllm = (with_engine(own, name).efficiency for name in ("llama.cpp", "vllm"))
    assert by_llama is not None
    assert by_vllm is not None
    assert by_llama.share_of("q4_k_m", 4.89) == pytest.approx(by_llama.share)
    assert by_llama.share_of("q2_k", 3.16) == pytest.approx(by_llama.share * 3.16 / 4.89)
    assert by_llama.share_of("q8_0", 8.5) == pytest.approx(1.11 * by_llama.share * 8.5 / 4.89)
    # What memory gives is all that 16 bits have.
    assert by_llama.share_of("f16", 16.0) == pytest.approx(1.11 * 0.75)
    assert by_vllm.share_of("awq", 4.25) == by_vllm.share


def test_ollama_takes_longer_for_a_token_than_llama_cpp() -> None:
    own, other = (efficiency_of("gddr-old", name) for name in ("llama.cpp", "ollama"))
    assert own is not None
    assert other is not None
    more = other.layer_seconds("dense", layers=30) - own.layer_seconds("dense", layers=30)
    assert more == pytest.approx(718e-6 / 30)


def test_each_doubling_over_pcie_is_one_exchange_more() -> None:
    pcie, nvlink, sockets = KINDS["pcie4"], KINDS["nvlink4"], KINDS["10gbe"]
    assert [pcie.reduce_among(width) for width in (2, 4, 8)] == pytest.approx([15e-6, 30e-6, 45e-6])
    assert [nvlink.reduce_among(width) for width in (2, 8)] == [10e-6, 10e-6]
    assert sockets.reduce_among(2) is None


def test_simple_blocks_norms_and_two_dies_have_their_figures() -> None:
    card = efficiency_of("gddr-old", "llama.cpp")
    assert card is not None
    shares = [card.share_of(name, 4.89) for name in ("q4_k_m", None, "q4_0", "mxfp4")]
    assert shares == pytest.approx([0.81, 0.81, 0.8991, 0.8991])
    assert card._replace(measured=True, share=1.0).share_of("q4_0", 4.66) == 1.0
    assert card.layer_seconds("dense", norms=True) == pytest.approx(1.63 * 50e-6)
    vllm = efficiency_of("gddr-old", "vllm")
    assert vllm is not None
    assert vllm.share_of("fp16", 16.0) == 0.81
    assert vllm.layer_seconds("dense", norms=True) == pytest.approx(1.55 * 43e-6)
    # What the engine takes for a token besides is spread over the layers.
    assert vllm.layer_seconds("dense", layers=50) == pytest.approx(43e-6 + 9.04e-6)
    ultra = efficiency_of("apple-m3", "mlx", dies=2)
    assert ultra is not None
    assert ultra.tau == pytest.approx(1.45 * 71e-6)
    (studio,) = read_members([], have=["Mac Studio M3 Ultra 512GB"])
    assert studio.efficiency is not None
    assert studio.efficiency.tau == ultra.tau
    models = [
        parse_model({"model": name}) for name in ("gemma-3-4b", "gemma-4-26b-a4b", "qwen3-4b")
    ]
    assert [model.norms for model in models] == [True, True, False]


def test_threads_of_many_cores_wait_longer_in_each_layer() -> None:
    taus = []
    for cores in (None, 8, 96):
        own = efficiency_of("cpu", "llama.cpp", cores=cores)
        assert own is not None
        taus.append(own.tau)
    assert taus == pytest.approx([(77 + 4.52 * cores) * 1e-6 for cores in (8, 8, 96)])
    # A report says how many may be used; a GPU's multiprocessors are none of them.
    memory = {"kind": "shared", "total": 1 << 36}
    device = {"id": "cpu:0", "kind": "cpu", "units": 96, "memory": memory, "bandwidth": 576e9}
    node = {"memory": {"total": 1 << 36, "available": 1 << 36}}
    epyc = member("epyc", {"schema": 1, "node": node, "devices": [device]}, engine="llama.cpp")
    assert epyc.efficiency is not None
    assert epyc.efficiency.tau == pytest.approx(taus[2])
    (pi,) = read_members([], have=["Raspberry Pi 5 16GB"])
    assert pi.efficiency is not None
    assert pi.efficiency.tau == pytest.approx((77 + 4.52 * 4) * 1e-6)
    (card,) = read_members([], have=["RTX 4090"])
    assert card.offer is not None
    assert card.offer.cores is None


@pytest.mark.parametrize(
    ("card", "layer", "mla"),
    [
        ("A100-SXM4-80GB", 43e-6, 2.03),
        ("T4", 1.18 * 43e-6, 2.03),
        ("H100 SXM", 0.84 * 43e-6, 2.03),
        ("B200", 0.99 * 43e-6, 2.03),
        ("B300", 0.99 * 43e-6, 2.03),
        # A GB10 is none of them.
        ("DGX Spark", 43e-6, 2.03),
        ("MI300X", 75e-6, 3.85),
        ("MI355X", 0.43 * 75e-6, 3.85),
    ],
)
def test_generations_have_their_figures(card: str, layer: float, mla: float) -> None:
    (own,) = read_members([], have=[card])
    reached = with_engine(own, "vllm").efficiency
    assert reached is not None
    assert reached.layer_seconds("dense") == pytest.approx(layer)
    assert reached.layer_seconds("mla") == pytest.approx(layer * mla)
    assert f"{layer * 1e6:.3g} us a layer" in reached.basis


@pytest.mark.parametrize(
    ("card", "seconds"),
    [
        ("Tesla V100-SXM2-32GB", 1.27 * 67e-6),
        ("A100-SXM4-80GB", 67e-6),
        ("RTX 2080 Ti", 1.27 * 50e-6),
        ("RTX 3090", 50e-6),
        ("RTX 4090", 50e-6),
    ],
)
def test_without_cuda_graphs_layers_of_llama_cpp_cost_more(card: str, seconds: float) -> None:
    (own,) = read_members([], have=[card])
    reached = with_engine(own, "llama.cpp").efficiency
    assert reached is not None
    assert reached.layer_seconds("dense") == pytest.approx(seconds)


def test_what_a_gb10_reaches_is_not_claimed_of_an_apu() -> None:
    """With vLLM, of which no row is an APU's; llama.cpp's rows are of both."""
    (halo,) = read_members([], have=["Strix Halo 128GB"])
    by_vllm = with_engine(halo, "vllm").efficiency
    radeon = efficiency_of("radeon", "vllm")
    assert by_vllm is not None
    assert radeon is not None
    assert (by_vllm.share, by_vllm.tau) == (radeon.share, radeon.tau)
    assert range_of("vllm", "apu", "one") is None
    assert range_of("llama-cpp", "apu", "one") is not None


@pytest.mark.parametrize(
    ("device", "class_"),
    [
        (("gpu", "nvidia", "NVIDIA GeForce RTX 4090", "ada", False), "gddr-new"),
        (("gpu", "nvidia", "NVIDIA GeForce RTX 3090", "ampere", False), "gddr-old"),
        (("gpu", "nvidia", "NVIDIA A100-SXM4-80GB", "ampere", False), "hbm"),
        (("gpu", "nvidia", "NVIDIA B200", "blackwell", False), "hbm"),
        (("gpu", "amd", "AMD Instinct MI300X", "cdna3", False), "hbm-cdna"),
        (("gpu", "nvidia", "NVIDIA GB10", "blackwell", True), "unified"),
        (("gpu", "apple", "Apple M2 Ultra", None, True), "apple-m1-m2"),
        (("gpu", "apple", "Apple M4 Max", None, True), "apple-m3"),
        (("gpu", "nvidia", "NVIDIA GeForce GTX 1050 Ti", "pascal", False), "gddr-pascal"),
        (("gpu", "nvidia", "Tesla P100-PCIE-16GB", "pascal", False), "gddr-pascal"),
        (("cpu", "intel", "Intel N100", None, True), "cpu"),
        (("gpu", "arm", "Mali-G610", "valhall", True), None),
        (("gpu", "amd", "AMD Radeon RX 7900 XTX", "rdna3", False), "radeon"),
        (("gpu", "amd", "AMD Radeon RX 580", "gcn", False), "radeon-gcn"),
        (("gpu", "amd", "AMD Radeon Pro VII", "gcn51-radeon", False), "radeon"),
        (("gpu", "amd", "AMD Radeon 8060S Graphics", "rdna3.5", True), "apu"),
        (("gpu", "nvidia", "Orin", "ampere-orin", True), "jetson"),
        (("gpu", "nvidia", "NVIDIA Thor", "blackwell-thor", True), "jetson"),
        (("gpu", "nvidia", "NVIDIA Jetson Nano", "maxwell", True), "gddr-pascal"),
        (("gpu", "intel", "Intel Arc B580", "xe2-hpg", False), "arc"),
        (("gpu", "intel", "Intel Arc Pro B60", "xe2-hpg", False), "arc"),
        (("gpu", "intel", "Intel Arc 140V GPU", "xe2-lpg", True), "arc"),
        (("gpu", "intel", "Intel Arc A770", "xe-hpg", False), "arc-alchemist"),
        (("gpu", "intel", "Intel UHD Graphics 770", "xe-lp", True), None),
    ],
)
def test_classes_of_devices(device: tuple[Any, ...], class_: str | None) -> None:
    assert device_class(*device) == class_


def test_every_class_and_kind_has_its_figures() -> None:
    figures = table()
    for taus in figures["tau"].values():
        assert set(taus) <= set(figures["share"])
    kinds = {name for name, value in figures["kind"].items() if isinstance(value, float)}
    assert kinds == {"dense", "experts", "hybrid", "blocks", "mla"}
    assert set(figures["tau"]) <= set(figures["hop"])


def test_an_engine_that_no_row_has_for_a_device_gives_a_bound(home: Home) -> None:
    model = parse_model({"model": "llama-3.1-8b", "bits": "q4_k_m"})
    known = plan("fastest", [member("desk", home["desk"])], model)
    assert known.like == range_of("llama-cpp", "gddr-new", "one")
    assert known.basis == (
        "llama.cpp on gddr-new: 94% of the bandwidth and 50 us a layer, fitted on published speeds",
    )
    bound = plan("fastest", [member("desk", home["desk"], engine="none")], model)
    assert (bound.like, bound.bound) == (None, True)
    assert bound.basis == ("theoretical peaks: a lower bound of the time",)
    assert (bound.seconds_per_token or 0) < (known.seconds_per_token or 0)
    dark = member("rock", home["rock"], bandwidth=17e9)
    assert (dark.class_, dark.efficiency) == (None, None)
    with pytest.raises(ClusterError, match=r"'olama' is no engine: the nearest is ollama; there"):
        member("desk", home["desk"], engine="olama")


def test_the_document_says_range_and_basis(
    home: Home, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "desk.json"
    path.write_text(json.dumps(home["desk"]))
    start = ["partition", "--model", "llama-3.1-8b", "--bits", "q4_k_m", str(path)]
    assert main([*start, "--json", "--strategy", "fastest"]) == 0
    (fastest,) = json.loads(capsys.readouterr().out)["plans"]
    like = range_of("llama-cpp", "gddr-new", "one")
    assert like is not None
    low, high = fastest["range"]
    speed = fastest["tokens_per_second"]
    assert (low, high) == pytest.approx((speed / like.factor, speed * like.factor))
    assert (fastest["measured_cases"], fastest["measured_publications"]) == like[1:3]
    assert (fastest["measured_wider"], like.wider) == ("", "")
    assert fastest["parallel"] == "one"
    assert main(start) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert f"{low:.3g} to {high:.3g}" in printed
    own = f"{like.cases} measured cases like this, of {like.publications} publications"
    assert f"{own}, were off at most {like.factor:g} times in nine of ten" in printed
    few = range_of("llama-cpp", "gddr-pascal", "one")
    assert few is not None
    command = ["partition", "--have", "Tesla P40", "--model", "llama-3.1-8b", "--bits", "q4_k_m"]
    assert main([*command, "--json", "--strategy", "fastest"]) == 0
    (fastest,) = json.loads(capsys.readouterr().out)["plans"]
    assert (fastest["measured_wider"], few.wider) == (few.wider, WIDER)
    assert main(command) == 0
    printed = " ".join(capsys.readouterr().out.split())
    own = f"{few.cases} measured cases like this, of {few.publications} publications"
    assert (
        f"{own}, are too few; {WIDER}, were off at most {few.factor:g} times in nine of ten"
        in printed
    )
    assert main([*start, "--engine", "none"]) == 0
    assert "times are lower bounds, from theoretical peaks" in capsys.readouterr().out
    assert main([*start, "--engine", "olama"]) == 2
    assert "'olama' is no engine" in capsys.readouterr().err


def test_vllm_splits_layers_among_the_equal_gpus_of_a_node(home: Home) -> None:
    model = parse_model({"model": "llama-3.1-70b", "bits": "awq"})
    twin = member("twin", home["twin"], engine="vllm")
    split = plan("fastest", [twin], model)
    assert (split.parallel, twin.width) == ("tensor", 2)
    # Half of the bytes on each, 43 us a layer and two all-reduces by PCIe, and the token's 452 us;
    # an all-reduce of two takes half of one of four.
    layer = model.layer_read_bytes / 2 / (1.008e12 * 0.94) + 43e-6 + 2 * 15e-6
    assert split.seconds_per_token == pytest.approx(80 * layer + 452e-6, rel=1e-4)
    assert (split.like, split.bound) == (range_of("vllm", "gddr-new", "tensor"), False)
    assert split.like is not None
    assert plan("fastest", [member("twin", home["twin"])], model).parallel == "one"
    # 64 heads and 8 KV heads split in two, the 15 heads of no model do not.
    odd = replace(model, heads=15)
    assert plan("fastest", [twin], odd).parallel == "one"
    # The device with the least free memory decides: each holds half of every layer.
    tight = replace(twin, pools=(25_200_000_000, 12_000_000_000))
    with pytest.raises(ClusterError):
        plan("fastest", [tight], model)
    # Both together hold whole layers, so the model runs, without the splitting.
    uneven = replace(twin, pools=(25_200_000_000, 19_000_000_000))
    alone = plan("fastest", [uneven], model)
    assert (alone.parallel, alone.fits, alone.gap) == ("one", True, 0.0)
    assert fit([uneven], model).ok
    small = parse_model({"model": "llama-3.1-8b", "bits": "awq"})
    assert plan("fastest", [uneven], small).parallel == "tensor"
