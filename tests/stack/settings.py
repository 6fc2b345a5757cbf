"""How the deployment is configured."""

from __future__ import annotations

import json
import os
import secrets
from dataclasses import dataclass, field
from pathlib import Path

from cryptography.fernet import Fernet

#: Users and their roles; all have the same password.
ROLES = {"admin": "admin", "viewer": "viewer", "stranger": ""}


@dataclass(frozen=True)
class Settings:
    """Of one deployment.

    :param home: Airflow's home; its ``dags`` and ``logs`` folders are below it.
    :param port: of the API server.
    :param database: address of the metadata database.
    :param broker: address of the broker.
    :param extra: further variables of every process.
    """

    home: Path
    port: int
    database: str
    broker: str
    extra: dict[str, str] = field(default_factory=dict)
    fernet_key: str = field(default_factory=lambda: Fernet.generate_key().decode(), repr=False)
    user: str = "admin"
    password: str = field(default_factory=lambda: secrets.token_urlsafe(16), repr=False)
    _signing_key: str = field(default_factory=lambda: secrets.token_hex(64), repr=False)

    @property
    def base_url(self) -> str:
        """Address of the API server and its pages."""
        return f"http://127.0.0.1:{self.port}"

    def write_password(self) -> Path:
        """Write the file that holds the users' passwords, and return its path."""
        file = self.home / "passwords.json"
        file.write_text(json.dumps(dict.fromkeys(ROLES, self.password)))
        return file

    def environment(self) -> dict[str, str]:
        """The variables of every process: nothing of this test run's own Airflow, and no proxies, gets through."""
        settings = {
            "CORE": {
                "DAGS_FOLDER": self.home / "dags",
                "LOAD_EXAMPLES": False,
                "EXECUTOR": "CeleryExecutor,LocalExecutor",
                "EXECUTION_API_SERVER_URL": f"{self.base_url}/execution/",
                "FERNET_KEY": self.fernet_key,
                "TEST_CONNECTION": "Enabled",
                "SIMPLE_AUTH_MANAGER_USERS": ",".join(f"{user}:{role}" for user, role in ROLES.items()),
                "SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": self.home / "passwords.json",
                # Hundreds of mapped tasks at once; how many start at a time is the worker's matter.
                "PARALLELISM": 400,
                "MAX_ACTIVE_TASKS_PER_DAG": 400,
                "MAX_ACTIVE_RUNS_PER_DAG": 100,
                "DEFAULT_POOL_TASK_SLOT_COUNT": 400,
                "DEFAULT_TASK_RETRY_DELAY": 1,
            },
            "DATABASE": {"SQL_ALCHEMY_CONN": self.database.replace("postgresql://", "postgresql+psycopg2://")},
            "API": {"BASE_URL": self.base_url, "SECRET_KEY": self._signing_key, "MAXIMUM_PAGE_LIMIT": 1000},
            "API_AUTH": {"JWT_SECRET": self._signing_key},
            "CELERY": {
                "BROKER_URL": self.broker,
                "RESULT_BACKEND": f"db+{self.database}",
                "SYNC_PARALLELISM": 1,
                "TASK_ACKS_LATE": True,
            },
            "CELERY_BROKER_TRANSPORT_OPTIONS": {"VISIBILITY_TIMEOUT": 120},
            "SCHEDULER": {
                # A killed worker, scheduler or triggerer is noticed soon.
                "TASK_INSTANCE_HEARTBEAT_TIMEOUT": 30,
                "TASK_INSTANCE_HEARTBEAT_TIMEOUT_DETECTION_INTERVAL": 5,
                "ORPHANED_TASKS_CHECK_INTERVAL": 20,
                "SCHEDULER_HEALTH_CHECK_THRESHOLD": 20,
                # Also how long a queued task is let in: hundreds queue before two cores.
                "TASK_QUEUED_TIMEOUT": 3600,
                "MAX_TIS_PER_QUERY": 64,
            },
            "DAG_PROCESSOR": {
                "PARSING_PROCESSES": 1,
                "REFRESH_INTERVAL": 5,
                "MIN_FILE_PROCESS_INTERVAL": 20,
                # Else all deployments of a machine share one copy of a repository, and see the one that came first.
                "DAG_BUNDLE_STORAGE_PATH": self.home / "bundles",
            },
            "LOGGING": {"BASE_LOG_FOLDER": self.home / "logs", "COLORED_CONSOLE_LOG": False},
        }
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "LANG": "C.UTF-8",
            "AIRFLOW_HOME": str(self.home),
            # Two cores serve all processes of the deployment.
            "OMP_NUM_THREADS": "1",
            **{
                f"AIRFLOW__{section}__{name}": str(value)
                for section, values in settings.items()
                for name, value in values.items()
            },
            **self.extra,
        }
