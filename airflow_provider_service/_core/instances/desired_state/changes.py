"""The changes that bring an instance to its desired state, and how they are made."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from airflow_provider_service._airflow.arguments import as_texts, refuse, require
from airflow_provider_service.client.errors import ServiceNotFoundError

if TYPE_CHECKING:
    from airflow_provider_service.client._client import Resources

Action = Literal["create", "update", "delete"]


@dataclass(frozen=True)
class DesiredStateChange:
    """A change that brings one object to its declared state. It shows no secrets.

    :param name: name of the object.
    :param details: the parts of it that change.
    :param perform: makes the change. Repeating it has the same result.
    """

    action: Action
    name: str
    details: Mapping[str, Any] = field(default_factory=dict)
    perform: Callable[[Resources], object] = field(default=lambda _: None, repr=False, compare=False)

    def to_xcom(self) -> dict[str, Any]:
        """The change as a task returns it."""
        return {"action": self.action, "name": self.name, **self.details}

    def words(self) -> str:
        """The change in words."""
        details = ", ".join(f"{name} {value}" for name, value in self.details.items())
        return f"{self.action} {self.name!r}" + (f" ({details})" if details else "")


@dataclass(frozen=True)
class DesiredStatePlan:
    """The changes, in the order in which they are made: deletions come last.

    :param unchanged: number of objects that are already as declared.
    """

    changes: Sequence[DesiredStateChange]
    unchanged: int

    def count(self, action: Action) -> int:
        """How many objects are created, updated or deleted."""
        return sum(change.action == action for change in self.changes)


@dataclass(frozen=True)
class Prune:
    """Which objects are deleted unless they are declared: those that are named, or whose names begin so. Never all.

    :param names: exact names.
    :param prefix: the beginning of names; None for none.
    """

    names: frozenset[str] = frozenset()
    prefix: str | None = None

    @classmethod
    def of(cls, prune: bool, names: object, prefix: object) -> Prune:
        """Read the arguments ``prune``, ``prune_names`` and ``prune_prefix``.

        :raises ServiceInputError: nothing is named to prune, or something is although nothing is pruned.
        """
        is_named = names is not None or prefix is not None
        require(is_named or not prune, "prune=True needs prune_names or prune_prefix: nothing else is ever deleted")
        require(prune or not is_named, "prune_names and prune_prefix have no effect without prune=True")
        if prefix is not None and (not isinstance(prefix, str) or not prefix.strip()):
            refuse("prune_prefix", "text that is not empty", prefix)
        return cls(frozenset(() if names is None else as_texts("prune_names", names)), prefix)

    def deletions(
        self, existing: Iterable[Any], desired: Iterable[str], delete: Callable[[Resources, Any], object]
    ) -> list[DesiredStateChange]:
        """The deletion of each object that is named and not declared.

        :param existing: the objects that there are; each has a name.
        :param delete: deletes one; that it no longer exists is no error.
        :raises ServiceInputError: a name is both declared and named to be deleted.
        """
        kept = set(desired)
        both = sorted(self.names & kept)
        require(not both, f"prune_names holds {', '.join(map(repr, both))}, which is declared as well")
        return [
            DesiredStateChange("delete", name_of(one), perform=_deleting(delete, one))
            for one in existing
            if name_of(one) not in kept and self._takes(name_of(one))
        ]

    def _takes(self, name: str) -> bool:
        return name in self.names or (self.prefix is not None and name.startswith(self.prefix))


def name_of(one: Any) -> str:
    """The name of an object, which a variable calls its key."""
    return str(one.key if hasattr(one, "key") else one.name)


def _deleting(delete: Callable[[Resources, Any], object], one: Any) -> Callable[[Resources], object]:
    def perform(client: Resources) -> None:
        # It has just been read: someone else deleted it, or the answer to this call's first try was lost.
        with suppress(ServiceNotFoundError):
            delete(client, one)

    return perform
