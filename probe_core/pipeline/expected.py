"""What should be here against what is: a person's expectation, else the saved baseline.

An accelerator that is here counts in whatever state: that it cannot be used is said elsewhere.
Parts of a card and what a variable hides change no count.
"""

from __future__ import annotations

from probe_core.config import BASELINE, state_file
from probe_core.model.causes import CAUSES
from probe_core.model.expected import GRAMMAR, read
from probe_core.model.findings import finding
from probe_core.model.ids import ACCELERATORS, driver_version, normalise_id, pci_address, pci_model
from probe_core.readiness.siblings import active_links, lanes
from probe_core.readiness.vacant import bus_sign
from probe_core.setting_values import ARGUMENTS
from probe_core.sizes import gib
from probe_core.wording import clean_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from probe_chipdb import Database, Memory
    from probe_core.config import Config
    from probe_core.machine import Machine
    from probe_core.model.document import (
        AbsentDoc,
        DeviceDoc,
        ExpectedDoc,
        FindingDoc,
        NodeDoc,
        Severity,
        UnlikeDoc,
    )
    from probe_core.model.expected import Wanted

__all__ = ["compare", "described", "is_container_without_id", "is_of", "keys_of", "saved_devices"]

_SAME_SIZE = 0.9
"""Share of the memory that a product is named by: drivers reserve some, and ECC takes a sixteenth
of GDDR memory; the next smaller product has four fifths at most."""

FILE_LIMIT = 1 << 20
MAX_SAVED = 1024

_FIX = "run `probe doctor`, which looks for the cause; correct the expectation where it is wrong"


def compare(
    config: Config,
    machine: Machine,
    node: NodeDoc,
    devices: Sequence[DeviceDoc],
    database: Database | None,
    read_file: Callable[[str, int], bytes],
) -> tuple[ExpectedDoc | None, list[FindingDoc]]:
    """Return how the accelerators compare with what is expected, and findings; None without that.

    `read_file` reads the baseline. A recording is compared with the setting alone.
    """
    whole = [d for d in devices if d["kind"] in ACCELERATORS and d["parent"] is None]
    if config.expect is not None:
        return _with_setting(config, whole, devices, database)
    path = state_file(machine.environ, BASELINE) if machine.live else None
    if path is None:
        return None, []
    baseline = _parsed(path, read_file)
    if baseline is None or not is_of(baseline, machine, node, devices):
        return None, []
    return _with_baseline(baseline, machine, whole, devices)


_BOOT = "/proc/sys/kernel/random/boot_id"


def keys_of(machine: Machine, node: NodeDoc, devices: Iterable[DeviceDoc]) -> list[str]:
    """Return what this computer is known by: its id; in a container without it any of several.

    Homes of containers are often those of several computers. The kernel's boot holds until the
    next; a GPU's UUID is in one computer alone.
    """
    if not is_container_without_id(node):
        return [str(node["id"])]
    boot = machine.read(_BOOT, 64)
    keys = [f"boot {boot.strip()}"] if boot else []
    for device in devices:
        if device["kind"] in ACCELERATORS and device["parent"] is None:
            keys += [name for name in device["ids"] if name.startswith("uuid:")]
            keys += _uuid_of_driver(machine, device)
    return list(dict.fromkeys(keys))


def is_container_without_id(node: NodeDoc) -> bool:
    """Return whether a report is of a container that shows no id of its node."""
    return node["id"] is None and node.get("container") is not None


def _uuid_of_driver(machine: Machine, device: DeviceDoc) -> list[str]:
    """Return the UUID that NVIDIA's driver shows without its library, which a journal never loads.

    Drivers before 590 resume a GPU to answer, so one that sleeps is not asked. Until the driver
    has asked the GPU, question marks stand there.
    """
    address = pci_address(device)
    if address is None or device["power_state"] in ("suspended", "suspending", "resuming"):
        return []
    from probe_core.machine import named_lines

    text = machine.read(f"/proc/driver/nvidia/gpus/{address}/information", 4096)
    uuid = named_lines(text or "").get("GPU UUID", "?")
    return [] if "?" in uuid or not uuid else [normalise_id(f"uuid:{uuid}")]


def is_of(
    baseline: Mapping[str, Any], machine: Machine, node: NodeDoc, devices: Iterable[DeviceDoc]
) -> bool:
    """Return whether a baseline is this computer's, as far as a container can tell."""
    # Before 0.9.0b1 there was one key, `node`.
    saved = baseline.get("keys", [str(baseline.get("node"))])
    keys = keys_of(machine, node, devices)
    return isinstance(saved, list) and any(key in saved for key in keys)


# What a setting says.


def _with_setting(
    config: Config,
    whole: Sequence[DeviceDoc],
    devices: Sequence[DeviceDoc],
    database: Database | None,
) -> tuple[ExpectedDoc, list[FindingDoc]]:
    comparison = _Comparison(config, database, devices)
    named = [(entry, comparison.chips_of(entry.name)) for entry in read(str(config.expect))]
    # What names a chip takes its devices before what names a vendor or a kind.
    named.sort(key=lambda item: (_is_general(item[0].name), len(item[1])))
    free = list(whole)
    for entry, ids in named:
        fits = [device for device in free if _fits(device, entry.name, ids)]
        if not (fits or ids or _is_general(entry.name)):
            comparison.add_unknown(entry)
            continue
        here = fits[: entry.count]
        free = [device for device in free if device not in here]
        comparison.add(entry, here)
    if not comparison.document["unknown"]:  # any of the rest may be what was meant
        comparison.add_extra(
            device
            for device in free
            if comparison.has_own_memory(device)
            or any(_fits(device, wanted.name, ids) for wanted, ids in named)
        )
    return comparison.document, comparison.findings


class _Comparison:
    """The document and the findings of a setting, while its parts are compared."""

    __slots__ = ("_database", "_devices", "_variable", "_why", "document", "findings")

    def __init__(
        self, config: Config, database: Database | None, devices: Sequence[DeviceDoc]
    ) -> None:
        text, origin = str(config.expect), config.origins.get("expect", ARGUMENTS)
        source = "--expect" if origin == ARGUMENTS else origin
        self.document = _document(source, text)
        self.findings: list[FindingDoc] = []
        self._database = database
        self._devices = devices
        self._variable = config.variable_of("expect")
        self._why = f"expected: {clean_text(text, 200)} ({source})"

    def _find(
        self, code: str, severity: Severity, what: str, fix: str, device: str | None = None
    ) -> None:
        entry = finding(
            code,
            what,
            self._why,
            fix,
            severity=severity,
            device=device,
            setting="expect",
            variable=self._variable,
        )
        self.findings.append(entry)

    def chips_of(self, name: str) -> set[str]:
        """Return the ids of all chips that a name may mean; empty of a general one."""
        if self._database is None or _is_general(name):
            return set()
        if (exact := self._database.chip(name.lower())) is not None:
            return {exact.id}
        match = self._database.match(name=name)
        candidates = [match.chip] if match.chip is not None else match.candidates
        return {chip.id for chip in candidates}

    def add(self, wanted: Wanted, here: Sequence[DeviceDoc]) -> None:
        """Add those that are here, what they lack, and how many are absent."""
        self.document["count"] += wanted.count
        absent = wanted.count - len(here)
        if absent:
            self.document["absent"].append(
                {
                    "name": wanted.name,
                    "count": absent,
                    "device": None,
                    "place": None,
                    "port": None,
                    "sign": None,
                }
            )
            what = f"{absent} of {wanted.count} {wanted.name} absent, {len(here)} here"
            self._find("fewer-than-expected", "error", what, _FIX)
        for device in here:
            for fact, expected, found in self._less(device, wanted):
                unlike: UnlikeDoc = {
                    "device": device["id"],
                    "fact": fact,
                    "expected": expected,
                    "found": found,
                }
                self.document["unlike"].append(unlike)
                what = f"{described(device)}: {fact} {found}, expected {expected}"
                self._find("unlike-expected", "error", what, _FIX, device["id"])

    def add_unknown(self, wanted: Wanted) -> None:
        """Add a name that no chip has."""
        self.document["unknown"].append(clean_text(wanted.name, 80))
        what = f"no chip is called {clean_text(wanted.name, 80)!r}"
        fix = f"take a name that `probe chip` knows{self._near(wanted.name)}; {GRAMMAR}"
        self._find("expectation-unusable", "warning", what, fix)

    def add_extra(self, devices: Iterable[DeviceDoc]) -> None:
        """Add accelerators that nobody expects."""
        extra = list(devices)
        self.document["extra"] = [device["id"] for device in extra]
        if not extra:
            return
        names = ", ".join(described(device) for device in extra[:4])
        more = f" and {len(extra) - 4} more" if len(extra) > 4 else ""
        fix = "correct the expectation where it is meant to be here"
        single = extra[0]["id"] if len(extra) == 1 else None
        what = f"more is here than expected: {names}{more}"
        self._find("more-than-expected", "warning", what, fix, single)

    def has_own_memory(self, device: DeviceDoc) -> bool:
        """Return whether a device is a card, not a processor's own graphics or NPU."""
        kind = device["memory"]["kind"]
        if kind is not None:
            return kind == "dedicated"
        memory = self._memory_of_chip(device)
        return memory is not None and (memory.type or "").startswith(("GDDR", "HBM"))

    def _memory_of_chip(self, device: DeviceDoc) -> Memory | None:
        id_ = device["chip"]["id"]
        chip = self._database.chip(id_) if self._database is not None and id_ else None
        return chip.memory if chip is not None else None

    def _near(self, name: str) -> str:
        if self._database is None:
            return ""
        from probe_core.likeness import closest

        chips = self._database.chips()
        names = {chip.id.partition("/")[2].replace("-", " ") for chip in chips}
        match = closest(name.lower(), names | {chip.name.lower() for chip in chips})
        return f"; did you mean {match!r}?" if match else ""

    def _less(self, device: DeviceDoc, wanted: Wanted) -> Iterator[tuple[str, str, str]]:
        """Yield (fact, expected, found) of what a device has less of.

        What was not read is not less; a chip's own memory stands for memory that was not read.
        """
        total = device["memory"]["total"]
        if total is None and (memory := self._memory_of_chip(device)) is not None:
            total = memory.bytes
        if wanted.memory and total is not None and total < wanted.memory * _SAME_SIZE:
            yield "memory", gib(wanted.memory), gib(total)
        width = lanes(device)
        if wanted.width and width is not None and width < wanted.width:
            yield "PCIe lanes", str(wanted.width), f"{width:g}"
        links = active_links(device)
        if wanted.nvlinks and links is not None and links < wanted.nvlinks:
            yield "active NVLinks", str(wanted.nvlinks), f"{links:g}"
        version = driver_version(device)
        if wanted.driver and version and not _begins(version, wanted.driver):
            yield "driver", wanted.driver, version
        parts = _instances(device, self._devices)
        if wanted.instances == 0 and parts:
            yield "MIG instances", "none", str(parts)
        if wanted.profile and wanted.instances and parts is not None:
            own = [part for part in self._devices if part["parent"] == device["id"]]
            count = sum(part.get("profile") == wanted.profile for part in own)
            if count < wanted.instances:
                instances = f"{wanted.instances} × {wanted.profile}"
                yield "MIG instances", instances, f"{count} × {wanted.profile}"


def _document(source: str, text: str) -> ExpectedDoc:
    return {
        "source": source,
        "text": text,
        "count": 0,
        "absent": [],
        "extra": [],
        "unlike": [],
        "unknown": [],
    }


def _is_general(name: str) -> bool:
    """Return whether a name is a kind or a vendor, which any of its devices fits."""
    from probe_core.model.runtimes import NATIVE

    return name.lower() in (*ACCELERATORS, *NATIVE)


def _fits(device: DeviceDoc, name: str, chips: set[str]) -> bool:
    """Return whether a device is one of what a name means.

    By its chip, or the chips that it may be; where nobody knows its chip, or the name, by words.
    """
    if _is_general(name):
        return name.lower() in (device["kind"], device["vendor"])
    own = {device["chip"]["id"]} if device["chip"]["id"] else {*device["chip"]["candidates"]}
    if chips and own:
        return not chips.isdisjoint(own)
    words = (device["name"] or "").lower().replace("-", " ").split()
    return set(name.lower().replace("-", " ").split()).issubset(words)


def _begins(version: str, wanted: str) -> bool:
    parts, own = wanted.split("."), version.split(".")
    return own[: len(parts)] == parts


# What was here when the baseline was saved.


def described(device: DeviceDoc) -> str:
    """Return a device's name with its id, for a sentence."""
    name = device["name"] or device["chip"].get("name") or device["vendor"] or device["kind"]
    return f"{name} ({device['id']})"


def saved_devices(devices: Sequence[DeviceDoc]) -> list[dict[str, object]]:
    """Return what a baseline keeps of each accelerator, to find it, or miss it, later."""
    return [
        {
            "id": device["id"],
            "ids": [*device["ids"]],
            "name": device["name"] or device["chip"].get("name"),
            "model": pci_model(device),
            "port": next(iter(device.get("bridges") or ()), None),
            "memory": device["memory"]["total"],
            "lanes": lanes(device),
            "nvlinks": active_links(device),
            "instances": _instances(device, devices),
        }
        for device in devices
        if device["kind"] in ACCELERATORS and device["parent"] is None
    ]


def _instances(device: DeviceDoc, devices: Iterable[DeviceDoc]) -> int | None:
    """Return how many parts a card is divided into; None where no driver was asked."""
    count = sum(part["parent"] == device["id"] for part in devices)
    return count if count or set(device["seen_by"]) - {"bus"} else None


def _with_baseline(
    baseline: Mapping[str, Any],
    machine: Machine,
    whole: Sequence[DeviceDoc],
    devices: Sequence[DeviceDoc],
) -> tuple[ExpectedDoc | None, list[FindingDoc]]:
    saved = _saved_of(baseline)
    if not saved:
        return None, []
    date = clean_text(str(baseline.get("saved")), 40)
    result = _document("baseline", f"the state that was saved at {date}")
    result["count"] = len(saved)
    pairs, absent = _paired(saved, whole)
    findings = []
    for entry in absent:
        gone = _absent(entry, machine)
        result["absent"].append(gone)
        findings.append(_lost(gone, date))
    paired = {device["id"] for _, device in pairs}
    # No finding: an external GPU that comes and goes is no fault.
    result["extra"] = [device["id"] for device in whole if device["id"] not in paired]
    for entry, device in pairs:
        for unlike in _shrunk(entry, device, devices):
            result["unlike"].append(unlike)
            findings.append(
                finding(
                    "unlike-expected",
                    f"{described(device)}: {unlike['fact']} {unlike['found']}, it had"
                    f" {unlike['expected']}",
                    f"expected: {result['text']}",
                    "run `probe doctor`; `probe doctor --save` where it is meant to be so",
                    # Who divides a card anew means to; that all parts went with a reset is seen.
                    severity="info" if unlike["fact"] == _PARTS else "warning",
                    device=device["id"],
                )
            )
    return result, findings


def _absent(entry: Mapping[str, Any], machine: Machine) -> AbsentDoc:
    name = clean_text(str(entry.get("name") or entry.get("id")), 120)
    id_ = clean_text(str(entry.get("id")), 120)
    place = id_.removeprefix("pci:") if id_.startswith("pci:") else None
    port = clean_text(str(entry["port"]), 20) if isinstance(entry.get("port"), str) else None
    return {
        "name": name,
        "count": 1,
        "device": id_,
        "place": place,
        "port": port,
        "sign": bus_sign(machine, place, port) if place else None,
    }


def _lost(gone: AbsentDoc, date: str) -> FindingDoc:
    cause = CAUSES["off-the-bus"]
    return finding(
        cause.code,
        f"{gone['name']} ({gone['device']}) is lost: no bus and no plugin shows it now",
        f"it was here on {date[:10]}",
        cause.fix,
        severity="error",
        device=gone["device"],
        step=cause.step,
        evidence=gone["sign"] or f"the baseline of {date}",
    )


def _parsed(path: str, read_file: Callable[[str, int], bytes]) -> Mapping[str, Any] | None:
    from probe_core.jsontext import parse
    from probe_core.machine import text_of

    try:
        document = parse(text_of(read_file(path, FILE_LIMIT)))
    except (OSError, ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


def _saved_of(baseline: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    entries = baseline.get("accelerators")
    listed = entries[:MAX_SAVED] if isinstance(entries, list) else []
    return [e for e in listed if isinstance(e, dict) and isinstance(e.get("ids"), list)]


def _paired(
    saved: Sequence[Mapping[str, Any]], whole: Sequence[DeviceDoc]
) -> tuple[list[tuple[Mapping[str, Any], DeviceDoc]], list[Mapping[str, Any]]]:
    """Return the saved accelerators with those that they are now, and those that are absent.

    By a UUID or serial number, then by place and product, then by product alone: a card that was
    put into another slot, or exchanged for its equal, and buses that were numbered anew, are no
    loss.
    """
    pairs: list[tuple[Mapping[str, Any], DeviceDoc]] = []
    rest, free = list(saved), list(whole)
    for is_same in (_same_card, _same_place, _same_product):
        for entry in [*rest]:
            device = next((d for d in free if is_same(entry, d)), None)
            if device is not None:
                pairs.append((entry, device))
                rest.remove(entry)
                free.remove(device)
    return pairs, rest


def _same_card(entry: Mapping[str, Any], device: DeviceDoc) -> bool:
    own = {id_ for id_ in device["ids"] if not id_.startswith("pci:")}
    return not own.isdisjoint(map(str, entry["ids"]))


def _same_place(entry: Mapping[str, Any], device: DeviceDoc) -> bool:
    address = pci_address(device)
    is_there = device["id"] == entry.get("id") or f"pci:{address}" in entry["ids"]
    return is_there and entry.get("model") in (None, pci_model(device))


def _same_product(entry: Mapping[str, Any], device: DeviceDoc) -> bool:
    model = entry.get("model")
    if model is None:
        return bool(entry.get("name")) and entry["name"] == device["name"]
    return bool(model == pci_model(device))


_PARTS = "instances"


def _shrunk(
    entry: Mapping[str, Any], device: DeviceDoc, devices: Iterable[DeviceDoc]
) -> Iterator[UnlikeDoc]:
    """Yield what a device has less of than when the baseline was saved."""
    for key, fact, own, show, share in (
        ("memory", "memory", device["memory"]["total"], gib, _SAME_SIZE),
        ("lanes", "PCIe lanes", lanes(device), _plain, 1.0),
        ("nvlinks", "active NVLinks", active_links(device), _plain, 1.0),
        ("instances", _PARTS, _instances(device, devices), _plain, 1.0),
    ):
        before = entry.get(key)
        if not isinstance(before, (int, float)) or isinstance(before, bool):
            continue
        if own is not None and own < before * share:
            yield {
                "device": device["id"],
                "fact": fact,
                "expected": show(before),
                "found": show(own),
            }


def _plain(value: float) -> str:
    return f"{value:g}"
