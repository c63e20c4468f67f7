"""How Ray spells a GPU's type in `accelerator_type:X` and `ray.io/accelerator-type`.

Learned from Ray 2.60 (python/ray/_private/accelerators); the tests compare with an installed Ray.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_core.model.document import DeviceDoc

__all__ = ["ray_type"]

_AMD = {
    "66a1": "AMD-Instinct-MI50",
    "738c": "AMD-Instinct-MI100",
    "7408": "AMD-Instinct-MI250X",
    "740c": "AMD-Instinct-MI250X-MI250",
    "740f": "AMD-Instinct-MI210",
    "74a0": "AMD-Instinct-MI300A",
    "74a1": "AMD-Instinct-MI300X-OAM",
    "74a2": "AMD-Instinct-MI308X-OAM",
    "74a5": "AMD-Instinct-MI325X-OAM",
    "74a9": "AMD-Instinct-MI300X-HF",
    "75a0": "AMD-Instinct-MI350X-OAM",
    "75a3": "AMD-Instinct-MI355X-OAM",
    "6798": "AMD-Radeon-R9-200-HD-7900",
    "6799": "AMD-Radeon-HD-7900",
}
"""PCI device id to Ray's name; Ray has no names for other AMD GPUs."""

_INTEL_WORDS = 2


def ray_type(device: DeviceDoc) -> str | None:
    """Return Ray's type of a GPU; None where Ray has none."""
    name = device["name"] or ""
    if device["vendor"] == "nvidia" and name:
        # A MIG instance is of its card's type: Ray asks the card.
        return nvidia_type(name.partition(" MIG ")[0])
    if device["vendor"] == "amd":
        return _AMD.get(((device["pci"] or {}).get("id") or "").partition(":")[2])
    if device["vendor"] == "intel" and name:
        return "Intel-GPU-" + "-".join(name.split(" ")[-_INTEL_WORDS:])
    return None


def nvidia_type(name: str) -> str | None:
    """Return the type in a name of NVIDIA's driver.

    Behind the first word: words of capitals, then capitals and digits with at least one digit (RTX
    6000, H100 of ``H100-SXM``). Without those, the whole product name with dashes.
    """
    first, blank, remainder = name.partition(" ")
    parts = remainder.split()
    kept: list[str] = []
    for part in parts if blank and first.replace("_", "a").isalnum() else ():
        plain = _capitals(part)
        if any(char.isdigit() for char in plain):
            kept.append(plain)
            result = "-".join(kept)
            return result if len(result) > 1 else _whole(name)
        if plain != part or not part.isalpha():
            break
        kept.append(part)
    return _whole(name)


def _capitals(text: str) -> str:
    """Return the capitals and digits that a word begins with."""
    for place, char in enumerate(text):
        if not (char.isascii() and (char.isupper() or char.isdigit())):
            return text[:place]
    return text


def _whole(name: str) -> str | None:
    parts = name.split()
    cleaned = parts[1:] if parts[:1] == ["NVIDIA"] and len(parts) > 1 else parts
    return "-".join(cleaned) or None
