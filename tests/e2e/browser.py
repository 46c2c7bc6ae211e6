"""A headless Chromium for the tests of the page, and the few things they do with it."""

import contextlib
import shutil
import time

from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

WAIT_S = 60  # an answer of the demo model on a busy machine; a test that waits longer has failed


@contextlib.contextmanager
def chromium(width=1100, height=900, dark=False):
    """Yields a driver with a window of width × height CSS pixels and no network but loopback."""
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or shutil.which("chromium-browser")
    for flag in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu",
                 "--no-proxy-server", "--disable-background-networking"):
        options.add_argument(flag)
    if dark:
        options.add_argument("--force-dark-mode")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    service = webdriver.ChromeService(shutil.which("chromedriver"))
    driver = webdriver.Chrome(options=options, service=service)
    try:
        # Headless windows have a minimum width; the emulated screen has none.
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
            "width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500})
        yield driver
    finally:
        driver.quit()


def wait_for(what, condition, seconds=WAIT_S):
    """Polls condition() until it is truthy; returns that value."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.05)
    raise AssertionError(f"waited {seconds} s for {what}")


def open_page(driver, url):
    driver.get(url)
    wait_for("the page's script", lambda: driver.find_element(By.ID, "model").text or
             driver.find_element(By.ID, "notice").is_displayed())


def ask(driver, text):
    """Types the text and sends it with Enter, as a person does; Shift+Enter makes new lines."""
    box = driver.find_element(By.ID, "prompt")
    for index, line in enumerate(text.split("\n")):
        if index:
            box.send_keys(Keys.SHIFT, Keys.ENTER)
            box.send_keys(Keys.NULL)
        box.send_keys(line)
    box.send_keys(Keys.ENTER)


def wait_answer(driver, seconds=WAIT_S):
    """Waits until no answer is in progress; returns the last answer's visible text."""
    wait_for("the end of the answer",
             lambda: driver.find_element(By.ID, "send").is_displayed() and
             driver.find_elements(By.CSS_SELECTOR, ".turn.assistant footer *"), seconds)
    return driver.find_elements(By.CSS_SELECTOR, ".turn.assistant .answer")[-1].text


def is_overflowing(driver):
    """True when the page can be scrolled sideways."""
    return driver.execute_script(
        "return document.documentElement.scrollWidth > document.documentElement.clientWidth || "
        "document.getElementById('log').scrollWidth > document.getElementById('log').clientWidth")


def requested_urls(driver):
    """Every address the page asked for since the last call, from the browser's own record."""
    import json
    urls = []
    for entry in driver.get_log("performance"):
        message = json.loads(entry["message"])["message"]
        if message["method"] == "Network.requestWillBeSent":
            urls.append(message["params"]["request"]["url"])
    return urls
