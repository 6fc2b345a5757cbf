"""Sphinx's settings for the documentation site."""

from __future__ import annotations

import html
import importlib
import os
from inspect import Parameter, Signature
from pathlib import Path
from types import ModuleType
from typing import Any, get_type_hints

from docutils import nodes
from docutils.parsers.rst import Directive
from sphinx.application import Sphinx
from sphinx.util.inspect import stringify_signature
from sphinx.util.nodes import make_refnode

from airflow_provider_service import __version__
from airflow_provider_service.client._models import ServiceModel
from scripts.site.api import api_pages

_SITE = Path(__file__).parent.parent.parent / ".site"

project = "airflow-provider-service"
author = "The airflow-provider-service authors"
version = release = __version__
html_title = f"{project} {version}"
html_baseurl = os.environ.get("DOCUMENTATION_URL", "")

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx_copybutton"]
myst_enable_extensions = ["attrs_inline"]
myst_heading_anchors = 4
myst_fence_as_directive = {"mermaid"}
nitpicky = True
_OF_AIRFLOW = ("AirflowFailException", "AirflowNotFoundException", "AirflowSensorTimeout", "AirflowSkipException")
nitpick_ignore = [("py:class", "RunResult"), *(("py:exc", name) for name in _OF_AIRFLOW)]
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
python_maximum_signature_line_length = 100
highlight_language = "none"

html_theme = "furo"
html_static_path = ["static", str(_SITE / "static")]
html_css_files = ["site.css"]
html_js_files = ["site.js"]
html_search_scorer = str(_SITE / "source" / "scorer.js")
html_show_copyright = False
html_show_sphinx = False
html_copy_source = False
copybutton_exclude = ".linenos, .gp, .go"


#: The pages of what a DAG file uses by its arguments.
_OF_TASKS = {
    f"api/{page.name}"
    for group, pages in api_pages().items()
    if group not in ("Hook", "Testing kit", "Client")
    for page in pages
}


class Mermaid(Directive):
    """A diagram, which the browser draws with the copy of Mermaid that the site holds."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        text = html.escape("\n".join(self.content))
        return [nodes.raw("", f'<pre class="mermaid">{text}</pre>', format="html")]


def draw_diagrams(app: Sphinx, _page: str, _template: str, context: dict[str, Any], _doctree: Any) -> None:
    """Load Mermaid on the pages that have diagrams."""
    if '<pre class="mermaid">' in context.get("body", ""):
        app.add_js_file("mermaid.min.js")
        app.add_js_file("diagrams.js")


def find_by_name(app: Sphinx, env: Any, node: Any, contnode: nodes.Element) -> nodes.Element | None:
    """Find what a docstring names without its module. Types of signatures may be those of other packages."""
    parent = node.parent
    while parent is not None and not parent.tagname.startswith("desc_"):
        parent = parent.parent
    if parent is not None and parent.tagname != "desc_content":
        return contnode
    python = env.domains.python_domain
    found = python.find_obj(env, None, None, node["reftarget"], None, 1) if node.get("refdomain") == "py" else []
    if len(found) != 1:
        return None
    [(name, entry)] = found
    return make_refnode(app.builder, node["refdoc"], entry.docname, entry.node_id, contnode, name)


def leave_out_machinery(app: Sphinx, what: str, name: str, _obj: Any, _skip: bool, _options: Any) -> bool | None:
    """Show operators and the like by their arguments, without what only Airflow and pydantic call."""
    return True if what == "class" and (app.env.docname in _OF_TASKS or name == "model_config") else None


def show_attributes(
    _app: Sphinx, what: str, _name: str, obj: Any, _options: Any, _signature: str, _returned: str
) -> tuple[str, str] | None:
    """Show a model by the names and types of its attributes, rather than by the names on the wire."""
    if what != "class" or not issubclass(obj, ServiceModel):
        return None
    types = get_type_hints(obj)  # without what validates and writes the values
    attributes = [Parameter(name, Parameter.KEYWORD_ONLY, annotation=types[name]) for name in obj.model_fields]
    return stringify_signature(Signature(attributes), unqualified_typehints=True), ""


def load_names(module: ModuleType) -> None:
    """Load the names of a package that loads them when they are first used, since autodoc would not see them."""
    for name in getattr(module, "__all__", []):
        setattr(module, name, getattr(module, name))


def setup(app: Sphinx) -> None:
    """Register what is above."""
    for modules in (page.modules for pages in api_pages().values() for page in pages):
        for module in modules:  # autodoc itself would import them with TYPE_CHECKING set, which pydantic does not stand
            load_names(importlib.import_module(module))
    app.add_directive("mermaid", Mermaid)
    app.connect("autodoc-skip-member", leave_out_machinery)
    app.connect("autodoc-process-signature", show_attributes)
    app.connect("html-page-context", draw_diagrams)
    app.connect("missing-reference", find_by_name)
