"""MariaDB with a folder of its own."""

from __future__ import annotations

import os
import secrets
import subprocess
from collections.abc import Sequence
from typing import Any, ClassVar

from tests.live.servers import LiveServerError

from .debian import program
from .service import DatabaseService

_SETTINGS = {
    "bind-address": "127.0.0.1",
    "default-time-zone": "+05:30",
    # The folder goes with the test run: nothing needs to survive a power cut.
    "innodb-flush-log-at-trx-commit": "0",
    "skip-name-resolve": "1",
}


class MariaDb(DatabaseService):
    """A MariaDB server whose sessions have a time zone far from UTC.

    - ``user``, ``password``: of a user with all rights.
    """

    kind: ClassVar[str] = "mariadb"
    user: ClassVar[str] = "tester"

    def connect(self, database: str | None = None) -> Any:
        """Open a connection that commits each statement."""
        import mysql.connector  # where servers are tested, there is none

        address = {"host": self.host, "port": self.port, "user": self.user, "password": self.password}
        return mysql.connector.connect(**address, database=database, autocommit=True)

    def _fill(self) -> None:
        self.password = secrets.token_urlsafe(24)
        self._server = program("mariadbd", "mariadb-server", folders="usr/sbin", progress=self._progress)
        self._account = ["--user=root"] if os.geteuid() == 0 else []
        install = [
            "mariadb-install-db",
            "--no-defaults",
            f"--datadir={self._data}",
            "--auth-root-authentication-method=normal",
        ]
        done = subprocess.run(
            [*install, "--skip-test-db", *self._account], cwd=self.folder, capture_output=True, text=True, timeout=120
        )
        if done.returncode:
            raise LiveServerError(f"mariadb-install-db failed:\n{done.stdout[-1000:]}{done.stderr[-2000:]}")
        self._first = self.folder / "first.sql"
        self._first.write_text(
            f"CREATE USER {self.user}@'%' IDENTIFIED BY '{self.password}';\nGRANT ALL ON *.* TO {self.user}@'%';\n"
        )

    def _command(self) -> Sequence[str]:
        settings = [f"--{name}={value}" for name, value in _SETTINGS.items()]
        files = [f"--datadir={self._data}", f"--socket={self.folder / 'socket'}", f"--init-file={self._first}"]
        return [str(self._server), "--no-defaults", f"--port={self.port}", *files, *settings, *self._account]

    @property
    def _data(self) -> str:
        return str(self.folder / "data")

    def _serves(self) -> bool:
        from mysql.connector import Error

        try:
            self.connect().close()
        except Error:
            return False
        return True
