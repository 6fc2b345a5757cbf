"""The public names of the package, with their signatures.

``python -m scripts.public_names`` prints them, ``--count`` their number, and ``--write`` stores them where a test
compares them, so that a change of the API is a line in a diff. Public is what the ``__all__`` of a module lists whose
path has no name with an underscore, and of a class what has none.
"""

from __future__ import annotations

import argparse
import inspect
import re
import sys
import tempfile
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from scripts.dag_runner import choose_home

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = "airflow_provider_service"
STORED = ROOT / "tests" / "package" / "public_api.txt"
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")
_QUOTED = re.compile(r"(: |-> )'([^']*)'")
_CONSTANTS = (str, int, float, tuple, list, frozenset)
_OF_PYDANTIC = ("model_config", "model_post_init")


def public_modules() -> list[str]:
    """The modules and packages whose path has no name that begins with an underscore."""
    paths = [path.relative_to(ROOT).with_suffix("") for path in (ROOT / PACKAGE).rglob("*.py")]
    names = [".".join(path.parts).removesuffix(".__init__") for path in paths]
    return sorted(name for name in names if not any(part.startswith("_") for part in name.split(".")))


def public_names() -> dict[str, list[str]]:
    """The public names of each public module that has any."""
    found = {name: sorted(import_module(name).__dict__.get("__all__", [])) for name in public_modules()}
    return {module: names for module, names in found.items() if names}


def lines() -> Iterator[str]:
    """Each public name with its signature, a class followed by its public members, which are indented."""
    for module, names in public_names().items():
        for name in names:
            value = getattr(import_module(module), name)
            yield f"{module}.{name}{_signature(value)}"
            if inspect.isclass(value):
                yield from (f"  {line}" for line in _members(value))


def _members(kind: type) -> Iterator[str]:
    if fields := getattr(kind, "template_fields", None):
        yield f"template_fields = {tuple(fields)!r}"
    if _is_run_by_airflow(kind):
        return
    owners: dict[str, type] = {}
    for owner in kind.__mro__:
        if owner.__module__.startswith(PACKAGE):
            for name in [*owner.__dict__, *inspect.get_annotations(owner)]:
                owners.setdefault(name, owner)
    for name, owner in sorted(owners.items()):
        if not name.startswith("_") and name not in _OF_PYDANTIC:
            yield _member(name, owner)


def _is_run_by_airflow(kind: type) -> bool:
    """Whether nobody else calls its methods, as with operators, and unlike hooks."""
    return any(owner.__module__.startswith("airflow.") for owner in kind.__mro__) and not hasattr(kind, "get_conn")


def _member(name: str, owner: type) -> str:
    annotation = inspect.get_annotations(owner).get(name)
    if annotation is not None:
        shown = getattr(annotation, "__forward_arg__", annotation)
        return f"{name}: {shown if isinstance(shown, str) else inspect.formatannotation(shown)}"
    value = owner.__dict__.get(name)
    value = getattr(value, "__func__", value)
    if inspect.isroutine(value):
        return f"{name}{_signature(value)}"
    return f"{name} = {value!r}" if isinstance(value, _CONSTANTS) else name


def _signature(value: Any) -> str:
    if not callable(value) or (isinstance(value, type) and hasattr(value, "model_fields")):
        return ""
    try:
        text = str(inspect.signature(value))
    except ValueError:  # built in
        return ""
    return _QUOTED.sub(r"\1\2", _ADDRESS.sub("", text))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--count", action="store_true", help="print how many there are")
    parser.add_argument("--write", action="store_true", help=f"store them in {STORED.relative_to(ROOT)}")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as home:
        choose_home(Path(home), Path(home))
        if options.count:
            print(sum(map(len, public_names().values())))
        else:
            text = "".join(f"{line}\n" for line in lines())
            STORED.write_text(text) if options.write else sys.stdout.write(text)


if __name__ == "__main__":
    main()
