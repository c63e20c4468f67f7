"""Which Vulkan drivers the loader's variables leave: lists of manifest files, and globs over them.

Source: Vulkan-Loader, loader/loader.c (`loader_icd_scan`), loader/loader_environment.c
(`determine_filter_type`, `check_name_matches_filter_environment_var`). The manifests' names are
those that NVIDIA's, AMD's and Mesa's packages install.
"""

from __future__ import annotations

from probe_core.visibility.vulkan import DISABLE, DRIVER_VARIABLES, FILES, SELECT, VENDORS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


_NOUVEAU = ("nouveau_icd.json", "nouveau_icd.x86_64.json")

# What in a manifest's name tells whose driver it is.
_NAME_PARTS = {
    "nvidia": ("nvidia", "nouveau", "nvk"),
    "amd": ("radeon", "amd"),
    "intel": ("intel",),
    "arm": ("mali", "panfrost", "panvk", "pan"),
    "qualcomm": ("freedreno", "adreno", "turnip"),
    "broadcom": ("broadcom", "v3d"),
    "apple": ("asahi", "molten"),
    "imagination": ("powervr",),
}
_LAVAPIPE = ("lvp_icd.json", "lvp_icd.x86_64.json", "lvp_icd.aarch64.json")
_SOFTWARE = ("lvp", "lavapipe", "swiftshader", "gfxstream", "virtio", "dzn")
_ALL_NAME_PARTS = (*(part for parts in _NAME_PARTS.values() for part in parts), *_SOFTWARE)
_ALL = ("~all~", "*", "**")


def matches(name: str, globs: Sequence[str]) -> bool:
    """Return whether a manifest's file name fits one of the loader's globs, in any case.

    A glob is a name, with ``*`` at its beginning or end only; ``~all~`` fits everything.
    """
    return any(_fits(name.lower(), glob) for glob in globs)


def _fits(name: str, glob: str) -> bool:
    if glob in _ALL:
        return True
    bare = glob.removeprefix("*").removesuffix("*")
    if glob.startswith("*") and glob.endswith("*"):
        return bare in name
    if glob.startswith("*"):
        return name.endswith(bare)
    return name.startswith(bare) if glob.endswith("*") else name == bare


class Filters:
    """What the environment leaves of the installed drivers.

    `variable` and `value` are those that decide; empty where none is set.
    """

    def __init__(self, environ: Mapping[str, str]) -> None:
        self.variable = next((name for name in DRIVER_VARIABLES if environ.get(name)), "")
        self.value = environ.get(self.variable, "")
        self._listed = _file_names(self.value) if self.variable in FILES else None
        self._select = _globs(environ.get(SELECT, ""))
        self._disable = _globs(environ.get(DISABLE, ""))

    def leave(self, vendor: str, driver: str | None) -> bool | None:
        """Return whether a driver for the vendor's GPUs is left; None: unrecognised files decide.

        `driver` is the kernel's driver: NVIDIA's GPUs have another manifest under nouveau.
        """
        manifests = self._manifests(vendor, driver)
        passing = [self._passes(name) for name in manifests]
        if not any(passing):
            return None if self._has_unrecognised() else False
        if all(passing) or not self._disable:
            # Which of a vendor's drivers is installed is not read: one that may be is left.
            return True
        return None

    def may_leave_software(self) -> bool:
        """Return whether a software renderer's driver is left, if it is installed."""
        if self._listed is not None:
            return any(part in name for name in self._listed for part in _SOFTWARE)
        return any(self._passes(name) for name in _LAVAPIPE)

    def _manifests(self, vendor: str, driver: str | None) -> Sequence[str]:
        if self._listed is not None:
            parts = _NAME_PARTS[vendor]
            return [name for name in self._listed if any(part in name for part in parts)]
        open_driver = vendor == "nvidia" and driver in ("nouveau", "nova", "nova-core")
        return _NOUVEAU if open_driver else VENDORS[vendor]

    def _passes(self, name: str) -> bool:
        if self._select and matches(name, self._select):
            return True
        return not self._select and not matches(name, self._disable)

    def _has_unrecognised(self) -> bool:
        """Return whether a file is listed or selected whose name tells no vendor."""
        if self._listed is not None:
            names = [name for name in self._listed if self._passes(name)]
            return any(not _tells_vendor(name) for name in names)
        return any(glob not in _ALL and not _tells_vendor(glob) for glob in self._select)


def _tells_vendor(name: str) -> bool:
    return any(part in name for part in _ALL_NAME_PARTS)


def _globs(value: str) -> list[str]:
    return [glob for glob in value.lower().split(",") if glob]


def _file_names(value: str) -> list[str]:
    names = [path.replace("\\", "/").rsplit("/", 1)[-1].lower() for path in value.split(":")]
    return [name for name in names if name]
