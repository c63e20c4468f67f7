"""What conda installed beside Python packages: libraries of packages such as `libtorch`."""

from __future__ import annotations

import os
from errno import EFBIG

from probe_core.jsontext import parse
from probe_wheels.distributions import libraries_of
from probe_wheels.files import Exhausted, Opened
from probe_wheels.records import Listing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from probe_wheels.cache import Cache
    from probe_wheels.documents import DistributionDoc
    from probe_wheels.files import Budget

__all__ = ["read_packages"]

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
        os.path.realpath(os.path.join(document["site"], path))
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
    listing = _listing(path, budget, cache)
    files = libraries_of(prefix, listing, budget, cache)
    files = {
        file: document
        for file, document in files.items()
        if os.path.realpath(os.path.join(prefix, file)) not in listed
    }
    if not files:
        return None
    return {
        "name": name,
        "version": version,
        "build": conda_build(rest),
        "path": path,
        "site": prefix,
        "files": files,
        "gfx": sorted(listing.gfx),
        "missing": listing.missing,
        "outside": [],
        "text": {},
        "requires": [],
    }


def _listing(path: str, budget: Budget, cache: Cache | None) -> Listing:
    key = "conda:" + budget.identity(path)
    stored = cache.listing(key) if cache else None
    if stored is not None:
        return stored
    with Opened(path, budget) as file:
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
