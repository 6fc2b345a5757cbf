"""Credentials. The service never returns their secret data."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal

from airflow_provider_service.client._http.redaction import hidden
from airflow_provider_service.client._models import ServiceModel, Timestamp
from airflow_provider_service.client._values import dict_or_empty, list_or_empty
from airflow_provider_service.client.errors import ServiceError, ServiceInvalidRequestError
from airflow_provider_service.client.resources._base import Resource, without_none


class _CredentialFields(ServiceModel):
    name: str
    type: str
    is_managed: bool | None = None
    is_global: bool | None = None
    is_resolvable: bool | None = None
    resolvable_allow_fallback: bool | None = None
    resolver_id: str | None = None
    shared: list[dict[str, Any]] | None = None
    created_at: Timestamp | None = None
    updated_at: Timestamp | None = None


class Credential(_CredentialFields):
    """A credential; the items of a list have ``shared`` but lack the flags."""

    id: str


class DeletedCredential(_CredentialFields):
    """The answer to a delete; older servers leave out the id."""

    id: str | None = None
    usage_scope: str | None = None


class CredentialTest(ServiceModel):
    """The outcome of a test; a failed one is an answer, not an error."""

    status: Literal["OK", "Error"] | str
    message: str | None = None


class Credentials(Resource):
    """Credentials of workflows. Their secret data can be written but never read."""

    def list(self, *, limit: int | None = None) -> Iterator[Credential]:
        """Iterate over all credentials, newest first: ``GET /credentials``.

        :param limit: maximum number of credentials; None for all.
        """
        return self._pages(Credential, "/credentials", scope="credential:list", limit=limit)

    def create(
        self,
        name: str,
        type: str,
        data: Mapping[str, Any],
        *,
        project_id: str | None = None,
        is_resolvable: bool | None = None,
    ) -> Credential:
        """Create a credential: ``POST /credentials``. Not safe to repeat: names are not unique.

        If a server before n8n 2.30 refuses the data, the client repeats the call once in the form that
        :meth:`get_schema` describes: with the empty fields that the server requires, without those that it refuses.

        :param name: name of the credential; any text.
        :param type: a credential type of the service, e.g. ``"httpHeaderAuth"``.
        :param data: the secret fields, as :meth:`get_schema` describes them.
        :param project_id: project to create it in, by default the personal project of the key's user.
        :param is_resolvable: whether its fields are resolved when a workflow runs.
        :raises ServiceInvalidRequestError: an unknown type, or data that does not fit it.
        :raises ServiceNotFoundError: no such project.
        """
        data = hidden(data)  # so that no frame of a later error shows it
        others = without_none(name=name, type=type, projectId=project_id, isResolvable=is_resolvable)

        def send(data: Any) -> Credential:
            body = {**others, "data": data}
            return self._call(Credential, "POST", "/credentials", scope="credential:create", body=body)

        return self._sent(send, data, lambda: type)

    def get(self, credential_id: str) -> Credential:
        """Read a credential without its data: ``GET /credentials/{credentialId}``.

        :raises ServiceNotFoundError: no such credential.
        """
        return self._call(Credential, "GET", "/credentials/{}", credential_id, scope="credential:read")

    def update(
        self,
        credential_id: str,
        *,
        name: str | None = None,
        type: str | None = None,
        data: Mapping[str, Any] | None = None,
        is_partial_data: bool | None = None,
        is_global: bool | None = None,
        is_resolvable: bool | None = None,
    ) -> Credential:
        """Change the given fields: ``PATCH /credentials/{credentialId}``. Safe to repeat.

        :param type: another type; it needs ``data``.
        :param data: secret fields that replace the stored ones; adapted to an older server, as in :meth:`create`.
        :param is_partial_data: merge ``data`` into the stored fields instead.
        :param is_global: let every user use it; availability depends on the server's plan.
        :param is_resolvable: whether its fields are resolved when a workflow runs.
        :raises ServiceInvalidRequestError: data that does not fit the type.
        :raises ServiceNotFoundError: no such credential.
        """
        data = hidden(data)  # so that no frame of a later error shows it
        others = without_none(
            name=name, type=type, isPartialData=is_partial_data, isGlobal=is_global, isResolvable=is_resolvable
        )

        def send(data: Any) -> Credential:
            return self._call(
                Credential,
                "PATCH",
                "/credentials/{}",
                credential_id,
                scope="credential:update",
                body={**others, **without_none(data=data)},
                repeatable=True,
            )

        if data is None or is_partial_data:  # absent fields stay unchanged, so none may be added
            return send(data)
        return self._sent(send, data, lambda: type or self.get(credential_id).type)

    def delete(self, credential_id: str) -> DeletedCredential:
        """Delete a credential and return it: ``DELETE /credentials/{credentialId}``.

        Safe to repeat, but if an answer is lost, the automatic repeat raises ``ServiceNotFoundError`` although the
        object has been deleted.

        :raises ServiceNotFoundError: no such credential.
        """
        return self._call(DeletedCredential, "DELETE", "/credentials/{}", credential_id, scope="credential:delete")

    def get_schema(self, credential_type_name: str) -> dict[str, Any]:
        """Read the JSON schema of a type's data: ``GET /credentials/schema/{credentialTypeName}``. Requires no scope.

        :returns: a JSON schema; some of its types, such as ``notice``, are specific to the service.
        :raises ServiceNotFoundError: no such type.
        """
        return self._call(dict[str, Any], "GET", "/credentials/schema/{}", credential_type_name)

    def test(self, credential_id: str) -> CredentialTest:
        """Have the service test a credential: ``POST /credentials/{id}/test``. Safe to repeat.

        :returns: the result; a credential that is refused or cannot be tested does not raise an exception.
        :raises ServiceNotFoundError: no such credential.
        """
        return self._call(
            CredentialTest, "POST", "/credentials/{}/test", credential_id, scope="credential:read", repeatable=True
        )

    def transfer(self, credential_id: str, destination_project_id: str) -> None:
        """Move a credential to another project: ``PUT /credentials/{credentialId}/transfer``.

        Safe to repeat, but if an answer is lost, the automatic repeat raises ``ServiceInvalidRequestError`` although it
        has been moved.

        :raises ServiceInvalidRequestError: it is already in that project.
        :raises ServiceNotFoundError: no such credential or project.
        """
        body = {"destinationProjectId": destination_project_id}
        self._run("PUT", "/credentials/{}/transfer", credential_id, scope="credential:move", body=body)

    def _sent(self, send: Callable[[Any], Credential], data: Any, type: Callable[[], str]) -> Credential:
        try:
            return send(data)
        except ServiceInvalidRequestError:  # nothing was written
            try:
                other = fitted(data, self.get_schema(type()))
            except ServiceError:
                other = data
            if other == data:
                raise
        return send(other)


# In a type of credential, some fields may depend on the value of another field. Before n8n 2.30, these fields had to be
# present, even if empty, if the other field had that value or was absent; otherwise the server refused them. Newer
# servers require only the fields that the type marks as required. The schema of the type shows which rule applies.

#: What every server assumes if one of these fields is absent.
_ABSENT: Mapping[str, Any] = {
    "allowedDomains": "",
    "allowedHttpRequestDomains": "all",
    "privateKey": "",
    "publicKey": "",
    "sshTunnel": False,
}


def fitted(data: Mapping[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return equivalent data that a server with this schema accepts, as far as the rules are known."""
    fields = {name: value for name, value in data.items() if name not in _ABSENT or value != _ABSENT[name]}
    for other, _, _ in _rules(schema):
        if other in _ABSENT:
            fields.setdefault(other, _ABSENT[other])
    kinds = {name: dict_or_empty(field).get("type") for name, field in dict_or_empty(schema.get("properties")).items()}
    empty = {**_ABSENT, **{name: "" for name, kind in kinds.items() if kind == "notice"}}
    return {**{name: empty[name] for name in demanded(fields, schema) if name in empty}, **fields}


def demanded(data: Mapping[str, Any], schema: Mapping[str, Any]) -> Iterator[str]:
    """The fields that must be given with these, besides those that the type marks as required."""
    for other, values, fields in _rules(schema):
        if other not in data or data[other] in values:
            yield from fields


def _rules(schema: Mapping[str, Any]) -> Iterator[tuple[str, list[Any], list[str]]]:
    """The rules of an older server: if a field has one of these values or is absent, these others must be given."""
    for rule in list_or_empty(schema.get("allOf")):
        match rule:
            case {"if": {"required": _}}:
                pass  # a newer server: fields that depend on an absent field may be absent, too
            case {"if": {"properties": dict() as others}, "then": {"allOf": list() as then}}:
                for other, condition in others.items():
                    fields = [str(name) for part in then for name in list_or_empty(dict_or_empty(part).get("required"))]
                    yield str(other), list_or_empty(dict_or_empty(condition).get("enum")), fields
