"""Names that the compatibility package of the oldest supported Python does not offer yet."""

from __future__ import annotations

try:
    from airflow.providers.common.compat.sdk import mask_secret
except ImportError:  # common-compat 1.20, the newest for Python 3.10, which only Airflow 2.11 runs on
    from airflow.utils.log.secrets_masker import mask_secret  # type: ignore[no-redef,import-not-found,unused-ignore]

__all__ = ["mask_secret"]
