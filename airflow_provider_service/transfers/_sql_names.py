"""Check the names of a database's tables and columns, which become part of a statement."""

from __future__ import annotations

import re

from airflow_provider_service._airflow.arguments import refuse

# A "#" begins the names of temporary tables, and elsewhere a comment of MySQL; "--" is a comment everywhere.
_PLAIN = r"#{0,2}[\w$]+(?:-[\w$]+)*"
_QUOTED = r'"(?:[^"\0]|"")+"', r"`(?:[^`\0]|``)+`", r"\[(?:[^\]\0]|\]\])+\]"
_PART = f"(?:{'|'.join((_PLAIN, *_QUOTED))})"
_TABLE = re.compile(rf"{_PART}(?:(?:\.{_PART}?){{0,2}}\.{_PART})?")
# The hook of the database quotes names with special characters, but not names that contain quotes.
_COLUMN = re.compile(rf"[\w $#@.-]+|{'|'.join(_QUOTED)}")


def require_table_name(name: str, value: object) -> None:
    """Refuse text that is not the name of a table: up to four words with dots between them, plain or quoted.

    A word in the middle may be left out, as in ``mydb..sales``.

    :param name: the argument.
    :raises ServiceInputError: the value is not such a name.
    """
    if not isinstance(value, str) or not _TABLE.fullmatch(value):
        refuse(name, 'the name of a table such as shop.sales, with words such as "Sales 2026" in quotes', value)


def words_of(table: str) -> list[str]:
    """The words of a table's name, without quotes."""
    words = re.findall(_PART, table)
    return [one[1:-1].replace(one[-1] * 2, one[-1]) if one[0] in '"`[' else one for one in words]


def require_column_name(name: str, value: object) -> None:
    """Refuse text that is not the name of a column: words without punctuation, or in quotes.

    :param name: the argument.
    :raises ServiceInputError: the value is not such a name.
    """
    if not isinstance(value, str) or not _COLUMN.fullmatch(value):
        refuse(name, "the name of a column", value)
