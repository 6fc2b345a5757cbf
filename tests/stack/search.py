"""Searches for secrets in everything that a deployment leaves behind: files, and every column of the database."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import quote

from cryptography.fernet import Fernet, InvalidToken, MultiFernet

from .deployment import Deployment

_TEXTS = ("character varying", "text", "json", "jsonb", "bytea", "ARRAY", "USER-DEFINED")
_FERNET_PREFIX = "gAAAAA"


def in_files(folder: Path, secrets: Mapping[str, str]) -> list[str]:
    """Where the files below a folder hold a secret: ``path: name of the secret``."""
    needles = {name: [form.encode() for form in _forms(value)] for name, value in secrets.items()}
    found = []
    for file in sorted(folder.rglob("*")):
        if not file.is_file():
            continue
        content = file.read_bytes()
        found += [
            f"{file.relative_to(folder)}: {name}"
            for name, forms in needles.items()
            if any(form in content for form in forms)
        ]
    return found


def in_database(deployment: Deployment, secrets: Mapping[str, str]) -> list[str]:
    """Where the database holds a secret, as it is and decrypted: ``table.column: name of the secret``."""
    needles = {name: _forms(value) for name, value in secrets.items()}
    keys = deployment.settings.environment()["AIRFLOW__CORE__FERNET_KEY"].split(",")  # a test changes them
    cipher = MultiFernet([Fernet(key) for key in keys])
    found = set()
    for place, value in _values(deployment):
        plain = _decrypted(cipher, value)
        for name, forms in needles.items():
            if any(_json_text(form) in value for form in forms):
                found.add(f"{place}: {name}")
            if plain is not None and any(form in plain for form in forms):
                found.add(f"{place}, encrypted: {name}")
    return sorted(found)


def _json_text(text: str) -> str:
    """A text as it appears inside a JSON text."""
    return json.dumps(text)[1:-1]


def _forms(secret: str) -> list[str]:
    """A secret as it is, and as part of an address."""
    return sorted({secret, quote(secret, safe="")})


def _values(deployment: Deployment) -> Iterator[tuple[str, str]]:
    columns = deployment.query(
        "SELECT table_name, column_name, data_type FROM information_schema.columns"
        " WHERE table_schema = 'public' ORDER BY 1, 2"
    )
    for table, column, kind in columns:
        if kind not in _TEXTS:
            continue
        value = f"encode(\"{column}\", 'escape')" if kind == "bytea" else f'"{column}"::text'
        # As JSON, a value is one line and says where it ends.
        for line in deployment.lines(f'SELECT to_json({value})::text FROM "{table}" WHERE "{column}" IS NOT NULL'):
            yield f"{table}.{column}", line


def _decrypted(cipher: MultiFernet, value: str) -> str | None:
    text = json.loads(value)
    if not isinstance(text, str) or not text.startswith(_FERNET_PREFIX):
        return None
    try:
        return cipher.decrypt(text.encode()).decode()
    except InvalidToken:
        return None
