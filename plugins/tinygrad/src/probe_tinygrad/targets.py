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
    """One target of a ``DEV`` value."""

    __slots__ = ("device", "front", "indices", "interface", "renderer")

    def __init__(self, text: str) -> None:
        front, plus, back = text.rpartition("+")
        interface, colon, indices = front.rpartition(":")
        self.front = front if plus else ""
        self.interface = (interface if colon else front).upper()
        self.indices = indices if colon else ""
        device, _, self.renderer = back.partition(":")
        self.device = device.upper()


def parse(value: str) -> list[Target]:
    """Return the targets of a ``DEV`` value; raises `ValueError` where tinygrad raises."""
    texts = value.split(";")
    for text in texts:
        if text.count("+") > 1 or text.rpartition("+")[2].count(":") > 2:
            raise ValueError(f"too many '+' or ':' in the target {text!r}")
    return [Target(text) for text in texts]


def safe(targets: Sequence[Target]) -> tuple[str, dict[str, str]]:
    """Return (a ``DEV`` value bound to kernel drivers, backend to the reason it is not asked).

    Indices, renderers and architectures stay the user's.
    """
    parts, refused = [], {}
    for device, interface in KERNEL_INTERFACES.items():
        own = next((target for target in targets if target.device in ("", device)), None)
        indices = f":{own.indices}" if own and own.indices else ""
        renderer = f":{own.renderer}" if own and own.renderer else ""
        parts.append(f"{interface}{indices}+{device}{renderer}")
        if own and own.interface not in ("", interface):
            refused[device] = (
                f"DEV asks for its interface {own.interface}, and a probe opens {interface} alone"
            )
    parts += [
        f"{target.device}:{target.renderer}" if target.renderer else target.device
        for target in targets
        if target.device not in ("", *KERNEL_INTERFACES)
    ]
    return ";".join(parts), refused
