"""Finds the display adapters that are there now, and the two registry keys of each.

Windows keeps the keys of every adapter that was ever installed. An adapter is there when its
driver's service lists its instance under Services\\<service>\\Enum, a key that the Plug and Play
manager rebuilds at every start.
"""

from __future__ import annotations

from probe_windows.registry import text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from probe_windows.registry import Registry, Values

    Instances = dict[str, tuple[str, Values]]
    """Class key in lower case to (instance path, values of the device's key)."""

CLASS = "{4d36e968-e325-11ce-bfc1-08002be10318}"
"""The setup class "Display adapters" (system-defined device setup classes, Microsoft Learn)."""


class Adapter:
    """One adapter: `number` of its class key, device `instance`, and the values of both keys."""

    __slots__ = ("device", "driver", "instance", "number")

    def __init__(self, number: int, instance: str, driver: Values, device: Values) -> None:
        self.number = number
        self.instance = instance
        self.driver = driver
        self.device = device

    @property
    def service(self) -> str | None:
        """The kernel driver's name: nvlddmkm, amdwddmg, igfxn …"""
        return text(self.device.get("service"))

    @property
    def basic(self) -> bool:
        """Whether Microsoft's own driver serves it, which shows pictures and cannot compute."""
        return (self.service or "").lower() in ("basicdisplay", "basicrender")


def present(registry: Registry) -> Iterator[Adapter]:
    """Yield the adapters that are there now, in the order of their class keys."""
    buses: dict[str, Instances] = {}
    for name in registry.keys(f"Control\\Class\\{CLASS}"):
        if not (name.isdecimal() and len(name) == 4):
            continue  # Configuration, Properties
        driver = registry.values(f"Control\\Class\\{CLASS}\\{name}")
        # "pci\ven_10de&dev_2684", or "pci\cc_0300" of a GPU that only the basic driver serves.
        bus = (text(driver.get("matchingdeviceid")) or "").partition("\\")[0].upper()
        if bus and bus not in buses:
            buses[bus] = dict(_instances(registry, bus))
        instance, device = buses.get(bus, {}).get(f"{CLASS}\\{name}", ("", {}))
        adapter = Adapter(int(name), instance, driver, device)
        if instance and _is_listed(registry, adapter):
            yield adapter


def _instances(registry: Registry, bus: str) -> Iterator[tuple[str, tuple[str, Values]]]:
    """Yield the items of `Instances` for each display adapter that a bus ever had."""
    for hardware in registry.keys(f"Enum\\{bus}"):
        for name in registry.keys(f"Enum\\{bus}\\{hardware}"):
            instance = f"{bus}\\{hardware}\\{name}"
            device = registry.values(f"Enum\\{instance}")
            owner = (text(device.get("driver")) or "").lower()
            if owner.startswith(CLASS):
                yield owner, (instance, device)


def _is_listed(registry: Registry, adapter: Adapter) -> bool:
    """Return whether the adapter's service has it now; a removed or disabled one it has not."""
    if not adapter.service:
        return False
    listed = registry.values(f"Services\\{adapter.service}\\Enum")
    instance = adapter.instance.lower()
    return any(name.isdecimal() and str(path).lower() == instance for name, path in listed.items())
