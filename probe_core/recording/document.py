"""A recorded machine in memory, checked when it is made, and as one readable JSON document."""

from __future__ import annotations

import json
import re

from probe_core.recording.answers import check_access, check_answers
from probe_core.recording.paths import (
    MAX_ABOUT,
    MAX_ENTRIES,
    MAX_ENVIRON,
    MAX_FILE,
    MAX_FOLDERS,
    MAX_NESTING,
    MAX_TABLES,
    MAX_TOTAL,
    BadRecording,
    above,
    check_path,
    check_places,
    check_target,
    resolve_links,
    shown,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from probe_core.model.document import Json

    Read = Callable[[str], str | None]
    """Reads a file of the machine; None where it has none."""


UNKNOWN = "unknown"
MAX_WORD = 32
"""Characters of an architecture; the longest of `uname -m` have 11 (loongarch64)."""

_WORDS = (
    "x86_64 aarch64 ppc64le ppc64 riscv64 riscv32 s390x loongarch64 armv6l armv7l armv8l i686 i586"
    " i386 ia64 mips mips64 sparc64"
).split()
"""What `uname -m` prints, where distributions put it at the end of a kernel's release."""

# "cpu:type:x86,ven0000…": how the kernel names its processor for modules.
_MODALIAS = {"x86": "x86_64", "aarch64": "aarch64", "arm": "armv7l", "s390": "s390x"}
_FIRST = 16 << 10
"""Characters of /proc/cpuinfo that are looked at: several processors."""


def architecture(read: Read) -> str:
    """Return the architecture as ``uname -m`` names it, or ``unknown``.

    The kernel's own word (Linux 6.1), else its release ("4.18.0-553.el8.ppc64le"), else what
    /proc/cpuinfo and /sys say of the processor.
    """
    own = read("/proc/sys/kernel/arch")
    if own and is_word(own.strip()):
        return own.strip()
    release = (read("/proc/sys/kernel/osrelease") or "").strip().rpartition(".")[2]
    if release in _WORDS:
        return release
    text = read("/proc/cpuinfo")
    if text and (name := _of_cpuinfo(text[:_FIRST])):
        return name
    alias = (read("/sys/devices/system/cpu/modalias") or "").removeprefix("cpu:type:")
    return _MODALIAS.get(alias.replace(",", ":").partition(":")[0], UNKNOWN)


def is_word(text: str) -> bool:
    """Return whether a text is one word, as systems and architectures are named."""
    plain = text.replace("_", "").replace("-", "").replace(".", "")
    return len(text) <= MAX_WORD and plain.isascii() and plain.isalnum()


def _of_cpuinfo(text: str) -> str | None:
    pairs = [line.partition(":") for line in text.splitlines()]
    fields = {key.strip(): value.strip() for key, colon, value in reversed(pairs) if colon}
    if "CPU implementer" in fields:
        return _arm(fields)
    vendor = fields.get("vendor_id", "")
    if vendor == "IBM/S390":
        return "s390x"
    if vendor or "cpu family" in fields:
        return _x86(fields.get("flags", "").split())
    if fields.get("arch") == "IA-64":
        return "ia64"
    isa = fields.get("isa", "")
    if isa.startswith(("rv64", "rv32")):
        return "riscv64" if isa.startswith("rv64") else "riscv32"
    if fields.get("CPU Family", "").startswith("Loongson-64"):
        return "loongarch64"
    # From POWER8 on Linux runs in both byte orders, and this file looks the same.
    if fields.get("cpu", "").startswith(("POWER4", "POWER5", "POWER6", "POWER7", "Cell")):
        return "ppc64"
    if "cpu model" in fields:
        return "mips64" if "mips64" in isa else "mips"
    return None


def _x86(flags: list[str]) -> str | None:
    """Return x86_64 for long mode, and for AVX, which no processor had without it."""
    if "lm" in flags or "avx" in flags:
        return "x86_64"
    return "i686" if flags else None


def _arm(fields: dict[str, str]) -> str:
    version = fields.get("CPU architecture", "")
    if version in ("8", "AArch64"):
        # A 32-bit kernel lists no asimd: its programs are 32-bit on the same core.
        return "aarch64" if "asimd" in fields.get("Features", "asimd").split() else "armv8l"
    names = f"{fields.get('model name', '')} {fields.get('Processor', '')}"
    return "armv6l" if "ARMv6" in names else "armv7l"


# Checks what a recording holds beside the machine's files: system, environment and origin.

MAX_ORIGIN = 1024
"""Characters of an origin: a sentence or two, shown on one line."""


class About:
    """The checked `os`, `arch`, `environ`, `origin`, `access` and `answers`.

    Other keys are the author's own.

    `read` reads the machine's own files: what they say stands in for an `arch` that is not given,
    which else is ``unknown``.
    """

    def __init__(self, table: Mapping[str, object], read: Read) -> None:
        self.os = _name("os", table.get("os", "linux"))
        arch = table.get("arch")
        self.arch = _name("arch", arch) if arch is not None else architecture(read)
        self.environ = _environ(table.get("environ", {}))
        self.origin = _origin(table.get("origin"))
        self.access = check_access(table.get("access", {}))
        self.answers = check_answers(table.get("answers", {}))


def _name(key: str, value: object) -> str:
    if isinstance(value, str) and is_word(value):
        return value
    raise BadRecording(f"its {key} {shown(value)} is not one word, such as linux or x86_64")


def _environ(value: object) -> dict[str, str]:
    if not isinstance(value, dict) or len(value) > MAX_ENVIRON:
        raise BadRecording(f"its environ is no table of at most {MAX_ENVIRON} variables")
    size = 0
    for name, text in value.items():
        if not (isinstance(name, str) and isinstance(text, str)) or not name or "=" in name:
            raise BadRecording(f"its environ holds {shown(name)}, which is no variable with a text")
        try:
            raw = f"{name}={text}".encode()
        except UnicodeEncodeError:
            raise BadRecording(f"the variable {shown(name)} cannot be written in UTF-8") from None
        size += len(raw)
        if b"\0" in raw or size > MAX_ABOUT:
            raise BadRecording(
                f"the variable {shown(name)} holds a NUL, or its environ is too long"
            )
    return dict(value)


def _origin(value: object) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str) or not value.startswith(("recorded", "invented")):
        raise BadRecording("its origin must begin with 'recorded' or 'invented'")
    if len(value) > MAX_ORIGIN:
        raise BadRecording(f"its origin is longer than {MAX_ORIGIN} characters")
    return value


# A recorded machine in memory: checked when it is made, so that unpacking it can do no harm.

ABOUT_PATH = "/machine.json"
"""The file of an unpacked recording that gives its system, environment and origin."""

ANSWERS_PATH = "/answers.json"
"""The file of an unpacked recording that gives what its probers answered."""


_OWN = frozenset((ABOUT_PATH, ANSWERS_PATH))


class Recording:
    """One recorded machine. Raises `BadRecording` for what could do harm or is over a limit.

    `files` maps the machine's own absolute paths to their bytes, `links` maps paths to relative
    targets as the kernel writes them. `os`, `arch` and `environ` are as `Machine` has them;
    `origin` is one sentence that begins with "recorded" or "invented", or None. `access` maps
    device nodes to how opening them would have ended, `answers` maps probers to what they answered.
    `described` says whether the recording told of itself, in JSON or by a ``machine.json``.
    """

    def __init__(
        self,
        files: Mapping[str, bytes],
        links: Mapping[str, str] | None = None,
        about: Mapping[str, object] | None = None,
    ) -> None:
        self.files = dict(files)
        self.links = dict(links or {})
        self.described = about is not None
        self._check()
        self.folders = self._folders(resolve_links(self.links))
        facts = About(about or {}, self._text)
        self.os, self.arch = facts.os, facts.arch
        self.environ, self.origin = facts.environ, facts.origin
        self.access, self.answers = facts.access, facts.answers

    def about(self) -> dict[str, object]:
        """Return what is no file of the machine, as a recording writes it; answers are apart."""
        about: dict[str, object] = {
            "os": self.os,
            "arch": self.arch,
            "environ": self.environ,
            "origin": self.origin,
        }
        return about | ({"access": self.access} if self.access else {})

    def _text(self, path: str) -> str | None:
        """Return a file's text; None where the recording has no such file."""
        raw = self.files.get(path)
        return None if raw is None else raw.decode("utf-8", "replace").strip("\0 \t\r\n")

    def _check(self) -> None:
        if len(self.files) + len(self.links) > MAX_ENTRIES:
            raise BadRecording(f"more than {MAX_ENTRIES} files and links")
        total = 0
        for path, content in self.files.items():
            check_path(path)
            total += len(content)
            if len(content) > MAX_FILE:
                raise BadRecording(f"{shown(path)} is longer than {MAX_FILE >> 10} KiB")
            if total > MAX_TOTAL:
                raise BadRecording(f"its files are longer than {MAX_TOTAL >> 20} MiB together")
        for path, target in self.links.items():
            check_target(check_path(path), target)
        # `unpack` writes these files itself, and a link in their place would redirect the write.
        for own in sorted(_OWN):
            if any(f"{path}/".startswith(f"{own}/") for path in (*self.files, *self.links)):
                raise BadRecording(f"{own} is kept for what a recording says of itself")
        check_places(self.files, self.links)

    def _folders(self, targets: Mapping[str, str]) -> set[str]:
        """Return all folders: those of files and links, and those that links alone name.

        A driver's folder is often empty, and what a link names is there on the real machine.
        """
        folders: set[str] = set()
        named = (f"{target}/" for target in targets.values() if target != "/")
        for path in (*self.files, *self.links, *named):
            ancestors = list(above(path))
            if self.files.keys().isdisjoint(ancestors) and _OWN.isdisjoint(ancestors):
                folders.update(ancestors)
            if len(folders) > MAX_FOLDERS:
                raise BadRecording(f"more than {MAX_FOLDERS} folders")
        return folders


# A recording as one readable JSON document: read with bounds, and written.

SCHEMA = 1

# A string, or what is left of one at the end of the text: each start is tried once, so the time
# is linear whatever the text is. Then all that is no bracket.
_STRING = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)', re.DOTALL)
_NO_BRACKET = re.compile(r"[^\[\]{}]+")


def parse(raw: bytes) -> Recording:
    """Return the recording that a JSON document holds; raises `BadRecording`."""
    data = load_table(raw)
    if data.get("schema") != SCHEMA:
        raise BadRecording(f"it is no recording of schema {SCHEMA}")
    files, links = data.get("files"), data.get("links", {})
    if not isinstance(files, dict) or not isinstance(links, dict):
        raise BadRecording("its 'files' or 'links' is no table")
    if data.get("origin") is None:
        raise BadRecording("it has no origin, which begins with 'recorded' or 'invented'")
    return Recording(
        {path: _bytes(path, value) for path, value in files.items()},
        {path: check_target(path, target) for path, target in links.items()},
        data,
    )


def load_table(raw: bytes) -> dict[str, Json]:
    """Return the table in a JSON text, nested at most 32 levels deep; raises `BadRecording`."""
    try:
        text = raw.decode("utf-8")
        # Before `loads`, which may recurse in C as deep as the host's recursion limit allows.
        _check_nesting(text)
        data = json.loads(text, object_pairs_hook=_without_duplicates)
    except BadRecording:
        raise
    except (ValueError, RecursionError) as error:
        raise BadRecording(f"it is not valid JSON: {error}") from None
    if not isinstance(data, dict):
        raise BadRecording("it is JSON, but no table")
    return data


def _check_nesting(text: str) -> None:
    """Bound depth and number before the parser sees them: it recurses in C where a host allows it,
    and makes 64 bytes of each empty list.
    """
    brackets = _NO_BRACKET.sub("", _STRING.sub("", text))
    if len(brackets) > 2 * MAX_TABLES:
        raise BadRecording(f"it has more than {MAX_TABLES} lists and tables")
    for _ in range(MAX_NESTING):
        if not brackets:
            return
        brackets = brackets.replace("[]", "").replace("{}", "")
    if brackets:
        raise BadRecording(
            f"it is nested deeper than {MAX_NESTING} levels, or its brackets do not match"
        )


def _without_duplicates(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    table: dict[str, Json] = {}
    for name, value in pairs:
        # JSON parsers differ on which of two equal keys counts; a reviewer reads one of them.
        if name in table:
            raise BadRecording(f"{shown(name)} is there twice")
        table[name] = value
    return table


def _bytes(path: str, value: object) -> bytes:
    if isinstance(value, list) and all(isinstance(line, str) for line in value):
        value = "".join(f"{line}\n" for line in value)
    if not isinstance(value, str):
        raise BadRecording(f"{shown(path)} is neither text nor a list of lines")
    try:
        return value.encode("utf-8")
    except UnicodeEncodeError:
        raise BadRecording(f"the text of {shown(path)} cannot be written in UTF-8") from None


def write(recording: Recording) -> str:
    """Return the JSON document of a recording, a file's lines apart so that a person can read it.

    Bytes that are not UTF-8 become replacement characters, as they do when a machine reads them.
    """
    files = {path: _text(content) for path, content in sorted(recording.files.items())}
    data = {"schema": SCHEMA, **recording.about(), "files": files}
    data["links"] = dict(sorted(recording.links.items()))
    if recording.answers:
        data["answers"] = recording.answers
    return json.dumps(data, indent=1) + "\n"


def _text(content: bytes) -> str | list[str]:
    text = content.decode("utf-8", "replace")
    # A list of lines loses the difference to a file whose last line has no end.
    if text.endswith("\n") and text.count("\n") > 1:
        return text[:-1].split("\n")
    return text
