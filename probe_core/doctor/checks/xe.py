"""Intel's compute runtime: a library that is there, and older than the GPU."""

from __future__ import annotations

from probe_core.doctor.causes import concerned, of_cause
from probe_core.doctor.check import check, failed, not_applicable, passed, unknown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_core.doctor.check import Request, ResultDoc

_LIBRARY = "libze_intel_gpu.so.1"

# Architecture to the first build of production quality: 24.48.31907, whose release notes add
# Battlemage and Lunar Lake (jellyfin-packaging#53 quotes them).
_FIRST_BUILD = {"xe2": 31907}


@check("compute-runtime-too-old", step="runtime", needs=(_LIBRARY,))
def runtime(request: Request) -> ResultDoc:
    """Whether the compute runtime is of a build before the GPU's architecture."""
    devices = concerned("compute-runtime-too-old", request.report["devices"])
    devices = [device for device in devices if device["arch"] in _FIRST_BUILD]
    if not devices:
        return not_applicable("no Intel GPU is here that needs a recent runtime")
    paths = request.scene.libraries.find(_LIBRARY)
    if not paths:
        return not_applicable(f"{_LIBRARY} is in no folder of the loader")
    # libze_intel_gpu.so.1.6.31907: the third number is the build's, as in 24.48.31907.
    real = request.machine.realpath(paths[0])
    build = real.rpartition(".so.")[2].split(".")[2:3]
    if not build or not build[0].isdecimal():
        return unknown(f"{real} has no build number")
    old = [device for device in devices if int(build[0][:9]) < _FIRST_BUILD[device["arch"] or ""]]
    if not old:
        return passed()
    least = _FIRST_BUILD[old[0]["arch"] or ""]
    evidence = f"{paths[0]} leads to build {build[0]}; the GPU needs {least}"
    return failed(of_cause(request, "compute-runtime-too-old", evidence, old))


CHECKS = [runtime]
