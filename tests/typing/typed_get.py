"""A mypy plugin that refuses a misspelt key in `.get()` of a TypedDict.

mypy itself gives `table.get("knid")` the type `object`, so that a comparison with it passes: a
misspelt key is then a condition that is never true.
"""

from __future__ import annotations

from collections.abc import Callable

from mypy.plugin import MethodContext, Plugin
from mypy.types import Type, TypedDictType, get_proper_type

__all__ = ["plugin"]

_GET = "typing.Mapping.get"
"""What `.get` of a TypedDict is to mypy: the fallback type inherits it."""


class _TypedGet(Plugin):
    def get_method_hook(self, fullname: str) -> Callable[[MethodContext], Type] | None:
        return _checked_get if fullname == _GET else None


def _checked_get(context: MethodContext) -> Type:
    from mypy.plugins.default import typed_dict_get_callback

    table = get_proper_type(context.type)
    if isinstance(table, TypedDictType) and context.args and context.args[0]:
        key = getattr(context.args[0][0], "value", None)  # of a literal; a name has none
        if isinstance(key, str) and key not in table.items:
            name = table.fallback.type.fullname.rpartition(".")[2]
            context.api.fail(f'TypedDict "{name}" has no key "{key}"', context.context)
    return typed_dict_get_callback(context)


def plugin(version: str) -> type[Plugin]:
    """Return the plugin; mypy calls this with its version."""
    return _TypedGet
