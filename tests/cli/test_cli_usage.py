"""Mistakes on the command line: exit 2, one clear sentence, nothing on standard output."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from probe_core import __version__
from probe_core.cli import COMMANDS, main

MISTAKES: list[tuple[list[str], str]] = [
    (["--jsn"], "probe: unknown option --jsn: did you mean '--json'?"),
    (["--only"], "probe: argument --only: expected one argument"),
    (["reprot"], "probe: 'reprot' is no command: did you mean 'report'?"),
    (["zzz"], "probe: 'zzz' is no command: known: "),
    (["report", "extra"], "probe: unexpected argument 'extra'"),
    (["--timeout", "soon"], "probe: the arguments set 'timeout' to 'soon': expected seconds"),
    (["--timeout", "-1"], "argument --timeout: expected one argument|expected seconds above 0"),
    (["--timeout=0"], "expected seconds above 0 and up to 600"),
    (["--priority", "nvidia"], "expected a priority from 1 to 999 for 'nvidia'"),
    (["--priority", "nvidia=0"], "the priority of 'nvidia' must be from 1 to 999"),
    (
        ["--machine", "/no/such/folder"],
        "probe: --machine /no/such/folder: there is no such folder or file",
    ),
    (
        ["--only", "no-such-prober"],
        "--only names a plugin 'no-such-prober' that is not installed: known: |did you mean",
    ),
    (
        ["--disable", "buss"],
        "--disable names a plugin 'buss' that is not installed: did you mean 'bus'?",
    ),
    (["explain", "pci:ffff"], "no device has an id with 'pci:ffff' in it; there are: "),
    (["explain", "--jsno"], "probe explain: unknown option --jsno: did you mean '--json'?"),
    (["plugins", "lst"], "argument action: invalid choice: 'lst'"),
    (["plugins", "why-not"], "probe: probe plugins why-not needs a plugin's name"),
    (["plugins", "why-not", "buss"], "no plugin 'buss' is installed: did you mean 'bus'?"),
    (["plugins", "why-not", "fallback"], "the fallback is the core's own: it always runs"),
    (["plugins", "new"], "probe: probe plugins new needs a plugin's name"),
    (["chip"], "probe chip: the following arguments are required: query"),
    (["chip", "x", "--kind", "brand"], "argument --kind: invalid choice: 'brand'"),
    (["chip", "x", "--memory", "lots"], "'lots' is no memory size; write 24GiB, 24576MiB or"),
    (["chip", "x", "--memory", "-5GiB"], "argument --memory|is no memory size"),
    (["chip", "x", "--memory", "1e99GiB"], "'1e99GiB' is no memory size"),
    (["chip", "x", "--units", "0"], "--units 0: expected a whole number from 1 to 1000000"),
    (["chip", "x", "--units", "9" * 5000], "expected a whole number from 1 to 1000000"),
    (["chip", "x", "--units", "many"], "--units many: expected a whole number"),
    (["completion"], "probe completion: the following arguments are required: shell"),
    (["completion", "tcsh"], "argument shell: invalid choice: 'tcsh'"),
]


def outcome(argv: list[str]) -> int:
    """Run the command and return its exit status, argparse's own exits included."""
    try:
        return main(argv)
    except SystemExit as error:
        return int(error.code or 0)


@pytest.mark.parametrize(("argv", "sentence"), MISTAKES, ids=lambda v: "-".join(v)[:40])
def test_mistake(argv: list[str], sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert outcome(argv) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert any(part in err for part in sentence.split("|")), err
    assert "Traceback" not in err
    assert len([line for line in err.splitlines() if not line.startswith("Try ")]) == 1, err


def test_options_are_not_abbreviated(capsys: pytest.CaptureFixture[str]) -> None:
    assert outcome(["--js"]) == 2
    assert "unknown option --js: did you mean '--json'?" in capsys.readouterr().err


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert outcome(["--version"]) == 0
    assert capsys.readouterr().out == f"probe-core {__version__}\n"


@pytest.mark.parametrize("command", [None, *COMMANDS])
def test_help_of_every_command(command: str | None, capsys: pytest.CaptureFixture[str]) -> None:
    assert outcome([command, "--help"] if command else ["--help"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert out.startswith("usage: probe")
    if command is None:
        for name, (_, _, text) in COMMANDS.items():
            assert f"  {name:<12}{text}" in out


def test_bad_variable_is_a_finding_not_an_error(
    tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "proc").mkdir()
    monkeypatch.setenv("PROBE_TIMEOUT", "soon")
    assert outcome(["--machine", str(tmp_path), "--only", "cpu"]) == 0
    out, _ = capsys.readouterr()
    assert "warning  a setting was ignored: PROBE_TIMEOUT " in out
    assert outcome(["explain", "--machine", str(tmp_path), "--only", "cpu"]) == 0
    out, _ = capsys.readouterr()
    assert "why: PROBE_TIMEOUT set 'timeout' to 'soon': expected seconds, such as 2.5" in out


def test_variable_with_an_unknown_name_is_a_finding(
    tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "proc").mkdir()
    monkeypatch.setenv("PROBE_DISABLE", "nvidai")
    assert outcome(["--machine", str(tmp_path), "--only", "cpu"]) == 0
    out, _ = capsys.readouterr()
    assert "PROBE_DISABLE set 'disable' to a prober 'nvidai'" in out


def test_an_option_is_refused_and_a_variable_is_not(
    tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the setting that the finding names, whatever its sentence says."""
    (tmp_path / "proc").mkdir()
    monkeypatch.setenv("PROBE_DISABLE", "the arguments set nvidai")
    arguments = ["--machine", str(tmp_path), "--only", "cpu"]
    assert outcome(arguments) == 0
    capsys.readouterr()
    assert outcome([*arguments, "--priority", "nvidai=3"]) == 2
    err = capsys.readouterr().err
    assert "--priority names a plugin 'nvidai' that is not installed: " in err
    assert outcome([*arguments, "--disable", "cpu"]) == 0  # the option replaces the variable


@pytest.mark.parametrize(
    ("content", "part"),
    [("timeot = 3\n", "did you mean 'timeout'?"), ("= =\n", "is not valid TOML")],
)
def test_a_typed_configuration_file_that_is_none_is_a_usage_error(
    content: str, part: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "proc").mkdir()
    file = tmp_path / "config.toml"
    file.write_text(content)
    argv = ["--config", str(file), "--machine", str(tmp_path), "--only", "cpu"]
    assert outcome(argv) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert part in captured.err


@pytest.mark.parametrize("option", ["static", "config", "chipdb", "machine"])
@pytest.mark.parametrize("content", [None, "[", b"\0\xff"])
def test_a_typed_file_that_cannot_be_used_ends_with_2(
    option: str, content: str | bytes | None, tmp_path: Path, capsys: Any
) -> None:
    """`probe --static missing.json` probed the node, and a script took that for the report."""
    file = tmp_path / "typed"
    if content is not None:
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
    (tmp_path / "root" / "proc").mkdir(parents=True)
    machine = [] if option == "machine" else ["--machine", str(tmp_path / "root")]
    assert outcome([f"--{option}", str(file), *machine, "--only", "cpu", "--json"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert str(file) in captured.err


@pytest.mark.parametrize(("fallback", "strict"), [("good", 0), ("degraded", 1)])
def test_strict(fallback: str, strict: int, tmp_path: Path, capsys: Any) -> None:
    import recorded

    name = {
        "good": "vm-without-accelerator--cpu",
        "degraded": "desktop--nvidia-geforce-rtx-3060-without-driver",
    }[fallback]
    root = str(recorded.unpack(recorded.read(name), tmp_path))
    assert outcome(["--machine", root, "--only", "cpu"]) == 0
    assert outcome(["--machine", root, "--only", "cpu", "--strict"]) == strict
    assert outcome(["--machine", root, "--only", "cpu", "--strict", "--json"]) == strict


def test_static_report_is_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "proc").mkdir()
    import json

    assert outcome(["--json", "--machine", str(tmp_path), "--only", "cpu"]) == 0
    document = json.loads(capsys.readouterr().out)
    document["node"]["model"] = "From a file"
    (tmp_path / "report.json").write_text(json.dumps(document))
    assert outcome(["--static", str(tmp_path / "report.json")]) == 0
    assert capsys.readouterr().out.startswith("From a file · Linux")
