"""The installed distributions of an environment, and what their libraries have code for."""

from __future__ import annotations

import os

from probe_wheels.files import Exhausted, Opened, read_text
from probe_wheels.records import Listing, listing_of
from probe_wheels.texts import TEXT_FILES, build_tag, build_text, requires_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from probe_wheels.cache import Cache
    from probe_wheels.documents import DistributionDoc, LibraryDoc
    from probe_wheels.files import Budget

__all__ = ["libraries_of", "normal", "read_distributions"]

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
        document = documents[normal(name)] = _document(metadata, name, version)
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


def _document(metadata: str, name: str, version: str) -> DistributionDoc:
    return {
        "name": name,
        "version": version,
        "build": build_tag(version),
        "path": metadata,
        "site": os.path.dirname(metadata),
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
        with Opened(path, budget) as file:
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
