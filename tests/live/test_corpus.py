"""The corpus on a real server and on a simulator of its version, side by side: what each makes of a file is the same.

Both hold the credentials of the corpus, and none of the others that its workflows name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from airflow_provider_service.simulator import ServiceSimulator
from tests.corpus.outcomes import Outcome, PlainService
from tests.corpus.workflows import corpus, existing

from .conftest import MakeServer

#: The servers that were compared.
COMPARED = ("2.41", "2.20")
#: Fields of credentials without which an older server creates none.
_OLDER_FIELDS = {"openAiApi": {"header": False}, "slackApi": {"signatureSecret": "s"}}


class Difference(NamedTuple):
    """What the simulator is known to answer otherwise; patterns of what the real server and the simulator say."""

    real: str
    simulator: str
    reason: str
    servers: tuple[str, ...] = COMPARED


KNOWN = (
    Difference(
        r"^created: .*unknown_connection_target",
        r"^created: .*\(custom\): Unknown target node",
        "Both refuse a connection to nowhere; the simulator has the words of another version.",
        ("2.41",),
    ),
    Difference(
        r"^created: .*must (NOT have additional properties|be equal to one of the allowed values)",
        r"^created: \(400",
        "An older server has other words for what its document does not allow.",
        ("2.20",),
    ),
    Difference(
        r"^created: .*settings must NOT have additional properties",
        r"^created: \(200",
        "An older server does not know the setting binaryMode.",
        ("2.20",),
    ),
)


def differences(real: Outcome, simulated: Outcome) -> Iterator[tuple[str, str]]:
    """What differs in two outcomes: what the real server said or holds, and the simulator, as text."""
    if real.created[0] != simulated.created[0] or None in (real.stored, simulated.stored):
        answers = [("created", real.created, simulated.created)]
    else:
        answers = [("published", real.published, simulated.published)]
    yield from ((f"{what}: {one}", f"{what}: {other}") for what, one, other in answers if one != other)
    if real.stored and simulated.stored:
        for key in real.stored:
            for one, other in _parts(key, real.stored[key], simulated.stored[key]):
                yield f"stored {key}: {one}", f"stored {key}: {other}"


def _parts(key: str, real: Any, simulated: Any) -> Iterator[tuple[Any, Any]]:
    """Only the nodes that differ, and of these only the keys that do."""
    if key != "nodes":
        yield from [(real, simulated)] * (real != simulated)
        return
    for one, other in zip(real, simulated, strict=True):
        keys = sorted(key for key in one.keys() | other.keys() if one.get(key) != other.get(key))
        if keys:
            yield tuple({"type": node["type"], **{key: node.get(key) for key in keys}} for node in (one, other))


@pytest.mark.slow
def test_each_file_is_refused_stored_and_published_as_a_real_server_does(
    make_server: MakeServer, live_generation: Any
) -> None:
    if live_generation.name not in COMPARED:
        pytest.skip("this server has not been compared")
    known = [difference for difference in KNOWN if live_generation.name in difference.servers]
    seen, unexplained = set[Difference](), []
    with make_server() as server, ServiceSimulator() as simulator:
        simulator.version = server.version
        services = [PlainService(one.base_url, one.api_key) for one in (server, simulator)]
        state = simulator.state
        for kind, name, data in existing():
            services[0].create_credential(kind, name, {**data, **_OLDER_FIELDS.get(kind, {})})
            state.credentials.add(name, kind, data, state.personal_project_id)
        for sample in corpus():
            outcomes = [service.outcome(sample.file, sample.definition) for service in services]
            for texts in differences(*outcomes):
                explained = [
                    one for one in known if re.search(one.real, texts[0]) and re.search(one.simulator, texts[1])
                ]
                seen |= {*explained}
                if not explained:
                    unexplained.append((sample.file, sample.shapes, sample.fault, *texts))
    assert unexplained == []
    assert [difference for difference in known if difference not in seen] == []
