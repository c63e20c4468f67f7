"""The causes that break a step of readiness, each declared once: all that any surface says of it.

That is its step, its effect on the device and on each runtime, the sentences, the word of the
table, whose devices have it, and the fix for each situation. `readiness` finds a cause and writes
its code; findings, the table, the doctor, the rules of visibility and the reference read the rest
from here. Imported when a device is broken, not before.

Sources of fixes: NVIDIA's README, "Device files" (nodes are 0666 unless a parameter of the module
closes them); systemd.resource-control(5), DeviceAllow=; lxc.container.conf(5); the manuals of
Docker, podman and Apptainer; nvidia-container-toolkit (CDI); NVIDIA's device plugin (a pod's
runtime class is to mount what it grants); Flatpak, which has the libraries of each driver's version
as an extension of its runtime.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Literal, TypedDict, Unpack

    from probe_core.model.document import Severity

    KeepsFrom = Literal["", "cuda", "cuda rule", "rocr", "kfd", "other driver"]
    Fixes = Mapping[str, tuple["Words | Command", ...]]

    class Facts(TypedDict, total=False):
        """What is declared of a cause besides its sentences, see `Cause`."""

        vendor: str
        system: str
        word: str
        keeps_from: KeepsFrom
        parameter: str
        fixes: Fixes


class Words(str):
    """A part of a fix as it is written, with names in braces."""

    __slots__ = ()


class Command(str):
    """A part of a fix that each distribution has its own command for: a topic of `COMMANDS`."""

    __slots__ = ()


class Cause:
    """One cause.

    `step` is the link of the chain that it breaks. `limits` says that the device stays usable, with
    less than it has. `intended` says that somebody set it on purpose, so that it is a notice and no
    failure. `meaning` completes the sentence "DEVICE: …", `check` is how to see it by hand, `fix`
    what helps in general; names in braces are filled in for the device.

    `vendor` and `system` are whose devices can have it, and under which system; "" is any. `word`
    is the device's state in a table, "" where it is the step's own. `fixes` are by situation, see
    `ON_HOST` and `IN_CONTAINER` of `readiness.fixes`; `parameter` is the kernel's, where a fix
    changes the boot loader.

    `keeps_from` says which runtimes alone it keeps the device from; "" is all that need the step:
    ``cuda`` is CUDA (Vulkan needs no nvidia-uvm, and knows no compute mode, MPS or MIG), ``cuda
    rule`` the same by a rule that no device node enforces, so that the kernel driver still lists
    the device; ``rocr`` is a variable that ROCr and HIP alone read (older ROCm lists a GPU under an
    override of another generation, a newer one may not: rocm-systems#5686); ``kfd`` is ROCm's
    interface, without which Vulkan works; ``other driver`` is one that Mesa's Vulkan may use.
    """

    __slots__ = (
        "check",
        "code",
        "fix",
        "fixes",
        "intended",
        "keeps_from",
        "limits",
        "meaning",
        "parameter",
        "step",
        "system",
        "vendor",
        "word",
    )

    def __init__(
        self,
        code: str,
        meaning: str,
        check: str,
        fix: str,
        *,
        limits: bool,
        intended: bool,
        vendor: str = "",
        system: str = "",
        word: str = "",
        keeps_from: KeepsFrom = "",
        parameter: str = "",
        fixes: Fixes | None = None,
    ) -> None:
        self.step = ""
        self.code = code
        self.meaning = meaning
        self.check = check
        self.fix = fix
        self.limits = limits
        self.intended = intended
        self.vendor = vendor
        self.system = system
        self.word = word
        self.keeps_from: KeepsFrom = keeps_from
        self.parameter = parameter
        self.fixes: Fixes = fixes or {}

    @property
    def severity(self) -> Severity:
        """The severity of its finding: a notice where somebody wanted it so, or it can wait."""
        return "info" if self.intended or self.limits else "error"

    @property
    def state(self) -> str:
        """The state of a device with it."""
        return "limited" if self.limits else "blocked"


def blocks(code: str, meaning: str, check: str, fix: str, **facts: Unpack[Facts]) -> Cause:
    return Cause(code, meaning, check, fix, limits=False, intended=False, **facts)


def limits(code: str, meaning: str, check: str, fix: str, **facts: Unpack[Facts]) -> Cause:
    return Cause(code, meaning, check, fix, limits=True, intended=False, **facts)


def intended(
    code: str, meaning: str, check: str, fix: str, *, limits: bool = False, **facts: Unpack[Facts]
) -> Cause:
    return Cause(code, meaning, check, fix, limits=limits, intended=True, **facts)


# Causes on the machine side: the device on its bus, and its kernel driver.

HARDWARE = (
    blocks(
        "off-the-bus",
        "the device is lost: it does not answer on the PCI bus",
        "`lspci -xs {address}` prints ff; the kernel log has Xid 79 or `fallen off the bus`",
        "power the machine off and on; check seating, power cables and riser",
        word="lost",
    ),
    blocks(
        "bar-unassigned",
        "firmware assigned no address to the device's memory",
        "`lspci -vs {address}` prints `Memory at <unassigned>` or none for the large region",
        "switch on Above 4G Decoding in the firmware setup, or boot with `pci=realloc`",
        parameter="pci=realloc",
        fixes={
            "host": (
                Words("switch on Above 4G Decoding in the firmware setup, or "),
                Command("add parameter"),
            ),
        },
    ),
    limits(
        "link-narrow",
        "the PCIe link uses fewer lanes than the device has",
        "`cat {folder}/current_link_width {folder}/max_link_width`",
        "check slot, riser and bifurcation; a slot may have fewer lanes by design",
    ),
    limits(
        "link-slow",
        "the PCIe link is slower than device and slot allow, while the device works",
        "`cat {folder}/current_link_speed {folder}/max_link_speed` under load",
        "set the slot's PCIe generation in the firmware setup; check riser and cable",
    ),
    limits(
        "aer-errors",
        "the PCIe link had fatal errors since the machine started",
        "`cat {folder}/aer_dev_fatal`",
        "reseat the card, or set a lower PCIe generation in the firmware setup",
    ),
    limits(
        "rebar-off",
        "programs reach 256 MiB of the device's memory at a time",
        "`lspci -vvs {address}` prints `BAR 1: current size: 256MB` below `Resizable BAR`",
        "switch on Resizable BAR in the firmware setup",
    ),
    intended(
        "mac-guest",
        "this macOS is a virtual machine, which has no GPU or a paravirtual one",
        "`sysctl kern.hv_vmm_present` prints 1",
        "run on the host",
        system="darwin",
    ),
)

DRIVER = (
    blocks(
        "no-driver",
        "no kernel driver is bound",
        "`ls {folder}/driver`",
        "{load}",
        fixes={
            "loaded": (
                Words("`sudo dmesg | grep -i -e {module} -e NVRM` has the reason of the driver"),
            ),
            "host": (
                Words("`sudo modprobe {module}`; where that fails: "),
                Command("driver {module}"),
            ),
        },
    ),
    blocks(
        "driver-not-installed",
        "its kernel driver {module} is not installed",
        "`modinfo {module}` finds no module",
        "install {package}, then reboot",
        fixes={
            "host": (Command("driver {module}"),),
        },
    ),
    blocks(
        "module-missing-for-kernel",
        "the driver {module} is installed for another kernel, not for the running one",
        "`dkms status`; `find /lib/modules -name '{module}.ko*'`",
        "install linux-headers-{release}, then `dkms autoinstall` (`akmods --force` on Fedora)",
        fixes={
            "secure boot": (Command("signed modules"),),
            "host": (Command("headers"),),
        },
    ),
    blocks(
        "secure-boot",
        "Secure Boot is on, and the driver {module} is not loaded",
        "`mokutil --sb-state`; `modprobe {module}` prints `Key was rejected by service`",
        "enrol the key of the module (`mokutil --import`), or install a signed package",
        fixes={
            "host": (Command("module key"),),
        },
    ),
    blocks(
        "module-blacklisted",
        "the driver {module} is kept from loading by the configuration",
        "`modprobe --showconfig | grep {module}`; `cat /proc/cmdline`",
        "remove that line, rebuild the initramfs, then reboot",
    ),
    blocks(
        "module-not-loaded",
        "the driver {module} is installed and not loaded",
        "`lsmod | grep {module}`",
        "`modprobe {module}`, then read the kernel log",
        fixes={
            "host": (Words("`sudo modprobe {module}`; if it fails: `sudo dmesg | tail`"),),
        },
    ),
    blocks(
        "nouveau-bound",
        "nouveau is bound, which CUDA cannot use",
        "`readlink {folder}/driver`",
        "install NVIDIA's driver, blacklist nouveau, rebuild the initramfs, then reboot",
        vendor="nvidia",
        keeps_from="other driver",
        fixes={
            "installed": (
                Words(
                    "`echo blacklist nouveau | sudo tee "
                    "/etc/modprobe.d/blacklist-nouveau.conf`, then "
                ),
                Command("initramfs"),
                Words(", then reboot"),
            ),
            "host": (
                Command("driver nvidia"),
                Words(" (its package blacklists nouveau)"),
            ),
        },
    ),
    blocks(
        "nova-bound",
        "nova is bound, which CUDA cannot use",
        "`readlink {folder}/driver`",
        "install NVIDIA's driver, blacklist nova_core, rebuild the initramfs, then reboot",
        vendor="nvidia",
        keeps_from="other driver",
        fixes={
            "host": (
                Words("`echo blacklist nova_core | sudo tee /etc/modprobe.d/nova.conf`, "),
                Command("driver nvidia"),
            ),
        },
    ),
    blocks(
        "radeon-bound",
        "radeon is bound, which has no compute interface",
        "`readlink {folder}/driver`",
        "boot with `amdgpu.si_support=1 radeon.si_support=0` (GCN 2: cik_support)",
        vendor="amd",
        parameter="{si_or_cik}",
        fixes={
            "host": (Command("add parameter"),),
        },
    ),
    intended(
        "reserved-for-vm",
        "the device is reserved for a virtual machine (passthrough)",
        "`readlink {folder}/driver`",
        "nothing, if that is intended; else take it out of vfio-pci.ids, then reboot",
        word="passthrough",
    ),
    intended(
        "vgpu-host-driver",
        "the driver is NVIDIA's for virtual GPUs, which has no CUDA on the host",
        "`lsmod | grep nvidia_vgpu_vfio`",
        "use the GPU in a guest, or install the ordinary driver",
        vendor="nvidia",
        word="driver error",
        keeps_from="other driver",
    ),
    blocks(
        "open-module-unsupported",
        "NVIDIA's open kernel module does not support this architecture",
        "`cat /proc/driver/nvidia/version` prints Open Kernel Module",
        "install the proprietary kernel module of the same driver branch",
        vendor="nvidia",
        fixes={
            "host": (Command("module closed"),),
        },
    ),
    blocks(
        "closed-module-unsupported",
        "NVIDIA's closed kernel module does not support this architecture",
        "`cat /proc/driver/nvidia/version` prints no Open Kernel Module",
        "install the open kernel module of the same driver branch",
        vendor="nvidia",
        fixes={
            "host": (Command("module open"),),
        },
    ),
    blocks(
        "legacy-branch",
        "the installed driver branch no longer supports this architecture",
        "the kernel log has `ignoring the legacy GPU`",
        "install the driver branch {branch}",
        vendor="nvidia",
        fixes={
            "host": (Command("driver branch"),),
        },
    ),
    blocks(
        "driver-too-old-for-gpu",
        "the installed driver does not support this GPU yet",
        "the kernel log has `not supported by the NVIDIA … driver release`",
        "install a newer driver: {branch} or later",
        vendor="nvidia",
        fixes={
            "host": (Command("driver open"),),
        },
    ),
    blocks(
        "gsp-firmware-missing",
        "the firmware of the installed NVIDIA driver is not there",
        "`ls /lib/firmware/nvidia/{version}`",
        "install the driver's firmware package, then rebuild the initramfs",
        vendor="nvidia",
        word="driver error",
        fixes={
            "host": (
                Command("gsp firmware"),
                Words(", then "),
                Command("initramfs"),
                Words(", then reboot"),
            ),
        },
    ),
    blocks(
        "amdgpu-refused",
        "amdgpu is loaded and did not take the device",
        "the kernel log has `amdgpu` with `Fatal error during GPU init`",
        "`sudo dmesg | grep amdgpu` has the reason; check firmware files, kernel and BIOS setup",
        vendor="amd",
    ),
    blocks(
        "firmware-missing",
        "the driver {module} is loaded, and its firmware is not installed",
        "the kernel log has `Direct firmware load … failed with error -2`",
        "install {package}, then rebuild the initramfs",
        fixes={
            "host": (
                Command("firmware {module}"),
                Words(", then "),
                Command("initramfs"),
                Words(", then reboot"),
            ),
        },
    ),
    blocks(
        "nomodeset",
        "the kernel command line has nomodeset, with which {module} does not start",
        "`cat /proc/cmdline`",
        "remove nomodeset from the boot loader's configuration",
        parameter="nomodeset",
        fixes={
            "host": (Command("remove parameter"),),
        },
    ),
    blocks(
        "kernel-too-old",
        "the kernel's driver {module} does not know the device",
        "the kernel log has `not officially supported by {module}`",
        "install a newer kernel, or boot with `{module}.force_probe` and the device's id",
        parameter="{module}.force_probe={device_id}",
        fixes={
            "old kernel": (
                Words("install Linux {first_kernel} or later: "),
                Command("newer kernel"),
            ),
            "host": (
                Words("install a newer kernel, or "),
                Command("add parameter"),
            ),
        },
    ),
    blocks(
        "npu-no-module",
        "the driver {module} of this NPU is not loaded",
        "`lsmod | grep {module}`",
        "install and load {package}",
        fixes={
            "old kernel": (
                Words("install Linux {first_kernel} or later: "),
                Command("newer kernel"),
            ),
            "host": (
                Words("`sudo modprobe {module}`; where that fails: "),
                Command("driver {module}"),
            ),
        },
    ),
    intended(
        "device-tree-disabled",
        "the board's device tree has an accelerator that is switched off",
        "`cat /proc/device-tree/…/status` prints disabled",
        "enable its device-tree overlay (armbianEnv.txt, extlinux.conf or config.txt), then reboot",
    ),
    blocks(
        "jetson-no-nvgpu",
        "the driver nvgpu of the Jetson module is not loaded",
        "`lsmod | grep nvgpu`",
        "`modprobe nvgpu`, then read the kernel log",
        vendor="nvidia",
        fixes={
            "host": (Words("`sudo modprobe nvgpu`; if it fails: `sudo dmesg | grep nvgpu`"),),
        },
    ),
    blocks(
        "basic-display",
        "Windows uses its basic display driver",
        "Device Manager, Driver tab: Microsoft Basic Display Adapter",
        "install the driver of {vendor}",
        system="windows",
    ),
)


# Causes on the way to the device: its nodes, their permissions, the driver's library.

NODE = (
    blocks(
        "node-missing",
        "a device node is missing",
        "`ls -l {node}`",
        "`nvidia-modprobe -c 0 -u` creates NVIDIA's nodes; udev creates all others",
        word="driver error",
    ),
    blocks(
        "uvm-missing",
        "CUDA needs /dev/nvidia-uvm, which is missing or has no driver",
        "`ls -l /dev/nvidia-uvm; lsmod | grep nvidia_uvm`",
        "on the host: `nvidia-modprobe -u -c 0`; pass /dev/nvidia-uvm to the container",
        vendor="nvidia",
        word="driver error",
        keeps_from="cuda",
        fixes={
            "host": (Words("`sudo nvidia-modprobe -u -c 0`"),),
            "container": (
                Words("on the host `sudo nvidia-modprobe -u -c 0`, then restart the container"),
            ),
        },
    ),
    blocks(
        "service-without-devices",
        "{service} runs with a /dev of its own, without its device nodes",
        "`systemctl show {service} -p PrivateDevices -p DevicePolicy -p DeviceAllow`",
        "`sudo systemctl edit {service}`: `[Service]`, `PrivateDevices=no`; then restart it",
    ),
    blocks(
        "node-number-stale",
        "a device node has the number of another driver",
        "`ls -l {node}; cat /proc/devices`",
        "create the node again; the numbers of nvidia-uvm and nvidia-caps change at each start",
        word="driver error",
        keeps_from="cuda",
    ),
    blocks(
        "container-without-gpus",
        "the container has no device node for it",
        "`ls /dev`",
        "start the container with {option}",
    ),
    intended(
        "hidden-by-container",
        "the container was started without GPUs (NVIDIA_VISIBLE_DEVICES)",
        "`echo $NVIDIA_VISIBLE_DEVICES; ls /dev/nvidia*`",
        "start the container with NVIDIA_VISIBLE_DEVICES=all",
        vendor="nvidia",
    ),
    blocks(
        "pod-without-gpu",
        "the pod has no device node for it",
        "`kubectl get pod -o yaml`: resources.limits",
        "request it: `resources.limits: {{{resource}: 1}}`",
        fixes={
            "granted pod": (
                Words("set `runtimeClassName: nvidia` in the pod's spec, or make it the default"),
            ),
        },
    ),
    blocks(
        "lxc-device-missing",
        "the LXC container lacks a device node",
        "`ls -l {node}`",
        "add `lxc.mount.entry` and `lxc.cgroup2.devices.allow` for {node} (Incus: a gpu device)",
        keeps_from="cuda",
        fixes={
            "proxmox": (
                Words("on the host `pct set ID {missing_nodes}`, then restart the container"),
            ),
        },
    ),
    blocks(
        "flatpak",
        "the Flatpak sandbox has no device node for it",
        "`flatpak info --show-permissions APP`",
        "`flatpak override --user --device=all APP`",
    ),
    blocks(
        "snap",
        "the snap has no device node for it",
        "`snap connections {app}`",
        "`snap connect {app}:opengl` (or its gpu interface)",
    ),
    blocks(
        "cdi-spec-stale",
        "the container's CDI specification is of another driver version",
        "`head /etc/cdi/nvidia.yaml /var/run/cdi/nvidia.yaml`",
        "`nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml`",
        vendor="nvidia",
    ),
    limits(
        "kfd-missing",
        "ROCm needs /dev/kfd, which is missing; Vulkan can use the device",
        "`ls -l /dev/kfd /sys/class/kfd`",
        "{kfd_fix}",
        vendor="amd",
        word="driver error",
        keeps_from="kfd",
    ),
)

LOG_IN = "then log in again"

PERMISSION = (
    blocks(
        "no-permission",
        "this user may not open {node}",
        "`ls -l {node}; id`",
        f"add the user to the group that owns {{node}}, {LOG_IN}",
        fixes={
            "closed group": (Words("`sudo usermod -aG {nvidia_group} $USER`, then log in again"),),
            "closed mode": (
                Words("where `grep -r NVreg_DeviceFile /etc/modprobe.d` shows {nvidia_mode}, "),
                Words("set NVreg_DeviceFileMode=0666, "),
                Command("initramfs"),
                Words(", then reboot"),
            ),
        },
    ),
    blocks(
        "not-in-group",
        "this user may not open {node}",
        "`ls -l {node}; id`",
        f"`sudo usermod -aG {{group}} $USER`, {LOG_IN}",
        fixes={
            "service": (
                Words(
                    "`sudo systemctl edit {service}`: `[Service]`, "
                    "`SupplementaryGroups={groups}`; then restart it"
                ),
            ),
            "docker": (Words("start the container with `--group-add $(stat -c %g {node})`"),),
            "podman": (Words("`podman run --group-add keep-groups` (with crun)"),),
            "kubernetes": (
                Words(
                    "set `securityContext.supplementalGroups` of the pod to what `stat -c %g "
                    "{node}` prints"
                ),
            ),
        },
    ),
    blocks(
        "group-not-active",
        "the user is in the group of {node}, and this process is not",
        "`id; getent group {group}`",
        "log in again, or start the program with `sg {group}`",
        fixes={
            "service": (Words("`sudo systemctl restart {service}`"),),
            "docker": (Words("start the container with `--group-add $(stat -c %g {node})`"),),
        },
    ),
    blocks(
        "userns-group-lost",
        "the user namespace drops the group that may open {node}",
        "`cat /proc/self/uid_map; ls -ln {node}` prints 65534",
        "podman with crun: `--group-add keep-groups`; Docker: run as a user of that group",
    ),
    blocks(
        "selinux-denies",
        "mode and groups allow {node}; SELinux refuses it",
        "`cat /sys/fs/selinux/enforce /proc/self/attr/current`; `ausearch -m avc`",
        "`sudo setsebool -P {selinux_boolean} on`, or `--security-opt label=disable`",
    ),
    blocks(
        "ssh-no-seat",
        "only the user at the screen may open {node}",
        "`getfacl {node}`",
        f"`sudo usermod -aG {{group}} $USER`, {LOG_IN}",
    ),
)

LIBRARY = (
    blocks(
        "library-missing",
        "the libraries of NVIDIA's driver are not installed",
        "`ldconfig -p | grep -e libcuda -e libnvidia-ml`",
        "install the libraries of the driver's version ({package})",
        vendor="nvidia",
        fixes={
            "operator": (
                Words(
                    "run the program in a pod that requests `nvidia.com/gpu`; the GPU "
                    "operator has the driver's libraries in /run/nvidia/driver"
                ),
            ),
            "host": (Command("libraries nvidia"),),
            "docker": (
                Words(
                    "start the container with {option}; nvidia-container-toolkit on the host "
                    "adds the libraries"
                ),
            ),
            "podman": (
                Words(
                    "start the container with {option}; nvidia-container-toolkit on the host "
                    "adds the libraries"
                ),
            ),
            "apptainer": (Words("start the container with `apptainer exec --nv`"),),
            "flatpak": (
                Words(
                    "`flatpak update` (it installs org.freedesktop.Platform.GL.nvidia of "
                    "driver {version})"
                ),
            ),
            "lxc": (
                Words(
                    "in the container run NVIDIA's installer of driver {version} with "
                    "`--no-kernel-module`"
                ),
                Words(" (Incus: `incus config set NAME nvidia.runtime true`)"),
            ),
            "kubernetes": (
                Words("set `runtimeClassName: nvidia` in the pod's spec, or make it the default"),
            ),
        },
    ),
    limits(
        "nvml-missing",
        "libnvidia-ml.so.1 is not installed; CUDA is",
        "`ldconfig -p | grep libnvidia-ml`",
        "install it in the driver's version (Debian: libnvidia-ml1)",
        vendor="nvidia",
        fixes={
            "host": (Command("libraries nvidia"),),
        },
    ),
    blocks(
        "library-broken",
        "a library of the driver cannot be loaded",
        "`ls -lL {library}`; `file -L {library}`",
        "install it again; take CUDA's `stubs` folder out of LD_LIBRARY_PATH",
        vendor="nvidia",
    ),
    blocks(
        "version-mismatch",
        "kernel driver and libraries differ in version",
        "`cat /proc/driver/nvidia/version; ls -l {library}`",
        "reboot, or unload and load the nvidia modules; in a container: no driver in the image",
        vendor="nvidia",
        fixes={
            "host": (
                Words(
                    "`sudo reboot`; or, with no GPU program running: `sudo rmmod nvidia_uvm "
                    "nvidia_drm nvidia_modeset nvidia && sudo modprobe nvidia`"
                ),
            ),
            "container": (
                Words("take the driver's libraries out of the image: the host's are mounted"),
            ),
        },
    ),
    blocks(
        "wsl-no-library",
        "WSL has no CUDA library of the Windows driver",
        "`ls /usr/lib/wsl/lib`",
        "install the driver in Windows, `wsl --update`; remove a Linux driver from WSL",
    ),
    blocks(
        "wsl-linux-driver",
        "a Linux driver inside WSL hides the CUDA library of the Windows driver",
        "`ldconfig -p | grep libcuda.so.1` lists another folder before /usr/lib/wsl/lib",
        "`sudo apt purge '^nvidia-.*' '^libnvidia-.*'` inside WSL; the driver is Windows's",
    ),
)


# Causes in the use of the device: its answers, rules, variables and runtimes.

_RESET = "drain the node, then reset the GPU or reboot"

RESPONDING = (
    blocks(
        "not-responding",
        "its plugin reads neither memory nor runtimes from it",
        "the vendor's tool (nvidia-smi, amd-smi)",
        _RESET,
    ),
    blocks(
        "query-fails",
        "its plugin cannot query it",
        "`probe plugins why-not NAME`",
        "see the finding about that plugin",
        word="driver error",
    ),
    blocks(
        "driver-crashes",
        "a query of its driver's library ends the process",
        "`probe plugins why-not NAME`",
        "read the kernel log; install the driver again",
        word="driver error",
    ),
    blocks(
        "driver-hangs",
        "the driver does not answer",
        "the process is in state D; the kernel log has Xid 45, 79 or 119",
        "reboot; read the kernel log",
    ),
    blocks(
        "gpu-lost",
        "the GPU is lost: the driver cannot reach it",
        "`nvidia-smi` prints `GPU is lost`; the kernel log has Xid 79",
        _RESET,
        vendor="nvidia",
        word="lost",
    ),
    blocks(
        "gpu-reset-required",
        "the GPU must be reset",
        "the kernel log has Xid 46, 62, 64, 95, 109, 119, 120, 140 or 143",
        "`nvidia-smi -r -i N` when it is idle",
        vendor="nvidia",
        word="driver error",
    ),
    limits(
        "row-remap-pending",
        "faulty memory rows are replaced at the next reset",
        "`nvidia-smi -q -d ROW_REMAPPER`",
        "reset the GPU when convenient",
        vendor="nvidia",
    ),
    blocks(
        "row-remap-failed",
        "faulty memory rows cannot be replaced",
        "`nvidia-smi -q -d ROW_REMAPPER`",
        "drain the node and have the card replaced",
        vendor="nvidia",
        word="driver error",
    ),
    blocks(
        "uvm-stale",
        "CUDA does not start after the machine slept (error 999)",
        "all nodes are well, and cuInit returns 999",
        "`rmmod nvidia_uvm; modprobe nvidia_uvm`; NVreg_PreserveVideoMemoryAllocations=1",
        vendor="nvidia",
        word="driver error",
    ),
    limits(
        "xid-seen",
        "NVIDIA's driver logged an error of the GPU (Xid) since the machine started",
        "`sudo dmesg | grep Xid`",
        "look the number up in NVIDIA's Xid catalogue; reset the GPU if it needs one",
        vendor="nvidia",
    ),
    limits(
        "amdgpu-reset-seen",
        "amdgpu had to reset the GPU since the machine started",
        "`sudo dmesg | grep -e 'GPU reset' -e 'ring .* timeout'`",
        "update kernel and firmware; lower clocks if it comes back",
        vendor="amd",
    ),
    limits(
        "slow-init",
        "the first query takes seconds",
        "`nvidia-smi -q | grep Persistence`",
        "run nvidia-persistenced",
        vendor="nvidia",
    ),
    limits(
        "power-capped",
        "the power limit is below the default",
        "`nvidia-smi -q -d POWER`",
        "`nvidia-smi -pl WATTS`",
    ),
    limits(
        "thermal-slowdown",
        "the GPU is slowed down by heat or by its power supply",
        "`nvidia-smi -q -d PERFORMANCE`",
        "check cooling and power cables",
        vendor="nvidia",
    ),
    limits(
        "vgpu-unlicensed",
        "the virtual GPU has no licence, so its speed is limited",
        "`nvidia-smi -q | grep -i licen`",
        "put a token into /etc/nvidia/ClientConfigToken; start nvidia-gridd",
        vendor="nvidia",
        word="driver error",
    ),
    limits(
        "iommu-faults",
        "the IOMMU reports faults of the device",
        "the kernel log has `AMD-Vi: IO_PAGE_FAULT`",
        "boot with `iommu=pt`",
        word="driver error",
        parameter="iommu=pt",
        fixes={
            "host": (Command("add parameter"),),
        },
    ),
    blocks(
        "guc-failed",
        "the GPU's scheduler firmware failed",
        "the kernel log has GuC or `wedged`",
        "update firmware and kernel",
        vendor="intel",
        word="driver error",
    ),
    blocks(
        "gaudi-not-operational",
        "the driver reports that the device does not operate",
        "`cat /sys/class/accel/accel*/device/status`; `hl-smi`",
        "reset the device",
        vendor="intel",
        word="driver error",
    ),
    limits(
        "tdr",
        "Windows resets the driver again and again",
        "Event Viewer, System: Display 4101, or nvlddmkm 153",
        "update the driver; lower the clocks; raise TdrDelay if programs run long kernels",
        system="windows",
    ),
    limits(
        "wired-limit",
        "macOS lets GPU programs use a part of the memory",
        "`sysctl iogpu.wired_limit_mb`",
        "`sudo sysctl iogpu.wired_limit_mb=…`",
        system="darwin",
    ),
)

GRANTED = (
    blocks(
        "cgroup-denied",
        "a cgroup's device rule refuses {node}",
        "`head -c0 {node}` prints `Operation not permitted`",
        "restart the container; use CDI, or `nvidia-ctk system create-dev-char-symlinks`",
        fixes={
            "service": (
                Words(
                    "`sudo systemctl edit {service}`: `[Service]`, {device_rules}; then restart it"
                ),
            ),
            "job": (Words("{job_request}"),),
            "host": (
                Words("ask whoever started this session or job for the device: its cgroup decides"),
            ),
            "lxc": (
                Words(
                    "add `lxc.cgroup2.devices.allow: c MAJOR:* rwm` to the container's "
                    "configuration,"
                ),
                Words(" with the MAJOR that `ls -l {node}` prints; then restart the container"),
            ),
            "pod without NVIDIA": (
                Words("request it: `resources.limits: {{{resource}: 1}}`, then start the pod anew"),
            ),
            "container without NVIDIA": (Words("start the container anew, with {option}"),),
        },
    ),
    intended(
        "slurm-slice",
        "the Slurm job was not given this device",
        "`scontrol show job -d $SLURM_JOB_ID`",
        "ask for more devices (--gres), if the job needs them",
    ),
    intended(
        "not-granted",
        "this process was not given the device",
        "`nvidia-smi -L` lists other GPUs only",
        "nothing, if that is intended; else give more devices to the job or container",
    ),
    intended(
        "kfd-node-closed",
        "the compute interface of AMD does not give the device to this process",
        "`cat /sys/class/kfd/kfd/topology/nodes/*/gpu_id` prints `Operation not permitted`",
        "nothing, if that is intended; else give more devices to the job or container",
        vendor="amd",
    ),
    intended(
        "gpu-excluded",
        "the driver is told to leave the GPU out",
        "`grep Excluded /proc/driver/nvidia/gpus/*/information`",
        "remove NVreg_ExcludedGpus from /etc/modprobe.d, then load the driver again",
        vendor="nvidia",
    ),
    intended(
        "compute-prohibited",
        "the compute mode prohibits all programs",
        "`nvidia-smi -q -d COMPUTE`",
        "as root: `nvidia-smi -c 0`",
        vendor="nvidia",
        keeps_from="cuda rule",
    ),
    blocks(
        "mps-daemon-gone",
        "CUDA is to use the MPS daemon, which does not run",
        "`ls $CUDA_MPS_PIPE_DIRECTORY`",
        "start `nvidia-cuda-mps-control -d`, or unset CUDA_MPS_PIPE_DIRECTORY",
        vendor="nvidia",
        keeps_from="cuda rule",
    ),
    intended(
        "mig-without-instances",
        "MIG mode is on, and no instance exists",
        "`nvidia-smi mig -lgi`",
        "create instances: `nvidia-smi mig -cgi PROFILE -C`; or `nvidia-smi -mig 0`",
        limits=True,
        vendor="nvidia",
        word="MIG mode",
        keeps_from="cuda rule",
    ),
    blocks(
        "mig-cap-denied",
        "this process may not open the MIG instance's node {node}",
        "`ls -l /dev/nvidia-caps`",
        "pass the nodes in /dev/nvidia-caps to the container",
        vendor="nvidia",
        keeps_from="cuda",
    ),
    intended(
        "partition-mode",
        "the card is partitioned; its partitions are devices of their own",
        "`cat {folder}/current_compute_partition`",
        "nothing, if that is intended; else `amd-smi set -C SPX`",
        vendor="amd",
    ),
)

VISIBLE = (
    intended(
        "hidden-by-variable",
        "an environment variable hides it",
        "`env | grep -e VISIBLE_DEVICES -e AFFINITY_MASK -e DEVICE_SELECTOR`",
        "change the variable, if the process may use the device",
    ),
    intended(
        "mig-mode",
        "MIG is on: programs use the instances, not the whole GPU",
        "`nvidia-smi -L`",
        "use the instances; for the whole GPU, as root: `nvidia-smi -mig 0`",
        vendor="nvidia",
        word="MIG mode",
    ),
    intended(
        "hidden-by-runtime",
        "its own runtime does not show it",
        "`probe visible`",
        "`probe visible` prints the reason",
    ),
)

RUNTIME = (
    blocks(
        "libcuda-missing",
        "libcuda.so.1 is not installed",
        "`ldconfig -p | grep libcuda.so.1`",
        "{libcuda_fix}",
        vendor="nvidia",
        fixes={
            "host": (Command("libraries nvidia"),),
            "apptainer": (Words("start the container with `apptainer exec --nv`"),),
        },
    ),
    blocks(
        "driver-older-than-cuda",
        "the driver is older than the CUDA version of this environment",
        "`nvidia-smi` prints the driver's CUDA version; `nvcc --version` the toolkit's",
        "install a newer driver; on data centre GPUs: the package cuda-compat",
        vendor="nvidia",
        fixes={
            "container": (
                Words("install a newer driver on the host, or take an image of an older CUDA;"),
                Words(" on data centre GPUs: the package cuda-compat"),
            ),
        },
    ),
    blocks(
        "cuda-compat-unsupported",
        "libcuda.so.1 is newer than the kernel driver, which no GeForce runs with (CUDA error 804)",
        "`cat /proc/driver/nvidia/version; ls -l {cuda_library}`",
        "install driver {cuda_branch} or later on the host; or take an image for the driver's CUDA"
        " version, without {cuda_folder}",
        vendor="nvidia",
    ),
    blocks(
        "cuda-library-mismatch",
        "libcuda.so.1 is older than the kernel driver (CUDA error 803)",
        "`cat /proc/driver/nvidia/version; ls -l {cuda_library}`",
        "{cuda_fix}",
        vendor="nvidia",
    ),
    blocks(
        "fabric-not-ready",
        "CUDA does not start before the NVSwitch fabric is set up (error 802)",
        "`nvidia-smi -q | grep -A3 Fabric`; `systemctl status nvidia-fabricmanager`",
        "start nvidia-fabricmanager of the driver's exact version",
        vendor="nvidia",
        fixes={
            "host": (Command("fabric manager"),),
        },
    ),
    limits(
        "shm-small",
        "the container shares 64 MiB of memory among processes; NCCL and data loaders need more",
        "`df -h /dev/shm`",
        "start the container with `--shm-size=8g`, or `--ipc=host`",
    ),
    limits(
        "compute-runtime-too-old",
        "Intel's compute runtime is older than the GPU; Vulkan can use the device",
        "`ls -l /usr/lib/x86_64-linux-gnu/libze_intel_gpu.so.1` leads to the build's number",
        "install a newer libze-intel-gpu1 (or intel-level-zero-gpu) and intel-opencl-icd",
        vendor="intel",
        fixes={
            "host": (Command("level zero"),),
        },
    ),
    limits(
        "kfd-no-gpu",
        "the compute interface of AMD does not list the GPU; Vulkan can use it",
        "`grep -l location_id /sys/class/kfd/kfd/topology/nodes/*/properties`",
        "`sudo dmesg | grep -i kfd` has the reason; without PCIe atomics use a slot of the CPU",
        vendor="amd",
        keeps_from="kfd",
    ),
    limits(
        "gfx-not-supported",
        "the installed ROCm has no code for {gfx}; Vulkan can use it",
        "`ls {folder_of_rocblas} | grep {gfx}`",
        "{gfx_fix}",
        vendor="amd",
    ),
    blocks(
        "hsa-override-bad",
        "ROCm does not start with this HSA_OVERRIDE_GFX_VERSION",
        "`echo $HSA_OVERRIDE_GFX_VERSION`",
        "correct it (major.minor.step, as 10.3.0), or `unset HSA_OVERRIDE_GFX_VERSION`",
        vendor="amd",
        word="hidden",
        keeps_from="rocr",
    ),
    blocks(
        "hsa-override-foreign",
        "HSA_OVERRIDE_GFX_VERSION names a generation whose code this GPU cannot run",
        "`echo $HSA_OVERRIDE_GFX_VERSION; rocminfo | grep gfx`",
        "`unset HSA_OVERRIDE_GFX_VERSION`",
        vendor="amd",
        word="hidden",
        keeps_from="rocr",
    ),
    limits(
        "rocm-missing",
        "ROCm's runtime is not installed; Vulkan can use the device",
        "`ldconfig -p | grep -e libhsa-runtime64 -e libamdhip64`",
        "install ROCm's packages; wheels of PyTorch bring their own",
        vendor="amd",
        fixes={
            "host": (
                Command("rocm"),
                Words("; wheels of PyTorch bring their own"),
            ),
        },
    ),
    limits(
        "rocm-kernel-skew",
        "ROCm and the kernel driver are too far apart",
        "`cat /opt/rocm/.info/version; modinfo -F version amdgpu`",
        "install the amdgpu driver of the same release",
        vendor="amd",
    ),
    limits(
        "level-zero-missing",
        "Intel's compute runtime is not installed; Vulkan can use the device",
        "`ldconfig -p | grep libze_intel_gpu`",
        "install libze-intel-gpu1 (or intel-level-zero-gpu) and intel-opencl-icd",
        vendor="intel",
        fixes={
            "host": (Command("level zero"),),
        },
    ),
)


_BY_STEP: dict[str, tuple[Cause, ...]] = {
    "hardware": HARDWARE,
    "driver": DRIVER,
    "node": NODE,
    "permission": PERMISSION,
    "library": LIBRARY,
    "responding": RESPONDING,
    "granted": GRANTED,
    "visible": VISIBLE,
    "runtime": RUNTIME,
}


def _table() -> dict[str, Cause]:
    table = {}
    for step, causes in _BY_STEP.items():
        for cause in causes:
            cause.step = step
            table[cause.code] = cause
    return table


CAUSES = _table()
"""Code to cause, in the order of the chain."""


def cause_of(code: str | None) -> Cause | None:
    """Return the cause of that code; None for codes of others, and for none."""
    return CAUSES.get(code or "")


def limiting(code: str | None) -> bool:
    """Return whether a device with this cause can be used; False for codes of others."""
    cause = cause_of(code)
    return cause is not None and cause.limits


def on_purpose(code: str | None) -> bool:
    """Return whether somebody set the cause on purpose; False for codes of others."""
    cause = cause_of(code)
    return cause is not None and cause.intended
