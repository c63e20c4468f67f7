"""Computers that nobody has probed: `2x Mac Studio M3 Ultra 512GB, thunderbolt5` as reports.

    GROUP  = NODES [("," | "with" | "over" | "via") LINK | LINK]
    NODES  = PART {"+" PART} | COUNT "x" "(" NODES ")"
    PART   = [COUNT "x"] NAME [MEMORY] | COUNT NAME [MEMORY] | NAME [MEMORY] "x" COUNT

COUNT is a number, or a word up to twelve. NAME is a machine of machines.toml, a cloud's type of
machine, a card of the chip database, or a host. COUNT machines are so many nodes; cards stand
together in one node, with the host that follows them, whose MEMORY is its RAM. LINK joins the nodes
of the group. Figures are the makers', and the report says so.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterable
from functools import cache
from itertools import combinations
from typing import Any, Final, NamedTuple, TypedDict, cast

from probe_cluster.planning.links import Link, Links, nvlink_of, parse_kind
from probe_cluster.shared import ClusterError
from probe_core.model.machine_types import of_type

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_chipdb import Chip, Database

NOT_PROBED = "not probed, figures of the maker"

_GIB, _GB = 1 << 30, 10**9
_MOST = 1000
"""Nodes or cards of a group: more are a slip of the pen."""

_LAPTOP = "MacBook"

_MEMORY = re.compile(r"\s+(\d{1,5})\s*(GB|GiB|TB)$", re.IGNORECASE)
_PLUS = re.compile(r"(?<!max)\+", re.IGNORECASE)  # not that of Ryzen AI Max+ 395
_AFTER = re.compile(r"(?:\s+|(?<=\d))[x×]\s*(\d{1,4})$", re.IGNORECASE)
_ALIKE = re.compile(r"\s*(\d{1,4})\s*[x×*]\s*\(([^()]+)\)\s*$", re.IGNORECASE)
# 2x 4x RTX 3090, RTX 3090 2x, and what holds several cards: GB200 NVL72
_SEVERAL = re.compile(
    r"^\W*\d+\s*[x×*]\s|\s\(?\d{1,2}\s?[x×]\)?$|\b(?:[HD]GX|SuperPOD|NVL\d+)\b", re.IGNORECASE
)
_SUFFIX = re.compile(r"\b(m\d+)\s+(?=(?:pro|max|ultra)\b)", re.IGNORECASE)  # M3 Pro is no M3
_BARE = re.compile(r"^(\d{1,2})\s+(?=[a-z])", re.IGNORECASE)
_NUMBERS = (
    "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven",
    "twelve",
)  # fmt: skip
_WORD = re.compile(rf"^({'|'.join(_NUMBERS)}|a|an|dual|single)\s+(?:x\s+)?", re.IGNORECASE)
_WORDS = {word: number for number, word in enumerate(_NUMBERS, 1)} | {
    "a": 1, "an": 1, "single": 1, "dual": 2,
}  # fmt: skip
_LINKED = re.compile(r"\s+(?:with|over|via|by|on)\s+(?:an?\s+)?(?=\S+(?:\s\S+)?$)", re.IGNORECASE)
_MODEL = re.compile(r"^\d{3,5}x[a-z]+$", re.IGNORECASE)
_COUNT = re.compile(r"^(\d{1,18})\s*[x×*]\s*", re.IGNORECASE)


class Machine(TypedDict, total=False):
    """An entry of machines.toml; its head says what the keys mean."""

    name: str
    also: list[str]
    os: str
    kind: str
    chip: str
    chips: dict[str, str]
    memory: list[int]
    gets: float
    ports: list[str]
    bandwidth: float
    cores: int
    count: int
    inner: str
    host: int
    source: str


class _Table(TypedDict):
    machine: list[Machine]
    host: list[Machine]
    cards: dict[str, str]
    sizes: dict[str, list[int]]


# 4x RTX 3090 + 128GB of RAM
_RAM = re.compile(r"\s*(\d+\s*GB)(?:\s+of)?(?:\s+(?:ddr\d|ram|memory))*\s*", re.IGNORECASE)


class _Part(NamedTuple):
    many: int
    name: str
    memory: int | None
    """GB."""


class _Cards(NamedTuple):
    """Equal cards of a computer."""

    many: int
    chip: Chip
    gib: float
    """Of each."""


Reports = dict[str, dict[str, Any]]
"""Node → what its report would say."""


@cache
def table() -> _Table:
    """Return machines.toml."""
    path = os.path.join(os.path.dirname(__file__), "machines.toml")
    with open(path, "rb") as file:
        return cast("_Table", tomllib.load(file))


def what_if(groups: Iterable[str], links: Links | None = None) -> Reports:
    """Return the reports of computers that people describe; `links` gets those between them.

    A group may be the path of a file with one on each line; lines with # are comments. Raises
    `ClusterError` for what is unknown, not sold, or ambiguous, with the candidates.
    """
    groups_of = [_joined(text) for text in _lines(groups)]
    names = [name for nodes, _ in groups_of for name, _ in nodes]
    reports: Reports = {}
    for nodes, link in groups_of:
        ids: list[str] = []
        for name, report in nodes:
            number = sum(id_.rpartition("-")[0] == name for id_ in reports) + 1
            ids.append(f"{name}-{number}" if names.count(name) > 1 else name)
            reports[ids[-1]] = report
        if link is not None and links is not None:
            for first, second in combinations(ids, 2):
                links.connect(first, second, link)
    return reports


def _joined(text: str) -> tuple[list[tuple[str, dict[str, Any]]], Link | None]:
    """Return the nodes of a group, by what they are called, and the link that joins them."""
    body, comma, link = text.partition(",")
    if not comma:
        body, link = _split_link(text)
        comma = "," if link else ""
    nodes = [("-".join(_words(name)), report) for name, report in _group(body)]
    if not (comma and link.strip()):
        return nodes, None
    try:
        kind = parse_kind(link)
        if len(nodes) == 1:
            _bridge(nodes[0][1], kind)
        return nodes, kind
    except ClusterError as error:
        if _known(link):
            raise ClusterError(
                f"{link.strip()!r} is no kind of link: join the parts of a computer by +, and give"
                " another computer a --have of its own"
            ) from None
        raise error


def _split_link(text: str) -> tuple[str, str]:
    """Return a group and the link that is named behind it without a comma; "" where none is.

    `2x RTX 3090 nvlink`, and `two Mac Studio M3 Ultra 256GB over thunderbolt 5`.
    """
    words = text.split()
    for many in (2, 1):
        link = " ".join(words[-many:])
        match = _LINKED.search(text)
        body = text[: match.start()] if match else " ".join(words[:-many])
        link = text[match.end() :] if match else link
        try:
            kind = parse_kind(link).kind
        except ClusterError:
            continue
        named = match is None and kind.startswith("pcie") and _names_card(text)
        return (text, "") if named or not body.strip() else (body, link)
    return text, ""


def _names_card(text: str) -> bool:
    """Return whether the last part is a card with all of its words: H100 PCIe is no linked H100."""
    found = _database().match(name=_part(_PLUS.split(text)[-1]).name)
    return found.chip is not None or bool(found.candidates)


def _bridge(report: dict[str, Any], link: Link) -> None:
    """Join the cards of a computer by the link that is named for them: a bridge of NVLink.

    Raises `ClusterError` for cards of which it is not known that they have it.
    """
    for device in report["devices"]:
        if link.kind.startswith("nvlink"):
            nvlink_of(device["name"], link.kind)
            device["links"] = [{"kind": "nvlink"}]
        elif link.kind == "xgmi":
            if "Instinct" not in device["name"]:
                raise ClusterError(f"{device['name']} has no xgmi; leave the link out")
            device["links"] = [{"kind": "xgmi"}]
        elif not link.kind.startswith("pcie"):
            raise ClusterError(
                f"{link.kind} joins several computers, and {report['node']['model']} is one: name"
                " the link by --link or --default-link"
            )


def _known(text: str) -> bool:
    """Return whether a text describes computers."""
    try:
        return bool(_group(text))
    except ClusterError:
        return False


def _lines(groups: Iterable[str]) -> Iterable[str]:
    for text in groups:
        if not os.path.isfile(text):
            yield text
            continue
        try:
            with open(text, encoding="utf-8") as file:
                lines = file.read(1 << 16).splitlines()
        except (OSError, ValueError) as error:
            raise ClusterError(f"{text}: {error}") from None
        yield from (line for raw in lines if (line := raw.partition("#")[0].strip()))


def _group(text: str) -> list[tuple[str, dict[str, Any]]]:
    """Return (name, report) of each node of a group."""
    alike = _ALIKE.match(text)
    if alike and 0 < int(alike[1]) <= _MOST:
        return _group(alike[2]) * int(alike[1])
    nodes: list[tuple[str, dict[str, Any]]] = []
    cards: list[_Cards] = []
    for own in _PLUS.split(text):
        ram = _RAM.fullmatch(own) if cards else None
        part = _part(f"PC {ram[1]}" if ram else own)
        rented = _of_cloud(part)
        if rented is not None:
            nodes += [rented] * part.many
            continue
        # What stands in front of a host is cards: Ryzen is no Ryzen AI Max+ there, nor alone.
        host = _named(table()["host"], part.name) or (cards and _host_of(part.name))
        machine = None if host and (cards or _is_host(part.name)) else _machine(part)
        if machine is not None:
            nodes += [(machine["name"], _report(machine, part))] * part.many
            continue
        if host:
            if not cards:
                raise ClusterError(
                    f"{part.name!r} is a host without cards: write them first, 2x RTX 4090 +"
                    f" {part.name}"
                )
            nodes.append(_with_cards(cards, part))
            cards = []
            continue
        cards.append(_cards(part))
    return [*nodes, *([_with_cards(cards, None)] if cards else [])]


def _part(text: str) -> _Part:
    rest = text.strip()
    # 7900XTX is no 7900 cards.
    named = _MODEL.match(rest) is not None and _database().match(name=rest).chip is not None
    count, match = 1, None if named else _COUNT.match(rest) or _BARE.match(rest)
    word = None if match else _WORD.match(rest)
    if word:
        count, rest = _WORDS[word[1].lower()], rest[word.end() :]
    elif match:
        count, rest = int(match[1]), rest[match.end() :]
    elif match := _AFTER.search(rest):
        count, rest = int(match[1]), rest[: match.start()]
    memory = _MEMORY.search(" " + rest)
    gb = None
    if memory:
        rest = (" " + rest)[: memory.start()].strip()
        gb = int(memory[1]) * (1024 if memory[2].lower() == "tb" else 1)
    if not _words(rest) or not 0 < count <= _MOST:
        raise ClusterError(
            f"{text.strip()!r} describes no computer: write 2x Mac Studio M3 Ultra 512GB,"
            f" or 4x RTX 3090 + Threadripper 128GB (at most {_MOST} of a kind)"
        )
    return _Part(count, rest.strip(), gb)


def _of_cloud(part: _Part) -> tuple[str, dict[str, Any]] | None:
    """Return the node of a cloud's type of machine, `p5.48xlarge`; None where a name is of none.

    Raises `ClusterError` where it is not known how many accelerators the type has.
    """
    own = of_type(part.name)
    if own is None:
        some = _database().of_machine_type(part.name)
        if not some:
            return None
        raise ClusterError(
            f"{part.name!r} is a cloud's type of machine, and it is not known how many"
            f" {some[0].name} it has: write 4x {some[0].id}"
        )
    match = _database().match(name=part.name)
    chip = match.chip or _card(part._replace(name=own.name))
    if match.candidates and chip not in match.candidates:
        chip = _card(part)  # asks back
    device = _Cards(own.number, _with_memory(chip, part), chip.memory.gib or part.memory or 0)
    _, report = _with_cards([device], None, f"the chip database; {own.source}")
    report["node"]["model"] = part.name
    return part.name, report


def _words(name: str) -> tuple[str, ...]:
    return tuple(re.findall(r"[a-z0-9]+\+?", name.lower().replace("®", "").replace("™", "")))


def _named(entries: list[Machine], name: str) -> dict[str, Machine]:
    """Return the entry of exactly this name, or of names of it, else all with all of its words."""
    wish = _key(name)
    names = [(own, entry) for entry in entries for own in _spellings(entry)]
    for own, entry in names:
        if _key(own) == wish:
            return {own: entry}
    for entry in entries:  # Framework Desktop Ryzen AI Max+ 395
        inside = [key for key in map(_key, _spellings(entry)) if key <= wish]
        if frozenset().union(*inside) == wish:
            return {entry["name"]: entry}
    # H100 alone is a card, and DGX H100 a server of eight.
    names = [own for own in names if own[1].get("kind") != "cards" or "dgx" in wish]
    found: dict[str, Machine] = {}
    for words in (_key, _words)[: 1 if _SUFFIX.search(name) else 2]:  # Mac Studio M4: M4 Max
        for own, entry in names:
            if not wish.difference(words(own)) and entry not in found.values():
                found[own] = entry
        if found:
            break
    return found


def _key(name: str) -> frozenset[str]:
    return frozenset(_words(_SUFFIX.sub(r"\1", name)))


def _host_of(processor: str) -> bool:
    """Return whether a text begins like a host and is no machine: Ryzen 9 7950X, i9-14900K."""
    if _named(table()["machine"], processor):
        return False
    words = _words(processor)
    return any(words[: len(own)] == own for own in _hosts())


def _is_host(name: str) -> bool:
    return _words(name) in _hosts()


def _hosts() -> list[tuple[str, ...]]:
    return [_words(own) for entry in table()["host"] for own in _spellings(entry)]


def _spellings(entry: Machine) -> list[str]:
    return [entry["name"], *entry.get("also", ())]


def _machine(part: _Part) -> Machine | None:
    """Return the machine that is meant; None where the name is of none."""
    found = _named(table()["machine"], part.name)
    if len(found) > 1:
        # Only some are sold with the memory that is asked for.
        sold = {n: m for n, m in found.items() if part.memory in (None, *m.get("memory", ()))}
        if len(sold) != 1:
            raise ClusterError(f"{part.name!r} may be one of {', '.join(found)}: say which")
        found = sold
    for name, machine in found.items():
        # A laptop with a desktop's chip and memory is not a desktop.
        return {**machine, "name": name} if name.startswith(_LAPTOP) else machine
    return None


def _report(machine: Machine, part: _Part) -> dict[str, Any]:
    if machine["kind"] == "cards":
        chip = _database().chip(machine["chip"])
        assert chip is not None, machine["chip"]
        if part.memory is not None:
            raise ClusterError(f"{machine['name']} is known with the memory of its cards alone")
        return _document(
            machine["name"],
            machine["os"],
            machine["host"] * _GIB,
            _card_devices([_Cards(machine["count"], chip, chip.memory.gib or 0)], machine["inner"]),
            _source(machine),
        )
    size = _memory(machine, part)
    total = size * _GIB
    id_ = machine.get("chips", {}).get(str(size), machine.get("chip"))
    chip = _database().chip(id_) if id_ else None
    limit = int(total * machine["gets"])
    if chip is None:
        # A processor without a chip of accelerators: its figures are in the table.
        device = {
            "id": "cpu:0", "ids": ["cpu:0"], "kind": "cpu", "name": machine["name"],
            "memory": {"kind": "shared", "total": total}, "bandwidth": machine["bandwidth"],
            "units": machine["cores"],
        }  # fmt: skip
        return _document(machine["name"], machine["os"], total, [device], _source(machine), limit)
    memory = {"kind": "unified", "total": total, "free": limit, "parts": {"limit": limit}}
    device = {**_device(chip, 0), "memory": memory}
    return _document(machine["name"], machine["os"], total, [device], _source(machine))


def _source(machine: Machine) -> str:
    """Return where the figures are from, and which links the machine has ports for."""
    ports = machine["ports"]
    if machine["name"].startswith(_LAPTOP):  # no MacBook has Ethernet
        ports = [port for port in ports if not port.endswith("gbe")]
    return f"{machine['source']}; ports: {', '.join(ports)}"


def _memory(machine: Machine, part: _Part) -> int:
    """Return the GB of a machine, which must be sold with so many."""
    sold = machine["memory"]
    if part.memory is None and len(sold) == 1:
        return sold[0]
    choices = f"{', '.join(map(str, sold[:-1]))} or {sold[-1]}" if len(sold) > 1 else str(sold[0])
    if part.memory is None:
        raise ClusterError(f"{machine['name']} is sold with {choices} GB: say which")
    if part.memory not in sold:
        raise ClusterError(
            f"{machine['name']} is not sold with {part.memory} GB, but with {choices} GB"
        )
    return part.memory


# Boards with NVLink whose ids do not tell it.
_BOARDS = ("nvidia/h20", "nvidia/h20-3e", "nvidia/gb200", "nvidia/gb300")


@cache
def _database() -> Database:
    import probe_chipdb

    return probe_chipdb.load()


def _cards(part: _Part) -> _Cards:
    """Return the cards of a part. Raises `ClusterError` as `_card` does, and where it is not told
    whether cards of several devices are counted, or the devices."""
    chip = _card(part._replace(memory=None) if _is_board(part) else part)
    if chip.boards > 1 and part.memory is None:
        each, board = chip.memory.gib or 0, (chip.memory.gib or 0) * chip.boards
        raise ClusterError(
            f"a card with {chip.name} has {chip.boards} devices of {each:g} GB: write"
            f" {part.many}x {part.name} {board:g}GB for cards, {each:g}GB for devices"
        )
    many = part.many * (chip.boards if _is_board(part) else 1)
    return _Cards(many, chip, chip.memory.gib or part.memory or 0)


def _is_board(part: _Part) -> bool:
    """Return whether a part has the memory of a card of several devices: MI250X 128GB."""
    chip = _database().match(name=part.name).chip
    if chip is None or chip.boards == 1 or part.memory is None:
        return False
    return not _fits(chip, part.memory) and part.memory == (chip.memory.gib or 0) * chip.boards


def _card(part: _Part) -> Chip:
    """Return the chip of a card. Raises `ClusterError` with candidates, or the nearest names."""
    if _SEVERAL.search(part.name):
        raise ClusterError(
            f"{part.name!r} may be several cards: write their number first, as in 8x H200, and"
            " computers that are alike as 2x (4x RTX 3090)"
        )
    database = _database()
    usual = {_words(name): id_ for name, id_ in table()["cards"].items()}
    meant = usual.get(_words(part.name))
    chip = database.chip(meant or part.name.lower())
    # What people mean by a short name has another memory than they say: it is another card.
    if chip is not None and not (meant and not _fits(chip, part.memory)):
        return _with_memory(chip, part)
    # GH200 480GB is a name: the gigabytes are those of the processor beside it.
    whole = database.match(name=f"{part.name} {part.memory}GB") if part.memory else None
    if whole is not None and whole.chip is not None and f"{part.memory}GB" in whole.chip.name:
        return whole.chip
    match = database.match(name=part.name)
    if match.chip is not None:
        return _with_memory(match.chip, part)
    candidates = [chip for chip in match.candidates if _fits(chip, part.memory)]
    if len({chip.name for chip in candidates}) == 1 < len(candidates):
        # Nothing is known of some boards of the same name, such as the L20 that is 10de:26b7.
        candidates = [chip for chip in candidates if chip.memory.gib is not None]
    if len(candidates) == 1:
        return candidates[0]
    # Apple's chips are no cards: their machine is not in the table.
    if match.candidates and match.candidates[0].vendor != "apple":
        some = candidates or match.candidates
        alike = len({chip.name for chip in some}) < len(some)
        names = ", ".join(chip.id if alike else chip.name for chip in some)
        raise ClusterError(f"{part.name!r} may be one of {names}: say which")
    raise ClusterError(f"{part.name!r} is no machine and no card that is known{_near(part.name)}")


def _fits(chip: Chip, gb: int | None) -> bool:
    return gb is None or (chip.memory.gib is not None and abs(chip.memory.gib - gb) < 1)


def _with_memory(chip: Chip, part: _Part) -> Chip:
    if chip.memory.gib is None:
        sold = table()["sizes"].get(chip.id)
        if sold is None:
            raise ClusterError(f"the memory of {chip.name} is not in the chip database")
        choices = " or ".join(map(str, sold))
        if part.memory is None:
            raise ClusterError(f"{chip.name} is sold with {choices} GB: say which")
        if part.memory not in sold:
            raise ClusterError(
                f"{chip.name} is not sold with {part.memory} GB, but with {choices} GB"
            )
        return chip
    if not _fits(chip, part.memory):
        raise ClusterError(f"{chip.name} has {chip.memory.gib:g} GB, not {part.memory}")
    return chip


def _near(name: str) -> str:
    from difflib import get_close_matches

    known = [own for machine in table()["machine"] for own in _spellings(machine)]
    lower = {own.lower(): own for own in known}
    close = [lower[own] for own in get_close_matches(name.lower(), lower, n=2)]
    close += [chip.name for chip in _database().near(name, 2)]
    return f"; close: {', '.join(dict.fromkeys(close))}" if close else ""


def _with_cards(
    cards: list[_Cards], host: _Part | None, source: str = "the chip database"
) -> tuple[str, dict[str, Any]]:
    """Return the node of cards and what they stand in."""
    names = [re.sub(r"^(?:NVIDIA|AMD|Intel)\W+", "", own.chip.name) for own in cards]
    each = zip((own.many for own in cards), names, strict=True)
    name = " ".join(f"{number}x {own}" if number > 1 else own for number, own in each)
    ram = host.memory * _GIB if host and host.memory else None
    # Boards for SXM sockets and superchips have NVLink, those for OAM xGMI; cards have PCIe.
    first = cards[0].chip.id
    board = "sxm" in first or first in _BOARDS
    inner = "nvlink" if board else "xgmi" if "instinct-mi3" in first else "pcie"
    return name, _document(name, "linux", ram, _card_devices(cards, inner), source)


def _card_devices(cards: list[_Cards], inner: str) -> list[dict[str, Any]]:
    devices: list[dict[str, Any]] = []
    for number, chip, gib in cards:
        for _ in range(number):
            size = int(gib * _GIB)
            memory = {"kind": "dedicated", "total": size, "free": size}
            links = [{"kind": inner}] if inner != "pcie" else []
            devices.append({**_device(chip, len(devices)), "memory": memory, "links": links})
    return devices


def _device(chip: Chip, place: int) -> dict[str, Any]:
    id_ = f"what-if:{place}"
    return {
        "id": id_,
        "ids": [id_],
        "kind": chip.kind,
        "vendor": chip.vendor,
        "name": chip.name,
        "arch": chip.arch,
        "bandwidth": chip.bandwidth,
        "fp32": _tera(chip, "fp32", "vector"),
        "fp16": _tera(chip, "fp16", "matrix") or _tera(chip, "fp16", "vector"),
        "int8": _tera(chip, "int8", "matrix") or _tera(chip, "int8", "vector"),
        "readiness": {"state": "ready"},
    }


def _tera(chip: Chip, dtype: str, path: str) -> float | None:
    peak = chip.peak(dtype, path=path)
    return None if peak is None else peak.tflops


_HOST: Final[dict[str, Any]] = {
    "id": "cpu:0",
    "ids": ["cpu:0"],
    "kind": "cpu",
    "name": None,
    "memory": {"kind": "shared"},
    "unknown": dict.fromkeys(("bandwidth", "fp32", "fp16", "int8"), "of a host only RAM is known"),
}
"""The processor beside described cards, for plans that use it alone."""


def _document(
    name: str,
    system: str,
    ram: int | None,
    devices: list[dict[str, Any]],
    source: str,
    available: int | None = None,
) -> dict[str, Any]:
    memory = {"total": ram, "available": ram if available is None else available, "limit": None}
    node = {"os": system, "model": name, "memory": memory if ram else {}}
    best = min(devices, key=lambda own: (own["kind"] != "gpu", -(own.get("fp16") or 0.0)))
    if ram and best["kind"] != "cpu":
        devices = [*devices, _HOST]
    return {
        "schema": 1,
        "node": node,
        "devices": devices,
        "primary": best["id"],
        "what_if": f"{NOT_PROBED}: {source}",
    }
