"""A sampler may name devices that no report has: its names are no labels of their own choice."""

from __future__ import annotations

from hostile_names import ALL
from watch_samples import address, busy

from probe_export.prometheus import text
from probe_watch.metrics import families


def test_a_device_whose_name_is_none_has_no_series() -> None:
    names = {address(1): "0000:01:00.0"}
    samples = [busy(address(1)), busy("acme:7"), *(busy(name) for name in ALL)]
    published = text(families(samples, names, {}, 0.5))
    up = [line for line in published.splitlines() if line.startswith("probe_device_up{")]
    assert up == [
        'probe_device_up{device="0000:01:00.0"} 1',
        'probe_device_up{device="acme:7"} 1',
    ]
