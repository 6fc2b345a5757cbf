"""Pages used by the keyboard alone: what Tab reaches, in which order, and whether it is seen."""

from __future__ import annotations

from selenium.webdriver.common.keys import Keys

from .browser import Browser

# All that can be used, in the order of the page; a name each.
_CONTROLS = """
const there = document.querySelectorAll("a[href], button, input, select, textarea, summary, [tabindex='0']");
window.controls = [...there].filter((one) => one.checkVisibility() && one.getAttribute("tabindex") !== "-1");
const ownText = (one) => one.matches("[tabindex]:not(a)") ? "" : one.textContent.trim();
const told = (one) => one.getAttribute("aria-label") || ownText(one);
return window.controls.map(told);
"""
_FOCUSED = "return window.controls.indexOf(document.activeElement)"
_BEGIN = "document.activeElement.blur(); getSelection().removeAllRanges(); getSelection().collapse(document.body, 0);"
# Pairs of which the second is above the first, or left of it in the same row; nodes are read from left to right.
_OUT_OF_ORDER = """
const places = window.controls.map((one) => one.getBoundingClientRect());
return places.slice(1).flatMap((next, at) => {
  const last = places[at];
  const [one, other] = [window.controls[at], window.controls[at + 1]];
  if (one.contains(other)) return [];
  const isLeft = next.right <= last.left;
  const isNode = one.matches(".node") && other.matches(".node");
  const isBack = isNode ? isLeft : next.bottom <= last.top || (isLeft && next.top < last.bottom);
  return isBack ? [at] : [];
});
"""


def controls(browser: Browser) -> list[str]:
    """The names of all that can be used on a page, in the order of the page."""
    return [str(one) for one in browser.run(_CONTROLS)]


def check_every_control_is_reached(browser: Browser) -> list[str]:
    """Check that Tab reaches everything on a page as it is read, that the focus is seen, and that it leaves the page.

    :return: the names of what it reaches.
    """
    names = controls(browser)
    assert names, "there is nothing to use"
    assert all(names), names
    back = [names[at] for at in browser.run(_OUT_OF_ORDER)]
    assert not back, f"after these, the focus goes back: {back}"
    browser.run(_BEGIN)
    for at, name in enumerate(names):
        browser.press(Keys.TAB)
        assert browser.run(_FOCUSED) == at, f"Tab does not reach {name}"
        assert browser.is_focus_seen(), f"the focus is not seen on {name}"
    browser.press(Keys.TAB)
    assert browser.run(_FOCUSED) != len(names) - 1, f"Tab does not leave {names[-1]}"
    return names


def tab_to(browser: Browser, name: str) -> None:
    """Press Tab until a control whose name begins so has the focus."""
    names = controls(browser)
    browser.run("window.controls[0].focus()")
    for _ in names:
        if focused(browser, names).startswith(name):
            return
        browser.press(Keys.TAB)
    raise AssertionError(f"Tab does not reach {name}, but {names}")


def focused(browser: Browser, names: list[str]) -> str:
    """The name of the control that has the focus, of those that :func:`controls` has found; empty if none has it."""
    at = browser.run(_FOCUSED)
    return names[at] if at >= 0 else ""
