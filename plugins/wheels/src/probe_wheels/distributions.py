"""What is installed in an environment, and what its libraries have code for.

Distributions of Python packages, and what conda installed beside them: libraries of packages such
as `libtorch`. What a distribution says of its own build is text (versions, `version.py`, METADATA):
it tells the toolkit; which GPUs a build has code for, only its libraries tell.
"""

from __future__ import annotations

import os
from errno import EFBIG

from probe_core.jsontext import parse
from probe_wheels.files import Exhausted, read_text
from probe_wheels.records import Listing, listing_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from probe_wheels.documents import DistributionDoc, LibraryDoc
    from probe_wheels.files import Budget
    from probe_wheels.surveying import Cache


MAX_DISTRIBUTIONS = 4096
MAX_METADATA = 256 << 10
MAX_MISSING = 16

_CODE = ("cuda", "hip", "intel", "metal", "vulkan", "packs", "relocatable", "unread", "problem")


def normal(name: str) -> str:
    """Return a name as package indexes compare it: ``Flash_Attn`` is ``flash-attn``."""
    return name.replace("_", "-").replace(".", "-").lower()


def read_distributions(
    sites: Iterable[str],
    budget: Budget,
    cache: Cache | None = None,
    *,
    libraries: bool = True,
) -> list[DistributionDoc]:
    """Return the distributions of some folders; of equal names the first, as for imports.

    Without `libraries` no list of files and no library is read.

    When the budget is used up, the distributions that were not read have a `note`.
    """
    documents: dict[str, DistributionDoc] = {}
    for metadata in _metadata(sites, budget):
        name, version = _name(metadata)
        if normal(name) in documents or len(documents) == MAX_DISTRIBUTIONS:
            continue
        document = documents[normal(name)] = unread(
            name, version, build_tag(version), metadata, os.path.dirname(metadata)
        )
        try:
            if libraries:
                _add_libraries(document, budget, cache)
            _add_texts(document, budget)
        except Exhausted as error:
            document["note"] = f"not all of it was read: {error}"
    return list(documents.values())


def _metadata(sites: Iterable[str], budget: Budget) -> list[str]:
    folders: list[str] = []
    for site in sites:
        # pip renames a distribution to "~ame" while it replaces it.
        folders += [
            os.path.join(site, name)
            for name in budget.listed(site)
            if name.endswith((".dist-info", ".egg-info")) and name[0] not in "~-"
        ]
    return folders


def _name(metadata: str) -> tuple[str, str]:
    name, _, version = os.path.basename(metadata).rpartition(".")[0].partition("-")
    return name.replace("_", "-"), version.partition("-py3")[0]


def unread(name: str, version: str, build: str | None, path: str, site: str) -> DistributionDoc:
    """Return a distribution of which nothing but these is known."""
    return {
        "name": name,
        "version": version,
        "build": build,
        "path": path,
        "site": site,
        "files": {},
        "gfx": [],
        "missing": [],
        "outside": [],
        "text": {},
        "requires": [],
    }


def _add_libraries(document: DistributionDoc, budget: Budget, cache: Cache | None) -> None:
    """Add the libraries, from the cache where the distribution's own list has not changed."""
    listing = _listing(document["path"], document["site"], budget, cache)
    document["files"] = libraries_of(document["site"], listing, budget, cache)
    document["gfx"] = sorted(listing.gfx)
    document["missing"], document["outside"] = listing.missing, listing.outside


def _listing(metadata: str, site: str, budget: Budget, cache: Cache | None) -> Listing:
    if cache is None:
        return listing_of(metadata, site, budget)
    try:
        key = "record:" + budget.identity(os.path.join(metadata, "RECORD"))
    except OSError:
        return listing_of(metadata, site, budget)
    stored = cache.listing(key)
    if stored is None:
        stored = listing_of(metadata, site, budget)
        cache.keep_listing(key, stored)
    return stored


def libraries_of(
    site: str, listing: Listing, budget: Budget, cache: Cache | None
) -> dict[str, LibraryDoc]:
    """Return what each library has code for; those without code for a GPU are left out."""
    files: dict[str, LibraryDoc] = {}
    counts = dict(listing.cubins)
    for path in listing.libraries:
        document = _library(os.path.join(site, path), budget, cache)
        if document is None:
            if len(listing.missing) < MAX_MISSING:
                listing.missing.append(path)
        elif target := _target_of(document):
            counts[target] = counts.get(target, 0) + 1
        elif document:
            files[path] = document
    return {**_objects(counts), **files}


def _library(path: str, budget: Budget, cache: Cache | None) -> LibraryDoc | None:
    """Return what a file has code for, {} for none; None where it is not there."""
    try:
        key = "file:" + budget.identity(path)
    except (OSError, ValueError):  # a NUL in a path
        return None
    document = cache.library(key) if cache else None
    if document is None:
        from probe_wheels.formats.library import read_library  # not when all is cached

        document = read_library(path, budget)
        document = document if any(name in document for name in _CODE) else {}
        if cache:
            cache.keep_library(key, document)
    return document


def _target_of(document: LibraryDoc) -> str:
    """Return the target of a file that is machine code of a GPU itself, else ""."""
    if document.get("machines") not in (["cuda"], ["amdgpu"]):
        return ""
    groups = document.get("cuda") or document.get("hip") or [([""], 1)]
    return groups[0][0][0]


def _objects(counts: dict[str, int]) -> dict[str, LibraryDoc]:
    """Return the files of machine code as two libraries: NVIDIA's and AMD's."""
    groups = [([target], count) for target, count in sorted(counts.items())]
    files: dict[str, LibraryDoc] = {}
    if cubins := [group for group in groups if group[0][0].startswith("sm_")]:
        files["*.cubin"] = {"format": "cubins", "cuda": cubins}
    if objects := [group for group in groups if group[0][0].startswith("gfx")]:
        files["*.co"] = {"format": "code objects", "hip": objects}
    return files


def _add_texts(document: DistributionDoc, budget: Budget) -> None:
    """Add what the distribution's own files say of its build: read as texts, never imported."""
    file = TEXT_FILES.get(normal(document["name"]))
    if file is not None:
        path = os.path.join(document["site"], file)
        try:
            text = read_text(path, MAX_METADATA, budget)
        except OSError as error:
            budget.fault(path, error)
            text = ""
        document["text"] = build_text(text)
        document["build"] = document["build"] or build_tag(document["text"].get("version", ""))
    document["requires"] = requires_of(_metadata_text(document["path"], budget))


def _metadata_text(folder: str, budget: Budget) -> str:
    """Return a METADATA; "" where it is absent. One that is no UTF-8 text is a fault."""
    if not folder.endswith(".dist-info"):
        return ""  # an old egg has its requirements in another form
    path = os.path.join(folder, "METADATA")
    try:
        with budget.open(path) as file:
            raw = file.read(0, MAX_METADATA)
    except OSError as error:
        budget.fault(path, "it is not there" if isinstance(error, FileNotFoundError) else error)
        return ""
    head = raw.replace(b"\r\n", b"\n").partition(b"\n\n")[0]  # the description follows
    try:
        text = head.decode()
    except UnicodeDecodeError as error:
        budget.fault(path, f"byte {error.start} is not UTF-8")
        text = head.decode("utf-8", "replace")
    if b"\0" in head:
        budget.fault(path, "it is no text")
    return text


# What conda installed beside Python packages.

MAX_PACKAGES = 4096
MAX_BYTES = 32 << 20
"""Bytes of one package's list; that of pytorch, of 13,000 files, has 5 MB."""
MAX_ITEMS = 1_000_000
"""Values of one package's list; pytorch's has some 100,000."""


def read_packages(
    prefix: str, documents: Iterable[DistributionDoc], budget: Budget, cache: Cache | None
) -> list[DistributionDoc]:
    """Return conda's packages with code for GPUs that no Python distribution has listed."""
    listed = {
        budget.real(os.path.join(document["site"], path))
        for document in documents
        for path in document["files"]
    }
    packages = []
    folder = os.path.join(prefix, "conda-meta")
    for name in _lists(folder, budget):
        path = os.path.join(folder, name)
        try:
            package = _package(path, prefix, listed, budget, cache)
        except RecursionError:
            budget.fault(path, "it is nested too deep")
            continue  # one broken list hides no other package
        except (OSError, ValueError) as error:
            budget.fault(path, error if isinstance(error, OSError) else f"no JSON: {error}")
            continue
        except Exhausted as error:
            budget.fault(path, str(error))
            break
        if package is not None:
            packages.append(package)
    return packages


def _lists(folder: str, budget: Budget) -> list[str]:
    return [name for name in budget.listed(folder) if name.endswith(".json")][:MAX_PACKAGES]


def _package(
    path: str, prefix: str, listed: set[str], budget: Budget, cache: Cache | None
) -> DistributionDoc | None:
    # name-version-build.json; the name may have dashes, the other two have none.
    stem = os.path.basename(path).removesuffix(".json")
    name, _, rest = stem.rpartition("-")
    name, _, version = name.rpartition("-")
    listing = _package_listing(path, budget, cache)
    files = libraries_of(prefix, listing, budget, cache)
    files = {
        file: document
        for file, document in files.items()
        if budget.real(os.path.join(prefix, file)) not in listed
    }
    if not files:
        return None
    package = unread(name, version, conda_build(rest), path, prefix)
    package["files"], package["gfx"] = files, sorted(listing.gfx)
    package["missing"] = listing.missing
    return package


def _package_listing(path: str, budget: Budget, cache: Cache | None) -> Listing:
    key = "conda:" + budget.identity(path)
    stored = cache.listing(key) if cache else None
    if stored is not None:
        return stored
    with budget.open(path) as file:
        if file.size > MAX_BYTES:
            raise OSError(EFBIG, f"it is longer than {MAX_BYTES >> 20} MiB", path)
        raw = file.read(0, MAX_BYTES)
    # Two bytes of a list of empty lists become 64 in memory.
    if sum(raw.count(mark) for mark in (b",", b"[", b"{")) > MAX_ITEMS:
        raise ValueError("it has too many items")
    document: Any = parse(raw)
    names = document.get("files") if isinstance(document, dict) else None
    if not isinstance(names, list):
        raise ValueError("it has no list of files")
    listing = Listing()
    for name in names:
        if isinstance(name, str):
            listing.add(name)
    if cache:
        cache.keep_listing(key, listing)
    return listing


def conda_build(text: str) -> str | None:
    """Return the build of a build string: ``cu126`` of ``cuda126_mkl_py311h9a1b2c3_300``."""
    for part in text.replace(".", "").split("_"):
        if part.startswith("cuda") and part[4:].isdigit():
            return "cu" + part[4:]
        if part.startswith(("cpu", "rocm")):
            return part
    return None


# What distributions say of their own build, in text.

TEXT_FILES = {
    "torch": "torch/version.py",
    "torchvision": "torchvision/version.py",
    "torchaudio": "torchaudio/version.py",
    "tensorflow": "tensorflow/python/platform/build_info.py",
    "tensorflow-rocm": "tensorflow/python/platform/build_info.py",
    "tensorflow-cpu": "tensorflow/python/platform/build_info.py",
    "onnxruntime": "onnxruntime/capi/build_and_package_info.py",
    "onnxruntime-gpu": "onnxruntime/capi/build_and_package_info.py",
    "xformers": "xformers/version.py",
}
"""Distribution to the file of its own that says what it was built with."""

_TAGS = ("cu", "rocm", "cpu", "xpu", "gpu", "hip", "gfx")
_KEYS = ("__version__", "version", "cuda", "hip", "rocm", "xpu", "cuda_version", "package_name")
MAX_VALUE = 64
MAX_REQUIRES = 256


def build_tag(version: str) -> str | None:
    """Return the build that the local part of a version names: ``cu128`` of ``2.9.1+cu128``.

    Longer ones occur: ``2.8.3+cu12torch2.6cxx11abiFALSE``, ``2.4.0+rocm6.3.4.git7cecbf6d``.
    """
    local = version.partition("+")[2]
    for part in local.replace("-", ".").replace("_", ".").split("."):
        if part.startswith(_TAGS):
            start = local.index(part)
            return _numbered(local[start:])
    return None


def _numbered(text: str) -> str:
    """Return the letters at the start of a text, and the numbers and dots that follow."""
    at = next((at for at, char in enumerate(text) if not char.isalpha()), len(text))
    end = at
    while end < len(text) and (text[end].isdigit() or text[end] == "."):
        end += 1
    return text[:end].rstrip(".")


def build_text(text: str) -> dict[str, str]:
    """Return what a `version.py` or a `build_info.py` assigns; "" for None.

    ``cuda: Optional[str] = '13.0'`` and ``cuda = '11.7'`` both occur, and tensorflow writes
    pairs into one OrderedDict.
    """
    values: dict[str, str] = {}
    for line in text.splitlines()[:4096]:
        name, equals, value = line.partition("=")
        key = name.partition(":")[0].strip()
        if equals and key in _KEYS:
            values[key.strip("_")] = _literal(value.strip())
        elif "OrderedDict([" in line:
            values.update(_pairs(line))
    return values


def _literal(text: str) -> str:
    quote = text[:1]
    if quote in ("'", '"'):
        return text[1:].partition(quote)[0][:MAX_VALUE]
    return "" if text.startswith("None") else text[:MAX_VALUE]


def _pairs(line: str) -> dict[str, str]:
    """Return the wanted pairs of ``OrderedDict([('cuda_version', '12.5.1'), …])``."""
    values = {}
    for key in ("cuda_version", "is_cuda_build", "is_rocm_build"):
        _, mark, rest = line.partition(f"('{key}', ")
        if mark:
            values[key] = rest.partition(")")[0].strip("'")[:MAX_VALUE]
    return values


def requires_of(metadata: str) -> list[str]:
    """Return the requirements in a METADATA that no extra guards: ``nvidia-cublas-cu12==12.8``."""
    lines = []
    for line in metadata.splitlines():
        if not line:
            break  # what follows is the description
        if line.startswith("Requires-Dist:") and "extra ==" not in line:
            lines.append(line[14:].partition(";")[0].strip()[:128])
    return lines[:MAX_REQUIRES]
