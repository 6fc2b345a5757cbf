"""What users may import, and with which signatures, changes only where somebody meant it."""

from __future__ import annotations

from scripts.public_names import PACKAGE, STORED, lines, public_modules, public_names


def test_the_public_names_and_signatures_are_those_that_are_stored() -> None:
    remedy = "if this change is intended, run python -m scripts.public_names --write, and add an entry to CHANGELOG.md"
    assert list(lines()) == STORED.read_text().splitlines(), remedy


def test_every_public_module_says_what_is_public() -> None:
    packages = {name for name in public_modules() if any(one.startswith(f"{name}.") for one in public_modules())}
    silent = set(public_modules()) - set(public_names()) - packages

    assert silent == set()


def test_names_of_the_testing_kit_and_the_client_are_public() -> None:
    names = public_names()

    assert names[f"{PACKAGE}.client"] == ["ServiceClient", "ServiceConfig"]
    assert "run_task" in names[f"{PACKAGE}.testing"]
    assert f"{PACKAGE}.client._http" not in names
