"""The alerts and the dashboard: promtool reads them, and the exporter writes what they ask for."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from export_nodes import EMPTY, LOST_NODE, MIG_NODE, MIXED, node
from test_export_operators import FOLDER, run, tool

from probe_export import export


def families(tmp_path: Path) -> dict[str, set[str]]:
    """The series that the exporter can write, and the labels of each."""
    labels: dict[str, set[str]] = {}
    for number, sightings in enumerate((LOST_NODE, MIXED, MIG_NODE)):
        report: Any = node(sightings, tmp_path / str(number))
        report["node"]["time"] = "2026-11-22T09:30:00.000Z"
        report["node"]["network"] = [
            {"name": "mlx5_0/1", "kind": "rdma", "state": "up", "bandwidth": 5e10,
             "driver": "mlx5_core", "device": "pci:0000:81:00.0", "layer": "infiniband"}
        ]  # fmt: skip
        report["expected"] = {"count": 8, "absent": []}
        for device in report["devices"]:
            device["memory"]["free"] = 1 << 30
            device["links"] = [{"kind": "pcie", "bandwidth": 64e9}]
        for line in export("prometheus", report).splitlines():
            name = line.partition(" ")[0].partition("{")[0]
            if name != "#":
                labels.setdefault(name, set()).update(re.findall(r'([a-z_]+)="', line))
    return labels


def expressions() -> dict[str, str]:
    rules = yaml.safe_load((FOLDER / "probe-alerts.yml").read_text())
    found = {rule["alert"]: rule["expr"] for group in rules["groups"] for rule in group["rules"]}
    dashboard = json.loads((FOLDER / "probe-dashboard.json").read_text())
    found |= {
        panel["title"]: target["expr"]
        for panel in dashboard["panels"]
        for target in panel["targets"]
    }
    return found


@pytest.mark.heavy
def test_every_series_of_alerts_and_dashboard_is_written_by_the_exporter(tmp_path: Path) -> None:
    used = set(re.findall(r"\bprobe_[a-z_]+", " ".join(expressions().values())))
    assert len(used) >= 10
    assert used - set(families(tmp_path)) == set()


OF_PROMETHEUS = {"instance", "job"}
"""Labels that Prometheus itself gives each series."""


@pytest.mark.heavy
def test_every_label_of_alerts_and_dashboard_is_one_of_its_series(tmp_path: Path) -> None:
    written = families(tmp_path)
    for title, text in expressions().items():
        for name, selector in re.findall(r"(probe_[a-z_]+){([^}]*)}", text):
            matched = set(re.findall(r"([a-z_]+)(?:=~|!~|!=|=)", selector))
            assert matched - written[name] - OF_PROMETHEUS == set(), title
        own = set().union(*(written[name] for name in re.findall("probe_[a-z_]+", text)))
        listed = re.findall(r"\b(?:by|on|group_left|without) ?\(([a-z_, ]*)\)", text)
        joined = {label for part in listed for label in part.split(", ")}
        assert joined - own - OF_PROMETHEUS == set(), title
        shown = set(re.findall(r"{{ *(?:\$labels\.)?([a-z_]+) *}}", shown_texts()[title]))
        assert shown - own - OF_PROMETHEUS == set(), title
    assert "{{device}}" in shown_texts()["Free memory"]


def test_the_page_lists_each_series_once(tmp_path: Path) -> None:
    page = (FOLDER.parents[1] / "docs" / "how-to" / "export.md").read_text("utf-8")
    listed = re.findall(r"^\| `(probe_[a-z_]+)` \|", page, re.MULTILINE)
    report: Any = node(LOST_NODE, tmp_path)
    assert listed == [name for name, _, _ in _families(report)]


def shown_texts() -> dict[str, str]:
    """The texts with labels in them: of an alert its annotations, of a panel its legend."""
    rules = yaml.safe_load((FOLDER / "probe-alerts.yml").read_text())
    alerts = [rule for group in rules["groups"] for rule in group["rules"]]
    texts = {rule["alert"]: " ".join(rule["annotations"].values()) for rule in alerts}
    dashboard = json.loads((FOLDER / "probe-dashboard.json").read_text())
    for panel in dashboard["panels"]:
        legends = (target.get("legendFormat", "") for target in panel["targets"])
        texts[panel["title"]] = " ".join(legends)
    return texts


def test_a_card_that_is_cut_raises_no_alarm_nor_does_an_empty_one(tmp_path: Path) -> None:
    report: Any = node([*MIG_NODE, EMPTY], tmp_path)
    lines = export("prometheus", report).splitlines()
    missing = [line for line in lines if "_missing{" in line]
    assert missing == [
        'probecore_device_missing{device="0000:01:00.0"} 0',
        'probecore_device_missing{device="0000:02:00.0"} 0',
        'probecore_device_missing{device="0000:03:00.0"} 0',
        'probecore_partition_missing{device="0000:02:00.0",partition="3g.40gb.0"} 0',
        'probecore_partition_missing{device="0000:02:00.0",partition="3g.40gb.1"} 0',
    ]
    assert 'probecore_device_ready{device="0000:02:00.0"} 0' in lines
    assert "probecore_devices_usable 3" in lines
    assert 'cause="mig-without-instances"} 1' in export("prometheus", report)
    label = "probe-set-aside.mig-without-instances.count=1\n"
    assert label in export("nfd", report)
    assert "# left out, mig-without-instances: 0000:03:00.0\n" in export("slurm", report)
    assert "probe/set-aside.mig-without-instances=1" in export("ray", report)


def test_promtool_reads_every_expression(tmp_path: Path) -> None:
    # Grafana puts a regular expression in the place of its variable.
    rules = [
        {"record": f"dashboard:{number}:x", "expr": text.replace("$instance", ".*")}
        for number, text in enumerate(expressions().values())
    ]
    path = tmp_path / "rules.yml"
    path.write_text(yaml.safe_dump({"groups": [{"name": "all", "rules": rules}]}))
    done = run(tool("promtool"), "check", "rules", str(path))
    assert (done.returncode, done.stderr) == (0, "")
    assert f"SUCCESS: {len(rules)} rules found" in done.stdout


@pytest.mark.heavy
def test_promtool_runs_the_alerts_own_tests() -> None:
    done = run(tool("promtool"), "check", "rules", str(FOLDER / "probe-alerts.yml"))
    assert (done.returncode, done.stderr) == (0, "")
    done = run(tool("promtool"), "test", "rules", str(FOLDER / "probe-alerts-test.yml"))
    assert (done.returncode, done.stderr) == (0, "")
    tested = yaml.safe_load((FOLDER / "probe-alerts-test.yml").read_text())["tests"][0]
    fired = {case["alertname"] for case in tested["alert_rule_test"] if case.get("exp_alerts")}
    assert fired == {name for name in expressions() if name.startswith("Probe")}


def test_the_dashboard_can_be_imported() -> None:
    dashboard = json.loads((FOLDER / "probe-dashboard.json").read_text())
    panels = dashboard["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    # Rules of Grafana's dashboard-linter: each panel has a title, a description and a unit, and
    # asks the data source that the variable names.
    for panel in panels:
        assert panel["title"]
        assert panel["description"]
        assert panel["fieldConfig"]["defaults"]["unit"] in ("short", "s", "bytes", "Bps")
        for place in (panel, *panel["targets"]):
            assert place["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
    places = [tuple(panel["gridPos"][side] for side in "xywh") for panel in panels]
    for x, y, width, height in places:
        assert x + width <= 24
        others = [place for place in places if place != (x, y, width, height)]
        assert not any(
            x < a + c and a < x + width and y < b + d and b < y + height for a, b, c, d in others
        ), "two panels overlap"
    names = {variable["name"] for variable in dashboard["templating"]["list"]}
    used = set(re.findall(r"\$\{?([a-z]+)", json.dumps(panels)))
    assert used == names
