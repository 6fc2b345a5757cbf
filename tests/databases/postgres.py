"""PostgreSQL with a cluster of its own."""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from tests.live.servers import LiveServerError

from .debian import program
from .service import DatabaseService

_FOLDERS = "usr/lib/postgresql/*/bin"
_SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "max_connections": "300",
    # The cluster goes with the test run: nothing needs to survive a power cut.
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
}


class Postgres(DatabaseService):
    """A PostgreSQL server; as root it runs as the user ``postgres``, since it refuses to be root.

    - ``user``, ``password``: of the superuser.
    """

    kind: ClassVar[str] = "postgresql"
    user: ClassVar[str] = "tester"

    def create_database(self, name: str) -> str:
        """Create an empty database and return its address, ``postgresql://user:password@host:port/name``."""
        self.run_sql(f'CREATE DATABASE "{name}"')
        return self.url(name)

    def url(self, database: str) -> str:
        """The address of a database."""
        return f"postgresql://{self.user}:{self.password}@{self.host}:{self.port}/{database}"

    def run_sql(self, statement: str, *, database: str = "postgres") -> str:
        """Run a statement and return what psql prints: unaligned, without headers.

        :raises LiveServerError: it failed; contains psql's message.
        """
        done = self._psql(database, statement)
        if done.returncode:
            raise LiveServerError(f"psql: {done.stderr.strip()}")
        return done.stdout

    def _fill(self) -> None:
        self.password = secrets.token_urlsafe(24)
        self._binaries = program("postgres", "postgresql", folders=_FOLDERS, progress=self._progress).parent
        password_file = self.folder / "password"
        password_file.write_text(self.password)
        self._as_owner = self._give_away(self.folder, password_file)
        create = [
            str(self._binaries / "initdb"),
            "--pgdata",
            self._data,
            "--username",
            self.user,
            "--auth",
            "scram-sha-256",
        ]
        create += ["--pwfile", str(password_file), "--encoding", "UTF8", "--no-sync"]
        done = subprocess.run([*self._as_owner, *create], cwd=self.folder, capture_output=True, text=True, timeout=120)
        if done.returncode:
            raise LiveServerError(f"initdb failed:\n{done.stdout[-1000:]}{done.stderr[-2000:]}")

    def _command(self) -> Sequence[str]:
        settings = [f"--{name}={value}" for name, value in _SETTINGS.items()]
        server = [str(self._binaries / "postgres"), "-D", self._data, "-p", str(self.port)]
        return [*self._as_owner, *server, *settings]

    @property
    def _data(self) -> str:
        return str(self.folder / "data")

    def _give_away(self, *paths: Path) -> list[str]:
        """Let the user ``postgres`` own what root has made; what to put before its commands."""
        if os.geteuid() != 0:
            return []
        account = pwd.getpwnam("postgres")
        for path in paths:
            os.chown(path, account.pw_uid, account.pw_gid)
        setpriv = shutil.which("setpriv") or "/usr/bin/setpriv"
        # Not runuser, which would stay between the guard and the server.
        return [setpriv, "--reuid=postgres", "--regid=postgres", "--init-groups"]

    def _serves(self) -> bool:
        return self._psql("postgres", "SELECT 1").returncode == 0

    def _psql(self, database: str, statement: str) -> subprocess.CompletedProcess[str]:
        address = {"PGHOST": self.host, "PGPORT": str(self.port), "PGUSER": self.user, "PGPASSWORD": self.password}
        options = ["--no-psqlrc", "--tuples-only", "--no-align", "--set=ON_ERROR_STOP=1"]
        return subprocess.run(
            [self._binaries / "psql", *options, "-c", statement],
            env={"PATH": "/usr/bin:/bin", "PGDATABASE": database, "PGCONNECT_TIMEOUT": "5", **address},
            capture_output=True,
            text=True,
            timeout=60,
        )
