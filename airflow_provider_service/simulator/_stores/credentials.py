"""Credentials, the types that the simulator knows, and what the data of each must be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from airflow_provider_service.simulator._host import Host
from airflow_provider_service.simulator._stores.projects import ProjectStore
from airflow_provider_service.simulator._validation import ApiError, is_at_least

UNTESTABLE = frozenset({"httpHeaderAuth", "httpBasicAuth", "httpBearerAuth", "httpQueryAuth", "jwtAuth"})


class CredentialStore:
    """``types`` may be extended. ``test_outcomes`` has (status, message) by a credential's id or type."""

    def __init__(self, host: Host, projects: ProjectStore) -> None:
        self._host = host
        self._projects = projects
        self._credentials: dict[str, dict[str, Any]] = {}
        self._data: dict[str, dict[str, Any]] = {}
        self._owners: dict[str, tuple[str, str]] = {}
        self.types = default_types()
        self.test_outcomes: dict[str, tuple[str, str]] = {}

    def all(self) -> Sequence[dict[str, Any]]:
        """Every credential, newest first."""
        return list(reversed(self._credentials.values()))

    def find(self, credential_id: str) -> dict[str, Any] | None:
        return self._credentials.get(credential_id)

    def get(self, credential_id: str) -> dict[str, Any]:
        credential = self._credentials.get(credential_id)
        if credential is None:
            raise ApiError(404, "Credential not found")
        return credential

    def data(self, credential_id: str) -> dict[str, Any]:
        """The secret data, for tests: no endpoint returns it."""
        return self._data[self.get(credential_id)["id"]]

    def shared(self, credential_id: str) -> list[dict[str, Any]]:
        project_id, since = self._owners[credential_id]
        project = self._projects.get(project_id)
        owner = {"id": project_id, "name": project["name"], "role": "credential:owner"}
        return [{**owner, "createdAt": since, "updatedAt": since}]

    def schema(self, type_name: str) -> dict[str, Any]:
        if type_name not in self.types:
            raise ApiError(404, "Not Found")
        return as_published(self.types[type_name], self._host.version)

    def create(
        self,
        name: str,
        type_name: str,
        data: Mapping[str, Any],
        *,
        project_id: str | None = None,
        resolvable: bool = False,
    ) -> dict[str, Any]:
        self._check_data(type_name, data)
        project = self._projects.get(project_id or self._host.personal_project_id)
        self._check_resolvable(project["id"], resolvable)
        credential = self.add(name, type_name, data, project["id"])
        credential["isResolvable"] = resolvable
        return credential

    def add(
        self, name: str, type_name: str, data: Mapping[str, Any], project_id: str, *, credential_id: str | None = None
    ) -> dict[str, Any]:
        """Store a credential without checks, as an import does with a stub that has no data yet."""
        now = self._host.stamp()
        credential: dict[str, Any] = {
            "id": credential_id or self._host.new_id(),
            "name": name,
            "type": type_name,
            "isManaged": False,
            "isGlobal": False,
            "isResolvable": False,
            "resolvableAllowFallback": False,
            "resolverId": None,
            "createdAt": now,
            "updatedAt": now,
        }
        self._credentials[credential["id"]] = credential
        self._data[credential["id"]] = dict(data)
        self._owners[credential["id"]] = (project_id, now)
        return credential

    def update(self, credential_id: str, change: Mapping[str, Any]) -> dict[str, Any]:
        credential = self.get(credential_id)
        type_name = change.get("type", credential["type"])
        data = change.get("data")
        if change.get("isGlobal") and not self._host.licensed:
            raise ApiError(403, "You are not licensed for sharing credentials")
        self._check_resolvable(self._owners[credential_id][0], change.get("isResolvable", False))
        if type_name not in self.types:
            raise ApiError(400, "req.body.type is not a known type")
        if type_name != credential["type"] and data is None:
            raise ApiError(
                400,
                "req.body.data is required when changing credential type. "
                "The existing data cannot be used with the new type.",
            )
        if data is not None:
            data = {**(self._data[credential_id] if change.get("isPartialData") else {}), **data}
            self._check_data(type_name, data)
            # Only checked for an update that has data: the service creates and renames credentials with any name.
            if not 3 <= len(change.get("name", credential["name"])) <= 128:
                raise ApiError(400, "Credential name must be 3 to 128 characters long.")
            self._data[credential_id] = data
        changed = {key: change[key] for key in ("name", "type", "isGlobal", "isResolvable") if key in change}
        credential.update(changed, updatedAt=self._host.stamp())
        return credential

    def delete(self, credential_id: str) -> dict[str, Any]:
        if credential_id not in self._credentials:
            raise ApiError(404, "Not Found")
        del self._data[credential_id], self._owners[credential_id]
        return self._credentials.pop(credential_id)

    def test(self, credential_id: str) -> tuple[str, str]:
        credential = self._credentials.get(credential_id)
        if credential is None:
            raise ApiError(404, f'Credential with ID "{credential_id}" was not found.')
        outcome = self.test_outcomes.get(credential_id) or self.test_outcomes.get(credential["type"])
        if outcome:
            return outcome
        if credential["type"] in UNTESTABLE:
            return "Error", "No testing function found for this credential."
        return "OK", "Connection successful!"

    def transfer(self, credential_id: str, project_id: str) -> None:
        if credential_id not in self._credentials:
            text = f'Could not find the credential with the id "{credential_id}". '
            raise ApiError(404, text + "Make sure you have the permission to move it.")
        if self._projects.find(project_id) is None:
            text = f'Could not find project with the id "{project_id}". '
            raise ApiError(404, text + "Make sure you have the permission to create credentials in it.")
        if self._owners[credential_id][0] == project_id:
            raise ApiError(400, "You can't transfer a credential into the project that's already owning it.")
        self._owners[credential_id] = (project_id, self._host.stamp())

    def found_for(self, nodes: Sequence[dict[str, Any]], project_id: str) -> list[dict[str, Any]]:
        """Nodes with ids for the credentials that they name by name alone, or by an unknown id, if only one has it."""
        missing: set[tuple[str, str]] = set()

        def reference(kind: str, value: Any) -> Any:
            if value is None:
                return None
            named = {"id": None, "name": value} if isinstance(value, str) else value if isinstance(value, dict) else {}
            of_type = [credential for credential in self._credentials.values() if credential["type"] == kind]
            # A quirk: without this key, the first credential of the type is taken, whatever its name.
            meant = next((each for each in of_type if named.get("id", each["id"]) == each["id"]), None)
            if meant is None:
                of_name = [credential for credential in of_type if credential["name"] == named.get("name")]
                in_project = [each for each in of_name if self._owners[each["id"]][0] == project_id]
                meant = in_project[0] if len(in_project) == 1 else None
            if meant is not None:
                return {"id": meant["id"], "name": meant["name"]}
            key = (kind, str(named.get("name")))
            # Another quirk: only the first of several nodes keeps the text.
            is_repeated = named.get("id") is None and key in missing
            missing.add(key)
            return named if is_repeated else value

        resolved = []
        for node in nodes:
            if isinstance(node.get("credentials"), dict) and not node.get("disabled"):
                references = {kind: reference(kind, value) for kind, value in node["credentials"].items()}
                node = {**node, "credentials": references}
            resolved.append(node)
        return resolved

    def delete_project(self, project_id: str) -> None:
        for credential_id, (owner, _) in list(self._owners.items()):
            if owner == project_id:
                self.delete(credential_id)

    def _check_resolvable(self, project_id: str, wanted: bool) -> None:
        if wanted and self._projects.get(project_id)["type"] == "personal":
            raise ApiError(403, "End-user credentials are not available in personal projects")

    def _check_data(self, type_name: str, data: Mapping[str, Any]) -> None:
        schema = self.types.get(type_name)
        if schema is None:
            raise ApiError(400, "req.body.type is not a known type")
        check_data(data, as_published(schema, self._host.version))


# ---------------------------------------------------------------- types and their data

_TEXT = {"type": "string"}
_DOMAINS = {
    "allowedHttpRequestDomains": {"type": "string", "enum": ["all", "domains", "none"]},
    "allowedDomains": _TEXT,
}
_JWT_ALGORITHMS = (*(f"{kind}{size}" for kind in ("HS", "RS", "ES", "PS") for size in (256, 384, 512)), "none")


def _schema(properties: dict[str, Any], *required: str) -> dict[str, Any]:
    return {"additionalProperties": False, "type": "object", "properties": properties, "required": list(required)}


def default_types() -> dict[str, dict[str, Any]]:
    notice = {"type": "notice"}
    return {
        "httpHeaderAuth": _schema({"name": _TEXT, "value": _TEXT, "useCustomAuth": notice, **_DOMAINS}),
        "httpBasicAuth": _schema({"user": _TEXT, "password": _TEXT, **_DOMAINS}),
        "httpBearerAuth": _schema({"token": _TEXT, "useCustomAuth": notice, **_DOMAINS}),
        "jwtAuth": _schema(
            {
                "keyType": {"type": "string", "enum": ["passphrase", "pemKey"]},
                **dict.fromkeys(("secret", "privateKey", "publicKey"), _TEXT),
                "algorithm": {"type": "string", "enum": list(_JWT_ALGORITHMS)},
            }
        ),
        "httpQueryAuth": _schema({"name": _TEXT, "value": _TEXT, **_DOMAINS}),
        "githubApi": _schema({"server": _TEXT, "user": _TEXT, "accessToken": _TEXT, **_DOMAINS}),
        "slackApi": _schema(
            {"accessToken": _TEXT, "signatureSecret": _TEXT, "notice": notice, **_DOMAINS}, "accessToken"
        ),
        "openAiApi": _schema({"apiKey": _TEXT, "organizationId": _TEXT, "url": _TEXT, **_DOMAINS}, "apiKey"),
        "postgres": _schema(
            {
                **dict.fromkeys(("host", "database", "user", "password"), _TEXT),
                "port": {"type": "number"},
                "maxConnections": {"type": "number"},
                "allowUnauthorizedCerts": {"type": "boolean"},
                "ssl": {"type": "string", "enum": ["allow", "disable", "require"]},
            }
        ),
    }


_PYTHON_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "number": (int, float),
    "boolean": (bool,),
    "notice": (str,),
}
#: Fields that depend on a value of another field.
_DEPENDENT: tuple[tuple[str, Any, tuple[str, ...]], ...] = (
    ("allowedHttpRequestDomains", "domains", ("allowedDomains",)),
    ("allowUnauthorizedCerts", False, ("ssl",)),
    ("keyType", "passphrase", ("secret",)),
    ("keyType", "pemKey", ("privateKey", "publicKey")),
    ("signatureSecret", "", ("notice",)),
)


def as_published(schema: Mapping[str, Any], version: str) -> dict[str, Any]:
    """Before 2.30, a field that depends on another field's value must be given if that has the value or is absent,
    and must not be given otherwise. Version 1 treats all such fields as if they depended on the first value.
    """
    if is_at_least(version, "2.30"):
        return dict(schema)
    rules: dict[Any, tuple[str, Any, list[str]]] = {}
    for other, value, fields in _DEPENDENT:
        if other in schema["properties"]:
            key = (other, value) if is_at_least(version, "2.0") else other
            rules.setdefault(key, (other, value, []))[2].extend(fields)
    published = [
        {
            "if": {"properties": {other: {"enum": [value]}}},
            "then": {"allOf": [{"required": [name]} for name in fields]},
            "else": {"allOf": [{"not": {"required": [name]}} for name in fields]},
        }
        for other, value, fields in rules.values()
    ]
    return {**schema, **({"allOf": published} if published else {})}


def check_data(data: Mapping[str, Any], schema: Mapping[str, Any]) -> None:
    for name, value in data.items():
        described = schema["properties"].get(name)
        if described is None:
            raise ApiError(400, f'request.body.data is not allowed to have the additional property "{name}"')
        _check_value(value, described)
    expected = [(name, True) for name in schema["required"]]
    for rule in schema.get("allOf", ()):
        [(other, condition)] = rule["if"]["properties"].items()
        holds = other not in data or data[other] in condition["enum"]
        expected += [(part["required"][0], holds) for part in rule["then"]["allOf"]]
    for name, is_wanted in expected:
        if is_wanted and name not in data:
            raise ApiError(400, f'request.body.data requires property "{name}"')
        if not is_wanted and name in data:
            raise ApiError(400, "request.body.data is of prohibited type [object Object]")


def _check_value(value: Any, described: Mapping[str, Any]) -> None:
    expected = _PYTHON_TYPES.get(described["type"])
    is_stray_boolean = isinstance(value, bool) and described["type"] != "boolean"
    if expected is not None and (is_stray_boolean or not isinstance(value, expected)):
        raise ApiError(400, f"request.body.data is not of a type(s) {described['type']}")
    if "enum" in described and value not in described["enum"]:
        raise ApiError(400, f"request.body.data is not one of enum values: {','.join(described['enum'])}")
