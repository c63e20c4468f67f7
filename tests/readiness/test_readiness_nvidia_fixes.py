"""What a fix about NVIDIA's driver names: groups and modes of nodes, folders of libraries."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from probe_core.readiness.nvidia_fixes import (
    _cuda_fix,
    _cuda_folder,
    _empty_library,
    _fabric_manager,
    _libcuda_fix,
    _nvidia_group,
    _nvidia_mode,
    _stub,
    _stub_alone,
    _stub_out,
    _without,
    legacy_branch,
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


STUB = "/usr/local/cuda/lib64/stubs/libcuda.so.1"
REAL = "/usr/lib/libcuda.so.1"


def loader(*paths: str, empty: str = "", **facts: Any) -> Any:
    """Return a scene whose loader finds these paths, for any library."""
    libraries = SimpleNamespace(
        find=lambda name: [path.replace("libcuda.so.1", name) for path in paths],
        stub=lambda path: "stubs" in path or "linked" in path,
        head=lambda path: b"" if path == empty else b"ELF",
    )
    return scene(libraries=libraries, **facts)


@pytest.mark.parametrize(
    ("paths", "expected"),
    [
        ([], ("", "")),
        ([REAL, STUB], ("", "")),
        ([STUB], (STUB, "")),
        ([STUB, REAL], (STUB, REAL)),
        ([STUB, "/linked/libcuda.so.1", REAL], (STUB, REAL)),
    ],
)
def test_a_stub_that_comes_first(paths: list[str], expected: tuple[str, str]) -> None:
    place = loader(*paths)
    runtime: Any = {"step": "runtime", "code": "x"}
    library: Any = {"step": "library", "code": "x"}
    assert _stub(runtime, place) == expected
    names = [path.replace("libcuda.so.1", "libnvidia-ml.so.1") for path in expected]
    assert list(_stub(library, place)) == names
    alone = expected[0] if not expected[1] else ""
    assert _stub_alone(NVIDIA, runtime, place) == alone


@pytest.mark.parametrize(
    ("paths", "variable", "fix"),
    [
        (
            [STUB, REAL],
            "/usr/local/cuda/lib64/stubs/:/x",
            (
                "take /usr/local/cuda/lib64/stubs out of LD_LIBRARY_PATH"
                " (`export LD_LIBRARY_PATH=/x`): behind it /usr/lib/libcuda.so.1 is the driver's"
            ),
        ),
        (
            ["/linked/libcuda.so.1"],
            "",
            "remove the link /linked/libcuda.so.1 to the toolkit's stub, then `sudo ldconfig`",
        ),
        (
            [STUB],
            "",
            "take /usr/local/cuda/lib64/stubs out of /etc/ld.so.conf.d, then `sudo ldconfig`",
        ),
    ],
)  # fmt: skip
@pytest.mark.parametrize("container", [None, "docker"])
def test_how_the_loader_is_kept_from_a_stub(
    paths: list[str], variable: str, fix: str, container: str | None
) -> None:
    runtime: Any = {"step": "runtime", "code": "x"}
    place = loader(*paths, environ={"LD_LIBRARY_PATH": variable}, container=container)
    assert "".join(_stub_out(NVIDIA, runtime, place)) == fix
    last = (
        "start the container with NVIDIA_DRIVER_CAPABILITIES=compute,utility"
        if container
        else "install libcuda.so.1 of the driver's version"
    )
    assert "".join(_libcuda_fix(NVIDIA, runtime, place)) == f"{fix}, and {last}"
    assert "".join(_libcuda_fix(NVIDIA, runtime, loader(REAL, container=container))) == last


@pytest.mark.parametrize(
    ("step", "paths", "empty", "found"),
    [
        ("runtime", [REAL], REAL, REAL),
        ("runtime", [REAL, STUB], STUB, ""),
        ("library", [REAL], "/usr/lib/libnvidia-ml.so.1", "/usr/lib/libnvidia-ml.so.1"),
        ("library", [REAL], REAL, ""),
        ("runtime", [], "", ""),
    ],
)
def test_an_empty_library(step: str, paths: list[str], empty: str, found: str) -> None:
    judged: Any = {"step": step, "code": "x"}
    assert _empty_library(NVIDIA, judged, loader(*paths, empty=empty)) == found


def test_only_causes_of_the_gpu_itself_name_an_old_branch() -> None:
    version = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  470.256.02  Tue\n"
    other: Any = {"code": "module-not-loaded", "step": "driver"}
    assert legacy_branch(NVIDIA, other, scene(nvidia_version=version)) == ""
