"""Kernel modules as files show them: which are loaded, on disk for which kernel, and forbidden."""

from __future__ import annotations

from probe_core.readiness.scene import lazy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_core.machine import Machine

__all__ = [
    "CONFIGURATION",
    "DKMS",
    "ENROLLED",
    "OWN_KEYS",
    "SECURE_BOOT",
    "Modules",
    "driver_of",
    "forbids",
    "module_of",
]

_ROOTS = ("/lib/modules", "/usr/lib/modules")
_SUFFIXES = (".ko", ".ko.xz", ".ko.zst", ".ko.gz")

# Folders below /lib/modules/RELEASE in which distributions put modules from outside the kernel:
# DKMS (updates/dkms, updates, extra), Fedora's akmods (extra), SUSE (updates, weak-updates), Debian
# and Ubuntu's signed packages (kernel/nvidia-580).
_OUTSIDE = ("updates/dkms", "updates", "extra", "weak-updates", "misc", "kernel/drivers/video")
COMMAND_LINE = "/proc/cmdline"
CONFIGURATION = ("/etc/modprobe.d", "/run/modprobe.d", "/usr/lib/modprobe.d", "/lib/modprobe.d")
DKMS = "/var/lib/dkms"
_MAX_FILES = 256
"""Files of one folder that are read. A judgement: a distribution has about twenty."""

SECURE_BOOT = "/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"
ENROLLED = "/sys/firmware/efi/efivars/MokListRT-605dab50-e046-4300-abb6-3dd810dd8b23"
"""The keys that the machine's owner enrolled, as shim hands them on (MokVars.txt)."""

OWN_KEYS = (
    *("/var/lib/shim-signed/mok/MOK.der", "/var/lib/dkms/mok.pub"),
    "/etc/pki/akmods/certs/public_key.der",
)
"""Where Ubuntu, DKMS and Fedora keep the certificate that they sign modules with, as DER."""

_MAX_KEYS = 1 << 16


class Modules:
    """The modules of a Linux machine that runs the kernel `release`; see `Scene.loaded`."""

    def __init__(self, machine: Machine, release: str, loaded: frozenset[str]) -> None:
        self._machine = machine
        self.release = release
        self.loaded = loaded

    def is_loaded(self, name: str) -> bool | None:
        """Return whether a module is loaded or built in; None where nothing tells."""
        if _normal(name) in self.loaded:
            return True
        if self._machine.exists(f"/sys/module/{_normal(name)}"):
            return True
        if self.is_built_in(name):
            return True
        return False if self.loaded or self._machine.exists("/sys/module") else None

    def is_built_in(self, name: str) -> bool:
        """Return whether a module is part of the kernel itself."""
        text = self._machine.read(f"{self.folder}/modules.builtin") if self.folder else None
        return f"/{name}.ko" in (text or "").replace("-", "_")

    @lazy
    def folder(self) -> str:
        """The folder of the running kernel's modules; "" where it is not there."""
        paths = (f"{root}/{self.release}" for root in _ROOTS if self.release)
        return next((path for path in paths if self._machine.listdir(path)), "")

    @lazy
    def kernels(self) -> list[str]:
        """The folders of all installed kernels."""
        machine = self._machine
        folders = {name: f"{root}/{name}" for root in _ROOTS for name in machine.listdir(root)}
        return [folders[name] for name in sorted(folders)][:64]

    def on_disk(self, name: str, folder: str | None = None) -> str | None:
        """Return the path of a module's file for the running kernel, or below `folder`."""
        base = self.folder if folder is None else folder
        if not base:
            return None
        return self._listed(name, base) or self._in_folders(name, base)

    def _listed(self, name: str, base: str) -> str | None:
        """Look into modules.dep, which depmod wrote of every module that modprobe can load."""
        for line in (self._machine.read(f"{base}/modules.dep") or "").splitlines():
            path = line.partition(":")[0]
            if driver_of(path) == _normal(name):
                return path if path.startswith("/") else f"{base}/{path}"
        return None

    def _in_folders(self, name: str, base: str) -> str | None:
        """Look into the folders themselves: modules.dep may be older, or too long to be read."""
        below = self._machine.listdir(f"{base}/kernel")
        own = [f"kernel/{entry}" for entry in below if entry.startswith("nvidia")]
        for place in (*_OUTSIDE, *own, *_IN_TREE.get(name, ())):
            for entry in self._machine.listdir(f"{base}/{place}"):
                if driver_of(entry) == _normal(name):
                    return f"{base}/{place}/{entry}"
        return None

    @property
    def is_complete(self) -> bool:
        """Whether a module that is not found is surely not installed for the running kernel.

        Needs the list that depmod wrote, whole, or a module's file in one of the folders.
        """
        if not self.folder:
            return False
        text = self._machine.read(f"{self.folder}/modules.dep")
        return text is None or self.is_whole(text)

    @staticmethod
    def is_whole(text: str) -> bool:
        """Return whether a list was read to its end: `Machine` reads no more than 1 MiB."""
        return len(text) < (1 << 20) - 4096

    def for_other_kernel(self, name: str) -> str | None:
        """Return where a module is installed for other kernels alone, or built for none."""
        if not self.release:
            return None
        for folder in self.kernels:
            if folder.rpartition("/")[2] != self.release and self.on_disk(name, folder):
                return folder
        return self._in_dkms(name)

    def _in_dkms(self, name: str) -> str | None:
        """Return DKMS's folder of a module that it did not build for the running kernel.

        A version's folder has one for each kernel it was built for, and `source`.
        """
        for package in self._machine.listdir(DKMS):
            if package != name and not package.startswith(f"{name}-"):
                continue
            for version in self._machine.listdir(f"{DKMS}/{package}"):
                built = self._machine.listdir(f"{DKMS}/{package}/{version}")
                if built and self.release not in built:
                    return f"{DKMS}/{package}/{version}"
        return None

    def forbidden(self, name: str) -> tuple[str, str] | None:
        """Return (file, line or parameter) of what keeps a module from loading by itself."""
        return self._by_command_line(name) or self._by_configuration(name)

    @lazy
    def command_line(self) -> list[str]:
        """The kernel's parameters."""
        return (self._machine.read(COMMAND_LINE, 16 << 10) or "").split()

    @property
    def signed_alone(self) -> bool:
        """Whether a parameter has the kernel refuse modules that no key of its own signs.

        Secure Boot or not (kernel-parameters.txt, module.sig_enforce; secureblue#1043).
        """
        return any(f"module.sig_enforce{end}" in self.command_line for end in ("", "=1", "=y"))

    @property
    def iommu_off(self) -> str:
        """The parameter that switches the IOMMU off; "" without one (kernel-parameters.txt)."""
        return next((p for p in self.command_line if p in ("amd_iommu=off", "iommu=off")), "")

    def built_by_dkms(self, name: str, version: str) -> bool:
        """Return whether DKMS built a version of a module for the running kernel."""
        return self.release in self._machine.listdir(f"{DKMS}/{name}/{version}")

    def _by_command_line(self, name: str) -> tuple[str, str] | None:
        for parameter in self.command_line:
            key, _, names = parameter.partition("=")
            listed = [_normal(each) for each in names.split(",")]
            if key in ("module_blacklist", "modprobe.blacklist") and _normal(name) in listed:
                return COMMAND_LINE, parameter
        return None

    def _by_configuration(self, name: str) -> tuple[str, str] | None:
        for folder in CONFIGURATION:
            for entry in self._machine.listdir(folder)[:_MAX_FILES]:
                if entry.endswith(".conf"):  # modprobe reads no others
                    path = f"{folder}/{entry}"
                    if line := _forbidding(self._machine.read(path) or "", name):
                        return path, line
        return None

    @lazy
    def secure_boot(self) -> bool:
        """Whether firmware enforces signatures: the variable's last byte, after its attributes."""
        raw = self._bytes(SECURE_BOOT, 16)
        return len(raw) == 5 and raw[-1] == 1

    @lazy
    def enrolled(self) -> tuple[str, ...]:
        """The certificates of this machine that are enrolled."""
        listed = self._bytes(ENROLLED, _MAX_KEYS)
        keys = {path: self._bytes(path, _MAX_KEYS) for path in OWN_KEYS} if listed else {}
        return tuple(path for path, key in keys.items() if key and key in listed)

    def _bytes(self, path: str, limit: int) -> bytes:
        try:
            return self._machine.read_bytes(path, limit)
        except (OSError, ValueError):
            return b""


_IN_TREE = {
    "amdgpu": ("kernel/drivers/gpu/drm/amd/amdgpu",),
    "radeon": ("kernel/drivers/gpu/drm/radeon",),
    "i915": ("kernel/drivers/gpu/drm/i915",),
    "xe": ("kernel/drivers/gpu/drm/xe",),
    "intel_vpu": ("kernel/drivers/accel/ivpu",),
    "amdxdna": ("kernel/drivers/accel/amdxdna",),
    "habanalabs": ("kernel/drivers/accel/habanalabs",),
    "qaic": ("kernel/drivers/accel/qaic",),
}
"""Module to its folders below a kernel's, as the kernel's build lays them out."""


_OF_DEBIAN = ("nvidia_current", "nvidia_tesla", "nvidia_legacy")


def _normal(name: str) -> str:
    return name.replace("-", "_")


def stem(path: str) -> str | None:
    """Return nvidia_uvm of ``updates/dkms/nvidia-uvm.ko.zst``; None for what is no module."""
    name = path.rpartition("/")[2]
    for suffix in _SUFFIXES:
        if name.endswith(suffix):
            return _normal(name[: -len(suffix)])
    return None


def driver_of(path: str) -> str | None:
    """Return the name that a module's file has once it is loaded; None for what is no module.

    Debian keeps several branches beside each other: nvidia-current.ko, nvidia-tesla-470-uvm.ko
    (nvidia-kernel-common, nvidia-modprobe.conf).
    """
    name = stem(path)
    if name is None or not name.startswith(_OF_DEBIAN):
        return name
    part = name.rpartition("_")[2]
    return f"nvidia_{part}" if part in ("uvm", "drm", "modeset", "peermem") else "nvidia"


def _forbidding(text: str, name: str) -> str | None:
    """Return the line of a modprobe.d file that forbids a module; a backslash continues one."""
    for line in text.replace("\\\n", "").splitlines():
        fields = line.split()
        if module_of(fields) == _normal(name) and forbids(fields):
            return " ".join(fields)[:200]
    return None


def module_of(fields: list[str]) -> str | None:
    """Return the module that a line of modprobe.d is about, with underscores."""
    return _normal(fields[1]) if len(fields) > 1 else None


def forbids(fields: list[str]) -> bool:
    """Return whether a line of modprobe.d keeps its module from loading by itself."""
    if fields[0] == "install":
        return fields[-1].rpartition("/")[2] in ("false", "true")
    if fields[0] == "alias":  # of the module's own name: `modprobe nvidia` finds no module "off"
        return fields[2:] == ["off"]
    return fields[0] == "blacklist"
