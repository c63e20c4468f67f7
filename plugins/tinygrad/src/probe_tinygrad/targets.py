"""The little language of tinygrad's ``DEV`` since 0.13, and how to make a value of it harmless.

``KFD:0,1+AMD;CPU:LLVM`` is two targets: interface KFD and device indices 0 and 1 for AMD, the
renderer LLVM for CPU (tinygrad/helpers.py, class Target).
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["KERNEL_INTERFACES", "Target", "parse", "safe"]

KERNEL_INTERFACES = {"AMD": "KFD", "NV": "NVK"}
"""The interface that goes through the kernel's driver. The others take the PCI device itself:
their constructors write to ``driver/unbind`` (tinygrad/runtime/support/system.py)."""


class Target:
    """One target of a ``DEV`` value: ``interface:indices+device:renderer``, each but one optional.

    suffix: what follows the device, its renderer and architecture.
    """

    __slots__ = ("device", "front", "indices", "interface", "suffix")

    def __init__(self, text: str) -> None:
        front, plus, back = text.rpartition("+")
        interface, colon, indices = front.rpartition(":")
        self.front = front if plus else ""
        self.interface = (interface if colon else front).upper()
        self.indices = indices if colon else ""
        device, _, self.suffix = back.partition(":")
        self.device = device.upper()


def parse(value: str) -> list[Target]:
    """Return the targets of a ``DEV`` value; raises `ValueError` where tinygrad raises."""
    texts = value.split(";")
    for text in texts:
        if text.count("+") > 1 or text.rpartition("+")[2].count(":") > 2:
            raise ValueError(f"too many '+' or ':' in the target {text!r}")
    return [Target(text) for text in texts]


def safe(targets: Sequence[Target]) -> tuple[str, dict[str, str]]:
    """Return (a ``DEV`` value bound to kernel drivers, backend to the reason it is not queried).

    Indices, renderers and architectures stay the user's.
    """
    parts: list[str] = []
    refused: dict[str, str] = {}
    for device, interface in KERNEL_INTERFACES.items():
        own = next((target for target in targets if target.device in ("", device)), None)
        parts.append(_bound(device, interface, own))
        if own and own.interface not in ("", interface):
            refused[device] = (
                f"DEV asks for its interface {own.interface}, and a probe opens {interface} alone"
            )
    parts += [_unbound(target) for target in targets if target.device not in _BOUND]
    return ";".join(parts), refused


_BOUND = ("", *KERNEL_INTERFACES)


def _bound(device: str, interface: str, own: Target | None) -> str:
    """Return a target that goes through the kernel's driver, with the user's other choices."""
    indices = f":{own.indices}" if own and own.indices else ""
    return f"{interface}{indices}+{device}{_suffix(own)}"


def _unbound(target: Target) -> str:
    return f"{target.device}{_suffix(target)}"


def _suffix(target: Target | None) -> str:
    return f":{target.suffix}" if target and target.suffix else ""
