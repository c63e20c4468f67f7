"""Stands for Python's winreg where there is no Windows: serves one export that regedit could write.

The file is named by STANDIN_REG. As in the registry, names are found in any case; missing keys and
the end of a list raise OSError; a value's kind decides its Python type.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

HKEY_LOCAL_MACHINE = 0x80000002
_NAMES = {HKEY_LOCAL_MACHINE: "HKEY_LOCAL_MACHINE"}
_KINDS = {"hex": 3, "hex(7)": 7, "hex(b)": 11}


class _Key:
    def __init__(self, path: str, name: str) -> None:
        self.path = path
        self.name = name
        self.values: list[tuple[str, Any, int]] = []
        self.below: dict[str, _Key] = {}

    def __enter__(self) -> _Key:
        return self

    def __exit__(self, *error: object) -> None:
        pass


def _value(text: str) -> tuple[Any, int]:
    if text.startswith('"'):
        return text[1:-1].replace('\\"', '"').replace("\\\\", "\\"), 1
    kind, _, digits = text.partition(":")
    if kind == "dword":
        return int(digits, 16), 4
    raw = bytes(int(byte, 16) for byte in digits.split(",") if byte)
    if kind == "hex(7)":
        return raw.decode("utf-16-le").rstrip("\0").split("\0"), 7
    return (int.from_bytes(raw, "little") if kind == "hex(b)" else raw), _KINDS[kind]


def _load(path: Path) -> _Key:
    root = key = _Key("", "")
    for line in path.read_text("utf-8").replace("\\\n  ", "").splitlines():
        if line.startswith("["):
            key = root
            for name in line[1:-1].split("\\"):
                key = key.below.setdefault(name.lower(), _Key(f"{key.path}\\{name}", name))
        elif line.startswith('"'):
            name, _, text = line[1:].partition('"=')
            key.values.append((name, *_value(text)))
    return root


_ROOT = _load(Path(os.environ["STANDIN_REG"]))


def OpenKey(hive: int, path: str) -> _Key:
    key = _ROOT.below[_NAMES[hive].lower()]
    for name in path.split("\\"):
        if name.lower() not in key.below:
            raise FileNotFoundError(2, "The system cannot find the file specified")
        key = key.below[name.lower()]
    denied = os.environ.get("STANDIN_DENIED")
    if denied and key.path.lower().endswith(denied.lower()):
        raise PermissionError(13, "Access is denied")
    return key


def EnumKey(key: _Key, index: int) -> str:
    return _at(list(key.below.values()), index).name  # type: ignore[no-any-return]


def EnumValue(key: _Key, index: int) -> tuple[str, Any, int]:
    return _at(key.values, index)  # type: ignore[no-any-return]


def _at(items: list[Any], index: int) -> Any:
    if index >= len(items):
        raise OSError(259, "No more data is available")
    return items[index]
