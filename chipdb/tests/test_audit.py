"""Somebody's own table beside ours: each disagreement is named with our figure and its source."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from probe_chipdb.__main__ import main
from probe_chipdb.database import Database
from probe_chipdb.tools.compare import Row, Unreadable, audit, rows

ACTION = Path(__file__).parents[1] / "action" / "action.yml"
TABLE = {
    "NVIDIA H100 80GB HBM3": 989.5,
    "l40": 121,  # the L4's
    "RTX 5090 Laptop GPU": 209.5,  # the desktop card's
    "RTX 4090 Laptop GPU": 60,  # inside the range
    "A100": 312,
    "Some GPU 9000": 1,
    "NVIDIA H100 96GB": 1000,
}


def kinds(db: Database, table: dict[str, float]) -> dict[str, str]:
    lines = [Row(name, value) for name, value in table.items()]
    return {v.row.name: v.kind for v in audit(db, lines, "bf16", "dense", "matrix", 0.03)}


def test_verdicts(real: Database) -> None:
    verdicts = kinds(real, TABLE)
    assert verdicts.pop("NVIDIA H100 96GB") in ("no figure", "agrees", "differs")  # data may grow
    assert verdicts == {
        "NVIDIA H100 80GB HBM3": "agrees",
        "l40": "differs",
        "RTX 5090 Laptop GPU": "differs",
        "RTX 4090 Laptop GPU": "agrees",
        "A100": "agrees",
        "Some GPU 9000": "unknown",
    }


def test_a_disagreement_names_the_line_our_figure_and_its_source(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    path = tmp_path / "peaks.json"
    path.write_text(json.dumps({"L40S": 121, "L4": 121}, indent=1))
    assert main(["audit", str(path)]) == 1
    line, summary = capsys.readouterr().out.splitlines()
    assert line.startswith(
        f"{path}:2: differs: L40S: 121 TFLOPS, but dense bf16.matrix.fp32 is nvidia/l40s: 366.4 "
        "TFLOPS (142 SM x 1024 op/clk"
    )
    assert "[" in line  # the documents' keys
    assert summary == "1 agrees, 1 differs, 0 unknown, 0 no figure"
    path.write_text(json.dumps({"L4": 121}))
    assert main(["audit", str(path)]) == 0


@pytest.mark.parametrize(
    ("name", "text", "options"),
    [
        ("t.json", '{"gpus": {"NVIDIA L4": {"tflops": 121, "memory": [24]}}}', {}),
        ("t.json", '[{"gpu": "NVIDIA L4", "tflops": 121}, {"gpu": "x"}, 3]', {}),
        ("t.json", '{"NVIDIA L4": 121e12}', {"scale": 1e-12}),
        ("t.csv", "name,tflops\nNVIDIA L4,121\nNVIDIA L40,\n", {}),
        ("t.tsv", "card\tbf16 peak\nNVIDIA L4\t121\n",
         {"name_column": "card", "value_column": "bf16 peak"}),
        ("t.toml", '[peaks]\n"NVIDIA L4" = 121\n', {}),
    ],
)  # fmt: skip
def test_forms_of_tables(tmp_path: Path, name: str, text: str, options: dict[str, object]) -> None:
    path = tmp_path / name
    path.write_text(text)
    (row,) = rows(str(path), **options)  # type: ignore[arg-type]
    assert (row.name, row.tflops, row.line > 0) == ("NVIDIA L4", 121, True)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("t.json", "{"), ("t.json", "[" * 100_000), ("t.json", "3"), ("t.json", '{"a": null}'),
        ("t.json", '{"NVIDIA L4": 1e999, "b": -1, "c": true}'), ("t.toml", "a = "), ("t.csv", ""),
        ("t.csv", "a,b\n1,2\n"), ("t.py", "peaks = {}"), ("t.json", '{"a": ' + "9" * 5000 + "}"),
    ],
)  # fmt: skip
def test_what_is_no_table_is_refused_in_a_sentence(
    tmp_path: Path, name: str, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(Unreadable):
        rows(str(path))
    assert main(["audit", str(path)]) == 2
    assert capsys.readouterr().err.startswith(f"probe_chipdb: {path}")


def test_the_action_runs_the_audit_and_annotates_the_line(tmp_path: Path) -> None:
    """The step's own script, with the inputs as GitHub hands them over."""
    action = yaml.safe_load(ACTION.read_text())
    install, step = action["runs"]["steps"]
    assert 'pip install --quiet "probe-chipdb' in install["run"]
    inputs = {name: entry.get("default", "") for name, entry in action["inputs"].items()}
    inputs["table"] = "peaks.json"
    (tmp_path / "peaks.json").write_text(json.dumps({"NVIDIA L4": 121, "L40": 121}, indent=1))
    environment = {
        name: inputs[value.removeprefix("${{ inputs.").removesuffix(" }}")]
        for name, value in step["env"].items()
    }
    python = tmp_path / "bin"
    python.mkdir()
    (python / "python3").symlink_to(sys.executable)
    source = Path(__file__).parents[1] / "src"
    done = subprocess.run(
        ["bash", "-e", "-c", step["run"]],
        env={
            **environment,
            "PATH": f"{python}:{os.environ['PATH']}",
            "PYTHONPATH": str(source),
            "GITHUB_ACTIONS": "true",
        },
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 1, done.stderr
    assert done.stdout.startswith("::error file=peaks.json,line=3::L40: 121 TFLOPS, but dense")
    assert set(environment) >= {"TABLE", "DTYPE", "WITHIN"}


def test_what_is_no_number_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "t.json"
    path.write_text('{"NVIDIA L4": 121,\n"NVIDIA B200": null, "H200": "abc", "licence": "MIT"}')
    assert main(["audit", str(path)]) == 0
    *lines, summary = capsys.readouterr().out.splitlines()
    fault = "the table has no positive number there"
    assert lines == [
        f"{path}:2: no number: NVIDIA B200: {fault}",
        f"{path}:2: no number: H200: {fault}",
    ]
    assert summary == "1 agrees, 0 differs, 0 unknown, 0 no figure, 2 no number"


@pytest.mark.parametrize("command", ["audit", "stale"])
def test_a_device_is_no_table(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    main([command, "/dev/zero"])
    out, err = capsys.readouterr()
    assert "/dev/zero is no regular file; save it to one" in out + err


@pytest.mark.heavy
def test_a_table_of_too_many_rows_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_text(json.dumps({f"x{at}": at + 1 for at in range(20_001)}))
    with pytest.raises(Unreadable, match="more than 20000 rows"):
        rows(str(path))


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('a\n"RTX 4090 D"\n"RTX 4090"\n', 3),
        ("RTX 4090 D", 1),
        ("a\nRTX 4090", 2),
        ("\nRTX 4090", 2),
        ("a", 0),
        ("", 0),
    ],
)
def test_the_line_of_a_row_is_that_of_the_name_alone(text: str, line: int) -> None:
    assert Row("RTX 4090", None, text).line == line
