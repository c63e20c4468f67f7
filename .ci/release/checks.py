"""What must hold of a built sdist and wheel, looked up in the files themselves."""

from __future__ import annotations

import re
import tarfile
import zipfile
from collections.abc import Iterator
from email import message_from_string
from email.message import Message
from pathlib import Path

# Written in pieces: no tracked file has the address of a package index.
INDEXES = ["pypi." + "org", "python" + "hosted", "/simple" + "/", "registry." + "npmjs"]
INDEXES += ["--index" + "-url", "extra-index" + "-url"]
# What the build makes, and a source distribution brings along. hatchling adds the .gitignore.
_MADE = re.compile(
    r"PKG-INFO|\.gitignore|man/man1/[a-z-]+\.1|probe_core/report\.schema\.json"
    r"|src/probe_chipdb/table/[a-z_]+\.txt|schema/[a-z.-]+\.json"
)
_SHARED = "package_build.py"
# Of these no distribution has any, whatever git says.
_NEVER = re.compile(
    r"(^|/)(__pycache__|\.git|\.venv|uv\.lock|\.DS_Store)(/|$)|\.(pyc|so|pyd|orig|rej)$"
)
_OLDEST = (2, 4)  # the first with licence expressions (PEP 639)
_RELATIVE = re.compile(r"\]\((?!https://|http://|mailto:|#)[^)\s]+\)")


def problems(name: str, folder: Path, built: Path, ships: bool) -> Iterator[str]:
    """Yield what keeps the sdist and the wheel of a distribution from being published.

    `folder` is the distribution's in the copy that it was built from. With `ships`, addresses of a
    reserved name are wrong too.
    """
    stem = name.replace("-", "_")
    wheels, sdists = sorted(built.glob(f"{stem}-*.whl")), sorted(built.glob(f"{stem}-*.tar.gz"))
    if len(wheels) != 1 or len(sdists) != 1:
        yield f"{name}: {len(wheels)} wheels and {len(sdists)} sdists, not one of each"
        return
    (wheel,), (sdist,) = wheels, sdists
    files = wheel_files(wheel)
    yield from (f"{wheel.name}: {text}" for text in _of_wheel(stem, files))
    sources = sdist_files(sdist)
    yield from (f"{sdist.name}: {text}" for text in _of_sdist(folder, sources))
    for archive, members in ((wheel, files), (sdist, sources)):
        for text in _of_contents(members, ships):
            yield f"{archive.name}: {text}"


def wheel_files(path: Path) -> dict[str, bytes]:
    """Return the files of a wheel."""
    with zipfile.ZipFile(path) as archive:
        return {i.filename: archive.read(i) for i in archive.infolist() if not i.is_dir()}


def sdist_files(path: Path) -> dict[str, bytes]:
    """Return the files of a source distribution, below its folder; a link is its target's text."""
    files = {}
    with tarfile.open(path) as archive:
        for member in archive:
            place = member.name.partition("/")[2]
            opened = archive.extractfile(member) if member.isfile() else None
            if not member.isdir():
                files[place] = opened.read() if opened else member.linkname.encode()
    return files


def metadata(files: dict[str, bytes]) -> Message:
    """Return the metadata of a wheel's or an sdist's files."""
    (text,) = [
        data for name, data in files.items()
        if name == "PKG-INFO" or re.fullmatch(r"[^/]+\.dist-info/METADATA", name)
    ]  # fmt: skip
    return message_from_string(text.decode("utf-8"))


def other_version(name: str, version: str, built: Path) -> str | None:
    """Return the sentence for a wheel that has another version than its tag."""
    (wheel,) = built.glob(f"{name.replace('-', '_')}-*.whl")
    fields = metadata(wheel_files(wheel))
    if (fields["Name"], fields["Version"]) == (name, version):
        return None
    return f"the tag says {name} {version}, the wheel is {fields['Name']} {fields['Version']}"


def _of_wheel(stem: str, files: dict[str, bytes]) -> Iterator[str]:
    if not any("/licenses/LICENSE" in path for path in files):
        yield "no LICENSE; list it in license-files"
    allowed = re.compile(rf"{stem}/|{stem}-[^/]+\.(dist-info|data)/")
    foreign = [path for path in files if not allowed.match(path)]
    if foreign:
        yield f"would install {foreign[0]} beside other packages"
    if f"{stem}/py.typed" not in files:
        yield "no py.typed, though its metadata says that it is typed"


def _of_sdist(folder: Path, files: dict[str, bytes]) -> Iterator[str]:
    if "LICENSE" not in files:
        yield "no LICENSE"
    for path, data in files.items():
        if _MADE.fullmatch(path) or (folder / path).is_file() or _is_copy(folder, path, data):
            continue
        yield f"{path} is not in the repository"


def _is_copy(folder: Path, path: str, data: bytes) -> bool:
    """Return whether a file is that of all plugins, which each brings along to be built."""
    shared = folder.parents[1] / "packaging" / path
    return path == _SHARED and shared.is_file() and shared.read_bytes() == data


def _of_contents(files: dict[str, bytes], ships: bool) -> Iterator[str]:
    fields = metadata(files)
    version = fields["Metadata-Version"]
    if tuple(map(int, version.split("."))) < _OLDEST:
        yield f"metadata {version}, which has no licence expressions"
    if not fields["License-Expression"] or not fields.get_all("License-File"):
        yield "its metadata names no licence or no file of it"
    description = str(fields.get_payload())
    if relative := _RELATIVE.search(
        re.sub(r"```.*?```|`[^`\n]*`", "", description, flags=re.DOTALL)
    ):
        yield f"a link that leads nowhere on the page of an index: {relative[0]}"
    if ships and "code-host.example" in str(fields):
        yield "its metadata has a placeholder for the project's address"
    for path, data in files.items():
        if _NEVER.search(path):
            yield f"{path} belongs into no distribution"
        for word in INDEXES:
            if word.encode() in data:
                yield f"{path} has an index's address or option: {word}"
