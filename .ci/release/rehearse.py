"""Rehearses a release on this computer: `rehearse.py OUT`.

It takes half an hour and about 2 GB in OUT, which must not exist, and publishes nothing:

1. two builds of all distributions, elsewhere and otherwise each, which must be equal byte for byte;
2. `checks.py`, twine and check-wheel-contents look at each file;
3. an SBOM of what an installation brings along (CycloneDX), hashes, and a statement of where the
   files come from (in-toto, SLSA provenance), which a code host would sign;
4. the wheels of other projects are collected for each Python, and served on loopback with ours;
5. `try_install.py` installs from there with each Python that is here, and with those of the root
   that `.ci/newest_python` makes, as far as it can be made.

`--before REVISION` names the commit that stands for the version before; `--python 3.13`, more than
once, tries these alone; `--root FOLDER` has the root that an earlier run made, or will have it. It
builds the last commit's files as they are in the checkout.
"""

from __future__ import annotations

import argparse
import filecmp
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

import build
import checks
import index

ROOT = build.ROOT
_PYTHONS = ("3.11", "3.12", "3.13", "3.14", "3.15")
_LARGEST_CORE = 600_000
# What stands for the version before: older than every version that is rehearsed.
_BEFORE, _BEFORE_CHIPDB = "0.9.0a1", "2026.10.0"
_KINDS = ("manylinux_2_28_x86_64", "manylinux_2_17_x86_64", "manylinux2014_x86_64")
# For developers of this repository; the documentation of users names none of them.
_NOT_FOR_USERS = {"docs", "test"}


def step(text: str) -> None:
    """Print what begins now."""
    print(f"\n== {text}", flush=True)


def run(*command: str | Path, **more: object) -> str:
    """Run a command and return its output; end with its output where it fails."""
    ran = subprocess.run(  # type: ignore[call-overload]
        list(map(str, command)), text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        check=False, **more,
    )  # fmt: skip
    if ran.returncode:
        raise SystemExit(f"{' '.join(map(str, command))}\n{ran.stdout[-4000:]}")
    return str(ran.stdout)


def tools(out: Path) -> Path:
    """Make the environment of the release's tools; return its folder of commands."""
    run(sys.executable, "-m", "venv", out / "tools")
    commands = out / "tools" / "bin"
    run(commands / "pip", "install", "-q", "-r", ROOT / "requirements-release.txt")
    return commands


def built_twice(out: Path, python: Path) -> Path:
    """Build two times; the second elsewhere, later, with another mask, zone and order of hashes."""
    first, second = out / "dist", out / "again" / "dist"
    script = str(ROOT / ".ci/release/build.py")
    run(python, script, first, "--rehearse", env={**os.environ, "PYTHONHASHSEED": "1"})
    elsewhere = out / "again" / "a folder with another name"
    elsewhere.mkdir(parents=True)
    other = {**os.environ, "PYTHONHASHSEED": "2", "TZ": "Asia/Kathmandu", "TMPDIR": str(elsewhere)}
    run(python, script, second, "--rehearse", env=other, umask=0o077)
    names = sorted(path.name for path in first.iterdir())
    assert names == sorted(path.name for path in second.iterdir())
    _, differ, failed = filecmp.cmpfiles(first, second, names, shallow=False)
    if differ or failed:
        raise SystemExit(f"two builds differ: {differ + failed}")
    print(f"{len(names)} files, twice the same")
    return first


def looked_at(dist: Path, commands: Path) -> None:
    """Let the tools of others look at the files, and compare the size of the core."""
    files = sorted(dist.iterdir())
    run(commands / "twine", "check", "--strict", *files)
    wheels = [path for path in files if path.suffix == ".whl"]
    # W004: hooks of PyInstaller and compiled templates are found by path, not imported by name.
    run(commands / "check-wheel-contents", "--ignore", "W004", *wheels)
    (core,) = dist.glob("probe_core-*.whl")
    size = core.stat().st_size
    late = "" if size <= _LARGEST_CORE else f", more than the goal of {_LARGEST_CORE}"
    print(f"twine and check-wheel-contents agree; {core.name} has {size} bytes{late}")


def before(out: Path, python: Path, revision: str) -> Path:
    """Build an older commit as the version before."""
    tree, into = out / "before" / "tree", out / "before" / "dist"
    tree.mkdir(parents=True)
    archive = out / "before" / "tree.tar"
    run("git", "-c", "safe.directory=*", "archive", "-o", archive, revision, cwd=ROOT)
    shutil.unpack_archive(archive, tree, filter="data")
    versions = [tree / "probe_core/__init__.py", tree / "chipdb/src/probe_chipdb/_version.py"]
    for path in [
        *versions,
        *(folder / "pyproject.toml" for folder in build.distributions(tree).values()),
    ]:
        text = path.read_text("utf-8")
        new = _BEFORE_CHIPDB if path.name == "_version.py" else _BEFORE
        text = re.sub(r'^((?:__)?version(?:__)? = )".*"', rf'\1"{new}"', text, flags=re.MULTILINE)
        text = re.sub(r"(probe-chipdb)>=[\w.]+", rf"\1>={_BEFORE_CHIPDB}", text)
        text = re.sub(r"(probe-(?!chipdb)[a-z-]+(?:\[\w+\])?)>=0\.[\w.]+", rf"\1>={_BEFORE}", text)
        path.write_text(text, "utf-8")
    time = build.git("log", "-1", "--format=%ct", revision).strip()
    script = "import sys; sys.path.insert(0, sys.argv[1]); import build; from pathlib import Path\n"
    script += "tree = Path(sys.argv[2])\n"
    script += "build.build(list(build.distributions(tree)), tree, Path(sys.argv[3]), sys.argv[4])"
    run(python, "-c", script, Path(__file__).parent, tree, into, time)
    return into


def extras(dist: Path) -> list[str]:
    """Return the extras of the core that are for users, as its wheel names them."""
    (core,) = dist.glob("probe_core-*.whl")
    named = checks.metadata(checks.wheel_files(core)).get_all("Provides-Extra") or []
    return [name for name in named if name not in _NOT_FOR_USERS]


def collected(out: Path, dist: Path, commands: Path, versions: list[str]) -> list[Path]:
    """Fetch the wheels of other projects that all our distributions need, for each Python."""
    wanted = out / "wanted.txt"
    ours = [name for name in build.order() if name != "probe-core"]
    names = [*ours, f"probe-core[{','.join(extras(dist))}]"]
    # What builds from our sources, and what installs them.
    names += ["hatchling>=1.26", "pip", "uv", "pipx"]
    wanted.write_text("\n".join(names) + "\n", "utf-8")
    into = out / "others"
    for version in versions:
        pins = out / f"pins-{version}.txt"
        run(commands / "uv", "pip", "compile", "-q", "--no-header", "--no-annotate", "--prerelease",
            "if-necessary-or-explicit", "--python-version", version, "--python-platform", "linux",
            "--find-links", dist, "-c", ROOT / "constraints.txt", "-o", pins, wanted)  # fmt: skip
        lines = [line for line in pins.read_text("utf-8").splitlines() if not _ours(line)]
        pins.write_text("\n".join(lines) + "\n", "utf-8")
        kinds = [word for kind in _KINDS for word in ("--platform", kind)]
        abis = ["--abi", "cp" + version.replace(".", ""), "--abi", "abi3", "--abi", "none"]
        run(commands / "pip", "download", "-q", "--no-deps", "--only-binary=:all:", "-d", into,
            "--python-version", version, "--implementation", "cp", *kinds, *abis, "-r",
            pins)  # fmt: skip
        print(f"{version}: {len(lines)} wheels of other projects")
    return sorted(into.iterdir())


def _ours(pin: str) -> bool:
    return re.split(r"[=\[ ]", pin)[0] in build.distributions()


def described(out: Path, dist: Path, commands: Path, address: str) -> None:
    """Write what a release is accompanied by: an SBOM, hashes, and where it comes from."""
    with tempfile.TemporaryDirectory() as folder:
        run(sys.executable, "-m", "venv", folder)
        environ = {**os.environ, "PIP_INDEX_URL": address, "PIP_CONFIG_FILE": os.devnull}
        environ.pop("PIP_FIND_LINKS", None)
        # pip is no part of an installation.
        python = Path(folder) / "bin/python"
        run(
            python,
            "-m",
            "pip",
            "install",
            "-q",
            f"probe-core[{','.join(extras(dist))}]",
            env=environ,
        )
        run(python, "-m", "pip", "uninstall", "-q", "-y", "setuptools", "pip")
        sbom = out / "sbom.cdx.json"
        run(
            commands / "cyclonedx-py",
            "environment",
            "--output-reproducible",
            "--of",
            "JSON",
            "-o",
            sbom,
            python,
        )
    components = json.loads(sbom.read_text("utf-8"))["components"]
    files = sorted(dist.iterdir())
    digests = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
    lines = [f"{digest}  {name}\n" for name, digest in digests.items()]
    (out / "SHA256SUMS").write_text("".join(lines), "utf-8")
    (out / "provenance.json").write_text(json.dumps(provenance(digests), indent=1), "utf-8")
    print(f"sbom.cdx.json names {len(components)} components")
    print(f"SHA256SUMS and provenance.json name {len(files)} files")


def provenance(digests: dict[str, str]) -> dict[str, object]:
    """Return the statement that a code host would sign: which commit the files were built from."""
    source = tomllib.loads((ROOT / "packaging/addresses.toml").read_text("utf-8"))["urls"]["Source"]
    commit = build.git("rev-parse", "HEAD").strip()
    changed = bool(build.git("status", "--porcelain", "--untracked-files=no").strip())
    subjects = [{"name": name, "digest": {"sha256": digest}} for name, digest in digests.items()]
    return {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": subjects,
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {
            "buildDefinition": {
                "buildType": f"{source}/.ci/release/build.py",
                "externalParameters": {"source": source},
                "resolvedDependencies": [
                    {
                        "uri": f"git+{source}",
                        "digest": {"gitCommit": commit},
                        "annotations": {"changed": changed},
                    }
                ],
            },
            "runDetails": {"builder": {"id": "local rehearsal, unsigned"}},
        },
    }  # fmt: skip


def pythons(versions: list[str]) -> dict[str, Path]:
    """Return the Pythons of this computer: those on the path, and pyenv's."""
    found = {}
    home = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    for version in versions:
        on_path = shutil.which(f"python{version}")
        places = [*home.glob(f"{version}.*/bin/python"), *([Path(on_path)] if on_path else [])]
        for python in places:
            works = subprocess.run(
                [python, "-c", "import venv, ensurepip"], capture_output=True, check=False
            )
            if works.returncode == 0:
                found[version] = python
                break
    return found


def tried(root: Path, versions: list[str], arguments: list[str]) -> list[str]:
    """Install with each Python; return those with which something failed."""
    here, failed = pythons(versions), []
    script = ROOT / ".ci/release/try_install.py"
    for version, python in here.items():
        if subprocess.run([python, script, *arguments], check=False).returncode:
            failed.append(version)
    words = " ".join(arguments)
    for version in versions:
        if version in here:
            continue
        # In a root of Debian's unstable suite, which has the newest ones.
        install = "DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends"
        install += f" python{version}-venv >/dev/null"
        command = f"{install}; python{version} .ci/release/try_install.py {words}"
        newest = [ROOT / ".ci/newest_python", root, command]
        if subprocess.run(newest, check=False).returncode:
            failed.append(version)
    return failed


def main(arguments: list[str]) -> int:
    """Rehearse; 1 when a Python failed."""
    assert __doc__
    parser = argparse.ArgumentParser(prog="rehearse.py", description=__doc__.partition("\n\n")[0])
    parser.add_argument("out", type=Path, help="a new folder")
    parser.add_argument("--before", default="HEAD~20", metavar="REVISION")
    parser.add_argument("--python", action="append", choices=_PYTHONS, metavar="VERSION")
    parser.add_argument("--root", type=Path, metavar="FOLDER")
    options = parser.parse_args(arguments)
    out: Path = options.out.resolve()
    versions = options.python or list(_PYTHONS)
    out.mkdir(parents=True)
    step("the release's tools")
    commands = tools(out)
    step("two builds")
    dist = built_twice(out, commands / "python")
    step("what others' tools say")
    looked_at(dist, commands)
    step(f"the version before: {options.before}")
    old = before(out, commands / "python", options.before)
    step("the wheels of other projects")
    # The SBOM is made with the Python that runs this.
    own = "{}.{}".format(*sys.version_info)
    others = collected(out, dist, commands, sorted({*versions, own}))
    index.lay([*dist.iterdir(), *old.iterdir(), *others], out / "index")
    with index.served(out / "index") as address:
        step("what accompanies a release")
        described(out, dist, commands, address)
        step("installed from an index on loopback")
        (core,) = dist.glob("probe_core-*.whl")
        version = core.name.split("-")[1]
        root = (options.root or out / "newest").resolve()
        failed = tried(root, versions, [address, version, _BEFORE, *extras(dist)])
    print(f"\nfailed with Python {', '.join(failed)}" if failed else "\nthe rehearsal went well")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
