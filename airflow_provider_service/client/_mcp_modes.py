"""The modes in which the MCP endpoint runs a workflow; operators import them without the models of answers."""

from __future__ import annotations

from typing import Literal, get_args

#: ``production`` runs the published version, ``manual`` the draft.
Mode = Literal["production", "manual"]
MODES = get_args(Mode)
