"""Answers that no good server gives: each ends as an exception of the client, or as a value, and shows no key."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import requests_mock
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from airflow_provider_service.client import errors
from airflow_provider_service.client._http.exchange import Answer

from .clients import KEY, ROOT, Client
from .tiny_server import TinyServer, answer

pytestmark = pytest.mark.usefixtures("no_finalizer_runs_deep_down")
TAG = b'{"id": "t", "name": "x"}'
OURS = (errors.ServiceApiError, errors.ServiceConfigError, errors.ServiceInputError)


def raw(head: str, body: bytes = b"") -> bytes:
    return head.replace("\n", "\r\n").encode("latin-1") + b"\r\n\r\n" + body


def typed(content_type: str, body: bytes = TAG, status: str = "200 OK") -> bytes:
    return answer(body, f"Content-Type: {content_type}", status=status)


def location(target: str) -> bytes:
    return answer(b"", f"Location: {target}", status="302 Found")


def nested(depth: int) -> bytes:
    return b'{"a":' * depth + b"1" + b"}" * depth


HOSTILE: dict[str, bytes] = {
    "location with a bad port": location("http://127.0.0.1:99999999/x"),
    "location with a port that is none": location("http://127.0.0.1:port/x"),
    "location with half an address": location("http://[::1/x"),
    "location with control characters": location("/\x00\x01\x7f"),
    "location in bytes": location("/\xff\xfe"),
    "location of another scheme": location("javascript:alert(1)"),
    "location that is empty": location(""),
    "location to itself": location("/api/v1/tags/t\r\nConnection: close"),
    "nested 150 deep": answer(nested(150)),
    "nested 250 deep": answer(nested(250)),
    "nested 3,000 deep": answer(nested(3000)),
    "nested 100,000 deep": answer(b"[" * 100_000),
    "an error nested 3,000 deep": answer(nested(3000), status="400 Bad"),
    "charset with NUL": typed("application/json; charset=a\x00b"),
    "charset that is unknown": typed("application/json; charset=no-such", b'{"id": "\xff"}'),
    "charset of an error that is unknown": typed("text/plain; charset=no-such", b"\xff", "500 No"),
    "charset that is no text": typed("text/plain; charset=hex", b"zz", "500 No"),
    "charset in quotes": typed('application/json; charset="utf-8"'),
    "half a surrogate pair": answer(b'{"id": "\\ud800", "name": "\\udfff", "\\ud800": 1}'),
    "half a surrogate pair in bytes": answer(b'{"id": "t", "name": "\xed\xa0\x80"}'),
    "half a surrogate pair in an error": answer(b'{"message": "\\ud800 bad"}', status="400 Bad"),
    "a number of 4,301 digits": answer(b'{"id": "t", "name": "x", "n": ' + b"9" * 4301 + b"}"),
    "a number of 4,300 digits": answer(b'{"id": "t", "name": "x", "n": ' + b"9" * 4300 + b"}"),
    "an infinite number": answer(b'{"id": "t", "name": "x", "n": 1e999}'),
    "NaN": answer(b'{"id": "t", "name": "x", "n": NaN}'),
    "no page": answer(b'{"data": null}'),
    "a list for an object": answer(b"[]"),
    "a text for an object": answer(b'"x"'),
    "a number for an object": answer(b"1"),
    "null": answer(b"null"),
    "items that are none": answer(b'{"data": [null, 1, "x", [], {}], "nextCursor": null}'),
    "wrong types": answer(b'{"id": ["t"], "name": {"a": 1}, "createdAt": 1e300, "updatedAt": "soon"}'),
    "dates out of range": answer(b'{"id": "t", "name": "x", "createdAt": "99999-99-99T99:99:99Z"}'),
    "an empty body": answer(b""),
    "an empty error": answer(b"", status="500 No"),
    "a message of another type": answer(b'{"message": {"a": [1]}}', status="400 Bad"),
    "an error that is a list": answer(b"[1]", status="404 Not Found"),
    "a status of 103": raw("HTTP/1.1 103 Early Hints"),
    "a status of 101": raw("HTTP/1.1 101 Switching Protocols\nUpgrade: websocket"),
    "a status of 204 with a body": answer(TAG, status="204 No Content"),
    "a status of 304": answer(b"", status="304 Not Modified"),
    "a status of 300": answer(TAG, status="300 Multiple Choices"),
    "a status of 999": answer(TAG, status="999 What"),
    "a status of 99": answer(TAG, status="99 What"),
    "a status in words": answer(TAG, status="OK"),
    "a reason in bytes": raw("HTTP/1.1 400 \xff\xfe\x00\nContent-Length: 0"),
    "no HTTP": b"SSH-2.0-OpenSSH_9.2\r\n",
    "HTTP/0.9": TAG,
    "NULs": b"\x00" * 4096,
    "a head without an end": b"HTTP/1.1 200 OK\r\nX: " + b"x" * 200_000,
    "many headers": raw("HTTP/1.1 200 OK\n" + "\n".join(f"X-{number}: 1" for number in range(500)), TAG),
    "a header without a name": raw("HTTP/1.1 200 OK\n: x\n\n", TAG),
    "a header without a colon": raw("HTTP/1.1 200 OK\nwhat\nContent-Length: 24", TAG),
    "headers that go on": raw("HTTP/1.1 200 OK\nX: a\n b\n\tc\nContent-Length: 24", TAG),
    "a header in bytes": raw("HTTP/1.1 200 OK\nX: \xff\x01\nContent-Length: 24", TAG),
    "cookies": raw("HTTP/1.1 200 OK\nSet-Cookie: a=b; Expires=x; Max-Age=y; Path=\xff; =;\nContent-Length: 24", TAG),
    "gzip that is none": answer(TAG, "Content-Encoding: gzip"),
    "deflate that is none": answer(TAG, "Content-Encoding: deflate"),
    "an encoding that is unknown": answer(TAG, "Content-Encoding: no-such"),
    "many encodings": answer(TAG, "Content-Encoding: " + ", ".join(["gzip"] * 100)),
    "half a gzip": answer(b"\x1f\x8b\x08\x00", "Content-Encoding: gzip"),
    "a length that is none": raw("HTTP/1.1 200 OK\nContent-Length: x", TAG),
    "a length below 0": raw("HTTP/1.1 200 OK\nContent-Length: -5", TAG),
    "a length of thousands of digits": raw("HTTP/1.1 200 OK\nContent-Length: " + "9" * 5000, TAG),
    "several lengths": raw("HTTP/1.1 200 OK\nContent-Length: 24, 25", TAG),
    "a length that is too long": answer(TAG, length=5000),
    "a length that is too short": answer(TAG, length=3),
    "chunks that are none": raw("HTTP/1.1 200 OK\nTransfer-Encoding: chunked", b"zz\r\n" + TAG),
    "a chunk of a size below 0": raw("HTTP/1.1 200 OK\nTransfer-Encoding: chunked", b"-5\r\n" + TAG),
    "a chunk that is too large": raw("HTTP/1.1 200 OK\nTransfer-Encoding: chunked", b"f" * 16 + b"\r\n" + TAG),
    "a chunk that is cut": raw("HTTP/1.1 200 OK\nTransfer-Encoding: chunked", b"18\r\n" + TAG[:5]),
    "chunks and a length": raw("HTTP/1.1 200 OK\nTransfer-Encoding: chunked\nContent-Length: 3", b"18\r\n" + TAG),
    "a transfer encoding that is unknown": raw("HTTP/1.1 200 OK\nTransfer-Encoding: gzip, x", TAG),
    "retry after a very long time": answer(b"", "Retry-After: " + "9" * 5000, status="503 No"),
    "retry after words": answer(b"", "Retry-After: \xb2 soon, \x01", status="503 No"),
    "a date that is none": answer(TAG, "Date: \xff, 99 Foo -1 99:99:99 +9999999"),
    "a page of tags alone": typed("text/html", b"<" * 100_000, "500 No"),
    "a page of entities": typed("text/html", b"&#xd800;&#99999999999;" * 1000, "500 No"),
    "a page of scripts": typed("text/html", b"<script>" * 20_000, "500 No"),
    "a page of comments": typed("text/html", b"<!--" * 20_000 + b"<head>" * 20_000, "500 No"),
    "a message of blank lines": answer(json.dumps({"message": "\n \n at x" * 10_000}).encode(), status="400 No"),
}

CALLS: dict[str, Callable[[Client], Any]] = {
    "read": lambda client: client.tags.get("t"),
    "list": lambda client: [*client.tags.list()],
    "skip list": lambda client: [*client.folders.list("p")],
    "executions": lambda client: [*client.executions.list()],
    "write": lambda client: client.tags.create("x"),
    "delete": lambda client: client.users.delete("1", delete_workflows=True),
    "bytes": lambda client: client.transport.call("GET", "/x", binary=True),
    "webhook": lambda client: client.transport.call_webhook("POST", "x", headers={}, payload={}, timeout=20),
    "probe": lambda client: client.transport.probe("/healthz"),
}


def closing(hostile: bytes) -> TinyServer:
    """A server that gives one answer to everything, and closes each connection after it."""
    return TinyServer(lambda _: iter([hostile]))


def fate(tiny: TinyServer, call: str) -> Exception | None:
    """The exception that a call ends with; any other than the client's own fails the test."""
    client = Client(base_url=tiny.address, timeout=20, retry_deadline=0)
    try:
        CALLS[call](client)
    except OURS as error:
        return error
    finally:
        client.transport.close()
    return None


@pytest.mark.slow(one_in=5)
@pytest.mark.filterwarnings("ignore::UserWarning")  # of http.cookiejar
@pytest.mark.parametrize("hostile", HOSTILE.values(), ids=HOSTILE)
def test_any_answer_raises_only_exceptions_of_the_client(hostile: bytes) -> None:
    with closing(hostile) as tiny:
        said = [str(fate(tiny, call)) for call in CALLS]
    for text in said:
        text.encode()
        assert KEY not in text
        assert "\n" not in text
        assert len(text) < 2000


@pytest.mark.parametrize(
    ("name", "kind", "says"),
    [
        ("location with a bad port", errors.ServiceRedirectError, "redirected to an address that cannot be read"),
        ("location to itself", errors.ServiceRedirectError, "redirected more than 10 times"),
        ("nested 3,000 deep", errors.ServiceUnexpectedResponseError, "not JSON"),
        ("a number of 4,301 digits", errors.ServiceUnexpectedResponseError, "not JSON"),
        ("NaN", errors.ServiceUnexpectedResponseError, "not JSON"),
        ("wrong types", errors.ServiceUnexpectedResponseError, "not of the documented shape: id: "),
        ("an empty body", errors.ServiceUnexpectedResponseError, "not of the documented shape"),
        ("a status of 304", errors.ServiceUnexpectedResponseError, "neither a success nor an error (HTTP 304)"),
        ("a status of 103", errors.ServiceUnexpectedResponseError, "neither a success nor an error (HTTP 103)"),
        ("gzip that is none", errors.ServiceUnreadableResponseError, "the answer cannot be read: ContentDecodingError"),
        ("several lengths", errors.ServiceUnexpectedResponseError, "the answer cannot be read: InvalidHeader"),
        ("no HTTP", errors.ServiceConnectionLostError, "the connection broke"),
        ("half a surrogate pair in an error", errors.ServiceInvalidRequestError, "\N{REPLACEMENT CHARACTER} bad"),
    ],
)
def test_the_fault_is_described(name: str, kind: type[Exception], says: str) -> None:
    with closing(HOSTILE[name]) as tiny:
        error = fate(tiny, "read")

    assert type(error) is kind
    assert says in str(error)


@pytest.mark.parametrize(
    "name", ["a status of 103", "a status of 101", "a status of 304", "a status of 300", "location to itself"]
)
@pytest.mark.parametrize("call", ["delete", "write", "bytes"])
def test_a_failure_is_not_mistaken_for_a_success(name: str, call: str) -> None:
    with closing(HOSTILE[name]) as tiny:
        assert isinstance(fate(tiny, call), errors.ServiceApiError)


HEADERS = [
    *(b"Content-Type", b"Content-Length", b"Transfer-Encoding", b"Content-Encoding", b"Location"),
    *(b"Set-Cookie", b"Retry-After", b"Date", b"Connection", b"WWW-Authenticate"),
]
VALUES = [b"application/json", b"text/html; charset=utf-16", b"chunked", b"gzip", b"2", b"/x"]
BODIES = [TAG, b'{"data": [{}]}', b"[1]", b"{}", b"2\r\n{}\r\n0\r\n\r\n"]


def answered(status: int, headers: list[tuple[bytes, bytes]], body: bytes) -> bytes:
    lines = [b"HTTP/1.1 %d X" % status, *(name + b": " + value for name, value in headers)]
    return b"\r\n".join([*lines, b"", body])


ANSWERS = st.one_of(
    st.binary(max_size=400),
    st.binary(max_size=200).map(b"HTTP/1.1 200 OK\r\n".__add__),
    st.builds(
        answered,
        st.integers(100, 999),
        st.lists(st.tuples(st.sampled_from(HEADERS), st.sampled_from(VALUES) | st.binary(max_size=30)), max_size=5),
        st.sampled_from(BODIES) | st.binary(max_size=100),
    ),
)


@pytest.fixture(scope="module")
def any_server() -> Iterator[tuple[TinyServer, list[bytes]]]:
    """A server that gives the last answer of a list, and then closes the connection."""
    answers = [b""]
    with TinyServer(lambda _: iter([answers[-1]])) as tiny:
        yield tiny, answers


@pytest.mark.slow
@settings(max_examples=300, suppress_health_check=[HealthCheck.too_slow])
@given(hostile=ANSWERS, call=st.sampled_from(sorted(CALLS)))
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_random_bytes_end_as_an_exception_of_the_client(
    any_server: tuple[TinyServer, list[bytes]], hostile: bytes, call: str
) -> None:
    tiny, answers = any_server
    answers.append(hostile)

    str(fate(tiny, call)).encode()


# Reading JSON


TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
PLAIN = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS


@pytest.mark.slow
@given(
    st.recursive(PLAIN, lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner)),
    st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "utf-32"]),
    st.booleans(),
)
def test_any_json_is_read_as_python_reads_it(value: Any, encoding: str, escaped: bool) -> None:
    content = json.dumps(value, ensure_ascii=escaped).encode(encoding)

    read = Answer(200, {}, content).json()

    assert (repr(read), repr(json.loads(content))) == (repr(json.loads(content)), repr(value))


@given(st.text(st.characters(min_codepoint=0xD700, max_codepoint=0xE100), min_size=1), st.booleans())
def test_halves_of_surrogate_pairs_are_replaced_and_nothing_else(text: str, escaped: bool) -> None:
    content = json.dumps({"a": [text], text: 1}, ensure_ascii=escaped).encode("utf-8", "surrogatepass")

    ((read,), *_) = Answer(200, {}, content).json().values()

    expected = json.loads(content)["a"][0].encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    assert read == expected


@pytest.mark.parametrize(
    ("content_type", "content", "text"),
    [
        ("text/plain", "é".encode(), "é"),
        ("text/plain", b"\xe9", "é"),
        ("text/plain; charset=latin-1", "é".encode(), "Ã©"),
        ("text/plain; Charset='utf-16'", "é".encode("utf-16"), "é"),
        ("text/plain; charset=no-such", "é".encode(), "é"),
        ("text/plain; charset=utf-8", b"\xe9", "é"),
        ("", b"", ""),
    ],
)
def test_text_is_read_in_its_encoding(content_type: str, content: bytes, text: str) -> None:
    assert Answer(200, {"Content-Type": content_type}, content).text == text


def test_json_in_latin_1_that_says_so_is_read() -> None:
    answered = Answer(200, {"Content-Type": "application/json; charset=iso-8859-1"}, '{"a": "é"}'.encode("latin-1"))

    assert answered.json() == {"a": "é"}


# Pages of errors

STACK = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>Error</title>
</head>
<body>
<pre>PayloadTooLargeError: request entity too large<br> &nbsp; &nbsp;at readStream (/usr/lib/raw-body/index.js:163:17)
<br> &nbsp; &nbsp;at getRawBody (/usr/lib/raw-body/index.js:116:12)</pre>
</body>
</html>
"""


@pytest.mark.parametrize(
    ("page", "content_type", "says"),
    [
        (STACK, "text/html; charset=utf-8", "PayloadTooLargeError: request entity too large"),
        (
            "<html><head><title>502 Bad Gateway</title></head><body><center><h1>502 Bad Gateway</h1></center><hr>"
            "<center>nginx/1.22.1</center></body></html>",
            "text/html",
            "502 Bad Gateway",
        ),
        ("<title>Sign in</title>", "text/html", "Sign in"),
        (
            "<style>p {color: red}</style><!-- no --><script>1 < 2</script><p>Gone &amp; lost<p>more",
            "text/html",
            "Gone & lost",
        ),
        (
            "Error: it broke\n    at run (/srv/app.js:1:2)\n    at main (/srv/app.js:3:4)",
            "text/plain",
            "Error: it broke",
        ),
        ('{"message": "it broke\\n    at run (/srv/app.js:1:2)"}', "application/json", "it broke"),
        ("two\nlines", "text/plain", "two lines"),
        ("<p> </p>", "text/html", None),
    ],
    ids=["express", "nginx", "title", "scripts", "plain stack", "json stack", "lines", "blank"],
)
@pytest.mark.parametrize("status", [413, 500])
def test_the_message_of_a_page_is_its_first_line_without_a_stack_trace(
    page: str, content_type: str, says: str | None, status: int
) -> None:
    with requests_mock.Mocker() as server:
        server.get(f"{ROOT}/x", text=page, status_code=status, headers={"Content-Type": content_type})
        with pytest.raises(errors.ServiceApiError) as caught:
            Client().request("GET", "/x")

    assert caught.value.server_message == says
    assert "/usr/lib" not in str(caught.value)
