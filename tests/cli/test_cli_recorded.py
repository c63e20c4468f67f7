"""`--machine`: a folder, a document or an archive, for all commands alike."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import tarfile
import time
from pathlib import Path

import pytest
import recorded
from command import argv, environment, install, probe

CARD = "desktop--amd-radeon-rx-7900-xtx"
SLOW = """
from probe_core.api import hookimpl
import os, time

@hookimpl
def probe_devices(request):
    open(os.environ["STARTED"], "w").close()
    time.sleep(600)
"""


@pytest.fixture
def temporary(tmp_path: Path) -> Path:
    folder = tmp_path / "temporary"
    folder.mkdir()
    return folder


def packed(folder: Path, name: str, kind: str) -> str:
    """Return the path of a recorded machine, packed as `kind` says."""
    path = folder / f"machine.{kind}"
    if kind == "json":
        return str(recorded.path(name))
    if kind == "json.gz":
        path.write_bytes(gzip.compress(recorded.path(name).read_bytes()))
    elif kind == "folder":
        recorded.unpack(recorded.read(name), path)
    else:
        root = recorded.unpack(recorded.read(name), folder / "root")
        with tarfile.open(path, "w:xz" if kind == "tar.xz" else "w:gz") as tar:
            tar.add(root, ".")
    return str(path)


@pytest.mark.heavy
@pytest.mark.parametrize("kind", ["folder", "json", "json.gz", "tar.gz", "tar.xz"])
def test_report_of_each_kind(kind: str, tmp_path: Path, temporary: Path) -> None:
    path = packed(tmp_path, CARD, kind)
    done = probe("--json", "--machine", path, env=environment(TMPDIR=str(temporary)))
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["primary"] == "pci:0000:03:00.0"
    assert os.listdir(temporary) == []


@pytest.mark.heavy
@pytest.mark.parametrize(
    "command",
    [
        ["explain"],
        ["visible"],
        ["layout", "1x1"],
        ["plugins", "list"],
        ["plugins", "why-not", "cpu"],
        ["plugins", "check", "cpu"],
        ["exec", "--gpus", "1", "--dry-run"],
    ],
    ids=" ".join,
)
def test_each_command_that_probes(command: list[str], tmp_path: Path, temporary: Path) -> None:
    variables = {"TMPDIR": str(temporary), "PROBE_LEASES": str(tmp_path / "leases")}
    path = str(recorded.path(CARD))
    done = probe(*command, "--machine", path, env=environment(**variables))
    assert (done.returncode, done.stderr) == (0, "")
    assert os.listdir(temporary) == []


@pytest.mark.heavy
def test_system_and_environment_are_the_recording_s(tmp_path: Path) -> None:
    data = recorded.read(CARD) | {"arch": "riscv64", "environ": {"ROCR_VISIBLE_DEVICES": ""}}
    path = tmp_path / "machine.json"
    path.write_text(json.dumps(data))
    done = probe("--json", "--machine", str(path), env=environment(ROCR_VISIBLE_DEVICES="0"))
    document = json.loads(done.stdout)
    assert document["node"]["arch"] == "riscv64"
    assert document["devices"][0]["visibility"]["hip"]["visible"] is False


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("variables", "state"), [({}, "hidden"), ({"ROCR_VISIBLE_DEVICES": "0"}, "0")]
)
def test_variables_of_here_go_over_those_of_the_recording(
    variables: dict[str, str], state: str, tmp_path: Path
) -> None:
    data = recorded.read(CARD) | {"environ": {"ROCR_VISIBLE_DEVICES": ""}}
    path = tmp_path / "machine.json"
    path.write_text(json.dumps(data))
    done = probe("visible", "--for", "hip", "--machine", str(path), env=environment(**variables))
    assert done.stdout.splitlines()[1].split()[:3] == ["hip", state, "03:00.0"]


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"PK", "is no recorded machine: it is neither a recording in JSON nor a tar archive"),
        (b'{"schema": 1, "files": {"/../x": ""}, "origin": "invented"}', "'/../x' is not a plain"),
    ],
    ids=["zip", "path"],
)
def test_bad_file_is_a_usage_error(content: bytes, why: str, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    done = probe("--machine", str(path))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"probe: --machine: '{path}' is no recorded machine: ")
    assert why in done.stderr


def test_file_that_cannot_be_unpacked_or_read_is_told(tmp_path: Path) -> None:
    path = str(recorded.path(CARD))
    done = probe("--machine", f"{path}/x")
    assert done.stderr == f"probe: --machine {path}/x: Not a directory\n"
    assert done.returncode == 2


@pytest.mark.heavy
def test_interrupted_command_removes_what_it_unpacked(tmp_path: Path, temporary: Path) -> None:
    site = tmp_path / "site"
    site.mkdir()
    install(site, "slow", SLOW)
    started = tmp_path / "started"
    variables = {"TMPDIR": str(temporary), "STARTED": str(started)}
    command = argv("--json", "--machine", str(recorded.path(CARD)), "--timeout", "300")
    running = subprocess.Popen(
        command,
        env=environment(site, **variables),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    deadline = time.monotonic() + 50
    while not started.exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert len(os.listdir(temporary)) == 1
    running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=50)
    assert (running.returncode, out, err) == (130, b"", b"")
    assert os.listdir(temporary) == []
