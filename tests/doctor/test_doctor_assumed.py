"""The report of a node on a driver that it does not have."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from probe_core.doctor.assumed import broken_now, with_driver


def on_driver(version: str | None, **device: Any) -> Any:
    own = {"id": "g", "vendor": "nvidia", "kind": "gpu", "driver": None, "other": 1, **device}
    report: Any = {"schema": 1, "devices": [own]}
    assumed: Any = with_driver(report, version)
    assert report == {"schema": 1, "devices": [own]}
    assert assumed["devices"][0] | {"driver": None} == own | {"driver": None}
    return assumed["devices"][0]["driver"]


@pytest.mark.parametrize(
    ("driver", "version", "assumed"),
    [
        (None, "595", {"name": "nvidia", "version": "595.99"}),
        (None, "595.45.04", {"name": "nvidia", "version": "595.45.04"}),
        ({"name": "nouveau"}, "595", {"name": "nvidia", "version": "595.99"}),
        ({"name": "nova-core"}, "595", {"name": "nvidia", "version": "595.99"}),
        ({"name": "nvidia", "version": "580.95", "open": True}, "595",
         {"name": "nvidia", "version": "595.99", "open": True}),
        ({"name": "nvgpu"}, "595.1", {"name": "nvgpu", "version": "595.1"}),
        ({"name": "nvgpu"}, None, {"name": "nvgpu"}),
    ],
    ids=range(7),
)  # fmt: skip
def test_gpus_of_nvidia_have_the_version_that_is_assumed(
    driver: Any, version: str | None, assumed: Any
) -> None:
    assert on_driver(version, driver=driver) == assumed


@pytest.mark.parametrize("own", [{"vendor": "amd"}, {"kind": "display"}])
def test_other_devices_keep_their_driver(own: dict[str, str]) -> None:
    assert on_driver("595", driver={"name": "x"}, **own) == {"name": "x"}


def test_what_is_broken_of_a_driver_now() -> None:
    def device(id_: str, *steps: tuple[str, str, str | None], kind: str = "gpu") -> Any:
        listed = [{"step": step, "status": status, "code": code} for step, status, code in steps]
        return {"id": id_, "kind": kind, "readiness": {"steps": listed}}

    devices = [
        device("a", ("driver", "broken", "no-driver"), ("library", "broken", "no-library")),
        device("b", ("driver", "ok", None), ("library", "broken", None)),
        device("c", ("permission", "broken", "no-access"), ("driver", "unknown", "closed")),
        device("d", ("driver", "broken", "no-driver"), kind="display"),
    ]
    request: Any = SimpleNamespace(report={"devices": devices})
    assert broken_now(request) == {"a": "no-driver", "b": ""}
