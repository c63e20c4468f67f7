"""What a fix about NVIDIA's driver names: groups and modes of nodes, folders of libraries."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from probe_core.readiness.nvidia_fixes import (
    _cuda_fix,
    _cuda_folder,
    _fabric_manager,
    _nvidia_group,
    _nvidia_mode,
    _without,
)

NVIDIA: Any = {"vendor": "nvidia"}
STEP: Any = {"code": "no-permission", "step": "permission"}


def scene(**facts: Any) -> Any:
    process = SimpleNamespace(listed_groups=lambda: {"root": (0, True), "video": (44, False)})
    plain: dict[str, Any] = {
        "nvidia_params": {}, "nvidia_version": "", "environ": {}, "container": None,
        "process": process, "libraries": SimpleNamespace(find=lambda name: facts.get("paths", [])),
    }  # fmt: skip
    return SimpleNamespace(**plain | facts)


@pytest.mark.parametrize(
    ("gid", "mode", "group", "shown"),
    [
        ("44", None, "video", ""),
        ("44", "432", "video", ""),  # 0660
        ("44", "436", "video", ""),  # 0664
        ("44", "416", "", "0640"),
        ("45", "432", "45", ""),
        ("0", "432", "", "0660"),
        (None, "432", "", "0660"),
        (None, "438", "", ""),  # 0666
        (None, "384", "", "0600"),
        (None, "0", "", "0000"),
        (None, None, "", ""),
        ("x", "384", "", "0600"),
    ],
)
def test_who_may_open_the_nodes(gid: str | None, mode: str | None, group: str, shown: str) -> None:
    pairs = {"DeviceFileGID": gid, "DeviceFileMode": mode}
    params = {name: value for name, value in pairs.items() if value is not None}
    place = scene(nvidia_params=params)
    assert _nvidia_group(NVIDIA, STEP, place) == group
    assert _nvidia_mode(NVIDIA, STEP, place) == shown
    other: Any = {"vendor": "amd"}
    assert (_nvidia_group(other, STEP, place), _nvidia_mode(other, STEP, place)) == ("", "")


@pytest.mark.parametrize(
    ("version", "name"),
    [
        ("579.99", "nvidia-fabric-manager"),
        ("580.95.05", "nvidia-fabricmanager"),
        ("", "nvidia-fabric-manager"),
    ],
)
def test_the_fabric_managers_package(version: str, name: str) -> None:
    text = f"NVRM version: NVIDIA UNIX x86_64 Kernel Module  {version}  Tue\n"
    assert _fabric_manager(NVIDIA, STEP, scene(nvidia_version=text)) == name


@pytest.mark.parametrize(
    ("paths", "variable", "container", "folder", "fix"),
    [
        (
            ["/usr/local/cuda/compat/libcuda.so.1", "/usr/lib/libcuda.so.1"],
            "/usr/local/cuda/compat:/opt/x",
            None,
            "/usr/local/cuda/compat in LD_LIBRARY_PATH",
            (
                "take /usr/local/cuda/compat out of LD_LIBRARY_PATH"
                " (`export LD_LIBRARY_PATH=/opt/x`): the driver has a newer libcuda.so.1"
            ),
        ),
        (
            ["/usr/lib/libcuda.so.1"], "/opt/x", "docker", "cuda-compat",
            "take libcuda.so.1 out of the image: the host's is mounted",
        ),
        ([], "", None, "cuda-compat", "install libcuda.so.1 of the driver's version"),
    ],
)  # fmt: skip
def test_a_library_that_is_too_old(
    paths: list[str], variable: str, container: str | None, folder: str, fix: str
) -> None:
    place = scene(paths=paths, container=container, environ={"LD_LIBRARY_PATH": variable or "/z"})
    assert _cuda_folder(NVIDIA, STEP, place) == folder
    assert "".join(_cuda_fix(NVIDIA, STEP, place)) == fix


@pytest.mark.parametrize(
    ("variable", "command"),
    [
        (["/a"], "unset LD_LIBRARY_PATH"),
        (["/a/", ""], "unset LD_LIBRARY_PATH"),
        (["/b", "/a", "", "/c"], "export LD_LIBRARY_PATH=/b:/c"),
    ],
)
def test_a_folder_is_taken_out_of_the_variable(variable: list[str], command: str) -> None:
    assert "".join(_without("/a", variable)) == f"take /a out of LD_LIBRARY_PATH (`{command}`)"
