"""What stands in the tables and dialogs of the screen beside the devices: lines of text."""

from __future__ import annotations

from rich.text import Text

from probe_core.commands import size
from probe_watch.alerts import DEFAULTS, Edge
from probe_watch.columns import COLUMNS, MARK, STYLES, UNKNOWN
from probe_watch.figures import QUANTITIES, figure_of_rule, spark
from probe_watch.grid import fitted, table
from probe_watch.lines import alert_sentence, timestamp
from probe_watch.processes import age, gathered

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from probe_core.model.document import EventDoc
    from probe_watch.grid import Entry, Line
    from probe_watch.node import Node, Row
    from probe_watch.processes import Task

# Devices: their history, and all that is known of one.


def graphs(row: Row, width: int) -> Text:
    """Return each figure of a device: now, its range, its last samples; or why it is unknown."""
    shown = Text(f"{row.short}  {row.model}")
    for name, quantity in QUANTITIES.items():
        unit, factor, values = quantity.unit, quantity.factor, row.history[name]
        numbers = [value * factor for value in values if value is not None]
        shown.append(f"\n{name:12}")
        if not numbers:
            shown.append(f"{UNKNOWN:>7}   {quantity.of(row.sample).reason}", style="dim")
            continue
        now = UNKNOWN if values[-1] is None else f"{values[-1] * factor:.0f} {unit}"
        span = f"{min(numbers):.0f} to {max(numbers):.0f} {unit}"
        # Ratios are drawn as they are, others within their own range.
        least, most = (0.0, 1.0) if factor != 1 else (min(numbers), max(numbers))
        parts = [None if v is None else min(1.0, (v - least) / (most - least or 1)) for v in values]
        shown.append(f"{now:>7}   {span:>16}  ")
        shown.append(spark(parts, max(0, width - 42)), style="green")
    return shown


def device_details(row: Row) -> Text:
    """Return all that is known of a device, and why the rest is not."""
    sample = row.sample
    text = Text(f"{row.model or row.short}\n", style="bold")
    text.append(f"{sample['device']}  {row.kind}  {row.state}", style="not bold")
    lines = [sample["reason"]] if sample["reason"] else []
    lines += [
        f"{name:20} {figure}" for name, figure in _figures(row) if figure not in ("", UNKNOWN)
    ]
    if sample["throttled"]:
        lines.append(f"its clock is lowered for {', '.join(sample['throttled'])}")
    for link in sample["links"]:
        rates = [f"{word} {size(round(rate))}/s" for word, rate in
                 (("in", link["received"]), ("out", link["sent"])) if rate is not None]  # fmt: skip
        lines.append(f"{link['name'] or link['kind']}  {', '.join(rates)}")
    pressure = sample["pressure"]
    if pressure is not None:
        shares = {"cpu": pressure["cpu"], "memory": pressure["memory"], "io": pressure["io"]}
        lines += [f"waits for {n}: {s:.0%}" for n, s in shares.items() if s is not None]
    lines += [f"{field}: not known: {reason}" for field, reason in sample["unknown"].items()]
    return text.append("".join(f"\n{line}" for line in lines), style="not bold")


def _figures(row: Row) -> Iterator[tuple[str, str]]:
    """Yield the columns of a device, those that its screen has no room for, too, and more."""
    sample = row.sample
    for column in COLUMNS:
        if column.head not in ("#", "ID", "DEVICE", "HISTORY", "USED"):
            yield column.head.lower(), column.cell(row, column.widths[0]).strip()
    clocks, activity, counters = sample["clocks_mhz"], sample["activity"], sample["counters"]
    if clocks is not None and clocks["memory"] is not None:
        yield "memory clock", f"{clocks['memory']:.0f} MHz"
    for name in ("sm", "memory"):
        share = activity[name] if activity is not None else None
        yield f"{name} activity", UNKNOWN if share is None else f"{share:.0%}"
    known: Mapping[str, Any] = counters or {}
    for name, count in known.items():
        yield name.replace("_", " "), UNKNOWN if count is None else f"{count:.0f}"
    for xid in sample["xids"] or ():
        yield f"xid {xid['code']}", f"{xid['count']} times"


def device_facts(row: Row) -> dict[str, str | float | None]:
    sample = row.sample
    memory = sample["memory"]
    return {
        "id": row.short, "name": row.model, "kind": row.kind, "state": row.state,
        "busy": None if sample["busy"] is None else sample["busy"] * 100,
        "temp": sample["temperature_c"], "power": sample["power_w"],
        "memory": memory["used"] / (1 << 30) if memory and memory["used"] is not None else None,
        "user": " ".join(process["user"] or "" for process in sample["processes"] or ()),
    }  # fmt: skip


# Processes and their users.

_TASKS = ("    PID", "USER", "DEVICE", "    MEMORY", "     AGE", "LEASE", "CONTAINER", "COMMAND")
_RIGHT = frozenset(_TASKS[:1] + _TASKS[3:5])


def task_table(tasks: Sequence[Task], rows: Sequence[Row], width: int) -> tuple[Text, list[Line]]:
    """Return the lines of processes, and of devices whose processes are not known.

    What a task has started stands below it.
    """
    numbers = {row.short: row.number for row in rows}
    entries: list[Entry] = []
    for task in tasks:
        branch = "  " * max(0, task.depth - 1) + "└─ " * bool(task.depth)
        cells = (
            str(task.pid or UNKNOWN), task.user or UNKNOWN,
            _ranges([numbers.get(device) for device in task.devices]),
            size(task.memory) if task.devices else "", age(task.age), task.lease or "",
            task.container or "", branch + task.title,
        )  # fmt: skip
        entries.append((task.key, cells, "" if task.devices else "dim"))
    unlisted: dict[str, list[int | None]] = {}
    for row in rows:
        if row.group == 0 and row.sample["status"] == "ok" and row.sample["processes"] is None:
            reason = row.sample["unknown"].get("processes", "no reason is given")
            unlisted.setdefault(reason, []).append(row.number)
    for reason, places in unlisted.items():
        sentence = f"of device {_ranges(places)} not known: {reason}"
        entries.append((f"? {reason}", (UNKNOWN, sentence), "dim"))
    return table(_TASKS, entries, width, _RIGHT)


def _ranges(numbers: Sequence[int | None]) -> str:
    """Return ``0-3,7``."""
    parts: list[list[int]] = []
    for number in sorted(number for number in numbers if number is not None):
        if parts and parts[-1][-1] == number - 1:
            parts[-1].append(number)
        else:
            parts.append([number])
    return ",".join(f"{p[0]}-{p[-1]}" if len(p) > 1 else str(p[0]) for p in parts)


def task_facts(task: Task) -> dict[str, str | float | None]:
    return {
        "pid": str(task.pid or ""), "user": task.user or "", "command": task.title,
        "container": task.container or "", "lease": task.lease or "", "id": " ".join(task.devices),
        "memory": None if task.memory is None else task.memory / (1 << 30), "age": task.age,
    }  # fmt: skip


def task_details(task: Task) -> Text:
    """Return all that is known of a process, its environment apart."""
    facts = {
        "command": task.title, "program": task.name, "user": task.user, "age": age(task.age),
        "parent": str(task.parent or UNKNOWN), "container": task.container, "lease": task.lease,
        **{f"on {device}": size(memory) for device, memory in task.devices.items()},
    }  # fmt: skip
    return Text("\n").join(
        Text(f"{name:12} ", style="bold").append(value or UNKNOWN, style="not bold")
        for name, value in facts.items()
    )


def user_table(
    nodes: Iterable[Node], tasks_of: Callable[[Node], Sequence[Task]]
) -> Sequence[Entry]:
    """Return what each user has on some computers, who holds the most memory first."""
    found: dict[str, list[tuple[Node, Task]]] = {}
    for node in nodes:
        for task in tasks_of(node):
            found.setdefault(task.user or UNKNOWN, []).append((node, task))
    entries = []
    for user, tasks in found.items():
        memory = sum(task.memory or 0 for _, task in tasks)
        devices = {(node.name, device) for node, task in tasks for device in task.devices}
        ages = [task.age for _, task in tasks if task.age is not None]
        cells = (user, str(len({node.name for node, _ in tasks})), str(len(devices)),
                 size(memory) if any(t.memory is not None for _, t in tasks) else UNKNOWN,
                 str(len(tasks)), age(max(ages, default=None)))  # fmt: skip
        entries.append((memory, (user, cells, "")))
    return [entry for _, entry in sorted(entries, key=lambda pair: (-pair[0], pair[1][0]))]


USERS = ("USER", "HOSTS", "DEVICES", "    MEMORY", "PROCESSES", " LONGEST")


# Alerts.


def happened(node: Node, time: float, event: Edge | EventDoc) -> Text:
    """Return the line of an alert, or of a device that came or went."""
    clock = timestamp(time)[11:19] + "Z"
    if not isinstance(event, Edge):
        about = f"{event['event']}: {event['change']}"
        device = fitted(node.short(event["device"]), 12)
        return Text().append(f"   {clock}  {device}  {about}", style="cyan")
    about = f"{event.rule.name}  {alert_sentence(event)}"
    device, is_on = fitted(node.short(event.device), 12), event.state == "on"
    style = STYLES[event.severity] if is_on else "dim"
    return Text().append(f"{MARK if is_on else ' '}  {clock}  {device}  {about}", style=style)


def thresholds(node: Node, width: int) -> Text:
    """Return each alert: its threshold, how long it must be exceeded, and what it says now."""
    entries: list[Entry] = []
    rows = node.rows()
    for name in DEFAULTS:
        rule = node.alerts.rules.get(name)
        if rule is None:
            entries.append((name, (name, "", "", "", "off in the file of settings"), "dim"))
            continue
        active = [row for row in rows if name in row.alerts]
        figures = [figure_of_rule(name, row.sample) or node.alerts.latency for row in rows]
        reasons = [figure.reason for figure in figures if figure.reason]
        now, style = "no alert", ""
        if active:
            numbers = _ranges([row.number for row in active])
            names = [row.short for row in active if row.number is None]
            now = f"{MARK} {','.join([numbers, *names] if numbers else names)}"
            is_error = any(row.alerts[name] == "error" for row in active)
            style = STYLES["error" if is_error else "warning"]
        elif reasons and len(reasons) == len(figures):
            now, style = f"{UNKNOWN} {reasons[0]}", "dim"
        bounds = rule.text(rule.above), f"{rule.seconds:g} s", rule.text(rule.clear)
        entries.append((name, (name, *bounds, now), style))
    heads = ("ALERT", "ABOVE", "FOR", "ENDS AT", "NOW  [command.watch.alerts] changes them")
    head, lines = table(heads, entries, width, ("ABOVE", "FOR", "ENDS AT"))
    return Text("\n").join([head, *(line for _, line in lines)])


# Hosts.

HOSTS = ("HOST", "ALERTS", "GPUS", "BUSY", "              MEMORY", "  TEMP", "   POWER", "PROC", "")
HOST_ORDERS = ("name", "alerts", "gpus", "busy", "memory", "temperature", "power", "processes")
"""What hosts are sorted by, in the order of the columns."""


def host(node: Node) -> tuple[Sequence[float | str], Entry]:
    """Return what a host is sorted by, and its line: sums over its accelerators, or why none is.

    Busy is the mean, the temperature that of the hottest.
    """
    rows = [row for row in node.rows() if row.group == 0]
    samples = [row.sample for row in rows]
    busy = [s["busy"] for s in samples if s["busy"] is not None]
    memories = [m for s in samples if (m := s["memory"]) and m["used"] is not None]
    used, total = sum(m["used"] or 0 for m in memories), sum(m["total"] or 0 for m in memories)
    heat = [s["temperature_c"] for s in samples if s["temperature_c"] is not None]
    power = [s["power_w"] for s in samples if s["power_w"] is not None]
    count, alerts = len(gathered(rows)), sum(len(row.alerts) for row in rows)
    share = sum(busy) / len(busy) if busy else -1.0
    rank = (node.name, -alerts, -len(rows), -share, -used, -max(heat, default=-1), -sum(power),
            -count)  # fmt: skip
    if node.lost is not None or not node.rounds:
        reason = f"no answer: {node.lost}" if node.lost is not None else "no sample yet"
        return rank, (node.name, (node.name, reason), STYLES["unresponsive"])
    cells = (
        node.name, f"{alerts} {MARK}" if alerts else "0", str(len(rows)),
        f"{share:.0%}" if busy else UNKNOWN,
        f"{size(used)} / {size(total)}" if memories else UNKNOWN,
        f"{max(heat):.0f} °C" if heat else UNKNOWN, f"{sum(power):.0f} W" if power else UNKNOWN,
        str(count), "",
    )  # fmt: skip
    return rank, (node.name, cells, STYLES["warning"] if alerts else "")


def help_text(keys: Mapping[str, str]) -> Text:
    text = Text(style="bold")
    columns = {column.head: column.about for column in COLUMNS}
    columns["! –"] = "above its threshold; not known: Enter says why"
    for title, abouts in (("Keys\n", keys), ("\nColumns\n", columns)):
        text.append(title)
        for name, about in abouts.items():
            text.append(f"{name:14} ").append(f"{about}\n", style="not bold")
    return text
