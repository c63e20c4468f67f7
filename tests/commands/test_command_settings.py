"""The table of the file of settings that belongs to one command, and to no probe."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from probe_core.commands import CommandError, command_settings
from probe_core.commands.typed import refuse_unusable
from probe_core.setting_values import load_config


def named(tmp_path: Path, text: str) -> dict[str, str]:
    path = tmp_path / "settings.toml"
    path.write_text(text)
    return {"PROBE_CONFIG": str(path)}


def test_a_table_of_a_command_restricts_no_probe(tmp_path: Path) -> None:
    environ = named(tmp_path, 'only = ["acme"]\n[command.fry]\nheat = 3\n')
    config, ignored = load_config({}, environ)
    assert (config.only, config.sealed, ignored) == (("acme",), None, [])
    assert command_settings("fry", environ) == {"heat": 3}
    assert command_settings("boil", environ) == {}


def test_without_a_file_there_is_no_table(tmp_path: Path) -> None:
    assert command_settings("fry", {"XDG_CONFIG_HOME": str(tmp_path)}) == {}
    folder = tmp_path / "probe-core"
    folder.mkdir()
    (folder / "config.toml").write_text("[command.fry]\nheat = 4\n")
    assert command_settings("fry", {"XDG_CONFIG_HOME": str(tmp_path)}) == {"heat": 4}


@pytest.mark.parametrize("text", ["command = 3\n", 'command = "fry"\n', "commands = {}\n"])
def test_what_is_no_table_of_commands_may_be_a_restriction(tmp_path: Path, text: str) -> None:
    config, ignored = load_config({}, named(tmp_path, text))
    assert config.sealed is ignored[0]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("command = 3\n", "sets command.fry, which is no table"),
        ("[command]\nfry = 3\n", "sets command.fry, which is no table"),
        ("[[", "is not valid TOML"),
    ],
)
def test_a_file_that_cannot_be_used_is_one_sentence(
    tmp_path: Path, text: str, sentence: str
) -> None:
    with pytest.raises(CommandError) as error:
        command_settings("fry", named(tmp_path, text))
    assert str(error.value).startswith("fry: ")
    assert sentence in str(error.value)
    missing = {"PROBE_CONFIG": str(tmp_path / "none.toml")}
    with pytest.raises(CommandError, match=r"none\.toml cannot be read: No such file"):
        command_settings("fry", missing)


@pytest.mark.parametrize(
    ("code", "setting", "sentence"),
    [
        (
            "static-unusable",
            "static",
            "--static x: no JSON; reports are written by `probe --json > report.json`",
        ),
        (
            "chip-file-unusable",
            "chipdb",
            "--chipdb x: no JSON; `python -m probe_chipdb check FILE` lists all that is wrong",
        ),
        ("static-unusable", "config", "--config x: no JSON"),
        ("static-unusable", "machine", None),  # a variable of the fleet: a finding says it
        ("static-unusable", None, None),
        ("measured-unusable", "static", None),
    ],
)
def test_what_an_option_names_and_cannot_be_used_is_refused(
    code: str, setting: str | None, sentence: str | None
) -> None:
    entry = {"code": code, "setting": setting, "why": "no JSON", "evidence": "x", "prober": None}
    report: Any = {"findings": [entry], "outcomes": []}
    options = ("static", "chipdb", "config")
    if sentence is None:
        refuse_unusable(report, options)
        return
    with pytest.raises(CommandError) as error:
        refuse_unusable(report, options)
    assert str(error.value) == sentence
