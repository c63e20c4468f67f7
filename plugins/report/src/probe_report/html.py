"""Writes a page as one HTML file: no script, no font, no request, and every text escaped."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import jinja2
from jinja2 import ChoiceLoader, Environment, FileSystemLoader, ModuleLoader, StrictUndefined
from markupsafe import Markup

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from jinja2 import BaseLoader, Template

    from probe_report.cluster import Cluster
    from probe_report.page import Page

MOST = 600_000
"""Bytes of a page at most: what a mail takes without a thought."""

_FOLDER = Path(__file__).with_name("templates")

_COMPILED = f"compiled-{jinja2.__version__}"
"""Where a wheel has the templates as modules, which saves 30 ms of each page: what one version of
Jinja2 compiled is not for another one. A checkout has none, so that what is edited counts."""

_FOLDS = 420_000
"""Characters of all nodes' folds; head, table and style of a cluster's page take the others."""


@cache
def _loader(folder: Path) -> BaseLoader:
    # Kept for good: Jinja2 enters each `ModuleLoader` in `sys.modules` as a weak reference, and
    # whoever walks through the host's modules while a loader is freed meets a `ReferenceError`.
    return ChoiceLoader([ModuleLoader(folder / _COMPILED), FileSystemLoader(folder)])


def _environment(loader: BaseLoader) -> Environment:
    # Undefined names raise: a blank where a reason belongs would be a silent lie of the template.
    environment = Environment(
        loader=loader,
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    environment.filters["content"] = _content
    style = (_FOLDER / "style.css").read_text("utf-8")
    environment.globals["style"] = Markup(style.replace("\n", ""))
    return environment


def _template(name: str) -> Template:
    return _environment(_loader(_FOLDER)).get_template(name)


def compile_templates(into: Path) -> None:
    """Write the templates as modules below a folder, where a wheel has them."""
    environment = _environment(FileSystemLoader(_FOLDER))
    target = into / _COMPILED
    target.mkdir(parents=True)
    environment.compile_templates(target, extensions=["html"], zip=None, ignore_errors=False)


def _content(text: str) -> Markup:
    """Escape a text for the content of an element alone, where quotes need not be.

    A report of 85 kB has 9,000 quotes, at five characters each.
    """
    plain = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return Markup(plain)


def page_html(page: Page) -> str:
    """Return the page of one node, of at most `MOST` bytes.

    Text of quotes and angles alone takes five times its length, so that the bounds of the parts
    are no bound of the whole: what is longest and matters least leaves first, with its count.
    """
    template = _template("page.html")
    text = template.render(page=page, notes=page.notes)
    for smaller in _SMALLER:
        if len(text.encode()) <= MOST:
            break
        page = smaller(page)
        text = template.render(page=page, notes=page.notes)
    return text


def _without_json(page: Page) -> Page:
    return page._replace(raw=page.raw and page.raw._replace(text="", shown=0, shown_findings=0))


def _without_sources(page: Page) -> Page:
    sources = page.sources
    hidden = sources.hidden + len(sources.groups)
    return page._replace(sources=sources._replace(groups=(), hidden=hidden))


def _without_folds(page: Page) -> Page:
    findings = page.findings
    hidden = findings.hidden + len(findings.folded)
    return page._replace(findings=findings._replace(folded=(), hidden=hidden))


def _with_few_chains(page: Page) -> Page:
    hidden = page.chains_hidden + len(page.chains[_FEW:])
    return page._replace(chains=page.chains[:_FEW], chains_hidden=hidden)


def _with_few_rows(page: Page) -> Page:
    table = page.devices
    hidden = table.hidden + sum(row.number for row in table.rows[_FEW:])
    return page._replace(devices=table._replace(rows=table.rows[:_FEW], hidden=hidden))


_FEW = 8

_SMALLER: tuple[Callable[[Page], Page], ...] = (
    _without_json,
    _without_sources,
    _without_folds,
    _with_few_chains,
    _with_few_rows,
)


def cluster_html(cluster: Cluster) -> str:
    """Return the page of several nodes, of at most `MOST` bytes: as many have a fold as fit."""
    folds = _folds(cluster)
    text = _cluster_text(cluster, folds)
    while len(text.encode()) > MOST and (folds or cluster.rows):
        if folds:
            folds = folds[: len(folds) // 2]
        else:
            rows = cluster.rows[: len(cluster.rows) // 2]
            hidden = cluster.hidden + len(cluster.rows) - len(rows)
            cluster = cluster._replace(rows=rows, hidden=hidden)
        text = _cluster_text(cluster, folds)
    return text


def _folds(cluster: Cluster) -> list[Markup]:
    template = _template("fold.html")
    folds: list[Markup] = []
    used = 0
    for number, (name, page) in enumerate(cluster.pages, start=1):
        text = template.render(name=name, page=page, number=number)
        used += len(text.encode())
        if used > _FOLDS:
            break
        folds.append(Markup(text))
    return folds


def _cluster_text(cluster: Cluster, folds: list[Markup]) -> str:
    return _template("cluster.html").render(
        cluster=cluster,
        folds=folds,
        unfolded=len(cluster.pages) - len(folds),
        notes=cluster.notes,
    )
