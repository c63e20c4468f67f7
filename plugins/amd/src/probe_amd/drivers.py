"""Tells why amdgpu does not drive a card, as far as the prober alone can know.

Modules on disk, blacklists, Secure Boot and passthrough are the core's to judge.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_core.api import Machine
    from probe_core.sysfs.pci import Function
    from probe_core.sysfs.sighting import Draft

_MODULE = "/sys/module/amdgpu"


def describe(machine: Machine, draft: Draft, card: Function) -> None:
    """Put what is known of the driver step of a card that is not amdgpu's into `draft`."""
    link = f"{card.folder}/driver"
    if card.driver == "radeon":
        # radeon has no compute interface; amdgpu takes GCN 1 and 2 cards only when told to.
        draft.fact("driver", "broken", f"{link} is radeon", "radeon-bound")
    elif not card.driver and machine.exists(_MODULE):
        evidence = f"{link} is absent, though {_MODULE} is there"
        draft.fact("driver", "broken", evidence, "amdgpu-refused")
