"""What a report finds, for a host's own log: the logger ``probe_core``, silent by default."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from probe_core.model.document import FindingDoc

_LEVELS = {"info": 20, "warning": 30, "error": 40}
"""Severity to the level of the standard library's logging."""


def log(findings: Iterable[FindingDoc]) -> None:
    """Pass findings on to the logger ``probe_core``: what is wrong, why, and what to do.

    Nothing is imported for it: who has not imported logging has set nothing up that could hear.
    """
    logging = sys.modules.get("logging")
    if logging is None or not hasattr(logging, "getLogger"):
        return
    logger = logging.getLogger("probe_core")
    if not logger.handlers:
        # Else logging's last resort would write warnings to standard error.
        logger.addHandler(logging.NullHandler())
    for finding in findings:
        level = _LEVELS.get(finding["severity"], 20)
        parts = finding["what"], finding["why"], finding["fix"], finding["code"]
        try:
            logger.log(level, "%s: %s; %s [%s]", *parts)
        except Exception:  # a host's own filter or handler: the node starts without its line
            return
