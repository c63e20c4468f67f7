"""Views of a document's parts, and the read-only plain data that they hold.

What a class needs only when such views are made, or when somebody asks attrs or `inspect` about it,
is made here: a probe for JSON does not import this.
"""

from __future__ import annotations

from probe_core.model.field import Field, Items
from probe_core.model.part import View

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


EMPTY = FrozenTable()
"""The empty table, as a default."""


def freeze(value: Any) -> Any:
    """Return plain JSON data with read-only tables, and tuples instead of lists."""
    if isinstance(value, FrozenTable):
        return value
    if isinstance(value, dict):
        return FrozenTable({name: freeze(item) for name, item in value.items()})
    if isinstance(value, (list, tuple)):
        return tuple(freeze(item) for item in value)
    return value


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
        one.name: attrs.field(
            default=attrs.NOTHING if one.default is REQUIRED else one.default,
            type=one.annotation,
            repr=one.is_public,
            eq=one.is_public,
        )
        for one in view.__attributes__
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


def view(kind: type[Made], table: Mapping[str, Any], **private: object) -> Made:
    """Return `kind` with the keys of `table` that it has; what a newer core added is left out.

    The view holds the document's own frozen tables, not copies. Keys that an older core did not
    write get the stand-in that the table of fields names.
    """
    assert issubclass(kind, View)
    values = private
    for attribute in kind.__attributes__:
        value = table.get(attribute.name)
        if value is None:
            values.setdefault(attribute.argument, attribute.absent)
        elif attribute.inner is None:
            values[attribute.argument] = value
        elif isinstance(value, tuple):
            values[attribute.argument] = tuple(view(attribute.inner, item) for item in value)
        else:
            values[attribute.argument] = view(attribute.inner, value)
    return kind(**values)
