"""Which ids may become part of a path or an address. Users of the service can choose ids as freely as names.

A model keeps whatever id the service sent, so that one odd object does not make a list unusable. Only ids that pass the
checks of this module become part of the path of a file, a member of an archive, an address or a definition.
"""

from __future__ import annotations

import re

from airflow_provider_service.client._texts import shown
from airflow_provider_service.client.errors import ServiceInputError

#: How many characters an id, or a name in its place, may have.
MAX_ID_CHARS = 300

# Compiled when they are first used, since every DAG file imports this module.
# Ids that the service generates (16 letters and digits, UUIDs, numbers), and plain ones that people choose.
_PLAIN = r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,99}"
# What the service also accepts in place of an id: names of roles and packages, and e-mail addresses.
_NAME = r"(@[A-Za-z0-9~_-][A-Za-z0-9._~-]*/)?[A-Za-z0-9~_-][A-Za-z0-9._~:-]*"
_SIDE_OF_EMAIL = r"[^\s./\\%?#;@\x00-\x1f\x7f][^\s/\\%?#;@\x00-\x1f\x7f]*"
_EMAIL = f"{_SIDE_OF_EMAIL}@{_SIDE_OF_EMAIL}"


def is_plain_id(value: object) -> bool:
    """Whether an id has 1 to 100 letters, digits, ``-``, ``_`` and ``.``, and does not begin with ``.``."""
    return isinstance(value, str) and re.fullmatch(_PLAIN, value) is not None


def plain_id(value: str) -> str:
    """Return an id if it can become part of a path or an address.

    :raises ServiceInputError: it is not plain; see :func:`is_plain_id`.
    """
    if not is_plain_id(value):
        raise ServiceInputError(f"{shown(value)} {NOT_PLAIN}")
    return value


def is_addressable(value: str) -> bool:
    """Whether a text can be a segment of an address: a plain id, name of a role or package, or e-mail address."""
    is_one = is_plain_id(value) or re.fullmatch(_NAME, value) or re.fullmatch(_EMAIL, value)
    return bool(is_one) and len(value) <= MAX_ID_CHARS


#: Why an id is refused.
NOT_PLAIN = (
    "cannot be used as an id: the service's ids consist of letters, digits, '-', '_' and '.'; others could lead out of "
    "a folder or to another address"
)
