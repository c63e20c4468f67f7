"""`build`: packs the data folder into the table that the wheel carries. Same data, same bytes.

The table is not tracked: the build of a wheel or of an editable install makes it. Its first line
has a digest of the data, by which a checkout notices that somebody changed the data since.
"""

import hashlib
import json
import os

from probe_chipdb._version import __version__
from probe_chipdb.entry import fields
from probe_chipdb.entry.files import read_folder, toml_files
from probe_chipdb.entry.pack import texts
from probe_chipdb.entry.spec import Json, Problem
from probe_chipdb.rules import Rules, use
from probe_chipdb.table import FILES, FORMAT
from probe_chipdb.tools.writing import replace_text

# `schema`: the JSON Schemas that editors use for completion, from the same fields as the check.

_DRAFT = "http://json-schema.org/draft-07/schema#"  # what TOML language servers understand


def schemas() -> dict[str, Json]:
    """File name to schema: chips, architectures, names, rules, formats, sources, publishers."""
    arch, source = fields.arch.json_schema(), fields.source.json_schema()
    publishers: Json = {"type": "object", "additionalProperties": fields.publisher.json_schema()}
    chips: Json = {
        "type": "object",
        "properties": {
            "family": fields.family.json_schema(),
            "chip": {"type": "array", "items": fields.chip.json_schema()},
            "arch": {"type": "object", "additionalProperties": arch},
            "source": {"type": "object", "additionalProperties": source},
            "publishers": publishers,
        },
        "required": ["family"],
        "additionalProperties": False,
    }
    named = {"type": "object", "propertyNames": {"pattern": f"^(?:{fields.SLUG})$"}}
    return {
        "chips.schema.json": {"title": "A family of chips", **chips, "$schema": _DRAFT},
        "arch.schema.json": {
            "title": "Architectures",
            **named,
            "additionalProperties": arch,
            "$schema": _DRAFT,
        },
        "names.schema.json": {
            "title": "Names of others",
            "type": "object",
            "propertyNames": {"pattern": f"^(?:{fields.NAME_KEY})$"},
            "additionalProperties": fields.name.json_schema(),
            "$schema": _DRAFT,
        },
        "rules.schema.json": {
            "title": "Rules of names",
            "type": "object",
            "properties": {name: spec.json_schema() for name, spec in fields.RULES.items()},
            "additionalProperties": False,
            "$schema": _DRAFT,
        },
        "formats.schema.json": {
            "title": "Number formats",
            "type": "object",
            "properties": {name: spec.json_schema() for name, spec in fields.FORMAT_TABLES.items()},
            "additionalProperties": False,
            "$schema": _DRAFT,
        },
        "publishers.schema.json": {"title": "Publishers", **publishers, "$schema": _DRAFT},
        "sources.schema.json": {
            "title": "Sources",
            **named,
            "additionalProperties": source,
            "$schema": _DRAFT,
        },
    }


def write_schemas(into: str) -> list[str]:
    """Write the schemas into a folder; the paths."""
    os.makedirs(into, exist_ok=True)
    paths = []
    for name, schema in schemas().items():
        paths.append(os.path.join(into, name))
        text = json.dumps(schema, indent=1, sort_keys=True, ensure_ascii=False)
        replace_text(paths[-1], f"{text}\n")
    return paths


TABLE = os.path.join("src", "probe_chipdb", "table")
"""Where a checkout has its table; beside `src` is `data`."""


def build(folder: str, into: str) -> list[Problem]:
    """Write the table of a data folder; the problems of entries that were left out.

    Files that would not change are not touched, so that a build of an unchanged tree is no change.
    """
    data = read_folder(folder)
    if data.rules.rows:  # the keys of the index are names that these have normalised
        use(Rules(data.rules.compiled()))
    os.makedirs(into, exist_ok=True)
    for name, text in rendered(texts(data), digest(folder)).items():
        path = os.path.join(into, name)
        if _read(path) != text:
            replace_text(path, text)
    return data.problems


def rendered(files: dict[str, str], data: str = "") -> dict[str, str]:
    """The files with the one line that gives a reader format and version, and the data's digest."""
    return {**files, "index.txt": f"{_head(data)}\n{files['index.txt']}"}


def _head(data: str) -> str:
    return f"#probe-chipdb {FORMAT} {__version__} {data}".rstrip()


def digest(folder: str) -> str:
    """What tells one data folder from another: a hash of its files' names and contents."""
    every = hashlib.sha256()
    for path in toml_files(folder):
        with open(path, "rb") as file:
            content = hashlib.sha256(file.read()).hexdigest()
        every.update(f"{os.path.relpath(path, folder)} {content}\n".replace(os.sep, "/").encode())
    return f"sha256:{every.hexdigest()}"


def outdated(root: str) -> str:
    """Why the table of the checkout at `root` is not that of its data; empty where it is.

    Empty, too, where no data is beside the table: an installed package has none.
    """
    data, index = os.path.join(root, "data"), os.path.join(root, TABLE, FILES[0])
    if not os.path.isdir(data):
        return ""
    head = (_read(index) or "").partition("\n")[0]
    if head == _head(digest(data)):
        return ""
    fault = "is older than the data" if head else "has not been built"
    return f"the table {fault}: run `python -m probe_chipdb build`"


def _read(path: str) -> str | None:
    try:
        with open(path, encoding="utf-8", newline="") as file:
            return file.read()
    except OSError:
        return None
