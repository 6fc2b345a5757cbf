"""The changes that bring an instance to its desired state, and what may be deleted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from airflow_provider_service._airflow.arguments import as_texts, refuse, require, require_source
from airflow_provider_service.client.errors import ServiceNotFoundError

if TYPE_CHECKING:
    from airflow_provider_service.client._client import Resources

Action = Literal["create", "update", "delete"]
_MAX_NAMED = 20


@dataclass(frozen=True)
class DesiredStateChange:
    """A change that brings one object to its declared state. It shows no secrets.

    :param name: name of the object.
    :param details: the parts of the object that change.
    :param perform: makes the change. Safe to repeat.
    """

    action: Action
    name: str
    details: Mapping[str, Any] = field(default_factory=dict)
    perform: Callable[[Resources], object] = field(default=lambda _: None, repr=False, compare=False)

    def to_xcom(self) -> dict[str, Any]:
        """Return the change as a task returns it."""
        return {"action": self.action, "name": self.name, **self.details}

    def words(self) -> str:
        """Describe the change in words."""
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
        """Return how many objects are created, updated or deleted."""
        return sum(change.action == action for change in self.changes)


@dataclass(frozen=True)
class Prune:
    """Selects objects to delete unless they are declared: by exact names or a prefix, but never all objects.

    :param names: exact names.
    :param prefix: the prefix of names; None for none.
    :param allow_empty: whether the prefix selects objects even if none is declared.
    """

    names: frozenset[str] = frozenset()
    prefix: str | None = None
    allow_empty: bool = False

    @classmethod
    def of(cls, prune: bool, names: object, prefix: object, *, allow_empty: bool) -> Prune:
        """Read the arguments ``prune``, ``prune_names`` and ``prune_prefix``.

        :raises ServiceInputError: ``prune`` is True without names or a prefix, or False with some.
        """
        is_named = names is not None or prefix is not None
        require(is_named or not prune, "prune=True needs prune_names or prune_prefix: nothing else is ever deleted")
        require(prune or not is_named, "prune_names and prune_prefix have no effect without prune=True")
        if prefix is not None and (not isinstance(prefix, str) or not prefix.strip()):
            refuse("prune_prefix", "text that is not empty", prefix)
        return cls(frozenset(() if names is None else as_texts("prune_names", names)), prefix, allow_empty)

    def deletions(
        self, existing: Iterable[Any], desired: Iterable[str], delete: Callable[[Resources, Any], object]
    ) -> list[DesiredStateChange]:
        """Return the deletion of each selected object that is not declared.

        :param existing: the existing objects; each has a name.
        :param delete: deletes an object. If the object no longer exists, the error is ignored.
        :raises ServiceInputError: a name is both declared and one of the names to delete, or nothing is declared and
            the prefix selects objects.
        """
        kept = set(desired)
        both = sorted(self.names & kept)
        require(not both, f"prune_names holds {', '.join(map(repr, both))}, which is declared as well")
        taken = [one for one in existing if name_of(one) not in kept and self._takes(name_of(one))]
        by_prefix = [repr(name_of(one)) for one in taken if name_of(one) not in self.names]
        require_source(
            kept or not by_prefix,
            "nothing is declared",
            f"prune_prefix={self.prefix!r} would delete {', '.join(by_prefix[:_MAX_NAMED])}"
            + (f" and {len(by_prefix) - _MAX_NAMED} more" if len(by_prefix) > _MAX_NAMED else ""),
            allow_empty=self.allow_empty,
        )
        return [DesiredStateChange("delete", name_of(one), perform=_deleting(delete, one)) for one in taken]

    def _takes(self, name: str) -> bool:
        return name in self.names or (self.prefix is not None and name.startswith(self.prefix))


def name_of(one: Any) -> str:
    """Return the name of an object; for a variable, that is its key."""
    return str(one.key if hasattr(one, "key") else one.name)


def _deleting(delete: Callable[[Resources, Any], object], one: Any) -> Callable[[Resources], object]:
    def perform(client: Resources) -> None:
        # It has just been read: someone else deleted it, or the answer to this call's first try was lost.
        with suppress(ServiceNotFoundError):
            delete(client, one)

    return perform
