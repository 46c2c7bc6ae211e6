"""The demo as a person meets it: the real server, the trained model, a real Chromium.

Report A's picture (1554x1078: a red rectangle in the upper left, a green ellipse in the middle, a
blue rectangle in the lower right) is listed right, and the screenshots in docs/ are made here.
"""

import pathlib
import tempfile
import unittest

from browser import ask, chromium, is_overflowing, open_page, wait_answer, wait_for
from drawings import report_picture
from program import Server
from selenium.webdriver.common.by import By

DOCS = pathlib.Path(__file__).resolve().parents[2] / "docs"
LISTED = "red rectangle, upper left\ngreen ellipse, centre\nblue rectangle, lower right"


class Demo(unittest.TestCase):
    def ask_about_the_picture(self, width, height, screenshot):
        with tempfile.TemporaryDirectory() as folder, \
                Server("--temperature", "0") as server, chromium(width, height) as driver:
            open_page(driver, server.url + "/")
            driver.find_element(By.ID, "file").send_keys(str(report_picture(folder)))
            wait_for("the thumbnail", lambda: driver.find_elements(
                By.CSS_SELECTOR, "#attachments img"))
            ask(driver, "List the shapes.")
            answer = wait_answer(driver)
            self.assertEqual(answer.strip(), LISTED)
            self.assertFalse(is_overflowing(driver))
            driver.save_screenshot(str(DOCS / screenshot))

    def test_a_picture_is_listed_right_in_a_wide_window(self):
        self.ask_about_the_picture(1100, 900, "chat-wide.png")

    def test_a_picture_is_listed_right_at_phone_width(self):
        self.ask_about_the_picture(390, 800, "chat-phone.png")


if __name__ == "__main__":
    unittest.main()
