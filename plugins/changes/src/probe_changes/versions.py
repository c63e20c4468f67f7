"""The order of kernel releases: numbers by value, as package managers and loaders sort them."""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

    Key: TypeAlias = tuple[tuple[int, int, str], ...]

_END = (1, 0, "")
"""Sorts after ``~`` and before everything else (deb-version(7), rpm-version(7))."""


def version_key(text: str) -> Key:
    """Return a sorting key: ``6.8.0-100`` is after ``6.8.0-62``, ``6.13~rc1`` before ``6.13``."""
    return (*map(_part, _parts(text)), _END)


def _part(part: str) -> tuple[int, int, str]:
    if part == "~":
        return 0, 0, ""
    # rpmvercmp and GNU's `sort -V`: a number is newer than letters.
    return (3, int(part), "") if part.isdecimal() else (2, 0, part)


def _parts(text: str) -> list[str]:
    """Return runs of digits, runs of letters, and each tilde; what separates them is left out."""
    return re.findall(r"[0-9]+|[^\W\d_]+|~", text[:256])


def package_key(name: str) -> tuple[Key, Key, Key]:
    """Return the key by which GRUB's blscfg sorts the names of its files, without ``.conf``.

    A name is split from the right as rpm's name-version-release, and compared in this order.
    """
    head, _, release = name.rpartition("-")
    first, _, version = head.rpartition("-")
    return version_key(first), version_key(version), version_key(release)
