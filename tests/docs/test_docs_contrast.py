"""The colours of the site and its pictures are legible, computed where there is no browser, too."""

from __future__ import annotations

import importlib.util
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import film
import picture
import pytest

AA = 4.5  # WCAG 2.2, success criterion 1.4.3
# The theme's text colours, and what they stand on.
TEXT_ON = {
    "foreground-primary": ("background-primary", "background-secondary"),
    "foreground-secondary": ("background-primary", "background-secondary"),
    "foreground-muted": ("background-primary", "background-secondary"),
    "brand-primary": ("background-primary", "background-secondary"),
    "brand-content": ("background-primary", "background-secondary"),
    "brand-visited": ("background-primary",),
}


def luminance(color: str) -> float:
    digits = color.removeprefix("#")
    full = digits if len(digits) == 6 else "".join(digit * 2 for digit in digits)
    shares = [int(full[place : place + 2], 16) / 255 for place in (0, 2, 4)]
    red, green, blue = (
        share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4 for share in shares
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    low, high = sorted([luminance(one), luminance(other)])
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [("#000", "#fff", 21), ("#fff", "#ffffff", 1), ("#767676", "#fff", 4.54)],
)
def test_contrast_is_computed_as_wcag_defines_it(one: str, other: str, expected: float) -> None:
    assert contrast(one, other) == pytest.approx(expected, abs=0.005)


def themes() -> dict[str, dict[str, str]]:
    """The variables of the theme's stylesheet, for light and for dark."""
    furo = importlib.util.find_spec("furo")
    if not furo or not furo.origin:
        pytest.skip("the theme is not installed here (pip install 'probe-core[docs]')")
    css = Path(furo.origin).parent / "theme/furo/static/styles/furo.css"
    rules = re.findall(r"([^{}]+)\{([^{}]*)\}", css.read_text("utf-8"))
    light: dict[str, str] = {}
    dark: dict[str, str] = {}
    for selector, body in rules:
        known = dict(re.findall(r"--color-([a-z-]+):(#[0-9a-f]{3,6})(?=[;}]|$)", body))
        if selector.strip().endswith("body[data-theme=dark]"):
            dark |= known
        elif selector.strip().rpartition("}")[2] in ("body", ":root"):
            light |= known
    return {"light": light, "dark": {**light, **dark}}


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_themes_texts_are_legible(theme: str) -> None:
    colors = themes()[theme]
    assert colors["background-primary"] == {"light": "#fff", "dark": "#131416"}[theme]
    faint = {
        (text, behind): round(contrast(colors[text], colors[behind]), 2)
        for text, backgrounds in TEXT_ON.items()
        for behind in backgrounds
        if contrast(colors[text], colors[behind]) < AA
    }
    assert faint == {}


def test_our_stylesheet_sets_no_colour() -> None:
    css = (picture.ROOT / "docs/_static/site.css").read_text("utf-8")
    assert not re.search(r"color|background|opacity", css.partition("*/")[2])


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_the_pictures_texts_are_legible(scheme: int) -> None:
    paper = picture.LIGHT_AND_DARK["paper"][scheme]
    ratios = {
        name: contrast(colours[scheme], paper)
        for name, colours in picture.LIGHT_AND_DARK.items()
        if name != "paper"
    }
    assert {name: ratio for name, ratio in ratios.items() if ratio < AA} == {}


@pytest.mark.heavy
@pytest.mark.parametrize("name", picture.PICTURES)
def test_a_picture_stands_alone_and_says_what_it_shows(name: str) -> None:
    text = (picture.ROOT / "docs/images" / f"{name}.svg").read_text("utf-8")
    root = ElementTree.fromstring(text)
    space = "{http://www.w3.org/2000/svg}"
    assert root.findtext(f"{space}title") == picture.PICTURES[name][2]
    assert not re.search(r"href|@font-face|url\(|<script|\x1b", text)
    assert "@media (prefers-color-scheme:dark)" in text
    lines = ["".join(line.itertext()) for line in root.iter(f"{space}text")]
    shown = re.sub(r"\x1b\[[0-9;]*m", "", picture.shown(name))
    assert lines == ["$ probe", *filter(None, shown.rstrip().splitlines())]


@pytest.mark.heavy
def test_the_film_is_what_the_commands_print_one_after_the_other() -> None:
    text = film.FILE.read_text("utf-8")
    assert text == film.drawn(film.played())
    assert not re.search(r"href|@font-face|url\(|<script|\x1b", text)
    space = "{http://www.w3.org/2000/svg}"
    root = ElementTree.fromstring(text)
    scenes = [[*map("".join, map(ElementTree.Element.itertext, g))] for g in root.iter(f"{space}g")]
    assert [scene[0] for scene in scenes] == [f"$ {line}" for line, _, _ in film.SCENES]
    broken, doctor, repair, whole, command = ("\n".join(scene) for scene in scenes)
    assert "RX 7900 XTX                    no driver" in broken
    assert repair.removeprefix("$ ") in doctor
    assert "RX 7900 XTX                    ready" in whole
    assert command.endswith("\n0")


def test_one_scene_of_the_film_is_shown_at_a_time() -> None:
    style = film.drawn(["" for _ in film.SCENES])
    shown = re.findall(r"([\d.]+)%\{opacity:1\}([\d.]+)%\{opacity:0\}", style)
    assert [end for _, end in shown[:-1]] == [start for start, _ in shown[1:]]
    assert (shown[0][0], shown[-1][1]) == ("0.00", "100.00")
    calm = style.partition("prefers-reduced-motion:reduce)")[2]
    assert re.findall(r"\.s(\d)\{animation:none;opacity:1\}", calm) == [str(len(shown) - 1)]


def test_an_unknown_colour_is_no_silent_loss() -> None:
    with pytest.raises(KeyError):
        picture.draw("\x1b[95mpink\x1b[0m", "a title")


def test_a_picture_escapes_what_it_shows() -> None:
    drawn = picture.draw("a < b & c\n\n\x1b[1mbold\x1b[0m", "x < y")
    texts = [text for text in ElementTree.fromstring(drawn).itertext() if text.strip()]
    assert "a < b & c" in texts
    assert "bold" in texts
