"""Read a sound command line from the table of options; anything else is argparse's to name."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from probe_core.commands.options import Option

__all__ = ["plain"]


class Arguments:
    """The options as attributes, as argparse's namespace has them."""

    def __init__(self, **values: object) -> None:
        self.__dict__.update(values)


def plain(arguments: Sequence[str], options: Iterable[Option]) -> Arguments | None:
    """Return what argparse would make of `arguments`; None where it would do anything else.

    That is where an argument is no option of the table, a value is missing or begins with a dash,
    or a flag has a value.
    """
    known = {f"--{option.name}": option for option in options}
    values: dict[str, object] = {option.name: option.absent for option in known.values()}
    remaining = iter(arguments)
    for argument in remaining:
        name, equals, value = argument.partition("=")
        option = known.get(name)
        if option is None or (equals and not option.metavar):
            return None
        if option.metavar and not equals:
            value = next(remaining, "-")
            if value.startswith("-"):
                return None
        values[option.name] = value if option.metavar else True
    return Arguments(**values)
