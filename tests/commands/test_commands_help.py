"""`probe --help` lists the commands of plugins by task without importing them; broken ones hurt
nothing, and one line says what is wrong."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from command import environment, probe
from command_site import Site

from probe_core.cli import COMMANDS, GROUPS, main
from probe_core.cli.plugin_commands import MAX_COMMANDS, RESERVED, installed_commands

EXPLODES = "raise SystemExit('imported')"
root = pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="the rule is for root alone"
)


def shown(capsys: pytest.CaptureFixture[str]) -> tuple[dict[str, list[str]], str]:
    """Return the lines of `probe --help` below each heading, and standard error."""
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    assert ended.value.code == 0
    out, err = capsys.readouterr()
    groups: dict[str, list[str]] = {}
    heading = ""
    for line in out.splitlines():
        if line.rstrip(":") in GROUPS and line.endswith(":"):
            heading = line.rstrip(":")
            groups[heading] = []
        elif not line.startswith("  "):
            heading = ""  # the blank line between groups, or the heading of the options
        elif heading:
            groups[heading].append(line)
    return groups, err


def names(lines: list[str]) -> list[str]:
    return [line.split()[0] for line in lines]


def test_the_built_in_commands_come_by_task(capsys: Any) -> None:
    groups, err = shown(capsys)
    assert err == ""
    assert list(groups) == list(GROUPS)
    for name, (_, group, summary) in COMMANDS.items():
        assert f"  {name:<12}{summary}" in groups[group]


def test_a_plugins_command_stands_in_its_group(site: Site, capsys: Any) -> None:
    site.install("fry", EXPLODES, manifest={"group": "Use", "summary": "fry a GPU, gently"})
    groups, err = shown(capsys)
    assert err == ""
    assert names(groups["Use"])[-1] == "fry"
    assert groups["Use"][-1].endswith("fry a GPU, gently")


def test_what_names_another_group_comes_last(site: Site, capsys: Any) -> None:
    site.install("fry", EXPLODES, manifest={"group": "Kitchen", "summary": "fry"})
    site.install("poach", EXPLODES)
    groups, err = shown(capsys)
    assert err == ""
    assert names(groups["Other"]) == ["completion", "fry", "poach"]
    assert groups["Other"][-1].endswith("a command of probe-poach 1.2")


def test_one_manifest_in_a_package_serves_several_commands(site: Site, capsys: Any) -> None:
    package = site.folder / "x_kitchen"
    package.mkdir()
    (package / "__init__.py").write_text(EXPLODES)
    (package / "fry.py").write_text(EXPLODES)
    tables = {name: {"group": "Fix", "summary": f"to {name}"} for name in ("fry", "boil")}
    (package / "command.json").write_text(json.dumps({"schema": 1, "commands": tables}))
    site.register("probe-kitchen", "3", {"fry": "x_kitchen.fry", "boil": "x_kitchen"})
    groups, err = shown(capsys)
    assert err == ""
    # probe-wheels, which is installed here, has a command in that group, too.
    lines = [line for line in groups["Fix"] if line.split()[0] in tables]
    assert [line.split(maxsplit=1)[1] for line in lines] == ["to fry", "to boil"]


def test_help_imports_no_plugin(site: Site) -> None:
    for number in range(10):
        fields = {"group": "Use", "summary": f"dish {number}"}
        site.install(f"fry{number}", EXPLODES, manifest=fields)
    done = probe("--help", env=environment(site.folder))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("dish ") == 10
    loaded = probe("--help", env=environment(site.folder, PYTHONPROFILEIMPORTTIME="1")).stderr
    assert "x_site" not in loaded
    assert "probe_cluster" not in loaded
    assert " json" not in loaded  # as dear as all else that ten commands cost


BROKEN_MANIFESTS = {
    "empty": "",
    "no JSON": "{",
    "trailing": '{"schema": 1, "commands": {}} x',
    "a list": "[]",
    "no table": '{"schema": 1}',
    "another schema": '{"schema": 2, "commands": {"fry": {}}}',
    "a schema of true": '{"schema": true, "commands": {"fry": {}}}',
    "no entry": '{"schema": 1, "commands": {"boil": {}}}',
    "an entry that is text": '{"schema": 1, "commands": {"fry": "hot"}}',
    "unknown key": '{"schema": 1, "commands": {"fry": {"sumary": "x"}}}',
    "a number": '{"schema": 1, "commands": {"fry": {"summary": 1}}}',
    "too long": json.dumps({"schema": 1, "commands": {"fry": {"summary": "x" * 201}}}),
    "deep": "[" * 60_000,
    "a huge number": '{"schema": ' + "1" * 5000 + "}",
    "not a number": '{"schema": NaN, "commands": {}}',
    "huge": " " * ((64 << 10) + 1),
    "control characters": '{"schema": 1, "commands": {"fry": {"summary": "\x1b[2J"}}}',
}


@pytest.mark.heavy
@pytest.mark.parametrize("how", BROKEN_MANIFESTS)
def test_a_broken_manifest_is_told_and_hurts_nothing(how: str, site: Site, capsys: Any) -> None:
    site.install("fry", manifest=BROKEN_MANIFESTS[how])
    site.install("good", manifest={"group": "Use", "summary": "all is well"})
    groups, err = shown(capsys)
    assert names(groups["Use"])[-1] == "good"
    assert err.startswith("probe: probe-fry 1.2: the command 'fry' has a mistake in x_site_fry.com")
    assert err.count("\n") == 1
    assert "\x1b" not in err
    assert names(groups["Other"])[-1] == "fry"
    assert main(["fry", "it", "runs"]) == 0
    assert capsys.readouterr() == ("it runs\n", "")


def test_a_manifest_that_is_no_file(site: Site, capsys: Any) -> None:
    site.install("fry", EXPLODES)
    os.mkfifo(site.folder / "x_site_fry.command.json")
    _, err = shown(capsys)
    assert "x_site_fry.command.json: not a regular file" in err


def test_a_manifest_that_is_not_utf_8(site: Site, capsys: Any) -> None:
    site.install("fry", EXPLODES)
    (site.folder / "x_site_fry.command.json").write_bytes(b'{"\xff": 1}')
    assert "has a mistake in x_site_fry.command.json" in shown(capsys)[1]


def test_hostile_text_reaches_no_terminal(site: Site, capsys: Any) -> None:
    text = "\x1b]0;owned\x07 \u202e red \x00"
    site.install("fry", EXPLODES, manifest={"group": "Use\n\x1b[1m", "summary": text})
    with pytest.raises(SystemExit):
        main(["--help"])
    out, err = capsys.readouterr()
    assert err == ""
    assert not {"\x1b", "\u202e", "\x00", "\x07"} & set(out)
    assert "owned" in out


BAD_NAMES = ["Frü", "fry it", "-fry", "fry_it", "f" * 33, "fr\x1b[1my", "--help", "a/b", "$(id)"]


@pytest.mark.parametrize("name", BAD_NAMES)
def test_a_name_that_is_none(name: str, site: Site, capsys: Any) -> None:
    site.register("probe-fry", "1.2", {name: "x_fry"})
    site.install("good", manifest={"group": "Use", "summary": "all is well"})
    groups, err = shown(capsys)
    assert names(groups["Use"])[-1] == "good"
    assert "is left out: a name has 1 to 32 ASCII letters, digits or '-'; rename it" in err
    assert "\x1b" not in err


@pytest.mark.parametrize("name", [*COMMANDS, *sorted(RESERVED)])
def test_a_built_in_name_stays_built_in(name: str, site: Site, capsys: Any) -> None:
    site.install(name, EXPLODES, manifest={"group": "Look", "summary": "taken over"})
    groups, err = shown(capsys)
    sentence = f"the command '{name}' is left out: the name belongs to probe-core; rename it"
    assert sentence in err
    assert not any("taken over" in line for lines in groups.values() for line in lines)


def test_a_built_in_command_runs_whatever_is_installed(site: Site, capsys: Any) -> None:
    site.install("completion", EXPLODES)
    assert main(["completion", "bash"]) == 0
    assert "complete -o default -F _probe probe" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("target", "sentence"),
    [
        ("x_nowhere", "its module 'x_nowhere' does not exist; reinstall probe-fry"),
        ("x_nowhere.inner", "its module 'x_nowhere.inner' does not exist"),
        ("os:getcwd", "its entry point 'os:getcwd' is no module; name a module"),
        ("../etc/passwd", "is no module"),
    ],
)
def test_a_target_that_is_no_module(target: str, sentence: str, site: Site, capsys: Any) -> None:
    site.install("fry", target=target)
    groups, err = shown(capsys)
    assert sentence in err
    assert "fry" not in names(groups["Other"])
    assert main(["fry"]) == 1
    assert sentence in capsys.readouterr().err


def test_another_version_of_the_contract(site: Site, capsys: Any) -> None:
    site.install("fry", EXPLODES, group="probe_core.commands.v2")
    _, err = shown(capsys)
    assert "it needs probe_core.commands.v2, this core has probe_core.commands.v1" in err


def test_of_two_with_one_name_the_first_on_the_path_counts(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    first = Site(tmp_path / "first")
    first.install("fry", manifest={"summary": "the first"}, distribution="probe-first")
    site.install("fry", EXPLODES, manifest={"summary": "the second"}, distribution="probe-second")
    monkeypatch.syspath_prepend(str(first.folder))
    groups, err = shown(capsys)
    assert groups["Other"][-1].endswith("the first")
    assert err == (
        "probe: probe-second 1.2: the command 'fry' is left out: probe-first 1.2 has a command of"
        " that name and goes first; remove one of them\n"
    )
    assert main(["fry", "hot"]) == 0
    assert capsys.readouterr().out == "hot\n"


def test_more_commands_than_a_help_can_show(site: Site, capsys: Any) -> None:
    for number in range(MAX_COMMANDS + 3):
        site.install(f"fry{number:03}", EXPLODES, manifest={"summary": "hot"})
    groups, err = shown(capsys)
    assert "commands are left out: more than 64 are installed" in err
    assert len(groups["Other"]) <= MAX_COMMANDS + 1


def test_one_distribution_of_too_many_costs_only_itself(site: Site, capsys: Any) -> None:
    site.register("probe-many", "1", {f"fry{number}": "x_fry" for number in range(65)})
    site.install("good", manifest={"group": "Use", "summary": "all is well"})
    groups, err = shown(capsys)
    assert "probe-many: its commands are left out: entry_points.txt: more than 64" in err
    assert names(groups["Use"])[-1] == "good"


def test_a_malformed_distribution_costs_only_itself(site: Site, capsys: Any) -> None:
    site.install("good", manifest={"group": "Use", "summary": "all is well"})
    info = site.folder / "probe_bad-1.dist-info"
    info.mkdir()
    (info / "entry_points.txt").write_text("[probe_core.commands.v1]\nno equals sign\n")
    groups, err = shown(capsys)
    assert names(groups["Use"])[-1] == "good"
    assert "probe-bad: its commands are left out: entry_points.txt: expected `name = module`" in err
    assert err.rstrip().endswith("reinstall or remove it")


def test_a_broken_plugin_does_not_touch_the_report(site: Site, tmp_path: Path) -> None:
    env = environment(site.folder)
    (tmp_path / "machine" / "proc").mkdir(parents=True)
    options = ("--machine", str(tmp_path / "machine"), "--only", "cpu")
    before = probe(*options, env=env)
    site.install("fry", EXPLODES, manifest="{")
    site.install("report", EXPLODES)
    after = probe(*options, env=env)
    assert (after.stdout, after.stderr, after.returncode) == (before.stdout, "", 0)
    assert probe(*options, "--json", env=env).stderr == ""


def test_what_is_not_on_the_allowlist_is_left_out(
    site: Site, capsys: Any, monkeypatch: Any
) -> None:
    site.install("fry", EXPLODES, manifest={"group": "Use", "summary": "hot"})
    site.install("good", manifest={"group": "Use", "summary": "all is well"})
    monkeypatch.setenv("PROBE_ALLOW", "probe-good==1.2")
    groups, err = shown(capsys)
    assert names(groups["Use"])[-1] == "good"
    assert "the command 'fry' is left out: probe-fry is not on the allowlist" in err
    assert main(["fry"]) == 1
    assert "probe-fry is not on the allowlist" in capsys.readouterr().err
    assert main(["good", "ran"]) == 0


@pytest.mark.parametrize("content", ["allow = 5\n", "= =\n", None])
def test_an_allowlist_that_cannot_be_read_lets_nothing_through(
    content: str | None, site: Site, tmp_path: Path, capsys: Any, monkeypatch: Any
) -> None:
    site.install("fry", EXPLODES)
    file = tmp_path / "config.toml"
    if content is not None:
        file.write_text(content)
    monkeypatch.setenv("PROBE_CONFIG", str(file))
    assert main(["fry"]) == 1
    assert "'fry' is left out: no plugin runs: the " in capsys.readouterr().err
    monkeypatch.setenv("PROBE_ALLOW", "probe-fry")  # the file may have disabled what this allows
    assert main(["fry"]) == 1


CHANGES = {
    "module of a user": lambda site: os.chown(site / "x_site_fry.py", 1000, 1000),
    "module anybody may write": lambda site: (site / "x_site_fry.py").chmod(0o666),
    "manifest of a user": lambda site: os.chown(site / "x_site_fry.command.json", 1000, 0),
    "metadata of a user": lambda site: os.chown(site / "probe_fry-1.2.dist-info", 1000, 0),
}


@root
@pytest.mark.parametrize("change", CHANGES)
def test_root_uses_nothing_that_others_could_have_written(
    change: str, site: Site, capsys: Any
) -> None:
    site.install("fry", EXPLODES, manifest={"group": "Use", "summary": "attack at dawn"})
    site.install("good", manifest={"group": "Use", "summary": "all is well"})
    CHANGES[change](site.folder)
    groups, err = shown(capsys)
    assert names(groups["Use"])[-1] == "good"
    assert "the command 'fry' is left out: running as root, and /" in err
    assert "attack" not in err + str(groups)
    assert main(["fry"]) == 1
    assert "running as root, and /" in capsys.readouterr().err


@root
def test_a_command_of_a_user_does_not_keep_roots_own_from_its_name(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    user = Site(tmp_path / "user")
    user.install("fry", EXPLODES, distribution="probe-user")
    os.chown(user.folder, 1000, 1000)
    site.install("fry", distribution="probe-system")
    monkeypatch.syspath_prepend(str(user.folder))
    assert main(["fry", "hot"]) == 0
    assert capsys.readouterr().out == "hot\n"


def test_the_path_may_hold_anything(tmp_path: Path) -> None:
    paths: list[Any] = ["", "\0", str(tmp_path / "missing"), str(__file__), None, 7]
    assert installed_commands({}, paths=paths) == ({}, [])


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_offers_the_commands_of_plugins(shell: str, site: Site, capsys: Any) -> None:
    summary = "it's \\' ; rm -rf \x1b[2J \t $(id)"
    site.install("fry", EXPLODES, manifest={"group": "Use", "summary": summary})
    line = ["probe fr", " ="] if shell == "bash" else ["probe", "fr"]
    assert main(["completion", shell, "--complete", *line]) == 0
    about = "" if shell == "bash" else "\tit's \\' ; rm -rf \ufffd[2J   $(id)"
    assert capsys.readouterr() == (f"fry{about}\nwords\n", "")
    assert "x_site_fry" not in sys.modules


def test_completion_of_a_plugins_options_imports_it_alone(
    site: Site, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    # What takes too long ends the process, which here is that of the tests.
    monkeypatch.setattr("probe_core.cli.candidates.LIMIT_S", 600.0)
    site.install("fry")
    site.install("boil", EXPLODES)
    assert main(["completion", "fish", "--complete", "probe", "fry", "--ti"]) == 0
    assert capsys.readouterr() == ("--times\nwords\n", "")
    assert main(["completion", "fish", "--complete", "probe", "boil", "--ti"]) == 0
    assert capsys.readouterr().err == ""
