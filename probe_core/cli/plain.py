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


def plain(
    arguments: Sequence[str],
    options: Iterable[Option],
    remainder: str | None = None,
    positional: str | None = None,
) -> Arguments | None:
    """Return what argparse would make of `arguments`; None where it would do anything else.

    That is where an argument is no option of the table, a value is missing, cannot be read or
    begins with a dash, or a flag has a value. `remainder` names what takes all arguments from the
    first that is no option on, `positional` what takes one such argument; without them there is
    none such.
    """
    options = list(options)
    options_by_name = {name: option for option in options for name in option.names}
    values: dict[str, object] = {option.dest: option.absent for option in options}
    if remainder is not None:
        values[remainder] = []
    if positional is not None:
        values[positional] = None
    at = 0
    while at < len(arguments):
        argument = arguments[at]
        if remainder is not None and (argument == "--" or not argument.startswith("-")):
            values[remainder] = list(arguments[at + (argument == "--") :])
            break
        if positional is not None and argument[:1] not in ("-", ""):
            if values[positional] is not None:
                return None
            values[positional] = argument
            at += 1
            continue
        name, equals, text = argument.partition("=")
        option = options_by_name.get(name)
        if option is None or (equals and not option.metavar):
            return None
        if not option.metavar:
            values[option.dest] = True
        else:
            if not equals:
                at += 1
                text = arguments[at] if at < len(arguments) else "--"
            if not _read(option, text, typed=bool(equals), values=values):
                return None
            at -= not equals and text == "--" and option.bare is not None
        at += 1
    return Arguments(**values)


def _read(option: Option, text: str, *, typed: bool, values: dict[str, object]) -> bool:
    """Read the text of a value; return whether it is one. A ``--`` is none, and may be left out."""
    if text.startswith("-") and not typed:
        if text != "--" or option.bare is None:
            return False
        values[option.dest] = option.bare
        return True
    if option.choices and text not in option.choices:
        return False
    try:
        values[option.dest] = text if option.read is None else option.read(text)
    except ValueError:
        return False
    return True
