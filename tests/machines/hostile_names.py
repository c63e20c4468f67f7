"""Names that a plugin, a report or a file's owner may choose, each to hurt another reader."""

from __future__ import annotations

# Colour, a window's title, a bell, a line that overwrites the one before, text that runs backwards.
TERMINAL = "\x1b[31mred\x1b]0;title\x07\r\x08over\u202ebackwards\u2066\u200b\x9b5m"

MARK = "pwned"
"""Stands in each name below, so that a test finds what let one through."""

SHELL = (
    f"$(touch {MARK})",
    f"zz$(touch${{IFS}}{MARK})",
    f"zz`touch {MARK}`",
    f"zz;touch {MARK}",
    f"zz&touch {MARK}&",
    f"zz|touch {MARK}",
    f"zz>{MARK}",
    f"zz{MARK}'",
    f'zz{MARK}"',
    f"zz{MARK}\\",
    f"zz{MARK}*",
    f"zz{MARK}?",
    f"zz{MARK}[a-z]",
    f"zz{{{MARK},b}}",
    f"zz!{MARK}",
    f"~{MARK}",
    f"-{MARK}",
    f"--{MARK}",
    f".{MARK}",
    f"..{MARK}",
    f"zz {MARK}",
    f"zz%s{MARK}",
    f"zz<{MARK}",
    f"zz^{MARK}",
    f"zz({MARK})",
    f"zz{MARK}\u200b",
)
"""What a shell reads as more than a word, or as an option."""

LABELS = (f'zz{MARK}" 1\nevil{{a="', f"zz{MARK}\nlabel=1", f"zz{MARK}\n[Service]", f"zz,{MARK}")
"""What ends a value, a line or an entry of a list."""

ALL = (f"{TERMINAL}{MARK}", *SHELL, *LABELS)

IN_METADATA = tuple(name for name in ALL if name[0] not in "[;#" and not {"=", "\n"} & set(name))
"""What can stand left of the first `=` of a line of entry_points.txt, which is one line."""
