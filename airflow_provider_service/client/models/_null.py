"""JSON null as an argument."""

from __future__ import annotations

from enum import Enum
from typing import Final


class Null(Enum):
    """The type of ``NULL``."""

    NULL = "null"


#: Sends JSON null where null has a meaning for the service; an argument of None is not sent at all.
NULL: Final = Null.NULL
