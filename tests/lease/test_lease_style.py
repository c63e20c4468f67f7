"""What `probe exec` sets is what the command can read; layouts start without counted indices."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from lease_node import ROOT, Node, gpu
from test_lease_keeper import first_line

from probe_core.leasing import SelectionError, lease
from probe_core.pipeline.refresh import refresh
from probe_core.selection.environment import confine, selector_changes, style_for
from probe_core.selection.interpreter import installed, interpreter_of, site_folders, versions


def uuid(slot: int) -> str:
    return f"GPU-0000000{slot}-0000-0000-0000-00000000000{slot}"


@pytest.mark.parametrize(
    ("command", "style"),
    [
        (["vllm", "serve", "m"], "index"),
        (["/opt/venv/bin/vllm", "serve"], "index"),
        (["python", "-m", "vllm.entrypoints.openai.api_server"], "index"),
        (["uv", "run", "deepspeed", "train.py"], "index"),
        (["python3", "-m", "openrlhf.cli.train_ppo_ray"], "index"),
        (["ray", "start", "--head"], "index"),
        (["python", "train.py", "--name", "vllm-like"], "uuid"),
        (["exo"], "uuid"),
        ([], "uuid"),
    ],
)
def test_the_style_follows_the_command(command: list[str], style: str) -> None:
    assert style_for("auto", command) == style
    assert style_for("uuid", command) == "uuid"
    assert style_for("index", command) == "index"


def fake(
    folder: Path, name: str, text: str = "#!/bin/sh\nexec printenv CUDA_VISIBLE_DEVICES\n"
) -> str:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return str(path)


@pytest.mark.heavy
def test_vllm_gets_numbers_in_pci_order(node: Node, tmp_path: Path) -> None:
    vllm = fake(tmp_path, "vllm")
    assert node.run("exec", "--device", "1", "--", vllm).stdout.strip() == "1"
    assert node.run("exec", "--device", "1", "--style", "uuid", "--", vllm).stdout.strip() == uuid(
        2
    )
    words = ("--", "printenv", "CUDA_VISIBLE_DEVICES")
    assert node.run("exec", "--device", "1,0", "--style", "index", *words).stdout.strip() == "1,0"
    limited = node.run("exec", "--", vllm, CUDA_VISIBLE_DEVICES=uuid(2))
    assert limited.stdout.strip() == "1", "counted among all, as the variable is replaced"
    assert node.run("exec", "--style", "name", "--", "true").returncode == 2


def test_mig_instances_have_uuids_in_every_style(tmp_path: Path) -> None:
    card = gpu(1)
    part = gpu(2) | {"id": "uuid:MIG-1", "ids": ["uuid:MIG-1"], "parent": card["id"]}
    part |= {"extra": {"gpu_instance": 1, "compute_instance": 0}}
    node = Node(tmp_path, 2, [card, part])
    words = ("--style", "index", "--", "printenv", "CUDA_VISIBLE_DEVICES")
    assert node.run("exec", *words).stdout.strip() == "MIG-1"


def amd(slot: int) -> dict[str, Any]:
    device = gpu(slot, vendor="amd", name="AMD Instinct MI300X", node_index={"kfd": slot})
    device["driver"] = {"name": "amdgpu", "version": None}
    device["ids"] = [device["id"], f"uuid:{slot:016x}"]
    return device


def confined(
    devices: list[dict[str, Any]], chosen: list[int], environ: Mapping[str, str], style: str
) -> dict[str, str | None]:
    document: Any = {"devices": devices, "primary": devices[0]["id"], "node": {"os": "linux"}}
    refresh(document, dict(environ))
    return confine(document, [document["devices"][at] for at in chosen], environ, style=style)


def test_ray_finds_no_rocr_variable_and_the_numbers_of_all() -> None:
    changes = confined([amd(1), amd(2), amd(3)], [1, 2], {}, "index")
    assert "ROCR_VISIBLE_DEVICES" not in changes
    assert changes["HIP_VISIBLE_DEVICES"] == changes["GPU_DEVICE_ORDINAL"] == "1,2"
    by_uuid = confined([amd(1), amd(2), amd(3)], [1, 2], {}, "uuid")
    assert by_uuid["ROCR_VISIBLE_DEVICES"] is not None
    assert by_uuid["HIP_VISIBLE_DEVICES"] == "0,1"


def test_a_limit_of_rocr_is_not_lifted_for_ray() -> None:
    outer = {"ROCR_VISIBLE_DEVICES": "0,1"}
    changes = confined([amd(1), amd(2), amd(3)], [1], outer, "index")
    assert changes["ROCR_VISIBLE_DEVICES"] is not None
    assert changes["HIP_VISIBLE_DEVICES"] == "0"


def intel(slot: int) -> dict[str, Any]:
    device = gpu(slot, vendor="intel", name="Intel Arc B580")
    device["driver"] = {"name": "xe", "version": None}
    return device


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("level_zero:1", "level_zero:0"),
        ("level_zero:7", "level_zero:99"),  # it saw nothing
        ("cuda:0", "level_zero:99"),  # no CUDA here: empty would mean all
        ("opencl:0", "level_zero:99"),  # the masks shift OpenCL's numbers
        ("opencl:fpga;level_zero:1", "level_zero:0;opencl:fpga"),
        ("opencl:gpu;level_zero:1", "level_zero:0;opencl:gpu"),
        ("*:1", "level_zero:0"),
        ("opencl:cpu;level_zero:0;!opencl:gpu", "level_zero:99;opencl:cpu;!opencl:gpu"),
        ("!level_zero:0", "level_zero:0;opencl:*"),
        ("level_zero:gpu", None),
        ("level_zero:1:1", None),  # SYCL throws: it stays as it is
    ],
)
def test_a_sycl_selector_is_never_widened(before: str, after: str | None) -> None:
    devices: Any = [intel(1), intel(2)]
    environ = {"ONEAPI_DEVICE_SELECTOR": before}
    masked = {**environ, "ZE_AFFINITY_MASK": "1"}
    changes = selector_changes(devices, environ, masked)
    assert changes.get("ONEAPI_DEVICE_SELECTOR") == after


def venv(folder: Path, *distributions: str) -> str:
    """Make what a virtual environment is made of; return its Python."""
    python = Path(fake(folder, "bin/python", "#!/bin/sh\n"))
    (folder / "pyvenv.cfg").write_text("include-system-site-packages = false\n")
    for name in distributions:
        (folder / "lib/python3.12/site-packages" / f"{name}.dist-info").mkdir(parents=True)
    return str(python)


def test_the_commands_own_interpreter_is_found(tmp_path: Path) -> None:
    python = venv(tmp_path / "venv")
    script = fake(tmp_path, "script", f"#!{python} -I\n")
    by_env = fake(tmp_path, "by-env", "#!/usr/bin/env -S python3 -u\n")
    shell = fake(tmp_path, "shell", "#!/bin/sh\n")
    on_path = fake(tmp_path / "path", "python3", "#!/bin/sh\n")
    environ = {"PATH": str(tmp_path / "path")}
    assert interpreter_of([python, "x.py"], environ) == python
    assert interpreter_of([script], environ) == python
    for other in (by_env, shell, "/bin/true", "no-such-command"):
        assert interpreter_of([other], environ) == on_path
    assert interpreter_of(["/bin/true"], {"PATH": "/nowhere"}) is None
    running = {**environ, "VIRTUAL_ENV": str(tmp_path / "venv")}
    assert interpreter_of(["uv", "run", "train.py"], running) == python


@pytest.mark.parametrize("version", ["0.9.2", "0.11.0", "0.12.0", "0.14.0"])
def test_tinygrads_version_is_that_of_the_commands_python(
    version: str, node: Node, tmp_path: Path
) -> None:
    python = venv(tmp_path / "venv", f"tinygrad-{version}", "torch-2.9.0+cpu")
    assert versions([python], {}) == {"tinygrad": version}
    assert installed(("torch",), site_folders(python, {})) == {"torch": "2.9.0+cpu"}
    script = fake(tmp_path, "run", f"#!{python}\n")
    lines = node.run("exec", "--device", "1", "--dry-run", "--", script).stdout.splitlines()
    names = {line.split()[1].partition("=")[0] for line in lines}
    own = {"DEV", "HCQ_VISIBLE_DEVICES", "VISIBLE_DEVICES"} & names
    expected = {"0.12.0": "HCQ_VISIBLE_DEVICES", "0.14.0": "DEV"}
    assert own == {expected.get(version, "VISIBLE_DEVICES")}


def test_a_broken_script_or_folder_is_no_interpreter(tmp_path: Path) -> None:
    odd = fake(tmp_path, "odd", "#!\n\xff")
    assert interpreter_of([odd], {"PATH": ""}) is None
    assert site_folders("/no/such/bin/python9", {"PYTHONPATH": "/no/such/folder"})[:1] == [
        "/no/such/folder"
    ]
    assert installed(("x",), ["/no/such/folder"]) == {}


def four(folder: Path) -> Node:
    return Node(folder, 4)


def test_all_instances_of_a_layout_start_with_their_own_devices(tmp_path: Path) -> None:
    node = four(tmp_path)
    script = "echo $PROBE_INSTANCE of $PROBE_INSTANCES: $CUDA_VISIBLE_DEVICES; exit $PROBE_INSTANCE"
    done = node.run("exec", "--layout", "2X2", "--all", "--", "sh", "-c", script)
    assert done.returncode == 1, "that of the one that failed"
    assert sorted(done.stdout.splitlines()) == [
        f"0 of 2: {uuid(1)},{uuid(2)}",
        f"1 of 2: {uuid(3)},{uuid(4)}",
    ]


def test_a_dry_run_prints_what_each_instance_of_a_layout_would_get(tmp_path: Path) -> None:
    done = four(tmp_path).run("exec", "--layout", "2x2", "--all", "--dry-run")
    of_interest = ("# process", "export CUDA_VISIBLE_DEVICES", "export PROBE_")
    name = "NVIDIA H100 80GB HBM3"
    assert [line for line in done.stdout.splitlines() if line.startswith(of_interest)] == [
        f"# process 0: pci:0000:01:00.0 ({name}), pci:0000:02:00.0 ({name})",
        f"export CUDA_VISIBLE_DEVICES={uuid(1)},{uuid(2)}",
        "export PROBE_INSTANCE=0",
        "export PROBE_INSTANCES=2",
        f"# process 1: pci:0000:03:00.0 ({name}), pci:0000:04:00.0 ({name})",
        f"export CUDA_VISIBLE_DEVICES={uuid(3)},{uuid(4)}",
        "export PROBE_INSTANCE=1",
        "export PROBE_INSTANCES=2",
    ]


def test_all_instances_are_ended_together(tmp_path: Path) -> None:
    node = four(tmp_path)
    process = node.start(
        "exec", "--layout", "4x1", "--all", "--", "sh", "-c", "echo; exec sleep 60"
    )
    for _ in range(4):
        first_line(process)
    process.terminate()
    assert process.wait(timeout=20) == -15
    assert process.stdout is not None
    process.stdout.close()
    assert node.held() == []


def test_the_next_free_instance_is_taken(tmp_path: Path) -> None:
    node = four(tmp_path)
    words = ("exec", "--layout", "2x2", "--index", "next", "--", "sh", "-c")
    script = "echo $CUDA_VISIBLE_DEVICES; exec sleep 60"
    started = [node.start(*words, script) for _ in range(2)]
    devices = {first_line(process) for process in started}
    assert devices == {f"{uuid(1)},{uuid(2)}", f"{uuid(3)},{uuid(4)}"}
    refused = node.run(*words, "true")
    assert refused.returncode == 3
    assert "the next free group: not free" in refused.stderr
    for process in started:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


@pytest.mark.parametrize(
    ("words", "status", "part"),
    [
        (("--layout", "2x2"), 2, "--index next"),
        (("--layout", "2x2", "--all", "--index", "0"), 2, "exclude each other"),
        (("--all",), 2, "belong together"),
        (("--layout", "2x2", "--index", "-1"), 2, "--index"),
        (("--layout", "4", "--all"), 2, "write it as 4x2"),
        (("--layout", "5x1", "--all"), 3, "ask for 4"),
        (("--device", "H100"), 3, "H100 is a model, not a device: --device 0,1,2,3, or --gpus 4"),
        (("--device", "hip:0"), 2, "--for hip"),
        (("--device", "3-1"), 2, "write the smaller number first"),
        (("--device", "0-7"), 3, "there is no number 4"),
    ],
)
def test_other_spellings_are_answered(
    words: tuple[str, ...], status: int, part: str, tmp_path: Path
) -> None:
    done = four(tmp_path).run("exec", *words, "--", "true")
    assert (done.returncode, done.stdout) == (status, "")
    assert part in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("written", "slots"),
    [("cuda:1", (2,)), ("cuda:0,cuda:2", (1, 3)), ("1-3", (2, 3, 4)), ("GPU:0", (1,)),
     ("cuda:0-1", (1, 2)), ("3,0-1", (4, 1, 2))],
)  # fmt: skip
def test_other_spellings_are_understood(
    written: str, slots: tuple[int, ...], tmp_path: Path
) -> None:
    words = ("--device", written, "--", "printenv", "CUDA_VISIBLE_DEVICES")
    done = four(tmp_path).run("exec", *words)
    assert done.stdout.strip() == ",".join(uuid(slot) for slot in slots)


def test_findings_are_shown_before_the_command_starts(node: Node) -> None:
    def finding(severity: str, device: str | None, what: str) -> dict[str, Any]:
        return {
            "code": "call-error", "severity": severity, "what": what, "why": "because",
            "fix": "mend it", "device": device,
        }  # fmt: skip

    node.document["findings"] = [
        finding("error", None, "prober acme failed"),
        finding("warning", "pci:0000:01:00.0", "its link is narrow"),
        finding("warning", "pci:0000:02:00.0", "another device is hot"),
        finding("info", None, "a remark"),
    ]
    report = Path(node.environ["PROBE_STATIC"])
    report.write_text(json.dumps(node.document))
    done = node.run("exec", "--device", "0", "--", "true")
    assert done.returncode == 0
    assert done.stderr.splitlines() == [
        "error: prober acme failed", "  why: because", "  fix: mend it",
        "warning: its link is narrow", "  why: because", "  fix: mend it",
    ]  # fmt: skip
    refused = node.run("exec", "--gpus", "9", "--", "true")
    assert refused.stderr.startswith("error: prober acme failed")


def test_an_unusable_report_is_told(node: Node) -> None:
    Path(node.environ["PROBE_STATIC"]).write_text("{")
    # Without the bus, which would show the GPUs of the computer itself.
    done = node.run("exec", "--", "true", PROBE_DISABLE="bus")
    assert done.returncode == 3
    assert "error: " in done.stderr
    assert "the static report" in done.stderr.splitlines()[0]


def test_python_callers_choose_a_style(node: Node) -> None:
    document: Any = dict(node.document)
    refresh(document, {})
    own = {"PROBE_LEASES": str(node.leases)}
    with lease(1, report=document, environ=own, style="auto", command=["vllm"]) as held:
        assert held.environ["CUDA_VISIBLE_DEVICES"] == "0"
    with lease(None, "2x1", index="next", report=document, environ=own) as held:
        assert held.ids == ["pci:0000:01:00.0"]


def test_a_group_of_a_layout_is_taken_by_its_number(node: Node) -> None:
    document: Any = dict(node.document)
    refresh(document, {})
    own = {"PROBE_LEASES": str(node.leases)}
    with lease(None, "2x1", index=1, report=document, environ=own) as held:
        assert held.ids == ["pci:0000:02:00.0"]
    for index in (-1, 2):
        with pytest.raises(SelectionError) as caught:
            lease(None, "2x1", index=index, report=document, environ=own)
        assert caught.value.code == "unknown"
        assert f"the layout 2x1 has no group {index}" in str(caught.value)
        assert "an index from 0 to 1" in str(caught.value)


def test_sound_lines_need_no_argparse(node: Node) -> None:
    code = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
from probe_core.cli import main
from probe_core.leasing import keeper
def seen():
    slow = {{"argparse", "gettext", "locale", "signal", "subprocess", "inspect", "contextlib"}}
    print(sorted(slow & set(sys.modules)), file=sys.stderr)
    return False
keeper.can_keep = seen
main(["exec", "-n", "1", "--wait", "--", "true"])
"""
    done = subprocess.run(
        [sys.executable, "-S", "-E", "-c", code],
        env=node.environ,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == "[]\n"
