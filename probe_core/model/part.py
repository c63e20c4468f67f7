"""Parts of the report as classes: what a class declares once is its table of fields and its view.

Below `part` a class reads like one of attrs', and is one to type checkers and to whoever asks
attrs. Yet most probes need the table alone: so no method is compiled for a class, attrs is imported
when somebody asks it, and what only views need is made when the first one is.
"""

from __future__ import annotations

from probe_core.model.field import Field, Items

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from inspect import Signature
    from typing import Any, ClassVar, NoReturn, TypeVar

    from attrs import frozen as part

    from probe_core.model.field import Value

    Made = TypeVar("Made")

__all__ = ["field", "fields_of", "part", "view"]


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
    from probe_core.model.frozen import EMPTY

    if isinstance(field.value, Items):
        return ()
    if field.single and field.view is not None:
        return field.view()
    return EMPTY if field.empty == {} else field.empty


def _attrs_fields(view: type[View]) -> object:
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


def _signature(view: type[View]) -> Signature:
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


class _Lazy:
    """A fact of a class that is made when it is first read, and kept as the class's own."""

    __slots__ = ("make", "name")

    def __init__(self, make: Callable[[type[View]], object]) -> None:
        self.make = make

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, view: View | None, owner: type[View]) -> object:
        value = self.make(owner)
        setattr(owner, self.name, value)
        return value


class View:
    """A frozen value with slots, as `attrs.frozen` makes them; its methods serve all of them."""

    __slots__ = ("__weakref__",)
    __fields__: ClassVar[dict[str, Field]] = {}
    __types__: ClassVar[dict[str, str]] = {}
    __private__: ClassVar[dict[str, object]] = {}
    __attributes__: ClassVar[Any] = _Lazy(lambda view: tuple(_attributes(view)))
    __match_args__: ClassVar[Any] = _Lazy(lambda view: tuple(_public(view)))
    __attrs_attrs__: ClassVar[Any] = _Lazy(_attrs_fields)
    __signature__: ClassVar[Any] = _Lazy(_signature)

    def __init__(self, *values: object, **named: object) -> None:
        kind, attributes = type(self).__name__, self.__attributes__
        if len(values) > len(attributes):
            raise TypeError(f"{kind}() takes {len(attributes)} arguments, not {len(values)}")
        for attribute, value in zip(attributes, values, strict=False):
            if attribute.argument in named:
                raise TypeError(f"{kind}() got multiple values for {attribute.argument!r}")
            named[attribute.argument] = value
        for attribute in attributes:
            value = named.pop(attribute.argument, attribute.default)
            if value is REQUIRED:
                raise TypeError(f"{kind}() misses the argument {attribute.argument!r}")
            object.__setattr__(self, attribute.name, value)
        if named:
            raise TypeError(f"{kind}() got an unexpected argument {next(iter(named))!r}")

    def __eq__(self, other: object) -> bool:
        if other.__class__ is not self.__class__:
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in _public(type(self)))

    def __hash__(self) -> int:
        return hash((type(self), *(getattr(self, name) for name in _public(type(self)))))

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in _public(type(self)))
        return f"{type(self).__qualname__}({shown})"

    def __setattr__(self, name: str, value: object) -> NoReturn:
        from attrs.exceptions import FrozenInstanceError

        raise FrozenInstanceError

    def __delattr__(self, name: str) -> NoReturn:
        from attrs.exceptions import FrozenInstanceError

        raise FrozenInstanceError

    def __getstate__(self) -> dict[str, object]:
        return {name: getattr(self, name) for name in self.__types__}

    def __setstate__(self, state: Mapping[str, object]) -> None:
        for name, value in state.items():
            object.__setattr__(self, name, value)


def _public(view: type[View]) -> Iterator[str]:
    """Yield the names of the attributes that are fields."""
    return (name for name in view.__types__ if name not in view.__private__)


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


# The declaration: what stands in the body of a class.


def field(value: Value, doc: str, *, part: type | None = None, **facts: Any) -> Any:
    """Declare a field: what its value must be, one sentence, and what `Field` knows beside.

    `part` is the class of the tables that it holds. Without an annotation the field is in the
    table alone, and the view has no such attribute.
    """
    if part is not None:
        facts |= {"fields": fields_of(part), "view": part}
    return Field("", value, doc, **facts)


def fields_of(part: type) -> dict[str, Field]:
    """Return the table of a part's fields, by name and in the order of the document."""
    assert issubclass(part, View)
    return part.__fields__


def _declared(cls: type) -> type:
    """Return a class with slots for what `cls` annotates, and with the table of its fields."""
    types = cls.__annotations__
    fields: dict[str, Field] = {}
    private: dict[str, object] = {}
    body: dict[str, Any] = {}
    for name, value in vars(cls).items():
        if isinstance(value, Field):
            value.name = name
            fields[name] = value
        elif name in types:
            private[name] = value
        elif name not in ("__dict__", "__weakref__"):
            body[name] = value
    if any(field.before for field in fields.values()):
        fields = _in_order(fields)
    body |= {"__slots__": tuple(types), "__annotations__": types, "__types__": types}
    body |= {"__fields__": fields, "__private__": private}
    return type(cls.__name__, (View,), body)


def _in_order(fields: dict[str, Field]) -> dict[str, Field]:
    """Return the fields in the document's order: where a class lists them, or `before` another."""
    names: list[str] = []
    for name, field in fields.items():
        names.insert(names.index(field.before) if field.before else len(names), name)
    return {name: fields[name] for name in names}


if not TYPE_CHECKING:
    part = _declared
