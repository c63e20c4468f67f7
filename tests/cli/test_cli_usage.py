"""Mistakes on the command line: exit 2, one clear sentence, nothing on standard output."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

import probe_core
from probe_core import __version__
from probe_core.cli import COMMANDS, main
from probe_core.cli.plugins import SUB_COMMANDS
from probe_core.cli.refusals import check_layout
from probe_core.commands import CommandError
from probe_core.probing import registered_probers
from probe_core.registry.prober import RESERVED
from probe_core.setting_values import load_config
from probe_core.wording import joined

# Before Python 3.14 argparse takes what begins as a negative number does for an option.
NEGATIVE = (
    "probe chip: '-5GiB' is no memory size; write 24GiB, 24576MiB or 25769803776"
    if sys.version_info >= (3, 14)
    else "probe chip: --memory needs a value: --memory SIZE"
)

# Every sentence as a user reads it: what is wrong, with which word, and what would have worked.
MISTAKES: list[tuple[list[str], str]] = [
    (["--static", "typo.json"], "probe: --static typo.json: no such file"),
    (["--config", "typo.toml"], "probe: --config typo.toml: no such file"),
    (["--chipdb", "typo.toml"], "probe: --chipdb typo.toml: no such file"),
    (["chip", "x", "--chipdb", "typo.toml"], "probe chip: --chipdb typo.toml: no such file"),
    (["--machine", "/no/such"], "probe: --machine /no/such: no such file or folder"),
    (
        ["doctor", "--machine", ""],
        "probe doctor: --machine: the path is empty; name a recording or a folder",
    ),
    (
        ["--only", "nvida"],
        "probe: --only nvida: no such prober. Did you mean nvidia?",
    ),
    (
        ["--only", "zzz"],
        "probe: --only zzz: no such prober. `probe plugins` lists those that are installed.",
    ),
    (
        ["explain", "--disable", "buss"],
        "probe explain: --disable buss: no such prober. Did you mean bus?",
    ),
    (["--timeout", "abc"], "probe: --timeout abc: not a number of seconds (such as 2.5)"),
    (["--timeout", "-1"], "probe: --timeout -1: expected seconds above 0 and up to 600"),
    (["--timeout=0"], "probe: --timeout 0: expected seconds above 0 and up to 600"),
    (
        ["--priority", "nvidia"],
        "probe: --priority nvidia: write NAME=NUMBER, from 1 to 999 (nvidia=900)",
    ),
    (
        ["--priority", "nvidia=0"],
        "probe: --priority nvidia=0: the priority of 'nvidia' must be from 1 to 999",
    ),
    (["explan"], "probe: no command 'explan'. Did you mean explain?"),
    (["reprot"], "probe: no command 'reprot'. Did you mean report?"),
    (["zzz"], "probe: no command 'zzz'. Run `probe --help` for all commands."),
    (["run", "train.py"], "probe: no command 'run'. Did you mean exec?"),
    (["version"], "probe: no command 'version'. Did you mean --version?"),
    (["help", "explan"], "probe: no command 'explan'. Did you mean explain?"),
    (["--foo"], "probe: no option --foo. Run `probe --help`."),
    (["--jsn"], "probe: no option --jsn. Did you mean --json?"),
    (["--js"], "probe: no option --js. Did you mean --json?"),  # options are not abbreviated
    (["explain", "--jsno"], "probe explain: no option --jsno. Did you mean --json?"),
    (["--root", "/mnt"], "probe: no option --root. Did you mean --machine?"),
    (["-v"], "probe: no option -v. Did you mean --version?"),
    (["--only"], "probe: --only needs a value: --only NAMES"),
    (["--json=yes"], "probe: --json takes no value"),
    (["devices", "extra"], "probe: unexpected argument 'extra'. Run `probe --help`."),
    (["plugins", "lst"], "probe: no command 'plugins lst'. Did you mean plugins list?"),
    (
        ["plugins", "zzz"],
        f"probe: no command 'plugins zzz'. It has {joined(SUB_COMMANDS, 'and')}.",
    ),
    (
        ["plugins", "why-not"],
        "probe plugins: why-not needs a plugin's name",
    ),
    (
        ["plugins", "why-not", "buss"],
        "probe plugins: no plugin 'buss' is installed: did you mean 'bus'?",
    ),
    (
        ["plugins", "why-not", "fallback"],
        "probe plugins: the fallback is the core's own: it always runs, and cannot be chosen",
    ),
    (["plugins", "new"], "probe plugins: new needs a plugin's name"),
    (
        ["plugins", "list", "--pci", "10de"],
        "probe plugins list: no option --pci. `probe plugins new` has it.",
    ),
    (
        ["plugins", "--isolated"],
        "probe plugins: no option --isolated. `probe plugins run` has it.",
    ),
    (
        ["plugins", "new", "x", "--json"],
        "probe plugins new: no option --json. Of `probe plugins` list, check and run have it.",
    ),
    (["plugins", "list", "--log"], "probe plugins list: no option --log. Did you mean --long?"),
    (["visible", "--for", "cudda"], "probe visible: no runtime 'cudda'. Did you mean cuda?"),
    (
        ["exec", "--for", "cudda", "--", "true"],
        "probe exec: no runtime 'cudda'. Did you mean cuda?",
    ),
    (["layout", "2x1", "--for", "hipp"], "probe layout: no runtime 'hipp'. Did you mean hip?"),
    (
        ["exec", "--wait", "true"],
        (
            "probe exec: --wait true: not a number. "
            "Write `--` before the command: probe exec --wait -- true"
        ),
    ),
    (["exec", "-n", "two", "true"], "probe exec: --gpus two: not a whole number"),
    (
        ["exec", "--index", "-1", "--layout", "2x1", "--", "true"],
        "probe exec: --index -1: not a number from 0 on, or `next`",
    ),
    (
        ["exec", "--style", "uid", "--", "true"],
        "probe exec: --style uid: no such style. Did you mean uuid?",
    ),
    (["exec"], "probe exec: no command; write `probe exec --gpus 1 -- COMMAND`"),
    (
        ["exec", "--gpus", "1", "--device", "0", "--", "true"],
        "probe exec: --gpus and --device exclude each other",
    ),
    (["layout"], "probe layout: NxM is missing. Run `probe layout --help`."),
    (["layout", "4"], "probe layout: '4' is no layout; write it as 4x2"),
    (["record", "/no/such/x.json"], "probe record: /no/such/x.json: No such file or directory"),
    (["chip"], "probe chip: QUERY... is missing. Run `probe chip --help`."),
    (
        ["chip", "x", "--kind", "pcii"],
        "probe chip: --kind pcii: no such kind. Did you mean pci?",
    ),
    (
        ["chip", "x", "--memory", "lots"],
        "probe chip: 'lots' is no memory size; write 24GiB, 24576MiB or 25769803776",
    ),
    (["chip", "x", "--memory", "-5GiB"], NEGATIVE),
    (
        ["chip", "x", "--memory", "1e99GiB"],
        "probe chip: '1e99GiB' is no memory size; write 24GiB, 24576MiB or 25769803776",
    ),
    (["chip", "x", "--units", "0"], "probe chip: --units 0: not a whole number from 1 to 1000000"),
    (
        ["chip", "x", "--units", "9" * 5000],
        f"probe chip: --units {'9' * 39}…: not a whole number from 1 to 1000000",
    ),
    (["completion"], "probe completion: SHELL is missing. Run `probe completion --help`."),
    (
        ["completion", "tcsh"],
        "probe completion: tcsh: no such shell. It can be bash, zsh or fish.",
    ),
    (["\x1b[2J"], "probe: no command '\ufffd[2J'. Run `probe --help` for all commands."),
    (
        ["topology", "--active", "desk"],
        "probe topology: there is no node: give a FILE of `probe --json`, or --have",
    ),
    (
        ["topology", "--svg", "a.json"],
        "probe topology: --svg is for one computer, and not for the view of a cluster",
    ),
    (
        ["partition", "a.json"],
        "probe partition: --model M is missing. Run `probe partition --help`.",
    ),
]


def outcome(argv: list[str]) -> int:
    """Run the command and return its exit status, argparse's own exits included."""
    try:
        return main(argv)
    except SystemExit as error:
        return int(error.code or 0)


@pytest.mark.parametrize(("argv", "sentence"), MISTAKES, ids=lambda v: " ".join(v)[:40])
def test_mistake(
    argv: list[str],
    sentence: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.chdir(tmp_path)
    if argv[0] in ("--only", "explain", "plugins") and argv[:2] != ["plugins", "new"]:
        (tmp_path / "root" / "proc").mkdir(parents=True)
        argv = [*argv, "--machine", str(tmp_path / "root")]
    assert outcome(argv) == 2
    assert capsys.readouterr() == ("", f"{sentence}\n")


def test_a_file_of_the_wrong_kind(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "README.md"
    file.write_text("# Not a report\n")
    assert outcome(["--static", str(file)]) == 2
    assert capsys.readouterr().err == (
        f"probe: --static {file}: not a report (it is no JSON document);"
        " reports are written by `probe --json > report.json`\n"
    )


@pytest.mark.parametrize("layout", ["", "x", "4x", "x2", "0x2", "4x0", "12345x2", "1x2x3", "-1x2"])
def test_what_is_no_layout(layout: str) -> None:
    with pytest.raises(CommandError, match="is no layout; write it as 4x2"):
        check_layout(layout)


def test_a_long_layout_is_cut() -> None:
    with pytest.raises(CommandError) as raised:
        check_layout("y" * 99)
    assert str(raised.value) == f"{'y' * 79 + '…'!r} is no layout; write it as 4x2"


def test_layouts() -> None:
    for layout in ("4x2", "1X1", "9999x9999"):
        check_layout(layout)


@pytest.mark.parametrize("argv", [["exec", "-n", "4", "--", "true"], ["layout", "4x1"]])
def test_no_device_to_run_on(
    argv: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc" / "meminfo").write_text("MemTotal: 16000 kB\nMemAvailable: 14000 kB\n")
    (tmp_path / "sys" / "devices").mkdir(parents=True)
    at = argv.index("--") if "--" in argv else len(argv)
    assert outcome([*argv[:at], "--machine", str(tmp_path), "--only", "cpu", *argv[at:]]) == 3
    asked = "4 devices" if argv[0] == "exec" else "'4x1'"
    cause = "doctor" if "doctor" in COMMANDS else "explain"
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines() == [
        f"probe {argv[0]}: {asked} asked for, 0 found on this computer",
        f"Run `probe {cause}` to see why none was found.",
    ]


HINTS = [
    ("PROBE_FOO", "known: "),  # it was PROBE_ONLY: their beginning made the two alike
    ("PROBE_TIMOUT", "did you mean 'PROBE_TIMEOUT'?"),
]


@pytest.mark.parametrize(("variable", "hint"), HINTS)
def test_a_hint_needs_more_than_the_beginning_of_all_names(variable: str, hint: str) -> None:
    _, ignored = load_config({}, {variable: "1"})
    assert [setting.reason.partition(": ")[2][: len(hint)] for setting in ignored] == [hint]


@pytest.mark.parametrize("part", ["4090", "rtx 40", "GEFORCE", "0000:01"])
def test_explain_finds_by_name(part: str, tmp_path: Path, capsys: Any) -> None:
    report = {
        "schema": 1,
        "devices": [
            {"id": "cpu:0", "kind": "cpu", "name": "AMD EPYC"},
            {"id": "pci:0000:01:00.0", "kind": "gpu", "name": "NVIDIA GeForce RTX 4090"},
        ],
    }
    file = tmp_path / "report.json"
    file.write_text(json.dumps(report))
    assert outcome(["explain", part, "--static", str(file), "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)["devices"]
    assert [device["id"] for device in shown] == ["pci:0000:01:00.0"]
    assert outcome(["explain", "5090", "--static", str(file)]) == 2
    sentence = "probe explain: no device has an id with '5090' in it; there are: cpu:0, pci:0000:01"
    assert capsys.readouterr().err.startswith(sentence)


def test_a_mistake_of_our_own_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Below the command: a module whose table is no table."""
    monkeypatch.setattr("probe_core.cli.completion.ARGUMENTS", None)
    assert outcome(["completion", "bash"]) == 70
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("probe: internal error: TypeError: ")
    assert err.endswith("this is a bug: please report it with what PROBE_CORE_TRACEBACK=1 prints\n")
    assert err.count("\n") == 1
    monkeypatch.setenv("PROBE_CORE_TRACEBACK", "1")
    with pytest.raises(TypeError):
        outcome(["completion", "bash"])


@pytest.mark.parametrize("name", sorted(RESERVED))
def test_a_prober_name_that_is_taken(name: str) -> None:
    with pytest.raises(
        probe_core.ConfigError, match=f"the prober name '{name}' is taken: the core"
    ):
        probe_core.register(name, "module")
    assert name not in registered_probers()


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert outcome(["--version"]) == 0
    assert capsys.readouterr().out == f"probe-core {__version__}\n"
    assert outcome(["-V"]) == 0
    assert capsys.readouterr().out == f"probe-core {__version__}\n"


@pytest.mark.parametrize("command", [None, *COMMANDS])
def test_help_of_every_command(command: str | None, capsys: pytest.CaptureFixture[str]) -> None:
    assert outcome([command, "--help"] if command else ["--help"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert f"\n\nUsage: probe {command or ''}".replace("devices", "").rstrip() in out
    assert "\n\nExamples:\n  " in out
    if command is None:
        for name, (_, _, text) in COMMANDS.items():
            assert f"  {name:<12}{text}" in out


def test_bad_variable_is_a_finding_not_an_error(
    tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "proc").mkdir()
    monkeypatch.setenv("PROBE_TIMEOUT", "soon")
    monkeypatch.setenv("COLUMNS", "200")
    assert outcome(["--machine", str(tmp_path), "--only", "cpu"]) == 0
    out, _ = capsys.readouterr()
    assert "warning  a setting was ignored: PROBE_TIMEOUT " in out
    assert outcome(["explain", "--machine", str(tmp_path), "--only", "cpu"]) == 0
    out, _ = capsys.readouterr()
    assert (
        "why: PROBE_TIMEOUT set 'timeout' to 'soon': not a number of seconds (such as 2.5)" in out
    )


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
    assert err.startswith("probe: --priority nvidai: no such prober.")
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


@pytest.mark.heavy
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
    (tmp_path / "sys" / "devices").mkdir(parents=True)
    import json

    assert outcome(["--json", "--machine", str(tmp_path), "--only", "cpu"]) == 0
    document = json.loads(capsys.readouterr().out)
    document["node"]["model"] = "From a file"
    (tmp_path / "report.json").write_text(json.dumps(document))
    assert outcome(["--static", str(tmp_path / "report.json")]) == 0
    plain = capsys.readouterr().out
    assert plain.startswith("From a file · Linux")
    document["outcomes"][0] |= {"status": "ok", "stderr": ["a line"]}
    (tmp_path / "report.json").write_text(json.dumps(document))
    assert outcome(["--static", str(tmp_path / "report.json"), "--strict"]) == 0
    name = document["outcomes"][0]["prober"]
    assert capsys.readouterr().out == f"{plain}{name} printed:\n  | a line\n"
