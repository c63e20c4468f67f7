"""Names that Kubernetes takes as labels, and Slurm and Ray as types: cut and cleaned.

A label's value has at most 63 of ``A-Za-z0-9._-`` and an alphanumeric at both ends (apimachinery,
validation.IsValidLabelValue). NFD drops an invalid one with a line in its log alone.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_core.model.document import DeviceDoc

__all__ = ["MAX_LABEL", "label_value", "product", "slurm_type"]

MAX_LABEL = 63
_PLAIN = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-")
_ENDS = "._-"


def label_value(text: str, limit: int = MAX_LABEL) -> str:
    """Return `text` as a label's value; "" where nothing of it can be one.

    What is not allowed becomes one dash. Cut first and stripped then: a cut may end with a dash.
    """
    plain = "".join(char if char in _PLAIN else " " for char in text)
    return "-".join(plain.split())[:limit].strip(_ENDS)


def product(device: DeviceDoc, limit: int = MAX_LABEL) -> str | None:
    """Return the product's label: the driver's own name, as GFD spells it; None without a name.

    ``NVIDIA-A100-SXM4-80GB-MIG-3g.40gb`` of a MIG instance, as GFD's strategy `single` has it.
    """
    return label_value(device["name"] or "", limit) or None


def slurm_type(device: DeviceDoc) -> str | None:
    """Return a GRES type: lower case, underscores for blanks, ``[a-z0-9_.-]`` alone.

    ``:`` and parentheses in a type give a node without GPUs. So spelled, a card's type is what
    Slurm's own detection reports (`nvidia_h100_80gb_hbm3`). Without a name that can be one it is
    the PCI id: `pci_10de_2330`.
    """
    number = ((device["pci"] or {}).get("id") or "").replace(":", "_")
    return _plain_type(device["name"] or "") or _plain_type(number and f"pci_{number}")


def _plain_type(name: str) -> str | None:
    plain = "".join(char if char in _PLAIN else " " for char in name.lower())
    return "_".join(plain.split()).strip(_ENDS) or None
