"""Takes out of a file what says whose machine it is, or which one."""

from __future__ import annotations

from fnmatch import fnmatchcase

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from probe_core.recording.disguise import Disguise

    Edit = Callable[[str, Disguise], str]

__all__ = ["edited"]


def edited(path: str, content: bytes, disguise: Disguise) -> bytes:
    """Return the content of the machine's file at `path`, fit to be shared."""
    for pattern, edit in _EDITS.items():
        if fnmatchcase(path, pattern):
            return edit(content.decode("utf-8", "replace"), disguise).encode()
    return content


def _cpuinfo(text: str, disguise: Disguise) -> str:
    """Leave out serial numbers, and of x86 all blocks but the first, which are alike."""
    if text.startswith("processor") and "\nvendor_id" in text:
        text = text.partition("\n\n")[0] + "\n\n"
    lines = text.splitlines(keepends=True)
    return "".join(line for line in lines if not line.lower().startswith("serial"))


def _uuids(text: str, disguise: Disguise) -> str:
    return disguise.uuids(text)


def _unique_id(text: str, disguise: Disguise) -> str:
    try:
        return f"{disguise.number(int(text, 16)):016x}\n"
    except ValueError:
        return ""


def _properties(text: str, disguise: Disguise) -> str:
    """Replace the same number where KFD writes it, in decimal."""
    lines = []
    for line in text.splitlines():
        name, value, *_ = [*line.split(), "", ""]
        if name == "unique_id":
            known = value.isdecimal() and len(value) <= 20
            line = f"unique_id {disguise.number(int(value)) if known else 0}"
        lines.append(line + "\n")
    return "".join(lines)


_EDITS: dict[str, Edit] = {
    "/proc/cpuinfo": _cpuinfo,
    "/proc/driver/nvidia/gpus/*/information": _uuids,
    "/sys/*/unique_id": _unique_id,
    "/sys/*/topology/nodes/*/properties": _properties,
}
