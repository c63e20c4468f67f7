"""Predictions against published speeds, and what each says of its range and basis."""

from __future__ import annotations

import json
import math
import tomllib
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from probe_cluster import ClusterError, Links, Member, fit, member, plan
from probe_cluster.planning.efficiency import (
    device_class,
    efficiency_of,
    hop_software,
    table,
)
from probe_cluster.planning.links import KINDS, Link
from probe_cluster.planning.model_spec import parse_model
from probe_cluster.planning.predict import split_seconds
from probe_core.cli import main

PUBLISHED = Path(__file__).parents[4] / "tests" / "bench" / "published.toml"
TIB = 1 << 40
ENGINES = {"llama.cpp-rpc": "llama.cpp"}
# PCIe inside a node is no link of a cluster, and llama.cpp hands layers on without RPC there.
PCIE = Link("pcie", 32e9, 50e-6)
Home = dict[str, dict[str, Any]]


def predicted(row: list[Any], chips: dict[str, Any]) -> float:
    """Return tokens per second as the package's own plans predict them."""
    name, bits, chip, layout, engine, link, _, _, context = row
    model = parse_model({"model": name, "bits": bits, "context": context})
    kind, gbs = chips[chip]
    efficiency = efficiency_of(kind, ENGINES.get(engine, engine))
    assert efficiency is not None
    nodes = int(layout.rstrip("PT"))
    size = model.total_bytes * 10
    members = [
        Member(f"n{at}", size, size, (size,), bandwidth=gbs * 1e9, efficiency=efficiency)
        for at in range(nodes)
    ]
    if layout.endswith("T"):
        seconds = split_seconds(members, model, table()["reduce"][link] * 1e-6)
        assert seconds is not None
        return 1 / (seconds * model.layers)
    default = PCIE if link == "pcie" else KINDS.get(link)
    software = 0.0 if link == "pcie" else hop_software(ENGINES.get(engine, engine))
    links = Links(default=default, software=software)
    speed = plan("bandwidth", members, model, links=links).tokens_per_second
    assert speed is not None
    return speed


def test_published_speeds_are_predicted_within_their_range() -> None:
    data = tomllib.loads(PUBLISHED.read_text())
    rows = data["rows"]["measured"]
    errors = [abs(math.log(predicted(row, data["chips"]) / row[6])) for row in rows]
    assert len(rows) >= 73
    assert {row[7] for row in rows} == set(data["sources"])
    assert median(errors) <= 0.12
    ninetieth = sorted(errors)[math.ceil(0.9 * len(errors)) - 1]
    assert ninetieth <= math.log(table()["range"])


@pytest.mark.parametrize(
    ("device", "class_"),
    [
        (("gpu", "nvidia", "NVIDIA GeForce RTX 4090", "ada", False), "gddr-new"),
        (("gpu", "nvidia", "NVIDIA GeForce RTX 3090", "ampere", False), "gddr-old"),
        (("gpu", "nvidia", "NVIDIA A100-SXM4-80GB", "ampere", False), "hbm"),
        (("gpu", "nvidia", "NVIDIA B200", "blackwell", False), "hbm"),
        (("gpu", "amd", "AMD Instinct MI300X", "cdna3", False), "hbm"),
        (("gpu", "nvidia", "NVIDIA GB10", "blackwell", True), "unified"),
        (("gpu", "apple", "Apple M2 Ultra", None, True), "apple-m1-m2"),
        (("gpu", "apple", "Apple M4 Max", None, True), "apple-m3"),
        (("cpu", "intel", "Intel N100", None, True), "cpu"),
        (("gpu", "arm", "Mali-G610", "valhall", True), None),
        (("gpu", "intel", "Intel Arc B580", "xe2-hpg", False), None),
    ],
)
def test_classes_of_devices(device: tuple[Any, ...], class_: str | None) -> None:
    assert device_class(*device) == class_


def test_every_class_and_kind_has_its_figures() -> None:
    figures = table()
    for taus in figures["tau"].values():
        assert set(taus) <= set(figures["share"])
    assert set(figures["kind"]) == {"dense", "experts", "hybrid", "mla"}
    assert set(figures["tau"]) <= set(figures["hop"])


def test_an_engine_that_no_row_has_for_a_device_gives_a_bound(home: Home) -> None:
    model = parse_model({"model": "llama-3.1-8b", "bits": "q4_k_m"})
    known = plan("fastest", [member("desk", home["desk"])], model)
    assert known.factor == 1.3
    assert known.basis == (
        "llama.cpp on gddr-new: 86% of the bandwidth and 39 us a layer, fitted on published speeds",
    )
    bound = plan("fastest", [member("desk", home["desk"], engine="none")], model)
    assert (bound.factor, bound.basis) == (None, ("theoretical peaks: a lower bound of the time",))
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
    low, high = fastest["range"]
    assert (low, high) == pytest.approx(
        (fastest["tokens_per_second"] / 1.3, fastest["tokens_per_second"] * 1.3)
    )
    assert fastest["parallel"] == "one"
    assert main(start) == 0
    assert "off by at most a factor of 1.3 in nine cases of ten" in capsys.readouterr().out
    assert main([*start, "--engine", "none"]) == 0
    assert "times are lower bounds, from theoretical peaks" in capsys.readouterr().out
    assert main([*start, "--engine", "olama"]) == 2
    assert "'olama' is no engine" in capsys.readouterr().err


def test_vllm_splits_layers_among_the_equal_gpus_of_a_node(home: Home) -> None:
    model = parse_model({"model": "llama-3.1-70b", "bits": "awq"})
    twin = member("twin", home["twin"], engine="vllm")
    split = plan("fastest", [twin], model)
    assert (split.parallel, twin.width) == ("tensor", 2)
    # Half of the bytes on each, 38 us a layer and two all-reduces by PCIe.
    layer = model.layer_read_bytes / 2 / (1.008e12 * 0.86) + 38e-6 + 2 * 30e-6
    assert split.seconds_per_token == pytest.approx(80 * layer, rel=1e-4)
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
