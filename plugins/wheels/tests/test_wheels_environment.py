"""Which environment is meant, what is in it, and that a look at it runs and changes nothing."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import wheel_files as build

import probe_wheels
from probe_wheels import find_environment, survey, wheels
from probe_wheels.checks import CHECKS
from probe_wheels.distributions import build_tag
from probe_wheels.environment import _of_pth
from probe_wheels.files import Budget
from probe_wheels.surveying import SCHEMA, Cache, cache_path

REPORT: Any = {
    "node": {"os": "linux", "arch": "x86_64"},
    "primary": "pci:0000:01:00.0",
    "devices": [
        {
            "id": "pci:0000:01:00.0",
            "kind": "gpu",
            "vendor": "nvidia",
            "name": "NVIDIA H100 80GB HBM3",
            "chip": {"id": "nvidia/h100-sxm5-80gb", "candidates": []},
            "arch": "hopper",
            "driver": {"name": "nvidia", "version": "580.95.05"},
            "memory": {"kind": "dedicated"},
            "readiness": {"state": "ready", "broken": None, "steps": []},
            "visibility": {},
            "parent": None,
            "pci": {"id": "10de:2330", "class": "030200"},
        }
    ],
}


def python(folder: Path, machine: int = 62) -> Path:
    """An interpreter: an ELF file that nothing here could execute."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "python"
    path.write_bytes(build.elf([(".text", b"")], machine=machine))
    path.chmod(0o755)
    return path


def codes(argument: str | None, environ: dict[str, str] | None = None) -> list[str]:
    seen = survey(argument, REPORT, environ or {}, cached=False)
    return [finding["code"] for finding in seen.findings]


def test_a_folder_an_interpreter_and_the_shells_python_are_one(tmp_path: Path) -> None:
    site = build.environment(tmp_path / "env")
    interpreter = python(tmp_path / "env" / "bin")
    environ = {"PATH": f"/nonexistent{os.pathsep}{interpreter.parent}"}
    for argument in (str(tmp_path / "env"), str(interpreter), None, "python"):
        environment = find_environment(argument, environ)
        assert environment.sites == [str(site)], argument
        assert environment.kind == "venv"
        assert environment.problems == []


def test_folders_with_distributions_that_a_pth_file_adds(tmp_path: Path) -> None:
    for name in ("wheel/a-1.dist-info", "egg/a-1.egg-info", "plain/a", "site/folder.pth"):
        (tmp_path / name).mkdir(parents=True)
    lines = ["../wheel", "# ../egg", "import a", "import\ta", "", "../plain", "../none", "../\0egg"]
    (tmp_path / "site/a.pth").write_text("\n".join(lines))
    (tmp_path / "site/b.pth").write_text(f"{tmp_path}/egg\n")
    (tmp_path / "site/c.txt").write_text("../egg\n")
    budget = Budget()
    folders = list(_of_pth([str(tmp_path / "site")], budget))
    assert folders == [str(tmp_path / "wheel"), str(tmp_path / "egg")]
    looked = {str(tmp_path / name) for name in ("site", "wheel", "egg", "plain", "none")}
    assert looked <= budget.paths
    assert [*budget.faults] == [str(tmp_path / "site/folder.pth")]


def test_variables_name_it_where_path_has_no_python(tmp_path: Path) -> None:
    site = build.environment(tmp_path / "env")
    for variable in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        environ = {"PATH": "/nonexistent", variable: str(tmp_path / "env")}
        assert find_environment(None, environ).sites == [str(site)]


def test_an_environments_interpreter_is_a_link(tmp_path: Path) -> None:
    real = python(tmp_path / "opt" / "python3.11" / "bin")
    site = build.environment(tmp_path / "env", home=str(real.parent))
    (tmp_path / "env" / "bin").mkdir()
    link = tmp_path / "env" / "bin" / "python"
    link.symlink_to(real)
    alias = tmp_path / "python"
    alias.symlink_to(link)
    assert find_environment(str(alias), {}).sites == [str(site)]


def test_a_shim_of_pyenv_is_looked_up(tmp_path: Path) -> None:
    (tmp_path / "shims").mkdir()
    shim = tmp_path / "shims" / "python"
    shim.write_text("#!/bin/sh\nexit 1\n")
    site = tmp_path / "versions" / "3.11.9" / "lib" / "python3.11" / "site-packages"
    site.mkdir(parents=True)
    python(tmp_path / "versions" / "3.11.9" / "bin")
    (tmp_path / "version").write_text("3.11.9\n")
    assert find_environment(str(shim), {}).sites == [str(site)]


def test_an_unpacked_container(tmp_path: Path) -> None:
    sites = [
        tmp_path / "usr/local/lib/python3.12/dist-packages",
        tmp_path / "usr/lib/python3/dist-packages",
        tmp_path / "opt/venv/lib/python3.12/site-packages",
    ]
    for site in sites:
        site.mkdir(parents=True)
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/os-release").write_text("ID=ubuntu\n")
    (tmp_path / "opt/host").symlink_to("/usr")
    environment = find_environment(str(tmp_path), {})
    assert environment.kind == "root"
    assert sorted(environment.sites) == sorted(map(str, sites))


def test_a_folder_of_unpacked_wheels(tmp_path: Path) -> None:
    build.install(tmp_path, "acme", "1.0", {"acme/x.so": build.cuda({"sm_70": 1})})
    assert find_environment(str(tmp_path), {}).sites == [str(tmp_path)]
    assert codes(str(tmp_path)) == ["wheel-lacks-device"]


def test_system_packages_count_where_the_environment_includes_them(tmp_path: Path) -> None:
    base = tmp_path / "base" / "lib" / "python3.11" / "site-packages"
    base.mkdir(parents=True)
    site = build.environment(tmp_path / "env")
    config = tmp_path / "env" / "pyvenv.cfg"
    config.write_text(f"home = {tmp_path}/base/bin\ninclude-system-site-packages = true\n")
    assert find_environment(str(tmp_path / "env"), {}).sites == [str(site), str(base)]


def test_conda_lists_libraries_of_other_packages(tmp_path: Path) -> None:
    (tmp_path / "conda-meta").mkdir()
    (tmp_path / "lib/python3.11/site-packages").mkdir(parents=True)
    (tmp_path / "lib/libtorch_cuda.so").write_bytes(build.cuda({"sm_70 sm_80": 9}))
    meta = {"name": "libtorch", "files": ["lib/libtorch_cuda.so", "../../etc/x.so", 5]}
    path = tmp_path / "conda-meta" / "libtorch-2.5.1-cuda126_mkl_h1a2b_300.json"
    path.write_text(json.dumps(meta))
    seen = survey(str(tmp_path), REPORT, {}, cached=False)
    (verdict,) = seen.verdicts
    assert (verdict["wheel"], verdict["verdict"]) == ("libtorch 2.5.1", "lacks-device")
    assert seen.distributions[0]["build"] == "cu126"


def test_bad_arguments_are_findings_with_the_name(tmp_path: Path) -> None:
    assert codes(str(tmp_path / "gone")) == ["environment-missing"]
    assert codes("python9.9", {"PATH": "/nonexistent"}) == ["environment-missing"]
    assert codes(None, {"PATH": "/nonexistent"}) == ["environment-missing"]
    (tmp_path / "empty").mkdir()
    assert codes(str(tmp_path / "empty")) == ["environment-broken"]
    site = build.environment(tmp_path / "lost", home="/gone/bin")
    (tmp_path / "lost" / "bin").mkdir()
    (tmp_path / "lost" / "bin" / "python").symlink_to("/gone/bin/python3.11")
    assert site.is_dir()
    for argument in ("lost", "lost/bin/python"):
        assert codes(str(tmp_path / argument)) == ["environment-broken"]
    assert codes("a\0b") == ["environment-missing"]
    (tmp_path / "notes.txt").write_text("no program")
    assert codes(str(tmp_path / "notes.txt")) == ["environment-missing"]


def test_another_architecture_is_a_finding(tmp_path: Path) -> None:
    site = build.environment(tmp_path / "env")
    python(tmp_path / "env" / "bin", machine=183)
    raw = build.elf([(".nv_fatbin", build.fatbin({"sm_90": 1}))], machine=183)
    build.install(site, "acme", "1.0", {"acme/x.so": raw})
    assert codes(str(tmp_path / "env")) == [
        "environment-other-architecture",
        "wheel-other-architecture",
    ]


def test_damaged_and_missing_libraries_are_findings(tmp_path: Path) -> None:
    site = build.environment(tmp_path / "env")
    files = {"acme/x.so": build.cuda({"sm_90": 4})[:50], "acme/y.so": b"", "acme/z.so": b""}
    metadata = build.install(site, "acme", "1.0", files)
    (site / "acme/z.so").unlink()
    (metadata / "RECORD").write_text("acme/x.so,,\nacme/y.so,,\nacme/z.so,,\n../../../q.so,,\n")
    seen = survey(str(tmp_path / "env"), REPORT, {}, cached=False)
    by_code = {finding["code"]: finding["evidence"] for finding in seen.findings}
    assert by_code == {
        "wheel-files-missing": "acme/z.so",
        "wheel-record-wrong": "../../../q.so",
        "wheel-library-damaged": "acme/x.so, acme/y.so",
    }


TRAPS = {
    "evil.pth": "import os; os.environ.__setitem__('OWNED', '1'); open('owned', 'w')\n",
    "sitecustomize.py": "raise SystemExit('sitecustomize ran')\n",
    "usercustomize.py": "raise SystemExit('usercustomize ran')\n",
    "torch/__init__.py": "raise SystemExit('torch was imported')\n",
    "torch/version.py": "raise SystemExit('ran')\ncuda = '12.8'\nhip = None\n",
}


def listing(folder: Path) -> list[tuple[str, int, int]]:
    return sorted(
        (str(path), path.lstat().st_mtime_ns, path.lstat().st_size) for path in folder.rglob("*")
    )


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return the environment of a process that imports the package as a wheel has it."""
    folder = tmp_path_factory.mktemp("installed")
    sources = Path(probe_wheels.__file__).parent
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(sources, folder / "probe_wheels", ignore=ignored)
    script = Path(__file__).parents[1] / "package_files.py"
    subprocess.run([sys.executable, str(script), str(folder)], check=True, timeout=60)
    return {**os.environ, "PYTHONPATH": str(folder)}


def test_nothing_is_imported_executed_or_changed(tmp_path: Path, installed: dict[str, str]) -> None:
    site = build.environment(tmp_path / "env")
    build.install(
        site, "torch", "2.9.1", {**TRAPS, "torch/lib/libtorch_cuda.so": build.cuda({"sm_90": 9})}
    )
    interpreter = tmp_path / "env" / "bin" / "python"
    interpreter.parent.mkdir()
    interpreter.write_text(f"#!/bin/sh\ntouch {tmp_path}/executed\n")
    interpreter.chmod(0o755)
    before = listing(tmp_path)
    code = (
        "import sys, json; from probe_wheels import survey\n"
        f"report = json.loads({json.dumps(REPORT)!r})\n"
        f"seen = survey({str(interpreter)!r}, report, {{}}, cached=False)\n"
        "print([verdict['verdict'] for verdict in seen.verdicts])\n"
        "print(sorted({'torch', 'tomllib', 'importlib.metadata', 'subprocess'} & set(sys.modules)))"
    )
    command = [sys.executable, "-c", code]
    ran = subprocess.run(command, capture_output=True, text=True, cwd="/", env=installed)
    assert ran.stdout.splitlines() == ["['native']", "[]"], ran.stderr
    assert listing(tmp_path) == before


def test_what_was_read_is_cached_by_identity(tmp_path: Path) -> None:
    environ = {"HOME": str(tmp_path / "home")}
    site = build.environment(tmp_path / "env")
    build.install(site, "acme", "1.0", {"acme/x.so": build.cuda({"sm_90": 4})})
    path = Path(cache_path(environ) or "")
    assert survey(str(tmp_path / "env"), REPORT, environ).verdicts[0]["verdict"] == "native"
    stored = path.read_bytes()
    assert survey(str(tmp_path / "env"), REPORT, environ).verdicts[0]["verdict"] == "native"
    assert path.read_bytes() == stored
    (site / "acme/x.so").write_bytes(build.cuda({"sm_70": 4}))
    assert survey(str(tmp_path / "env"), REPORT, environ).verdicts[0]["verdict"] == "lacks-device"


@pytest.mark.parametrize(
    "content",
    ["", "[]", '{"schema": 1}', '{"schema": 1, "entries": {"file:x": [1, 2]}}', "{" * 5000, "\xff"],
)
def test_a_broken_cache_is_not_used(tmp_path: Path, content: str) -> None:
    environ = {"HOME": str(tmp_path / "home")}
    path = Path(cache_path(environ) or "")
    path.parent.mkdir(parents=True)
    path.write_bytes(content.encode("latin-1"))
    site = build.environment(tmp_path / "env")
    build.install(site, "acme", "1.0", {"acme/x.so": build.cuda({"sm_90": 4})})
    assert survey(str(tmp_path / "env"), REPORT, environ).verdicts[0]["verdict"] == "native"


@pytest.mark.parametrize(
    ("value", "library", "listing"),
    [
        (None, False, False), (5, False, False), ([], False, False),
        ({}, True, False), ({"cuda": 5}, False, False), ({"hip": [["sm_90"]]}, False, False),
        ({"cuda": [[["sm_90"], 4]], "hip": []}, True, False),
        ({"cuda": [[["sm_90"], 4, 5]]}, False, False), ({"cuda": [["sm_90", 4]]}, False, False),
        ({"cuda": [[["sm_90"], True]]}, False, False), ({"hip": [[[9], 4]]}, False, False),
        ([[], [], [], []], False, True), ([["a.so"], ["gfx942"], [], ["sm_90=4"]], False, True),
        ([[], [], []], False, False), ([[], [], [], [], []], False, False),
        ([[], [5], [], []], False, False), ([[], "a", [], []], False, False),
    ],
)  # fmt: skip
def test_of_a_cache_what_has_another_form_is_not_known(
    value: object, library: bool, listing: bool, tmp_path: Path
) -> None:
    path = tmp_path / "cache"
    path.write_text(json.dumps({"schema": SCHEMA, "entries": {"key": value}}))
    path.chmod(0o600)
    cache = Cache(str(path))
    assert cache.library("key") == (value if library else None)
    found = cache.listing("key")
    assert (found is not None) is listing
    if found is not None:
        cubins = [f"{target}={count}" for target, count in found.cubins.items()]
        assert [found.libraries, sorted(found.gfx), found.outside, cubins] == value


def test_a_cache_that_others_can_write_is_not_used(tmp_path: Path) -> None:
    environ = {"HOME": str(tmp_path / "home")}
    path = Path(cache_path(environ) or "")
    site = build.environment(tmp_path / "env")
    build.install(site, "acme", "1.0", {"acme/x.so": build.cuda({"sm_90": 4})})
    survey(str(tmp_path / "env"), REPORT, environ)
    path.write_text(path.read_text().replace("sm_90", "sm_70"))
    path.chmod(0o600)
    assert survey(str(tmp_path / "env"), REPORT, environ).verdicts[0]["verdict"] == "lacks-device"
    path.chmod(0o666)
    assert survey(str(tmp_path / "env"), REPORT, environ).verdicts[0]["verdict"] == "native"


def test_the_list_for_a_baseline(tmp_path: Path) -> None:
    site = build.environment(tmp_path / "env")
    build.install(site, "torch", "2.9.1", {"torch/version.py": "__version__ = '2.9.1+cu128'\n"})
    build.install(site, "Acme-Tool", "3", {})
    listed = wheels(str(tmp_path / "env"), {})
    assert listed == [
        {"name": "Acme-Tool", "version": "3", "build": None},
        {"name": "torch", "version": "2.9.1+cu128", "build": "cu128"},
    ]


@pytest.mark.parametrize(
    ("version", "build_name"),
    [
        ("2.9.1", None),
        ("2.9.1+cu128", "cu128"),
        ("2.9.1+cpu", "cpu"),
        ("2.9.1+xpu", "xpu"),
        ("2.9.1+rocm6.4", "rocm6.4"),
        ("2.4.0+rocm6.3.4.git7cecbf6d", "rocm6.3.4"),
        ("2.8.3+cu12torch2.6cxx11abiFALSE", "cu12"),
        ("0.11.0+cu129", "cu129"),
        ("1.0+local.7", None),
        ("1.0+git1.cu118", "cu118"),
        ("1.0+pt2.6_cu126", "cu126"),
        ("1.0+pt-gfx90a", "gfx90"),
        ("1.0+cu128.", "cu128"),
    ],
)
def test_tags_of_builds(version: str, build_name: str | None) -> None:
    assert build_tag(version) == build_name


def test_the_doctor_runs_and_changes_nothing_of_an_environment_either(tmp_path: Path) -> None:
    """Through the whole command, first and remembered: with traps, and an interpreter that acts."""
    site = build.environment(tmp_path / "env")
    code = {"torch/lib/libtorch_cuda.so": build.cuda({"sm_90": 9})}
    build.install(site, "torch", "2.9.1", {**TRAPS, **code})
    interpreter = tmp_path / "env" / "bin" / "python"
    interpreter.parent.mkdir()
    interpreter.write_text(f"#!/bin/sh\ntouch {tmp_path}/executed\n")
    interpreter.chmod(0o755)
    (tmp_path / "cwd").mkdir()
    before = listing(tmp_path / "env")
    environ = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache"), "HOME": str(tmp_path)}
    command = [sys.executable, "-m", "probe_core", "doctor", "--json", "--env", str(interpreter)]
    answers = []
    for _ in range(2):
        ran = subprocess.run(
            command, capture_output=True, text=True, cwd=tmp_path / "cwd", env=environ, check=False
        )
        assert ran.stderr == ""
        checks = json.loads(ran.stdout)["checks"]
        answers.append([entry["status"] for entry in checks if "distribution" in entry])
    assert answers[0] == answers[1]
    assert len(answers[0]) >= len(CHECKS)
    assert listing(tmp_path / "env") == before
    assert list((tmp_path / "cwd").iterdir()) == []
    assert not (tmp_path / "executed").exists()
