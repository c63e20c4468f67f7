"""The screen of `probe watch`, on Textual: devices, processes, alerts and hosts, each a tab.

It draws what nodes hold (`node`), once a round; where the rounds come from is no matter of its own
(`screen`). Names, users and commands are strangers' text and are never read as markup.
"""

from __future__ import annotations

import os
from time import monotonic

from rich.cells import cell_len
from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.filter import NoColor
from textual.screen import ModalScreen
from textual.widgets import Footer, Input, Static, TabbedContent, TabPane, Tabs

from probe_core.commands import leases_now, within
from probe_watch import panels, processes
from probe_watch.columns import device_table
from probe_watch.grid import Grid, table
from probe_watch.lines import timestamp
from probe_watch.node import ORDERS, Node, Row, summary
from probe_watch.processes import READ_S, Handle, Refused, Table, Task
from probe_watch.query import QueryError, matches

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, ClassVar

    from textual.driver import Driver
    from textual.filter import LineFilter

    from probe_core.model.document import LeaseDoc
    from probe_watch.rounds import Happening

MOST_TABS = 12
"""Hosts that have a tab each; of more the table of hosts is the way to one."""

NOTE_S = 30.0
"""Seconds that a note is shown: enough to read it, and a hang that goes on is a line above."""

_LEASES_S = 10.0
"""Seconds between two looks at who holds leases, which reads the descriptors of all processes."""

_TOGETHER_S = 0.5
"""Seconds in which the rounds of several hosts are drawn once: 200 send 33 a second."""

ASCII = str.maketrans("▁▂▃▄▅▆▇█▏▎▍▌▋▊▉─━╸╺╭╮╰╯│°", "_.,-=+*########----++++|o")
"""What is drawn to what stands for it on a terminal in ASCII."""

SIGNAL = Binding.Group("signal", compact=True)
FRAMES = Binding.Group("frames, speed", compact=True)
"""Keys that the footer names together."""

_SHORT = 16
"""Rows of a terminal below which the devices have all of it."""

_LEAST_TITLE = 12
"""Columns of the host's name and its devices at least."""

_TALL = 30
"""Rows of a terminal from which the history of the chosen device has room."""


class WatchApp(App[int]):
    """The screen. `nodes` are what it shows; `select` chooses one of several."""

    TITLE = "probe watch"
    CSS = """
    #filter { display: none; border: none; height: 1; }
    TabbedContent { height: 1fr; } TabPane { padding: 0; height: 100%; }
    ContentSwitcher { height: 1fr; } ContentTabs { height: 2; }
    #devices-table { height: auto; max-height: 60%; }
    .line { height: 1; } Static { text-wrap: nowrap; }
    #note { height: auto; min-height: 1; max-height: 3; text-wrap: wrap; }
    #graphs { height: 6; margin-top: 1; }
    #used { margin-top: 1; } #thresholds { height: auto; margin-top: 1; }
    Dialog { align: center middle; }
    Dialog Static { text-wrap: wrap; }
    Dialog > VerticalScroll { width: 90%; max-width: 110; height: auto; max-height: 80%;
                              border: round $primary; padding: 0 1; background: $surface; }
    """
    BINDINGS: ClassVar[list[Any]] = [
        Binding("q", "leave(0)", "quit"),
        Binding("1", "tab(1)", "tabs", key_display="1-5"),
        *(Binding(str(n), f"tab({n})", show=False) for n in range(2, 6)),
        # Signals on our own terminal; keys where Textual's own driver has it.
        Binding("ctrl+c", "leave(130)", show=False, priority=True),
        Binding("ctrl+z", "suspend_process", show=False, priority=True),
        Binding("space,p", "pause", "pause", key_display="space"),
        Binding("s,period", "sort(1)", "sort", key_display="s"),
        Binding("comma", "sort(-1)", "sort", show=False),
        Binding("r", "reverse", "reverse", show=False),
        Binding("t", "tree", "tree", show=False),
        Binding("slash", "filter", "filter", key_display="/"),
        Binding("escape", "unfilter", "no filter", key_display="esc"),
        Binding("I", "ask('interrupt')", "interrupt", key_display="I", group=SIGNAL),
        Binding("T", "ask('terminate')", "terminate", key_display="T", group=SIGNAL),
        Binding("K", "ask('kill')", "kill", key_display="K", group=SIGNAL),
        Binding("d", "dark", "dark/light", show=False),
        Binding("question_mark,h", "help", "help", key_display="?"),
        Binding("left_square_bracket", "step(-1)", "back", key_display="[", group=FRAMES),
        Binding("right_square_bracket", "step(1)", "on", key_display="]", group=FRAMES),
        Binding("j", "step(-10)", "back", group=FRAMES),
        Binding("k", "step(10)", "on", group=FRAMES),
        Binding("plus", "speed(2)", "faster", key_display="+", group=FRAMES),
        Binding("minus", "speed(0.5)", "slower", key_display="-", group=FRAMES),
    ]

    def __init__(
        self,
        nodes: Sequence[Node],
        interval: float,
        *,
        colour: bool = True,
        encodable: Callable[[str], str] = str,
        theme: str | None = None,
        readonly: bool = False,
        table: Table | None = None,
        driver: type[Driver] | None = None,
    ) -> None:
        # Without colours those of the terminal are left as they are, on whatever ground it has.
        super().__init__(driver_class=driver, ansi_color=None if colour else True)
        self.no_color = not colour
        self.nodes = {node.name: node for node in nodes}
        self.node = nodes[0]
        self.interval = interval
        self.encodable = encodable
        self.readonly = readonly
        self.paused = False
        self.replay: Any = None
        self._theme_wanted = theme
        self._orders = {"devices": "state", "processes": "memory", "hosts": "name"}
        self._falling = dict.fromkeys(self._orders, False)
        self._tree = True
        self._query = ""
        self._note = (0.0, "")
        self._table = table or Table()
        self._tasks: dict[str, Task] = {}
        self._leases: Sequence[LeaseDoc] = ()
        self._leases_at = -_LEASES_S
        self._is_ready = False
        self._is_stale = False
        self.started: Callable[[], object] = int

    # What the screen is made of.

    def compose(self) -> ComposeResult:
        yield Static(id="title", classes="line")
        if 1 < len(self.nodes) <= MOST_TABS:
            yield Tabs(*(Text(name) for name in self.nodes), id="chosen")
        with Views(id="views"):
            with TabPane("Devices", id="devices"):
                yield Grid("devices-table")
                yield Static(id="graphs")
                yield Grid("used")
            with TabPane("Processes", id="processes"):
                yield Grid("processes-table")
            with TabPane("Users", id="users"):
                yield Grid("users-table")
            with TabPane("Alerts", id="alerts"):
                yield Grid("alerts-table")
                yield Static(id="thresholds")
            if "" not in self.nodes or len(self.nodes) > 1:
                with TabPane("Hosts", id="hosts"):
                    yield Grid("hosts-table")
        yield Filter(placeholder="words, or temp>80 busy<10 user~ann memory>=20", id="filter")
        yield Static(id="note")
        yield Footer(show_command_palette=False)

    def on_mount(self) -> None:
        """Begin; the table of the first tab gets the keys when that is open."""
        if self._theme_wanted is not None and self._theme_wanted in self.available_themes:
            self.theme = self._theme_wanted
        self._is_ready = True
        self.show()
        self.started()

    def on_unmount(self) -> None:
        self._is_ready = False

    def exit(self, *arguments: Any, **named: Any) -> None:
        """End, and draw no more: a round or a key may come while the widgets go."""
        self._is_ready = False
        super().exit(*arguments, **named)

    def get_line_filters(self) -> Sequence[LineFilter]:
        """Return what lines pass through: without colours, what takes all of them away."""
        filters = list(super().get_line_filters())
        return [*filters, NoColor()] if self.no_color else filters

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool:
        """Return whether an action has a sense now; the footer shows no other."""
        if isinstance(self.focused, Input):
            return action in ("leave", "suspend_process", "unfilter")
        if action == "unfilter":
            return self._query != ""
        return self.replay is not None or action not in ("step", "speed")

    def _grid(self, name: str) -> Grid:
        return self.query_one(f"#{name}", Grid)

    def _write(self, name: str, text: Text) -> None:
        """Show a text; what is there already is not sent to the terminal again."""
        widget = self.query_one(f"#{name}", Static)
        if widget.content != text:
            widget.update(text, layout=name in ("thresholds", "note"))  # others have one height

    @property
    def tab(self) -> str:
        return self.query_one("#views", TabbedContent).active

    @property
    def _room(self) -> int:
        return self.size.width - 1  # the last is the scroll bar's

    # What comes from outside.

    def take(self, node: Node, happening: Happening) -> None:
        """Show a round; a paused screen goes on collecting."""
        node.take(happening, shown=not self.paused)
        if happening.notes:
            self.note(happening.notes[-1])
        if not self._is_ready or self.paused:
            return
        if node is not self.node and self.tab != "hosts":
            return
        if len(self.nodes) == 1:
            self.show()
        elif not self._is_stale:  # hosts come one by one: the next few together
            self._is_stale = True
            self.set_timer(_TOGETHER_S, self.show)

    def note(self, text: str) -> None:
        self._note = (monotonic(), text)

    def refresh_all(self) -> None:
        """Draw all again: the terminal missed something."""
        if self._is_ready:
            self.screen.refresh()

    # What is shown.

    def show(self) -> None:
        self._is_stale = False
        if not self._is_ready:
            return
        with self.batch_update():
            getattr(self, f"_show_{self.tab or 'devices'}")()
            self._write("title", self._title())
            since, text = self._note
            note = text if monotonic() - since < NOTE_S else ""
            reason = f"{self.node.name}: {self.node.lost}" if self.node.lost else ""
            self._write("note", Text(reason or note, style="yellow"))
        if self._table.unread:
            self.run_worker(self._table.read_commands())

    def _title(self) -> Text:
        text = Text()
        clock = f"   {timestamp(self.node.time)[11:19]}Z" if self.node.rounds else ""
        order = self._orders.get(self.tab)
        reverse = " reversed" if self._falling.get(self.tab) else ""
        by = f"   by {order}{reverse}" if order else ""
        query = f"   /{self._query}" if self._query else ""
        text.append(f"   every {self.interval:g} s{clock}{by}{query}", style="dim")
        if self.replay is not None:
            text.append(f"   {self.replay.where}", style="cyan")
        if self.paused:
            text.append("   ").append("paused", style="bold reverse")
        host = f"{self.node.name}  " if self.node.name else ""
        subject = host + (summary(self.node.rows()) if self.node.rounds else "no sample yet")
        if self.tab == "hosts":
            count = sum(node.lost is None and node.rounds > 0 for node in self.nodes.values())
            subject = f"{count} of {len(self.nodes)} hosts report"
        models = Text(subject, style="bold", end="")
        # Of a node with many models the end is cut, and not what the keys have changed.
        models.truncate(max(_LEAST_TITLE, self.size.width - text.cell_len), overflow="ellipsis")
        for word in self.node.about if self.tab != "hosts" else ():
            if models.cell_len + text.cell_len + 3 + cell_len(word) <= self.size.width:
                text.append(f"   {word}", style="dim")
        return Text().append_text(models).append_text(text)

    def _rows(self) -> list[Row]:
        rows = self.node.rows(self._orders["devices"], falling=self._falling["devices"])
        return [row for row in rows if matches(self._query, panels.device_facts(row))]

    def _show_devices(self) -> None:
        rows, grid = self._rows(), self._grid("devices-table")
        grid.show(*device_table(rows, self._room))
        row = next((row for row in rows if row.sample["device"] == grid.key), None)
        has_room = row is not None and self.size.height >= _TALL
        self.query_one("#graphs").display = has_room
        if row is not None and has_room:
            self._write("graphs", panels.graphs(row, self.size.width))
        head, lines = panels.task_table(self._processes(tree=False), rows, self._room)
        used = self._grid("used")
        used.display = self.size.height >= _SHORT
        room = self.query_one("#views").size.height - 2 - 7 * has_room  # the tabs, the graphs
        # Few processes leave room, which is the devices'.
        least = len(lines) + 2 if used.display else 0
        grid.styles.max_height = max(room * 6 // 10, room - least, 2)
        used.show(head, lines)

    def _processes(self, *, tree: bool) -> list[Task]:
        """Return the processes of the chosen node that the filter lets through, in their order."""
        tasks = self._tasks_of(self.node)
        order = processes.ORDERS[self._orders["processes"]]
        tasks.sort(key=order, reverse=self._falling["processes"])  # type: ignore[arg-type]
        tasks = [task for task in tasks if matches(self._query, panels.task_facts(task))]
        shown = self._table.tree(tasks) if tree else tasks
        self._tasks = {task.key: task for task in shown}
        return shown

    def _is_here(self, node: Node) -> bool:
        """Return whether a node is this computer, and its rounds are of now: /proc is theirs."""
        return node.name == "" and self.replay is None

    def _tasks_of(self, node: Node) -> list[Task]:
        if self._is_here(node):
            return self._table.tasks(node.rows(), self._leases_now())
        return processes.gathered(node.rows())

    def _leases_now(self) -> Sequence[LeaseDoc]:
        if monotonic() - self._leases_at >= _LEASES_S:
            self._leases_at = monotonic()
            self.run_worker(self._look_at_leases(), exclusive=True, group="leases")
        return self._leases

    async def _look_at_leases(self) -> None:
        try:
            self._leases = await within(lambda: leases_now(os.environ), _LEASES_S)
        except (OSError, TimeoutError):
            self._leases = ()

    def _show_processes(self) -> None:
        tasks = self._processes(tree=self._tree)
        self._grid("processes-table").show(*panels.task_table(tasks, self.node.rows(), self._room))

    def _show_users(self) -> None:
        """Show who uses what, on all hosts."""
        entries = panels.user_table(self.nodes.values(), self._tasks_of)
        entries = [e for e in entries if matches(self._query, {"user": e[0], "name": e[0]})]
        self._grid("users-table").show(*table(panels.USERS, entries, self._room, panels.USERS[1:]))

    def _show_alerts(self) -> None:
        lines = [
            (f"{time} {number}", panels.happened(self.node, time, event))
            for number, (time, event) in enumerate(self.node.recent)
        ]
        self._grid("alerts-table").show(Text("   TIME       DEVICE        WHAT"), lines)
        self._write("thresholds", panels.thresholds(self.node, self.size.width))

    def _show_hosts(self) -> None:
        """Show one line a host: what it has, and how it is."""
        place = panels.HOST_ORDERS.index(self._orders["hosts"])
        hosts = sorted(map(panels.host, self.nodes.values()), key=lambda entry: entry[0][place],
                       reverse=self._falling["hosts"])  # fmt: skip
        entries = [
            entry
            for _, entry in hosts
            if matches(self._query, {"host": entry[0], "name": entry[0]})
        ]
        self._grid("hosts-table").show(
            *table(panels.HOSTS, entries, self._room, panels.HOSTS[1:-1])
        )

    # What the keys do.

    def on_tabbed_content_tab_activated(self, event: TabbedContent.TabActivated) -> None:
        """Draw a tab that was opened, and put the keys on its table."""
        # Not of one that was left meanwhile.
        if self._is_ready and event.pane.id == self.tab:
            self._grid(f"{event.pane.id}-table").focus(scroll_visible=False)
            self.show()

    def on_tabs_tab_activated(self, event: Tabs.TabActivated) -> None:
        if event.tabs.id == "chosen" and event.tab is not None:
            self.select(event.tab.label.plain)

    def on_data_table_row_highlighted(self, event: Grid.RowHighlighted) -> None:
        if self._is_ready and event.data_table.id == "devices-table" and self.tab == "devices":
            self.show()

    def on_data_table_row_selected(self, event: Grid.RowSelected) -> None:
        if event.data_table.id == "hosts-table":
            self.query_one("#filter", Input).value = ""  # it was for hosts
            self.select(event.row_key.value or "")
            self.action_tab(1)
        else:
            self.action_details()

    def on_resize(self) -> None:
        self.call_after_refresh(self.show)

    def select(self, name: str) -> None:
        if name in self.nodes:
            self.node = self.nodes[name]
            self.show()

    def action_leave(self, status: int) -> None:
        self.exit(status)

    def action_tab(self, number: int) -> None:
        views = self.query_one("#views", TabbedContent)
        panes = [pane.id for pane in views.query(TabPane)]
        if number <= len(panes):
            # Later, for one that is typed while Textual opens the first tab.
            self.call_after_refresh(setattr, views, "active", panes[number - 1] or "")

    def action_pause(self) -> None:
        self.paused = not self.paused
        if self.replay is not None:
            self.replay.hurry(1.0)  # it waits for the end of the pause
        elif not self.paused:
            for node in self.nodes.values():
                node.catch_up()
        self.show()

    def _sorted(self) -> str:
        """Return what the keys sort: the processes below the devices where those are focused."""
        return "processes" if self._grid("used").has_focus else self.tab

    def action_sort(self, step: int) -> None:
        known = {"devices": list(ORDERS), "processes": list(processes.ORDERS),
                 "hosts": list(panels.HOST_ORDERS)}.get(self._sorted())  # fmt: skip
        if known:
            at = known.index(self._orders[self._sorted()])
            self._orders[self._sorted()] = known[(at + step) % len(known)]
            self.show()

    def action_reverse(self) -> None:
        if self._sorted() in self._falling:
            self._falling[self._sorted()] = not self._falling[self._sorted()]
            self.show()

    def action_tree(self) -> None:
        self._tree = not self._tree
        self.show()

    def action_dark(self) -> None:
        self.theme = "textual-light" if self.current_theme.dark else "textual-dark"

    def action_filter(self) -> None:
        box = self.query_one("#filter", Input)
        box.display = True
        self.screen.set_focus(box)  # at once: the next key may be here already

    def action_unfilter(self) -> None:
        box = self.query_one("#filter", Input)
        box.value = ""
        box.post_message(Input.Submitted(box, ""))

    def on_input_changed(self, event: Input.Changed) -> None:
        try:
            matches(event.value, {})
        except QueryError as error:
            self.note(str(error))
        else:
            self._query = event.value
        self.show()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Go back to the table; an empty filter is none."""
        event.input.display = False
        self._grid(f"{self.tab}-table").focus()
        self.refresh_bindings()

    def action_step(self, count: int) -> None:
        if self.replay is not None:
            self.replay.step(count)

    def action_speed(self, factor: float) -> None:
        if self.replay is not None:
            self.replay.hurry(factor)
            self.show()

    def action_help(self) -> None:
        self.push_screen(Dialog("help", panels.help_text(KEYS)))

    def _chosen(self) -> Task | None:
        """Return the process under the cursor; None where the cursor is on none."""
        name = "processes-table" if self.tab == "processes" else "used"
        grid = self._grid(name)
        is_there = self.tab == "processes" or (self.tab == "devices" and grid.has_focus)
        return self._tasks.get(grid.key) if is_there else None

    def action_details(self) -> None:
        """Show all that is known of the process, the device or the alert under the cursor."""
        task = self._chosen()
        if task is not None:
            self.run_worker(self._process_details(task))
        elif self.tab == "devices":
            key = self._grid("devices-table").key
            row = next((row for row in self.node.rows() if row.sample["device"] == key), None)
            if row is not None:
                self.push_screen(Dialog(row.short, panels.device_details(row)))
        elif self.tab == "alerts" and (line := self._grid("alerts-table").line) is not None:
            self.push_screen(Dialog("alert", line))

    async def _process_details(self, task: Task) -> None:
        text = panels.task_details(task)
        text.append("\n\nEnvironment\n", style="bold")
        try:
            if not self._is_here(self.node):
                raise Refused("it is that of another computer, or of another time")
            text.append("\n".join(await within(lambda: processes.environment(task), READ_S)))
        except Refused as error:
            text.append(f"not shown: {error}")
        except TimeoutError:
            text.append("not shown: the process does not let it be read, as when it hangs")
        self.push_screen(Dialog(f"process {task.pid}", text))

    def action_ask(self, word: str) -> None:
        task = self._chosen()
        try:
            if self.readonly:
                raise Refused("--readonly is given")
            if task is None:
                raise Refused("choose a process first: tab Processes, or Tab in Devices")
            if not self._is_here(self.node):
                raise Refused("it is no process of this computer")
            # Held from now on: while the question is read the number may become another's.
            handle = Handle(task)
        except Refused as error:
            about = f"process {task.pid} is not signalled: " if task else ""
            self.note(f"{word}: {about}{error}")
            self.show()
            return

        def answered(is_confirmed: bool | None) -> None:
            try:
                if is_confirmed:
                    handle.send(processes.SIGNALS[word])
                    self.note(f"{word}: sent to process {task.pid} ({task.name})")
            except Refused as error:
                self.note(f"{word}: process {task.pid}: {error}")
            finally:
                handle.close()
            self.show()

        question = Text(f"{word.capitalize()} process {task.pid}?\n\n", style="bold")
        question.append(panels.task_details(task))
        question.append(f"\n\ny  {word} this one process    n, Escape  leave it", style="bold")
        self.push_screen(Dialog(word, question, asks=True), answered)


class Filter(Input):
    """The line of the filter."""

    BINDINGS: ClassVar[list[Any]] = [
        Binding("enter", "submit", "keep the filter", key_display="enter"),
    ]


class Views(TabbedContent):
    """Tabs that are opened by keys alone.

    Textual opens that of the focused widget, too, and says so late: a key may have opened another.
    """

    def on_tab_pane_focused(self, event: TabPane.Focused) -> None:
        event.prevent_default()


class Dialog(ModalScreen[bool]):
    """A text above the screen, until a key; with `asks` the answer is whether that was y."""

    BINDINGS: ClassVar[list[Any]] = [
        Binding("escape,q,n,enter", "answer(False)", "close"),
        Binding("y", "answer(True)", "yes", show=False),
    ]

    def __init__(self, title: str, text: Text, *, asks: bool = False) -> None:
        super().__init__()
        self._title = title
        self._asks = asks
        self.text = text

    def compose(self) -> ComposeResult:
        box = VerticalScroll(Static(self.text))
        box.border_title = Text(self._title)
        yield box

    def action_answer(self, is_confirmed: bool) -> None:
        """Close with the answer; y is one only where something was asked."""
        if self._asks or not is_confirmed:
            self.dismiss(is_confirmed)


KEYS = {
    "1 to 5": "devices, processes, users, alerts, hosts",
    "Tab, ↑ ↓": "the next table; the next line",
    "Enter": "details of a device, an alert, or a process with its environment; a host",
    "space": "pause the screen; samples and alerts go on",
    "s . ,  r": "sort by the next or the last figure; reverse",
    "t": "processes as a tree, or as a list",
    "/": "filter: words, or temp>80 busy<10 user~ann memory>=20; Escape takes it away",
    "I T K": "interrupt, terminate, kill the chosen process; asked first",
    "d": "dark or light; Ctrl-P has more themes",
    "[ ]  j k  + -": "of a recording: a frame, ten frames, faster and slower",
    "q": "quit; so does Ctrl-C",
}
"""Key to what it does."""
