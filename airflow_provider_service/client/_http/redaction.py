"""Remove secrets from values that are shown."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any

HIDDEN = "***"
# A shorter text occurs in too many places by chance, so it is hidden only under its own name.
MIN_CHARS = 5
_SCHEMES = frozenset({"apikey", "basic", "bearer", "token"})


class HiddenText(str):
    """Text that its repr does not show, because tracebacks with local variables show the reprs of values and dicts."""

    __slots__ = ()

    def __repr__(self) -> str:
        return repr(HIDDEN)


class HiddenBytes(bytes):
    __slots__ = ()

    def __repr__(self) -> str:
        return repr(HIDDEN.encode())


def hidden(value: Any) -> Any:
    """Copy a JSON value so that its repr does not show its texts."""
    if isinstance(value, str):
        return HiddenText(value)
    if isinstance(value, Mapping):
        return {name: hidden(inner) for name, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [hidden(inner) for inner in value]
    return value


def secrets_in(header: str) -> list[str]:
    """The possible secrets in a header's value: the whole value, and what follows a scheme such as "Bearer"."""
    scheme, _, credentials = header.partition(" ")
    return [header, credentials] if scheme.lower() in _SCHEMES else [header]


def masked(text: str, *secrets: str | None) -> str:
    for secret in filter(None, secrets):
        text = text.replace(secret, HIDDEN)
    return text


#: Texts to hide, by name.
Secrets = Mapping[str, Collection[str]]
#: A signed token (JWT).
SIGNED = r"(?<![\w-])eyJ[\w-]{8,}+\.[\w-]++\.[\w-]++"
# Names of credentials that these issuers put before a random text, which has at least one digit.
_ISSUED = (
    r"(?:[spr]k_(?:live|test)|whsec|gh[opsur]|github_pat|npm|hf|gsk|r8|ntn|secret|lin_api|n8n_api|glsa|sbp|do[opr]_v1"
    r"|shp(?:at|ca|pa|ss))_|(?:sk|xox[a-z]|xoxe\.xox[bp]|xapp|xai|pplx|pypi|gl(?:pat|ptt|dt|rt|cbt|ft)|xkeysib|PMAK"
    r"|NRAK|GOCSPX|pat-(?:na|eu)\d|key)-|AIza|ya29\.|1//0|dapi|hvs\.|EAA"
)
#: Tokens of well-known issuers, wherever they stand in a text. The secret of a key of AWS has no shape of its own.
TOKENS = "|".join(
    [
        SIGNED,
        rf"(?<![A-Za-z0-9])(?:{_ISSUED})(?=[\w-]{{0,80}}\d)[\w-]{{15,}}+",
        r"(?:AKIA|ASIA)[A-Z0-9]{16}(?:.{1,80}?(?<![\w/+])[\w/+]{40}(?![\w/+=]))?",
        r"(?<![\w-])SG\.[\w-]{16,}+\.[\w-]{16,}+",  # SendGrid
        r"(?<!\d)\d{6,12}:AA[\w-]{20,}+",  # a bot of Telegram
        r"\b(?:SK|AC)[0-9a-f]{32}\b",  # Twilio
        r"\b[0-9a-f]{32}-us\d{1,2}\b",  # Mailchimp
        r"\bpat\w{14}\.[0-9a-f]{32,}+",  # Airtable
    ]
)


def redacted(value: Any, secrets: Secrets, *, doubtful: Secrets | None = None, shapes: Collection[str] = ()) -> Any:
    """Copy a JSON value with its secrets hidden: wherever a secret occurs, and everything under a secret's name.

    The names of doubtful secrets may also belong to something harmless: a value under such a name is hidden only if it
    is one of these secrets, however short. Shapes are regular expressions of texts to hide.
    """
    names = frozenset(name.lower() for name in secrets)
    exact = {name.lower(): many for name, many in (doubtful or {}).items()}
    # The longest first, because one secret can be part of another.
    texts = {text for many in (*secrets.values(), *exact.values()) for text in many if len(text) >= MIN_CHARS}
    hidden = "|".join([*map(re.escape, sorted(texts, key=len, reverse=True)), *shapes])
    return _redacted(value, names, exact, re.compile(hidden or r"(?!)"))


def _redacted(value: Any, names: Collection[str], exact: Secrets, hidden: re.Pattern[str]) -> Any:
    if isinstance(value, Mapping):
        return {
            hidden.sub(HIDDEN, name): HIDDEN
            if name.lower() in names or inner in exact.get(name.lower(), ())
            else _redacted(inner, names, exact, hidden)
            for name, inner in value.items()
        }
    if isinstance(value, list):
        return [_redacted(inner, names, exact, hidden) for inner in value]
    return hidden.sub(HIDDEN, value) if isinstance(value, str) else value
