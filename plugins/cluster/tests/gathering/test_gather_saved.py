"""`probe cluster saved.json`: what `probe cluster --json` wrote is shown again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from probe_cluster.network.links import failed_link
from probe_core.cli import main

Home = dict[str, dict[str, Any]]

LINK = {
    **failed_link(("f00", "f01"), ""),
    "kind": "ethernet",
    "latency": 0.0001,
    "round_trip": 0.0002,
    "bandwidth": 1.25e7,
    "bandwidths": [1.25e7, 1.3e7],
    "interfaces": ["eth0", None],
    "reason": None,
    "fix": None,
}

ENGINE = {"source": "ray.nodes()", "gpus": 0, "cpus": 4.0, "memory": 1 << 30, "state": "alive"}

FINDING = {
    "code": "link-slow",
    "severity": "warning",
    "nodes": ["f00", "f01"],
    "what": "between desk and rock 88 Mbit/s arrive, less than 100 Mbit/s",
    "why": "a cable",
    "fix": "replace it",
    "evidence": "",
}


def document(home: Home, **fields: Any) -> dict[str, Any]:
    rest = {"status": "ok", "reason": None, "fix": None, "seconds": 1.0, "engine": None}
    nodes: dict[str, Any] = {
        "f00": {**rest, "name": "desk", "engine": ENGINE, "report": home["desk"]},
        "f01": {**rest, "name": "rock", "report": home["rock"]},
    }
    head = {"schema": 1, "collector": "ray", "complete": True, "problem": None, "seconds": 1.0}
    tail = {"links": [LINK], "differences": [], "findings": [FINDING]}
    return {**head, "nodes": nodes, **tail, **fields}


def shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: Any, *files: str
) -> tuple[int, Any]:
    path = tmp_path / "saved.json"
    path.write_text(json.dumps(content))
    status = main(["cluster", "--json", str(path), *files])
    return status, json.loads(capsys.readouterr().out)


def test_nodes_links_and_findings_are_those_of_the_document(
    home: Home, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    content = document(home)
    status, again = shown(tmp_path, capsys, content)
    assert (status, again["complete"], again["collector"]) == (0, True, "files")
    for key in ("links", "findings"):
        assert again[key] == content[key]
    for id_, entry in content["nodes"].items():
        row = again["nodes"][id_]
        assert {**row, "seconds": 1.0} == {**entry, "sent": None, "basics": None}
    assert main(["cluster", str(tmp_path / "saved.json")]) == 0
    text = capsys.readouterr().out
    assert "desk – rock" in text
    assert "less than 100 Mbit/s" in text


def test_a_node_that_was_missing_is_missing_for_the_same_reason(
    home: Home, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    content = document(home, problem="Ray lost its head")
    off = {"name": "off", "status": "no-probe", "reason": "it has no probe", "fix": "install it"}
    content["nodes"]["f02"] = {**off, "report": None}
    content["links"] = [failed_link(("f00", "f01"), "a firewall")]
    status, again = shown(tmp_path, capsys, content)
    assert (status, again["complete"], again["problem"]) == (1, False, "Ray lost its head")
    row = again["nodes"]["f02"]
    assert {key: row[key] for key in off} == off
    assert again["links"] == content["links"]


def test_a_file_beside_it_and_a_node_of_its_id(
    home: Home, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "f00.json"
    other.write_text(json.dumps(home["nas"]))
    path = tmp_path / "saved.json"
    path.write_text(json.dumps(document(home)))
    main(["cluster", "--json", str(other), str(path)])
    again = json.loads(capsys.readouterr().out)
    assert list(again["nodes"]) == ["f00", "f00#2", "f01"]
    assert again["links"][0]["ends"] == ["f00#2", "f01"]
    assert again["findings"][0]["nodes"] == ["f00#2", "f01"]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"schema": 2}, "has schema 2; this version reads 1"),
        ({"nodes": {"f00": {"status": "ok", "report": None}}}, "the saved document has no report"),
        ({"nodes": {"f00": 3}}, "the saved document has no report"),
        ({"nodes": {"f00": {"status": "ok", "report": {"schema": 99}}}}, "schema"),
    ],
)
def test_what_is_no_document_costs_its_own_rows(
    home: Home,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    change: dict[str, Any],
    reason: str,
) -> None:
    good = tmp_path / "good.json"
    good.write_text(json.dumps(home["nas"]))
    status, again = shown(tmp_path, capsys, document(home, **change), str(good))
    assert status == 1
    assert again["nodes"]["good"]["status"] == "ok"
    (row,) = (row for row in again["nodes"].values() if row["status"] != "ok")
    assert row["status"] == "invalid"
    assert reason in row["reason"]


@pytest.mark.parametrize(
    "links",
    [3, [3], [{}], [{"ends": ["f00", "x"]}], [{"ends": [["f00"], None]}], {"ends": 1}],
)
def test_links_of_no_sound_form_are_left_out(
    home: Home, tmp_path: Path, capsys: pytest.CaptureFixture[str], links: Any
) -> None:
    status, again = shown(tmp_path, capsys, document(home, links=links, findings=links))
    assert (status, again["links"], again["findings"]) == (0, [], [])
