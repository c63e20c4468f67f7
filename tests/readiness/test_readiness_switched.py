"""Rules and modes that leave a discrete GPU off, file by file."""

from __future__ import annotations

import pytest

from probe_core.readiness.switched import modes, removals
from probe_core.testing import Tree

REMOVES = 'ACTION=="add", ATTR{vendor}=="0x10de", ATTR{class}=="0x03[0-9]*", ATTR{remove}="1"'
WIDE = REMOVES.replace("==", " == ")


@pytest.mark.parametrize(
    ("path", "text", "lines"),
    [
        ("/etc/udev/rules.d/50-any.rules", REMOVES, [REMOVES]),
        ("/run/udev/rules.d/50-any.rules", REMOVES, [REMOVES]),
        ("/etc/udev/rules.d/50-any.rules", f"a\n  {REMOVES}\n", [REMOVES]),
        ("/etc/udev/rules.d/1.rules", REMOVES.replace(", ", ",\\\n"), [REMOVES]),
        ("/etc/udev/rules.d/1.rules", WIDE, [WIDE]),
        ("/etc/udev/rules.d/50-any.conf", REMOVES, []),
        ("/etc/udev/rules.d/50-any.rules", f"# {REMOVES}", []),
        # The sound of the same card, and a rule that removes nothing.
        ("/etc/udev/rules.d/50-any.rules", REMOVES.replace("0x03", "0x04"), []),
        ("/etc/udev/rules.d/50-any.rules", REMOVES.replace('="1"', '="0"'), []),
        # Of packages those about GPUs alone.
        ("/usr/lib/udev/rules.d/50-any.rules", REMOVES, []),
        ("/usr/lib/udev/rules.d/50-remove-nvidia.rules", REMOVES, [REMOVES]),
        ("/lib/udev/rules.d/50-gpu.rules", REMOVES, [REMOVES]),
    ],
)  # fmt: skip
def test_a_rule_that_removes_displays(path: str, text: str, lines: list[str], tree: Tree) -> None:
    tree.file(path, text)
    assert list(removals(tree.machine())) == [(path, line) for line in lines]


def test_files_of_rules_are_read_up_to_a_number_and_a_size(tree: Tree) -> None:
    folder = "/etc/udev/rules.d"
    for number in range(66):
        tree.file(f"{folder}/{number:02}.rules", REMOVES)
    assert [path for path, _ in removals(tree.machine())] == [
        f"{folder}/{number:02}.rules" for number in range(64)
    ]


@pytest.mark.parametrize("beyond", [0, 1])
def test_a_rule_that_ends_beyond_the_size_is_not_read(beyond: int, tree: Tree) -> None:
    path = "/etc/udev/rules.d/1.rules"
    blank = (64 << 10) - len(REMOVES) + beyond
    tree.file(path, "\n" * blank + REMOVES)
    assert len(list(removals(tree.machine()))) == 1 - beyond


@pytest.mark.parametrize(
    ("path", "text", "found"),
    [
        ("/etc/supergfxd.conf", '{\n  "mode": "Integrated",\n', '"mode": "Integrated"'),
        ("/etc/supergfxd.conf", '{"mode":"Integrated","x":1}', '"mode": "Integrated"'),
        ("/etc/supergfxd.conf", '{"mode": "Hybrid", "last": "Integrated"}', None),
        ("/etc/supergfxd.conf", '{"last": "Integrated"}', None),
        ("/etc/supergfxd.conf", '{"last": "Integrated",\n "mode": "Hybrid"}', None),
        ("/etc/prime-discrete", "off\n", "off"),
        ("/etc/prime-discrete", "on-demand\n", None),
        ("/etc/prime/current_type", "intel\n", "intel"),
        ("/etc/prime/current_type", "intel2\n", "intel2"),
        ("/etc/prime/current_type", "nvidia\n", None),
        ("/etc/prime/current_type", "offload\n", None),
    ],
)
def test_a_mode_without_the_discrete_gpu(
    path: str, text: str, found: str | None, tree: Tree
) -> None:
    tree.file(path, text)
    assert list(modes(tree.machine())) == ([] if found is None else [(path, found)])
