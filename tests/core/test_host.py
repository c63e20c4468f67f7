"""Host hooks: they watch, veto and name chips, and cannot break the run by raising."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from fake_probers import Probers, gpu
from reports import codes, validated
from trees import Tree

import probe_core
from probe_core import ConfigError, hookimpl


def run(tree: Tree, probers: Probers, *hooks: object) -> dict[str, Any]:
    report = probe_core.probe(machine=tree.machine(), hooks=hooks, **probers.arguments)
    return validated(report.to_json())


class Watcher:
    def __init__(self) -> None:
        self.seen: list[tuple[str, Any]] = []

    @hookimpl
    def probe_observe(self, event: str, details: Mapping[str, Any]) -> None:
        self.seen.append((event, details.get("prober", details.get("devices"))))


def test_observer_hears_each_step(tree: Tree, probers: Probers) -> None:
    probers.reports("a", gpu())
    watcher = Watcher()
    run(tree, probers, watcher)
    # Other probers may be installed: they are told as not selected.
    assert [one for one in watcher.seen if one[1] in ("a", 2)] == [
        ("selected", "a"),
        ("started", "a"),
        ("finished", "a"),
        ("report", 2),
    ]


def test_observer_may_take_fewer_arguments(tree: Tree, probers: Probers) -> None:
    heard: list[str] = []

    class Short:
        @hookimpl
        def probe_observe(self, event: str) -> None:
            heard.append(event)

    run(tree, probers, Short())
    assert heard[-1] == "report"
    assert set(heard) <= {"selected", "report"}


def test_raising_observer_is_told_and_the_others_hear(tree: Tree, probers: Probers) -> None:
    class Broken:
        @hookimpl
        def probe_observe(self, event: str, details: Mapping[str, Any]) -> None:
            raise RuntimeError("observer\x1b[31m broke")

    probers.reports("a", gpu())
    watcher = Watcher()
    report = run(tree, probers, watcher, Broken())
    events = [event for event, about in watcher.seen if about in ("a", 2)]
    assert events == ["selected", "started", "finished", "report"]
    told = [f for f in report["findings"] if f["code"] == "hook-failed"]
    assert [f["what"] for f in told] == ["the host's own hook probe_observe raised"] * len(told)
    assert told[0]["why"] == "RuntimeError: observer\ufffd[31m broke"
    assert [o["status"] for o in report["outcomes"] if o["prober"] == "a"] == ["ok"]


def test_veto_skips_a_prober_with_the_reason(tree: Tree, probers: Probers) -> None:
    class Host:
        @hookimpl
        def probe_veto(self, prober: str, distribution: str, target: str) -> str | None:
            assert (distribution, target) == ("(host)", f"fake_{prober}")
            return "not on this cluster" if prober == "a" else None

    probers.reports("a", gpu(1))
    probers.reports("b", gpu(2))
    report = run(tree, probers, Host())
    assert [d["id"] for d in report["devices"]] == ["pci:0000:02:00.0", "cpu:0"]
    decisions = {d["prober"]: (d["selected"], d["cause"], d["reason"]) for d in report["decisions"]}
    assert {name: decisions[name] for name in "ab"} == {
        "a": (False, "veto", "vetoed by the host: not on this cluster"),
        "b": (True, None, None),
    }


def test_raising_veto_vetoes_nothing(tree: Tree, probers: Probers) -> None:
    class Host:
        @hookimpl
        def probe_veto(self, prober: str) -> str | None:
            raise KeyError(prober)

    probers.reports("a", gpu())
    report = run(tree, probers, Host())
    assert report["devices"][0]["id"] == "pci:0000:01:00.0"
    assert "hook-failed" in codes(report)


def test_host_names_the_chip(tree: Tree, probers: Probers) -> None:
    class Host:
        @hookimpl
        def probe_resolve_chip(self, device: Mapping[str, Any]) -> str | None:
            return "nvidia/geforce-rtx-4080" if device["kind"] == "gpu" else None

    probers.reports("a", gpu())
    chip = run(tree, probers, Host())["devices"][0]["chip"]
    assert (chip["id"], chip["by"], chip["confidence"]) == (
        "nvidia/geforce-rtx-4080",
        "host",
        "high",
    )


@pytest.mark.parametrize(
    ("said", "chip", "told"),
    [
        ("nvidia/no-such-chip", None, ["chip-unknown"]),
        (None, "nvidia/geforce-rtx-4090", []),
        (17, "nvidia/geforce-rtx-4090", []),
        ("", "nvidia/geforce-rtx-4090", []),
        (ValueError("no"), "nvidia/geforce-rtx-4090", ["hook-failed"]),
    ],
)
def test_host_says_nonsense_or_nothing(
    said: Any, chip: str | None, told: list[str], tree: Tree, probers: Probers
) -> None:
    class Host:
        @hookimpl
        def probe_resolve_chip(self, device: Mapping[str, Any]) -> Any:
            if isinstance(said, Exception):
                raise said
            return said

    probers.reports("a", gpu())
    report = run(tree, probers, Host())
    assert report["devices"][0]["chip"]["id"] == chip
    assert [code for code in codes(report) if code not in ("no-cpu-facts",)] == told


def test_hook_cannot_change_the_report_through_its_arguments(tree: Tree, probers: Probers) -> None:
    class Host:
        @hookimpl
        def probe_observe(self, details: dict[str, Any]) -> None:
            details.clear()

        @hookimpl
        def probe_resolve_chip(self, device: dict[str, Any]) -> None:
            device.clear()

    probers.reports("a", gpu())
    report = run(tree, probers, Host())
    assert report["devices"][0]["name"] == "NVIDIA GeForce RTX 4090"


def test_object_without_hooks_is_refused(tree: Tree, probers: Probers) -> None:
    with pytest.raises(ConfigError, match="implements no hook; mark functions named probe_observe"):
        run(tree, probers, object())


def test_hook_with_a_wrong_signature_is_refused(tree: Tree, probers: Probers) -> None:
    class Host:
        @hookimpl
        def probe_veto(self, device: object) -> None: ...

    with pytest.raises(ConfigError, match=r"a host hook cannot be used: .*device"):
        run(tree, probers, Host())


def test_a_hook_that_there_is_not_is_refused(tree: Tree, probers: Probers) -> None:
    class Host(Watcher):
        @hookimpl
        def probe_vetoo(self) -> None: ...

    with pytest.raises(
        ConfigError, match=r"a host hook cannot be used: unknown hook 'probe_vetoo'"
    ):
        run(tree, probers, Host())


def test_same_object_twice_is_refused(tree: Tree, probers: Probers) -> None:
    watcher = Watcher()
    with pytest.raises(ConfigError, match="a host hook cannot be used"):
        run(tree, probers, watcher, watcher)
