"""The drawing of a workflow in a browser, without Airflow around it: workflows of every size and shape."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from selenium.webdriver.common.keys import Keys

from airflow_provider_service.client._clock import using
from tests.databases.debian import Progress
from tests.pages import workflows
from tests.set_clock import SetClock

from .browser import Browser
from .conftest import STACK_FOLDER
from .execution_page import ExecutionPage
from .keyboard import check_every_control_is_reached
from .stored_pictures import unlike_stored

SHAPES = {
    **{f"rows {size}": workflows.chain(size, size * 2 // 3, row=20) for size in (3, 13, 40, 150, 300)},
    "one row of 150": workflows.chain(150, 100),
    "branches": workflows.branches(),
    "noted": workflows.noted(),
    "loop": workflows.loop(),
    "agent": workflows.agent(),
    "waiting": workflows.waiting(),
    "running": workflows.running(),
}
# Whether a node is seen as a whole, and not only in part.
_IS_SEEN = """
const seen = document.getElementById("drawing").getBoundingClientRect();
const box = document.querySelector(arguments[0]).querySelector(".shape").getBoundingClientRect();
return box.left >= seen.left && box.right <= seen.right && box.top >= seen.top && box.bottom <= seen.bottom;
"""
# The size of each text that is seen, in pixels of the screen.
_SIZES = """
const svg = document.querySelector("#drawing svg"), scale = svg.getScreenCTM().a;
const hasText = (one) => [...one.childNodes].some((child) => child.nodeType === Node.TEXT_NODE && child.data.trim());
const seen = [...document.querySelectorAll("main *")].filter((one) => one.checkVisibility() && !one.matches("title"));
const texts = seen.filter(hasText);
return texts.map((one) => parseFloat(getComputedStyle(one).fontSize) * (svg.contains(one) ? scale : 1));
"""
# Whether any label of the axis of time touches the next one.
_LABELS_TOUCH = """
const labels = [...document.querySelectorAll(".axis text")].filter((one) => one.checkVisibility());
const boxes = labels.map((one) => one.getBoundingClientRect());
return !boxes.length || boxes.some((box, at) => at && box.left < boxes[at - 1].right + 4);
"""
_SCALE = "return document.querySelector('#drawing svg').getScreenCTM().a"
_PLACE = "const one = document.getElementById('drawing'); return [one.scrollLeft, one.scrollTop]"
_FOCUSED = "return document.activeElement.id || document.activeElement.getAttribute('href')"


@pytest.fixture(scope="module")
def page() -> Iterator[ExecutionPage]:
    # At this time, what runs and what waits looks as it does on the stored pictures.
    clock = SetClock()
    clock.advance(workflows.BEGAN.timestamp() + 20 - clock.now())
    with using(clock), ExecutionPage(workflows.chain(3)) as page:
        yield page


@pytest.fixture(scope="module")
def browser(page: ExecutionPage, progress: Progress) -> Iterator[Browser]:
    with Browser(page.address, STACK_FOLDER / "screenshots-of-drawings", progress=progress) as browser:
        yield browser


@pytest.fixture
def show(browser: Browser, page: ExecutionPage) -> Callable[..., Browser]:
    """``show("loop")`` opens the page of an execution."""

    def open_page(shape: str) -> Browser:
        page.execution = SHAPES[shape]
        browser.errors()
        browser.open("/page")
        browser.find("//*[@id='drawing']")
        return browser

    return open_page


@pytest.mark.parametrize("width", [1600, 900, 400])
@pytest.mark.parametrize("shape", SHAPES)
def test_it_is_read_and_opens_at_the_node_that_matters(
    show: Callable[..., Browser], browser: Browser, shape: str, width: int
) -> None:
    with browser.looking_like(width=width):
        show(shape)
        name = f"{shape.replace(' ', '-')}-{width}"
        difference = unlike_stored(name, browser.photograph(name))

        telling = ".node.failed, .node.failed-in-part, .node.running, .node.waiting"
        has_one = browser.run("return document.querySelector(arguments[0])", telling)
        assert browser.run(_IS_SEEN, telling if has_one else ".node")
        assert min(browser.run(_SIZES)) >= 11
        assert not browser.run(_LABELS_TOUCH)
        assert browser.run("return document.documentElement.scrollWidth") <= width
        browser.click("//button[.='Show all']")
        assert min(browser.run(_SIZES)) >= 11
        fits = "const one = document.getElementById('drawing'); return one.scrollWidth <= one.clientWidth"
        assert browser.run(fits)
    assert not browser.errors()
    assert difference is None, difference


@pytest.mark.parametrize("width", [650, 870])
@pytest.mark.parametrize("seconds", [0.02, 5_000])
def test_the_labels_of_the_timeline_do_not_touch_beside_the_panels_of_airflow(
    browser: Browser, page: ExecutionPage, width: int, seconds: float
) -> None:
    nodes = [workflows.node("Step")]
    page.execution = workflows.execution(nodes, {}, {"Step": [workflows.run(0, 1)]}, seconds=seconds)
    with browser.looking_like(width=width):
        browser.open("/page")
        assert not browser.run(_LABELS_TOUCH)


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("shape", ["rows 40", "branches", "noted", "loop", "agent", "waiting", "running"])
def test_it_is_accessible(show: Callable[..., Browser], browser: Browser, shape: str, dark: bool) -> None:
    with browser.looking_like(dark=dark):
        show(shape)
        name = f"{shape.replace(' ', '-')}{'-dark' if dark else ''}"
        difference = unlike_stored(name, browser.photograph(name))

        assert not browser.violations()
        assert difference is None, difference


def test_150_nodes_and_their_rows_are_two_stops_of_the_keyboard(show: Callable[..., Browser]) -> None:
    reached = check_every_control_is_reached(show("rows 150"))

    assert len([name for name in reached if name.startswith("Step 101: prepare orders")]) == 3  # message, node and row
    assert len(reached) == 10


def test_arrow_keys_move_among_nodes_and_rows(show: Callable[..., Browser]) -> None:
    browser = show("branches")
    name = "return document.activeElement.textContent.trim().split('\\n').at(-1)"

    browser.run("document.querySelector('.node[tabindex=\"0\"]').focus()")
    visited = []
    for key in (Keys.ARROW_RIGHT, Keys.ARROW_RIGHT, Keys.ARROW_DOWN, Keys.ARROW_UP, Keys.ARROW_LEFT, Keys.END):
        browser.press(key)
        visited.append(browser.run("return document.activeElement.querySelector('.name').textContent"))
        assert browser.run("return document.querySelectorAll('.node[tabindex=\"0\"]').length") == 1
    assert visited == ["Which area?", "Ask South", "Ask West", "Ask South", "Which area?", "Done"]
    browser.press(Keys.ENTER)
    assert browser.run(name) == "Done"
    assert browser.run("return document.activeElement.closest('tr').matches('.chosen')")
    browser.press(Keys.ARROW_UP)
    assert browser.run(name) == "Old report"
    browser.press(Keys.ENTER)
    assert browser.run("return document.activeElement.matches('.node.disabled')")


def test_the_message_leads_to_the_node_wherever_the_drawing_is(show: Callable[..., Browser]) -> None:
    browser = show("rows 300")
    browser.press(Keys.TAB)
    browser.click("//button[.='Show all']")

    browser.click("//div[contains(@class, 'message')]//a")

    browser.wait_for(f"return (() => {{ {_IS_SEEN.replace('arguments[0]', repr('.node.failing'))} }})()")
    assert browser.run("return document.activeElement.matches('.node.failing')")
    assert min(browser.run(_SIZES)) >= 11


def test_it_is_zoomed_and_moved_by_keyboard(show: Callable[..., Browser]) -> None:
    browser = show("rows 40")
    browser.run("document.getElementById('drawing').focus()")
    before = browser.run(_SCALE)

    browser.press("+", "+")
    assert browser.run(_SCALE) == pytest.approx(before * 1.25**2, rel=0.001)
    browser.press("-")
    assert browser.run(_SCALE) == pytest.approx(before * 1.25, rel=0.001)
    x, _ = browser.run(_PLACE)
    browser.press(Keys.ARROW_RIGHT)
    browser.wait_for(f"return (() => {{ {_PLACE} }})()[0] > {x}")
    browser.press("0")
    assert browser.run(_SCALE) < 0.5
    browser.click("//button[.='Full size']")
    assert browser.run(_SCALE) == pytest.approx(1, rel=0.001)


def test_it_is_zoomed_and_moved_by_mouse(show: Callable[..., Browser]) -> None:
    browser = show("rows 300")
    before, (x, y) = browser.run(_SCALE), browser.run(_PLACE)
    middle = browser.find("//*[@id='drawing']")

    browser.drag(middle, -80, -30)
    assert browser.run(_PLACE) == [pytest.approx(x + 80, abs=2), pytest.approx(y + 30, abs=2)]
    assert not browser.run("return document.querySelector('.chosen')")  # it was no click
    browser.wheel(middle, -100)
    assert browser.run(_SCALE) == pytest.approx(before * 1.25, rel=0.001)
    browser.drag(browser.find("//*[@id='overview']"), 1000, 1000)
    assert browser.run(
        "const one = document.getElementById('drawing'); return one.scrollLeft + one.clientWidth + 2 > one.scrollWidth"
    )


def test_an_execution_is_followed_without_a_flicker(show: Callable[..., Browser], page: ExecutionPage) -> None:
    browser = show("running")
    browser.press(Keys.TAB)
    browser.click("//button[.='Show all']")
    browser.run("document.querySelector('.node.running').focus()")
    browser.run("window.replaced = 0; for (const one of document.querySelectorAll('#view *')) one.isOld = true")
    scale, focused = browser.run(_SCALE), browser.run(_FOCUSED)

    page.execution = workflows.running(13, 9)
    browser.wait_for("return document.querySelectorAll('.node.succeeded').length === 9")

    assert browser.run("return [...document.querySelectorAll('.node, .node *, tr[id]')].every((one) => one.isOld)")
    assert (browser.run(_SCALE), browser.run(_FOCUSED)) == (scale, focused)
    page.execution = workflows.chain(13)
    browser.wait_for("return !document.querySelector('[data-follow]')")
    assert browser.run("return document.querySelectorAll('.node.succeeded').length") == 13
    assert not browser.errors()
