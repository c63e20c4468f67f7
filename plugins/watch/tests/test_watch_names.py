"""A sampler may name devices that no report has: its names are no labels of their own choice."""

from __future__ import annotations

from hostile_names import ALL
from watch_samples import address, busy

from probe_export.prometheus import figures, text


def test_a_device_whose_name_is_none_has_no_series() -> None:
    samples = [busy(address(1)), busy("acme:7"), *(busy(name) for name in ALL)]
    published = text(figures(None, samples))
    up = [line for line in published.splitlines() if line.startswith("probecore_device_up{")]
    assert up == [
        'probecore_device_up{device="0000:01:00.0"} 1',
        'probecore_device_up{device="acme:7"} 1',
    ]
