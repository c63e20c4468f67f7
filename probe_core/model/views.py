"""Views of a document's parts, and the read-only plain data that they hold.

What a class needs only when such views are made, or when somebody asks attrs or `inspect` about it,
is made here: a probe for JSON does not import this.
"""

from __future__ import annotations

import marshal

from probe_core.model.field import Field, Items, View

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from inspect import Signature
    from typing import Any, NoReturn, TypeVar

    Made = TypeVar("Made")
    Dict = dict[str, Any]
else:
    Dict = dict

__all__ = [
    "EMPTY",
    "FrozenTable",
    "arguments",
    "attributes",
    "attrs_fields",
    "freeze",
    "match_args",
    "plain_bytes",
    "signature",
    "thaw",
    "values",
    "view",
]


class FrozenTable(Dict):
    """A table that cannot be changed. Equal to a dict with the same items, and hashable.

    A dict, not a `types.MappingProxyType`: that one can neither be pickled nor deep-copied, so a
    report could not be sent to another process (multiprocessing, Ray).
    """

    __slots__ = ()

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))

    def __repr__(self) -> str:
        return dict.__repr__(self)

    def __reduce__(self) -> tuple[type[FrozenTable], tuple[dict[str, Any]]]:
        return FrozenTable, (dict(self),)

    def __copy__(self) -> FrozenTable:
        return self

    def __deepcopy__(self, memo: object) -> FrozenTable:
        return self

    def copy(self) -> FrozenTable:
        """Return itself: nothing in it can change."""
        return self

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise TypeError("a report cannot be changed; to_json() gives a document that can")

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse


_NESTED = (dict, list, tuple)
_PLAIN_FORMAT = 4
"""Of marshal: twice as fast as the second one, which has no references."""

ALIKE_AT = 3
"""How deep the parts lie that are alike: a report (0) has devices (1) that differ each (2), and
eight of one kind have the same peaks, sources and clocks (3). Looking elsewhere, too, took longer
than it saved."""

EMPTY = FrozenTable()
"""The empty table, as a default."""


def freeze(value: Any) -> Any:
    """Return plain JSON data with read-only tables, and tuples instead of lists.

    Equal parts of a report's devices become one: eight GPUs of one kind have each peak, link and
    step of readiness eight times.
    """
    return _frozen(value, {}, 0) if isinstance(value, _NESTED) else value


def _frozen(value: Any, known: dict[bytes, Any], depth: int) -> Any:
    """Return a table or list frozen; `known` has the parts that were met, by their data."""
    if isinstance(value, FrozenTable):
        return value
    key = plain_bytes(value) if depth == ALIKE_AT else None
    if key is None:
        return _made(value, known, depth + 1)
    found = known.get(key)
    if found is None:
        found = known[key] = _made(value, known, depth + 1)
    return found


def _made(value: Any, known: dict[bytes, Any], depth: int) -> Any:
    if isinstance(value, dict):
        return FrozenTable(
            {
                name: _frozen(item, known, depth) if isinstance(item, _NESTED) else item
                for name, item in value.items()
            }
        )
    return tuple(
        [_frozen(item, known, depth) if isinstance(item, _NESTED) else item for item in value]
    )


def plain_bytes(value: Any) -> bytes | None:
    """Return bytes that are the same for equal data of the same types alone; None without any.

    True is not 1 and 1.0 is not 1 here, unlike in a comparison: which of them stands in a report
    matters. Equal data may have other bytes where somebody else holds parts of one of them, as a
    view of an earlier report does: then it is looked at once more.
    """
    try:
        return marshal.dumps(value, _PLAIN_FORMAT)
    except ValueError:  # it holds what is frozen already, or no JSON, which is checked elsewhere
        return None


def thaw(value: Any) -> Any:
    """Return frozen data as plain JSON data that may be changed."""
    if isinstance(value, dict):
        return {name: thaw(item) for name, item in value.items()}
    if isinstance(value, tuple):
        return [thaw(item) for item in value]
    return value


# What a class of views has beside its table of fields.


class _Required:
    """Stands for the default of an attribute that must be given."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "REQUIRED"


REQUIRED = _Required()


class Attribute:
    """One attribute of a view: its name, its argument, its type as it is written, its default.

    `absent` is its value where a document does not have it. `inner` is the class of the views that
    it holds. A name that begins with _ is no field: it takes no part in equality and repr.
    """

    __slots__ = ("absent", "annotation", "argument", "default", "inner", "is_public", "name")

    def __init__(self, name: str, annotation: str, default: object) -> None:
        self.name = name
        self.annotation = annotation
        self.argument = name.lstrip("_")
        self.is_public = self.argument == name
        self.inner: type[View] | None = None
        self.default = self.absent = default


def attributes(view: type[View]) -> tuple[Attribute, ...]:
    """Return the attributes of a class of views."""
    return tuple(_attributes(view))


def _attributes(view: type[View]) -> Iterator[Attribute]:
    """Yield the attributes; none must be given after one that need not, as in any signature."""
    may_be_required = True
    for name, annotation in view.__types__.items():
        field = view.__fields__.get(name)
        if field is None:
            yield Attribute(name, annotation, view.__private__[name])
            continue
        attribute = Attribute(name, annotation, _default(field))
        attribute.inner = field.view
        may_be_required = may_be_required and _must_be_given(field)
        if may_be_required:
            attribute.default = REQUIRED
        yield attribute


def _must_be_given(field: Field) -> bool:
    return field.required or (field.always and field.empty == "" and not field.nullable)


def _default(field: Field) -> object:
    if isinstance(field.value, Items):
        return ()
    if field.single and field.view is not None:
        return field.view()
    return EMPTY if field.empty == {} else field.empty


def attrs_fields(view: type[View]) -> object:
    """Return what `attrs.fields` answers for a class, made by attrs itself."""
    import attrs

    attributes = {
        attribute.name: attrs.field(
            default=attrs.NOTHING if attribute.default is REQUIRED else attribute.default,
            type=attribute.annotation,
            repr=attribute.is_public,
            eq=attribute.is_public,
        )
        for attribute in view.__attributes__
    }
    return attrs.fields(attrs.make_class(view.__name__, attributes, frozen=True))


def signature(view: type[View]) -> Signature:
    """Return what `inspect.signature` and `help` show of a class."""
    from inspect import Parameter, Signature

    return Signature(
        [
            Parameter(
                one.argument,
                Parameter.POSITIONAL_OR_KEYWORD,
                default=Parameter.empty if one.default is REQUIRED else one.default,
                annotation=one.annotation,
            )
            for one in view.__attributes__
        ]
    )


def arguments(
    view: type[View], values: tuple[object, ...], named: dict[str, object]
) -> dict[str, object]:
    """Return each attribute's value of a call of the class; raises `TypeError`."""
    kind, attributes = view.__name__, view.__attributes__
    if len(values) > len(attributes):
        raise TypeError(f"{kind}() takes {len(attributes)} arguments, not {len(values)}")
    for attribute, value in zip(attributes, values, strict=False):
        if attribute.argument in named:
            raise TypeError(f"{kind}() got multiple values for {attribute.argument!r}")
        named[attribute.argument] = value
    taken = {}
    for attribute in attributes:
        value = taken[attribute.name] = named.pop(attribute.argument, attribute.default)
        if value is REQUIRED:
            raise TypeError(f"{kind}() misses the argument {attribute.argument!r}")
    if named:
        raise TypeError(f"{kind}() got an unexpected argument {next(iter(named))!r}")
    return taken


def match_args(view: type[View]) -> tuple[str, ...]:
    """Return what `case Device(identity, kind)` binds, in order."""
    return tuple(name for name in view.__types__ if name not in view.__private__)


def values(view: type[View]) -> Callable[[View], tuple[object, ...]]:
    """Return what reads all fields of a view at once: equality and hashes compare these."""
    from operator import attrgetter

    return attrgetter(*view.__match_args__)


def view(
    kind: type[Made],
    table: Mapping[str, Any],
    made: dict[tuple[int, type], Any] | None = None,
    **private: object,
) -> Made:
    """Return `kind` with the keys of `table` that it has; what a newer core added is left out.

    The view holds the document's own frozen tables, not copies. Keys that an older core did not
    write get the stand-in that the table of fields names. A part that stands in several places has
    one view: `made` has them, by the number of the table or tuple and the class.
    """
    assert issubclass(kind, View)
    made = {} if made is None else made
    new = object.__new__(kind)
    for attribute in kind.__attributes__:
        value = table.get(attribute.name)
        if value is None:
            value = private.get(attribute.argument, attribute.absent)
        elif attribute.inner is not None:
            value = _inner(attribute.inner, value, made)
        object.__setattr__(new, attribute.name, value)
    return new


def _inner(kind: type[View], part: Any, made: dict[tuple[int, type], Any]) -> Any:
    """Return the view of a table, or the views of a tuple of tables."""
    key = id(part), kind
    found = made.get(key)
    if found is None:
        found = made[key] = (
            tuple([_inner(kind, item, made) for item in part])
            if isinstance(part, tuple)
            else view(kind, part, made)
        )
    return found
