"""`probe report` as a command: what it writes where, and one sentence for each mistake."""

from __future__ import annotations

import json
import os
import pty
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import recorded
from command import probe_here
from report_nodes import DGX, probed

from probe_core.testing import Tree
from probe_report.cluster import members_of

MACHINE = str(recorded.path("rock-5b--mali-g610-and-rk3588-npu"))
PROBE = [sys.executable, "-m", "probe_core", "report"]
UUID = "a1000000-0000-4000-8000-000000000003"


def run(*words: str, env: Any = None) -> subprocess.CompletedProcess[str]:
    return probe_here("report", *words, env=env or os.environ)


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report with what a page leaves out."""
    folder = tmp_path_factory.mktemp("report")
    document = probed(DGX, folder, "dgx-h100--8x-nvidia-h100-80gb-hbm3")
    document["node"] |= {"host": "node-of-alice", "id": "f" * 32}
    document["devices"][0]["extra"] = {"board_serial": "1652922012345", "user": "alice"}
    document["outcomes"][0]["stderr"] = ["alice@node-of-alice wrote /home/alice/.cache/x"]
    path = folder / "report.json"
    path.write_text(json.dumps(document))
    return path


def test_a_page_is_written_whole_and_alone(tmp_path: Path) -> None:
    path, link = tmp_path / "report.html", tmp_path / "link"
    link.symlink_to(path.name)
    for name in (path, link):  # new, then replaced through the link
        done = run("-o", str(name), "--machine", MACHINE)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    text = path.read_text("utf-8")
    assert text.startswith("<!doctype html>")
    assert text.rstrip().endswith("</html>")
    assert sorted(os.listdir(tmp_path)) == ["link", "report.html"]
    assert os.readlink(link) == path.name


def test_text_and_html_go_to_standard_output() -> None:
    text = run("--text", "--machine", MACHINE)
    assert (text.returncode, text.stderr) == (0, "")
    assert text.stdout.startswith("Rockchip RK3588 Mali-G610 MP4 and")
    page = run("-o", "-", "--machine", MACHINE)
    assert (page.returncode, page.stderr) == (0, "")
    assert page.stdout.startswith("<!doctype html>")


def test_text_for_a_terminal_in_ascii_is_ascii() -> None:
    env = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    done = run("--text", "--machine", MACHINE, env=env)
    assert done.returncode == 0
    assert done.stdout.isascii()
    assert "2 x " not in done.stdout
    assert " | " in done.stdout


def test_a_page_is_none_of_whose_computer_it_is(report: Path) -> None:
    page = run("--static", str(report)).stdout
    for secret in (UUID, UUID[:8], "alice", "1652922012345", "f" * 32):
        assert secret not in page, secret
    assert "GPU-1" in page  # numbered, so that devices stay apart
    assert "UUIDs are numbered" in page


def test_private_includes_them(report: Path) -> None:
    page = run("--private", "--static", str(report)).stdout
    for secret in (UUID, "node-of-alice", "1652922012345", "f" * 32):
        assert secret in page, secret
    assert "With --private: it may hold UUIDs" in page


def test_private_asks_for_the_name_of_the_host(tmp_path: Path) -> None:
    Tree(tmp_path).file("/proc/sys/kernel/hostname", "node-of-alice\n")
    pages = [
        run("--text", *options, "--machine", str(tmp_path)).stdout
        for options in ([], ["--private"], ["--private", "--no-hostname"])
    ]
    assert ["node-of-alice" in page for page in pages] == [False, True, False]


def test_one_device_alone(report: Path) -> None:
    text = run("--text", "--device", "43:00.0", "--static", str(report)).stdout
    assert text.startswith("NVIDIA H100 80GB HBM3: ")
    assert "1 of 11 devices, chosen with --device." in text


def test_several_nodes_by_place_or_by_the_name_that_was_typed(report: Path) -> None:
    files = [str(report), f"desk={report}"]
    text = run("--text", "--cluster", *files).stdout
    assert text.startswith("2 nodes: ")
    assert "\nnode 1: 8 × NVIDIA H100" in text
    assert "\ndesk: 8 × NVIDIA H100" in text
    private = run("--text", "--private", "--cluster", *files).stdout
    assert "\nreport: 8 × NVIDIA H100" in private


def cluster_document(report: Path) -> dict[str, Any]:
    return {
        "schema": 1,
        "nodes": {
            "gpu-node-17": {"name": "gpu-node-17", "status": "ok", "reason": None,
                            "report": json.loads(report.read_text())},
            "gpu-node-18": {"name": "gpu-node-18", "status": "timeout",
                            "reason": "gpu-node-18 did not answer", "report": None},
        },
        "differences": [
            {"code": "driver", "severity": "warning", "nodes": ["gpu-node-17"],
             "field": "driver", "expected": "580", "what": "gpu-node-17 has driver 570",
             "why": None, "fix": None},
        ],
    }  # fmt: skip


@pytest.mark.parametrize("private", [False, True])
def test_what_is_said_of_nodes_and_their_differences(
    private: bool, report: Path, tmp_path: Path
) -> None:
    """Names, and sentences that hold them, with --private alone."""
    document = cluster_document(report)
    document["nodes"] |= {"odd": 3, "bare": {"report": None}}
    document["differences"] += [{"field": "model", "what": "of all", "why": "w", "fix": "f"}, 7]
    path = tmp_path / "cluster.json"
    path.write_text(json.dumps(document))
    files = [str(path), str(report), f"desk={report}"]
    members, differences = members_of(files, private=private, prepare=lambda found: found)
    names = [(member.name, member.reason) for member in members]
    if private:
        assert names[:2] == [("gpu-node-17", ""), ("gpu-node-18", "gpu-node-18 did not answer")]
    else:
        assert names[:2] == [("node 1", ""), ("node 2", "timeout")]
    assert names[2:4] == [("node 3", "no report"), ("node 4", "no report")]
    assert names[4:] == [("report" if private else "node 5", ""), ("desk", "")]
    assert [member.report is None for member in members] == [False, True, True, True, False, False]
    first, second = differences
    assert (first.severity, first.mark, first.code) == ("warning", "!", "driver")
    assert (second.severity, second.mark, second.code) == ("info", "i", "")
    assert (first.beyond, first.evidence) == (0, "")
    found = [(each.sentences, each.cause, each.fix) for each in differences]
    if private:
        assert found == [(("gpu-node-17 has driver 570",), "", ""), (("of all",), "w", "f")]
    else:
        plain = "1 node unlike the others: driver", "0 nodes unlike the others: model"
        assert found == [((plain[0],), "the others have 580", ""), ((plain[1],), "", "")]


def test_the_document_of_a_cluster_is_several_nodes(report: Path, tmp_path: Path) -> None:
    path = tmp_path / "cluster.json"
    path.write_text(json.dumps(cluster_document(report)))
    text = run("--text", "--cluster", str(path)).stdout
    assert text.startswith("2 nodes: ✕ 1 of 2 nodes needs a look")
    assert "! warning: 1 node unlike the others: driver" in text
    assert "the others have 580" in text
    assert "timeout" in text
    assert "gpu-node" not in text
    private = run("--cluster", str(path), "--private").stdout
    for words in ("gpu-node-17 has driver 570", "gpu-node-18 did not answer"):
        assert words in private


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("{", "no report; give files of `probe --json` or `probe cluster --json`"),
        ("[1]", "no report; give files of `probe --json` or `probe cluster --json`"),
        ('{"schema": 2, "devices": []}', "it is no report of schema 1"),
        ('{"schema": 1, "devices": []}', "it has no devices"),
        ('{"nodes": 3}', "no report; give files of `probe --json` or `probe cluster --json`"),
        ("[" * 100_000, "no report; give files of `probe --json` or `probe cluster --json`"),
        ('{"schema": NaN}', "no report; give files of `probe --json` or `probe cluster --json`"),
    ],
    ids=["broken", "list", "schema", "empty", "nodes", "deep", "nan"],
)
def test_a_file_of_a_cluster_that_is_no_report_is_named(
    content: str, sentence: str, tmp_path: Path
) -> None:
    path = tmp_path / "a.json"
    path.write_text(content)
    done = run("-o", str(tmp_path / "out.html"), "--cluster", str(path))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"probe report: --cluster {path}: {sentence}\n"
    assert os.listdir(tmp_path) == ["a.json"]


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    done = run("--cluster", str(tmp_path / "x.json"))
    path = tmp_path / "x.json"
    assert done.stderr == f"probe report: --cluster {path}: No such file or directory\n"
    assert done.returncode == 2


def test_a_page_that_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    for path, reason in (
        (tmp_path / "absent" / "x.html", "No such file or directory"),
        (tmp_path / "folder", "Is a directory"),
    ):
        done = run("-o", str(path), "--machine", MACHINE)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr == f"probe report: {path} cannot be written: {reason}\n"
    assert os.listdir(tmp_path) == ["folder"]


@pytest.mark.heavy
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a system without /dev/full")
def test_a_full_disk_is_a_sentence_and_no_device_is_replaced() -> None:
    done = run("-o", "/dev/full", "--machine", MACHINE)
    sentence = "/dev/full cannot be written: No space left on device"
    assert (done.returncode, done.stderr) == (2, f"probe report: {sentence}\n")
    assert stat.S_ISCHR(os.stat("/dev/full").st_mode)
    with open("/dev/full", "w") as full:
        piped = subprocess.run(
            [*PROBE, "--machine", MACHINE], stdout=full, stderr=subprocess.PIPE, check=False
        )
    assert piped.returncode == 1
    assert piped.stderr.count(b"\n") == 1


@pytest.mark.heavy
def test_a_closed_pipe_ends_quietly() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [*PROBE, "--machine", MACHINE], stdout=writer, stderr=subprocess.PIPE, check=False
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, b"")


def test_a_terminal_is_asked_for_a_file() -> None:
    main, terminal = pty.openpty()
    done = subprocess.run(
        [*PROBE, "--machine", MACHINE], stdout=terminal, stderr=subprocess.PIPE, check=False
    )
    os.close(terminal)
    os.close(main)
    sentence = b"a terminal shows no HTML; name a file (-o report.html), or use --text\n"
    assert (done.returncode, done.stderr) == (2, b"probe report: " + sentence)


def test_a_device_that_is_not_there_is_named(report: Path) -> None:
    done = run("--device", "rtx", "--static", str(report))
    assert (done.returncode, done.stdout) == (2, "")
    begin = "probe report: --device rtx: no device has this id or name; there are: pci:0000:1b:00.0"
    assert done.stderr.startswith(begin)


def test_device_and_cluster_exclude_each_other(report: Path) -> None:
    done = run("--device", "x", "--cluster", str(report))
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
