"""Keys of old exo's tables that neither a driver nor a maker calls a chip, and what they mean.

Read from every version of old exo's table (June to December 2024 and the branches of 2025): a
phone's processor stands for its GPU, "QUATRO" is a slip of the keyboard, and two are a form factor.
"""

from __future__ import annotations

__all__ = ["GENERIC", "MEANT"]

MEANT = {
    "APPLE A13 BIONIC": "Apple A13 GPU",
    "APPLE A14 BIONIC": "Apple A14 GPU",
    "APPLE A15 BIONIC": "Apple A15 GPU",
    "APPLE A16 BIONIC": "Apple A16 GPU",
    "NVIDIA QUATRO RTX A6000": "NVIDIA RTX A6000",
    "NVIDIA QUATRO RTX A5000": "NVIDIA RTX A5000",
    "NVIDIA QUATRO RTX A4500": "NVIDIA RTX A4500",
    "NVIDIA QUATRO RTX A4000": "NVIDIA RTX A4000",
    "NVIDIA QUATRO RTX A2000": "NVIDIA RTX A2000",
    "NVIDIA QUADRO RTX 5000 MOBILE": "nvidia/quadro-rtx-5000-mobile",
    "NVIDIA QUADRO RTX 3000 MXM": "Quadro RTX 3000",
}
"""Old key in capitals → a name in chipdb, or the id of a chip."""

GENERIC = {"AMD RADEON GRAPHICS": "every integrated GPU of AMD answers with this name"}
"""Old key in capitals → why no figure belongs to it: it is found, and its figures are 0."""
