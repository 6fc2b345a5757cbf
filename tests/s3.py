"""A storage that speaks the protocol of S3, on this machine."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from airflow.providers.common.compat.sdk import ObjectStoragePath

if TYPE_CHECKING:
    from s3fs import S3FileSystem

try:
    from airflow.sdk.io import attach
except ImportError:  # Airflow 2
    from airflow.io.store import attach  # type: ignore[no-redef]


@contextmanager
def s3_server() -> Iterator[S3FileSystem]:
    """Run the storage, and yield its file system."""
    from moto.server import ThreadedMotoServer
    from s3fs import S3FileSystem

    logging.getLogger("werkzeug").setLevel(logging.WARNING)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        yield S3FileSystem(key="key", secret="secret", endpoint_url=f"http://{host}:{port}", skip_instance_cache=True)
    finally:
        server.stop()


@dataclass(frozen=True)
class Bucket:
    """A bucket, and the Airflow connection with which it is reached.

    - ``files``: its file system, for a look at what it holds.
    """

    name: str
    conn_id: str
    files: S3FileSystem

    @classmethod
    def create(cls, files: S3FileSystem) -> Bucket:
        """Create an empty bucket with a connection of its own."""
        name = f"bucket-{uuid4().hex}"
        files.mkdir(name)
        bucket = cls(name, f"storage_{name[-8:]}", files)
        attach("s3", conn_id=bucket.conn_id, fs=files)
        return bucket

    def address(self, key: str) -> str:
        """The address of a key, with the connection."""
        return f"s3://{self.conn_id}@{self.name}/{key}"

    def path(self, key: str) -> Any:
        """The path of a key, as Airflow's own object."""
        return ObjectStoragePath(f"s3://{self.name}/{key}", conn_id=self.conn_id)

    def keys(self) -> list[str]:
        """All keys, in order."""
        self.files.invalidate_cache()
        return sorted(found.removeprefix(f"{self.name}/") for found in self.files.find(self.name))

    def read(self, key: str) -> bytes:
        """What a key holds."""
        content: bytes = self.files.cat_file(f"{self.name}/{key}")
        return content

    def write(self, key: str, content: bytes) -> None:
        """Store a key."""
        self.files.pipe_file(f"{self.name}/{key}", content)
