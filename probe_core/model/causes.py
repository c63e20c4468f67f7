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

from probe_core.model.fix import (
    REBOOT,
    Command,
    Made,
    at,
    by_hand,
    otherwise,
    parts_of,
    reboot,
    run,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Literal, TypedDict, Unpack

    from probe_core.model.document import Severity, StepDoc
    from probe_core.model.fix import Fix

    Where = Literal["", "host", "container", "Windows", "firmware"]
    KeepsFrom = Literal["", "cuda", "cuda rule", "rocr", "kfd", "other driver"]
    Fixes = Mapping[str, Fix]

    class Facts(TypedDict, total=False):
        """What is declared of a cause besides its sentences, see `Cause`."""

        vendor: str
        system: str
        word: str
        keeps_from: KeepsFrom
        parameter: str
        where: Where
        host: Fix
        fixes: Fixes
        instead: str
        of_process: bool
        of_purpose: bool


class Cause:
    """One cause.

    `step` is the link of the chain that it breaks. `limits` says that the device stays usable, with
    less than it has. `intended` says that somebody set it on purpose, so that it is a notice and no
    failure. `what` completes the sentence "DEVICE: …", and `meaning` is the same with what can use
    the device `instead`. `check` is how to see it by hand, and `parts` are those of what helps in
    general (`model.fix`); names in braces are filled in for the device.

    `vendor` and `system` are whose devices can have it, and under which system; "" is any. `word`
    is the device's state in a table, "" where it is the step's own. `host` is the fix outside of
    containers, `fixes` are by situation, see `ON_HOST` and `IN_CONTAINER` of `readiness.fixes`;
    `parameter` is the kernel's, where a fix changes the boot loader. `where` is where a fix without
    a command is done, if not here: the host's also in a container.

    `of_purpose` says that it keeps a device from computing and from nothing else: it blocks one
    that has no other use (`readiness.purpose`), and limits all others.

    `keeps_from` says which runtimes alone it keeps the device from; "" is all that need the step:
    ``cuda`` is CUDA (Vulkan needs no nvidia-uvm, and knows no compute mode, MPS or MIG), ``cuda
    rule`` the same by a rule that no device node enforces, so that the kernel driver still lists
    the device; ``rocr`` is a variable that ROCr and HIP alone read (older ROCm lists a GPU under an
    override of another generation, a newer one may not: rocm-systems#5686); ``kfd`` is ROCm's
    interface, without which Vulkan works; ``other driver`` is one that Mesa's Vulkan may use.

    `of_process` says that a variable of this process, another process, or a runtime that is not
    installed beside it is the cause: a job that is given the device has an environment and an
    image of its own, and the device for itself.
    """

    def __init__(
        self,
        code: str,
        what: str,
        check: str,
        fix: Fix,
        *,
        limits: bool,
        intended: bool,
        vendor: str = "",
        system: str = "",
        word: str = "",
        keeps_from: KeepsFrom = "",
        parameter: str = "",
        where: Where = "",
        host: Fix | None = None,
        fixes: Fixes | None = None,
        instead: str = "",
        of_process: bool = False,
        of_purpose: bool = False,
    ) -> None:
        self.step = ""
        self.code = code
        self.what = what
        self.meaning = f"{what}; {instead}" if instead else what
        self.check = check
        self.parts = parts_of(fix)
        self.limits = limits
        self.intended = intended
        self.vendor = vendor
        self.system = system
        self.word = word
        self.keeps_from: KeepsFrom = keeps_from
        self.parameter = parameter
        self.where = where
        situations = {"host": host, **(fixes or {})}
        self.fixes = {name: parts_of(fix) for name, fix in situations.items() if fix is not None}
        self.of_process = of_process
        self.of_purpose = of_purpose

    @property
    def fix(self) -> str:
        """The general fix as a line, with names in braces."""
        return "".join(self.parts)

    @property
    def severity(self) -> Severity:
        """The severity of its finding: a notice where somebody wanted it so, or it can wait."""
        return "info" if self.intended or self.limits else "error"

    @property
    def state(self) -> str:
        """The state of a device with it."""
        return "limited" if self.limits else "blocked"


def blocks(code: str, what: str, check: str, fix: Fix, **facts: Unpack[Facts]) -> Cause:
    return Cause(code, what, check, fix, limits=False, intended=False, **facts)


def limits(code: str, what: str, check: str, fix: Fix, **facts: Unpack[Facts]) -> Cause:
    return Cause(code, what, check, fix, limits=True, intended=False, **facts)


def intended(
    code: str, what: str, check: str, fix: Fix, *, limits: bool = False, **facts: Unpack[Facts]
) -> Cause:
    return Cause(code, what, check, fix, limits=limits, intended=True, **facts)


_RUNTIME_CLASS = by_hand(
    "set `runtimeClassName: nvidia` in the pod's spec, or make it the default",
    changes=("setting runtimeClassName",),
)
_ON_HOST = at("host", "on the host ")
_IN_CONTAINER = at("container", "in the container ")
_CONNECTED = (_ON_HOST, run("sudo snap connect {app}:opengl"), " (or its gpu interface)")
_IN_WINDOWS = at("Windows", "in Windows ")
_INITRAMFS = Command("initramfs", by_hand("rebuild the initramfs", changes=("initramfs",)))
_POWER_CYCLE = reboot("power the machine off and on")

# Causes on the machine side: the device on its bus, and its kernel driver.

HARDWARE = (
    blocks(
        "off-the-bus",
        "the device is lost: it does not answer on the PCI bus",
        "`lspci -xs {address}` prints ff; the kernel log has Xid 79 or `fallen off the bus`",
        (_POWER_CYCLE, "; check seating, power cables and riser"),
        word="lost",
    ),
    blocks(
        "bar-unassigned",
        "firmware assigned no address to the device's memory",
        "`lspci -vs {address}` prints `Memory at <unassigned>` or none for the large region",
        "switch on Above 4G Decoding in the firmware setup, or boot with `pci=realloc`",
        where="firmware",
        parameter="pci=realloc",
        host=(
            "switch on Above 4G Decoding in the firmware setup",
            otherwise(", or "),
            Command("add parameter"),
        ),
        # What assigns it is the hypervisor's firmware (NVIDIA/gpu-operator#492; NVIDIA, "Virtual
        # GPU Software User Guide", VMs that use large BARs).
        fixes={
            "virtual machine": (
                _ON_HOST,
                by_hand(
                    "give the virtual machine UEFI firmware and room for 64-bit MMIO (VMware:"
                    " `pciPassthru.use64bitMMIO=TRUE`)",
                    changes=("setting 64-bit MMIO",),
                ),
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
        (
            by_hand("set the slot's PCIe generation", changes=("setting PCIe generation",)),
            " in the firmware setup; check riser and cable",
        ),
        where="firmware",
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
        where="firmware",
    ),
    limits(
        "unlike-siblings",
        "the device has less than its equals on this machine",
        "the vendor's tool (nvidia-smi, amd-smi), for the device and for one of its siblings",
        "compare firmware, slot and settings with those of a sibling",
    ),
    limits(
        "nvlink-inactive",
        "a part of the GPU's NVLinks is down",
        "`nvidia-smi nvlink --status`",
        "check the bridge; a bridge may join fewer links than the GPU has",
        vendor="nvidia",
    ),
    limits(
        "guest-without-avx",
        "the virtual machine's processor has no AVX, without which some builds of ollama and other"
        " programs use no GPU",
        "`grep -c avx /proc/cpuinfo` prints 0",
        "on the host give the virtual machine its own processor: CPU type host (QEMU: `-cpu host`)",
        where="host",
    ),
    intended(
        "mac-guest",
        "this macOS is a virtual machine, which has no GPU or a paravirtual one",
        "`sysctl kern.hv_vmm_present` prints 1",
        "run on the host",
        system="darwin",
    ),
)

# What points to a device that is not there: no device has these, and a finding about none names it.

ABSENT = (
    blocks(
        "wsl-1",
        "this is WSL 1, which has no GPU",
        "`wsl --list --verbose` in Windows prints VERSION 1",
        (_IN_WINDOWS, run("wsl --set-version {NAME} 2")),
        where="Windows",
    ),
    blocks(
        "wsl-without-gpu",
        "Windows gives this WSL no GPU",
        "`ls /dev/dxg`",
        (_IN_WINDOWS, by_hand("install the GPU's driver"), ", then ", run("wsl --update")),
        where="Windows",
    ),
    intended(
        "gpu-off-in-firmware",
        "the laptop's firmware keeps the discrete GPU off",
        "`cat /sys/devices/platform/asus-nb-wmi/dgpu_disable` prints 1",
        (run("supergfxctl -m Hybrid"), REBOOT),
        where="host",
    ),
    intended(
        "gpu-removed-by-rule",
        "a rule of udev takes the discrete GPU off the bus",
        "`grep -r 'ATTR{{remove}}=\"1\"' /etc/udev/rules.d /usr/lib/udev/rules.d`",
        (
            by_hand(
                "set EnvyControl's mode hybrid where that wrote the rule, else remove it",
                changes=("setting graphics mode",),
            ),
            reboot("; then reboot"),
        ),
        where="host",
    ),
    intended(
        "gpu-off-by-mode",
        "the graphics mode leaves the discrete GPU off",
        "`cat /etc/prime-discrete /etc/supergfxd.conf`",
        (
            by_hand(
                "set the mode of prime-select to nvidia, or that of supergfxctl to Hybrid",
                changes=("setting graphics mode",),
            ),
            reboot("; then reboot"),
        ),
        where="host",
    ),
    intended(
        "egpu-off-in-firmware",
        "the laptop's firmware keeps the external GPU that is connected off",
        "`cat /sys/devices/platform/asus-nb-wmi/egpu_connected` prints 1, `egpu_enable` there 0",
        (
            run("echo 1 | sudo tee /sys/devices/platform/asus-nb-wmi/egpu_enable"),
            REBOOT,
            "; the laptop's own discrete GPU is off then",
        ),
        where="host",
    ),
    blocks(
        "egpu-not-authorized",
        "a Thunderbolt device is connected and not authorised, so that its PCIe is off",
        "`boltctl list`",
        run("boltctl enroll {UUID}"),
    ),
    blocks(
        "device-lost",
        "a device fell off the PCI bus since the machine started, and is not there",
        "`sudo dmesg | grep -e 'fallen off the bus' -e 'device lost from bus'`",
        (_POWER_CYCLE, "; check seating, power cables and riser"),
        word="lost",
    ),
    blocks(
        "function-without-gpu",
        "the sound function of a GPU is on the bus, and the GPU is not",
        "`lspci -nn`",
        (run("echo 1 | sudo tee /sys/bus/pci/rescan"), otherwise(", or "), "reboot"),
    ),
    blocks(
        "fewer-than-type",
        "this machine has fewer accelerators than its type in the cloud",
        "`lspci -nn`",
        "stop the instance and start it again; where that does not help, replace it",
    ),
    blocks(
        "driver-without-device",
        "a driver is loaded or installed, and no device that it drives is there",
        "`lsmod`; `lspci -nn`",
        "check that the device is there: seating, power, slot; in a virtual machine attach it",
    ),
)

DRIVER = (
    blocks(
        "no-driver",
        "no kernel driver is bound",
        "`ls {folder}/driver`",
        Made("load"),
        fixes={
            "loaded": "`sudo dmesg | grep -i {log_words}` has the reason of the driver",
            "host": (
                run("sudo modprobe {module}"),
                otherwise("; where that fails: "),
                Command("driver {module}"),
            ),
        },
    ),
    blocks(
        "driver-not-installed",
        "its kernel driver {module} is not installed",
        "`modinfo {module}` finds no module",
        ("install {package}", REBOOT),
        host=Command("driver {module}"),
    ),
    blocks(
        "module-missing-for-kernel",
        "the driver {module} is installed for another kernel, not for the running one",
        "`dkms status`; `find /lib/modules -name '{module}.ko*'`",
        "install linux-headers-{release}, then `dkms autoinstall` (`akmods --force` on Fedora)",
        fixes={
            "secure boot": Command("signed modules"),
            "host": Command("headers"),
        },
    ),
    blocks(
        "module-refused",
        "the kernel refuses the driver {module}, which was built for another one",
        "`sudo dmesg | grep '{module}:'` has `version magic`, `disagrees about version of symbol`"
        " or `Unknown symbol`",
        (
            by_hand(
                "build {module} again against the headers of {release}:"
                " `sudo dkms install --force {module}/VERSION -k {release}`, with the version that"
                " /usr/src names",
                changes=("module {module}",),
            ),
            ", then ",
            run("sudo modprobe {module}"),
        ),
        where="host",
    ),
    blocks(
        "secure-boot",
        "Secure Boot is on, and the driver {module} is not loaded",
        "`mokutil --sb-state`; `modprobe {module}` prints `Key was rejected by service`",
        "enrol the key of the module (`mokutil --import`), or install a signed package",
        host=Command("module key"),
        fixes={
            "enrolled": (
                by_hand(
                    "build {module} again, so that it is signed with the key that is enrolled",
                    changes=("module {module}",),
                ),
                REBOOT,
                otherwise("; where that does not help, "),
                "start another kernel: some take no enrolled keys",
            ),
        },
    ),
    blocks(
        "module-unsigned",
        "the kernel loads signed modules alone, and the driver {module} is not loaded",
        "`cat /proc/cmdline`; `modprobe {module}` prints `Key was rejected by service`",
        "sign {module} with a key that the kernel trusts, or install a package that is signed",
        parameter="module.sig_enforce=1",
        fixes={"signed by parameter": Command("remove parameter")},
    ),
    blocks(
        "module-blacklisted",
        "the driver {module} is kept from loading by the configuration",
        "`modprobe --showconfig | grep {module}`; `cat /proc/cmdline`",
        (by_hand("remove that line, rebuild the initramfs"), REBOOT),
        parameter="{forbidden_line}",
        fixes={
            "forbidden by parameter": Command("remove parameter"),
            "forbidden": (
                by_hand(
                    "remove the line `{forbidden_line}` from {forbidden_in}",
                    removes=("line {forbidden_line} of {forbidden_in}",),
                ),
                ", ",
                _INITRAMFS,
                REBOOT,
            ),
        },
    ),
    blocks(
        "module-not-loaded",
        "the driver {module} is installed and not loaded",
        "`lsmod | grep {module}`",
        (run("sudo modprobe {module}"), ", then read the kernel log"),
        host=(
            run("sudo modprobe {module}"),
            otherwise("; if it fails: "),
            "`sudo dmesg | tail`",
        ),
    ),
    blocks(
        "nouveau-bound",
        "nouveau is bound, which CUDA cannot use",
        "`readlink {folder}/driver`",
        ("install NVIDIA's driver, blacklist nouveau, rebuild the initramfs", REBOOT),
        vendor="nvidia",
        keeps_from="other driver",
        fixes={
            "installed": (
                run("echo blacklist nouveau | sudo tee /etc/modprobe.d/blacklist-nouveau.conf"),
                ", then ",
                _INITRAMFS,
                REBOOT,
            ),
            "host": (Command("driver nvidia"), " (its package blacklists nouveau)"),
        },
    ),
    blocks(
        "nova-bound",
        "nova is bound, which CUDA cannot use",
        "`readlink {folder}/driver`",
        ("install NVIDIA's driver, blacklist nova_core, rebuild the initramfs", REBOOT),
        vendor="nvidia",
        keeps_from="other driver",
        host=(
            run("echo blacklist nova_core | sudo tee /etc/modprobe.d/nova.conf"),
            ", ",
            Command("driver nvidia"),
        ),
    ),
    blocks(
        "radeon-bound",
        "radeon is bound, which has no compute interface",
        "`readlink {folder}/driver`",
        "boot with `amdgpu.si_support=1 radeon.si_support=0` (GCN 2: cik_support)",
        vendor="amd",
        parameter="{si_or_cik}",
        host=Command("add parameter"),
    ),
    intended(
        "reserved-for-vm",
        "the device is reserved for a virtual machine (passthrough)",
        "`readlink {folder}/driver`",
        ("nothing, if that is intended; else take it out of vfio-pci.ids", REBOOT),
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
        host=Command("module closed"),
    ),
    blocks(
        "closed-module-unsupported",
        "NVIDIA's closed kernel module does not support this architecture",
        "`cat /proc/driver/nvidia/version` prints no Open Kernel Module",
        "install the open kernel module of the same driver branch",
        vendor="nvidia",
        host=Command("module open"),
    ),
    blocks(
        "legacy-branch",
        "the installed driver branch no longer supports this architecture",
        "the kernel log has `ignoring the legacy GPU`",
        "install the driver branch {branch}",
        vendor="nvidia",
        host=Command("driver branch"),
    ),
    blocks(
        "driver-too-old-for-gpu",
        "the installed driver does not support this GPU yet",
        "the kernel log has `not supported by the NVIDIA … driver release`",
        "install a newer driver: {branch} or later",
        vendor="nvidia",
        host=Command("driver open"),
    ),
    blocks(
        "gsp-firmware-missing",
        "the firmware of the installed NVIDIA driver is not there",
        "`ls /lib/firmware/nvidia/{version}`",
        "install the driver's firmware package, then rebuild the initramfs",
        vendor="nvidia",
        word="driver error",
        host=(Command("gsp firmware"), ", then ", Command("initramfs"), REBOOT),
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
            "Hailo": (
                by_hand(
                    "install Hailo's firmware: hailofw (Raspberry Pi OS), or download_firmware.sh"
                    " of hailort-drivers",
                    changes=("firmware hailo",),
                ),
                REBOOT,
            ),
        },
        host=(Command("firmware {module}"), ", then ", Command("initramfs"), REBOOT),
    ),
    blocks(
        "nomodeset",
        "the kernel command line has nomodeset, with which {module} does not start",
        "`cat /proc/cmdline`",
        by_hand(
            "remove nomodeset from the boot loader's configuration",
            removes=("parameter nomodeset",),
        ),
        parameter="nomodeset",
        host=Command("remove parameter"),
    ),
    blocks(
        "kernel-too-old",
        "the kernel's driver {module} does not know the device",
        "the kernel log has `not officially supported by {module}`",
        "install a newer kernel, or boot with `{module}.force_probe` and the device's id",
        parameter="{module}.force_probe={device_id}",
        fixes={
            "old kernel": ("install Linux {first_kernel} or later: ", Command("newer kernel")),
            "host": ("install a newer kernel", otherwise(", or "), Command("add parameter")),
        },
    ),
    blocks(
        "npu-no-module",
        "the driver {module} of this NPU is not loaded",
        "`lsmod | grep {module}`",
        "install and load {package}",
        fixes={
            "old kernel": ("install Linux {first_kernel} or later: ", Command("newer kernel")),
            "host": (
                run("sudo modprobe {module}"),
                otherwise("; where that fails: "),
                Command("driver {module}"),
            ),
        },
    ),
    intended(
        "device-tree-disabled",
        "the board's device tree has an accelerator that is switched off",
        "`cat /proc/device-tree/…/status` prints disabled",
        ("enable its device-tree overlay (armbianEnv.txt, extlinux.conf or config.txt)", REBOOT),
    ),
    blocks(
        "jetson-no-nvgpu",
        "the driver nvgpu of the Jetson module is not loaded",
        "`lsmod | grep nvgpu`",
        (run("sudo modprobe nvgpu"), ", then read the kernel log"),
        vendor="nvidia",
        host=(
            run("sudo modprobe nvgpu"),
            otherwise("; if it fails: "),
            "`sudo dmesg | grep nvgpu`",
        ),
    ),
    blocks(
        "basic-display",
        "Windows uses its basic display driver",
        "Device Manager, Driver tab: Microsoft Basic Display Adapter",
        "install the driver of {vendor}",
        where="Windows",
        system="windows",
    ),
)


# Causes on the way to the device: its nodes, their permissions, the driver's library.

NODE = (
    blocks(
        "node-missing",
        "{node} is missing",
        "`ls -l {node}`",
        "load the driver {module} again, or reboot: with it the kernel makes {node}",
        word="driver error",
        fixes={
            "nvidia host": (
                run("sudo nvidia-modprobe -c {minor} -u"),
                " (package nvidia-modprobe)",
            ),
        },
    ),
    blocks(
        "uvm-missing",
        "CUDA needs /dev/nvidia-uvm, which is missing or has no driver",
        "`ls -l /dev/nvidia-uvm; lsmod | grep nvidia_uvm`",
        (
            at("host", "on the host: "),
            run("sudo nvidia-modprobe -u -c 0"),
            "; pass /dev/nvidia-uvm to the container",
        ),
        vendor="nvidia",
        word="driver error",
        keeps_from="cuda",
        fixes={
            "host": (run("sudo nvidia-modprobe -u -c 0"), " (package nvidia-modprobe)"),
            # The host has the node: what lacks is that the container was given it.
            "uvm loaded": "start the container anew with {option}: it lacks the node",
            "container": (
                _ON_HOST,
                run("sudo nvidia-modprobe -u -c 0"),
                ", then start the container anew with {option}",
            ),
        },
    ),
    blocks(
        "service-without-devices",
        "{service} runs with a /dev of its own, without its device nodes",
        "`systemctl show {service} -p PrivateDevices -p DevicePolicy -p DeviceAllow`",
        (
            run("sudo systemctl edit {service}"),
            ": `[Service]`, `PrivateDevices=no`; then restart it",
        ),
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
        # open(2): "ENXIO: the file is a device special file and no corresponding device exists".
        "node-without-driver",
        "{node} is there, and no driver is behind it",
        "`ls -l {node}; cat /proc/devices`",
        (
            run("sudo modprobe {module}"),
            "; a {node} made by hand needs the number that /proc/devices shows",
        ),
        word="driver error",
        fixes={
            "container": "restart the container: its {node} has a number that the host has no more",
        },
    ),
    blocks(
        "container-without-gpus",
        "the container has no device node for it",
        "`ls /dev`",
        "start the container with {option}",
    ),
    blocks(
        "container-without-device",
        "the container was to have an accelerator, and was given none",
        "`env | grep VISIBLE_DEVICES; ls /dev`",
        "start the container anew with the device",
        where="container",
        fixes={
            "kubernetes": "request it in the pod's `resources.limits`, then start the pod anew",
        },
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
            "granted pod": _RUNTIME_CLASS,
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
                _ON_HOST,
                run("pct set {ID} {missing_nodes}"),
                ", then restart the container",
            ),
        },
    ),
    blocks(
        "flatpak",
        "the Flatpak sandbox has no device node for it",
        "`flatpak info --show-permissions APP`",
        (_ON_HOST, run("flatpak override --user --device=all {APP}")),
    ),
    blocks(
        "snap",
        "the snap has no device node for it",
        "`snap connections {app}`",
        _CONNECTED,
    ),
    blocks(
        "cdi-spec-stale",
        "the CDI specification is of another driver version, or of other devices",
        "`head /etc/cdi/nvidia.yaml /var/run/cdi/nvidia.yaml`",
        run("sudo nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml"),
        vendor="nvidia",
    ),
    blocks(
        "toolkit-root-gone",
        "containers get no driver: their toolkit looks for it where no driver is",
        "`grep root /etc/nvidia-container-runtime/config.toml; ls /run/nvidia/driver`",
        run("sudo nvidia-ctk config --in-place --set=nvidia-container-cli.root=/"),
        vendor="nvidia",
    ),
    limits(
        "kfd-missing",
        "ROCm needs /dev/kfd, which is missing",
        "`ls -l /dev/kfd /sys/class/kfd`",
        Made("kfd_fix"),
        vendor="amd",
        instead="Vulkan can use the device",
        of_purpose=True,
        word="driver error",
        keeps_from="kfd",
    ),
)

_LOG_IN = ", then log in again"
_GROUP_OF_HOST = (_ON_HOST, run("sudo usermod -aG {group} $USER"), _LOG_IN)
_SELINUX = (
    _ON_HOST,
    run("sudo setsebool -P {selinux_boolean} on"),
    otherwise(", or "),
    "start the container with `--security-opt label=disable`",
)
_WITH_GROUP = "start the container with the group that `stat -c %g {node}` prints"

PERMISSION = (
    blocks(
        "no-permission",
        "this user may not open {node}",
        "`ls -l {node}; id`",
        # Not the group that owns it: that is root's, or it has no right to it.
        "let this user open {node}: its owner, mode, access list or a security module refuses",
        fixes={
            # Its /dev is the host's: AppArmor refuses what no interface gives.
            "snap": _CONNECTED,
            "closed group": (run("sudo usermod -aG {nvidia_group} $USER"), _LOG_IN),
            "node's group": (run("sudo usermod -aG {node_group} $USER"), _LOG_IN),
            "container without the group": (
                "start the container with the group of {node}: `--group-add {node_group}`"
            ),
            "closed mode": (
                by_hand(
                    "set NVreg_DeviceFileMode=0666 where `grep -r NVreg_DeviceFile /etc/modprobe.d`"
                    " shows {nvidia_mode}",
                    changes=("setting NVreg_DeviceFileMode=0666",),
                ),
                ", ",
                _INITRAMFS,
                REBOOT,
            ),
        },
    ),
    blocks(
        "not-in-group",
        "this user may not open {node}",
        "`ls -l {node}; id`",
        (run("sudo usermod -aG {group} $USER"), _LOG_IN),
        fixes={
            "service": (
                run("sudo systemctl edit {service}"),
                ": `[Service]`, `SupplementaryGroups={groups}`; then restart it",
            ),
            "docker": "start the container with `--group-add $(stat -c %g {node})`",
            "podman": "`podman run --group-add keep-groups` (with crun)",
            "kubernetes": by_hand(
                "set `securityContext.supplementalGroups` of the pod to what `stat -c %g {node}`"
                " prints",
                changes=("setting securityContext.supplementalGroups",),
            ),
            # Their processes have the groups of the host's user.
            "apptainer": _GROUP_OF_HOST,
            "flatpak": _GROUP_OF_HOST,
            "snap": _GROUP_OF_HOST,
            "lxc": (
                _IN_CONTAINER,
                run("sudo usermod -aG {group} $USER"),
                ", then log in again",
            ),
            "container": _WITH_GROUP,
        },
    ),
    blocks(
        "group-not-active",
        "the user is in the group of {node}, and this process is not",
        "`id; getent group {group}`",
        "log in again, or start the program with `sg {one_group}`",
        fixes={
            "service": run("sudo systemctl restart {service}"),
            "docker": "start the container with `--group-add $(stat -c %g {node})`",
            "podman": "`podman run --group-add keep-groups` (with crun)",
            "lxc": "log in to the container again",
            "container": _WITH_GROUP,
        },
    ),
    blocks(
        "userns-group-lost",
        "the user namespace drops the group that may open {node}",
        "`cat /proc/self/uid_map; ls -ln {node}` prints 65534",
        "let the user namespace keep the group of {node}",
        fixes={
            "podman": "`podman run --group-add keep-groups` (with crun)",
            "docker": "run the container by Docker's daemon of root: the rootless one drops it",
            "lxc": "map the group into the container (`lxc.idmap`), then restart it",
        },
    ),
    blocks(
        "selinux-denies",
        "mode and groups allow {node}; SELinux refuses it",
        "`cat /sys/fs/selinux/enforce /proc/self/attr/current`; `ausearch -m avc`",
        "`sudo ausearch -m avc` names the rule; a policy must allow it",
        fixes={
            "docker": _SELINUX,
            "podman": _SELINUX,
            "container": (_ON_HOST, run("sudo setsebool -P {selinux_boolean} on")),
        },
    ),
    blocks(
        "ssh-no-seat",
        "only the user at the screen may open {node}",
        "`getfacl {node}`",
        (run("sudo usermod -aG {group} $USER"), _LOG_IN),
        fixes={"container": _WITH_GROUP},
    ),
)

_WITH_TOOLKIT = (
    "start the container with {option}; the host's nvidia-container-toolkit adds the libraries"
)

# A container of NVIDIA's runtime has the host's libraries mounted over empty files, which stay in
# an image that is built or committed with it (libnvidia-container#140).
_EMPTY_OUT = (
    by_hand(
        "take {empty_library} out of the image: a build with NVIDIA's runtime left it there",
        removes=("file {empty_library}",),
    ),
    "; then start the container with {option}",
)

_OF_LIBRARY: Fixes = {
    "stub": Made("stub_out"),
    "stub alone": (Made("stub_out"), ", and ", Command("libraries nvidia")),
    "empty library": Command("libraries nvidia again"),
    "empty library of an image": _EMPTY_OUT,
}

LIBRARY = (
    blocks(
        "library-missing",
        "the libraries of NVIDIA's driver are not installed",
        "`ldconfig -p | grep -e libcuda -e libnvidia-ml`",
        "install the libraries of the driver's version ({package})",
        vendor="nvidia",
        fixes={
            "operator": (
                "run the program in a pod that requests `nvidia.com/gpu`; the GPU operator has the"
                " driver's libraries in /run/nvidia/driver"
            ),
            "host": Command("libraries nvidia"),
            # distrobox-create(1), --nvidia.
            "distrobox": (
                _ON_HOST,
                by_hand("create the distrobox anew: `distrobox create --nvidia`"),
            ),
            "musl": by_hand("take an image with glibc: NVIDIA's driver has no build for musl"),
            "no capabilities": by_hand(
                "start the container anew with NVIDIA_DRIVER_CAPABILITIES=compute,utility",
                changes=("variable NVIDIA_DRIVER_CAPABILITIES=compute,utility",),
            ),
            "docker": _WITH_TOOLKIT,
            "podman": _WITH_TOOLKIT,
            "apptainer": "start the container with `apptainer exec --nv`",
            "flatpak": (
                _ON_HOST,
                run("flatpak update"),
                " (it installs org.freedesktop.Platform.GL.nvidia of driver {version})",
            ),
            "lxc": (
                _IN_CONTAINER,
                "run NVIDIA's installer of driver {version} with `--no-kernel-module`",
                otherwise(" (Incus: "),
                run("incus config set {NAME} nvidia.runtime true"),
                ")",
            ),
            "kubernetes": _RUNTIME_CLASS,
        },
    ),
    limits(
        "nvml-missing",
        "libnvidia-ml.so.1 is not installed; CUDA is",
        "`ldconfig -p | grep libnvidia-ml`",
        "install it in the driver's version (Debian: libnvidia-ml1)",
        vendor="nvidia",
        host=Command("libraries nvidia"),
    ),
    limits(
        "nvml-broken",
        "libnvidia-ml.so.1 cannot be loaded or is of another version; CUDA's library fits",
        "`ls -lL {library}`; `file -L {library}`",
        "install it again, in the driver's version",
        vendor="nvidia",
        fixes={
            **_OF_LIBRARY,
            "container": "take libnvidia-ml.so.1 out of the image: the host's is mounted",
        },
    ),
    blocks(
        "library-broken",
        "a library of the driver cannot be loaded",
        "`ls -lL {library}`; `file -L {library}`",
        "install it again, in the driver's version",
        vendor="nvidia",
        fixes=_OF_LIBRARY,
    ),
    blocks(
        "version-mismatch",
        "kernel driver and libraries differ in version",
        "`cat /proc/driver/nvidia/version; ls -l {library}`",
        (
            reboot("reboot"),
            otherwise(", or "),
            "unload and load the nvidia modules; in a container: no driver in the image",
        ),
        vendor="nvidia",
        fixes={
            # The next boot would load the same module (illinois-scicomp/machine-shop-maintenance
            # #70).
            "old module on disk": (
                by_hand(
                    "install the driver again, in one version: for this kernel the module"
                    " {stale_module} is built, and no other",
                    changes=("package of NVIDIA's driver",),
                ),
                REBOOT,
            ),
            "host": (
                run("sudo reboot"),
                otherwise("; or, with no GPU program running: "),
                run(
                    "sudo rmmod nvidia_uvm nvidia_drm nvidia_modeset nvidia && sudo modprobe nvidia"
                ),
            ),
            "container": "take the driver's libraries out of the image: the host's are mounted",
        },
    ),
    blocks(
        "hailort-mismatch",
        "the driver of the Hailo device and HailoRT differ in version, with which none starts",
        "`cat /sys/module/hailo_pci/version; hailortcli --version`",
        "install HailoRT and its driver of one version; in a container: an image with the driver's",
        vendor="hailo",
    ),
    blocks(
        "wsl-no-library",
        "WSL has no CUDA library of the Windows driver",
        "`ls /usr/lib/wsl/lib`",
        (
            by_hand("install the GPU's driver in Windows"),
            ", then ",
            run("wsl --update"),
            " there, and no driver inside WSL",
        ),
        where="Windows",
    ),
    blocks(
        "wsl-linux-driver",
        "a Linux driver inside WSL hides the CUDA library of the Windows driver",
        "`ldconfig -p | grep libcuda.so.1` lists another folder before /usr/lib/wsl/lib",
        "remove the Linux driver inside WSL, and nothing else: the driver is Windows's",
        fixes={
            "driver packages": (
                "inside WSL ",
                run("sudo apt purge {driver_packages}"),
                ": the driver is Windows's",
            ),
            "driver installer": (
                "inside WSL ",
                run("sudo nvidia-uninstall"),
                ": the driver is Windows's",
            ),
        },
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
        (reboot("reboot"), "; read the kernel log"),
        word="timed out",
    ),
    blocks(
        "gpu-init-failed",
        "NVIDIA's driver holds the GPU and cannot start it",
        "the kernel log has `RmInitAdapter failed`; `nvidia-smi` prints `No devices were found`",
        (
            reboot("reboot"),
            otherwise("; if it stays, "),
            _POWER_CYCLE,
            "; check seating and power cables; `sudo dmesg | grep NVRM` has what went before it",
        ),
        vendor="nvidia",
        word="driver error",
        where="host",
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
        (run("sudo nvidia-smi --gpu-reset -i {N}"), " when it is idle"),
        vendor="nvidia",
        word="driver error",
        host=(run("sudo nvidia-smi --gpu-reset -i {address}"), " when it is idle"),
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
        (
            run("sudo rmmod nvidia_uvm && sudo modprobe nvidia_uvm"),
            "; to keep it from coming back: NVreg_PreserveVideoMemoryAllocations=1",
        ),
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
        run("sudo nvidia-smi -pl {WATTS}"),
    ),
    limits(
        "thermal-slowdown",
        "the GPU is slowed down by heat or by its power supply",
        "`nvidia-smi -q -d PERFORMANCE`",
        "check cooling and power cables",
        vendor="nvidia",
    ),
    limits(
        "memory-taken",
        "other programs use most of the device's memory",
        "`nvidia-smi`, or `amd-smi process`, lists them",
        "let those programs end, or use another device",
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
        host=Command("add parameter"),
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
        where="Windows",
        system="windows",
    ),
    limits(
        "wired-limit",
        "macOS lets GPU programs use a part of the memory",
        "`sysctl iogpu.wired_limit_mb`",
        run("sudo sysctl iogpu.wired_limit_mb={…}"),
        system="darwin",
    ),
)

# What keeps it so is for later: it repairs nothing now, and is words alone.
_CHAR_LINKS = "`sudo nvidia-ctk system create-dev-char-symlinks --create-all`"
_ANEW = f"start the container anew with {{option}}; to keep it: on the host {_CHAR_LINKS}"

GRANTED = (
    blocks(
        "cgroup-denied",
        "a cgroup's device rule refuses {node}",
        "`head -c0 {node}` prints `Operation not permitted`",
        "have the device allowed by whoever started this: the cgroup has its rules from there",
        fixes={
            "WSL": ("start WSL anew: ", run("wsl --shutdown"), " in Windows, then open it again"),
            "service": (
                run("sudo systemctl edit {service}"),
                ": `[Service]`, {device_rules}; then restart it",
            ),
            "job": "request a GPU for the job ({job_request}), then start it anew",
            "host": "ask whoever started this session or job for the device: its cgroup decides",
            "lxc": by_hand(
                "add `lxc.cgroup2.devices.allow: c MAJOR:* rwm` to the container's configuration,"
                " with the MAJOR that `ls -l {node}` prints; then restart the container",
                changes=("setting lxc.cgroup2.devices.allow",),
            ),
            # systemd's daemon-reload takes the nodes away that were added to a running container's
            # rules (nvidia-container-toolkit#48); CDI has the engine add them.
            "snap": _CONNECTED,
            "docker": _ANEW,
            "podman": _ANEW,
            "kubernetes": f"start the pod anew; to keep it: on the node {_CHAR_LINKS}",
            "pod without NVIDIA": (
                "request it: `resources.limits: {{{resource}: 1}}`, then start the pod anew"
            ),
            "container without NVIDIA": "start the container anew, with {option}",
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
        # A plugin knows of one engine's option alone.
        fixes={
            "kubernetes": "nothing, if that is intended; else request more in `resources.limits`",
            "container": "nothing, if that is intended; else start the container with {option}",
        },
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
        (
            by_hand(
                "remove NVreg_ExcludedGpus from /etc/modprobe.d",
                removes=("parameter NVreg_ExcludedGpus",),
            ),
            ", then load the driver again",
        ),
        vendor="nvidia",
        where="host",
    ),
    intended(
        "compute-prohibited",
        "the compute mode prohibits all programs",
        "`nvidia-smi -q -d COMPUTE`",
        run("sudo nvidia-smi -c 0"),
        vendor="nvidia",
        where="host",
        keeps_from="cuda rule",
        host=run("sudo nvidia-smi -i {address} -c 0"),
    ),
    limits(
        "address-space-limited",
        "the address space of this process is limited to less than CUDA reserves",
        "`ulimit -v`",
        (
            by_hand(
                "`ulimit -v unlimited` in the shell or job that starts it",
                changes=("setting ulimit -v unlimited",),
            ),
            "; batch systems set it from a job's memory (Slurm: VSizeFactor, Grid Engine: h_vmem)",
        ),
        vendor="nvidia",
        of_process=True,
    ),
    intended(
        "exclusive-taken",
        "the compute mode admits one process, and one is inside",
        "`nvidia-smi -q -d COMPUTE,PIDS`",
        "wait until that process ends, or use another GPU",
        vendor="nvidia",
        keeps_from="cuda rule",
        of_process=True,
        host=(
            "wait until that process ends",
            otherwise("; or, to share the GPU, "),
            run("sudo nvidia-smi --compute-mode=0"),
        ),
    ),
    blocks(
        "mps-daemon-gone",
        "CUDA is to use the MPS daemon, which does not run",
        "`ls $CUDA_MPS_PIPE_DIRECTORY`",
        "start `nvidia-cuda-mps-control -d`, or unset CUDA_MPS_PIPE_DIRECTORY",
        vendor="nvidia",
        of_process=True,
        keeps_from="cuda rule",
    ),
    intended(
        "mig-without-instances",
        "MIG mode is on, and no instance exists",
        "`nvidia-smi mig -lgi`",
        (
            "create instances: ",
            run("sudo nvidia-smi mig -cgi {PROFILE} -C"),
            otherwise("; or "),
            run("sudo nvidia-smi -mig 0"),
        ),
        where="host",
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
        ("nothing, if that is intended; else ", run("amd-smi set -C SPX")),
        vendor="amd",
    ),
)

VISIBLE = (
    intended(
        "hidden-by-variable",
        "an environment variable hides it",
        "`env | grep -e VISIBLE_DEVICES -e AFFINITY_MASK -e DEVICE_SELECTOR`",
        "change the variable, if the process may use the device",
        of_process=True,
    ),
    intended(
        "mig-mode",
        "MIG is on: programs use the instances, not the whole GPU",
        "`nvidia-smi -L`",
        (
            "use the instances",
            otherwise("; for the whole GPU, as root: "),
            run("nvidia-smi -mig 0"),
        ),
        vendor="nvidia",
        word="MIG mode",
    ),
    intended(
        "hidden-by-runtime",
        "its own runtime does not show it",
        "`probe visible`",
        "`probe visible` prints the reason",
        of_process=True,
    ),
)

RUNTIME = (
    blocks(
        "libcuda-missing",
        "the loader finds no libcuda.so.1 of the driver",
        "`ldconfig -p | grep libcuda.so.1`; `echo $LD_LIBRARY_PATH`",
        Made("libcuda_fix"),
        vendor="nvidia",
        fixes={
            "stub": Made("stub_out"),
            "stub alone": (Made("stub_out"), ", and ", Command("libraries nvidia")),
            "host": Command("libraries nvidia"),
            "apptainer": "start the container with `apptainer exec --nv`",
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
                at("host", "install a newer driver on the host"),
                otherwise(", or "),
                "take an image of an older CUDA; on data centre GPUs: the package cuda-compat",
            ),
        },
    ),
    blocks(
        "cuda-compat-unsupported",
        "libcuda.so.1 is newer than the kernel driver, which no GeForce runs with (CUDA error 804)",
        "`cat /proc/driver/nvidia/version; ls -l {cuda_library}`",
        (
            at("host", "install driver {cuda_branch} or later on the host"),
            otherwise("; or "),
            "take an image for the driver's CUDA version, without {cuda_folder}",
        ),
        vendor="nvidia",
    ),
    blocks(
        "cuda-library-mismatch",
        "libcuda.so.1 is older than the kernel driver (CUDA error 803)",
        "`cat /proc/driver/nvidia/version; ls -l {cuda_library}`",
        Made("cuda_fix"),
        vendor="nvidia",
    ),
    blocks(
        "fabric-not-ready",
        "CUDA does not start before the NVSwitch fabric is set up (error 802)",
        "`nvidia-smi -q | grep -A3 Fabric`; `systemctl status nvidia-fabricmanager`",
        "start nvidia-fabricmanager of the driver's version on the machine that has the NVSwitches",
        vendor="nvidia",
        # GB200 and GB300 have their switches in trays of the rack, where NMX-Controller runs the
        # fabric manager (NVIDIA, "NMX-Controller"; "Mission Control", power-on order); from the
        # B200 on it needs the subnet manager nvlsm and the module ib_umad beside it ("Fabric
        # Manager User Guide"; NVIDIA/gpu-driver-container, nvlink5_pkgs_install and
        # _ensure_nvlink5_prerequisites).
        fixes={
            "rack": (
                by_hand(
                    "start the switch trays first: their fabric manager is part of"
                    " NMX-Controller (NMX-C)"
                ),
                "; then ",
                run("sudo systemctl restart nvidia-imex"),
                " here",
            ),
            "fourth switches": (
                Command("subnet manager"),
                ", then ",
                run("sudo modprobe ib_umad"),
                " and ",
                Command("fabric manager"),
            ),
            "switches": Command("fabric manager"),
            "container": (_ON_HOST, "start nvidia-fabricmanager of the driver's version"),
        },
    ),
    limits(
        "shm-small",
        "the container shares 64 MiB of memory among processes; NCCL and data loaders need more",
        "`df -h /dev/shm`",
        "give the container more than 64 MiB at /dev/shm",
        fixes={
            "docker": "start the container with `docker run --shm-size=8g`, or `--ipc=host`",
            "podman": "start the container with `podman run --shm-size=8g`, or `--ipc=host`",
            "kubernetes": "mount an `emptyDir` of `medium: Memory` at /dev/shm in the pod",
        },
    ),
    limits(
        "compute-runtime-too-new",
        "Intel's compute runtime has no code for the GPU any more",
        "`ls -l /usr/lib/x86_64-linux-gnu/libze_intel_gpu.so.1` leads to the build's number",
        "install the packages for older GPUs beside it: intel-level-zero-gpu-legacy1 and"
        " intel-opencl-icd-legacy1 (Arch Linux: intel-compute-runtime-legacy)",
        vendor="intel",
        instead="Vulkan can use the device",
    ),
    limits(
        "compute-runtime-too-old",
        "Intel's compute runtime is older than the GPU",
        "`ls -l /usr/lib/x86_64-linux-gnu/libze_intel_gpu.so.1` leads to the build's number",
        "install a newer libze-intel-gpu1 (or intel-level-zero-gpu) and intel-opencl-icd",
        vendor="intel",
        instead="Vulkan can use the device",
        host=Command("level zero"),
    ),
    limits(
        "kfd-no-gpu",
        "the compute interface of AMD does not list the GPU",
        "`grep -l location_id /sys/class/kfd/kfd/topology/nodes/*/properties`",
        "`sudo dmesg | grep -i kfd` has the reason; without PCIe atomics use a slot of the CPU",
        vendor="amd",
        instead="Vulkan can use it",
        of_purpose=True,
        keeps_from="kfd",
    ),
    limits(
        "kfd-no-atomics",
        "the GPU's slot passes no PCIe atomics on, which ROCm needs",
        "the kernel log has `PCI rejects atomics`",
        "move the card to a slot of the CPU, on a board with PCIe 3 or later",
        vendor="amd",
        instead="Vulkan can use it",
        of_purpose=True,
        keeps_from="kfd",
    ),
    limits(
        "kfd-unsupported",
        "the compute interface of AMD does not support this generation",
        "the kernel log has `not supported in kfd`",
        "use Vulkan, or a newer card for ROCm",
        vendor="amd",
        instead="Vulkan can use it",
        of_purpose=True,
        keeps_from="kfd",
    ),
    limits(
        "kfd-too-old",
        "this kernel's compute interface of AMD does not know the GPU yet",
        "the kernel log has `not supported in kfd`",
        "install a newer kernel, or AMD's packaged driver (amdgpu-dkms)",
        vendor="amd",
        instead="Vulkan can use it",
        of_purpose=True,
        keeps_from="kfd",
    ),
    limits(
        "gfx-not-supported",
        "the installed ROCm has no code for {gfx}",
        "`ls {folder_of_rocblas} | grep {gfx}`",
        Made("gfx_fix"),
        vendor="amd",
        instead="Vulkan can use it",
    ),
    blocks(
        "hsa-override-bad",
        "ROCm does not start with this HSA_OVERRIDE_GFX_VERSION",
        "`echo $HSA_OVERRIDE_GFX_VERSION`",
        (
            "correct it (major.minor.step, as 10.3.0)",
            otherwise(", or "),
            run("unset HSA_OVERRIDE_GFX_VERSION"),
        ),
        vendor="amd",
        word="hidden",
        keeps_from="rocr",
        of_process=True,
    ),
    blocks(
        "hsa-override-foreign",
        "HSA_OVERRIDE_GFX_VERSION names a generation whose code this GPU cannot run",
        "`echo $HSA_OVERRIDE_GFX_VERSION; rocminfo | grep gfx`",
        run("unset HSA_OVERRIDE_GFX_VERSION"),
        vendor="amd",
        word="hidden",
        keeps_from="rocr",
        of_process=True,
    ),
    limits(
        "rocm-missing",
        "ROCm's runtime is not installed",
        "`ldconfig -p | grep -e libhsa-runtime64 -e libamdhip64`",
        "install ROCm's packages; wheels of PyTorch bring their own",
        vendor="amd",
        instead="Vulkan can use the device",
        of_purpose=True,
        of_process=True,
        host=(Command("rocm"), "; wheels of PyTorch bring their own"),
    ),
    limits(
        "apu-memory-unused",
        "ROCm is offered less memory than firmware set aside for the GPU",
        "`cat /sys/class/kfd/kfd/topology/nodes/*/mem_banks/*/properties`",
        "boot Linux 6.16.9 or later; or set aside the least in the firmware setup, and raise what"
        " the system lends: ttm.pages_limit",
        vendor="amd",
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
        "Intel's compute runtime is not installed",
        "`ldconfig -p | grep libze_intel_gpu`",
        "install libze-intel-gpu1 (or intel-level-zero-gpu) and intel-opencl-icd",
        vendor="intel",
        instead="Vulkan can use the device",
        of_purpose=True,
        of_process=True,
        host=Command("level zero"),
    ),
)


# linux-npu-driver's and xdna-driver's README; Arch Linux's package files.
_NPU = (
    # It shares address spaces through the IOMMU ("SVA bind device failed"; antirez/ds4#871).
    blocks(
        "npu-without-iommu",
        "the IOMMU is switched off, without which no program can open the NPU",
        "`cat /proc/cmdline`; the kernel log has `SVA bind device failed`",
        by_hand("remove {iommu_off} from the boot loader's configuration"),
        vendor="amd",
        parameter="{iommu_off}",
        host=Command("remove parameter"),
    ),
    limits(
        "level-zero-npu-missing",
        "the user driver of Intel's NPU is not installed",
        "`ldconfig -p | grep libze_intel_npu`",
        "install Intel's linux-npu-driver: intel-level-zero-npu and intel-driver-compiler-npu"
        " (Arch Linux: intel-npu-driver)",
        vendor="intel",
        of_process=True,
    ),
    limits(
        "xrt-missing",
        "XRT's driver for AMD's NPU is not installed",
        "`ls /opt/xilinx/xrt/lib/libxrt_driver_xdna.so.2`",
        "install XRT and its plugin of AMD's xdna-driver: xrt and xrt_plugin-amdxdna (Arch Linux:"
        " xrt-plugin-amdxdna)",
        vendor="amd",
        of_process=True,
    ),
)


_BY_STEP: dict[str, tuple[Cause, ...]] = {
    "hardware": (*HARDWARE, *ABSENT),
    "driver": DRIVER,
    "node": NODE,
    "permission": PERMISSION,
    "library": LIBRARY,
    "responding": RESPONDING,
    "granted": GRANTED,
    "visible": VISIBLE,
    "runtime": (*RUNTIME, *_NPU),
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


def usable_with(step: StepDoc) -> bool:
    """Return whether the device can be used in spite of a broken step.

    Not one that has no other use than what a cause, which limits others, keeps it from.
    """
    return limiting(step["code"]) and not step.get("blocks")
