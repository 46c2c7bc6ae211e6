"""The page in a real Chromium, with answers chosen by the test (page_stub.py)."""

import json
import pathlib
import time

import pytest
from browser import ask, chromium, is_overflowing, open_page, requested_urls, wait_answer, wait_for
from page_stub import POLICY, PageStub
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PICTURE = ROOT / "tests/golden/v41-tiny/picture-1.png"

# Kinds of hostile text that broke other pages (case NET-2): none may run, load or hide anything.
HOSTILE = [
    "<script>window.PWNED=1</script>after",
    "<img src=x onerror=\"window.PWNED=1\">",
    "<svg onload=window.PWNED=1>",
    "[click](javascript:window.PWNED=1)",
    "[click](JaVaScRiPt:window.PWNED=1) [d](data:text/html,<script>window.PWNED=1</script>)",
    "![p](http://203.0.113.1/leak.png) ![q](//203.0.113.1/x.png)",
    "<iframe src=http://203.0.113.1/></iframe><link rel=stylesheet href=http://203.0.113.1/a.css>",
    "<style>*{display:none}</style><div style='position:fixed;inset:0'>cover</div>",
    "<form action=http://203.0.113.1/><input name=q><button>go</button></form>",
    "```html\n<script>window.PWNED=1</script>\n```",
    "`<img src=x onerror=window.PWNED=1>` and **<b onclick=window.PWNED=1>x</b>**",
    "| a | b |\n|---|---|\n| <img src=x onerror=window.PWNED=1> | [x](vbscript:y) |",
    "> <script>window.PWNED=1</script>\n\n- <svg/onload=window.PWNED=1>\n"
    "- \u202etxt.exe\u0000\u001b[2J",
    "</div></article></main><script>window.PWNED=1</script>",
    "<a href=\"http://203.0.113.1/\" onmouseover=window.PWNED=1>hover</a> "
    "<meta http-equiv=refresh content=0>",
]
HUGE = ["*" * 100_000, "[" * 100_000, "`" * 99_999, "> " * 20_000 + "x", "a" * 300_000,
        "- x\n" * 5_000, "|a" * 20_000 + "\n" + "|-" * 20_000, "<" * 100_000]


@pytest.fixture
def stub():
    server = PageStub()
    yield server
    server.close()


def test_an_answer_is_streamed_rendered_and_counted(stub):
    stub.answer = "# Title\n\nSome **bold** text, `code` and a [link](https://example.org/).\n\n" \
                  "1. one\n2. two\n\n```cpp\nint x = 1;\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |"
    stub.reasoning = "Let me think."
    with chromium() as driver:
        open_page(driver, stub.url)
        ask(driver, "Hello\nthere")
        text = wait_answer(driver)
        assert "Title" in text and "int x = 1;" in text and "**" not in text
        for selector in ("strong", "code", "a[rel~=noopener]", "ol li", "pre", "td"):
            assert driver.find_elements(By.CSS_SELECTOR, ".answer " + selector), selector
        thinking = driver.find_element(By.CSS_SELECTOR, "details.thinking")
        assert thinking.get_attribute("open") is None
        assert "7 tokens read, 5 written" in driver.find_element(By.CSS_SELECTOR, ".stats").text
        sent = json.loads(stub.requests[-1][2])
        assert sent["messages"] == [{"role": "user", "content": "Hello\nthere"}] and sent["stream"]


def test_stop_ends_the_answer_and_the_next_question_works(stub):
    stub.answer, stub.piece, stub.pause_s = "word " * 2000, 5, 0.02
    with chromium() as driver:
        open_page(driver, stub.url)
        ask(driver, "go on")
        wait_for("some text", lambda: "word" in driver.find_element(By.ID, "log").text)
        driver.find_element(By.ID, "stop").click()
        wait_answer(driver)
        assert stub.hung_up.wait(5)
        stub.answer, stub.pause_s = "second", 0
        ask(driver, "again")
        wait_for("the second answer", lambda: "second" in driver.find_element(By.ID, "log").text)
        roles = [m["role"] for m in json.loads(stub.requests[-1][2])["messages"]]
        assert roles == ["user", "assistant", "user"]


def test_pictures_are_added_shown_removed_and_sent_and_a_reload_keeps_the_chat(stub):
    with chromium() as driver:
        open_page(driver, stub.url)
        chooser = driver.find_element(By.ID, "file")
        chooser.send_keys(f"{PICTURE}\n{PICTURE}")
        wait_for("two thumbnails", lambda: len(driver.find_elements(
            By.CSS_SELECTOR, "#attachments img")) == 2)
        driver.find_element(By.CSS_SELECTOR, "#attachments button").click()
        ask(driver, "What is in this picture?")
        wait_answer(driver)
        parts = json.loads(stub.requests[-1][2])["messages"][0]["content"]
        assert [p["type"] for p in parts] == ["image_url", "text"]
        assert parts[0]["image_url"]["url"].startswith("data:image/png;base64,")
        driver.refresh()
        wait_for("the turns after the reload", lambda: len(driver.find_elements(
            By.CSS_SELECTOR, ".turn")) == 2)
        assert driver.find_elements(By.CSS_SELECTOR, ".turn.user img[src^='data:image/png']")
        driver.find_element(By.ID, "new-chat").click()
        wait_for("an empty chat", lambda: not driver.find_elements(By.CSS_SELECTOR, ".turn"))


def drop_file(driver, kind):
    """Fires a real drop or paste event with a small PNG made in the page."""
    driver.execute_async_script("""
      const done = arguments[arguments.length - 1];
      const canvas = document.createElement('canvas'); canvas.width = canvas.height = 64;
      canvas.toBlob((blob) => {
        const data = new DataTransfer();
        data.items.add(new File([blob], 'shapes.png', {type: 'image/png'}));
        const event = arguments[0] === 'drop'
          ? new DragEvent('drop', {dataTransfer: data, bubbles: true, cancelable: true})
          : new ClipboardEvent('paste', {clipboardData: data, bubbles: true, cancelable: true});
        document.getElementById('drop-zone').dispatchEvent(event);
        done();
      });""", kind)


def test_pictures_come_in_by_drag_and_by_paste(stub):
    with chromium() as driver:
        open_page(driver, stub.url)
        for count, kind in enumerate(("drop", "paste"), 1):
            drop_file(driver, kind)
            wait_for(kind, lambda: len(driver.find_elements(
                By.CSS_SELECTOR, "#attachments img")) == count)


def test_hostile_text_runs_nothing_loads_nothing_and_stays_readable(stub):
    with chromium() as driver:
        open_page(driver, stub.url)
        for piece in (1_000_000, 3):
            for text in HOSTILE:
                stub.answer, stub.reasoning, stub.piece, stub.model = text, text, piece, text
                before = len(stub.requests)
                ask(driver, "x")
                shown = wait_for("the answer", lambda: len(stub.requests) > before and
                                 wait_answer(driver))
                assert "PWNED" not in text or "PWNED" in shown or "click" in shown or "x" in shown
        ask(driver, HOSTILE[1])
        wait_answer(driver)
        driver.refresh()
        wait_for("the history", lambda: len(driver.find_elements(By.CSS_SELECTOR, ".turn")) > 30)
        assert driver.execute_script("return window.PWNED") is None
        assert not driver.find_elements(By.CSS_SELECTOR, "#log iframe, #log script, #log form, "
                                        "#log style, #log [onerror], #log .assistant img")
        hrefs = [a.get_attribute("href") for a in driver.find_elements(By.CSS_SELECTOR, "#log a")]
        assert all(h.startswith(("http://", "https://", "mailto:")) for h in hrefs)
        foreign = [u for u in requested_urls(driver)
                   if not u.startswith((stub.url, "data:", "blob:", "chrome:", "about:"))]
        assert not foreign
        assert driver.find_element(By.ID, "send").is_displayed()


def test_huge_texts_leave_the_page_usable(stub):
    with chromium() as driver:
        open_page(driver, stub.url)
        for text in HUGE:
            stub.answer, stub.piece = text, 5_000
            count = len(driver.find_elements(By.CSS_SELECTOR, ".turn"))
            ask(driver, "x")
            wait_for("the answer", lambda: len(driver.find_elements(
                By.CSS_SELECTOR, ".turn")) == count + 2)
            wait_answer(driver)
        ask(driver, "still here?")
        stub.answer = "yes"
        wait_answer(driver)


@pytest.mark.parametrize("status, words", [
    (429, "busy"), (401, "API key"), (503, "not ready"), (400, "prompt has 9 tokens")])
def test_errors_are_said_in_plain_words(stub, status, words):
    stub.status, stub.answer = status, "prompt has 9 tokens, the context holds 8"
    with chromium() as driver:
        open_page(driver, stub.url)
        driver.find_element(By.ID, "prompt").send_keys("hi", Keys.ENTER)
        error = wait_for("an error", lambda: driver.find_elements(By.CSS_SELECTOR, ".turn .error"))
        assert words in error[0].text
        assert driver.find_element(By.ID, "send").is_displayed()


def test_a_server_that_is_gone_is_said_in_plain_words(stub):
    with chromium() as driver:
        open_page(driver, stub.url)
        stub.close()
        driver.find_element(By.ID, "prompt").send_keys("hi", Keys.ENTER)
        error = wait_for("an error", lambda: driver.find_elements(By.CSS_SELECTOR, ".turn .error"))
        assert "cannot be reached" in error[0].text


def test_the_page_fits_a_phone_and_works_by_keyboard_alone(stub):
    stub.answer = "A long word: " + "x" * 300 + "\n\n```\n" + "y" * 300 + "\n```"
    with chromium(width=390, height=800) as driver:
        open_page(driver, stub.url)
        assert driver.execute_script("return innerWidth") == 390
        assert driver.switch_to.active_element.get_attribute("id") == "prompt"
        driver.switch_to.active_element.send_keys("hi", Keys.ENTER)
        wait_answer(driver)
        assert not is_overflowing(driver)
        seen = set()
        for _ in range(40):
            driver.switch_to.active_element.send_keys(Keys.TAB)
            seen.add(driver.switch_to.active_element.get_attribute("id"))
        assert {"new-chat", "theme", "attach", "prompt", "send", "think"} <= seen
        time.sleep(0.1)


def test_the_stub_sends_the_real_servers_policy():
    sources = "".join(p.read_text() for p in (ROOT / "src/server").rglob("*.cc"))
    flat = "".join(part for part in sources.split('"') if part.strip(" \n\t"))
    for rule in POLICY.split("; "):
        assert rule in flat, rule
