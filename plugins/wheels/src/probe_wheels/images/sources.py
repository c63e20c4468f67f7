"""Images as people have them: a saved archive, an OCI layout, a SIF, a root, an environment."""

from __future__ import annotations

import os
from stat import S_ISLNK, S_ISREG

from probe_wheels.files import Opened
from probe_wheels.images.archive import FILE, HARD, LINK, clean, members
from probe_wheels.images.config import ARCHES, MAX_JSON, Config, config_of, json_of, variant_of
from probe_wheels.images.image import Image, Place, digest_in, scanned
from probe_wheels.images.layers import Disk, File, Layer, is_program, role_of
from probe_wheels.images.streams import GZIP, ZSTD, BadImage, Part, Plain, Stretch, source_of
from probe_wheels.images.tree import merge

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from probe_wheels.files import Budget
    from probe_wheels.images.image import Opening
    from probe_wheels.images.streams import Source

MAX_LAYERS = 1000
MAX_MANIFESTS = 256
MAX_NESTING = 4
MAX_WALK = 2_000_000

_PYTHON = ("pyvenv.cfg", "conda-meta")


def open_images(path: str, opening: Opening, name: str | None = None) -> list[Image]:
    """Return the image at a path, once for each platform that it has.

    `name` picks one of several images in a file. Raises `BadImage` with a sentence for what is no
    image or cannot be read, `OSError` for a path that cannot be opened.
    """
    status = os.stat(path)
    if not S_ISREG(status.st_mode):
        return (
            _of_folder(path, opening, name) if os.path.isdir(path) else _refuse("no regular file")
        )
    file = opening.opened(path)
    if file.read(32, 10) == b"SIF_MAGIC\0":
        from probe_wheels.images.sif import open_sif

        _refuse_name("a SIF", name)
        return [open_sif(path, file, opening)]
    return _of_store(_Archive(file, opening), "archive", opening, name)


def _refuse(text: str) -> list[Image]:
    raise BadImage(f"it is {text}")


def _refuse_name(what: str, name: str | None) -> None:
    if name is not None:
        raise BadImage(f"{what} is one image without a name: leave out --image")


def _of_folder(path: str, opening: Opening, name: str | None) -> list[Image]:
    names = set(os.listdir(path))
    if names & {"oci-layout", "index.json"} or {"manifest.json", "blobs"} <= names:
        return _of_store(_Folder(path, opening), "layout", opening, name)
    _refuse_name("a root or an environment", name)
    if names & {"etc", "usr"} and not names & set(_PYTHON):
        return [_of_root(path, opening)]
    if _is_environment(path, names):
        image = Image("environment", "", Config(), opening)
        image.folder = path
        return [image]
    if names & {"bin", "opt", "app", "lib", "lib64"}:
        return [_of_root(path, opening)]
    raise BadImage("it is no image, root or Python environment: none of their files is in it")


def _is_environment(path: str, names: set[str]) -> bool:
    if names & {*_PYTHON, ".venv"} or any(name.endswith(".dist-info") for name in names):
        return True
    library = os.path.join(path, "lib")
    inner = os.listdir(library) if "lib" in names and os.path.isdir(library) else []
    return any(name.startswith("python3") for name in inner)


# A store: an archive or a folder that holds blobs by their paths.


class _Archive:
    """The members of an archive by path; of a packed one what mattered was read as it passed."""

    def __init__(self, file: Opened, opening: Opening) -> None:
        self.passed: dict[str, Layer] = {}
        self._parts: dict[str, Part] = {}
        self._texts: dict[str, bytes] = {}
        self._links: dict[str, str] = {}
        source = source_of(file, opening.budget)
        plain = isinstance(source, Plain)
        for member in members(source):
            if member.kind in (LINK, HARD):
                self._links[member.path] = _target(member.path, member.target, member.kind)
            elif member.kind == FILE and not plain:
                self._pass(source, member.path, member.size, opening)
                continue
            elif member.kind == FILE and (part := source.part(member.size)) is not None:
                self._parts[member.path] = part
                continue
            if not source.skip(member.size):
                raise BadImage("its archive is cut off")

    def _pass(self, source: Source, path: str, size: int, opening: Opening) -> None:
        """Read a member of a packed archive: a text, or a layer, which may be packed itself."""
        inner = Stretch(source, size)
        if inner.first[:1] in (b"{", b"["):
            if size <= min(MAX_JSON, opening.budget.room):
                opening.budget.room -= size
                self._texts[path] = inner.read(0, size)
        elif _is_layer(inner.first):
            self.passed[path] = scanned(inner, f"layer {path}", opening, once=True)
        if not inner.finish():
            raise BadImage("its archive is cut off")

    def _resolved(self, path: str) -> str:
        for _ in range(8):
            if path not in self._links:
                break
            path = self._links[path]
        return path

    def text(self, path: str) -> bytes | None:
        """Return a JSON file's bytes; None where it is not there; raises `BadImage`."""
        path = self._resolved(path)
        if path in self._texts:
            return self._texts[path]
        part = self._parts.get(path)
        if part is None:
            return None
        if part.size > MAX_JSON:
            raise BadImage(f"{path} is longer than {MAX_JSON >> 20} MiB")
        return part.read(0, part.size)

    def layer(self, path: str, label: str) -> Place | None:
        """Return where a layer lies; None where it is not there."""
        path = self._resolved(path)
        if path in self.passed:
            return Place(label, path, None)
        part = self._parts.get(path)
        return None if part is None else Place(label, path, lambda: part, part.size)


def _is_layer(head: bytes) -> bool:
    return head[257:262] == b"ustar" or head.startswith((GZIP, ZSTD))


def _target(path: str, target: str, kind: str) -> str:
    """Return where a link of an archive leads, within it; "" where that is outside."""
    if kind == LINK and not target.startswith("/"):
        folder = path.rpartition("/")[0]
        target = f"{folder}/{target}"
    parts: list[str] = []
    for part in target.split("/"):
        if part == "..":
            if not parts:
                return ""
            parts.pop()
        elif part not in ("", "."):
            parts.append(part)
    return "/".join(parts)


class _Folder:
    """A folder that holds blobs; links in it are not followed."""

    def __init__(self, path: str, opening: Opening) -> None:
        self.passed: dict[str, Layer] = {}
        self._path = path
        self._opening = opening

    def _place(self, path: str) -> str | None:
        """Return where a blob lies; None where it is not there; raises `BadImage` for a link."""
        at = self._path
        for part in clean(path).split("/"):
            at = os.path.join(at, part)
            if os.path.islink(at):
                raise BadImage(f"{path} is a link, and links are not followed")
        return at if os.path.isfile(at) else None

    def text(self, path: str) -> bytes | None:
        """Return a JSON file's bytes; None where it is not there; raises `BadImage`."""
        place = self._place(path)
        if place is None:
            return None
        with Opened(place, self._opening.budget) as file:
            if file.size > MAX_JSON:
                raise BadImage(f"{path} is longer than {MAX_JSON >> 20} MiB")
            return file.read(0, file.size)

    def layer(self, path: str, label: str) -> Place | None:
        """Return where a layer lies; None where it is not there."""
        place = self._place(path)
        if place is None:
            return None
        size = os.stat(place).st_size
        return Place(label, path, lambda: self._opening.opened(place), size)


def _of_store(
    store: _Archive | _Folder, kind: str, opening: Opening, name: str | None
) -> list[Image]:
    opening.read.update(store.passed)
    # Docker writes an OCI index beside its own manifest, which lists foreign layers alone.
    raw = store.text("manifest.json")
    if raw is not None and isinstance(json_of(raw, "manifest.json"), list):
        return [_of_docker(store, raw, kind, opening, name)]
    raw = store.text("index.json")
    if raw is None:
        raise BadImage("it is no image: neither manifest.json nor index.json is in it")
    return _of_index(store, json_of(raw, "index.json"), kind, opening, name)


def _of_docker(
    store: _Archive | _Folder, raw: bytes, kind: str, opening: Opening, name: str | None
) -> Image:
    entries = [entry for entry in json_of(raw, "manifest.json") if isinstance(entry, dict)]
    named = {_tag(entry, number): entry for number, entry in enumerate(entries)}
    tag, entry = _choose(named, name)
    path = entry.get("Config")
    if not isinstance(path, str):
        raise BadImage("its manifest names no config")
    image = Image(kind, tag, config_of(store.text(clean(path))), opening)
    image.digest = digest_in(path)
    layers = entry.get("Layers")
    if not isinstance(layers, list) or len(layers) > MAX_LAYERS:
        raise BadImage(f"its manifest has no list of at most {MAX_LAYERS} layers")
    for number, layer in enumerate(layers, 1):
        place = clean(layer) if isinstance(layer, str) else ""
        image.places.append(_layer_place(store, place, number, ""))
    return image


def _tag(entry: Mapping[str, Any], number: int) -> str:
    tags = entry.get("RepoTags")
    first = tags[0] if isinstance(tags, list) and tags else None
    return first if isinstance(first, str) else f"image {number + 1}"


def _choose(named: Mapping[str, Any], name: str | None) -> tuple[str, Any]:
    """Return the image that a name picks; the only one without a name."""
    if name is None and len(named) == 1:
        return next(iter(named.items()))
    if name is not None:
        for tag, entry in named.items():
            if tag == name or tag.rpartition("/")[2] == name:
                return tag, entry
    if not named:
        raise BadImage("no image is in it")
    listed = ", ".join(sorted(named)[:8])
    problem = f"it has no image {name}" if name is not None else f"it has {len(named)} images"
    raise BadImage(f"{problem}: take --image with one of {listed}")


def _layer_place(store: _Archive | _Folder, path: str, number: int, media: str) -> Place:
    label = f"layer {number}"
    if "encrypted" in media:
        place = Place(label, f"encrypted:{path}", None)
        place.problem = f"{label} is encrypted"
        return place
    found = store.layer(path, label) if path else None
    if found is None:
        place = Place(label, f"absent:{path}", None)
        foreign = "foreign" in media or "nondistributable" in media
        place.problem = f"{label} is not in it"
        place.problem += ": it is one that may not be passed on" if foreign else ""
        return place
    return found


def _of_index(
    store: _Archive | _Folder, index: Any, kind: str, opening: Opening, name: str | None
) -> list[Image]:
    manifests = list(_manifests(store, index, 0, ""))[:MAX_MANIFESTS]
    names = dict.fromkeys(tag for _, tag in manifests)
    if name is not None or len(names) > 1:
        chosen = _choose({tag or "(unnamed)": tag for tag in names}, name)[1]
        manifests = [pair for pair in manifests if pair[1] == chosen]
    if not manifests:
        raise BadImage("its index names no image")
    return [_of_manifest(store, entry, tag, kind, opening) for entry, tag in manifests]


def _manifests(
    store: _Archive | _Folder, index: Any, depth: int, tag: str
) -> Iterator[tuple[dict[str, Any], str]]:
    """Yield the descriptor of each manifest with its tag, those of nested indexes among them."""
    listed = index.get("manifests") if isinstance(index, dict) else None
    if not isinstance(listed, list) or depth > MAX_NESTING:
        raise BadImage("its index is none of an image")
    for entry in listed[:MAX_MANIFESTS]:
        if not isinstance(entry, dict) or _is_attestation(entry):
            continue
        own = _annotation(entry) or tag
        document = json_of(
            store.text(_blob(entry)), f"the manifest {str(entry.get('digest'))[:19]}"
        )
        if isinstance(document, dict) and "manifests" in document:
            yield from _manifests(store, document, depth + 1, own)
        else:
            yield {**entry, "document": document}, own


def _is_attestation(entry: Mapping[str, Any]) -> bool:
    platform, notes = entry.get("platform"), entry.get("annotations")
    if isinstance(platform, dict) and platform.get("architecture") == "unknown":
        return True
    return isinstance(notes, dict) and "vnd.docker.reference.type" in notes


def _annotation(entry: Mapping[str, Any]) -> str:
    notes = entry.get("annotations")
    notes = notes if isinstance(notes, dict) else {}
    for key in ("io.containerd.image.name", "org.opencontainers.image.ref.name"):
        if isinstance(notes.get(key), str):
            return str(notes[key])
    return ""


def _blob(entry: Mapping[str, Any]) -> str:
    """Return where a descriptor's blob lies; raises `BadImage` for what is no digest."""
    algorithm, colon, value = str(entry.get("digest", "")).partition(":")
    if not colon or not algorithm.isalnum() or not value.isalnum():
        raise BadImage("it names a blob by something else than a digest")
    return f"blobs/{algorithm}/{value}"


def _of_manifest(
    store: _Archive | _Folder, entry: dict[str, Any], tag: str, kind: str, opening: Opening
) -> Image:
    manifest = entry["document"]
    if not isinstance(manifest, dict):
        raise BadImage("its manifest is none of an image")
    if "fsLayers" in manifest or manifest.get("schemaVersion") == 1:
        raise BadImage("its manifest is of Docker's schema 1, which engines no longer take")
    descriptor = manifest.get("config")
    if not isinstance(descriptor, dict):
        raise BadImage("its manifest names no config")
    media = str(descriptor.get("mediaType", ""))
    image = Image(kind, tag, config_of(store.text(_blob(descriptor)), media), opening)
    image.digest = str(entry.get("digest", ""))
    platform = entry.get("platform")
    if image.config.arch is None and isinstance(platform, dict):
        arch = platform.get("architecture")
        image.config.arch = ARCHES.get(arch, arch) if isinstance(arch, str) else None
    if isinstance(platform, dict) and not image.config.variant:
        image.config.variant = variant_of(platform)
    layers = manifest.get("layers")
    if not isinstance(layers, list) or len(layers) > MAX_LAYERS:
        raise BadImage(f"its manifest has no list of at most {MAX_LAYERS} layers")
    for number, layer in enumerate(layers, 1):
        if not isinstance(layer, dict):
            raise BadImage("its manifest is none of an image")
        media = str(layer.get("mediaType", ""))
        image.places.append(_layer_place(store, _blob(layer), number, media))
    return image


# An unpacked root.


def _of_root(path: str, opening: Opening) -> Image:
    image = Image("root", "", Config(), opening)
    image.folder = path
    layer = walked(path, opening.budget)
    image.use(merge([layer]))
    image.problems += [layer.problem] if layer.problem else []
    return image


def walked(root: str, budget: Budget) -> Layer:
    """Return what an unpacked root has, as one layer; no link is followed, no device opened."""
    layer = Layer("root")
    count = 0
    for folder, folders, names in os.walk(root):
        inner = os.path.relpath(folder, root).replace(os.sep, "/")
        inner = "" if inner == "." else inner + "/"
        if inner in ("proc/", "sys/", "dev/"):
            folders.clear()
            continue
        for name in (*names, *folders):
            count += 1
            budget.spend()
            _add_entry(layer, f"{folder}/{name}", inner + name, budget)
        if count > MAX_WALK:
            layer.problem = f"it has more than {MAX_WALK} files"
            break
    return layer


def _add_entry(layer: Layer, place: str, path: str, budget: Budget) -> None:
    try:
        status = os.lstat(place)
        if S_ISLNK(status.st_mode):
            layer.links[path] = os.readlink(place)
            return
    except OSError:
        return
    mode = status.st_mode & 0o7777
    if S_ISREG(status.st_mode) and (role := role_of(path, mode)):
        if role == "executable" and not _may_be_program(place, budget):
            return
        content = None if role == "name" else Disk(place)
        layer.files[path] = File(status.st_size, mode, status.st_uid, status.st_gid, content)


def _may_be_program(place: str, budget: Budget) -> bool:
    """Return whether a file begins as a program; True for one that cannot be read."""
    try:
        with Opened(place, budget) as file:
            return is_program(file.read(0, 4))
    except OSError:
        return True
