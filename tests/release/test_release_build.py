"""A tag builds one distribution or nothing, and wheels install where no index is."""

from __future__ import annotations

import base64
import hashlib
import importlib
import importlib.metadata
import importlib.util
import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import urllib.request
import venv
import zipfile
from pathlib import Path
from typing import Any

import pytest

from probe_core import __version__ as VERSION

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/how-to/install-offline.md"


def build(*arguments: str, mask: int = -1) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / ".ci/release/build.py"), *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=120, umask=mask
    )


def module(name: str) -> Any:
    """Import a file of the release's, which are scripts."""
    sys.path.insert(0, str(ROOT / ".ci/release"))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.pop(0)


def needs_build_tools() -> None:
    missing = [name for name in ("build", "hatchling") if not importlib.util.find_spec(name)]
    if missing:
        pytest.skip(f"{' and '.join(missing)} are not installed here")
    needs_git()


def needs_git() -> None:
    if shutil.which("git") is None:
        pytest.skip("git is not installed: a release is made of a commit")
    command = ["git", "-c", "safe.directory=*", "rev-parse", "HEAD"]
    if subprocess.run(command, cwd=ROOT, capture_output=True, check=False).returncode:
        pytest.skip("not a git checkout: a release is made of a commit")


def test_the_order_puts_each_distribution_after_what_it_needs() -> None:
    names = build("--order").stdout.split()
    assert names[:2] == ["probe-chipdb", "probe-core"]
    assert names.index("probe-cluster") < names.index("probe-exo")
    assert len(names) == 2 + len(list((ROOT / "plugins").glob("*/pyproject.toml")))
    assert len(names) == len(set(names))


@pytest.mark.heavy
def test_a_tag_builds_its_distribution_twice_the_same(tmp_path: Path) -> None:
    needs_build_tools()
    found = []
    for number, mask in (1, 0o022), (2, 0o077):
        out = tmp_path / str(number)
        ran = build(str(out), "--rehearse", "--tag", f"probe-synthetic-v{VERSION}", mask=mask)
        assert (ran.returncode, ran.stderr) == (0, "")
        found.append({path.name: path.read_bytes() for path in out.iterdir()})
    assert found[0] == found[1]
    stem = f"probe_synthetic-{VERSION}"
    assert sorted(found[0]) == [f"{stem}-py3-none-any.whl", f"{stem}.tar.gz"]


@pytest.mark.heavy
def test_a_tag_of_another_version_publishes_nothing(tmp_path: Path) -> None:
    needs_build_tools()
    ran = build(str(tmp_path / "out"), "--rehearse", "--tag", "probe-amd-v9.9.9")
    assert ran.returncode == 1
    wrong = f"the tag says probe-amd 9.9.9, the wheel is probe-amd {VERSION}"
    assert ran.stderr == f"build: {wrong}\n"


@pytest.mark.parametrize("tag", ["v1.0", "probe-nothing-v1.0", "probe-amd", "probe-amd-v1;ls"])
def test_a_tag_that_names_nothing_is_refused(tmp_path: Path, tag: str) -> None:
    ran = build(str(tmp_path / "out"), "--rehearse", "--tag", tag)
    assert ran.returncode == 1
    assert "names no distribution" in ran.stderr
    assert list(tmp_path.iterdir()) == []


def test_wrong_arguments_are_a_usage_error(tmp_path: Path) -> None:
    assert build().returncode == 2
    assert build(str(tmp_path), "--order").returncode == 2


# --- what a release refuses, on a small repository


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A repository of one distribution, with everything that a release reads."""
    root = tmp_path / "checkout"
    for folder in ("chipdb", "plugins", "packaging", "docs"):
        (root / folder).mkdir(parents=True)
    files = {
        "pyproject.toml": '[project]\nname = "probe-core"\n',
        "README.md": "# probe\n\n![a](docs/a.svg) [page](docs/a.md#part) [here](#there)\n",
        "docs/a.svg": "<svg/>",
        "docs/a.md": "# A\n",
        "CHANGELOG.md": "# Changelog\n",
        "packaging/addresses.toml": (ROOT / "packaging/addresses.toml").read_text("utf-8"),
    }
    for name, text in files.items():
        (root / name).write_text(text, "utf-8")
    needs_git()
    for command in (
        ["init", "-q"], ["add", "-A"],
        ["-c", "user.name=A", "-c", "user.email=a@code-host.example", "commit", "-q", "-m", "One"],
    ):  # fmt: skip
        subprocess.run(["git", *command], cwd=root, check=True, capture_output=True)
    return root


def public(root: Path) -> None:
    """Give the repository an address that somebody could have."""
    path = root / "packaging/addresses.toml"
    text = path.read_text("utf-8").replace("code-host.example", "code-host.dev")
    path.write_text(text, "utf-8")


def commit(root: Path) -> None:
    identity = ["-c", "user.name=A", "-c", "user.email=a@code-host.example"]
    command = ["git", *identity, "commit", "-q", "-a", "-m", "Two"]
    subprocess.run(command, cwd=root, check=True, capture_output=True)


def test_a_placeholder_is_not_shipped(checkout: Path, tmp_path: Path) -> None:
    release = module("build")
    with pytest.raises(release.ReleaseError, match=r"placeholder: https://code-host\.example"):
        release.prepared(tmp_path / "tree", checkout, ships=True)


def test_what_is_in_no_commit_is_not_shipped(checkout: Path, tmp_path: Path) -> None:
    release = module("build")
    public(checkout)
    with pytest.raises(release.ReleaseError, match=r"changes that are in no commit:\nM packaging"):
        release.prepared(tmp_path / "tree", checkout, ships=True)


def test_a_readme_leads_to_the_code_host_at_the_commit(checkout: Path, tmp_path: Path) -> None:
    release = module("build")
    public(checkout)
    commit(checkout)
    tree = tmp_path / "tree"
    time = release.prepared(tree, checkout, ships=True)
    head, seconds = release.git("log", "-1", "--format=%H %ct", root=checkout).split()
    assert time == seconds
    host = "https://code-host.dev/probe-core"
    assert (tree / "README.md").read_text("utf-8") == (
        f"# probe\n\n![a]({host}/raw/{head}/docs/a.svg) "
        f"[page]({host}/blob/{head}/docs/a.md#part) [here](#there)\n"
    )
    urls = tomllib.loads((tree / "pyproject.toml").read_text("utf-8"))["project"]["urls"]
    assert set(urls) == {"Documentation", "Source", "Changelog", "Issues"}
    assert urls["Changelog"] == f"{host}/blob/HEAD/CHANGELOG.md"


def test_a_link_to_nothing_stops_a_release(checkout: Path, tmp_path: Path) -> None:
    release = module("build")
    (checkout / "README.md").write_text("[page](docs/gone.md)\n", "utf-8")
    with pytest.raises(release.ReleaseError, match=r"README\.md links to docs/gone\.md"):
        release.prepared(tmp_path / "tree", checkout)


# --- what is looked for in the files

METADATA = """Metadata-Version: {version}
Name: probe-acme
Version: 1.0
License-Expression: Apache-2.0
License-File: LICENSE

{text}
"""


def made(folder: Path, version: str = "2.4", text: str = "Text.", **more: bytes) -> list[str]:
    """Make a wheel and an sdist with files more, and return what is found wrong."""
    metadata = METADATA.format(version=version, text=text).encode()
    wheel = {"probe_acme/__init__.py": b"", "probe_acme/py.typed": b""}
    wheel["probe_acme-1.0.dist-info/METADATA"] = metadata
    wheel["probe_acme-1.0.dist-info/licenses/LICENSE"] = b"Apache"
    sources = {"PKG-INFO": metadata, "LICENSE": b"Apache", "pyproject.toml": b""}
    source = folder / "source"
    source.mkdir(exist_ok=True)
    for name in ("LICENSE", "pyproject.toml"):
        (source / name).write_bytes(b"")
    with zipfile.ZipFile(folder / "probe_acme-1.0-py3-none-any.whl", "w") as archive:
        for name, data in (wheel | {k: v for k, v in more.items() if k[:2] != "s:"}).items():
            archive.writestr(name, data)
    with tarfile.open(folder / "probe_acme-1.0.tar.gz", "w:gz") as archive:
        for name, data in (sources | {k[2:]: v for k, v in more.items() if k[:2] == "s:"}).items():
            member = tarfile.TarInfo(f"probe_acme-1.0/{name}")
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    found: list[str] = sorted(module("checks").problems("probe-acme", source, folder, True))
    return found


WHEEL, SDIST = "probe_acme-1.0-py3-none-any.whl", "probe_acme-1.0.tar.gz"


@pytest.mark.parametrize(
    ("more", "wrong"),
    [
        ({}, []),
        ({"tests/a.py": b""}, [f"{WHEEL}: would install tests/a.py beside other packages"]),
        (
            {"probe_acme/__pycache__/a.pyc": b""},
            [f"{WHEEL}: probe_acme/__pycache__/a.pyc belongs into no distribution"],
        ),
        ({"s:notes.txt": b""}, [f"{SDIST}: notes.txt is not in the repository"]),
        (
            {"probe_acme/a.py": b"url = 'https://pypi" + b".org'"},
            [f"{WHEEL}: probe_acme/a.py has an index's address or option: pypi" + ".org"],
        ),
        (
            {"version": "2.3"},
            [f"{name}: metadata 2.3, which has no licence expressions" for name in (WHEEL, SDIST)],
        ),
        (
            {"text": "[page](docs/a.md) `[no](link)`"},
            [
                f"{name}: a link that leads nowhere on the page of an index: ](docs/a.md)"
                for name in (WHEEL, SDIST)
            ],
        ),
    ],
)
def test_a_file_that_must_not_be_published(
    tmp_path: Path, more: dict[str, Any], wrong: list[str]
) -> None:
    assert made(tmp_path, **more) == wrong


@pytest.mark.parametrize(("data", "count"), [(b"hook", 0), (b"another", 1)])
def test_the_hook_of_all_plugins_comes_along_as_it_is(
    tmp_path: Path, data: bytes, count: int
) -> None:
    (tmp_path / "packaging").mkdir()
    (tmp_path / "packaging" / "package_build.py").write_bytes(b"hook")
    (tmp_path / "plugins").mkdir()
    found = made(tmp_path / "plugins", **{"s:package_build.py": data})
    assert found == [f"{SDIST}: package_build.py is not in the repository"] * count


def test_an_index_on_loopback_has_pages_and_hashes(tmp_path: Path) -> None:
    made(tmp_path)
    files = [tmp_path / WHEEL, tmp_path / SDIST]
    index = module("index")
    index.lay(files, tmp_path / "index")
    with index.served(tmp_path / "index") as address:
        assert address.startswith("http://127.0.0.1:")
        with urllib.request.urlopen(f"{address}probe-acme/", timeout=10) as answer:
            page = answer.read().decode()
        links = dict(re.findall(r'<a href="([^#"]+)#sha256=([0-9a-f]{64})"', page))
        assert links == {p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in files}
        with urllib.request.urlopen(f"{address}probe-acme/{WHEEL}", timeout=10) as answer:
            assert answer.read() == files[0].read_bytes()


def block(step: str) -> str:
    found = re.search(rf"<!-- offline: {step} -->\n```sh\n(.*?)```", PAGE.read_text("utf-8"), re.S)
    assert found
    return found[1]


def repack(name: str, into: Path) -> None:
    """Write the wheel of an installed distribution: its files, and a RECORD of them."""
    distribution = importlib.metadata.distribution(name)
    wheel = distribution.read_text("WHEEL") or ""
    tag = re.findall(r"^Tag: (.+)$", wheel, re.M)[0]
    stem = f"{distribution.name.replace('-', '_')}-{distribution.version}"
    records = []
    with zipfile.ZipFile(into / f"{stem}-{tag}.whl", "w") as archive:
        for path in distribution.files or ():
            text = path.as_posix()
            if ".." in text or "__pycache__" in text or path.name in ("RECORD", "INSTALLER"):
                continue
            data = Path(str(path.locate())).read_bytes()
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            records.append(f"{text},sha256={digest},{len(data)}")
            archive.writestr(text, data)
        record = next(
            Path(line.partition(",")[0]).parent for line in records if ".dist-info" in line
        )
        records.append(f"{record}/RECORD,,")
        archive.writestr(f"{record}/RECORD", "\n".join(records) + "\n")


def requirements(names: set[str]) -> set[str]:
    """What installed distributions need here, and what that needs, without ours."""
    from packaging.requirements import Requirement

    known: set[str] = set()
    ahead = set(names)
    while ahead:
        name = ahead.pop()
        for text in importlib.metadata.distribution(name).requires or ():
            wanted = Requirement(text)
            if not wanted.marker or wanted.marker.evaluate({"extra": ""}):
                ahead |= {wanted.name} - known
                known.add(wanted.name)
    return {name for name in known if not name.startswith("probe-")}


@pytest.mark.heavy
@pytest.mark.timeout(400)
def test_wheels_install_without_an_index(tmp_path: Path) -> None:
    needs_build_tools()
    names = set(re.findall(r"probe-[a-z]+", block("install"))) | {"probe-chipdb"}
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    folders = {"probe-core": ROOT, "probe-chipdb": ROOT / "chipdb"}
    for name in sorted(names):
        folder = folders.get(name, ROOT / "plugins" / name.removeprefix("probe-"))
        command = [sys.executable, "-m", "build", "--no-isolation", "--wheel", "--outdir"]
        subprocess.run([*command, str(wheels), str(folder)], check=True, capture_output=True)
    # On the page pip collects these; here they are what this environment has.
    for name in requirements(names):
        repack(name, wheels)

    venv.create(tmp_path / "venv", with_pip=True, symlinks=True)
    environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "LANG": "C.UTF-8"}
    environ |= {"PIP_CONFIG_FILE": os.devnull, "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    # The environment exists already: ensurepip takes most of this test's time.
    commands = block("install").replace("python3 -m venv venv\n", "")
    ran = subprocess.run(
        ["bash", "-euc", commands],
        cwd=tmp_path, env=environ, capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "cpu:0" in ran.stdout
    site = next((tmp_path / "venv/lib").glob("python*/site-packages"))
    assert {path.name for path in site.glob("probe_*") if path.suffix != ".dist-info"} == {
        name.replace("-", "_") for name in names
    }


def test_ci_runs_the_pages_own_commands() -> None:
    ci = (ROOT / ".ci/run").read_text("utf-8")
    assert 'eval "$(offline collect)"' in ci
    assert "install=$(offline install)" in ci


def test_what_an_upgrade_leaves_is_what_no_record_lists(tmp_path: Path) -> None:
    trial = module("try_install")
    site = tmp_path / "lib/python3.11/site-packages"
    listed = ["probe_core/__init__.py", "../../../bin/probe", "../../../share/man/man1/probe.1"]
    own = ["probe_core-1.dist-info/RECORD", "probe_core-1.dist-info/METADATA", *listed]
    for name in [*own, "probe_core/__pycache__/__init__.cpython-311.pyc", "other.py"]:
        (site / name).resolve().parent.mkdir(parents=True, exist_ok=True)
        (site / name).resolve().touch()
    (site / own[0]).write_text("".join(f"{name},sha256=a,1\n" for name in own), "utf-8")
    assert trial.of_nobody(tmp_path) == set()
    (site / "probe_core/old.py").touch()
    (site / "probe_gone").mkdir()
    (tmp_path / "bin/probe-old").touch()
    left = {"lib/python3.11/site-packages/probe_core/old.py", "bin/probe-old"}
    assert trial.of_nobody(tmp_path) == left | {"lib/python3.11/site-packages/probe_gone"}
