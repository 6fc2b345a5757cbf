"""Template fields that are not as others: secrets, which are never shown, and texts that are left as they are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any


class Sealed:
    """A rendered value that shows nothing of itself wherever Airflow shows rendered fields."""

    def __init__(self, value: Any) -> None:
        self._value = value

    def reveal(self) -> Any:
        """Return the value."""
        return self._value

    def __repr__(self) -> str:
        return "***"


class SealedFieldsMixin:
    """For operators with template fields that hold secrets.

    Airflow stores the rendered fields before the task executes, so a secret must be hidden as soon as it is rendered.
    """

    #: Template fields whose rendered values are hidden.
    sealed_fields: Sequence[str] = ()

    def _do_render_template_fields(self, parent: Any, *args: Any, **kwargs: Any) -> None:
        # The one method that both plain and mapped tasks render with.
        super()._do_render_template_fields(parent, *args, **kwargs)  # type: ignore[misc]
        for name in self.sealed_fields:
            value = getattr(parent, name)
            if value is not None and not isinstance(value, Sealed):
                mask_all(value)
                setattr(parent, name, Sealed(value))


class VerbatimFieldsMixin:
    """For operators with template fields whose texts have braces of their own.

    Another task's output in such a field is resolved; texts are not rendered.
    """

    #: Template fields whose texts are left as they are.
    verbatim_fields: Sequence[str] = ()

    def _do_render_template_fields(self, parent: Any, *args: Any, **kwargs: Any) -> None:
        for name in self.verbatim_fields:
            setattr(parent, name, _with_literal_texts(getattr(parent, name)))
        super()._do_render_template_fields(parent, *args, **kwargs)  # type: ignore[misc]


def _with_literal_texts(value: Any) -> Any:
    from airflow.providers.common.compat.sdk import literal

    if isinstance(value, str):
        return literal(value)
    if isinstance(value, dict):
        return {name: _with_literal_texts(inner) for name, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_with_literal_texts(inner) for inner in value]
    return value


def revealed(value: Any) -> Any:
    """Return what was sealed, or the value itself when the task was executed without rendering."""
    return value.reveal() if isinstance(value, Sealed) else value


def mask_all(value: Any) -> None:
    """Hide every text inside a value from the task's logs."""
    from airflow_provider_service._compat import mask_secret

    for text in _texts(value):
        mask_secret(text)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from _texts(inner)
    elif isinstance(value, Sequence):
        for inner in value:
            yield from _texts(inner)
