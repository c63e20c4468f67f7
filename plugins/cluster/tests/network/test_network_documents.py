"""Measured links as facts: rows, findings, and the saved document that plans are made of."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from probe_cluster import ClusterError, Links, read_members
from probe_cluster.gathering.model import LINK_CODES
from probe_cluster.gathering.summaries import Nic, summary_of
from probe_cluster.network.links import (
    Network,
    failed_link,
    link_findings,
    link_lines,
    measured_link,
)
from probe_cluster.planning.reading import each_report
from probe_cluster.shared import bits, is_cluster_file, milliseconds
from probe_core.cli import main

if TYPE_CHECKING:
    from probe_cluster.gathering.model import LinkDoc

Home = dict[str, dict[str, Any]]

HELLOS: list[Any] = [
    {"boot": "1", "addresses": [["eth0", "10.0.0.1"], ["wlan0", "10.0.1.1"]]},
    {"boot": "2", "addresses": [["enp5s0", "10.0.0.2"]]},
]
NICS = {
    "a": {"eth0": Nic("ethernet", 1.25e9), "wlan0": Nic("wifi", None)},
    "b": {"enp5s0": Nic("ethernet", 1.25e8)},
}


def link(ends: tuple[str, str] = ("a", "b"), **fields: Any) -> LinkDoc:
    answers: list[Any] = [
        {"rate": 1.1e8, "address": "10.0.0.1"},
        {"rate": 1.2e8, "address": "10.0.0.2", "round_trip": 0.0004},
    ]
    return measured_link(ends, answers, HELLOS, NICS) | fields  # type: ignore[return-value]


def test_a_link_has_both_directions_and_its_hardware() -> None:
    assert link() == {
        "ends": ["a", "b"],
        "kind": "ethernet",
        "latency": 0.0002,
        "round_trip": 0.0004,
        "bandwidth": 1.1e8,
        # Each end measures what arrives: the second is what the first received.
        "bandwidths": [1.2e8, 1.1e8],
        "interfaces": ["eth0", "enp5s0"],
        "speed": 1.25e8,
        "reason": None,
        "fix": None,
    }


def test_the_slowest_links_come_first_and_those_beyond_a_page_are_counted() -> None:
    gathered: Any = SimpleNamespace(nodes={}, findings=[], links=[
        link(ends=["a", f"b{n}"], bandwidth=n * 1e8 or None, bandwidths=[n * 1e8 or None, None])
        for n in (3, 0, 1, *range(4, 31), 2)
    ])  # fmt: skip
    context: Any = SimpleNamespace(encodable=str, width=120, colour=False)
    head, *lines = [line for line in link_lines(gathered, context) if line]
    assert head.split()[0] == "LINK"
    assert [line.split()[2] for line in lines[:-1]] == [f"b{n}" for n in range(1, 29)]
    assert lines[-1] == (
        "30 of 31 pairs measured: 800 Mbit/s to 24 Gbit/s, round trips 0.4 ms; the 28 slowest are"
        " shown, --json has all"
    )
    gathered.links = []
    assert [*link_lines(gathered, context)] == []


@pytest.mark.parametrize(
    ("boots", "nics", "hardware"),
    [
        ("11", NICS, ("same-host", None)),
        ("12", {"a": NICS["a"]}, (None, None)),
        ("12", {**NICS, "b": {"enp5s0": Nic("wifi", 1.25e8)}}, (None, 1.25e8)),
        ("12", {**NICS, "b": {"enp5s0": Nic("ethernet", None)}}, ("ethernet", None)),
    ],
)
def test_the_hardware_of_a_link_is_that_of_both_ends(
    boots: str, nics: Any, hardware: tuple[str | None, float | None]
) -> None:
    hellos = [{**hello, "boot": boot} for hello, boot in zip(HELLOS, boots, strict=True)]
    answers: list[Any] = [
        {"rate": 1e8, "address": "10.0.0.1", "round_trip": 0.001},
        {"rate": None, "address": "10.0.0.2"},
    ]
    row = measured_link(("a", "b"), answers, hellos, nics)
    assert (row["kind"], row["speed"]) == hardware
    assert (row["round_trip"], row["latency"]) == (0.001, 0.0005)
    assert (row["bandwidth"], row["bandwidths"]) == (None, [None, 1e8])
    assert row["reason"] == "too few bytes arrived to compute a bandwidth"


def test_a_link_is_a_row_and_what_is_wrong_stands_below() -> None:
    rows = [link(), failed_link(("a", "c"), "gone", "see it"), link(speed=None, kind=None)]
    nodes = {"a": SimpleNamespace(id="a", name="desk")}
    found = link_findings(rows, Network(least_bandwidth=1.1e8), {"a": "desk"})
    gathered: Any = SimpleNamespace(nodes=nodes, links=rows[:2], findings=found)
    context: Any = SimpleNamespace(encodable=str, width=120, colour=False)
    assert [" ".join(line.split()) for line in link_lines(gathered, context)] == [
        "",
        "LINK ROUND TRIP BANDWIDTH BACK BY",
        "desk – b 0.4 ms 960 Mbit/s 880 Mbit/s ethernet, eth0, enp5s0",
        "",
        "1 of 2 pairs measured: 880 Mbit/s, round trips 0.4 ms",
        "warning: desk and c could not be measured: gone; see it",
    ]
    [slow] = link_findings(rows[2:], Network(least_bandwidth=1.2e8), {})
    assert slow["evidence"] == "960 Mbit/s and 880 Mbit/s"
    assert slow["what"] == "between a and b 880 Mbit/s arrive, less than 960 Mbit/s"
    gathered.links, gathered.findings = rows[1:2], []
    assert [*link_lines(gathered, context)] == ["", "0 of 1 pair measured"]


def test_what_agents_do_not_know_is_none() -> None:
    answers: list[Any] = [{"rate": None}, {"rate": "x", "round_trip": -1, "address": 3}]
    row = measured_link(("a", "c"), answers, [{"boot": "1"}, {"addresses": "x"}], NICS)
    assert (row["bandwidth"], row["latency"], row["kind"], row["speed"]) == (None,) * 4
    assert row["interfaces"] == [None, None]
    assert row["reason"] == "too few bytes arrived to compute a bandwidth"
    assert row["fix"]


def test_interfaces_come_from_the_report(home: Home) -> None:
    report = home["desk"] | {
        "node": home["desk"]["node"]
        | {
            "network": [
                {"name": "eth0", "kind": "ethernet", "bandwidth": 1.25e9},
                {"name": "mlx5_0/1", "kind": "rdma", "bandwidth": 5e10},
                {"name": "wlan0", "kind": "wifi", "bandwidth": None},
                {"name": 3, "kind": "x"},
                "x",
            ]
        }
    }
    nics = {"eth0": Nic("ethernet", 1.25e9), "wlan0": Nic("wifi", None)}
    assert summary_of(report).nics == nics
    assert summary_of(home["desk"]).nics == {}


NAMES = {"f00": "desk", "f01": "rock"}


def test_findings_name_the_nodes_and_the_figures() -> None:
    ends = ("f00", "f01")
    rows = [
        link(ends, bandwidth=11e6, bandwidths=[12e6, 11e6], speed=1.25e8),
        link(ends, round_trip=0.2),
        link(ends, reason="rock: 10.0.0.1 port 9 does not answer", fix="open it"),
        failed_link(ends, "rock: gone", "see it"),
        link(ends, bandwidth=100e6 / 8, round_trip=0.1),
    ]
    findings = link_findings(rows, Network(), NAMES)
    assert [finding["code"] for finding in findings] == [
        "link-slow",
        "link-latency",
        "link-one-way",
        "link-unmeasured",
    ]
    assert set(LINK_CODES) == {finding["code"] for finding in findings}
    assert {tuple(finding["nodes"]) for finding in findings} == {ends}
    assert [finding["what"] for finding in findings] == [
        "between desk and rock 88 Mbit/s arrive, less than 100 Mbit/s",
        "a round trip between desk and rock takes 200 ms, more than 100 ms",
        "of desk and rock only the one can connect to the other",
        "desk and rock could not be measured",
    ]
    assert findings[0]["evidence"] == "96 Mbit/s and 88 Mbit/s, over interfaces of 1 Gbit/s"
    assert (findings[3]["why"], findings[3]["fix"]) == ("rock: gone", "see it")


@pytest.mark.parametrize(
    ("rate", "text"),
    [
        (1.25e9, "10 Gbit/s"),
        (1.17625e9, "9.41 Gbit/s"),
        (124.99e6, "1000 Mbit/s"),
        (10, "80 bit/s"),
    ],
)
def test_rates_are_those_of_cables(rate: float, text: str) -> None:
    assert bits(rate) == text


def test_times_are_milliseconds() -> None:
    assert [milliseconds(value) for value in (14e-6, 0.25, 1.5)] == [
        "0.014 ms",
        "250 ms",
        "1500 ms",
    ]


def document(home: Home, **fields: Any) -> dict[str, Any]:
    nodes = {
        id_: {"name": name, "status": "ok", "report": home[host]}
        for id_, name, host in (("f00", "desk", "desk"), ("f01", "rock", "rock"))
    }
    nodes["f02"] = {"name": "off", "status": "missing", "report": None}
    links = [link(("f00", "f01")), failed_link(("f00", "f02"), "gone")]
    return {"schema": 1, "collector": "ray", "nodes": nodes, "links": links, **fields}


def saved(tmp_path: Path, document: Any, indent: int | None = None) -> str:
    path = tmp_path / "saved.json"
    path.write_text(json.dumps(document, indent=indent))
    return str(path)


def test_a_saved_document_has_reports_and_links(home: Home, tmp_path: Path) -> None:
    path = saved(tmp_path, document(home), indent=2)
    assert is_cluster_file(path)
    links = Links()
    reports = dict(each_report([path], links))
    assert reports == {"desk": home["desk"], "rock": home["rock"]}
    ((pair, measured),) = links.named().items()
    assert pair == ("desk", "rock")
    assert (measured.bandwidth, measured.latency) == (1.1e8, 0.0002)
    assert measured.kind == "measured, 880 Mbit/s, 0.2 ms"


def test_nodes_of_one_name_keep_their_ids(home: Home, tmp_path: Path) -> None:
    twice = document(home)
    twice["nodes"]["f01"]["name"] = "desk"
    links = Links()
    reports = dict(each_report([saved(tmp_path, twice)], links))
    assert sorted(reports) == ["f00", "f01"]
    assert list(links.named()) == [("f00", "f01")]


def test_plans_are_made_of_measured_links(
    home: Home, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = saved(tmp_path, document(home))
    assert main(["topology", path]) == 0
    assert "desk – rock: measured, 880 Mbit/s, 0.2 ms" in capsys.readouterr().out.splitlines()
    # What is typed in was meant.
    assert main(["topology", path, "--link", "desk:rock=wifi"]) == 0
    assert "desk – rock: wifi" in capsys.readouterr().out.splitlines()
    assert main(["topology", "--json", path]) == 0
    graph = json.loads(capsys.readouterr().out)["peer_graph"]
    assert graph["desk"][0]["description"] == "measured, 880 Mbit/s, 0.2 ms"
    assert main(["partition", "--json", path, "--model", "llama-3.1-70b", "--bits", "4.5"]) in (
        0,
        1,
    )
    plans = json.loads(capsys.readouterr().out)["plans"]
    stages = [stage for plan in plans for stage in plan["stages"] if stage["link"]]
    assert stages
    assert {stage["link"] for stage in stages} == {"measured, 880 Mbit/s, 0.2 ms"}


def test_a_document_and_a_report_may_stand_together(home: Home, tmp_path: Path) -> None:
    path = saved(tmp_path, document(home))
    (tmp_path / "nas.json").write_text(json.dumps(home["nas"]))
    links = Links()
    members = read_members([path, str(tmp_path / "nas.json")], links=links)
    assert [member.id for member in members] == ["desk", "rock", "nas"]
    assert len(links.named()) == 1
    with pytest.raises(ClusterError, match="node 'desk' is in two files"):
        list(each_report([path, path]))


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"schema": 2}, "has schema 2; this version reads 1"),
        ({"nodes": {}}, "no node of it has a report"),
        ({"nodes": {"a": {"name": "a", "report": {"schema": 1}}}}, "node 'a' has no usable report"),
        ({"nodes": [1]}, "no node of it has a report"),
    ],
)
def test_a_damaged_document_is_one_sentence(
    home: Home, tmp_path: Path, change: dict[str, Any], sentence: str
) -> None:
    path = saved(tmp_path, document(home, **change))
    with pytest.raises(ClusterError) as error:
        list(each_report([path]))
    assert sentence in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "links",
    [None, "x", [1], [{}], [{"ends": ["f00"]}], [{"ends": ["f00", "f09"], "latency": 1}]],
)
def test_damaged_links_are_passed_over(home: Home, tmp_path: Path, links: Any) -> None:
    known = Links()
    assert len(list(each_report([saved(tmp_path, document(home, links=links))], known))) == 2
    assert known.named() == {}


def test_reports_are_no_documents_of_a_cluster(home: Home, tmp_path: Path) -> None:
    assert not is_cluster_file(saved(tmp_path, home["desk"]))
    assert not is_cluster_file(str(tmp_path))
    assert not is_cluster_file(str(tmp_path / "none"))
