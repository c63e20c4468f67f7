"""The fix for this situation: the distribution's package, the container's option, the group.

The sentences stand in `model.causes`; here the names in their braces are filled in.
"""

from __future__ import annotations

from probe_core.model.causes import CAUSES
from probe_core.model.findings import NO_FIX
from probe_core.readiness.fix_names import MAKERS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_core.model.document import DeviceDoc, StepDoc
    from probe_core.readiness.scene import Scene

__all__ = ["fix_of", "is_exact", "meaning_of"]


_OF_HOST, _ON_HOST = ("hardware", "driver"), "on the host"


class _Names(dict[str, str]):
    """The names that a sentence may use, each worked out when it is used.

    What is not known reads as its own name.
    """

    def __init__(self, device: DeviceDoc, step: StepDoc, scene: Scene) -> None:
        super().__init__()
        self._of = (device, step, scene)

    def __missing__(self, key: str) -> str:
        make = MAKERS.get(key)
        value = self[key] = key if make is None else make(*self._of)
        return value


def fix_of(device: DeviceDoc, step: StepDoc, scene: Scene) -> str:
    """Return what helps against a broken step of a device."""
    cause = CAUSES.get(step["code"] or "")
    if cause is None:
        return NO_FIX if step["status"] != "broken" else f"see `probe explain {device['id']}`"
    from probe_core.readiness.exact import exact_fix

    names = _Names(device, step, scene)
    if exact := exact_fix(cause.code, scene, names):
        return exact
    text = cause.fix.format_map(names)
    # Nothing inside a container changes the host's card, kernel or driver.
    is_hosts = cause.step in _OF_HOST and scene.container is not None and not cause.intended
    return text if not is_hosts or _ON_HOST in text else f"{_ON_HOST}: {text}"


def is_exact(device: DeviceDoc, step: StepDoc, scene: Scene) -> bool:
    """Return whether `fix_of` is this machine's own command, not the cause's general sentence."""
    from probe_core.readiness.exact import exact_fix

    return exact_fix(step["code"] or "", scene, _Names(device, step, scene)) is not None


def meaning_of(device: DeviceDoc, step: StepDoc, scene: Scene) -> str:
    """Return what a broken step means, as the end of a sentence."""
    cause = CAUSES.get(step["code"] or "")
    if cause is None:
        return f"the step {step['step']} is broken"
    return cause.meaning.format_map(_Names(device, step, scene))
