"""The pages of the API reference, filled from the docstrings of the public modules."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from airflow_provider_service.get_provider_info import get_provider_info
from scripts.site.examples import example_of
from scripts.site.links import EXAMPLES, page_of

PACKAGE = "airflow_provider_service"
#: What tasks return.
RESULTS = (f"{PACKAGE}.operators.results", f"{PACKAGE}.operators.table_results")


class ApiPage(NamedTuple):
    """A page with the modules that it describes."""

    name: str
    title: str
    modules: list[str]


def api_pages() -> dict[str, list[ApiPage]]:
    """The pages by group: what Airflow lists of the provider, a module each; the testing kit; the client."""
    info = get_provider_info()
    groups = {
        "Hook": info["hooks"][0]["python-modules"],
        "Operators": info["operators"][0]["python-modules"],
        "Transfers": [one["python-module"] for one in info["transfers"]],
        "Sensors": info["sensors"][0]["python-modules"],
        "Triggers": info["triggers"][0]["python-modules"],
        "Task decorator": [one["class-name"].rpartition(".")[0] for one in info["task-decorators"]],
        "Notifier": [one.rpartition(".")[0] for one in info["notifications"]],
    }
    pages = {title: [ApiPage(_short(one), _short(one), [one]) for one in modules] for title, modules in groups.items()}
    for page in pages["Hook"]:
        page.modules.extend(f"{PACKAGE}.hooks.{one}" for one in ("_running", "_data_tables"))
    pages["Shared by operators"] = [
        *(ApiPage(_short(one), _short(one), [one]) for one in RESULTS),
        ApiPage("transfers.loading", "transfers.loading", [f"{PACKAGE}.transfers._loading"]),
    ]
    pages["Assets"] = [_page_of("assets.service")]
    pages["Testing kit"] = [_page_of("testing"), _page_of("simulator")]
    pages["Client"] = [_page_of(one) for one in ("client", "client.resources", "client.models", "client.errors")]
    return pages


def api_texts() -> Iterator[tuple[str, str]]:
    """The names of the pages with their texts, the index among them."""
    groups = api_pages()
    for pages in groups.values():
        for page in pages:
            text = f"# {page.title}\n" + "".join(map(_automodule, page.modules))
            yield page.name, text + "".join(_example(name) for module in page.modules for name in public_names(module))
    yield (
        "index",
        "# API reference\n\nMade from the docstrings of the package `airflow_provider_service`.\n"
        + "".join(
            _GROUP.format(title=title, pages="\n".join(page.name for page in pages)) for title, pages in groups.items()
        ),
    )


def undescribed(folder: Path) -> Iterator[str]:
    """The public names that the built pages in a folder do not describe, each as a sentence."""
    for page in (page for pages in api_pages().values() for page in pages):
        text = (folder / f"{page.name}.html").read_text()
        names = (f"{module}.{name}" for module in page.modules for name in import_module(module).__all__)
        yield from (f"{page.name}.html does not describe {name}" for name in names if f'id="{name}"' not in text)


def public_names(module: str) -> list[str]:
    """The public names of a module; of the task decorator its own."""
    return [name.removesuffix("_task") for name in getattr(import_module(module), "__all__", [])]


def _automodule(module: str) -> str:
    # What a result holds are its fields, which have no docstrings.
    fields = "\n   :undoc-members:" if module in RESULTS else ""
    return _AUTOMODULE.format(module=module, fields=fields)


def _example(name: str) -> str:
    """What the page of a module shows of an example; nothing if there is none."""
    found = example_of(name)
    if found is None:
        return ""
    file = PurePosixPath(found.file)
    source = (
        f"[{file.name}](../{page_of(found.file)}.md)" if file.parts[0] == EXAMPLES else f"`{file}`, which is tested"
    )
    return f"\n## Example of {name}\n\n```python\n{found.code}\n```\n\nFrom {source}.\n"


_AUTOMODULE = """
```{{eval-rst}}
.. automodule:: {module}
   :members:
   :imported-members:{fields}
```
"""
_GROUP = """
## {title}

```{{toctree}}
:maxdepth: 1

{pages}
```
"""


def _short(module: str) -> str:
    return module.removeprefix(f"{PACKAGE}.")


def _page_of(module: str) -> ApiPage:
    return ApiPage(module, module, [f"{PACKAGE}.{module}"])
