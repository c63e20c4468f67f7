"""What a class of views has beside its table of fields: made when attrs or `inspect` ask about it.

Also when a view is made by hand, compared or matched: a probe does none of that.
"""

from __future__ import annotations

from probe_core.model.report import stand_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from inspect import Signature

    from probe_core.model.device import Device
    from probe_core.model.field import Field, View


class _Required:
    """Stands for the default of an attribute that must be given."""

    def __repr__(self) -> str:
        return "REQUIRED"


REQUIRED = _Required()


class Attribute:
    """One attribute of a view: its name, its argument, its type as it is written, its default.

    A name that begins with _ is no field: it takes no part in equality and repr.
    """

    def __init__(self, name: str, annotation: str, default: object) -> None:
        self.name = name
        self.annotation = annotation
        self.argument = name.lstrip("_")
        self.is_public = self.argument == name
        self.default = default


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
        attribute = Attribute(name, annotation, stand_in(field))
        may_be_required = may_be_required and _must_be_given(field)
        if may_be_required:
            attribute.default = REQUIRED
        yield attribute


def _must_be_given(field: Field) -> bool:
    return field.required or (field.always and field.empty == "" and not field.nullable)


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


def visible(devices: Iterable[Device], runtime: str) -> tuple[Device, ...]:
    """Return the devices that a runtime surely shows, in its order; see `Report.visible`."""
    from probe_core.model.runtimes import canonical, in_runtime_order
    from probe_core.model.verdict import blocking_step_of

    name = canonical(runtime)
    usable = [
        device
        for device in devices
        if blocking_step_of(device.readiness.state, device.readiness.broken, device.readiness.steps)
        is None
    ]
    places = in_runtime_order(device.visibility.get(name) for device in usable)
    return tuple(usable[place] for place in places)
