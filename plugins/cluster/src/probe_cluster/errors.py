"""The one error of this package: a sentence that names the node or figure, and what would do."""

from __future__ import annotations

__all__ = ["ClusterError"]


class ClusterError(ValueError):
    """A cluster that cannot be planned with.

    `node` is the id of the node it is about, where it is about one.
    """

    def __init__(self, message: str, *, node: str | None = None) -> None:
        super().__init__(message)
        self.node = node
