"""Ids, which users of the service can choose as freely as names: what one must be to become part of something else.

A model keeps the id that the service sent, whatever it is, so that one odd object does not make a list unusable. What
an id becomes part of is built only of ids that pass here: paths and members of archives, addresses, definitions.
"""

from __future__ import annotations

import re

from airflow_provider_service.client._texts import shown
from airflow_provider_service.client.errors import ServiceInputError

#: Characters of an id, or of a name in its place, at most.
MAX_ID_CHARS = 300

# Compiled when they are first used, since every DAG file imports this module.
# Whatever the service generates: 16 letters and digits, UUIDs, numbers; and plain ids that people choose.
_PLAIN = r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,99}"
# What else the service takes in place of an id: names of roles and packages, and e-mail addresses.
_NAME = r"(@[A-Za-z0-9~_-][A-Za-z0-9._~-]*/)?[A-Za-z0-9~_-][A-Za-z0-9._~:-]*"
_SIDE_OF_EMAIL = r"[^\s./\\%?#;@\x00-\x1f\x7f][^\s/\\%?#;@\x00-\x1f\x7f]*"
_EMAIL = f"{_SIDE_OF_EMAIL}@{_SIDE_OF_EMAIL}"


def is_plain_id(value: object) -> bool:
    """Whether an id is letters, digits, ``-``, ``_`` and ``.``, does not begin with ``.``, and has 100 at most."""
    return isinstance(value, str) and re.fullmatch(_PLAIN, value) is not None


def plain_id(value: str) -> str:
    """Return an id that can become part of anything.

    :raises ServiceInputError: it is not plain; see :func:`is_plain_id`.
    """
    if not is_plain_id(value):
        raise ServiceInputError(f"{shown(value)} {NOT_PLAIN}")
    return value


def is_addressable(value: str) -> bool:
    """Whether a text can be a segment of an address: a plain id, the name of a role or package, an e-mail address."""
    is_one = is_plain_id(value) or re.fullmatch(_NAME, value) or re.fullmatch(_EMAIL, value)
    return bool(is_one) and len(value) <= MAX_ID_CHARS


#: Why an id is refused.
NOT_PLAIN = (
    "cannot be used as an id: the service makes ids of letters, digits, '-', '_' and '.', and others could lead out of "
    "a folder or to another address"
)
