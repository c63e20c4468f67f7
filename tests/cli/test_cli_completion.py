"""Completion: the words, and that bash, zsh and fish themselves offer them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest
from command import environment, install, probe
from shells import Shell, missing
from weights import mostly_heavy

from probe_core.cli import COMMANDS, main
from probe_core.cli.candidates import answer, candidates, split
from probe_core.cli.completion import words_of
from probe_core.cli.parser import command_parser, long_name, sections
from probe_core.cli.plugins import SUB_COMMANDS
from probe_core.model.runtimes import RUNTIMES

DEVICES = ["cpu:0", "pci:0000:01:00.0", "pci:0000:02:00.0"]


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """What takes too long ends the process, which here is that of the tests."""
    monkeypatch.setattr("probe_core.cli.candidates.LIMIT_S", 600.0)


def completed(shell: Shell, line: str) -> str:
    """Return the line after Tab; a busy machine may not answer within the quarter of a second."""
    for _ in range(10):
        if (after := shell.after(line)) != line:
            break
    return after


@pytest.fixture
def static(tmp_path: Path) -> Path:
    """A report that stands for a computer with two GPUs."""
    devices = [
        {"id": id_, "kind": "gpu" if "pci" in id_ else "cpu", "name": f"device {number}"}
        for number, id_ in enumerate(DEVICES)
    ]
    file = tmp_path / "report.json"
    file.write_text(json.dumps({"schema": 1, "devices": devices}))
    return file


def offered(line: str) -> tuple[str, list[str]]:
    kind, words = candidates(line.split(" "), os.environ)
    return kind, [word for word, _ in words]


CASES: list[tuple[str, str, list[str]]] = [
    ("--nope=", "words", []),
    ("--json=", "words", []),
    ("expl", "words", ["explain"]),
    ("ex", "words", ["explain", "exec", "export"]),
    ("topo", "words", ["topology"]),
    ("help ex", "words", ["explain", "exec", "export"]),
    ("help exec ", "words", []),
    ("-", "words", ["--json", "--strict", "--version"]),
    ("--js", "words", ["--json"]),
    ("--strict --js", "words", ["--json"]),
    ("chip --me", "words", ["--memory"]),
    ("explain --js", "words", ["--json"]),
    ("pl", "words", ["plugins"]),
    ("--only nvi", "words", ["nvidia"]),
    ("--only=nvi", "words", ["--only=nvidia"]),
    ("--only nvidia,cp", "words", ["nvidia,cpu"]),
    ("--only cpu,cp", "words", []),
    ("--allow probe-nv", "words", ["probe-nvidia"]),
    ("--priority nvi", "nospace", ["nvidia="]),
    ("--priority nvidia=", "words", []),
    ("--machine ", "files", []),
    ("--machine=", "files", []),
    ("--timeout ", "words", []),
    ("exec --gp", "words", ["--gpus"]),
    ("exec --for cu", "words", ["cuda"]),
    ("exec --style ", "words", ["auto", "uuid", "index"]),
    ("exec --style=u", "words", ["--style=uuid"]),
    ("exec -n 2 ", "programs", []),
    ("exec --wait ", "words", []),
    ("exec --wait -- ", "programs", []),
    ("exec -- python tra", "files", []),
    ("exec -- python --js", "files", []),
    ("exec python --js", "files", []),
    ("visible --for ", "words", [*RUNTIMES]),
    ("visible --for --js", "words", ["--json"]),
    ("plugins ", "words", [*SUB_COMMANDS]),
    ("plugins why-not nvi", "words", ["nvidia"]),
    ("plugins new ", "words", []),
    ("plugins check --lon", "words", []),
    ("plugins list --lon", "words", ["--long"]),
    ("plugins --long", "words", ["--long"]),
    ("plugins --json ch", "words", ["check"]),
    ("plugins new x --folder ", "folders", []),
    ("chip --kind dt --ki", "words", ["--kind"]),
    ("chip nvid", "nospace", ["nvidia/"]),
    ("chip nvidia/geforce-rtx-4090-", "words", [
        "nvidia/geforce-rtx-4090-d", "nvidia/geforce-rtx-4090-laptop-gpu",
    ]),
    ("completion ", "words", ["bash", "zsh", "fish"]),
    ("doc", "words", ["doctor"]),
    ("doctor --only xid", "words", ["xid-seen"]),
    ("doctor --only xid-seen,gpu-l", "words", ["xid-seen,gpu-lost"]),
    ("doctor --only wheel-j", "words", ["wheel-jit-only"]),
    ("doctor --bundle ", "files", []),
    ("doctor --env ", "files", []),
    ("export pro", "words", ["prometheus"]),
    ("export prometheus --output ", "files", []),
    ("env --for ", "words", ["uv", "pip", "conda", "variants"]),
    ("env --for=con", "words", ["--for=conda"]),
    ("completion bash ", "words", ["--color", "--help"]),
    ("topology ", "files", []),
    ("topology a.json b.", "files", []),
    ("topology --dev", "words", ["--devices"]),
    ("partition --use ", "words", ["available", "total"]),
    ("nosuch ", "words", []),
    ("nosuch --js", "words", []),
    ("devices --json=", "words", []),
    ("-- ", "words", []),
]  # fmt: skip


@pytest.mark.parametrize(("line", "kind", "words"), CASES, ids=[case[0] for case in CASES])
def test_what_can_be_typed_next(line: str, kind: str, words: list[str]) -> None:
    got = offered(line)
    if line == "-":
        assert set(words) <= set(got[1])
    else:
        assert got == (kind, words)


@pytest.mark.parametrize("name", [*COMMANDS, *(f"plugins {own}" for own in SUB_COMMANDS)])
def test_every_option_of_every_command(name: str) -> None:
    command, _, own = name.partition(" ")
    parser = command_parser(command, import_module(f"probe_core.cli.{COMMANDS[command][0]}"))
    parser = parser.of_command(own) if own else parser
    shown = [action for section in sections(parser) for action in section.actions]
    names = [long_name(action) for action in shown if action.option_strings]
    _, words = candidates([*name.split(), "--"], os.environ)
    assert sorted(word for word, _ in words) == sorted(names)
    assert len(names) >= 1
    assert all(about for _, about in words)
    assert command in offered("")[1]


def test_devices_come_from_what_the_line_names(static: Path) -> None:
    assert offered(f"explain --static {static} ") == ("words", DEVICES)
    assert offered(f"--static={static} --json") == ("words", ["--json"])
    gpus = DEVICES[1:]
    assert offered(f"exec --static {static} --device ") == ("words", gpus)
    assert offered(f"exec --static {static} --device {gpus[0]},") == (
        "words",
        [f"{gpus[0]},{gpus[1]}"],
    )
    assert offered("explain --static /no/such/file ") == ("words", [])


HANG = """
    import time
    from probe_core.api import hookimpl
    @hookimpl
    def probe_devices(request):
        open("{mark}", "w").close()
        time.sleep(600)
"""


def test_no_plugin_runs_for_the_devices(tmp_path: Path) -> None:
    """One that hangs would hold up the prompt of whoever pressed Tab."""
    install(tmp_path, "hangs", HANG.format(mark=tmp_path / "ran"))
    env = environment(tmp_path)
    for _ in range(10):  # it gives up after a quarter of a second, on a busy machine too
        done = probe("completion", "fish", "--complete", "probe", "explain", "cpu", env=env)
        if done.stdout:
            break
    assert done.stdout.splitlines()[-1] == "words"
    assert done.stdout.startswith("cpu:0")
    assert not (tmp_path / "ran").exists()


HUNG_COMMAND = "import ctypes\nctypes.CDLL(None).sleep(600)\n"


def test_a_command_that_hangs_at_import_ends_the_answer(tmp_path: Path) -> None:
    """Inside of C, where no handler of Python runs."""
    info = tmp_path / "probe_fry-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Name: probe-fry\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[probe_core.commands.v1]\nfry = x_fry\n")
    (tmp_path / "x_fry.py").write_text(HUNG_COMMAND)
    done = probe("completion", "zsh", "--complete", "probe", "fry", "--", env=environment(tmp_path))
    assert (done.stdout, done.stderr) == ("", "")
    assert done.returncode == 1


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("", [""]),
        ("probe", ["probe"]),
        ("probe ", ["probe", ""]),
        ("probe a", ["probe", "a"]),
        ("probe 'a b", ["probe", "a b"]),
        ('probe "a b" ', ["probe", "a b", ""]),
        ("probe a\\ b", ["probe", "a b"]),
        ("probe '", ["probe", ""]),
        ("probe \\", ["probe", ""]),
    ],
)
def test_unfinished_lines_are_split_as_bash_does(line: str, words: list[str]) -> None:
    assert split(line) == words


def test_bash_gets_what_follows_its_own_breaks() -> None:
    lines = list(answer("bash", ["probe --only=nvi", " =:"], os.environ))
    assert lines == ["nvidia", "words"]
    assert list(answer("bash", ["probe --only=nvi", " "], os.environ)) == ["--only=nvidia", "words"]
    assert list(answer("bash", [], os.environ))[-1] == "words"
    assert next(answer("fish", ["probe", "expl"], os.environ)) == (
        f"explain\t{COMMANDS['explain'][2]}"
    )


def test_an_answer_needs_no_argparse_for_the_commands() -> None:
    code = (
        "import sys\nfrom probe_core.cli import main\n"
        "main(['completion', 'bash', '--complete', 'probe ex'])\n"
        "assert 'argparse' not in sys.modules and 're' not in sys.modules\n"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-c", code],
        env=environment(), capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode in (0, 1)


@pytest.fixture(scope="module")
def bash(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    if reason := missing("bash"):
        pytest.skip(reason)
    with Shell("bash", tmp_path_factory.mktemp("bash") / "home") as shell:
        yield shell


ZSH_ORDERS = {
    "no compinit": ("", ""),
    "compinit before": ("autoload -Uz compinit; compinit -u -D", ""),
    "compinit after": ("", "autoload -Uz compinit; compinit -u -D"),
}


@pytest.fixture(scope="module", params=mostly_heavy(ZSH_ORDERS, 3))
def zsh(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Shell]:
    if reason := missing("zsh"):
        pytest.skip(reason)
    with Shell("zsh", tmp_path_factory.mktemp("zsh") / "home", *ZSH_ORDERS[request.param]) as shell:
        yield shell


UNIQUE = [
    ("probe expl", "probe explain"),
    ("probe --js", "probe --json"),
    ("probe plugins why", "probe plugins why-not"),
    ("probe plugins why-not nvi", "probe plugins why-not nvidia"),
    ("probe exec --for cud", "probe exec --for cuda"),
    ("probe exec --style=uu", "probe exec --style=uuid"),
    ("probe --only=cpu,nvi", "probe --only=cpu,nvidia"),
    ("probe --priority nvi", "probe --priority nvidia="),
    ("probe chip alib", "probe chip alibaba/"),
    ("probe help expl", "probe help explain"),
    ("probe topology --def", "probe topology --default-link"),
    ("probe --machine=sta", "probe --machine=start"),
    ("probe topology sta", "probe topology start"),
    ("probe exec -- prob", "probe exec -- probe"),
]  # fmt: skip


@pytest.mark.heavy
@pytest.mark.parametrize(("line", "after"), UNIQUE, ids=[case[0] for case in UNIQUE])
def test_bash_completes(line: str, after: str, bash: Shell) -> None:
    assert completed(bash, line) == after


@pytest.mark.heavy
@pytest.mark.parametrize(("line", "after"), UNIQUE, ids=[case[0] for case in UNIQUE])
def test_zsh_completes(line: str, after: str, zsh: Shell) -> None:
    assert completed(zsh, line) == after


def test_bash_offers_all_and_nothing_else(bash: Shell) -> None:
    assert {*COMMANDS, "help"} <= set(bash.offered("probe "))
    assert bash.offered("probe plugins ") == sorted(SUB_COMMANDS)
    assert bash.offered("probe completion ") == ["bash", "fish", "zsh"]


@pytest.mark.heavy
def test_zsh_lists_with_meanings(zsh: Shell) -> None:
    listed = zsh.listed("probe ex")
    assert "explain" in listed
    assert "exec" in listed
    assert "free" in listed  # "run a command on free devices"


def with_device(shell: Shell, static: Path) -> None:
    line = f"probe explain --static {static} pci:0000:02"
    assert completed(shell, line).replace("\\", "") == f"{line}:00.0"


def test_bash_completes_devices_with_colons(bash: Shell, static: Path) -> None:
    with_device(bash, static)


def test_zsh_completes_devices_with_colons(zsh: Shell, static: Path) -> None:
    with_device(zsh, static)


@pytest.fixture(scope="module")
def fish(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if reason := missing("fish"):
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("fish")
    program = folder / "probe"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m probe_core "$@"\n')
    program.chmod(0o755)
    (folder / "start").write_text(probe("completion", "fish").stdout)
    return folder


@pytest.mark.heavy
@pytest.mark.parametrize(("line", "after"), UNIQUE, ids=[case[0] for case in UNIQUE])
def test_fish_completes(line: str, after: str, fish: Path) -> None:
    path = f"{fish}:{os.environ['PATH']}"
    for _ in range(10):  # as in `completed`
        done = subprocess.run(
            ["fish", "-N", "-c", f"source start; complete -C '{line}'"],
            cwd=fish, env=environment(PATH=path, HOME=str(fish)),
            capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        if done.stdout:
            break
    words = [entry.partition("\t")[0] for entry in done.stdout.splitlines()]
    assert done.stderr == ""
    assert after.rpartition(" ")[2] in words
    typed = line.rpartition(" ")[2]
    # fish looks for what was typed inside of words, too; programs are all of the path's.
    assert all(typed.rpartition("=")[2].rpartition(",")[2] in word for word in words)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_scripts_are_sound(shell: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    file = tmp_path / "script"
    file.write_text(capsys.readouterr().out)
    if reason := missing(shell):
        pytest.skip(reason)
    done = subprocess.run(
        [shell, "-n", str(file)], capture_output=True, text=True, timeout=30, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], None),
        (["bash"], None),
        (["bash", "--complete"], []),
        (["fish", "--complete", "probe", "--", "x"], ["probe", "--", "x"]),
        (["bash", "probe", "--complete"], None),
        (["dash", "--complete", "probe"], None),
    ],
)
def test_which_words_a_script_asks_about(arguments: list[str], words: list[str] | None) -> None:
    assert words_of(arguments) == words
