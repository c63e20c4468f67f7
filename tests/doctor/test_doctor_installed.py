"""Checks of other distributions: found without an import, run in a process, believed with care."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from textwrap import dedent
from types import SimpleNamespace
from typing import Any

import pytest
from readiness_nodes import nvidia
from reports import report_of

from probe_core.cli.candidates import candidates
from probe_core.doctor import child
from probe_core.doctor.check import Request
from probe_core.doctor.examine import examine
from probe_core.doctor.installed import CheckSet, installed_checks
from probe_core.doctor.remote import (
    Remote,
    RemoteCheck,
    checked_answer,
    checked_result,
    run_installed,
)

SOUND = """
    from probe_core.doctor.check import check, failed, finding, passed, unknown

    @check("acme-old", step="driver", needs=("/sys/class/acme",))
    def old(request):
        '''Whether the card's firmware is old.'''
        if not request.machine.exists("/proc/modules"):
            return unknown("there is no list of modules")
        device = request.report["devices"][0]["id"]
        return failed(finding("acme-old", what="The firmware is old", why="it has 1",
                              fix="acme-update", device=device, evidence="1", severity="error"))

    @check("acme-env", needs=("environment",))
    def env(request):
        '''Whether an environment is good.'''
        return passed() | {"facts": {"acme": "2.0"}}

    CHECKS = [old, env]
"""


def install(folder: Path, name: str, body: str, manifest: Any = None) -> str:
    """Install a set of checks as a wheel would; returns its module."""
    module = f"x_checks_{name}"
    (folder / f"{module}.py").write_text(dedent(body))
    if manifest is not None:
        raw = manifest if isinstance(manifest, str) else json.dumps(manifest)
        (folder / f"{module}.check.json").write_text(raw)
    info = folder / f"acme_{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Name: acme-{name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[probe_core.checks.v1]\n{name} = {module}\n")
    return module


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    return folder


@pytest.fixture
def request_(tmp_path: Path) -> Request:
    machine = nvidia(tmp_path / "root").machine()
    return Request(machine, report_of(machine))  # type: ignore[arg-type]


def sets(site: Path, allow: tuple[str, ...] | None = None) -> list[CheckSet]:
    return installed_checks(allow, paths=[str(site)])


def run(site: Path, request: Request) -> Remote:
    return run_installed(sets(site), request)


def by_code(remote: Remote) -> dict[str, RemoteCheck]:
    return {check.code: check for check in remote.checks}


def test_they_run_in_a_process_and_join_the_document(site: Path, request_: Request) -> None:
    module = install(site, "sound", SOUND)
    remote = run(site, request_)
    assert remote.problems == []
    assert module not in sys.modules
    document = examine(request_, remote=remote.checks)
    finding = document["findings"][0]
    assert (finding["code"], finding["device"], finding["fix"]) == (
        "acme-old",
        "pci:0000:01:00.0",
        "acme-update",
    )
    entry = next(check for check in document["checks"] if check["code"] == "acme-old")
    assert (entry["status"], entry["distribution"]) == ("failed", "acme-sound 1.0")
    assert document["healthy"] is False


def test_a_check_of_environments_runs_with_one_alone(site: Path, tmp_path: Path) -> None:
    install(site, "sound", SOUND)
    machine = nvidia(tmp_path / "other").machine()
    report: Any = report_of(machine)
    without = by_code(run(site, Request(machine, report)))
    assert without["acme-env"].result is None
    request = Request(machine, report, environment="/srv/env")
    remote = run(site, request)
    result = by_code(remote)["acme-env"].result
    assert result is not None
    assert result["status"] == "passed"
    examine(request, remote=remote.checks)
    assert request.facts == {"acme": "2.0"}


def test_completion_offers_what_manifests_list_and_imports_nothing(
    site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("probe_core.cli.candidates.LIMIT_S", 600.0)  # later it ends the process
    manifest = {"schema": 1, "checks": {"listed": {"codes": ["acme-old", "acme-env"]}}}
    module = install(site, "listed", "raise SystemExit('imported')", manifest)
    assert sets(site)[0].codes == ("acme-old", "acme-env")
    kind, offered = candidates(["doctor", "--only", "acme-"], os.environ)
    assert (kind, [word for word, _ in offered]) == ("words", ["acme-old", "acme-env"])
    assert module not in sys.modules


@pytest.mark.parametrize("codes", ["acme-old", [1], ["x"] * 257, {"a": 1}])
def test_codes_that_are_no_list_of_words(codes: object, site: Path) -> None:
    install(site, "odd", SOUND, {"schema": 1, "checks": {"odd": {"codes": codes}}})
    assert "codes is no list of up to 256 words" in (sets(site)[0].problem or "")


def test_a_manifest_keeps_a_set_from_being_started(site: Path, request_: Request) -> None:
    manifest = {"schema": 1, "checks": {"env": {"needs": ["environment"], "deadline_s": 20}}}
    install(site, "env", "raise SystemExit('started')", manifest)
    assert sets(site)[0].prober.deadline_s == 20
    remote = run(site, request_)
    assert (remote.checks, remote.problems) == ([], [])


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ("import time; time.sleep(60)", "timeout"),
        ("import os; os._exit(3)", "crashed"),
        ("raise ValueError('no')", "ValueError: no"),
        ("CHECKS = None", "has no list CHECKS"),
        ("CHECKS = [1]", "AttributeError"),
    ],
)
def test_a_set_that_fails_is_named_and_hurts_nobody(
    body: str, problem: str, site: Path, request_: Request
) -> None:
    # Short for the one that hangs alone: a loaded machine takes longer to start the others.
    manifest = {"schema": 1, "checks": {"bad": {"deadline_s": 1.5 if "sleep" in body else 20}}}
    install(site, "bad", body, manifest)
    install(site, "sound", SOUND)
    remote = run(site, request_)
    owners = dict(remote.problems)
    assert list(owners) == ["acme-bad 1.0"]
    assert problem in owners["acme-bad 1.0"]
    assert by_code(remote)["acme-old"].result is not None


def test_a_check_that_raises_is_unknown(site: Path, request_: Request) -> None:
    body = """
        from probe_core.doctor.check import check
        @check("acme-raises", summary="Whether it raises.")
        def raises(request):
            raise RuntimeError("boom")
        CHECKS = [raises]
    """
    install(site, "raises", body)
    result = by_code(run(site, request_))["acme-raises"].result
    assert result is not None
    assert (result["status"], result["reason"]) == (
        "unknown",
        "the check raised: RuntimeError: boom",
    )


def test_the_allowlist_and_a_sealed_core_keep_them_from_running(site: Path) -> None:
    install(site, "sound", SOUND)
    assert sets(site, ("other",))[0].problem == "acme-sound is not on the allowlist"
    sealed = installed_checks(None, "the configuration cannot be used", [str(site)])
    assert sealed[0].problem == "the configuration cannot be used"


@pytest.mark.parametrize("manifest", ["{", '{"schema": 2}', '{"schema": 1, "checks": {"m": []}}'])
def test_a_manifest_with_a_mistake_names_its_author(manifest: str, site: Path) -> None:
    install(site, "m", SOUND, manifest)
    problem = sets(site)[0].problem
    assert problem is not None
    assert problem.startswith("x_checks_m.check.json: ")


def test_another_group_needs_another_core(site: Path) -> None:
    install(site, "later", SOUND)
    path = next(site.glob("*.dist-info")) / "entry_points.txt"
    path.write_text("[probe_core.checks.v2]\nlater = x_checks_later\n")
    assert "needs probe_core.checks.v2" in str(sets(site)[0].problem)


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (None, "returned a NoneType"),
        ({}, "returned neither status nor findings"),
        ({"status": "fine"}, "returned neither status nor findings"),
        ({"status": "failed"}, "failed without a finding"),
        ({"status": "failed", "findings": [1]}, "has a finding that is no table"),
        ({"status": "failed", "findings": [{"code": "A B"}]}, "has a finding without a code"),
        ({"status": "failed", "findings": [{"code": "a", "what": "x"}]}, "lacks what, why or fix"),
        ({"status": "unknown"}, "is unknown without a reason"),
    ],
)
def test_an_answer_that_makes_no_sense_is_a_sentence(value: object, problem: str) -> None:
    result = checked_result(value)
    assert isinstance(result, str)
    assert problem in result


@pytest.mark.parametrize(
    ("frame", "expected"),
    [
        (5, "a check is no table"),
        ({"code": "A"}, "a check's code 'A' is not 1 to 60 of a-z, 0-9 and '-'"),
        ({"code": "a" * 61}, f"a check's code {'a' * 40!r} is not 1 to 60 of a-z, 0-9 and '-'"),
        ({"code": ""}, "a check's code '' is not 1 to 60 of a-z, 0-9 and '-'"),
        ({"code": "a" * 60}, ("", (), "", None, 0.0)),
        ({"code": "a-1", "step": "x", "needs": 5, "summary": 5}, ("", (), "", None, 0.0)),
        ({"code": "a", "step": "driver", "needs": ["b"] * 65, "summary": "Whether."},
         ("driver", ("b",) * 64, "Whether.", None, 0.0)),
        ({"code": "a", "result": {"status": "passed"}, "ms": 7},
         ("", (), "", {"status": "passed", "findings": [], "reason": None}, 7.0)),
        ({"code": "a", "result": {"status": "passed"}, "ms": "7"},
         ("", (), "", {"status": "passed", "findings": [], "reason": None}, 0.0)),
        ({"code": "a", "result": 5},
         "the check a returned a int; return passed(), failed(…), unknown(reason)"),
    ],
    ids=range(10),
)  # fmt: skip
def test_what_is_taken_of_a_frame(frame: object, expected: object) -> None:
    found = checked_answer(frame, "acme 1.0")
    if isinstance(found, RemoteCheck):
        assert found.distribution == "acme 1.0"
        assert (found.step, found.needs, found.summary, found.result, found.ms) == expected
    else:
        assert found == expected


def test_a_finding_keeps_its_facts_and_the_default_severity() -> None:
    entry: Any = {"code": "a", "what": "x", "why": "y", "fix": "z", "evidence": 5, "needs": "sm_90"}

    def taken(**facts: object) -> Any:
        result: Any = checked_result({"status": "failed", "findings": [entry | facts] * 2})
        return result if isinstance(result, str) else result["findings"][1]

    found = taken(step="driver", device="pci:1")
    names = ("severity", "step", "device", "variable", "evidence", "needs")
    assert [found[name] for name in names] == [*("warning", "driver", "pci:1", None, None, "sm_90")]
    assert (taken(step="x")["step"], taken(severity="info")["severity"]) == (None, "info")
    assert taken(severity="grave") == (
        "has a finding whose severity is none of info, warning, error"
    )


def test_what_the_process_of_a_set_answers(
    site: Path, request_: Request, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As `isolation` runs it: the request's bus is what is asked."""
    remembering = """
        from probe_core.doctor.check import check, passed

        @check("acme-kept", needs=("report",))
        def kept(request):
            '''Whether it is kept.'''
            request.remember(["/nonexistent/a"])
            return passed() | {"facts": {"devices": " ".join(request.report)}}

        CHECKS = (kept,)
    """
    targets = [install(site, "plain", SOUND), install(site, "kept", remembering)]
    clock = iter((1.0, 1.5, 2.0, 2.25))
    monkeypatch.setattr("probe_core.doctor.child.perf_counter", lambda: next(clock))

    def ask(number: int, **options: Any) -> list[Any]:
        asked = {
            **{"targets": targets, "remembers": [False, True], "report": request_.report},
            **{"environment": None, "device": None, "assumed": {}, "access": {}, "list": False},
            **options,
        }
        question: Any = SimpleNamespace(bus=[asked], machine=request_.machine)
        return list(getattr(child.sets, f"s{number}").probe_devices(question))

    old, env = ask(0)
    assert (old["code"], old["step"], old["needs"]) == ("acme-old", "driver", ["/sys/class/acme"])
    assert (old["ms"], old["result"]["status"]) == (500.0, "failed")
    assert env == {
        **{"code": "acme-env", "step": "", "needs": ["environment"]},
        **{"summary": "Whether an environment is good."},
    }
    kept, files = ask(1)
    assert kept["result"]["facts"] == {"devices": "node primary devices"}
    assert files == {"files": {"/nonexistent/a": ""}}
    assert [sorted(frame) for frame in ask(0, list=True)] == [
        ["code", "needs", "step", "summary"]
    ] * 2
    for name in ("s", "sx", "t1"):
        with pytest.raises(AttributeError):
            getattr(child.sets, name)


def test_foreign_texts_are_made_harmless() -> None:
    entry = {"code": "a", "what": "x\x1b[31m", "why": "y" * 9999, "fix": "z", "severity": "error"}
    result = checked_result({"status": "failed", "findings": [entry]})
    assert not isinstance(result, str)
    finding = result["findings"][0]
    assert "\x1b" not in finding["what"]
    assert len(finding["why"]) == 1024


def test_verdicts_about_wheels_are_checked_and_join_the_document(request_: Request) -> None:
    wheel = {"wheel": "torch 2.9.1+cu128", "devices": ["pci:0000:01:00.0"], "verdict": "native"}
    texts = {"has": "sm_90\x1b[2J", "needs": "sm_90", "reason": "it has machine code"}
    bad: list[Any] = [
        5,
        {**wheel, "verdict": "fine"},
        {**wheel, "devices": [5]},
        {**wheel, "wheel": 1},
    ]
    bad += [{**wheel, "verdict": ["native"]}]
    answer = checked_result({"status": "passed", "wheels": [*bad, {**wheel, **texts}]})
    assert not isinstance(answer, str)
    check = RemoteCheck("wheel-lacks-device", "acme 1.0")
    check.result = answer
    listed = examine(request_, remote=[check])["wheels"]
    assert listed == answer["wheels"]
    assert [entry["verdict"] for entry in listed] == ["native"]
    assert "\x1b" not in listed[0]["has"]
    assert "wheels" not in examine(request_)
