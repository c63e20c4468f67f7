"""The hook: reads the file that PROBE_SYNTHETIC names, and reports and behaves as it asks."""

from __future__ import annotations

from probe_core.api import NotApplicable, Unavailable, hookimpl, not_applicable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator, Iterator
    from typing import Any, TypedDict

    from probe_core.api import Machine, Request, SampleRequest

    class Script(TypedDict):
        """A checked file. devices and findings: as they are, because wrong ones are a test, too."""

        devices: list[Any]
        findings: list[Any]
        samples: list[Any]
        delay_s: float
        then: str | None


VARIABLE = "PROBE_SYNTHETIC"
"""Names the file, as a path on the machine that is probed."""

_KEYS = {"devices", "findings", "samples", "delay_s", "then"}
_MAX_DELAY_S = 3600  # longer than any deadline


@hookimpl
def probe_devices(request: Request) -> Generator[Any, None, NotApplicable | None]:
    """Yield the file's devices and findings, then behave as its ``then`` asks.

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


@hookimpl
def sample_devices(request: SampleRequest) -> Iterator[Any] | NotApplicable:
    """Yield the file's samples, which is read in each round; one with ``then`` behaves so first.

    Raises `Unavailable` as `probe_devices` does.
    """
    path = request.machine.environ.get(VARIABLE)
    script = load(request.machine, path) if path else None
    if script is None or not script["samples"]:
        return not_applicable(f"no samples are in {path}" if path else f"{VARIABLE} names no file")
    return _samples(request, script["samples"])


def _samples(request: SampleRequest, samples: list[Any]) -> Iterator[Any]:
    from probe_synthetic.behaviours import BEHAVIOURS

    for sample in samples:
        then = sample.get("then") if isinstance(sample, dict) else None
        device = sample.get("device") if isinstance(sample, dict) else None
        if isinstance(device, str):
            if request.skip(device):
                continue
            request.touching(device)
        if then in BEHAVIOURS:
            BEHAVIOURS[then]()
            sample = {key: value for key, value in sample.items() if key != "then"}
        yield sample


def load(machine: Machine, path: str) -> Script:
    """Return the checked content of a file, with every key that the README describes."""
    import json

    try:
        content = json.loads(machine.read_bytes(path))
    except OSError as error:
        reason = error.strerror or str(error)
        raise Unavailable(f"{path} cannot be read: {reason}", code="file-missing") from None
    except (ValueError, RecursionError) as error:
        raise Unavailable(f"{path} is no JSON: {error}", code="file-broken") from None
    try:
        return check(content)
    except ValueError as error:
        raise Unavailable(f"{path}: {error}", code="file-broken") from None


def check(content: object) -> Script:
    """Return the script with all keys; raises `ValueError` with what is wrong."""
    table = {"devices": content} if isinstance(content, list) else content
    if not isinstance(table, dict) or not set(table) <= _KEYS:
        raise ValueError(f"expected a list of devices, or a table of {', '.join(sorted(_KEYS))}")
    return {
        "devices": _list(table, "devices"),
        "findings": _list(table, "findings"),
        "samples": _list(table, "samples"),
        "delay_s": _delay(table.get("delay_s", 0)),
        "then": _behaviour(table.get("then")),
    }


def _list(table: dict[str, Any], key: str) -> list[Any]:
    value = table.get(key, [])
    if not isinstance(value, list):
        raise ValueError(f"{key} must be a list")
    return value


def _delay(value: object) -> float:
    # No bool, which Python counts among the whole numbers.
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"delay_s must be seconds from 0 to {_MAX_DELAY_S}")
    if not 0 <= value <= _MAX_DELAY_S:
        raise ValueError(f"delay_s must be seconds from 0 to {_MAX_DELAY_S}")
    return value


def _behaviour(value: object) -> str | None:
    from probe_synthetic.behaviours import BEHAVIOURS

    if value is None:
        return None
    if not isinstance(value, str) or value not in BEHAVIOURS:
        raise ValueError(f"then must be one of {', '.join(BEHAVIOURS)}")
    return value
