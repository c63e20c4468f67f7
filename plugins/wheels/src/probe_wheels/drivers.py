"""Which NVIDIA driver a build needs: rules of minor-version compatibility and of PTX."""

from __future__ import annotations

from probe_wheels.tables import DRIVERS
from probe_wheels.targets import version_of

__all__ = [
    "NEWEST_PTX",
    "cuda_of_driver",
    "dotted",
    "driver_of_ptx",
    "driver_of_toolkit",
    "toolkit_of_ptx",
]

NEWEST_PTX = version_of(DRIVERS["ptx"]["rows"][0][0])
"""The newest PTX ISA whose driver is known here."""


def driver_of_toolkit(toolkit: tuple[int, ...], os: str) -> tuple[int, ...]:
    """Return the first driver that runs machine code of a toolkit; () when nobody knows it."""
    if not toolkit:
        return ()
    majors = DRIVERS["majors"]["windows" if os == "windows" else "linux"]
    return version_of(majors.get(str(toolkit[0]), ""))


def driver_of_ptx(isa: tuple[int, ...], os: str) -> tuple[int, ...]:
    """Return the first driver that compiles a PTX ISA; () when it is newer than the table.

    Windows' drivers have the branch's number, too, and then numbers of their own.
    """
    for row, _, driver in reversed(DRIVERS["ptx"]["rows"]):
        if isa <= version_of(row):
            return _first_driver(driver, os)
    return ()


def cuda_of_driver(driver: tuple[int, ...], os: str) -> tuple[int, ...]:
    """Return the newest CUDA that a driver has: (13, 0) of 580.95.05; () below 10.2."""
    for _, toolkit, first in DRIVERS["ptx"]["rows"]:
        if driver >= _first_driver(first, os):
            return version_of(toolkit)
    return ()


def _first_driver(text: str, os: str) -> tuple[int, ...]:
    version = version_of(text)
    return version[:1] if os == "windows" else version


def toolkit_of_ptx(isa: tuple[int, ...]) -> tuple[int, ...]:
    """Return the toolkit that writes a PTX ISA; the newest that is known for a newer one."""
    for row, toolkit, _ in reversed(DRIVERS["ptx"]["rows"]):
        if isa <= version_of(row):
            return version_of(toolkit)
    return version_of(DRIVERS["ptx"]["rows"][0][1])


def dotted(version: tuple[int, ...]) -> str:
    """Return ``570.26`` of (570, 26), and ``525.60.13`` of (525, 60, 13)."""
    first, *others = version
    return ".".join([str(first), *(f"{number:02d}" for number in others)])
