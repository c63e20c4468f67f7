"""What is known of a prober before it runs: who ships it, where it lies, when it may help."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeAlias

    from probe_core.api import Request
    from probe_core.model.recorded import RecordedAnswer
    from probe_core.registry.document import When

    # What a hook returns is checked by the pipeline, whatever its annotation says.
    Builtin: TypeAlias = Callable[[Request], Any]

__all__ = ["DEFAULT_DEADLINE_S", "DEFAULT_PRIORITY", "FALLBACK", "HOST", "Mistake", "Prober"]

DEFAULT_PRIORITY = 100
"""Above the built-in probers (60, 50), below every band that authors choose from (200 to 900)."""

DEFAULT_DEADLINE_S = 5.0
"""Import and call of a prober that names no deadline. A judgement: a laptop's GPU takes 2 s to
resume (btop#1831), and a host should not wait much longer for a driver that hangs."""

HOST = "(host)"
"""Stands for the distribution of a prober that the host registered itself; none can be named so."""

FALLBACK = "fallback"
"""The name of the core-owned terminal prober; nobody else may take it."""


class Mistake:
    """One mistake in a manifest: a sentence, and what was read where."""

    __slots__ = ("evidence", "reason")

    def __init__(self, reason: str, evidence: str) -> None:
        self.reason = reason
        self.evidence = evidence

    def __repr__(self) -> str:
        return repr(self.reason)


class Prober:
    """One prober: identity, place and manifest.

    `target` is ``module`` or ``module:attribute``. `builtin` is a callable that runs in process.
    `when` is a list of alternative preconditions, empty when there are none. `records` is what the
    manifest says of the files that it reads, unchecked: only `probe record` reads that. `manifest`
    is the manifest's path, `problems` are the mistakes in it. `needs_site` tells that its module is
    only importable after the `site` module ran (editable installs through import hooks). `files`
    decide what runs, `distrust` says why root must not use them. `answer` is what a recording has
    of it, which stands for running it.
    """

    __slots__ = (
        "active",
        "answer",
        "api",
        "builtin",
        "deadline_s",
        "distribution",
        "distrust",
        "files",
        "manifest",
        "name",
        "needs_site",
        "priority",
        "problems",
        "records",
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
        builtin: Builtin | None = None,
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
        self.answer: RecordedAnswer | None = None
        self.when: list[When] = []
        self.records: object = None
        self.manifest: str | None = None
        self.problems: list[Mistake] = []
        self.rejection: str | None = None
        self.needs_site = False
        self.files: list[str] = []
        self.distrust: str | None = None

    @property
    def owner(self) -> str:
        """``probe-nvidia 1.0.0``, as shown to people."""
        return f"{self.distribution} {self.version}".strip()

    def rank(self) -> tuple[int, bool, str, str]:
        """Sort key: highest priority first, then the host's own, then distribution and name."""
        return (-self.priority, self.distribution != HOST, self.distribution, self.name)
