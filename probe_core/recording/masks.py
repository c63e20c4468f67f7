"""The kinds of identity that a prober's manifest may say a file holds, and how each is replaced.

A closed set: what a recording leaves out is decided here, and reviewed here. A kind stands for a
whole file, or with a field for the lines that begin with it: ``decimal64:unique_id``.
"""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from probe_core.recording.anonymise import Anonymiser

    Replace = Callable[[str, Anonymiser], str]

__all__ = ["KINDS", "check_mask", "masked"]

MAX_FIELD = 64
"""Characters of a field's name; the longest of /proc and /sys seen has 32."""


def masked(content: bytes, masks: Iterable[str], anonymiser: Anonymiser) -> bytes:
    """Return a file's content without the identities that `masks` say it holds."""
    for mask in masks:
        kind, _, field = mask.partition(":")
        text = content.decode("utf-8", "replace")
        replace = KINDS[kind]
        text = _in_field(text, field, replace, anonymiser) if field else replace(text, anonymiser)
        content = text.encode()
    return content


def check_mask(mask: object) -> str:
    """Return a mask that can be applied; raises `ValueError` with the mistake."""
    kind, colon, field = mask.partition(":") if isinstance(mask, str) else ("", "", "")
    if kind not in KINDS:
        raise ValueError(f"the kinds are {', '.join(KINDS)}; found {str(mask)[:60]!r}")
    if colon and not (0 < len(field) <= MAX_FIELD and field.isprintable() and field.strip()):
        raise ValueError(f"a field has 1 to {MAX_FIELD} printable characters")
    return str(mask)


def _in_field(text: str, field: str, replace: Replace, anonymiser: Anonymiser) -> str:
    """Replace the values of the lines ``FIELD VALUE``, ``FIELD: VALUE`` and ``FIELD = VALUE``.

    What surrounds a value is written anew: white space of any kind must not hide one.
    """
    line = re.compile(rf"\s*{re.escape(field)}(?:\s*([:=])|\s)\s*(.*)", re.DOTALL)
    lines = []
    for whole in text.removesuffix("\n").split("\n") if text else ():
        if match := line.fullmatch(whole):
            value = replace(match[2].strip(), anonymiser).strip()
            whole = f"{field}{match[1] or ''} {value}"
        lines.append(whole + "\n")
    return "".join(lines)


def _uuid(text: str, anonymiser: Anonymiser) -> str:
    """UUIDs, wherever they stand in the text: after a vendor's prefix, or in canonical form."""
    return anonymiser.uuids(text)


def _hex64(text: str, anonymiser: Anonymiser) -> str:
    """One number of up to 64 bits in hexadecimal digits; 0 for what is none."""
    return f"{anonymiser.number(_number(text, 16)):016x}\n"


def _decimal64(text: str, anonymiser: Anonymiser) -> str:
    """One number of up to 64 bits in decimal digits; 0 for what is none."""
    return f"{anonymiser.number(_number(text, 10))}\n"


def _number(text: str, base: int) -> int:
    # A number of 64 bits has 20 decimal digits; of a long one `int` takes quadratic time.
    plain = text.strip().lower().removeprefix("0x")
    try:
        return int(plain, base) if len(plain) <= 20 and plain.isalnum() else 0
    except ValueError:
        return 0


def _serial(text: str, anonymiser: Anonymiser) -> str:
    """A serial number of any form: each letter and digit is replaced by one of its kind."""
    return anonymiser.serial(text)


def _cpuinfo(text: str, anonymiser: Anonymiser) -> str:
    """/proc/cpuinfo: lines with a serial number are left out, and all x86 blocks but the first.

    The blocks of an x86 processor are alike, and a server has hundreds.
    """
    if text.startswith("processor") and "\nvendor_id" in text:
        text = text.partition("\n\n")[0] + "\n\n"
    lines = text.splitlines(keepends=True)
    return "".join(line for line in lines if not line.lower().startswith("serial"))


def _addresses(text: str, anonymiser: Anonymiser) -> str:
    """Addresses in the kernel, which it shows to root alone: zeros, as it shows them to others."""
    return re.sub(r"\b0x[0-9a-fA-F]{8,16}\b", lambda match: "0x" + "0" * (len(match[0]) - 2), text)


KINDS: dict[str, Replace] = {
    "uuid": _uuid,
    "hex64": _hex64,
    "decimal64": _decimal64,
    "serial": _serial,
    "cpuinfo": _cpuinfo,
    "addresses": _addresses,
}
"""Name of a kind, as manifests write it, to the function that replaces it."""
