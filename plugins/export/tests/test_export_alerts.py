"""The alerts and the dashboard: promtool reads them, and the exporter writes what they ask for."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from export_nodes import EMPTY, LOST_NODE, MIG_NODE, MIXED, gpu, node
from test_export_operators import FOLDER, run, tool
from test_export_series import at_work, host, served

from probe_export import export
from probe_export.pods import Assignment
from probe_export.pods import families as pod_families
from probe_export.prometheus import identities, text


def families(tmp_path: Path) -> dict[str, set[str]]:
    """The series that the endpoint can write, and the labels of each."""
    labels: dict[str, set[str]] = {}
    shared = gpu(9, "NVIDIA GB10", memory=128)
    shared["memory"]["kind"] = "unified"
    for number, sightings in enumerate((LOST_NODE, [*MIXED, shared], MIG_NODE)):
        report: Any = node(sightings, tmp_path / str(number))
        for device in report["devices"]:
            device["memory"]["usable"] = 1 << 30
            device["links"] = [{"kind": "pcie", "bandwidth": 64e9}]
            device["ecc"] = {"remapped": 0, "remap_pending": False, "remap_failed": False}
        report["node"]["network"] = [
            {"name": "mlx5_0/1", "kind": "rdma", "state": "up", "bandwidth": 5e10,
             "driver": "mlx5_core", "device": "pci:0000:81:00.0", "layer": "infiniband",
             "interface": "ib0"}
        ]  # fmt: skip
        report["node"]["memory"]["limit"] = 1 << 30
        report["node"]["time"] = "2026-11-22T09:30:00.000Z"
        report["expected"] = {"count": 8, "absent": []}
        devices = [d["id"] for d in report["devices"] if d["kind"] == "gpu"]
        written = served(report, [*map(at_work, devices), *host()], "")
        one = Assignment("train", "ml", "main", "nvidia.com/gpu", "0000:01:00.0")
        written += text(pod_families([one], identities(report)))
        for line in written.splitlines():
            name = line.partition(" ")[0].partition("{")[0]
            if name != "#":
                labels.setdefault(name, set()).update(re.findall(r'([a-z_]+)="', line))
    return labels


OF_WATCH = {"probecore_alert", "probecore_peer_latency_seconds"}
"""Series that `probe watch --listen` adds."""


@pytest.mark.heavy
def test_the_page_lists_each_series_once(tmp_path: Path) -> None:
    """Those of a partition are named as its card's."""
    page = (FOLDER.parents[1] / "docs" / "how-to" / "export.md").read_text("utf-8")
    listed = re.findall(r"^\| `(probecore_[a-z0-9_]+)` \|", page, re.MULTILINE)
    assert len(set(listed)) == len(listed)
    written = {n.replace("probecore_partition_", "probecore_device_") for n in families(tmp_path)}
    assert set(listed) == written | OF_WATCH
    # In the table of other exporters stand ours alone.
    assert set(re.findall(r"`(probecore_[a-z0-9_]+)", page)) <= set(listed) | {
        "probecore_partition"
    }


def expressions() -> dict[str, str]:
    rules = yaml.safe_load((FOLDER / "probe-alerts.yml").read_text())
    found = {name_of(rule): rule["expr"] for group in rules["groups"] for rule in group["rules"]}
    dashboard = json.loads((FOLDER / "probe-dashboard.json").read_text())
    found |= {
        f"{panel['title']} {target['refId']}": target["expr"]
        for panel in panels(dashboard)
        for target in panel["targets"]
    }
    return found


def name_of(rule: dict[str, Any]) -> str:
    return str(rule.get("alert") or rule["record"])


def panels(dashboard: dict[str, Any]) -> list[dict[str, Any]]:
    """Its panels without the headings of its rows."""
    return [panel for panel in dashboard["panels"] if panel["type"] != "row"]


@pytest.mark.heavy
def test_every_series_of_alerts_and_dashboard_is_written_by_the_exporter(tmp_path: Path) -> None:
    used = set(re.findall(r"\bprobecore_[a-z_]+", " ".join(expressions().values())))
    assert len(used) >= 10
    assert used - set(families(tmp_path)) == set()


OF_PROMETHEUS = {"instance", "job"}
"""Labels that Prometheus itself gives each series."""


@pytest.mark.heavy
def test_every_label_of_alerts_and_dashboard_is_one_of_its_series(tmp_path: Path) -> None:
    written = families(tmp_path)
    for title, expr in expressions().items():
        for name, selector in re.findall(r"(probecore_[a-z_]+){([^}]*)}", expr):
            matched = set(re.findall(r"([a-z_]+)(?:=~|!~|!=|=)", selector))
            assert matched - written[name] - OF_PROMETHEUS == set(), title
        own = set().union(*(written[name] for name in re.findall(r"\bprobecore_[a-z_]+", expr)))
        listed = re.findall(r"\b(?:by|on|group_left|without) ?\(([a-z_, ]*)\)", expr)
        joined = {label for part in listed for label in part.split(", ") if label}
        assert joined - own - OF_PROMETHEUS == set(), title
        shown = set(re.findall(r"{{ *(?:\$labels\.)?([a-z_]+) *}}", shown_texts()[title]))
        assert shown - own - OF_PROMETHEUS == set(), title
    assert "{{device}}" in shown_texts()["Memory in use A"]


def shown_texts() -> dict[str, str]:
    """The texts with labels in them: of an alert its annotations, of a panel its legend."""
    rules = yaml.safe_load((FOLDER / "probe-alerts.yml").read_text())
    alerts = [rule for group in rules["groups"] for rule in group["rules"]]
    texts = {name_of(rule): " ".join(rule.get("annotations", {}).values()) for rule in alerts}
    dashboard = json.loads((FOLDER / "probe-dashboard.json").read_text())
    for panel in panels(dashboard):
        for target in panel["targets"]:
            texts[f"{panel['title']} {target['refId']}"] = target.get("legendFormat", "")
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
        {"record": f"dashboard:{number}:x", "expr": re.sub(r"\$(instance|device)", ".*", expr)}
        for number, expr in enumerate(expressions().values())
    ]
    path = tmp_path / "rules.yml"
    path.write_text(yaml.safe_dump({"groups": [{"name": "all", "rules": rules}]}))
    done = run(tool("promtool"), "check", "rules", str(path))
    assert (done.returncode, done.stderr) == (0, "")
    assert f"SUCCESS: {len(rules)} rules found" in done.stdout


SILENT_ELSEWHERE = {"ProbeFewerAccelerators", "ProbeRdmaPortDown"}
"""Alerts whose test has a series that must not fire beside the one that does."""


@pytest.mark.heavy
def test_promtool_runs_the_alerts_own_tests() -> None:
    done = run(tool("promtool"), "check", "rules", str(FOLDER / "probe-alerts.yml"))
    assert (done.returncode, done.stderr) == (0, "")
    done = run(tool("promtool"), "test", "rules", str(FOLDER / "probe-alerts-test.yml"))
    assert (done.returncode, done.stderr) == (0, "")
    alerts, records = yaml.safe_load((FOLDER / "probe-alerts-test.yml").read_text())["tests"]
    fired = {case["alertname"] for case in alerts["alert_rule_test"] if case.get("exp_alerts")}
    silent = {c["alertname"] for c in alerts["alert_rule_test"] if not c.get("exp_alerts")}
    recorded = {case["expr"] for case in records["promql_expr_test"]}
    rules = yaml.safe_load((FOLDER / "probe-alerts.yml").read_text())["groups"]
    listed = [rule for group in rules for rule in group["rules"]]
    assert fired == {rule["alert"] for rule in listed if "alert" in rule}
    assert recorded == {rule["record"] for rule in listed if "record" in rule}
    new = {name for name in fired if name not in SILENT_ELSEWHERE}
    assert new <= silent  # each alert is off, too, in some minute of the same series


UNITS = {"short", "s", "bytes", "Bps", "percentunit", "watt", "celsius", "hertz"}
"""Ids of Grafana's units (packages/grafana-data/src/valueFormats/categories.ts)."""


def test_the_dashboard_can_be_imported() -> None:
    dashboard = json.loads((FOLDER / "probe-dashboard.json").read_text())
    every = dashboard["panels"]
    assert len({panel["id"] for panel in every}) == len(every)
    rows = [panel["title"] for panel in every if panel["type"] == "row"]
    assert rows == ["Now", "Load", "Heat", "Power", "Memory", "Errors", "Readiness"]
    # Rules of Grafana's dashboard-linter: each panel has a title, a description and a unit, and
    # asks the data source that the variable names.
    for panel in panels(dashboard):
        assert panel["title"]
        assert panel["description"]
        assert panel["fieldConfig"]["defaults"]["unit"] in UNITS
        letters = "".join(target["refId"] for target in panel["targets"])
        assert letters == "ABC"[: len(letters)]
        for place in (panel, *panel["targets"]):
            assert place["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
    places = [tuple(panel["gridPos"][side] for side in "xywh") for panel in every]
    for x, y, width, height in places:
        assert x + width <= 24
        others = [place for place in places if place != (x, y, width, height)]
        assert not any(
            x < a + c and a < x + width and y < b + d and b < y + height for a, b, c, d in others
        ), "two panels overlap"
    names = {variable["name"] for variable in dashboard["templating"]["list"]}
    used = set(re.findall(r"\$\{?([a-z]+)", json.dumps(every)))
    assert used == names


KEPT = """
import json, sys
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.dashboard import Dashboard

register_default_plugins()
print(JSONEncoder().encode(Dashboard.from_json(json.load(sys.stdin))))
"""


@pytest.mark.heavy
def test_grafanas_own_types_keep_all_of_the_dashboard() -> None:
    """What the types made from Grafana's schema do not know is dropped, so nothing may be."""
    python = os.environ.get("PROBE_RAY_PYTHON", sys.executable)
    if run(python, "-c", "import grafana_foundation_sdk").returncode:
        pytest.skip("no grafana-foundation-sdk: name a Python in PROBE_RAY_PYTHON")
    dashboard = json.loads((FOLDER / "probe-dashboard.json").read_text())
    assert lost(dashboard, kept(python, dashboard)) == []
    dashboard["panels"][1]["gridPos"]["width"] = 4  # as a mistake would be
    assert lost(dashboard, kept(python, dashboard)) == [".panels.1.gridPos.width"]


def kept(python: str, dashboard: Any) -> Any:
    done = subprocess.run(
        [python, "-c", KEPT], input=json.dumps(dashboard), capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def lost(before: Any, after: Any, path: str = "") -> list[str]:
    """The paths of what is in the first document and not in the second."""
    if isinstance(before, dict) and isinstance(after, dict):
        pairs = [(key, value, after.get(key, ...)) for key, value in before.items()]
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        pairs = [(str(n), *both) for n, both in enumerate(zip(before, after, strict=True))]
    else:
        return [] if before == after else [path]
    return [place for key, a, b in pairs for place in lost(a, b, f"{path}.{key}")]
