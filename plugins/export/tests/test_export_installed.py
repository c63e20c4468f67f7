"""Formats of other distributions: found without an import, and a broken one hurts nobody."""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
import recorded

from probe_export import ExportError
from probe_export.installed import GROUP, installed_formats, load
from probe_export.live import answering
from probe_export.serve import Endpoint

MACHINE = str(recorded.path("server--8x-amd-instinct-mi300x"))
REPORT: Any = {"devices": []}


def install(
    folder: Path,
    name: str,
    body: str,
    *,
    target: str = "",
    group: str = GROUP,
    manifest: object = None,
    distribution: str = "",
) -> None:
    """Install a format as a wheel would."""
    module = f"x_format_{distribution or name}"
    (folder / f"{module}.py").write_text(dedent(body))
    if manifest is not None:
        text = manifest if isinstance(manifest, str) else json.dumps(manifest)
        (folder / f"{module}.exporter.json").write_text(text)
    info = folder / f"acme_{distribution or name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Name: acme-{name}\nVersion: 1.0\n")
    line = f"{name} = {target or f'{module}:export'}\n"
    (info / "entry_points.txt").write_text(f"[{group}]\n{line}")


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    return folder


COUNT = "def export(report):\n    return f'{len(report[\"devices\"])}\\n'\n"


def outcome(site: Path, name: str, rules: Any = (None, None)) -> str:
    """The text of a format, or the sentence about why there is none."""
    formats, _ = installed_formats(rules, name, [str(site)])
    try:
        return load(name, formats)(REPORT)
    except ExportError as error:
        return str(error)


def test_a_format_is_listed_without_being_imported(site: Path) -> None:
    table = {"schema": 1, "exporters": {"loud": {"summary": "lines for\nloud"}}}
    install(site, "loud", "raise RuntimeError('imported')", manifest=table)
    formats, notes = installed_formats(paths=[str(site)])
    assert [(f.name, f.owner, f.summary, f.problem) for f in formats.values()] == [
        ("loud", "acme-loud 1.0", "lines for loud", None)
    ]
    assert notes == []
    assert "x_format_loud" not in sys.modules


def test_a_sound_format_gives_its_text(site: Path) -> None:
    install(site, "sound", COUNT)
    assert outcome(site, "sound") == "0\n"


def test_a_format_that_has_no_text_says_why_itself(site: Path) -> None:
    body = (
        "from probe_export import ExportError\ndef export(report):\n    raise ExportError('no GPU')"
    )
    install(site, "none", body)
    assert outcome(site, "none") == "no GPU"


STEP = "update or remove acme-bad, or report it to its author"


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (
            "1/0",
            "cannot be imported: ZeroDivisionError: division by zero (x_format_bad.py, line 1)",
        ),
        ("export = 3", "is no function: export of x_format_bad"),
        ("", "cannot be imported: AttributeError: module 'x_format_bad' has no attribute 'export'"),
        ("def export(report):\n    return 3", "returned int, no text"),
        (
            "def export(report):\n    return report['gone']",
            "failed: KeyError: 'gone' (x_format_bad.py, line 2)",
        ),
    ],
)
def test_a_broken_format_is_one_sentence(site: Path, body: str, sentence: str) -> None:
    sys.modules.pop("x_format_bad", None)
    install(site, "bad", body)
    assert outcome(site, "bad") == f"acme-bad 1.0: the format 'bad' {sentence}; {STEP}"


@pytest.mark.parametrize(
    ("keywords", "reason"),
    [
        ({"target": "x_format_gone:export"}, "its module 'x_format_gone' does not exist;"),
        ({"target": "x_format_bad"}, "its entry point 'x_format_bad' is not `module:function`"),
        ({"group": "probe_core.exporters.v2"}, f"it needs {GROUP[:-1]}2, this core has {GROUP}"),
    ],
)
def test_a_format_that_cannot_be_used_says_why(
    site: Path, keywords: dict[str, Any], reason: str
) -> None:
    install(site, "bad", COUNT, **keywords)
    assert outcome(site, "bad").startswith(f"acme-bad 1.0: the format 'bad' is left out: {reason}")
    formats, notes = installed_formats(paths=[str(site)])
    assert formats["bad"].problem is not None
    assert len(notes) == 1


@pytest.mark.parametrize(
    ("manifest", "reason"),
    [
        ("{", "exporter.json: "),
        ({"schema": 2, "exporters": {"odd": {}}}, "schema 2 is not supported; expected 1"),
        ({"schema": 1, "exporters": {}}, "it has no entry 'odd'"),
        (
            {"schema": 1, "exporters": {"odd": {"sumary": "x"}}},
            "unknown key 'sumary': did you mean",
        ),
        (
            {"schema": 1, "exporters": {"odd": {"summary": 3}}},
            "summary must be text of at most 200",
        ),
    ],
)
def test_a_wrong_manifest_stops_nothing(site: Path, manifest: object, reason: str) -> None:
    install(site, "odd", COUNT, manifest=manifest)
    _, (note,) = installed_formats(paths=[str(site)])
    assert reason in note
    assert outcome(site, "odd") == "0\n"


def test_rules_of_trust_and_allowlist_apply(site: Path) -> None:
    install(site, "sound", COUNT)
    refused = "acme-sound 1.0: the format 'sound' is left out: "
    assert outcome(site, "sound", (("acme-sound",), None)) == "0\n"
    assert outcome(site, "sound", (("other",), None)) == (
        f"{refused}acme-sound is not on the allowlist"
    )
    assert outcome(site, "sound", (None, "no plugin runs: x")) == f"{refused}no plugin runs: x"


def test_root_uses_no_format_that_others_can_write(
    site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(site, "sound", COUNT)
    (site / "x_format_sound.py").chmod(0o666)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert "running as root, and " in outcome(site, "sound")


def test_of_two_formats_the_first_that_can_be_used_counts(site: Path, tmp_path: Path) -> None:
    install(site, "twin", "x", target="x_format_none:export")
    install(site, "twin", COUNT, distribution="second")
    install(site, "twin", COUNT, distribution="third")
    formats, notes = installed_formats(paths=[str(site)])
    assert formats["twin"].owner == "acme-second 1.0"
    assert [note for note in notes if "acme-second 1.0 has a format of that name" in note]


def run(site: Path, *words: str, **environ: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join(filter(None, [str(site), os.environ.get("PYTHONPATH")]))
    return subprocess.run(
        [sys.executable, "-m", "probe_core", "export", *words],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": path, **environ},
    )


@pytest.mark.heavy
def test_the_command_uses_formats_of_others(site: Path, tmp_path: Path) -> None:
    install(site, "count", COUNT)
    install(site, "broken", "1/0")
    install(site, "absent", "", target="x_format_gone:export")
    path = tmp_path / "count.txt"
    done = run(site, "count", "--output", str(path), "--machine", MACHINE, "--only", "bus")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert int(path.read_text()) >= 8
    done = run(site, "--list")
    assert "\ncount" in done.stdout
    assert "\nnfd " in done.stdout
    assert "absent" not in done.stdout
    assert done.stderr.startswith("probe export: acme-absent 1.0: the format 'absent' is left out")
    done = run(site, "broken", "--machine", MACHINE)
    assert (done.returncode, done.stdout) == (1, "")
    assert "division by zero" in done.stderr


@pytest.mark.heavy
def test_the_allowlist_of_the_command_line_holds_for_formats(site: Path) -> None:
    install(site, "count", COUNT)
    done = run(site, "count", "--allow", "probe-export", "--machine", MACHINE)
    assert (done.returncode, done.stdout) == (1, "")
    assert "acme-count is not on the allowlist" in done.stderr


@pytest.mark.heavy
def test_a_format_with_a_content_type_can_be_served(site: Path) -> None:
    table = {"schema": 1, "exporters": {"count": {"content_type": "text/x-count"}}}
    install(site, "count", COUNT, manifest=table)
    install(site, "plain", COUNT)
    done = run(site, "plain", "--listen", "127.0.0.1:0", "--machine", MACHINE)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines()[0] == (
        "probe export: --listen serves count and prometheus alone, not plain"
    )
    formats, _ = installed_formats(paths=[str(site)])
    answer = scraped(lambda: load("count", formats)(REPORT), "text/x-count")
    assert answer == (200, "text/x-count", b"0\n")


def test_a_broken_format_that_is_served_answers_with_500() -> None:
    def broken() -> str:
        raise ExportError("broken")

    assert scraped(broken, "text/x-count") == (500, "text/plain", b"")


def scraped(make: Callable[[], str], kind: str) -> tuple[int, str | None, bytes]:
    """Serve what `make` returns, and return the first answer that is not "come again"."""
    with Endpoint(("127.0.0.1", 0), answering(make, kind)) as endpoint:
        port = int(endpoint.url.rpartition(":")[2].partition("/")[0])
        for _ in range(5000):
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
            connection.request("GET", "/metrics")
            answer = connection.getresponse()
            result = answer.status, answer.getheader("Content-Type"), answer.read()
            connection.close()
            if result[0] != 503:
                break
            time.sleep(0.002)
        return result


def test_a_format_of_ours_that_is_not_installed_names_its_distribution(tmp_path: Path) -> None:
    with pytest.raises(ExportError, match=r"comes with probe-exo, .* pip install probe-exo"):
        load("exo", {})
