"""Operators for credentials. Their secret data is never shown in rendered fields, logs or XCom."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from airflow.providers.common.compat.sdk import AirflowFailException

from airflow_provider_service._core.arguments import as_rendered, refuse, require, require_mapping, required
from airflow_provider_service._core.references import CREDENTIAL, PROJECT
from airflow_provider_service.client._http.redaction import hidden
from airflow_provider_service.client._lookup import find_credential, get_credential
from airflow_provider_service.client.errors import ServiceInputError
from airflow_provider_service.links.service import CREDENTIALS_PAGE
from airflow_provider_service.operators._base import SealedFieldsMixin, ServiceBaseOperator, mask_all, revealed

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context
    from typing_extensions import Unpack

    from airflow_provider_service._core.arguments import TaskArguments, Templated
    from airflow_provider_service._core.references import Alternatives
    from airflow_provider_service.client.models import Credential
    from airflow_provider_service.operators.results import CredentialResult

__all__ = ["ServiceCreateCredentialOperator", "ServiceUpdateCredentialOperator"]

_CONNECTION_FIELDS = ("host", "port", "login", "password", "schema")
_EXTRA_PREFIX = "extra."


def _check_fields(name: str, value: object) -> None:
    if value is None:
        return
    if not isinstance(value, Mapping):
        refuse(name, "a mapping of the credential's fields to the connection's", value)
    for field in value.values():
        if not (isinstance(field, str) and (field in _CONNECTION_FIELDS or field.startswith(_EXTRA_PREFIX))):
            refuse(f"a field in {name}", f"one of {', '.join(_CONNECTION_FIELDS)}, {_EXTRA_PREFIX}<name>", field)


def _read_fields(connection: Any, fields: Mapping[str, str]) -> dict[str, Any]:
    """Read a connection's fields, by their names in the credential. Tracebacks do not show the values."""
    values = {}
    for name, field in fields.items():
        if field.startswith(_EXTRA_PREFIX):
            values[name] = hidden(connection.extra_dejson.get(field.removeprefix(_EXTRA_PREFIX)))
        else:
            values[name] = hidden(getattr(connection, field))
    return values


class _CredentialOperator(SealedFieldsMixin, ServiceBaseOperator):
    template_fields: Sequence[str] = (
        *ServiceBaseOperator.template_fields,
        "name",
        "credential_type",
        "data",
        "data_conn_id",
        *PROJECT.fields,
    )
    references: ClassVar[Sequence[Alternatives]] = (PROJECT,)
    sealed_fields = ("data",)
    checks = {"data_conn_fields": _check_fields}
    name: str | None
    credential_type: str | None
    data: Mapping[str, Any] | None
    data_conn_id: str | None
    data_conn_fields: Mapping[str, str] | None

    def secret_data(self) -> dict[str, Any] | None:
        """Merge the given data with the fields from the Airflow connection; return None if neither is given."""
        data = revealed(self.data)
        if data is not None:
            require_mapping("data", data)
        require(
            bool(self.data_conn_id) == bool(self.data_conn_fields),
            "give data_conn_id and data_conn_fields together: "
            "the connection, and which of its fields fills which field of the credential",
        )
        if data is None and not self.data_conn_id:
            return None
        merged: dict[str, Any] = hidden({**(data or {}), **self._from_connection()})
        mask_all(merged)
        return merged

    def _from_connection(self) -> dict[str, Any]:
        if not self.data_conn_id or not self.data_conn_fields:
            return {}
        values = _read_fields(self.hook.get_connection(self.data_conn_id), self.data_conn_fields)
        # Only now does no frame hold the connection, whose repr shows its password.
        for name, field in self.data_conn_fields.items():
            require(values[name] is not None, f"connection {self.data_conn_id!r} has no value for {field}")
        return values

    def find(self, name: str) -> Credential | None:
        return find_credential(self.hook, name, credential_type=self.credential_type, project_id=self.owner_id)

    @cached_property
    def owner_id(self) -> str | None:
        return PROJECT.id_in(self, self.hook)

    def report(self, context: Context, credential: Credential, outcome: str) -> CredentialResult:
        url = self.link_page(context, CREDENTIALS_PAGE)
        self.log.info(
            "Credential %s (%r of type %s) was %s: %s", credential.id, credential.name, credential.type, outcome, url
        )
        return {
            "credential_id": credential.id,
            "name": credential.name,
            "type": credential.type,
            "outcome": outcome,
            "url": url,
        }


class ServiceCreateCredentialOperator(_CredentialOperator):
    """Create a credential. Safe to repeat unless ``if_exists="fail"``.

    Pass secrets as templates, e.g. ``"{{ conn.warehouse.password }}"``, or through ``data_conn_id``: a secret that is
    written in a DAG file is as visible as the file. Once rendered, ``data`` is hidden everywhere.

    The service lets several credentials have the same name, so do not let two tasks create the same one at the same
    time: there could be two, and tasks that look it up by its name would fail until one of them is deleted.

    :param name: name of the credential.
    :param credential_type: credential type of the service, e.g. ``"httpHeaderAuth"``.
    :param data: secret fields by name, as the credential type defines them; give this, a connection, or both.
    :param data_conn_id: Airflow connection from which to take further fields; None (the default) for none.
    :param data_conn_fields: field of the connection for each field of the credential, required with ``data_conn_id``:
        ``{"user": "login", "password": "password", "ssl": "extra.ssl"}``. The fields are host, port, login, password,
        schema and ``extra.`` with a name.
    :param project_id: id of the project in which to look for the credential and to create it; credentials of other
        projects that are only shared with this one do not count. If None, it is looked up in all projects and created
        in the personal project of the key's user.
    :param project_name: exact name of that project, instead of its id.
    :param if_exists: what to do if a credential of that name and type exists: ``"skip"`` (the default), ``"update"``
        its data, or ``"fail"``.
    :param service_conn_id: Airflow connection of type ``n8n`` or ``service``; ``service_default`` by default.
    :returns: a :class:`CredentialResult`; the outcome is ``"created"``, ``"updated"`` or ``"skipped"``.
    :raises AirflowFailException: an argument cannot be used, or a call failed in a way that no retry mends.
    :raises ServiceApiError: a call failed, and a retry may help.
    """

    def __init__(
        self,
        *,
        name: Templated[str],
        credential_type: Templated[str],
        data: Templated[Mapping[str, Any] | None] = None,
        data_conn_id: Templated[str | None] = None,
        data_conn_fields: Mapping[str, str] | None = None,
        project_id: Templated[str | None] = None,
        project_name: Templated[str | None] = None,
        if_exists: Literal["skip", "update", "fail"] = "skip",
        service_conn_id: Templated[str] = "service_default",
        **kwargs: Unpack[TaskArguments],
    ) -> None:
        super().__init__(service_conn_id=service_conn_id, **kwargs)
        self.name = as_rendered(name)
        self.credential_type = as_rendered(credential_type)
        self.data = as_rendered(data)
        self.data_conn_id = as_rendered(data_conn_id)
        self.data_conn_fields = data_conn_fields
        self.project_id = as_rendered(project_id)
        self.project_name = as_rendered(project_name)
        self.if_exists = if_exists
        self.check_arguments()

    def perform(self, context: Context) -> CredentialResult:
        name, credential_type = required("name", self.name), required("credential_type", self.credential_type)
        data = self.secret_data()
        if data is None:
            raise ServiceInputError("give data, or data_conn_id with data_conn_fields")
        # One of another project that is only shared with this one must not be overwritten.
        existing = find_credential(
            self.hook, name, credential_type=credential_type, project_id=self.owner_id, is_owned=True
        )
        if existing is None:
            created = self.hook.credentials.create(name, credential_type, data, project_id=self.owner_id)
            return self.report(context, created, "created")
        if self.if_exists == "fail":
            raise AirflowFailException(f"credential {name!r} exists with id {existing.id} (if_exists='fail')")
        if self.if_exists == "update":
            return self.report(context, self.hook.credentials.update(existing.id, data=data), "updated")
        return self.report(context, existing, "skipped")


class ServiceUpdateCredentialOperator(_CredentialOperator):
    """Change the name or the secret data of a credential. Safe to repeat.

    For how to pass secrets, see :class:`ServiceCreateCredentialOperator`.

    :param credential_id: id of the credential; give either the id or the name.
    :param credential_name: exact name of the credential.
    :param name: new name of the credential; without ``credential_id`` and ``credential_name``, its exact current name,
        by which it is looked up.
    :param credential_type: type of the credential to look up by its name; None (the default) for any type.
    :param data: secret fields by name, which replace the stored ones; without this or a connection, those are kept.
    :param merge_data: True to merge the fields into the stored ones instead; False by default.
    :param data_conn_id: Airflow connection from which to take further fields; None (the default) for none.
    :param data_conn_fields: field of the connection for each field of the credential, required with ``data_conn_id``.
    :param project_id: id of the project in which to look up the name; None (the default) for any project.
    :param project_name: exact name of that project, instead of its id.
    :param service_conn_id: Airflow connection of type ``n8n`` or ``service``; ``service_default`` by default.
    :returns: a :class:`CredentialResult`; the outcome is ``"updated"``.
    :raises AirflowFailException: an argument cannot be used, or a call failed in a way that no retry mends.
    :raises ServiceApiError: a call failed, and a retry may help.
    """

    template_fields: Sequence[str] = (*_CredentialOperator.template_fields, *CREDENTIAL.fields)
    references = (CREDENTIAL, PROJECT)

    def __init__(
        self,
        *,
        credential_id: Templated[str | None] = None,
        credential_name: Templated[str | None] = None,
        name: Templated[str | None] = None,
        credential_type: Templated[str | None] = None,
        data: Templated[Mapping[str, Any] | None] = None,
        merge_data: bool = False,
        data_conn_id: Templated[str | None] = None,
        data_conn_fields: Mapping[str, str] | None = None,
        project_id: Templated[str | None] = None,
        project_name: Templated[str | None] = None,
        service_conn_id: Templated[str] = "service_default",
        **kwargs: Unpack[TaskArguments],
    ) -> None:
        super().__init__(service_conn_id=service_conn_id, **kwargs)
        self.name = as_rendered(name)
        self.credential_type = as_rendered(credential_type)
        self.data = as_rendered(data)
        self.data_conn_id = as_rendered(data_conn_id)
        self.data_conn_fields = data_conn_fields
        self.project_id = as_rendered(project_id)
        self.project_name = as_rendered(project_name)
        self.credential_id = as_rendered(credential_id)
        self.credential_name = as_rendered(credential_name)
        self.merge_data = merge_data
        self.check_arguments()

    def perform(self, context: Context) -> CredentialResult:
        data = self.secret_data()
        new_name = self.name if self.credential_id or self.credential_name else None
        require(
            data is not None or new_name, "there is nothing to change; give data, data_conn_id, or an id and a new name"
        )
        changed = self.hook.credentials.update(
            self.credential_id or self._id_by_name(),
            name=new_name,
            data=data,
            is_partial_data=True if self.merge_data else None,
        )
        return self.report(context, changed, "updated")

    def _id_by_name(self) -> str:
        name = required("credential_id or credential_name", self.credential_name or self.name)
        # After an earlier attempt has renamed the credential, a repeat finds it by its new name.
        credential = self.find(name) or (self.find(self.name) if self.name else None)
        if credential is None:
            credential = get_credential(self.hook, name, credential_type=self.credential_type, project_id=self.owner_id)
        return credential.id
