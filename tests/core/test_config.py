"""Settings: argument before environment before file; mistakes are told, and whose they are."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from reports import codes, report_of

import probe_core
from probe_core.config import METAVARS, SETTINGS, Config, ConfigError
from probe_core.pipeline.settings import load_settings
from probe_core.setting_values import READERS, load_config

VALUES: dict[str, list[tuple[Any, str, str, Any]]] = {
    # kind: (argument, variable's text, TOML, value)
    "names": [
        (["a", "b"], "a, b,", '["a", "b"]', ("a", "b")),
        ("a,b", "a,b", '"a,b"', ("a", "b")),
    ],
    "ranks": [({"a": 900, "b": 1}, "a=900, b=1", "{a = 900, b = 1}", {"a": 900, "b": 1})],
    "seconds": [(2.5, "2.5", "2.5", 2.5)],
    "distributions": [(["probe-a==1.0"], "probe-a==1.0", '["probe-a==1.0"]', ("probe-a==1.0",))],
    "path": [
        (Path("chips.toml"), "chips.toml", '"chips.toml"', "chips.toml"),
        ("report.json", "report.json", '"report.json"', "report.json"),
    ],
    "expectation": [
        ("8xh100", "8xh100", '"8xh100"', "8xh100"),
        (["4xl40s", "1xa2"], "4xl40s + 1xa2", '["4xl40s", "1xa2"]', "4xl40s + 1xa2"),
    ],
    "flag": [(True, text, "true", True) for text in ("yes", "1", "on", "true")],
}


def loaded(*arguments: Any) -> tuple[Config, list[str]]:
    """Return the configuration and the sentences about what was left out of it."""
    config, ignored = load_config(*arguments)
    return config, [setting.reason for setting in ignored]


def test_every_kind_of_setting_has_a_case_here() -> None:
    assert set(VALUES) == set(METAVARS) == set(READERS)


ARGUMENTS = {
    # kind: the type of an argument, as `Settings` names it
    "names": "Names",
    "distributions": "Names",
    "ranks": "Ranks",
    "seconds": "Seconds",
    "path": "Path",
    "expectation": "Names",
    "flag": "Flag",
}


def test_every_setting_is_a_typed_argument() -> None:
    tree = ast.parse(Path(probe_core.config.__file__).read_text("utf-8"))
    (declared,) = (
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef) and node.name == "Settings"
    )
    types = {
        ast.unparse(line.target): ast.unparse(line.annotation)
        for line in declared.body
        if isinstance(line, ast.AnnAssign)
    }
    expected = {name: ARGUMENTS[setting.kind] for name, setting in SETTINGS.items()}
    assert types == expected, "`Settings` in probe_core/config.py has a line for each of `Config`"


CASES = [(name, case) for name, setting in SETTINGS.items() for case in VALUES[setting.kind]]


@pytest.mark.parametrize(("name", "case"), CASES)
def test_setting_from_each_place(
    name: str, case: tuple[Any, str, str, Any], tmp_path: Path
) -> None:
    argument, text, toml, value = case
    file = tmp_path / "config.toml"
    file.write_text(f"{name} = {toml}\n")
    variable = SETTINGS[name].variable
    for arguments, environ, path, origin in (
        ({name: argument}, {}, None, "the arguments"),
        ({}, {variable: text}, None, variable),
        ({}, {}, str(file), f"the file {file}"),
        ({}, {"PROBE_CONFIG": str(file)}, None, f"the file {file}"),
    ):
        config, ignored = loaded(arguments, environ, path)
        assert getattr(config, name) == value
        assert config.origins == {name: origin}
        assert ignored == []


def test_argument_beats_environment_beats_file(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text("timeout = 1\nonly = ['f']\ndisable = ['f']\n")
    environ = {"PROBE_TIMEOUT": "2", "PROBE_ONLY": "e", "PROBE_CONFIG": str(file)}
    config, ignored = loaded({"timeout": 3, "only": None}, environ)
    assert (config.timeout, config.only, config.disable) == (3.0, ("e",), ("f",))
    assert config.origins == {
        "timeout": "the arguments",
        "only": "PROBE_ONLY",
        "disable": f"the file {file}",
    }
    assert ignored == []


def test_empty_variable_is_unset() -> None:
    config, ignored = loaded({}, {"PROBE_ONLY": "", "PROBE_TIMEOUT": "  "})
    assert (config.only, config.timeout, ignored) == (None, None, [])


def test_users_own_file_is_found(tmp_path: Path) -> None:
    file = tmp_path / ".config/probe-core/config.toml"
    file.parent.mkdir(parents=True)
    file.write_text("timeout = 7\n")
    assert load_config({}, {"HOME": str(tmp_path)})[0].timeout == 7.0
    config, _ = load_config({}, {"HOME": "/nowhere", "XDG_CONFIG_HOME": str(tmp_path / ".config")})
    assert config.timeout == 7.0
    assert load_config({}, {})[0].timeout is None


@pytest.mark.parametrize("name", ["XDG_CONFIG_HOME", "HOME"])
def test_the_working_folder_is_no_place_of_settings(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "here/.config/probe-core/config.toml"
    file.parent.mkdir(parents=True)
    file.write_text("timeout = 7\n")
    monkeypatch.chdir(tmp_path)
    relative = {"XDG_CONFIG_HOME": "here/.config", "HOME": "here"}[name]
    assert load_config({}, {name: relative})[0].timeout is None
    environ = {"HOME": f"{tmp_path}/here", "XDG_CONFIG_HOME": "elsewhere"}
    assert load_config({}, environ)[0].timeout == 7.0


@pytest.mark.parametrize(
    ("name", "value", "read"),
    [
        ("timeout", 600, 600.0),
        ("timeout", " 0.001 ", 0.001),
        ("priority", "a=1, b=999", {"a": 1, "b": 999}),
        ("priority", {" a ": " 5 "}, {"a": 5}),
        ("only", ["bus", " cpu ", ""], ("bus", "cpu")),
        ("active", "YES ", True),
        ("active", "off", False),
    ],
)
def test_the_first_and_the_last_that_is_allowed(name: str, value: Any, read: Any) -> None:
    found = getattr(load_config({name: value}, {})[0], name)
    assert (found, type(found)) == (read, type(read))


@pytest.mark.parametrize(
    ("length", "shown"), [(78, "'" + "x" * 78 + "'"), (79, "'" + "x" * 78 + "…")]
)
def test_a_long_value_is_cut_in_the_sentence(length: int, shown: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_config({"timeout": "x" * length}, {})
    reason = "not a number of seconds (such as 2.5)"
    assert str(caught.value) == f"the arguments set 'timeout' to {shown}: {reason}"


BAD: list[tuple[str, Any, str]] = [
    ("timeout", "soon", "not a number of seconds (such as 2.5)"),
    ("timeout", 0, "above 0 and up to 600"),
    ("timeout", -1, "above 0 and up to 600"),
    ("timeout", "nan", "above 0 and up to 600"),
    ("timeout", "inf", "above 0 and up to 600"),
    ("timeout", 601, "above 0 and up to 600"),
    ("timeout", True, "not a number of seconds (such as 2.5)"),
    ("timeout", 10**400, "not a number of seconds (such as 2.5)"),
    ("priority", "nvidia", "write NAME=NUMBER, from 1 to 999 (nvidia=900)"),
    ("priority", "nvidia=1000", "must be from 1 to 999"),
    ("priority", {"nvidia": 0}, "must be from 1 to 999"),
    ("priority", {"nvidia": True}, "expected a priority from 1 to 999"),
    ("priority", {"nvidia": -5}, "expected a priority from 1 to 999"),
    ("priority", {"nvidia": 10**30}, "must be from 1 to 999"),
    ("priority", {3: 5}, "expected a prober's name"),
    ("priority", 5, "expected NAME=NUMBER"),
    ("active", "perhaps", "expected 1 or 0"),
    ("only", [1, 2], "expected names"),
    ("only", b"nvidia", "expected names"),
    ("only", 7, "expected names"),
    ("only", {"nvidia": 1}, "expected names"),
    ("chipdb", 5, "expected"),
    ("chipdb", "a\0b", "expected the path of a file"),
]


@pytest.mark.parametrize(("name", "value", "message"), BAD)
def test_bad_argument_raises_one_sentence(name: str, value: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(message)) as caught:
        load_config({name: value}, {})
    assert str(caught.value).startswith(f"the arguments set {name!r} to ")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "value", "message"), [case for case in BAD if isinstance(case[1], str)]
)
def test_bad_variable_is_told_and_the_default_stays(name: str, value: str, message: str) -> None:
    variable = SETTINGS[name].variable
    config, ignored = loaded({}, {variable: value})
    assert getattr(config, name) == getattr(load_config({}, {})[0], name)
    assert len(ignored) == 1
    assert ignored[0].startswith(f"{variable} set {name!r} to ")
    assert message in ignored[0]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root asks who could have written a file")
def test_root_takes_no_file_that_others_could_have_written(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text("allow = ['probe-evil']\n")
    changes: dict[str, Callable[[], object]] = {
        f"{file} is writable by everyone": lambda: file.chmod(0o666),
        f"{file} belongs to user 1000": lambda: (file.chmod(0o600), os.chown(file, 1000, 1000)),
        f"{tmp_path} is writable by everyone": lambda: (
            os.chown(file, 0, 0),
            tmp_path.chmod(0o777),
        ),
    }
    for why, change in changes.items():
        change()
        config, ignored = loaded({}, {}, str(file))
        assert config.allow is None
        assert ignored == [f"the configuration file {file} is not used: running as root, and {why}"]
    tmp_path.chmod(0o700)
    assert load_config({}, {}, str(file))[0].allow == ("probe-evil",)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("timeot = 3", "'timeot', which is no setting: did you mean 'timeout'?"),
        (
            "zzz = 3",
            "known: active, allow, anonymous, chipdb, disable, expect, hostname, only, priority",
        ),
        ("timeout = 'soon'", "not a number of seconds (such as 2.5)"),
        ("timeout = 1999-01-01", "not a number of seconds (such as 2.5)"),
        ("timeout =", "is not valid TOML"),
        ("[only]\na = 1", "expected names"),
        ("\udcff", "is not valid TOML"),
        ("a = " + "[" * 5000, "is not valid TOML"),
        ("a = " + "9" * 5000, "is not valid TOML"),
        (
            "timeout = 0x" + "f" * 5000,
            "to a value of type int: not a number of seconds",
        ),
        ("active = 0x" + "f" * 5000, "to a value of type int: Exceeds the limit"),
        ("timeout = 3\n" + "#" * (64 << 10), "not valid TOML: it is larger than 64 KiB"),
        ("a" + ".a" * 30_000 + " = 1", "not valid TOML: it has a line with more than 100 dots"),
    ],
)
def test_bad_file_is_told_and_the_rest_holds(text: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_bytes(text.encode("utf-8", "surrogateescape"))
    config, ignored = loaded({"active": True}, {"PROBE_CONFIG": str(file)})
    assert config.active is True
    assert len(ignored) == 1
    assert message in ignored[0]
    assert str(file) in ignored[0]


def test_missing_and_unreadable_files_are_told(tmp_path: Path) -> None:
    _, ignored = loaded({}, {}, str(tmp_path / "none.toml"))
    assert ignored == [
        f"the configuration file {tmp_path}/none.toml cannot be read: No such file or directory"
    ]
    _, ignored = loaded({}, {}, str(tmp_path))
    assert ignored == [f"the configuration file {tmp_path} cannot be read: Is a directory"]


def test_fifo_as_file_does_not_hang(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    config, _ = load_config({}, {"PROBE_CONFIG": str(tmp_path / "fifo")})
    assert config.origins == {}


def test_misspelt_variable_is_told() -> None:
    _, ignored = loaded({}, {"PROBE_DISABEL": "nvidia", "OTHER": "1"})
    (told,) = ignored
    assert told.startswith("the environment variable PROBE_DISABEL is not one of probe-core's: ")
    assert told.endswith("did you mean 'PROBE_DISABLE'?")


def test_no_variable_of_ours_counts_as_misspelt() -> None:
    """What `probe exec` sets for its commands, for instance, which probe in their turn."""
    page = (Path(__file__).parents[2] / "docs/reference/settings.md").read_text("utf-8")
    _, _, others = page.partition("## Other variables that are read")
    names = re.findall(r"`(PROBE_[A-Z_]+)`", others)
    assert {"PROBE_LEASE_ID", "PROBE_INSTANCE", "PROBE_ALERT_NAME", "PROBE_CORE_RUN"} < set(names)
    assert loaded({}, dict.fromkeys(names, "1"))[1] == []


def test_sentences_are_fit_for_a_terminal() -> None:
    _, ignored = loaded({}, {"PROBE_\x1b[31m": "1", "PROBE_TIMEOUT": "\x1b]0;x\udcff"})
    assert len(ignored) == 2
    assert all(sentence.isprintable() for sentence in ignored)


def test_bad_setting_becomes_a_finding_of_the_report(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROBE_TIMEOUT", "soon")
    monkeypatch.setenv("PROBE_ONLY", "cpu")
    report = probe_core.probe(refresh=True)
    told = [f for f in report.findings if f.code == "config-ignored"]
    assert [f.why for f in told] == [
        "PROBE_TIMEOUT set 'timeout' to 'soon': not a number of seconds (such as 2.5)"
    ]


def test_unknown_prober_is_told_with_the_nearest_name(tmp_path: Path) -> None:
    machine = probe_core.Machine(str(tmp_path))
    report = report_of(machine, only=["cpu"], disable=["fallbakc"], priority={"buss": 3})
    told = [f for f in report["findings"] if f["code"] == "unknown-prober"]
    assert [f["fix"] for f in told] == ["did you mean 'fallback'?", "did you mean 'bus'?"]
    assert "unknown-prober" in codes(report)


def test_the_users_own_file_is_looked_for_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A home on a server that is silent costs a deadline each time."""
    path = tmp_path / "probe-core/config.toml"
    path.parent.mkdir()
    path.write_text("timeout = 7\n")
    looked: list[str] = []
    is_file = os.path.isfile

    def look(name: str) -> bool:
        looked.append(str(name))
        return is_file(name)

    monkeypatch.setattr(os.path, "isfile", look)
    config, _ = load_settings({}, {"XDG_CONFIG_HOME": str(tmp_path)})
    assert (config.timeout, looked.count(str(path))) == (7.0, 1)


def test_key_tells_settings_apart() -> None:
    one, _ = load_config({"only": "a"}, {})
    same, _ = load_config({}, {"PROBE_ONLY": "a"})
    other, _ = load_config({"only": "a", "timeout": 3}, {})
    assert one.key() == same.key() != other.key()


def test_what_a_command_of_an_alert_is_given_is_no_setting() -> None:
    assert loaded({}, {"PROBE_ALERT_NAME": "memory"})[1] == []
    assert len(loaded({}, {"PROBE_ALERTS": "memory"})[1]) == 1
