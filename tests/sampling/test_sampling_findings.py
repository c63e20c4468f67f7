"""Findings of rounds: each once, again where the device was well in between, and not for ever."""

from __future__ import annotations

from typing import Any

from probe_core.sampling.collect import Samples


def fact(device: str | None = "a", code: str = "c", prober: str = "p", evidence: str = "e") -> Any:
    return {"code": code, "prober": prober, "device": device, "evidence": evidence}


def samples() -> Samples:
    roster: Any = None  # of findings none is asked
    return Samples(roster)


def test_a_finding_is_told_once_and_again_after_the_device_was_well() -> None:
    found = samples()
    facts = [
        fact("a"),
        fact("b"),
        fact("a", code="d"),
        fact("a", prober="q"),
        fact("a", evidence="f"),
    ]
    for entry in (*facts, *facts):
        found.note(entry)
    assert found.findings == facts
    found.begin()
    found.forget("a")
    for entry in facts:
        found.note(entry)
    assert found.findings == [entry for entry in facts if entry["device"] == "a"]


def test_findings_beyond_the_most_are_dropped() -> None:
    found = samples()
    for number in range(258):
        found.note(fact(evidence=str(number)))
    assert len(found.findings) == 256


def test_what_a_sampler_finds_is_told_unless_it_is_no_finding() -> None:
    found = samples()
    good = {"code": "c", "severity": "info", "what": "a", "why": "b", "fix": "c"}
    found.add_findings("acme", [7, {**good, "device": "x:1"}, {"code": "d"}])
    assert [(f["code"], f["prober"], f["device"]) for f in found.findings] == [("c", "acme", "x:1")]
