"""Archives in which any value was replaced by any other, signed anew: each can be planned, or is refused by name."""

from __future__ import annotations

import copy
import io
import json
import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from airflow_provider_service._core.instances.backup_archive import ArchiveReader
from airflow_provider_service._core.instances.restore import Restore
from airflow_provider_service._core.instances.restore_reading import read_backup
from airflow_provider_service.client import ServiceClient
from airflow_provider_service.client.errors import ServiceError, ServiceInputError

from .test_backup_archives import Members, members, packed, signed

__all__ = ["members"]

SEED, MUTATIONS = 20260131, 600
VALUES: list[Any] = [
    *(None, True, False, 0, -1, 2**63, 10**400, 1e308, "", " ", "x", "x" * 300, "../../x", "\ud800", "={{ 1 }}"),
    *([], [None], [[]], [1], ["x"], {}, {"": None}, {"name": None}, {"name": {"name": 1}}, {"id": []}, [{"name": []}]),
]


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths of all values within a value."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in inner:
        yield (*path, key)
        yield from places(one, (*path, key))


def mutated(value: Any, draw: random.Random) -> Any:
    """A copy in which one to three values are gone, twice there, renamed or others."""
    value = copy.deepcopy(value)
    for _ in range(draw.choice((1, 1, 2, 3))):
        found = list(places(value))
        if not found:
            return value
        *above, last = draw.choice(found)
        parent = value
        for key in above:
            parent = parent[key]
        change = draw.randrange(5)
        if change == 0:
            del parent[last]
        elif change == 1 and isinstance(parent, list):
            parent.append(copy.deepcopy(parent[last]))
        elif change == 2 and isinstance(parent, dict):
            parent[draw.choice(("", "x", "name", "id", "__rl", "nodes", "../x"))] = parent.pop(last)
        else:
            parent[last] = copy.deepcopy(draw.choice(VALUES))
    return value


def changed(members: Members, draw: random.Random) -> Members:
    """The members of which one is mutated, or renamed."""
    name = draw.choice(sorted(members))
    if name == "manifest.json":
        return {**members, name: json.dumps(mutated(json.loads(members[name]), draw)).encode()}
    if name.endswith(".jsonl"):
        lines = [json.dumps(mutated(json.loads(line), draw)) for line in members[name].decode().split("\n") if line]
        return signed({**members, name: "\n".join(lines).encode()})
    if draw.randrange(20) == 0:
        other = {**members, draw.choice(("../x.json", "workflows/x.json", "x", "workflows/")): members[name]}
        return signed({one: data for one, data in other.items() if one != name})
    return signed({**members, name: json.dumps(mutated(json.loads(members[name]), draw)).encode()})


def fate(data: bytes, client: ServiceClient) -> str:
    """How reading and planning a restore ends; anything but a named error fails the test."""
    try:
        backup = read_backup(ArchiveReader(io.BytesIO(data)))
    except ServiceInputError as error:
        str(error).encode()
        return "refused"
    try:
        Restore(client, backup, "update").plan().lines()
    except ServiceError:
        return "refused in the plan"
    return "planned"


@pytest.mark.slow
def test_every_mutated_archive_is_planned_or_refused_by_name(members: Members, second_client: ServiceClient) -> None:
    draw, fates = random.Random(SEED), Counter[str]()
    for number in range(MUTATIONS):
        try:
            fates[fate(packed(changed(members, draw)), second_client)] += 1
        except Exception as error:
            error.add_note(f"mutation {number}")
            raise
    assert fates.total() == MUTATIONS
    assert min(fates["refused"], fates["refused in the plan"], fates["planned"]) > 0, fates
    print(dict(fates))
