"""Parts of the report as classes: what a class declares once is its table of fields and its view.

Below `part` a class reads like one of attrs', and is one to type checkers and to whoever asks
attrs. Yet most probes need the table alone: so no method is compiled for a class, attrs is imported
when somebody asks it, and what only views need is made when the first one is.
"""

from __future__ import annotations

from probe_core.model.field import Field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, ClassVar, NoReturn, ParamSpec

    from attrs import frozen as part

    Given = ParamSpec("Given")

    def _any(made: Callable[Given, object]) -> Callable[Given, Any]: ...

    # Called as a `Field` is; what an attribute holds is what its annotation says.
    field = _any(Field)

__all__ = ["View", "field", "fields_of", "part"]


class _Lazy:
    """A fact of a class that `views` makes when it is first read; the class keeps it."""

    __slots__ = ("make", "name")

    def __init__(self, make: str) -> None:
        self.make = make

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, view: View | None, owner: type[View]) -> object:
        from probe_core.model import views

        value: object = getattr(views, self.make)(owner)
        setattr(owner, self.name, value)
        return value


class View:
    """A frozen value with slots, as `attrs.frozen` makes them; its methods serve all of them."""

    __slots__ = ("__weakref__",)
    __fields__: ClassVar[dict[str, Field]] = {}
    __types__: ClassVar[dict[str, str]] = {}
    __private__: ClassVar[dict[str, object]] = {}
    __attributes__: ClassVar[Any] = _Lazy("attributes")
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

    def __setattr__(self, name: str, value: object) -> NoReturn:
        from attrs.exceptions import FrozenInstanceError

        raise FrozenInstanceError

    def __delattr__(self, name: str) -> NoReturn:
        from attrs.exceptions import FrozenInstanceError

        raise FrozenInstanceError

    def __replace__(self, **changes: object) -> View:
        given = {one.argument: getattr(self, one.name) for one in self.__attributes__}
        return type(self)(**given | changes)

    def __getstate__(self) -> dict[str, object]:
        return {name: getattr(self, name) for name in self.__types__}

    def __setstate__(self, state: Mapping[str, object]) -> None:
        for name, value in state.items():
            object.__setattr__(self, name, value)


# The declaration: what stands in the body of a class.


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
    field = Field
