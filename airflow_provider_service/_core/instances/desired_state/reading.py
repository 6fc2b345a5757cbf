"""Read the desired state from values, from text in YAML or JSON, or from a file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from airflow_provider_service._airflow.arguments import refuse, repeated, require
from airflow_provider_service._core.instances.desired_state.text import parsed
from airflow_provider_service.client._http.redaction import hidden
from airflow_provider_service.client._values import type_of
from airflow_provider_service.client.errors import ServiceInputError


def read_desired_state(name: str, value: object, path: object, *, path_argument: str = "path") -> Any:
    """Read the desired state from an argument, or else from a file.

    :param name: the argument, for messages. No message shows a value, which may be a secret.
    :param value: a mapping or a list, or text in YAML or JSON.
    :param path: path or address of a file with such text.
    :param path_argument: the argument with the path, for messages.
    :raises ServiceInputError: there is no text, or it cannot be read; the message says where.
    """
    if value is not None:
        return parsed(name, value) if isinstance(value, str) else value
    if not isinstance(path, str):
        refuse(path_argument, "a path or an address of object storage", path)
    from airflow_provider_service._core.object_storage import reading

    try:
        with reading(path_argument, path) as file:
            text = hidden(file.read().decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise ServiceInputError(f"the file {path!r} is not UTF-8 text") from None
    except OSError as error:
        raise ServiceInputError(f"the file {path!r} cannot be read: {error.strerror or error}") from error
    return parsed(f"the file {path!r}", text)


def named_values(name: str, value: object) -> Mapping[str, Any]:
    """Return the desired state, which must map names to values.

    :raises ServiceInputError: it does not.
    """
    require(isinstance(value, Mapping), f"{name} must be a mapping of names, not {type_of(value)}")
    assert isinstance(value, Mapping)  # noqa: S101 - for type checkers
    return dict(zip(names_in(name, list(value)), value.values(), strict=True))


def require_short(kind: str, names: Iterable[str], max_chars: int) -> None:
    """Refuse names that the service would refuse.

    :raises ServiceInputError: a name is too long.
    """
    too_long = [name for name in names if len(name) > max_chars]
    require(not too_long, f"the name of a {kind} has at most {max_chars} characters: {', '.join(map(repr, too_long))}")


def names_in(name: str, names: Sequence[object]) -> list[str]:
    """Return declared names without surrounding blanks, which the service removes as well.

    :raises ServiceInputError: a name is not text, is empty, or occurs twice.
    """
    for one in names:
        if not isinstance(one, str) or not one.strip():
            refuse(f"each name in {name}", "text that is not empty", one)
    stripped = [str(one).strip() for one in names]
    twice = sorted(repeated(stripped))
    require(not twice, f"{name} has {', '.join(map(repr, twice))} more than once")
    return stripped
