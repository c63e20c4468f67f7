"""What a recording keeps of the user, the distribution and the variables that drivers obey."""

from __future__ import annotations

from probe_core.machine import decimal
from probe_core.readiness.distributions import OSTREE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from probe_core.machine import Machine
    from probe_core.readiness import Scene

__all__ = ["account_files", "account_variables"]

_GROUPS = ("render", "video")
"""Groups to which distributions give the nodes of GPUs (udev, 50-udev-default.rules)."""

_USER = "user"
_LABEL = "/proc/self/attr/current"
_RELEASE = "/etc/os-release"
_RELEASE_KEYS = ("ID", "ID_LIKE", "VERSION_ID", "VARIANT_ID")
_PIPES, _USUAL_PIPES = "CUDA_MPS_PIPE_DIRECTORY", "/tmp/nvidia-mps"
_NUMBERS = ("CUDA_VERSION", "HSA_OVERRIDE_GFX_VERSION")
_SIGNS = ("SSH_CONNECTION",)
"""Variables of which it matters that they are set."""


def account_files(machine: Machine, scene: Scene, uid: str | None) -> dict[str, bytes]:
    """Return path to content; `uid` is the number that the recording has for the user."""
    return {
        **dict(_accounts(scene, uid)),
        **dict(_label(machine)),
        **dict(_release(machine)),
        **dict(_mps(machine)),
        **dict(_helper(machine)),
    }


def _accounts(scene: Scene, uid: str | None) -> Iterator[tuple[str, bytes]]:
    """Yield who is in the groups of GPUs' nodes: this user, or nobody."""
    listed = scene.process.listed_groups()
    if uid is None or not listed:
        return
    yield "/etc/passwd", f"{_USER}:x:{uid}:{uid}::/:\n".encode()
    lines = [
        f"{name}:x:{number}:{_USER if is_member else ''}\n"
        for name, (number, is_member) in listed.items()
        if name in _GROUPS
    ]
    yield "/etc/group", "".join(lines).encode()


def _label(machine: Machine) -> Iterator[tuple[str, bytes]]:
    """Yield the process's confinement, without the names in it."""
    label = machine.read(_LABEL, 256) or ""
    if ":container_t:" in label:
        yield _LABEL, b"system_u:system_r:container_t:s0\n"
    elif label:
        yield _LABEL, b"snap.app\n" if label.startswith("snap.") else b"unconfined\n"


def _release(machine: Machine) -> Iterator[tuple[str, bytes]]:
    text = machine.read(_RELEASE, 16 << 10)
    if text is not None:
        lines = [f"{line}\n" for line in text.splitlines() if line.split("=")[0] in _RELEASE_KEYS]
        yield _RELEASE, "".join(lines).encode("utf-8", "replace")
    if machine.exists(OSTREE):
        yield OSTREE, b""


def _mps(machine: Machine) -> Iterator[tuple[str, bytes]]:
    """Yield the files of MPS's daemon, in the usual folder, and whether it lives."""
    folder = machine.environ.get(_PIPES, "")
    if not folder.startswith("/") or not machine.exists(folder):
        return
    yield f"{_USUAL_PIPES}/log", b""
    if machine.exists("/proc/self"):  # only then does a missing process say that it is gone
        yield "/proc/self/status", b""
    if machine.exists(f"{folder}/control"):
        yield f"{_USUAL_PIPES}/control", b""
    daemon = decimal(machine.read(f"{folder}/nvidia-cuda-mps-control.pid", 32) or "")
    if daemon is not None:
        yield f"{_USUAL_PIPES}/nvidia-cuda-mps-control.pid", f"{daemon}\n".encode()
        if machine.exists(f"/proc/{daemon}"):
            yield f"/proc/{daemon}/comm", b"nvidia-cuda-mps\n"


def _helper(machine: Machine) -> Iterator[tuple[str, bytes]]:
    """Yield the setuid program that creates NVIDIA's nodes when they are first needed."""
    if machine.exists("/usr/bin/nvidia-modprobe"):
        yield "/usr/bin/nvidia-modprobe", b""


def account_variables(machine: Machine) -> dict[str, str]:
    """Return the variables, of those that tell no identity, by which readiness judges."""
    environ = machine.environ
    kept = {name: "1" for name in _SIGNS if name in environ}
    # Whatever is no number is wrong, which is all that is judged.
    kept |= {name: _plain(environ[name]) for name in _NUMBERS if name in environ}
    if environ.get(_PIPES, "").startswith("/"):
        kept[_PIPES] = _USUAL_PIPES
    return kept


def _plain(value: str) -> str:
    return value if value.replace(".", "").isalnum() and len(value) < 24 else "?"
