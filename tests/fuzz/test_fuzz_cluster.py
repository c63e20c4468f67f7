"""What people and other nodes say of a cluster: reports, topologies, models, links, amounts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from foreign import CHANCES, Chance
from hypothesis import given

from probe_cluster.planning.architecture import shape_of
from probe_cluster.planning.links import parse_link
from probe_cluster.planning.members import member
from probe_cluster.planning.model_spec import parse_model
from probe_cluster.planning.old_exo import Topology
from probe_cluster.planning.reading import read_members
from probe_cluster.planning.whatif import what_if
from probe_cluster.shared import ClusterError

REPORT = json.loads((Path(__file__).parents[1] / "compat" / "report-v1.json").read_bytes())
TOPOLOGY = {
    "nodes": {
        "desk": {
            "model": "Linux Box",
            "chip": "RTX 4090",
            "memory": 24564,
            "flops": {"fp32": 82.6, "fp16": 165.2, "int8": 330.3},
        },
        "mac": {"model": "Mac", "chip": "M3", "memory": 8192, "flops": {}},
    },
    "peer_graph": {"desk": [{"from_id": "desk", "to_id": "mac", "description": "thunderbolt4"}]},
    "active_node_id": "desk",
}
CONFIG = {
    "num_hidden_layers": 32,
    "hidden_size": 4096,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "text_config": {"num_hidden_layers": 32, "head_dim": 128},
}
WORDS = "desk:mac= thunderbolt5 10GB/s ,50us 400 Mbit/s 70b 1.5T 7e9 llama-3.1-8b 4.5 80".split()


@pytest.mark.heavy
@given(CHANCES)
def test_topologies(chance: Chance) -> None:
    try:
        found = Topology.from_json(chance.alter(TOPOLOGY))
    except ClusterError:
        return
    assert Topology.from_json(found.to_json()) == found
    assert all(found.neighbours(node) is not None for node in found.nodes)


@pytest.mark.heavy
@given(CHANCES)
def test_files_of_reports(tmp_path: Path, chance: Chance) -> None:
    path = tmp_path / "desk.json"
    path.write_text(json.dumps(chance.alter(REPORT)))
    given_as = chance.choice([str(path), f"other={path}", f"{chance.word()}={path}"])
    try:
        members = read_members([given_as], assumed=1e11)
    except ClusterError:
        return
    json.dumps(Topology.of(members).to_json(), allow_nan=False)


@pytest.mark.heavy
@given(CHANCES)
def test_configurations_of_models(tmp_path: Path, chance: Chance) -> None:
    try:
        shape = shape_of(chance.alter(CONFIG), "config.json")
        figures = (shape.layers, shape.hidden, shape.kv_heads, shape.head_dim)
        assert all(figure is None or figure > 0 for figure in figures)
    except ClusterError:
        pass
    path = tmp_path / "config.json"
    path.write_bytes(chance.mutate(json.dumps(CONFIG).encode()))
    try:
        model = parse_model({"model": str(path), "params": "8b", "context": "8192"})
    except ClusterError:
        return
    assert model.layer_bytes > 0


@pytest.mark.heavy
@given(CHANCES)
def test_words_for_models_and_links(chance: Chance) -> None:
    asked: dict[str, Any] = {"model": chance.words(WORDS, "")}
    for name in chance.sample("params active_params layers bits context kv_bits".split(), 3):
        asked[name] = chance.words(WORDS, "")
    try:
        assert parse_model(asked).total_bytes > 0
    except ClusterError:
        pass
    try:
        *_, link = parse_link(chance.words(WORDS, ""))
    except ClusterError:
        return
    assert link.seconds(1) > 0


MACHINES = "2x Mac Studio M3 Ultra 512GB , rdma + RTX 4090 Threadripper H100 8 x 96 GB DGX".split()


@pytest.mark.heavy
@given(CHANCES)
def test_computers_that_nobody_probed(chance: Chance) -> None:
    try:
        reports = what_if([chance.words(MACHINES, " ")])
    except ClusterError:
        return
    for report in reports.values():
        assert member("n", report).memory
