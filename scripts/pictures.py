"""Make the screenshots of the documentation again, of the pages as they are now: ``make pictures``.

The execution that they show is always the same, so that they differ only if the pages, the browser or its fonts do.
"""

from __future__ import annotations

from datetime import timedelta
from io import BytesIO
from pathlib import Path

from PIL import Image

from airflow_provider_service._core.pages.task_view import AttemptView, TaskView
from tests.pages.workflows import BEGAN, nightly_sync
from tests.stack.browser import Browser
from tests.stack.execution_page import ExecutionPage

ROOT = Path(__file__).resolve().parent.parent
IMAGES = ROOT / "docs" / "images"
WIDTH = 1040
#: The names of the pictures, each with the element above which it ends.
PICTURES = {"execution-failed": None, "workflow-failed": "h2 ~ h2"}
_SERVICE = "https://service.example.com/workflow/w"
_TASK = TaskView(
    "example_service_first",
    "scheduled__2026-01-01T00:00:00+00:00",
    "run",
    -1,
    "failed",
    is_ours=True,
    service_conn_id="service_default",
    execution_id="4711",
    execution_url=f"{_SERVICE}/executions/4711",
    workflow_url=_SERVICE,
    attempts=[AttemptView(1, "failed", BEGAN - timedelta(seconds=2), BEGAN + timedelta(seconds=11), "4711")],
)


def main() -> None:
    """Write them."""
    with (
        ExecutionPage(nightly_sync(), _TASK) as page,
        Browser(page.address, ROOT / ".stack" / "screenshots-of-pictures", progress=print) as browser,
    ):
        for dark in (False, True):
            with browser.looking_like(width=WIDTH, dark=dark, scale=2):
                browser.open("/page")
                browser.find("//*[@id='drawing']")
                for name, above in PICTURES.items():
                    _write(IMAGES / f"{name}{'-dark' if dark else ''}.png", browser.picture(above))


def _write(path: Path, picture: bytes) -> None:
    """Write a picture with as few colours as its texts need, which makes it a third as large."""
    with Image.open(BytesIO(picture)) as image:
        image.convert("RGB").quantize(128, dither=Image.Dither.NONE).save(path, optimize=True)
    print(f"{path.relative_to(ROOT)}: {path.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
