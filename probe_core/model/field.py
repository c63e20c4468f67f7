"""The report's classes: what a field of one is, and the table and the view that each class has."""

from __future__ import annotations

from probe_core.model.ids import normalise_id
from probe_core.wording import INVALID, clean_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, ClassVar, NoReturn, ParamSpec

    from attrs import frozen

    from probe_core.model.document import Json

    Given = ParamSpec("Given")

    def _any(made: Callable[Given, object]) -> Callable[Given, Any]: ...


# What a value of a report must be to be believed: one small class per kind of value.
#
# `check` is for what a prober reports: it returns the value in its one written form, or raises
# `Rejected` with the reason. For documents that a core wrote `complete.holds` says whether a value
# has the JSON type that the published schema gives it. The schema and the reference pages read the
# same objects.

MAX_ITEMS = 64
"""Items of a list or table at most. The largest real ones are a CPU's flags and a KFD's links; a
prober that sends more has a mistake, and each is shown to people."""

MAX_DEPTH = 4
"""Tables in tables of free data: enough for a CPU's clusters with their cores, too few to hurt."""

_BITS_64 = range(-(1 << 63), 1 << 64)
"""Whole numbers that other languages' JSON readers hold: signed or unsigned 64 bits."""


UNBOUNDED = 1 << 63
"""No bound of its own: what 64 bits hold."""


class Rejected(ValueError):
    """A value that cannot be true; the message is the reason."""


def show(value: object) -> str:
    """Return a value fit for a sentence: its type and its beginning."""
    if isinstance(value, dict):
        return clean_text(str(value.get(INVALID, "a table")), 200)
    return clean_text(f"{type(value).__name__} {value!r}", 80)


class Value:
    """One kind of value. `noun` names it in the reference ("text", "a whole number")."""

    noun = "anything"
    single = False
    """Whether a field of this kind is one table, whose names may be declared."""
    keyed = False
    """Whether it is a table whose names anybody may choose, each value of one kind."""
    scalars: ClassVar[frozenset[type]] = frozenset()
    """JSON types, tables and lists left out, of which a document may hold each value."""

    def check(self, value: object) -> Json:
        """Return the value as it is kept; raises `Rejected` with the reason."""
        raise NotImplementedError


class Text(Value):
    """Text for people: one line, cut at 256 characters, without control characters.

    `least` is the fewest characters, `pattern` the regular expression that the schema publishes.
    """

    noun = "text"
    scalars = frozenset((str,))

    def __init__(self, least: int = 0, pattern: str | None = None) -> None:
        self.least = least
        self.pattern = pattern

    def check(self, value: object) -> str:
        """Return the text without blanks around it; empty text is none."""
        if not isinstance(value, str):
            raise Rejected(f"expected text, found {show(value)}")
        text = clean_text(value).strip()
        if not text:
            raise Rejected("it is empty")
        return text


class Word(Text):
    """Text that scripts compare: in lower case."""

    noun = "a word in lower case"

    def check(self, value: object) -> str:
        """Return the text in lower case."""
        return Text.check(self, value).lower()


class Choice(Text):
    """One of a few words."""

    def __init__(self, *choices: str) -> None:
        super().__init__()
        self.choices = choices

    def check(self, value: object) -> str:
        """Return the word, unchanged: these are compared exactly."""
        if value not in self.choices:
            raise Rejected(f"expected one of {', '.join(self.choices)}, found {show(value)}")
        return str(value)


class Flag(Value):
    """True or false."""

    noun = "true or false"
    scalars = frozenset((bool,))

    def check(self, value: object) -> bool:
        """Return the flag; 0 and 1 are numbers."""
        if not isinstance(value, bool):
            raise Rejected(f"expected true or false, found {show(value)}")
        return value


TEXT, FLAG = Text(), Flag()
"""What most fields are: one of each, as they hold nothing of a field."""


class Number(Value):
    """A finite number from `low` to `high`, both included; `whole` numbers are kept as integers."""

    scalars = frozenset((int, float))

    def __init__(self, low: float = 0, high: float = UNBOUNDED, *, whole: bool = False) -> None:
        self.low = low
        self.high = high
        self.whole = whole

    def check(self, value: object) -> int | float:
        """Return the number. True is no number here: nobody who reports a count means it so."""
        if type(value) is not int and type(value) is not float:
            raise Rejected(f"expected a number, found {show(value)}")
        if not self.low <= value <= self.high:
            # An integer of thousands of digits cannot be formatted as a float.
            text = f"{value:.6g}" if isinstance(value, float) else clean_text(str(value), 40)
            raise Rejected(f"{text} is not between {figure(self.low)} and {figure(self.high)}")
        if not self.whole or type(value) is int:
            return value
        if value != int(value):
            raise Rejected(f"expected a whole number, found {value}")
        return int(value)


def figure(bound: float) -> str:
    """Return a bound as people read it: 1,000,000; rates of 10^15 stay short."""
    return f"{int(bound):,}" if bound == int(bound) and bound < 1e14 else f"{bound:g}"


class Items(Value):
    """A list of up to `limit` items; one bad item makes the list unbelievable."""

    def __init__(self, item: Value, *, limit: int = MAX_ITEMS, least: int = 0) -> None:
        self.item = item
        self.limit = limit
        self.least = least

    def check(self, value: object) -> list[Json]:
        """Return the list, every item checked."""
        if not isinstance(value, list):
            raise Rejected(f"expected a list, found {show(value)}")
        if len(value) > self.limit:
            raise Rejected(f"more than {self.limit} entries")
        return [self.item.check(item) for item in value]


class TableOf(Value):
    """A table whose names anybody may choose, each with a value of one kind."""

    keyed = True

    def __init__(self, value: Value, *, limit: int = MAX_ITEMS) -> None:
        self.value = value
        self.limit = limit

    def check(self, value: object) -> dict[str, Json]:
        """Return the table without its nulls, every value checked."""
        if not isinstance(value, dict) or INVALID in value or len(value) > self.limit:
            raise Rejected(f"expected a small table, found {show(value)}")
        return {
            clean_text(name, 40): self.value.check(item)
            for name, item in value.items()
            if item is not None
        }


class Free(Value):
    """Any small JSON, with text that may be shown on a terminal."""

    noun = "small free JSON"
    scalars = frozenset((str, int, float, bool))

    def check(self, value: object) -> Json:
        """Return the data with safe text."""
        return free_value(value, 0)


class FreeTable(Free):
    """A table of small free JSON."""

    noun = "a table of small free JSON"
    single = True
    scalars = frozenset()

    def check(self, value: object) -> dict[str, Json]:
        """Return the table with safe text."""
        if not isinstance(value, dict):
            raise Rejected(f"expected a table, found {show(value)}")
        return free_value(value, 0)  # type: ignore[return-value]  # a table of a table


class Nested(FreeTable):
    """A table that a class of `parts` checks; most devices have none, and need not import it."""

    def __init__(self, checked_by: str, noun: str) -> None:
        self.checked_by = checked_by
        self.noun = noun

    def check(self, value: object) -> dict[str, Json]:
        """Return the table as that class does."""
        from probe_core.model import parts

        checked: dict[str, Json] = getattr(parts, self.checked_by)().check(value)
        return checked


class DeviceId(Text):
    """One strong id of a device, in its one written form."""

    noun = "an id"

    def check(self, value: object) -> str:
        """Return the id as `ids.normalise_id` writes it."""
        if not isinstance(value, str):
            raise Rejected(f"an id must be text, found {show(value)}")
        try:
            return normalise_id(value)
        except ValueError as error:
            raise Rejected(clean_text(str(error))) from None


class Ids(Items):
    """The strong ids of one device: at least one, at most one of them a PCI address."""

    def __init__(self) -> None:
        super().__init__(DeviceId(), least=1)

    def check(self, value: object) -> list[Json]:
        """Return the ids without repetitions, if each of them can be used."""
        ids, problems = self.usable(value)
        if problems:
            raise Rejected(problems[0])
        return [*ids]

    def usable(self, value: object) -> tuple[list[str], list[str]]:
        """Return the ids that can be used, without repetitions, and a reason for each other one."""
        if not isinstance(value, list) or not value:
            return [], [f"expected a list of ids, found {show(value)}"]
        ids: dict[str, None] = {}
        problems: list[str] = []
        for item in value[: self.limit]:
            try:
                ids[str(self.item.check(item))] = None
            except Rejected as error:
                problems.append(str(error))
        if len(value) > self.limit:
            problems.append(f"more than {self.limit} ids; the first were kept")
        addresses = [identity for identity in ids if identity.startswith("pci:")]
        if len(addresses) < 2:
            return list(ids), problems
        # Whichever were believed, it could make two devices of others into one.
        found = ", ".join(addresses)
        problems.append(f"one device has one PCI address, found {found}; it is joined by none")
        return [identity for identity in ids if identity not in addresses], problems


def free_value(value: object, depth: int) -> Json:
    """Return small free JSON with safe text; raises `Rejected`."""
    if isinstance(value, str):
        return clean_text(value)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        if value not in _BITS_64:
            raise Rejected("a whole number beyond 64 bits")
        return value
    if isinstance(value, float):
        if value - value != 0.0:  # neither infinite nor NaN: JSON has no word for them
            raise Rejected(f"{value} is not finite")
        return value
    if isinstance(value, dict):
        if depth >= MAX_DEPTH or INVALID in value or len(value) > MAX_ITEMS:
            raise Rejected(f"not small plain data: {show(value)}")
        return {clean_text(name, 80): free_value(item, depth + 1) for name, item in value.items()}
    if not isinstance(value, (list, tuple)):
        raise Rejected(f"not plain data: {show(value)}")
    if depth >= MAX_DEPTH or len(value) > MAX_ITEMS:
        raise Rejected(f"not small plain data: {show(value)}")
    return [free_value(item, depth + 1) for item in value]


# One field of a part of the report: everything that any reader of it needs to know, once.

FIRST = "first"
"""Merge: the most believed prober's value; a different later one goes to `others`."""

TABLE = "table"
"""Merge: name by name, each as `FIRST`."""

UNION = "union"
"""Merge: all values of all probers, the most believed prober's first."""

LINKS = "links"
"""Merge: a later prober's links count for the kinds of link that no better prober reported."""

PARTS = "parts"
"""Merge: a later prober's parts count where no better prober reported that part."""

FACTS = "facts"
"""Merge: all facts of all probers, each marked with its prober, the most believed first."""


class Field:
    """One field.

    `value`: what its value must be. `doc`: one sentence without a full stop. `name`: its key.
    `unit`: of a number (``bytes``, ``MHz``). `merge`: one of the rules above. `volatile`: whether
    it changes between two looks, so that differing is no conflict. `reported`: whether probers
    report it; the core makes the others.
    `always`: whether a report has it even where nothing is known, as `empty` (None, a list or a
    table). `nullable`: whether null may stand for it. Where neither is said, what has an `empty`
    or is `required` is always there and never null. `fields`: the fields of a nested table, or the
    name of their table in `parts`, which is imported when somebody asks for them.
    `shape`: the name of the nested part in the schema and in sentences. `required`: whether a
    document without it cannot be read, because nothing can stand for it. `added`: whether it came
    after the first form of the schema, so that older documents lack it. `internal`: whether the
    core uses it up, so that no report has it. `part`: the class of a nested table, which
    gives its fields and makes its typed views: `view`.
    `before`: the field that documents have right after it, where a class lists it elsewhere.
    """

    def __init__(
        self,
        value: Value,
        doc: str,
        # All by name; yet a star here would have each absent one looked up, in 150 fields.
        name: str = "",
        unit: str = "",
        merge: str = FIRST,
        volatile: bool = False,
        reported: bool = True,
        always: bool | None = None,
        nullable: bool | None = None,
        empty: Json = None,
        fields: dict[str, Field] | str | None = None,
        part: type | None = None,
        shape: str = "",
        required: bool = False,
        added: bool = False,
        internal: bool = False,
        before: str = "",
    ) -> None:
        if part is not None:
            fields = part.__fields__  # type: ignore[attr-defined]  # of a class below `part`
        self.name = name
        self.value = value
        self.doc = doc
        self.unit = unit
        self.merge = merge
        self.volatile = volatile
        self.reported = reported
        # What has a stand-in, or must be there, is in every report and never null.
        is_sure = required or empty is not None
        self.always = is_sure if always is None else always
        self.nullable = not is_sure if nullable is None else nullable
        self.empty = empty
        self._fields = fields
        self.nested = fields is not None
        self.single = self.nested and value.single
        self.is_part = self.single and not self.nullable
        self.is_table = value.keyed or (merge == TABLE and self.nested)
        self.shape = shape
        self.required = required
        self.added = added
        self.internal = internal
        self.view = part
        self.before = before

    @property
    def fields(self) -> dict[str, Field] | None:
        """The fields of a nested table."""
        fields = self._fields
        if isinstance(fields, str):
            import probe_core.model.parts  # not `from`: the package looks for a view of that name

            fields = self._fields = vars(probe_core.model.parts)[fields]
        return fields

    def absent(self) -> object:
        """Return what stands for the field where nothing is known; a fresh list or table."""
        if self.empty is None:
            return None
        if self.is_part and self.fields is not None:
            return {name: field.absent() for name, field in self.fields.items() if field.always}
        return self.empty.copy() if isinstance(self.empty, (dict, list)) else self.empty


def filled(table: Mapping[str, Any], fields: Mapping[str, Field]) -> dict[str, Any]:
    """Return a table with all fields that every report has; those it lacks come last."""
    full = {**table}
    for name, field in fields.items():
        if not field.always:
            continue
        value = full.get(name)
        if value is None:
            full[name] = field.absent()
        elif field.is_part:
            full[name] = filled(value, field.fields or {})
    return full


def ordered(table: Mapping[str, Any], fields: Mapping[str, Field]) -> Any:
    """Return a table in the order of its fields; what a report does not have is left out."""
    return {
        name: ordered(table[name], field.fields or {}) if field.is_part else table[name]
        for name, field in fields.items()
        if name in table and not field.internal
    }


def by_name(fields: dict[str, Field]) -> dict[str, Field]:
    """Return a table of fields, each of which knows its name."""
    for name, field in fields.items():
        field.name = name
    return fields


# Parts of the report as classes: what a class declares once is its table of fields and its view.
#
# Below `part` a class reads like one of attrs', and is one to type checkers and to whoever asks
# attrs. Yet most probes need the table alone: so no method is compiled for a class, attrs is
# imported when somebody asks it, and what only views need is made when the first one is.


class _Lazy:
    """A fact of a class that `views` makes when it is first read; the class keeps it."""

    def __init__(self, make: str) -> None:
        self.make = make

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, view: View | None, owner: type[View]) -> object:
        from probe_core.model import views

        value: object = getattr(views, self.make)(owner)
        if owner is not View:  # whose facts all classes would have
            setattr(owner, self.name, value)
        return value


class _Declared(type):
    """Makes of a class body with fields one with slots for them, and with the table of fields."""

    def __new__(cls, name: str, bases: tuple[type, ...], declared: dict[str, Any]) -> _Declared:
        """Sort what the body holds: fields, attributes of the view alone, and the rest."""
        if not bases:  # `View` itself
            return super().__new__(cls, name, bases, declared)
        types = declared.pop("__annotations__", {})
        fields: dict[str, Field] = {}
        private: dict[str, object] = {}
        body: dict[str, Any] = {}
        is_ordered = True
        for key, value in declared.items():
            if isinstance(value, Field):
                value.name = key
                fields[key] = value
                is_ordered = is_ordered and not value.before
            else:
                (private if key in types else body)[key] = value
        if not is_ordered:
            fields = _in_order(fields)
        body |= {"__slots__": tuple(types), "__annotations__": types}
        body |= {"__types__": types, "__fields__": fields, "__private__": private}
        if bases[-1] is not View:  # a host's class, which has the attributes of both
            for kind in ("__types__", "__fields__", "__private__"):
                # attrs makes a class with slots once more, of what the first one holds.
                once = declared.get(kind, {})
                body[kind] = {**getattr(bases[-1], kind, {}), **once, **body[kind]}
            body |= {name: _Lazy(lazy.make) for name, lazy in _made_lazily.items()}
        return super().__new__(cls, name, bases, body)


class View(metaclass=_Declared):
    """A frozen value with slots, as `attrs.frozen` makes them; its methods serve all of them."""

    __slots__ = ("__weakref__",)
    __fields__: ClassVar[dict[str, Field]] = {}
    __types__: ClassVar[dict[str, str]] = {}
    __private__: ClassVar[dict[str, object]] = {}
    __match_args__: ClassVar[Any] = _Lazy("match_args")
    __values__: ClassVar[Any] = _Lazy("values")
    __attrs_attrs__: ClassVar[Any] = _Lazy("attrs_fields")
    __signature__: ClassVar[Any] = _Lazy("signature")

    def __init__(self, *values: object, **named: object) -> None:
        from probe_core.model.views import arguments

        for name, value in arguments(type(self), values, named).items():
            object.__setattr__(self, name, value)

    def __eq__(self, other: object) -> bool:
        if other.__class__ is not self.__class__:
            return NotImplemented
        equal: bool = self.__values__(self) == self.__values__(other)
        return equal

    def __hash__(self) -> int:
        return hash((type(self), self.__values__(self)))

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__match_args__)
        return f"{type(self).__qualname__}({shown})"

    def __setattr__(self, *_: object) -> NoReturn:
        from attrs.exceptions import FrozenInstanceError

        raise FrozenInstanceError

    __delattr__ = __setattr__

    def __replace__(self, **changes: object) -> View:
        given = {name.lstrip("_"): getattr(self, name) for name in self.__types__}
        return type(self)(**given | changes)

    def __getstate__(self) -> dict[str, object]:
        return {name: getattr(self, name) for name in self.__types__}

    def __setstate__(self, state: Mapping[str, object]) -> None:
        for name, value in state.items():
            object.__setattr__(self, name, value)


_made_lazily = {name: lazy for name, lazy in vars(View).items() if isinstance(lazy, _Lazy)}

# The declaration: what stands in the body of a class.


def fields_of(part: type) -> dict[str, Field]:
    """Return the table of a part's fields, by name and in the order of the document."""
    assert issubclass(part, View)
    return part.__fields__


def _in_order(fields: dict[str, Field]) -> dict[str, Field]:
    """Return the fields in the document's order: where a class lists them, or `before` another."""
    names: list[str] = []
    for name, field in fields.items():
        names.insert(names.index(field.before) if field.before else len(names), name)
    return {name: fields[name] for name in names}


if TYPE_CHECKING:
    # Called as a `Field` is; what an attribute holds is what its annotation says.
    field = _any(Field)
    part = frozen
else:
    field = Field

    def part(cls: type) -> type:
        """Say to type checkers what a class below `View` is: one of attrs'."""
        return cls
