"""The installed distributions of an environment, and what their libraries have code for."""

from __future__ import annotations

import os

from probe_wheels.files import Exhausted, read_text
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
    if listing.cubins:
        groups = [([target], count) for target, count in sorted(listing.cubins.items())]
        files["*.cubin"] = {"format": "cubins", "cuda": groups}
    for path in listing.libraries:
        place = os.path.join(site, path)
        try:
            key = "file:" + budget.identity(place)
        except (OSError, ValueError):  # a NUL in a path
            if len(listing.missing) < 16:
                listing.missing.append(path)
            continue
        document = cache.library(key) if cache else None
        if document is None:
            from probe_wheels.formats.library import read_library  # not when all is cached

            document = read_library(place, budget)
            document = document if any(name in document for name in _CODE) else {}
            if cache:
                cache.keep_library(key, document)
        if document:
            files[path] = document
    return files


def _add_texts(document: DistributionDoc, budget: Budget) -> None:
    """Add what the distribution's own files say of its build: read as texts, never imported."""
    file = TEXT_FILES.get(normal(document["name"]))
    if file is not None:
        try:
            text = read_text(os.path.join(document["site"], file), MAX_METADATA, budget)
        except OSError:
            text = ""
        document["text"] = build_text(text)
        document["build"] = document["build"] or build_tag(document["text"].get("version", ""))
    if document["files"] or file is not None:
        try:
            text = read_text(os.path.join(document["path"], "METADATA"), MAX_METADATA, budget)
        except OSError:
            text = ""
        document["requires"] = requires_of(text)
