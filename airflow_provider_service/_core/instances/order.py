"""The order in which workflows are deployed: those that are called come before those that call them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from airflow_provider_service._core.instances.workflow_references import references


def called_by(definition: Mapping[str, Any]) -> set[str]:
    """Return the ids of the workflows that the nodes of a definition call."""
    return _named_in({"nodes": definition.get("nodes")})


def needed_by(definition: Mapping[str, Any]) -> set[str]:
    """Return the ids of the workflows that a definition starts: by its nodes, or when it fails."""
    error_workflow = (definition.get("settings") or {}).get("errorWorkflow")
    return _named_in({"nodes": definition.get("nodes"), "settings": {"errorWorkflow": error_workflow}})


def _named_in(definition: Mapping[str, Any]) -> set[str]:
    return {named.id for named in references(definition) if named.kind == "workflow" and named.id}


def in_order(calls: Mapping[str, set[str]]) -> list[str]:
    """Sort workflows so that each comes after those that it calls, unless they call each other.

    :param calls: the workflows that each one calls.
    """
    done: list[str] = []
    open_ones: set[str] = set()

    def visit(name: str) -> None:
        if name in done or name in open_ones:
            return
        open_ones.add(name)
        for called in sorted(calls[name] & calls.keys()):
            visit(called)
        open_ones.discard(name)
        done.append(name)

    for name in sorted(calls):
        visit(name)
    return done


def circles(calls: Mapping[str, set[str]]) -> Iterator[Sequence[str]]:
    """Yield the groups of workflows in which each calls all others, directly or indirectly."""
    reached = {name: _reached(name, calls) for name in calls}
    seen: set[str] = set()
    for name in sorted(calls):
        group = [other for other in sorted(calls) if other in reached[name] and name in reached[other]]
        if len(group) > 1 and name not in seen:
            seen.update(group)
            yield group


def _reached(name: str, calls: Mapping[str, set[str]]) -> set[str]:
    found: set[str] = set()
    waiting = [name]
    while waiting:
        for called in calls[waiting.pop()] & calls.keys():
            if called not in found:
                found.add(called)
                waiting.append(called)
    return found
