"""What a prober declares that it reads, checked: `records` of its manifest.

A mistake in a pattern costs that pattern, any other the table that it is in. The result is safe to
carry out: patterns are plain and bounded in number, and each device's files say whether they may be
read while the device sleeps.
"""

from __future__ import annotations

from probe_core.likeness import did_you_mean
from probe_core.machine.trust import allowed
from probe_core.probers.records import RECORDS
from probe_core.recording.anonymise import check_mask
from probe_core.recording.paths import check_absolute, check_relative, shown
from probe_core.registry.prober import Mistake, discover, manifest_problem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from probe_core.model.document import FindingDoc
    from probe_core.registry.prober import Prober

    Check = Callable[[object], str]
    """Returns a checked value, or raises `ValueError` with the mistake."""


MAX_PATTERNS = 256
"""Patterns that one prober declares at most; ours declare up to 40."""

MAX_MISTAKES = 8
"""Mistakes of one manifest that become findings; the entries with others are left out as well."""

RECORDS_KEYS = ("files", "masks", "pci", "platform", "nodes", "cgroup", "answers")
DEVICE_KEYS = ("files", "masks", "asleep", "only_if", "pci_vendor", "pci_class")
_PLATFORM_KEYS = DEVICE_KEYS[:4]  # a device of the device tree has no vendor or class in numbers
_HEX = frozenset("0123456789abcdef")


class DeviceFiles:
    """Files below each device of a bus that fits; empty `vendors` or `classes` fit every device.

    `files` maps patterns to masks. `asleep` says that to read them wakes no sleeping device. Where
    `only_if` maps files to texts, one of those files must hold its text, in any case of letters.
    """

    def __init__(
        self,
        files: dict[str, str],
        asleep: bool,
        only_if: dict[str, str],
        vendors: tuple[str, ...],
        classes: tuple[str, ...],
    ) -> None:
        self.files = files
        self.asleep = asleep
        self.only_if = only_if
        self.vendors = vendors
        self.classes = classes


class Declared:
    """What one prober reads. `files` maps patterns to masks, "" for none.

    `answers` says that it asks more than files, so that a recording keeps its answer.
    """

    def __init__(self) -> None:
        self.files: dict[str, str] = {}
        self.answers = False
        self.nodes: list[str] = []
        self.cgroup: list[str] = []
        self.pci: list[DeviceFiles] = []
        self.platform: list[DeviceFiles] = []

    @property
    def is_empty(self) -> bool:
        """Whether nothing is declared, as by ``"records": {}``: the prober reads no files."""
        tables = (self.files, self.nodes, self.cgroup, self.pci, self.platform)
        return not (self.answers or any(tables))


def check_records(records: object) -> tuple[Declared, list[str]]:
    """Return what the value of `records` declares, and a sentence for each mistake in it."""
    check = _Check()
    try:
        return check.records(records), check.mistakes
    except RecursionError:  # JSON may nest as deep as Python's parser goes, `str` of it no further
        return Declared(), ["records: nested too deep"]


class _Check:
    """Takes a declaration apart, and notes each mistake with the key that it is at."""

    def __init__(self) -> None:
        self.mistakes: list[str] = []
        self._count = 0
        self._patterns = 0

    def records(self, value: object) -> Declared:
        """Return what is right in the value of `records`."""
        result = Declared()
        before = self._count
        table = self._table("records", value, RECORDS_KEYS)
        result.files = self._files("records", table, check_absolute, before)
        result.nodes = self._texts("records.nodes", table.get("nodes", []), _node)
        result.cgroup = self._texts("records.cgroup", table.get("cgroup", []), _cgroup_file)
        result.pci = self._devices("records.pci", table.get("pci", []), DEVICE_KEYS)
        result.platform = self._devices(
            "records.platform", table.get("platform", []), _PLATFORM_KEYS
        )
        if type(table.get("answers", False)) is not bool:
            self._note("records.answers", "expected true or false")
        result.answers = table.get("answers") is True
        return result

    def _devices(self, place: str, value: object, keys: tuple[str, ...]) -> list[DeviceFiles]:
        tables = value if isinstance(value, list) else [value]
        rules = [self._device(f"{place}[{n}]", tables[n], keys) for n in range(len(tables))]
        return [rule for rule in rules if rule.files]

    def _device(self, place: str, value: object, keys: tuple[str, ...]) -> DeviceFiles:
        before = self._count
        table = self._table(place, value, keys)
        if type(table.get("asleep", False)) is not bool:
            self._note(f"{place}.asleep", "expected true or false")
        conditions = self._pairs(f"{place}.only_if", table.get("only_if", {}), _condition)
        self._texts(f"{place}.only_if", list(conditions), check_relative)
        vendors = self._selector(f"{place}.pci_vendor", table, _vendor)
        classes = self._selector(f"{place}.pci_class", table, _pci_class)
        files = self._files(place, table, check_relative, before)  # last: none after a mistake
        return DeviceFiles(files, table.get("asleep") is True, conditions, vendors, classes)

    def _selector(self, place: str, table: dict[str, object], check: Check) -> tuple[str, ...]:
        value = table.get(place.rpartition(".")[2])
        if value is None:
            return ()
        if not value:
            self._note(place, "an empty list fits no device; leave the key out to fit each one")
        return tuple(self._texts(place, value, check))

    def _files(
        self, place: str, table: dict[str, object], check: Check, before: int
    ) -> dict[str, str]:
        """Return patterns and masks; nothing when the table has had a mistake since `before`.

        A limit that is not understood would let the patterns reach further than their author
        meant, and a mask that is not understood would leave an identity in the recording.
        """
        masks = self._pairs(f"{place}.masks", table.get("masks", {}), check_mask)
        patterns = table.get("files", [])
        for pattern in masks:
            if isinstance(patterns, list) and pattern not in patterns:
                self._note(f"{place}.masks", f"{shown(pattern)} is none of its files")
        understood = self._count == before
        checked = self._texts(f"{place}.files", patterns, check)
        return {pattern: masks.get(pattern, "") for pattern in checked} if understood else {}

    def _table(self, place: str, value: object, keys: tuple[str, ...]) -> dict[str, object]:
        if not isinstance(value, dict):
            self._note(place, f"expected a table, found {shown(value)}")
            return {}
        for key in [key for key in value if key not in keys][:MAX_MISTAKES]:
            self._note(place, f"unknown key {shown(key)}: {did_you_mean(str(key)[:80], keys)}")
        return {key: value[key] for key in keys if key in value}

    def _texts(self, place: str, value: object, check: Check) -> list[str]:
        """Return the entries that pass, each once."""
        if not isinstance(value, list):
            self._note(place, f"expected a list, found {shown(value)}")
            return []
        entries: dict[str, None] = {}
        for entry in value:
            self._patterns += 1
            if self._patterns > MAX_PATTERNS:
                self._note(place, f"more than {MAX_PATTERNS} patterns; the others are left out")
                break
            try:
                entries[check(entry)] = None
            except ValueError as error:
                self._note(place, str(error))
        return list(entries)

    def _pairs(self, place: str, value: object, check: Check) -> dict[str, str]:
        """Return the table's texts that pass, by pattern."""
        if not isinstance(value, dict) or len(value) > MAX_PATTERNS:
            self._note(place, f"expected a table of at most {MAX_PATTERNS} keys")
            return {}
        pairs = {}
        for pattern, text in value.items():
            try:
                pairs[pattern] = check(text)
            except ValueError as error:
                self._note(f"{place}[{shown(pattern)}]", str(error))
        return pairs

    def _note(self, place: str, reason: str) -> None:
        self._count += 1
        if len(self.mistakes) < MAX_MISTAKES:
            self.mistakes.append(f"{place}: {reason}")


def _node(pattern: object) -> str:
    return check_absolute(pattern, ("/dev/",))


def _cgroup_file(name: object) -> str:
    controller, dot, file = name.partition(".") if isinstance(name, str) else ("", "", "")
    plain = f"{controller}{file}".replace("_", "").replace(".", "")
    if not (controller and dot and file and plain.isalnum() and len(plain) <= 64):
        raise ValueError(f"{shown(name)} is no file of a control group, such as memory.max")
    return str(name)


def _vendor(text: object) -> str:
    if len(digits := _hex_digits(text)) == 4:
        return digits
    raise ValueError(f'expected vendor ids such as "10de", found {shown(text)}')


def _pci_class(text: object) -> str:
    if 2 <= len(digits := _hex_digits(text)) <= 6:
        return digits
    raise ValueError(f'expected how a class begins, such as "03" or "0302", found {shown(text)}')


def _hex_digits(text: object) -> str:
    digits = text.lower().removeprefix("0x") if isinstance(text, str) else ""
    return digits if _HEX.issuperset(digits) else ""


def _condition(text: object) -> str:
    if isinstance(text, str) and 0 < len(text) <= 64:
        return text.lower()
    raise ValueError("expected the file's text, of 1 to 64 characters")


# Who declares what a recording keeps: the core's own probers, and the installed plugins.

_FIX = "correct `records` in prober.json; until then a recording lacks these files"


class Sources:
    """The declarations of every prober that is installed.

    `covered` names the plugins' probers that declare files, `silent` those whose manifest does not
    say; `refused` are sentences about those that may not declare any: who may not run, because
    `allow`, the allowlist, leaves him out, or because somebody else could have written his code.
    `findings` are about mistakes in manifests and broken distributions.
    """

    def __init__(
        self, allow: tuple[str, ...] | None = None, paths: Iterable[str] | None = None
    ) -> None:
        self.declarations = own_declarations()
        self.covered: list[str] = []
        self.silent: list[str] = []
        self.refused: list[str] = []
        probers, self.findings = discover({}, paths)
        for prober in probers:
            self._add(prober, allow)

    def _add(self, prober: Prober, allow: tuple[str, ...] | None) -> None:
        label = f"{prober.name} ({prober.owner})"
        if reason := _refusal(prober, allow):
            self.refused.append(f"{label}: {reason}")
        elif prober.records is None:
            self.silent.append(label)
        else:
            declaration, findings = declared_by(prober)
            self.declarations.append(declaration)
            self.findings += findings
            if not declaration.is_empty:
                self.covered.append(label)


def own_declarations() -> list[Declared]:
    """Return what the core's own probers declare."""
    return [check_records(records)[0] for records in RECORDS.values()]


def declared_by(prober: Prober) -> tuple[Declared, list[FindingDoc]]:
    """Return what a prober's manifest declares, and a finding for each mistake in it."""
    declaration, mistakes = check_records(prober.records)
    return declaration, [
        manifest_problem(prober, Mistake(mistake, f"{prober.manifest}: {mistake}"), _FIX)
        for mistake in mistakes
    ]


def _refusal(prober: Prober, allow: tuple[str, ...] | None) -> str | None:
    """Return why a prober's manifest counts for nothing: by the rules for its code."""
    return (
        prober.rejection
        or allowed(prober.distribution, prober.version, allow)
        or prober.distrust_of_code()
    )
