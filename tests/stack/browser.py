"""A real browser, and Airflow's pages in it."""

from __future__ import annotations

import tempfile
from pathlib import Path
from types import TracebackType

from selenium import webdriver
from selenium.common.exceptions import StaleElementReferenceException, WebDriverException
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import WebDriverWait

from tests.databases.debian import Progress, program

# A single-page application on a busy machine.
SECONDS = 60
_FLAGS = (
    "--headless=new",
    "--no-sandbox",  # which is not available to root
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--window-size=1400,1300",
)


class Browser:
    """Debian's Chromium, without a window; use it as a context manager.

    :param screenshots: folder that keeps the screenshots.
    """

    def __init__(self, base_url: str, screenshots: Path, *, progress: Progress = lambda line: None) -> None:
        self._base_url, self._screenshots = base_url, screenshots
        self._taken = 0
        self._progress = progress

    def __enter__(self) -> Browser:
        self._screenshots.mkdir(parents=True, exist_ok=True)
        options = webdriver.ChromeOptions()
        options.binary_location = str(program("chromium", "chromium", progress=self._progress))
        driver = str(program("chromedriver", "chromium-driver", progress=self._progress))
        self._profile = tempfile.TemporaryDirectory(prefix="browser-", ignore_cleanup_errors=True)
        for flag in (*_FLAGS, f"--user-data-dir={self._profile.name}"):
            options.add_argument(flag)
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

    def open(self, path: str) -> None:
        """Go to a page of Airflow."""
        self._driver.get(self._base_url + path)

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
        own = self._driver.current_window_handle
        before = set(self._driver.window_handles)
        self.click(xpath)
        wait = WebDriverWait(self._driver, SECONDS, 0.3)
        wait.until(lambda driver: set(driver.window_handles) - before, "no tab was opened")
        [tab] = set(self._driver.window_handles) - before
        self._driver.switch_to.window(tab)
        wait.until(lambda driver: driver.current_url.startswith("http") and self._text(), "the new tab stays empty")
        address, text = self._driver.current_url, self._text()
        self.photograph("tab")
        self._driver.close()
        self._driver.switch_to.window(own)
        return address, text

    def photograph(self, name: str) -> None:
        """Keep a screenshot; they are numbered."""
        self._taken += 1
        self._driver.save_screenshot(str(self._screenshots / f"{self._taken:02d}-{name}.png"))

    def _text(self) -> str:
        return self._driver.find_element(By.TAG_NAME, "body").text
