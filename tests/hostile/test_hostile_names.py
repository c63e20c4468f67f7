"""No name that others choose reaches a program's input but in the form that the core accepts."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from command import environment, probe
from hostile_names import ALL, IN_METADATA, MARK, SHELL
from shells import Shell, missing
from weights import mostly_heavy_rows

from probe_core.cli.candidates import answer, candidates
from probe_core.leasing.folder import lease_folder
from probe_core.model.ids import is_code, is_device_id, is_distribution_name, is_prober_name
from probe_core.registry.prober import discover

PLAIN = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_./:@+=,")
GOOD_ID = "pci:0000:01:00.0"
KINDS: dict[str, tuple[Callable[[str], bool], tuple[str, ...]]] = {
    "prober": (is_prober_name, ("nvidia", "my.gpu_2-x", "_own", "9", "a" * 64)),
    "distribution": (is_distribution_name, ("probe-nvidia", "Probe.Acme", "x")),
    "device": (
        is_device_id,
        (
            *(GOOD_ID, "cpu:0", "uuid:GPU-1a2b", "uuid:MIG-GPU-1a2b/7/0", "x:1"),
            *("dt:/soc/gpu@fb000000", "amd:0000:03:00.0/xcp0", "usb:1-1.2"),
        ),
    ),
    "code": (is_code, ("driver-missing", "xid-79", "NVML_ERROR_UNKNOWN", "a" * 60)),
}


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """What takes too long ends the process, which here is that of the tests."""
    monkeypatch.setattr("probe_core.cli.candidates.LIMIT_S", 600.0)


@pytest.mark.parametrize("kind", KINDS)
def test_one_function_says_what_a_name_is(kind: str) -> None:
    passes, good = KINDS[kind]
    prefix = "x:" if kind == "device" else ""
    assert [name for name in good if not passes(name)] == []
    assert [name for name in ALL if passes(name)] == []
    # Behind the kind of an id a dash or a dot is no option and no hidden file.
    inside = {f"-{MARK}", f"--{MARK}", f".{MARK}", f"..{MARK}"} if kind == "device" else set()
    assert {name for name in ALL if passes(prefix + name)} == inside
    assert not any(map(passes, ("", " ", "\n", "a" * 300, "ä", "x:", ":x", "a:b c", "-a:b")))


def metadata(site: Path, owner: str, entries: str) -> None:
    info = site / f"{owner}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Name: {owner}\n", "utf-8")
    (info / "entry_points.txt").write_text(entries, "utf-8")


def names_installed(folder: Path) -> Path:
    """Install, for each hostile name, a prober, a command, a format and checks, and an owner."""
    site = folder / "site"
    groups = ("probers", "commands", "exporters", "checks")
    for number, name in enumerate(IN_METADATA):
        entries = "".join(f"[probe_core.{group}.v1]\n{name} = x_hostile\n" for group in groups)
        metadata(site, f"probe_of_{number}", entries)
        owner = "".join(char for char in name if char not in "/\n")
        metadata(site, f"{owner}{number}", f"[probe_core.probers.v1]\nof{number} = x_hostile\n")
    metadata(site, "probe_zzgood", "[probe_core.probers.v1]\nzzgood = x_hostile\n")
    metadata(site, "probe_checks", "[probe_core.checks.v1]\nzzchecks = x_hostile\n")
    (site / "x_hostile.py").write_text("")
    manifest = {"schema": 1, "checks": {"zzchecks": {"codes": [*ALL, "zz-good-code"]}}}
    (site / "x_hostile.check.json").write_text(json.dumps(manifest))
    return site


def static(folder: Path) -> Path:
    devices = [
        {"id": identity, "ids": [identity], "kind": "gpu", "name": name}
        for name in ALL
        for identity in (name, f"x:{name}", f"uuid:GPU-{name}")
    ]
    devices.append({"id": GOOD_ID, "ids": [GOOD_ID], "kind": "gpu", "name": "good"})
    file = folder / "static.json"
    file.write_text(json.dumps({"schema": 1, "devices": devices}))
    return file


LINES = [
    # The line, and what must be among the words that are offered.
    ("", "explain"),
    ("ex", "export"),
    ("help ", "explain"),
    ("--only ", "zzgood"),
    ("--only=", "--only=zzgood"),
    ("--only cpu,", "cpu,zzgood"),
    ("--disable ", "zzgood"),
    ("--priority ", "zzgood="),
    ("--allow ", "probe-zzgood"),
    ("plugins why-not ", "zzgood"),
    ("plugins check ", "zzgood"),
    ("plugins list ", "zzgood"),
    ("explain --static STATIC ", GOOD_ID),
    ("exec --static STATIC --device ", GOOD_ID),
    ("exec --static STATIC --device=", f"--device={GOOD_ID}"),
    ("export ", "prometheus"),
    ("leases --kill ", "all"),
    ("leases --kill ", GOOD_ID),
    ("chip ", "nvidia/"),
]
HELD = [name for own in ALL for name in (own, f"x:{own}")]


def held(folder: object) -> list[SimpleNamespace]:
    """Stand for a folder of leases in which somebody chose the names."""
    docs = [{"device": name, "pid": 5, "command": name} for name in (*HELD, GOOD_ID)]
    return [SimpleNamespace(doc=doc) for doc in docs]


@pytest.mark.parametrize(("line", "expected"), mostly_heavy_rows(LINES, 4))
def test_completion_offers_only_names(
    line: str, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(names_installed(tmp_path)))
    monkeypatch.setattr("probe_core.leasing.listing.holdings", held)
    lease_folder({"PROBE_LEASES": str(tmp_path / "leases")}).close()
    environ = {"HOME": str(tmp_path), "PROBE_LEASES": str(tmp_path / "leases")}
    words = line.replace("STATIC", str(static(tmp_path))).split(" ")
    got = [word for word, _ in candidates(words, environ)[1]]
    assert expected in got
    assert [word for word in got if not PLAIN.issuperset(word)] == []
    option = words[-1].partition("=")[0]
    assert [word for word in got if word.startswith("-") and not option] == []
    # What is left of them stands behind the kind of an id, where a dash or a dot is no option.
    through = [word.removeprefix(f"{option}=") for word in got if MARK in word]
    assert [word for word in through if not is_device_id(word)] == []


def test_checks_are_offered_by_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from probe_core.cli.candidates import values_of

    monkeypatch.syspath_prepend(str(names_installed(tmp_path)))
    codes = [code for code, _ in values_of("codes", "", [], {})]
    assert "zz-good-code" in codes
    assert [code for code in codes if not is_code(code)] == []


def test_what_cannot_be_typed_is_no_prober(tmp_path: Path) -> None:
    """A name that begins with a dash ran, and no command could name it."""
    probers, _ = discover({}, [str(names_installed(tmp_path))])
    accepted = {prober.name for prober in probers if prober.rejection is None}
    assert {name for name in accepted if not name.startswith("of")} == {"zzgood"}
    dashed = next(prober for prober in probers if prober.name == f"-{MARK}")
    assert dashed.rejection == (
        "its name must be 1 to 64 ASCII letters, digits, '-', '_' or '.', the first no '-' and no"
        " '.'"
    )


@pytest.fixture(params=["bash", "zsh"])
def shell(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    if reason := missing(request.param):
        pytest.skip(reason)
    monkeypatch.syspath_prepend(str(names_installed(tmp_path)))
    with Shell(request.param, tmp_path / "home") as started:
        yield started


@pytest.mark.heavy
def test_tab_and_enter_run_no_name(shell: Shell, tmp_path: Path) -> None:
    """`probe plugins why-not zz` with Tab and Enter ran the name of a prober."""
    for _ in range(10):  # a busy machine may not answer within the quarter of a second
        after = shell.after("probe plugins why-not zz")
        if after != "probe plugins why-not zz":
            break
    assert after == "probe plugins why-not zzgood"
    shell.enter("probe plugins why-not zz\t")
    shell.enter("probe --only \t\t")
    assert not any(tmp_path.rglob(MARK))


WORD = f"zz;$(touch {MARK})`touch {MARK}`"


@pytest.mark.heavy
@pytest.mark.parametrize("name", ["bash", "fish"])
def test_a_script_quotes_what_it_is_given(name: str, tmp_path: Path) -> None:
    """Even a `probe` that offered such a word is quoted; zsh does so in its line editor."""
    if reason := missing(name):
        pytest.skip(reason)
    program = tmp_path / "bin" / "probe"
    program.parent.mkdir()
    script = probe("completion", name).stdout
    body = f'case "$3" in --complete) ;; esac\nprintf "%s\\n" {_single(WORD)} words\n'
    program.write_text(f"#!/bin/sh\n{body}")
    program.chmod(0o755)
    path = f"{program.parent}:{os.environ['PATH']}"
    if name == "fish":
        (tmp_path / "start").write_text(script)
        code = "source start; set w (complete -C 'probe zz'); eval \"echo \"(string escape -- $w)"
        command = ["fish", "-N", "-c", code]
    else:
        code = f"{script}\nCOMP_LINE='probe zz' COMP_POINT=8; _probe probe zz probe\n"
        command = ["bash", "-c", code + 'eval "echo ${COMPREPLY[0]}"']
    done = subprocess.run(
        command,
        cwd=tmp_path,
        env=environment(PATH=path, HOME=str(tmp_path)),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout == f"{WORD}\n", done.stderr
    assert not (tmp_path / MARK).exists()


def _single(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def test_bash_gets_no_word_of_the_kind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(names_installed(tmp_path)))
    assert list(answer("bash", ["probe plugins why-not zz", " =:"], {})) == ["zzgood", "words"]
    lines = list(answer("fish", ["probe", "plugins", "why-not", "zz"], {}))
    assert lines == ["zzgood\tprobe-zzgood 1.0", "words"]


NAMES = ("\n", "\r", "\x85", "\u2028", "'", '"', "$", "`")


@pytest.mark.heavy
@pytest.mark.parametrize("command", ["layout", "exec"])
def test_lines_for_eval_run_no_name(command: str, tmp_path: Path) -> None:
    """`eval "$(probe layout 2)"`: neither an id, nor a device's name in a comment."""
    devices = []
    for number, name in enumerate([*SHELL, *ALL]):
        address = f"pci:0000:{number + 1:02x}:00.0"
        odd = "".join(f"{char}touch {MARK};" for char in NAMES) + name
        devices.append(
            {
                "id": address,
                "ids": [address, f"uuid:GPU-{name}", f"uuid:{odd}"],
                "kind": "gpu",
                "vendor": ("nvidia", "amd", "intel")[number % 3],
                "name": odd,
                "readiness": {"state": "ready", "broken": None, "steps": []},
            }
        )
    file = tmp_path / "static.json"
    file.write_text(json.dumps({"schema": 1, "node": {"os": "linux"}, "devices": devices}))
    words = ["layout", "1x1"] if command == "layout" else ["exec", "--dry-run"]
    run = ["--", "true"] if command == "exec" else []
    env = environment(HOME=str(tmp_path), PROBE_LEASES=str(tmp_path / "leases"))
    done = probe(*words, "--static", str(file), *run, env=env)
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stdout.splitlines() if not line.startswith("#")]
    assert any(line.startswith("export CUDA_VISIBLE_DEVICES=") for line in lines), done.stdout
    assert [line for line in lines if MARK in line] == []
    bash = shutil.which("bash") or "sh"
    subprocess.run(
        [bash, "-c", 'eval "$1"', "-", done.stdout], cwd=tmp_path, timeout=60, check=True
    )
    assert not (tmp_path / MARK).exists()


def test_the_shell_of_this_test_is_no_other(tmp_path: Path) -> None:
    """The mark is made where a name does run: else the tests above would prove nothing."""
    subprocess.run(["sh", "-c", f"eval {SHELL[0]!r}"], cwd=tmp_path, timeout=60, check=False)
    assert (tmp_path / MARK).exists()
