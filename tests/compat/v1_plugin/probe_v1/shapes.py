"""Every shape that a plugin and its answer could have in version 1."""

from probe_core.api import Unavailable, finding, hookimpl, not_applicable


class AsList:
    @hookimpl
    def probe_devices(self, request):
        return [{"ids": ["v1:list"], "kind": "accelerator"}]


class _Object:
    @hookimpl
    def probe_devices(self, request):
        return ({"ids": ["v1:object"], "kind": "accelerator"},)


as_object = _Object()


class NoArgument:
    @hookimpl
    def probe_devices(self):
        return [{"ids": ["v1:no-argument"], "kind": "accelerator"}]


class WithFinding:
    @hookimpl
    def probe_devices(self, request):
        yield {"ids": ["v1:finding"], "kind": "accelerator"}
        yield finding(
            "v1-note",
            what="a finding of version 1",
            why="it was recorded",
            fix="nothing to do",
            severity="info",
            device="v1:finding",
        )


class Away:
    @hookimpl
    def probe_devices(self, request):
        return not_applicable("nothing of version 1 is here")


class CannotAsk:
    @hookimpl
    def probe_devices(self, request):
        yield {"ids": ["v1:kept"], "kind": "accelerator"}
        raise Unavailable("its driver is gone", code="driver-not-loaded", fix="load it")


class Raises:
    @hookimpl
    def probe_devices(self, request):
        raise LookupError("version 1 raised")


class Never:
    @hookimpl
    def probe_devices(self, request):
        raise AssertionError("its preconditions do not hold")


class Newer(Never):
    pass


class Active(Never):
    pass
