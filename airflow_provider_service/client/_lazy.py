"""Load the names of a package when they are first used."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module


def lazy_names(package: str, modules: dict[str, list[str]]) -> tuple[list[str], Callable[[str], object]]:
    """Create the ``__all__`` and the ``__getattr__`` of a package from the public names of its modules."""
    homes = {name: module for module, names in modules.items() for name in names}

    def get(name: str) -> object:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(f"{package}.{homes[name]}"), name)

    return sorted(homes), get
