"""A real browser, and Airflow's pages in it."""

from __future__ import annotations

import base64
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

from selenium import webdriver
from selenium.common.exceptions import StaleElementReferenceException, WebDriverException
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.actions.wheel_input import ScrollOrigin
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import WebDriverWait

from tests.databases.debian import Progress, program

# A single-page application on a busy machine.
SECONDS = 60
#: Judges the accessibility of pages; the Makefile puts it there.
AXE = Path(sys.prefix, "axe.min.js")
SIZE = (1400, 1300)
# Width and height of what a picture shows.
_PICTURED = """
const place = (selector) => document.querySelector(selector).getBoundingClientRect(), main = place("main");
return [innerWidth, arguments[0] ? place(arguments[0]).top : main.bottom + main.top];
"""
_FLAGS = (
    "--headless=new",
    "--no-sandbox",  # which is not available to root
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    f"--window-size={SIZE[0]},{SIZE[1]}",
)


class Browser:
    """Debian's Chromium, without a window; use it as a context manager.

    - ``base_url``: where Airflow is.

    :param screenshots: folder that keeps the screenshots.
    :param proxy: takes all requests, those to this machine as well.
    """

    def __init__(
        self,
        base_url: str,
        screenshots: Path,
        *,
        proxy: str | None = None,
        progress: Progress = lambda line: None,
    ) -> None:
        self.base_url, self._screenshots, self._proxy = base_url, screenshots, proxy
        self._taken = 0
        self._progress = progress

    def __enter__(self) -> Browser:
        self._screenshots.mkdir(parents=True, exist_ok=True)
        options = webdriver.ChromeOptions()
        options.binary_location = str(program("chromium", "chromium", progress=self._progress))
        driver = str(program("chromedriver", "chromium-driver", progress=self._progress))
        self._profile = tempfile.TemporaryDirectory(prefix="browser-", ignore_cleanup_errors=True)
        through = (f"--proxy-server=http://{self._proxy}", "--proxy-bypass-list=<-loopback>") if self._proxy else ()
        for flag in (*_FLAGS, *through, f"--user-data-dir={self._profile.name}"):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        self._driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
        self._driver.set_page_load_timeout(SECONDS)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if error is not None:
                self.photograph("failure")
        finally:
            self._driver.quit()
            self._profile.cleanup()

    def log_in(self, user: str, password: str) -> None:
        """Fill the form of the login page."""
        self.open("/")
        self.fill("username", user)
        self.fill("password", password)
        self.find("//button[@type='submit']").click()
        self.find("//button[contains(., 'Admin')]")

    def have_session(self, token: str | None) -> None:
        """Be the user whose token this is, as after the login; None: nobody."""
        self._driver.execute_cdp_cmd("Network.clearBrowserCookies", {})
        if token is not None:
            cookie = {"name": "_token", "value": token, "url": self.base_url}
            self._driver.execute_cdp_cmd("Network.setCookie", cookie)

    def open(self, path: str) -> None:
        """Go to a page of Airflow."""
        self._driver.get(self.base_url + path)

    @contextmanager
    def at(self, base_url: str) -> Iterator[None]:
        """At another API server for a while."""
        usual, self.base_url = self.base_url, base_url
        try:
            yield
        finally:
            self.base_url = usual

    @contextmanager
    def inside(self, xpath: str) -> Iterator[None]:
        """Within the page that a frame shows, instead of the page around it."""
        self._driver.switch_to.frame(self.find(xpath))
        try:
            yield
        finally:
            self._driver.switch_to.default_content()

    @contextmanager
    def looking_like(self, *, width: int = SIZE[0], dark: bool = False, scale: int = 1) -> Iterator[None]:
        """With a window of another width, a system whose colours are dark, or so many pixels of the screen for one."""
        metrics = {"width": width, "height": SIZE[1], "deviceScaleFactor": scale, "mobile": False}
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        self._driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
        try:
            yield
        finally:
            self._driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
            self._driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})

    @contextmanager
    def windows(self, number: int, path: str) -> Iterator[Callable[[], int]]:
        """So many windows side by side that show a page; yields what counts the requests of all of them."""
        own, made = self._driver.current_window_handle, []
        for _ in range(number):
            self._driver.switch_to.new_window("window")
            made.append(self._driver.current_window_handle)
            self.open(path)

        def asked() -> int:
            count = 0
            for one in made:
                self._driver.switch_to.window(one)
                count += self.run("return performance.getEntriesByType('resource').length")
            return count

        try:
            yield asked
        finally:
            for one in made:
                self._driver.switch_to.window(one)
                self._driver.close()
            self._driver.switch_to.window(own)

    def before_scripts(self, script: str) -> None:
        """Let a script run in every page before those of the page."""
        self._driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": script})

    def wait_for(self, script: str) -> Any:
        """Run a script again and again until it returns something."""
        return WebDriverWait(self._driver, SECONDS, 0.1).until(lambda driver: driver.execute_script(script), script)

    def run(self, script: str, *arguments: Any) -> Any:
        """Run a script in the page, and return what it returns."""
        return self._driver.execute_script(script, *arguments)

    def violations(self) -> list[str]:
        """What axe-core finds wrong with the accessibility of the page: the rule and the elements, a line each."""
        self.run(AXE.read_text(encoding="utf-8"))
        found = self._driver.execute_async_script("axe.run(document, {iframes: false}).then(arguments[0])")
        return [f"{one['id']}: {[node['target'] for node in one['nodes']]}" for one in found["violations"]]

    def errors(self) -> list[str]:
        """What the console has told of errors since the last call, those of policies included."""
        return [one["message"] for one in self._driver.get_log("browser") if one["level"] == "SEVERE"]

    def text(self) -> str:
        """All that the page shows."""
        return self._driver.find_element(By.TAG_NAME, "body").text

    def find(self, xpath: str) -> WebElement:
        """Wait until an element is visible, and return it."""

        def seen(driver: webdriver.Chrome) -> WebElement | None:
            try:
                return next((one for one in driver.find_elements(By.XPATH, xpath) if one.is_displayed()), None)
            except StaleElementReferenceException:
                return None

        found: WebElement = WebDriverWait(self._driver, SECONDS, 0.3).until(seen, f"nothing on the page is {xpath}")
        return found

    def fill(self, name: str, value: str) -> None:
        """Type into the field of a form."""
        field = self.find(f"//*[@name='{name}']")
        field.clear()
        field.send_keys(value)

    def value(self, name: str) -> str:
        """The value of a form's field."""
        return str(self.find(f"//*[@name='{name}']").get_attribute("value"))

    def choose(self, xpath: str, value: str) -> None:
        """Choose from a list by typing."""
        field = self.find(xpath)
        field.send_keys(value)
        self.find(f"//*[@role='option'][normalize-space()='{value}']")
        field.send_keys(Keys.ENTER)

    def click(self, xpath: str) -> None:
        """Click an element as soon as it can be clicked."""

        def clicked(_driver: webdriver.Chrome) -> bool:
            try:
                self.find(xpath).click()
            except WebDriverException:  # another element covers it for a moment
                return False
            return True

        WebDriverWait(self._driver, SECONDS, 0.5).until(clicked, f"{xpath} cannot be clicked")

    def click_to_new_tab(self, xpath: str) -> tuple[str, str]:
        """Click an element that opens a page in a new tab; return the address and the text of that page."""
        return self.new_tab(lambda: self.click(xpath))

    def new_tab(self, act: Callable[[], None]) -> tuple[str, str]:
        """Do what opens a page in a new tab; return the address and the text of that page."""
        own = self._driver.current_window_handle
        before = set(self._driver.window_handles)
        act()
        wait = WebDriverWait(self._driver, SECONDS, 0.3)
        wait.until(lambda driver: set(driver.window_handles) - before, "no tab was opened")
        [tab] = set(self._driver.window_handles) - before
        self._driver.switch_to.window(tab)
        wait.until(lambda driver: driver.current_url.startswith("http") and self.text(), "the new tab stays empty")
        address, text = self._driver.current_url, self.text()
        self.photograph("tab")
        self._driver.close()
        self._driver.switch_to.window(own)
        return address, text

    def press(self, *keys: str, shift: bool = False) -> None:
        """Press keys one after the other, wherever the focus is."""
        actions = ActionChains(self._driver)
        if shift:
            actions.key_down(Keys.SHIFT)
        actions.send_keys(*keys)
        if shift:
            actions.key_up(Keys.SHIFT)
        actions.perform()

    def drag(self, element: WebElement, x: int, y: int) -> None:
        """Drag the middle of an element by so many pixels, no further than the window."""
        place, size = element.rect, self._driver.execute_script("return [innerWidth, innerHeight]")
        top = self._driver.execute_script("return scrollY")
        middle = place["x"] + place["width"] / 2, place["y"] + place["height"] / 2 - top
        x, y = (min(by, int(most - at - 1)) for by, most, at in zip((x, y), size, middle, strict=True))
        ActionChains(self._driver).click_and_hold(element).move_by_offset(x, y).release().perform()

    def wheel(self, element: WebElement, by: int) -> None:
        """Turn the wheel above an element while Ctrl is pressed."""
        origin = ScrollOrigin.from_element(element)
        actions = ActionChains(self._driver).key_down(Keys.CONTROL)
        actions.scroll_from_origin(origin, 0, by).key_up(Keys.CONTROL).perform()

    def is_focus_seen(self) -> bool:
        """Whether what is visible of the page looks different while an element has the focus."""
        focused = self._driver.get_screenshot_as_png()
        self.run("window.focused = document.activeElement; window.focused.blur()")
        without = self._driver.get_screenshot_as_png()
        self.run("window.focused.focus({focusVisible: true, preventScroll: true})")
        return focused != without

    def photograph(self, name: str) -> bytes:
        """Keep a screenshot, and return it as PNG; they are numbered."""
        self._taken += 1
        screenshot = self._driver.get_screenshot_as_png()
        (self._screenshots / f"{self._taken:02d}-{name}.png").write_bytes(screenshot)
        return screenshot

    def picture(self, above: str | None = None) -> bytes:
        """The page as PNG: all of it, or what is above an element, which a selector names."""
        width, height = self.run(_PICTURED, above)
        clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
        arguments = {"clip": clip, "captureBeyondViewport": True}
        return base64.b64decode(self._driver.execute_cdp_cmd("Page.captureScreenshot", arguments)["data"])
