"""Commands of plugins: manifests, entry points, whatever lies on the path; importing nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from foreign import CHANCES, Chance, write_files
from hypothesis import given
from hypothesis import strategies as st

from probe_core.cli.plugin_commands import TEXTS, installed_commands
from probe_core.jsontext import parse
from probe_core.registry.extensions import manifest_table, texts

MANIFEST = {
    "schema": 1,
    "commands": {
        "fry": {"group": "Use", "summary": "fry a GPU, gently"},
        "boil": {"group": "Clusters", "summary": "… \u202e \\ ' \" \x00"},
    },
}
ENTRIES = b"[probe_core.commands.v1]\nfry = acme.fry\nboil = acme [hot]\nexplain = acme\n"

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@pytest.mark.heavy
@given(JSON, st.text(" \t\r\n", max_size=3), st.booleans())
def test_what_is_sound_is_read_as_json_reads_it(value: object, space: str, ascii: bool) -> None:
    text = space + json.dumps(value, ensure_ascii=ascii) + space
    assert parse(text) == json.loads(text) == value


@given(CHANCES)
def test_what_is_broken_is_refused_as_json_refuses_it(chance: Chance) -> None:
    text = chance.mutate(json.dumps(MANIFEST).encode()).decode("utf-8", "replace")
    outcomes = []
    for read in (parse, json.loads):
        try:
            outcomes.append(repr(read(text)))  # NaN is equal to nothing, but prints alike
        except (ValueError, RecursionError) as error:
            outcomes.append(str(error))
    assert outcomes[0] == outcomes[1]


@pytest.mark.heavy
@given(CHANCES)
def test_manifests(tmp_path: Path, chance: Chance) -> None:
    path = tmp_path / "command.json"
    path.write_bytes(chance.mutate(json.dumps(MANIFEST).encode()))
    try:
        fields = texts(manifest_table(str(path), "commands"), "fry", TEXTS)
    except ValueError:
        return
    assert all(isinstance(fields.get(key, ""), str) for key in ("group", "summary"))


@pytest.mark.heavy
@given(CHANCES)
def test_what_is_installed(tmp_path: Path, chance: Chance) -> None:
    content = chance.mutate(ENTRIES) if chance.random() < 0.9 else ENTRIES
    files = {
        "acme-1.dist-info/entry_points.txt": content,
        "acme/__init__.py": b"raise SystemExit",
        "acme/command.json": chance.mutate(json.dumps(MANIFEST).encode()),
    }
    site = write_files(tmp_path / "site", files)
    commands, problems = installed_commands({}, paths=[str(site)])
    for name, command in commands.items():
        assert name == command.name
        assert (name + command.group + command.summary).isprintable()
    for _, sentence in problems:
        assert sentence.isprintable()
        assert len(sentence) < 1000
