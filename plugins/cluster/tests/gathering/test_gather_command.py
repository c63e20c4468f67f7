"""`probe cluster`: table, document, files, exit statuses, and what is refused."""

from __future__ import annotations

import asyncio
import copy
import io
import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from fake_engines import SRUN, SSH, Engines

from probe_cluster import Answer, ClusterError, Gathered, Limits, Target, gather
from probe_cluster.gathering import Files
from probe_cluster.gathering.document import document_lines, facts
from probe_cluster.gathering.folder import Folder
from probe_cluster.gathering.terminal import ProgressLine
from probe_core.cli import main

Home = dict[str, dict[str, Any]]


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")


@pytest.fixture
def files(home: Home, tmp_path: Path) -> list[str]:
    paths = []
    for name in ("desk", "twin", "rock"):
        path = tmp_path / f"{name}.json"
        path.write_text(json.dumps(home[name]))
        paths.append(str(path))
    return paths


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    status = main(["cluster", *arguments])
    printed = capsys.readouterr()
    return status, printed.out, printed.err


@pytest.mark.heavy
def test_files_are_one_table(capsys: pytest.CaptureFixture[str], files: list[str]) -> None:
    status, out, err = run(capsys, *files)
    assert (status, err) == (0, "")
    lines = out.splitlines()
    assert lines[0].split() == ["NODE", "STATUS", "GPUS", "USABLE", "MEMORY", "DRIVER", "DEVICES"]
    assert lines[2].split()[:6] == ["twin", "ok", "2", "2", "128.0", "GiB"]
    assert lines[2].endswith("2 × NVIDIA GeForce RTX 4090")
    assert lines[5].startswith("3 of 3 nodes answered in ")
    assert lines[5].endswith(" s: 4 GPUs, 3 usable, 1 unknown")


def test_a_gpu_of_unknown_readiness_is_not_counted_usable(
    capsys: pytest.CaptureFixture[str], home: Home, tmp_path: Path
) -> None:
    reports = {name: copy.deepcopy(home["twin"]) for name in ("none", "half")}
    gpus = [device for device in reports["none"]["devices"] if device["kind"] == "gpu"]
    gpus.append(next(device for device in reports["half"]["devices"] if device["kind"] == "gpu"))
    for device in gpus:
        device["readiness"] = {"state": "unknown", "broken": None, "steps": []}
    for name, report in reports.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(report))
    _, out, _ = run(capsys, *(str(tmp_path / f"{name}.json") for name in reports))
    lines = out.splitlines()
    assert [line.split()[2:4] for line in lines[1:3]] == [["2", "–"], ["2", "1"]]
    assert lines[4].endswith(" s: 4 GPUs, 1 usable, 3 unknown")


@pytest.mark.heavy
def test_the_document_has_all_nodes(
    capsys: pytest.CaptureFixture[str], files: list[str], home: Home, tmp_path: Path
) -> None:
    status, out, err = run(capsys, "--json", *files, str(tmp_path / "none.json"))
    assert (status, err) == (1, "")
    document = json.loads(out)
    assert list(document) == [
        *("schema", "collector", "complete", "problem", "seconds"),
        *("nodes", "links", "differences", "findings"),
    ]
    assert (document["schema"], document["collector"], document["complete"]) == (1, "files", False)
    assert list(document["nodes"]) == ["desk", "twin", "rock", "none"]
    desk = document["nodes"]["desk"]
    assert list(desk) == [
        "name",
        "status",
        "reason",
        "fix",
        "seconds",
        "engine",
        "sent",
        "basics",
        "report",
    ]
    assert desk["report"] == home["desk"]
    missing = document["nodes"]["none"]
    assert (missing["status"], missing["report"]) == ("missing", None)
    assert missing["reason"].endswith("none.json: No such file or directory")


@pytest.mark.heavy
def test_the_lines_are_one_document(files: list[str]) -> None:
    from probe_cluster.gathering import Files

    gathered = asyncio.run(gather(Files([*files, "none.json", "x=none.json"])))
    document = json.loads("\n".join(document_lines(gathered)))
    nodes = document.pop("nodes")
    reports = {id_: node.report() for id_, node in gathered.nodes.items() if node.text}
    assert len(reports) == len(files)
    assert nodes == {
        id_: {**facts(node), "report": reports.get(id_)} for id_, node in gathered.nodes.items()
    }
    others = {
        "schema": 1,
        "collector": "files",
        "complete": False,
        "problem": None,
        "seconds": round(gathered.seconds, 3),
        "links": [],
        "differences": gathered.differences(),
        "findings": [],
    }
    assert document == others
    empty = json.loads("\n".join(document_lines(Gathered("files"))))
    assert empty == {**others, "seconds": 0.0, "differences": [], "nodes": {}}


def test_a_file_that_is_too_long_or_not_there_costs_itself(tmp_path: Path) -> None:
    from probe_cluster.gathering import Files

    long, absent = tmp_path / "long.json", tmp_path / "absent.json"
    with open(long, "wb") as file:
        file.truncate((4 << 20) + 1)
    nodes = asyncio.run(gather(Files([str(long), str(absent)]))).nodes
    assert [(node.status, node.fix is not None) for node in nodes.values()] == [
        ("invalid", True),
        ("missing", True),
    ]
    reasons = [node.reason for node in nodes.values()]
    assert str(reasons[0]).startswith(f"{long}: ")
    assert reasons[1] == f"{absent}: No such file or directory"


def test_no_repr_holds_the_text_of_the_reports(files: list[str]) -> None:
    """`asyncio.run` makes the repr of its result, which was twice the size of all reports."""
    from probe_cluster.gathering import Files

    gathered = asyncio.run(gather(Files(files)))
    assert len(repr(gathered)) < 1000
    assert all(len(repr(node)) < 1000 for node in gathered.nodes.values())
    assert all(node.text for node in gathered.nodes.values())


def test_a_report_of_several_lines_is_one(
    capsys: pytest.CaptureFixture[str], home: Home, tmp_path: Path
) -> None:
    report = home["desk"] | {"node": home["desk"]["node"] | {"model": "Schreibtisch – groß"}}
    (tmp_path / "a.json").write_text(json.dumps(report, indent=2, ensure_ascii=False), "utf-8")
    _, out, _ = run(capsys, "--json", str(tmp_path / "a.json"))
    assert len(out.splitlines()) == 3
    assert out.isascii()
    assert json.loads(out)["nodes"]["a"]["report"]["node"]["model"] == "Schreibtisch – groß"


@pytest.mark.heavy
def test_each_report_is_a_file_that_topology_reads(
    capsys: pytest.CaptureFixture[str], engines: Engines, home: Home, tmp_path: Path
) -> None:
    engines.command("ssh", SSH)
    engines.report("desk", home["desk"])
    folder = tmp_path / "out" / "new"
    status, _, _ = run(capsys, "--hosts", "desk,me@desk,nokey", "--output", str(folder))
    assert status == 1
    assert sorted(os.listdir(folder)) == ["cluster.jsonl", "desk.json", "me@desk.json"]
    assert json.loads((folder / "desk.json").read_text()) == home["desk"]
    assert main(["topology", str(folder / "desk.json")]) == 0


@pytest.mark.parametrize("ending", ["", "\n", "\n \t"])
def test_a_gather_without_texts_keeps_the_summaries(
    ending: str, home: dict[str, Any], tmp_path: Path
) -> None:
    """Of 10,000 nodes the texts of the reports are a gigabyte, and a table needs none."""
    file, broken = tmp_path / "nas.json", tmp_path / "broken.json"
    file.write_text(json.dumps(home["nas"]) + ending)
    broken.write_text(json.dumps(home["nas"]) + "]")
    with_texts, without = (
        asyncio.run(gather(Files([str(file), str(broken)]), texts=texts)) for texts in (True, False)
    )
    assert without.nodes["nas"].text is None
    assert with_texts.nodes["nas"].text == json.dumps(home["nas"]).encode()
    assert without.nodes["nas"].summary == with_texts.nodes["nas"].summary is not None
    for gathered in (with_texts, without):
        assert [node.status for node in gathered.nodes.values()] == ["ok", "invalid"]
    with pytest.raises(ValueError, match="node 'nas' has no report: this gather kept no texts"):
        without.nodes["nas"].report()
    _, invalid = with_texts.nodes.values()
    assert invalid.reason
    with pytest.raises(ValueError, match="has no report") as caught:
        invalid.report()
    assert str(caught.value) == f"node {invalid.id!r} has no report: {invalid.reason}"


def test_names_of_nodes_are_no_paths(home: Home, tmp_path: Path) -> None:
    text = json.dumps(home["nas"]).encode()

    class Odd:
        name = "odd"

        async def targets(self) -> list[Target]:
            return [
                Target(id_)
                for id_ in ("../up", "n1/pod", ".hidden", "A", "a", "x" * 400, "é/", "节" * 100)
            ]

        async def collect(self, targets: Any, limits: Limits, sink: Any) -> None:
            for target in targets:
                sink.answer(Answer(target.id, "ok", text=text))

    folder = tmp_path / "deep"
    written = Folder(str(folder), "odd")
    asyncio.run(gather(Odd(), texts=False, arrived=written.take))
    assert written.problem is None
    assert sorted(os.listdir(tmp_path)) == ["deep"]
    paths = sorted(folder.glob("*.json"))
    assert sorted(path.name for path in paths) == sorted(
        [
            "_up.json",
            "n1_pod.json",
            "hidden.json",
            "A.json",
            "a-2.json",
            "x" * 200 + ".json",
            "é_.json",
            "节" * 66 + ".json",
        ]
    )
    assert stat.S_IMODE(paths[0].stat().st_mode) & 0o400


def test_many_nodes_share_rows(capsys: pytest.CaptureFixture[str], files: list[str]) -> None:
    many = [f"n{at}={files[1]}" for at in range(60)]
    status, out, _ = run(capsys, *many, f"odd={files[0]}")
    assert status == 0
    lines = out.splitlines()
    assert lines[1].startswith("n0, n1, n2, n3 and 56 more nodes")
    assert lines[2].startswith("odd")
    assert "61 of 61 nodes answered" in out


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "no nodes are named: FILE…, or one of --hosts, --slurm, --mpi, --kubectl, --ray"),
        (["--hosts", "a", "--mpi"], "name the nodes once"),
        (["--hosts", "a", "b.json"], "name the nodes once"),
        (["ssh://a", "b.json"], "name the nodes once"),
        (["--resume", "ssh://a"], "--resume belongs to --output"),
        (["--resume", "--output", "x", "b.json"], "--resume: files takes no list of nodes"),
        (["--namespace", "x", "b.json"], "belong to --kubectl"),
        (["--hosts", ","], "no host is in it"),
        (["--timeout", "soon", "b.json"], "--timeout soon: write seconds, 0.1 to 86400"),
        (["--overall", "nan", "b.json"], "--overall nan: write seconds"),
        (["--fanout", "0", "b.json"], "--fanout 0: write a number"),
        (["--probe", "'", "b.json"], "--probe ': No closing quotation"),
    ],
)
def test_what_makes_no_sense_is_refused(
    capsys: pytest.CaptureFixture[str], arguments: list[str], sentence: str
) -> None:
    status, out, err = run(capsys, *arguments)
    assert (status, out) == (2, "")
    assert sentence in err


def test_an_engine_that_fails_exits_with_one(
    capsys: pytest.CaptureFixture[str], engines: Engines
) -> None:
    engines.command("srun", SRUN)
    engines.setenv(FAKE_SRUN="refused")
    status, out, err = run(capsys, "--json", "--slurm", "-N", "2", "--json-of-srun")
    assert (status, out) == (1, "")
    assert err.startswith("probe cluster: srun ended with 1 before any node started: srun: error:")
    assert "-N 2 --json-of-srun" in engines.arguments("srun")


def test_a_folder_that_cannot_be_made_stops_before_any_node_is_asked(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, files: list[str]
) -> None:
    (tmp_path / "file").write_text("")
    status, out, err = run(capsys, *files, "--output", str(tmp_path / "file" / "out"))
    assert (status, out) == (1, "")
    assert "Not a directory" in err


def test_a_report_that_cannot_be_written_costs_its_own_file_alone(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, files: list[str]
) -> None:
    first, *others = [Path(file.partition("=")[2] or file).stem for file in files]
    folder = tmp_path / "out"
    (folder / f"{first}.json").mkdir(parents=True)
    status, out, err = run(capsys, "--json", *files, "--output", str(folder))
    assert status == 1
    assert set(json.loads(out)["nodes"]) == {first, *others}
    assert err.startswith(f"probe cluster: --output {folder}/{first}.json: ")
    written = {path.stem for path in folder.glob("*.json") if path.is_file()}
    assert written == set(others)


def test_a_collector_that_breaks_costs_its_nodes_alone(home: Home) -> None:
    class Broken:
        name = "acme"

        async def targets(self) -> list[Target]:
            return [Target("a"), Target("b")]

        async def collect(self, targets: Any, limits: Limits, sink: Any) -> None:
            sink.answer(Answer("a", "ok", text=json.dumps(home["nas"]).encode()))
            sink.answer(Answer("a", "failed", "a second answer does not count"))
            raise KeyError("x")

    gathered = asyncio.run(gather(Broken()))
    assert {id_: node.status for id_, node in gathered.nodes.items()} == {"a": "ok", "b": "failed"}
    assert gathered.problem == "acme: KeyError: 'x'"


@pytest.mark.heavy
def test_a_collector_that_hangs_is_bounded() -> None:
    class Hung:
        name = "acme"

        async def targets(self) -> list[Target]:
            return [Target("a")]

        async def collect(self, targets: Any, limits: Limits, sink: Any) -> None:
            await asyncio.sleep(60)

    gathered = asyncio.run(gather(Hung(), limits=Limits(overall=0.3)))
    assert gathered.nodes["a"].status == "timeout"

    class Mute(Hung):
        async def targets(self) -> list[Target]:
            await asyncio.sleep(60)
            return []

    with pytest.raises(ClusterError, match=r"acme did not list its nodes within 0\.3 s"):
        asyncio.run(gather(Mute(), limits=Limits(overall=0.3)))


def test_the_progress_line_names_who_is_waited_for_and_is_erased(files: list[str]) -> None:
    from probe_cluster.gathering import Files

    stream = io.StringIO()
    line = ProgressLine(stream)
    gathered = asyncio.run(gather(Files(files), progress=line))
    gathered.nodes["rock"].status = None
    line._due = 0.001
    line(gathered)
    line.erase()
    text = stream.getvalue()
    assert "2 of 3 nodes, 0 s, waiting for rock" in text
    assert text.endswith("\r\033[K")


def test_the_command_imports_no_asyncio_for_its_help() -> None:
    code = (
        "import sys; import probe_cluster.cluster_command, probe_cluster;"
        "print('asyncio' in sys.modules, 'dataclasses' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]
