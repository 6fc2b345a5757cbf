"""Pictures of pages that are stored, and how far a page may differ from its picture.

They are a quarter as wide and high, so that single letters and the smoothing of edges do not matter: a box that is
elsewhere, a line that is missing or another colour does. ``make pictures`` stores them anew.
"""

from __future__ import annotations

import os
from io import BytesIO
from pathlib import Path

from PIL import Image, ImageChops

STORED = Path(__file__).parent / "pictures"
IS_STORING = bool(os.environ.get("STORE_PICTURES"))
SMALLER = 4
#: The side of the squares that are compared, in pixels of the stored picture.
SQUARE = 8
#: How far the mean colour of a square may differ, of 255.
MOST = 32
COLOURS = 256


def unlike_stored(name: str, screenshot: bytes) -> str | None:
    """Return how a page differs from its stored picture; None if it is alike. Store it instead if that is wanted.

    :param screenshot: the page as PNG, in full size.
    """
    path = STORED / f"{name}.png"
    with Image.open(BytesIO(screenshot)) as full:
        seen = full.convert("RGB").reduce(SMALLER)
    if IS_STORING:
        STORED.mkdir(exist_ok=True)
        seen.quantize(COLOURS, dither=Image.Dither.NONE).save(path, optimize=True)
        return None
    if not path.exists():
        return f"{path.name} is not stored: run make pictures, and look at it"
    with Image.open(path) as stored:
        expected = stored.convert("RGB")
    if seen.size != expected.size:
        return f"{name}: {seen.size} instead of {expected.size} pixels"
    # Reduced to a pixel for each square, which is the mean of its differences.
    squares = ImageChops.difference(seen, expected).reduce(SQUARE)
    most = max(highest for _, highest in squares.getextrema())
    if most <= MOST:
        return None
    return f"{name} differs from its stored picture by {most} of 255 in a square; if that is wanted, run make pictures"
