"""Read a cluster from report files; every error names the file or the node."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

from probe_cluster.errors import ClusterError
from probe_cluster.members import Member, member
from probe_core.pipeline.static import read_document

__all__ = ["read_members", "read_reports"]


def read_reports(files: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Return node id → report's document, in the order given.

    Each file is what `probe --json` wrote. Its node's id is what stands before ``=`` (desk=FILE),
    else the file's name without its ending. Raises `ClusterError` for a file that is no report and
    for an id that two files have.
    """
    found: dict[str, dict[str, Any]] = {}
    origin: dict[str, str] = {}
    for given in files:
        id_, path = _split(given)
        if id_ in found:
            raise ClusterError(
                f"node {id_!r} is in two files: {origin[id_]} and {path};"
                f" name one of them: other={path}",
                node=id_,
            )
        found[id_] = _document(path, id_)
        origin[id_] = path
    return found


def _split(given: str) -> tuple[str, str]:
    id_, equals, path = given.partition("=")
    if equals and id_ and path and "/" not in id_ and not os.path.exists(given):
        return id_, path
    return os.path.basename(given).rpartition(".")[0] or os.path.basename(given), given


def _document(path: str, id_: str) -> dict[str, Any]:
    try:
        return read_document(path)
    except OSError as error:
        raise ClusterError(f"{path}: {error.strerror or error}", node=id_) from None
    except (ValueError, RecursionError) as error:
        fix = "write it with `probe --json` of this version"
        why = str(error) or "nested too deep"
        raise ClusterError(f"{path} is no usable report: {why}; {fix}", node=id_) from None


def read_members(
    files: Iterable[str],
    *,
    devices: str = "all",
    bandwidth: Mapping[str, float] | None = None,
    assumed: float | None = None,
) -> list[Member]:
    """Return the members that the files describe.

    `bandwidth` gives a node's memory bandwidth, `assumed` that of every node that does not tell
    it, both in bytes per second. Raises `ClusterError`.
    """
    given = dict(bandwidth or {})
    reports = read_reports(files)
    for id_ in given:
        if id_ not in reports:
            known = ", ".join(reports)
            raise ClusterError(f"a bandwidth names node {id_!r}; there are {known}", node=id_)
    return [
        member(id_, report, devices=devices, bandwidth=given.get(id_, assumed))
        for id_, report in reports.items()
    ]
