"""The hook: reads the file that PROBE_SYNTHETIC names, and does what it says."""

from __future__ import annotations

from probe_core.api import NotApplicable, Unavailable, hookimpl, not_applicable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator
    from typing import Any

    from probe_core.api import Machine, Request

VARIABLE = "PROBE_SYNTHETIC"
"""Names the file, as a path on the machine that is probed."""

_KEYS = {"devices", "findings", "delay_s", "then"}


@hookimpl
def probe_devices(request: Request) -> Generator[dict[str, Any], None, NotApplicable | None]:
    """Yield the file's devices and findings, then behave as its ``then`` says.

    Raises `Unavailable` when the file cannot be read or is not what the README describes.
    """
    path = request.machine.environ.get(VARIABLE)
    if not path:
        return not_applicable(f"{VARIABLE} names no file")
    script = load(request.machine, path)
    yield from script["devices"]
    for finding in script["findings"]:
        yield {"finding": finding}
    if script["delay_s"] or script["then"]:
        from probe_synthetic import behaviours

        behaviours.wait(script["delay_s"])
        if script["then"]:
            behaviours.BEHAVIOURS[script["then"]]()
    if not script["devices"]:
        return not_applicable(f"{path} has no devices")
    return None


def load(machine: Machine, path: str) -> dict[str, Any]:
    """Return the checked content of a file: ``devices``, ``findings``, ``delay_s``, ``then``."""
    import json

    try:
        content = json.loads(machine.read_bytes(path))
    except OSError as error:
        cause = error.strerror or str(error)
        raise Unavailable(f"{path} cannot be read: {cause}", code="file-missing") from None
    except (ValueError, RecursionError) as error:
        raise Unavailable(f"{path} is no JSON: {error}", code="file-broken") from None
    try:
        return check(content)
    except ValueError as error:
        raise Unavailable(f"{path}: {error}", code="file-broken") from None


def check(content: Any) -> dict[str, Any]:
    """Return the script with all keys; raises `ValueError` with what is wrong."""
    from probe_synthetic.behaviours import BEHAVIOURS

    if isinstance(content, list):
        content = {"devices": content}
    if not isinstance(content, dict) or not set(content) <= _KEYS:
        raise ValueError(f"expected a list of devices, or a table of {', '.join(sorted(_KEYS))}")
    script = {"devices": [], "findings": [], "delay_s": 0, "then": None, **content}
    for key in ("devices", "findings"):
        if not isinstance(script[key], list):
            raise ValueError(f"{key} must be a list")
    if type(script["delay_s"]) not in (int, float) or not 0 <= script["delay_s"] <= 3600:
        raise ValueError("delay_s must be seconds from 0 to 3600")
    if script["then"] is not None and script["then"] not in list(BEHAVIOURS):
        raise ValueError(f"then must be one of {', '.join(BEHAVIOURS)}")
    return script
