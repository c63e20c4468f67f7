"""Samples and reports as the core hands them out, made by hand: shapes are those of its types."""

from __future__ import annotations

from typing import Any

GIB = 1 << 30
NIGHT = 1_795_299_243.512
"""2026-11-21T22:14:03.512Z."""


def address(number: int) -> str:
    return f"pci:0000:{number:02x}:00.0"


def sample(device: str = "pci:0000:01:00.0", **figures: Any) -> Any:
    """Return a sample with every key; what is not named is unknown."""
    names = (
        "prober busy activity memory temperature_c power_w power_cap_w clocks_mhz throttled"
        " processes counters xids pressure"
    )
    plain: dict[str, Any] = {
        "device": device,
        "status": "ok",
        "reason": None,
        **dict.fromkeys(names.split()),
        "links": [],
        "unknown": {},
    }
    return plain | figures


def busy(device: str, share: float = 0.96, **figures: Any) -> Any:
    """Return a sample of an H100 at work."""
    plain: dict[str, Any] = {
        "busy": share,
        "activity": {"sm": 0.9, "tensor": 0.61, "memory": 0.4},
        "memory": {"used": 50 * GIB, "total": 80 * GIB},
        "temperature_c": 67.0,
        "power_w": 612.4,
        "power_cap_w": 700.0,
        "clocks_mhz": {"sm": 1755.0, "memory": 2619.0},
        "throttled": [],
        "links": [
            {
                "kind": "pcie",
                "name": None,
                "generation": 5,
                "width": 16,
                "received": 1e9,
                "sent": 2e9,
            }
        ],
        "processes": [{"pid": 81234, "user": "u1001", "memory": 49 * GIB}],
    }
    return sample(device, **(plain | figures))


def silent(device: str, status: str = "unresponsive", reason: str = "it hangs") -> Any:
    return sample(device, status=status, reason=reason)


def report(*names: str, cpu: bool = True) -> Any:
    """Return as much of a report's document as is read here."""
    devices = [
        {"id": address(number), "ids": [address(number)], "kind": "gpu", "name": name,
         "parent": None, "vendor": "nvidia"}
        for number, name in enumerate(names, 1)
    ]  # fmt: skip
    if cpu:
        devices.append(
            {"id": "cpu:0", "ids": ["cpu:0"], "kind": "cpu", "name": "Intel Xeon", "parent": None,
             "vendor": "intel"}
        )  # fmt: skip
    return {"devices": devices}
