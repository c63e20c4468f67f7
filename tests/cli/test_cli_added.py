"""A setting, and an option, that is added in its one place is everywhere: CONTRIBUTING's rows."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

FIRST = "    only: tuple[str, ...] | None = setting(\n"
ADDED = '    extra: tuple[str, ...] = setting("names", "an invented setting", ())\n'
FIRST_TYPE = "        only: Names\n"
ADDED_TYPE = "        extra: Names\n"

LONG = '            Option("long", "", "list priority, deadline and package"),\n'
ADDED_OPTION = '            Option("invented", "FILE", "an invented option"),\n'
"""Of `probe plugins list`; it stands behind `LONG`."""

ASKED = """
import json, sys
import probe_core
from probe_core.cli.candidates import candidates
from probe_core.setting_values import load_config

file = sys.argv[1]
answers = {}
unset = load_config({}, {})[0]
for place, given in {
    "the arguments": ({"extra": "a"}, {}, None),
    "PROBE_EXTRA": ({}, {"PROBE_EXTRA": "a"}, None),
    "the file " + file: ({}, {}, file),
}.items():
    config, ignored = load_config(*given)
    answers[place] = [config.extra, config.origins, len(ignored), config.key() == unset.key()]
report = probe_core.probe(extra=["no-such-prober"])
answers["findings"] = [f.why for f in report.findings if f.code == "unknown-prober"]
answers["options"] = candidates(["--ex"], {})
answers["values"] = candidates(["--extra", "cp"], {})
print(json.dumps(answers))
"""

PAGES = """
import json, sys
sys.path.insert(0, "docs")
import package_files, regions, regions_cli
files = package_files.files(package_files.ROOT)
manuals = {name.rpartition("/")[2]: text for name, text in files.items()}
pages = {"page": regions.settings(), "manual": manuals["probe.1"], "cli": regions_cli.cli()}
print(json.dumps({**pages, "plugins": manuals["probe-plugins.1"]}))
"""


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the repository in which a setting was added."""
    copy = tmp_path_factory.mktemp("copy")
    ignored = shutil.ignore_patterns("__pycache__")
    for folder in ("probe_core", "docs"):
        shutil.copytree(ROOT / folder, copy / folder, ignore=ignored)
    for shared in ("plugins", "CHANGELOG.md"):
        (copy / shared).symlink_to(ROOT / shared)
    for file, line, lines in (
        ("config.py", FIRST, ADDED + FIRST),
        ("config.py", FIRST_TYPE, ADDED_TYPE + FIRST_TYPE),
        ("cli/plugins.py", LONG, LONG + ADDED_OPTION),
    ):
        path = copy / "probe_core" / file
        text = path.read_text("utf-8")
        assert text.count(line) == 1
        path.write_text(text.replace(line, lines), "utf-8")
    return copy


def run(copy: Path, *arguments: str) -> str:
    environ = {**os.environ, "PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=copy,
        env=environ,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def probe(copy: Path, *arguments: str) -> str:
    return run(copy, "-m", "probe_core", *arguments)


def test_it_is_an_argument_a_variable_and_a_key_of_the_file(copy: Path, tmp_path: Path) -> None:
    file = tmp_path / "settings.toml"
    file.write_text('extra = ["a"]\n')
    answers = json.loads(run(copy, "-c", ASKED, str(file)))
    for place in ("the arguments", "PROBE_EXTRA", f"the file {file}"):
        assert answers.pop(place) == [["a"], {"extra": place}, 0, False]
    assert answers == {
        "findings": ["no prober of that name is installed"],
        "options": [
            "words",
            [
                ["--extra", "an invented setting [PROBE_EXTRA]"],
                ["--expect", "what should be here: `8xh100`, `4xl40s+1xa2` [PROBE_EXPECT]"],
            ],
        ],
        "values": ["words", [["cpu", "built in"]]],
    }


def test_it_is_an_option_of_every_command_that_probes(copy: Path) -> None:
    for command in ((), ("doctor",), ("exec",), ("visible",)):
        assert words("--extra NAMES an invented setting [PROBE_EXTRA]") in words(
            probe(copy, *command, "--help-all")
        )
    assert json.loads(probe(copy, "--extra", "cpu", "--json"))["devices"]


def test_it_is_in_the_reference_and_the_manual(copy: Path) -> None:
    pages = json.loads(run(copy, "-c", PAGES))
    row = "| `extra` | `--extra` | `PROBE_EXTRA` | names | an invented setting |"
    assert row in pages["page"].splitlines()
    assert "\\fBPROBE_EXTRA\\fR\nan invented setting\n" in pages["manual"]


def test_an_option_is_one_of_its_command_alone(copy: Path) -> None:
    shown = words("--invented FILE an invented option")
    assert shown in words(probe(copy, "plugins", "list", "--help"))
    assert shown not in words(probe(copy, "plugins", "check", "--help-all"))
    assert "Not needed here" in probe(copy, "plugins", "list", "--invented", "x")
    done = subprocess.run(
        [sys.executable, "-m", "probe_core", "plugins", "check", "--invented", "x"],
        cwd=copy,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    sentence = "probe plugins check: no option --invented. `probe plugins list` has it.\n"
    assert (done.returncode, done.stderr) == (2, sentence)


def test_an_option_is_completed_and_in_the_reference_and_the_manual(copy: Path) -> None:
    pages = json.loads(run(copy, "-c", PAGES))
    assert "| `--invented FILE` | an invented option |" in pages["cli"].splitlines()
    assert "\\fB\\-\\-invented FILE\\fR\nan invented option\n" in pages["plugins"]
    answer = probe(copy, "completion", "fish", "--complete", "probe", "plugins", "list", "--inv")
    assert answer == "--invented\tan invented option\nwords\n"
    answer = probe(
        copy, "completion", "fish", "--complete", "probe", "plugins", "list", "--invented", ""
    )
    assert answer == "files\n"


def words(text: str | Sequence[str]) -> str:
    return " ".join(str(text).split())
