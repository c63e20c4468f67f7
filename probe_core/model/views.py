"""What a class of views has beside its table of fields: made when attrs or `inspect` ask about it.

Also when a view is made by hand, compared or matched: a probe does none of that.
"""

from __future__ import annotations

from probe_core.model.report import stand_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from inspect import Parameter, Signature

    from probe_core.model.device import Device
    from probe_core.model.field import Field, View


def signature(view: type[View]) -> Signature:
    """Return what `inspect.signature` and `help` show of a class: its arguments, in order.

    None must be given after one that need not, as in any signature. An attribute whose name begins
    with _ is no field: it takes no part in equality and repr.
    """
    from inspect import Parameter, Signature

    parameters, is_required = [], True
    for name, annotation in view.__types__.items():
        field = view.__fields__.get(name)
        default = view.__private__[name] if field is None else stand_in(field)
        is_required = is_required and field is not None and _must_be_given(field)
        parameters.append(
            Parameter(
                name.lstrip("_"),
                Parameter.POSITIONAL_OR_KEYWORD,
                default=Parameter.empty if is_required else default,
                annotation=annotation,
            )
        )
    return Signature(parameters)


def _must_be_given(field: Field) -> bool:
    return field.required or (field.always and field.empty == "" and not field.nullable)


def attrs_fields(view: type[View]) -> object:
    """Return what `attrs.fields` answers for a class, made by attrs itself."""
    import attrs

    attributes = {
        name: attrs.field(
            default=attrs.NOTHING if argument.default is argument.empty else argument.default,
            type=argument.annotation,
            repr=argument.name == name,
            eq=argument.name == name,
        )
        for name, argument in zip(view.__types__, _arguments(view), strict=True)
    }
    return attrs.fields(attrs.make_class(view.__name__, attributes, frozen=True))


def _arguments(view: type[View]) -> list[Parameter]:
    return [*view.__signature__.parameters.values()]


def arguments(
    view: type[View], values: tuple[object, ...], named: dict[str, object]
) -> dict[str, object]:
    """Return each attribute's value of a call of the class; raises `TypeError`."""
    kind, known = view.__name__, _arguments(view)
    if len(values) > len(known):
        raise TypeError(f"{kind}() takes {len(known)} arguments, not {len(values)}")
    for argument, value in zip(known, values, strict=False):
        if argument.name in named:
            raise TypeError(f"{kind}() got multiple values for {argument.name!r}")
        named[argument.name] = value
    taken = {}
    for name, argument in zip(view.__types__, known, strict=True):
        value = taken[name] = named.pop(argument.name, argument.default)
        if value is argument.empty:
            raise TypeError(f"{kind}() misses the argument {argument.name!r}")
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
