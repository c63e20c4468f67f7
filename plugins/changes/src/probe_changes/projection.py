"""A machine as it will be with another kernel or driver: its files, with those changed that follow.

No rule of the doctor stands here: which modules will load, and the texts that the kernel will then
show. The doctor judges the rest.
"""

from __future__ import annotations

from errno import ENOENT
from os import strerror

from probe_changes.facts import version_in
from probe_changes.kernels import MODULES
from probe_changes.modprobe import COPIED, files, lines, module_of
from probe_changes.module_file import ModuleFile, read_module
from probe_core.machine import Machine
from probe_core.model.ids import driver_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from probe_changes.loaders import NextBoot
    from probe_core.doctor.check import Request
    from probe_core.readiness.modules import Modules

JUDGED = (
    *("nvidia", "nvidia_uvm", "nvidia_modeset", "nvidia_drm", "nouveau", "nova_core"),
    *("amdgpu", "radeon", "i915", "xe", "intel_vpu", "amdxdna", "habanalabs"),
    *("hailo_pci", "apex", "neuron", "qaic", "tenstorrent"),
)
"""Modules whose loading decides about an accelerator."""

_RELEASE, _COMMAND_LINE = "/proc/sys/kernel/osrelease", "/proc/cmdline"
_LOADED, _NVIDIA = "/proc/modules", "/proc/driver/nvidia/version"
_LOCKDOWN = "/sys/kernel/security/lockdown"
_ENFORCED = "/sys/module/module/parameters/sig_enforce"
_GUID = "605dab50-e046-4300-abb6-3dd810dd8b23"
_ENROLLED = f"/sys/firmware/efi/efivars/MokListRT-{_GUID}"
_PENDING = f"/sys/firmware/efi/efivars/MokNew-{_GUID}"
_KEYS_LIMIT = 256 << 10
_DKMS = "/var/lib/dkms"

# Made by the distribution with its kernel, and so signed with it; NVIDIA's installer writes into
# kernel/drivers/video, and Ubuntu's signed packages of the driver into kernel/nvidia-580.
_OF_KERNEL, _OF_INSTALLER = "/kernel/", "/kernel/drivers/video/nvidia"


class AsBooted(Machine):
    """A machine with other files: `files` maps a path to its text, or to None for no such file."""

    def __init__(self, machine: Machine, files: Mapping[str, str | None]) -> None:
        vars(self).update(vars(machine))
        self._files = dict(files)
        self._hidden = tuple(f"{path}/" for path, text in files.items() if text is None)

    def read_bytes(self, path: str, limit: int = 1 << 20) -> bytes:
        """Return the bytes of a file as it will be; raises `OSError`."""
        if path in self._files or path.startswith(self._hidden):
            text = self._files.get(path)
            if text is None:
                raise FileNotFoundError(ENOENT, strerror(ENOENT), path)
            return text.encode()[:limit]
        return super().read_bytes(path, limit)

    def exists(self, path: str) -> bool:
        """Return whether the path will be there."""
        if path in self._files:
            return self._files[path] is not None
        return not path.startswith(self._hidden) and super().exists(path)

    def listdir(self, path: str) -> list[str]:
        """Return the sorted names in a folder."""
        return [] if f"{path}/".startswith(self._hidden) else super().listdir(path)


class Projection:
    """What follows from a kernel: the machine, and what could not be known (`unknown`).

    `has_modules` says whether the list of the kernel's modules was read whole: of another one an
    absent module is not known to be absent, and `unseen` is the reason. `refused` maps a module
    that the kernel will refuse to the reason. `driver` is the version of NVIDIA's module, "" where
    nothing shows it.
    """

    def __init__(self, request: Request, boot: NextBoot, driver: str = "") -> None:
        self._request = request
        self._machine = request.machine
        self._boot = boot
        self.release = boot.release or ""
        self.unknown: list[str] = []
        self.refused: dict[str, str] = {}
        self._files: dict[str, ModuleFile] = {}
        self._modules = self._modules_of(self.release)
        self.unseen = f"the modules of Linux {self.release} are not seen whole"
        self.has_modules = self._sees_modules()
        self._is_assumed = bool(driver)
        self.driver, self._is_open = self._nvidia(driver)
        loading = [name for name in JUDGED if self._loads(name)]
        self.machine = AsBooted(self._machine, self._changed(loading))

    def _modules_of(self, release: str) -> Modules:
        """Return the modules of a kernel: those of the doctor's scene, for another release."""
        files: dict[str, str | None] = {_RELEASE: release}
        if self._boot.options is not None:
            files[_COMMAND_LINE] = self._boot.options
        return self._request.scene_of(AsBooted(self._machine, files)).modules

    def _changed(self, loading: list[str]) -> dict[str, str | None]:
        files: dict[str, str | None] = {f"/sys/module/{name}": None for name in JUDGED}
        present = self._request.scene.modules.loaded
        names = [name for name in sorted(present) if name not in JUDGED] + loading
        files[_LOADED] = "".join(f"{name} 0 0 - Live 0x0\n" for name in names or ["(none)"])
        files[_RELEASE] = self.release
        if self._boot.options is not None:
            files[_COMMAND_LINE] = self._boot.options
        files[_NVIDIA] = self._version_text() if "nvidia" in loading else None
        return files

    def _version_text(self) -> str:
        kind = "Open Kernel Module" if self._is_open else "Kernel Module"
        return f"NVRM version: NVIDIA UNIX {kind}  {self.driver}\n"

    # --- which modules load

    def _loads(self, name: str) -> bool:
        modules = self._modules
        if modules.is_built_in(name):
            return True
        if modules.forbidden(name) or (name == "nouveau" and self._is_without_modesetting):
            return False
        if self._is_assumed and name.startswith(("nvidia", "nouveau", "nova")):
            return name.startswith("nvidia")  # its package forbids the others
        file = modules.on_disk(name)
        if file is None:
            # A recording may have no list of modules: then what is loaded now is all that shows.
            if self.has_modules or not self._is_used(name):
                return False
            self._note(name, self.unseen)
            return True
        return self._is_accepted(name, file)

    @property
    def _is_without_modesetting(self) -> bool:
        """Whether nouveau is told to register no driver.

        Its parameter `modeset` at 0 ends nouveau_drm_init at once (recalled of nouveau_drm.c).
        """
        if "nouveau.modeset=0" in self._modules.command_line:
            return True
        return any(
            module_of(words) == "nouveau" and words[0] == "options" and "modeset=0" in words[2:]
            for path in files(self._machine, (*COPIED, "/run/modprobe.d"))
            for words in lines(self._machine, path)
        )

    def _is_used(self, name: str) -> bool:
        """Return whether a module is loaded now, or holds a device."""
        devices = self._request.report["devices"]
        bound = {driver_name(device) for device in devices}
        return name in self._request.scene.modules.loaded or name in bound

    def _is_accepted(self, name: str, file: str) -> bool:
        """Return whether the kernel takes the module's signature; unknown ones count as taken."""
        if not self._enforces or not _is_of_owner(file):
            return True
        module = self._read(file)
        if module.problem:
            self._note(name, f"whether {name} is signed is not known: {module.problem}")
            return True
        if not module.signer:
            self.refused[name] = f"{file} has no signature"
            return False
        trusted = self._is_trusted(name, module.signer)
        if trusted is None:
            self._note(name, f"whether {name}'s key is enrolled is not known: {_ENROLLED}: closed")
        if trusted is False:
            waits = "; it waits for MokManager at the next boot" if self._waits(module) else ""
            self.refused[name] = f"{file} is signed with a key that is not enrolled{waits}"
        return trusted is not False

    def _note(self, name: str, text: str) -> None:
        """Keep what is not known of a module that a device of this machine needs."""
        devices = self._request.report["devices"]
        if any(name in (driver_name(device), device["vendor"]) for device in devices):
            self.unknown.append(text)

    @property
    def _enforces(self) -> bool:
        """Whether the kernel refuses modules without a signature that it trusts."""
        lockdown = self._machine.read(_LOCKDOWN, 256)
        given = _is_enforced(self._modules.command_line)
        if given or (self._machine.read(_ENFORCED, 16) == "Y" and not self._is_by_parameter):
            return True
        # A kernel without the lockdown of Secure Boot (Arch) takes any module.
        if lockdown is not None and any(p in _LOCKED for p in self._modules.command_line):
            return True
        return self._request.scene.modules.secure_boot and "[none]" not in (lockdown or "")

    @property
    def _is_by_parameter(self) -> bool:
        """Whether only a parameter of the running kernel, and none of the next, makes it refuse."""
        return _is_enforced(self._request.scene.modules.command_line)

    def _read(self, file: str) -> ModuleFile:
        if file not in self._files:
            self._files[file] = read_module(self._machine, file)
        return self._files[file]

    def _is_trusted(self, name: str, signer: bytes) -> bool | None:
        """Return whether a signer's key is one that the kernel has; None where nothing tells.

        A module of the same signer that is loaded now under Secure Boot, else the list of keys.
        """
        present = self._request.scene.modules
        file = present.on_disk(name) if name in present.loaded else None
        if file is not None and self._read(file).signer == signer:
            return True
        try:
            keys = self._machine.read_bytes(_ENROLLED, _KEYS_LIMIT)
        except (OSError, ValueError):
            return None
        return _has_key(keys, signer)

    def _waits(self, module: ModuleFile) -> bool:
        try:
            return _has_key(self._machine.read_bytes(_PENDING, _KEYS_LIMIT), module.signer)
        except (OSError, ValueError):
            return False

    # --- NVIDIA's version

    def _nvidia(self, wanted: str) -> tuple[str, bool]:
        """Return the version and whether it is the open module, of the file that will load."""
        text = self._request.scene.nvidia_version
        if wanted:
            return wanted if "." in wanted else f"{wanted}.99", "Open Kernel Module" in text
        file = self._modules.on_disk("nvidia")
        if file is None:
            return "", False
        module = self._read(file)
        if module.version:
            return module.version, module.is_open
        version = self._in_dkms()
        if version:
            return version, "Open Kernel Module" in text
        present = self._request.scene.modules.on_disk("nvidia")
        if present == file and text:  # the file that is loaded, unless it was exchanged since
            return version_in(text), "Open Kernel Module" in text
        self.unknown.append(f"the version of {file} is not known: {module.problem or 'none'}")
        return "", False

    def _in_dkms(self) -> str:
        """Return the version of NVIDIA's module that DKMS built for this kernel."""
        listdir = self._machine.listdir
        for package in listdir(_DKMS):
            if package == "nvidia" or package.startswith("nvidia-"):
                built = [v for v in listdir(f"{_DKMS}/{package}") if self._is_built(package, v)]
                if len(built) == 1:
                    return built[0]
        return ""

    def _is_built(self, package: str, version: str) -> bool:
        folder = f"{_DKMS}/{package}/{version}/{self.release}"
        return any(
            self._machine.listdir(f"{folder}/{arch}/module")
            for arch in self._machine.listdir(folder)
        )

    # --- what the boot, or somebody before it, does

    def module_of(self, devices: Sequence[str]) -> str:
        """Return the module of the vendor of these devices, by their ids."""
        vendors = {d["id"]: d["vendor"] for d in self._request.report["devices"]}
        return _OF_VENDOR.get(vendors.get(devices[0] if devices else "") or "", "nvidia")

    def file_of(self, module: str) -> str | None:
        """Return the path of a module's file for this kernel."""
        return self._modules.on_disk(module)

    def _sees_modules(self) -> bool:
        """Return whether the kernel's modules are seen whole, so that an absent one is absent."""
        roots = [f"{root}/{self.release}" for root in MODULES]
        if any(map(self._machine.listdir, roots)):
            return self._modules.is_complete
        if not self._machine.exists(f"/boot/vmlinuz-{self.release}"):
            self.unseen = f"Linux {self.release} is not installed: its modules are not known"
            return False
        # The name of an image need not be its release, which names the folder.
        self.unseen = f"no folder of modules is seen for Linux {self.release}"
        return False

    def builds_at_boot(self, module: str) -> str:
        """Return what builds a missing module when the machine boots; "" where nothing does."""
        machine = self._machine
        if any(name.endswith(".latest") for name in machine.listdir("/usr/src/akmods")):
            return "akmods builds it at the boot; a second one may be needed"
        builds = any(
            name == module or name.startswith(f"{module}-") for name in machine.listdir(_DKMS)
        )
        has_headers = any(
            machine.exists(f"{root}/{self.release}/build/Makefile") for root in MODULES
        )
        service = any(
            machine.exists(f"{root}/dkms.service")
            for root in ("/lib/systemd/system", "/usr/lib/systemd/system")
        )
        if builds and has_headers and service and not self.failed_build(module):
            return "dkms.service may build it at the boot"
        return ""

    def failed_build(self, module: str) -> str:
        """Return the log of a build for this kernel that left no module."""
        for package in self._machine.listdir(_DKMS):
            if package != module and not package.startswith(f"{module}-"):
                continue
            for version in self._machine.listdir(f"{_DKMS}/{package}"):
                log = f"{_DKMS}/{package}/{version}/build/make.log"
                text = self._machine.read(log, 64 << 10) or ""
                if self.release in text.partition("\n")[0] and not self._is_built(package, version):
                    return log
        return ""


_OF_VENDOR = {"nvidia": "nvidia", "amd": "amdgpu", "intel": "i915"}
"""Vendor to the module, and the package of DKMS, that drives its GPUs."""

_LOCKED = ("lockdown=integrity", "lockdown=confidentiality")
"""Parameters with which a kernel that has the lockdown refuses unsigned modules."""


def _is_enforced(parameters: Sequence[str]) -> bool:
    """Return whether parameters of the kernel have it refuse modules (kstrtobool: =1, =y …)."""
    pairs = (parameter.partition("=") for parameter in parameters)
    values = [value for name, _, value in pairs if name == "module.sig_enforce"]
    return bool(values) and values[-1].lower() in ("", "1", "y", "yes", "on", "t", "true")


def _is_of_owner(file: str) -> bool:
    """Return whether the machine's owner signs a module, not the distribution."""
    return _OF_KERNEL not in file or _OF_INSTALLER in file


def _has_key(keys: bytes, signer: bytes) -> bool:
    """Return whether a list of certificates has a signer's: its issuer and its serial number."""
    from probe_changes.module_file import parts_of_signer

    return bool(signer) and all(part in keys for part in parts_of_signer(signer))
