"""What is known of a prober before it runs: who ships it, where it lies, when it may help."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

__all__ = ["DEFAULT_DEADLINE_S", "DEFAULT_PRIORITY", "FALLBACK", "HOST", "Prober"]

DEFAULT_PRIORITY = 100
DEFAULT_DEADLINE_S = 5.0
HOST = "(host)"
"""Stands for the distribution of a prober that the host registered itself; none can be named so."""

FALLBACK = "fallback"
"""The name of the core-owned terminal prober; nobody else may take it."""


class Prober:
    """One prober: identity, place and manifest.

    `target` is ``module`` or ``module:attribute``. `builtin` is a callable that runs in process.
    `when` is a list of alternative preconditions, empty when there are none. `problems` are
    sentences about the manifest. `needs_site` tells that its module is only importable after the
    `site` module ran (editable installs through import hooks).
    """

    __slots__ = (
        "active",
        "api",
        "builtin",
        "deadline_s",
        "distribution",
        "files",
        "name",
        "needs_site",
        "priority",
        "problems",
        "rejection",
        "summary",
        "target",
        "version",
        "when",
    )

    def __init__(
        self,
        name: str,
        target: str,
        distribution: str = "",
        version: str = "",
        *,
        priority: int = DEFAULT_PRIORITY,
        summary: str = "",
        builtin: Callable[..., Any] | None = None,
    ) -> None:
        self.name = name
        self.target = target
        self.distribution = distribution
        self.version = version
        self.priority = priority
        self.summary = summary
        self.builtin = builtin
        self.api = "1.0"
        self.deadline_s = DEFAULT_DEADLINE_S
        self.active = False
        self.when: list[dict[str, Any]] = []
        self.problems: list[str] = []
        self.rejection: str | None = None
        self.needs_site = False
        self.files: list[str] = []

    @property
    def owner(self) -> str:
        """``probe-nvidia 1.0.0``, as shown to people."""
        return f"{self.distribution} {self.version}".strip()

    def rank(self) -> tuple[int, bool, str, str]:
        """Sort key: highest priority first, then the host's own, then distribution and name."""
        return (-self.priority, self.distribution != HOST, self.distribution, self.name)
