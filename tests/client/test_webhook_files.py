"""Files of a webhook's call: what is sent, what is refused, and what happens if a file changes meanwhile."""

from __future__ import annotations

import email
import io
from pathlib import Path
from typing import Any

import pytest
import requests
import requests_mock

from airflow_provider_service.client._http.encoding import MultipartBody, file_parts
from airflow_provider_service.client.errors import ServiceFileError, ServiceInputError, ServiceWebhookRefusedError
from airflow_provider_service.client.models import WebhookTrigger

from .clients import BASE, Client

UPLOAD = WebhookTrigger("In", "POST", "upload")
LARGE = 2**20 + 1


@pytest.fixture
def large(tmp_path: Path) -> Path:
    path = tmp_path / "large.csv"
    path.write_bytes(bytes(range(256)) * 4096 + b"x")
    return path


def parts_of(request: requests.PreparedRequest) -> list[tuple[dict[str, Any], bytes]]:
    """The parts of a body: name, file name and type, and content."""
    content = b"".join(request.body)  # type: ignore[arg-type]
    assert len(content) == int(request.headers["Content-Length"])
    head = f"Content-Type: {request.headers['Content-Type']}\r\n\r\n".encode()
    message = email.message_from_bytes(head + content)
    return [
        (
            {
                "name": part.get_param("name", header="content-disposition"),
                "filename": part.get_filename(),
                "type": part.get("content-type"),
            },
            part.get_payload(decode=True),
        )
        for part in message.get_payload()  # type: ignore[union-attr]
    ]


def test_files_and_fields(client: Client, server: requests_mock.Mocker, large: Path) -> None:
    server.post(f"{BASE}/webhook/upload", json={})
    payload = {"n": 1, "dry": True, "none": None, "text": "a\r\nb"}

    client.webhooks.call(UPLOAD, payload, files={"data": str(large), "again": large})

    sent = parts_of(server.last_request)
    assert sent[:3] == [
        ({"name": "n", "filename": None, "type": None}, b"1"),
        ({"name": "dry", "filename": None, "type": None}, b"true"),
        ({"name": "text", "filename": None, "type": None}, b"a\r\nb"),
    ]
    assert [part for part, _ in sent[3:]] == [
        {"name": name, "filename": "large.csv", "type": "text/csv"} for name in ("data", "again")
    ]
    assert {content for _, content in sent[3:]} == {large.read_bytes()}


def test_a_hostile_name_stays_within_its_header(tmp_path: Path) -> None:
    path = tmp_path / 'a"; x="\r\nX-Own: 1\r\n\r\nä.pdf'
    path.write_bytes(b"x")
    content = b"".join(MultipartBody({"f\r\nX-Own: 1": "v"}, file_parts({"data": path})))
    assert 'filename="a%22; x=%22__X-Own: 1____ä.pdf"\r\n'.encode() in content
    assert b"\nX-Own" not in content


def test_a_body_is_read_anew_for_each_try(server: requests_mock.Mocker, large: Path) -> None:
    texts = []

    def answer(request: Any, context: Any) -> dict[str, Any]:
        texts.append(b"".join(request.body))
        context.status_code = 404 if len(texts) == 1 else 200
        return {"code": 404, "message": 'The requested webhook "POST upload" is not registered.'}

    server.post(f"{BASE}/webhook/upload", json=answer)
    Client(retry_deadline=30).webhooks.call(UPLOAD, files={"data": large})
    assert len(texts) == 2
    assert texts[0] == texts[1]


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ("data", "files must be a mapping of names to paths, not 'data'"),
        ({"data": "/no/such/file"}, "files['data'], /no/such/file: there is no such file; nothing was started"),
        ({"data": "/"}, "files['data'], /: there is no such file"),
        ({"data": "a\0b"}, "files['data'], a\0b: "),
        ({"data": 7}, "files['data'] must be a path, not 7"),
        ({"": "/etc/hosts"}, "files: '' cannot be the name of a field"),
        ({"a\nb": "/etc/hosts"}, "files: 'a\\nb' cannot be the name of a field"),
    ],
)
def test_files_that_cannot_be_sent(client: Client, server: requests_mock.Mocker, files: Any, words: str) -> None:
    with pytest.raises(ServiceInputError) as refused:
        client.webhooks.call(UPLOAD, files=files)
    assert words in str(refused.value)
    assert server.request_history == []


def test_payloads_and_methods_that_files_do_not_allow(
    client: Client, server: requests_mock.Mocker, large: Path
) -> None:
    for payload in ({"nested": {}}, [1], "text"):
        with pytest.raises(ServiceInputError, match="is called with files, whose fields are texts, so payload must be"):
            client.webhooks.call(UPLOAD, payload, files={"data": large})
    with pytest.raises(ServiceInputError, match="takes GET, which has no body for files; nothing was started"):
        client.webhooks.call(UPLOAD._replace(method="GET"), files={"data": large})
    assert server.request_history == []


def test_files_above_the_limit_are_not_sent(server: requests_mock.Mocker, large: Path) -> None:
    with pytest.raises(ServiceInputError, match=r"the files have 2,097,154 bytes, but the server accepts 2 MiB"):
        Client(max_files_mib=2).webhooks.call(UPLOAD, files={"a": large, "b": large})
    assert server.request_history == []


class Changing(io.BytesIO):
    """A file whose size is not the one that was announced."""

    name = "changing.bin"
    st_size = 3

    def is_file(self) -> bool:
        return True

    def stat(self) -> Changing:
        return self

    def open(self, mode: str) -> Changing:
        assert mode == "rb"
        return self


class Broken(Changing):
    """A file that cannot be read to its end."""

    def read(self, size: int | None = -1, /) -> bytes:
        raise RuntimeError("the storage\nis gone")


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (Changing(b"ab"), "its size changed while it was sent"),
        (Changing(b"abcd"), "its size changed while it was sent"),
        (Broken(b"abc"), "RuntimeError: the storage is gone"),
    ],
)
def test_a_call_with_a_file_that_changes_is_aborted(source: Changing, words: str) -> None:
    with pytest.raises(ServiceFileError, match=f"{words}; the call was aborted, nothing was started") as raised:
        list(MultipartBody({}, file_parts({"data": source})))
    assert (raised.value.not_processed, raised.value.final) == (True, False)


@pytest.mark.parametrize(
    ("status", "text"),
    [
        (413, "The submitted form data exceeds the allowed size."),
        (400, "The submitted form data could not be parsed."),
    ],
)
def test_a_refused_form_has_run_nothing(
    client: Client, server: requests_mock.Mocker, large: Path, status: int, text: str
) -> None:
    server.post(f"{BASE}/webhook/upload", status_code=status, json={"code": status, "message": text})
    with pytest.raises(ServiceWebhookRefusedError, match=text):
        client.webhooks.call(UPLOAD, files={"data": large})
