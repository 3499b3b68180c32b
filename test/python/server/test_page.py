"""The page at `/`: its files, and what a user does with it in a headless Chromium."""

from __future__ import annotations

import os
import re
import shutil

import pytest


def test_files(server):
    index = server.http.get("/")
    assert index.status_code == 200 and index.headers["content-type"].startswith("text/html")
    assert "default-src 'self'" in index.headers["content-security-policy"]
    parts = re.findall(r'(?:src|href)="(page/[\w.]+)"', index.text)
    scripts = {name: server.http.get(f"/{name}") for name in parts}
    assert len(scripts) == 3 and all(answer.status_code == 200 for answer in scripts.values())
    imported = {name for answer in scripts.values() for name in re.findall(r'from "\./(\w+\.js)"', answer.text)}
    assert all(server.http.get(f"/page/{name}").status_code == 200 for name in imported)
    for text in [index.text, *(answer.text for answer in scripts.values())]:
        assert "://" not in text, "the page must ask nobody but its server"
    assert server.http.get("/page/__init__.py").status_code == 404


def test_open_without_a_key_but_not_the_figures(serve):
    server = serve(api_keys=("k",))
    assert server.http.get("/").status_code == server.http.get("/page/chat.js").status_code == 200
    assert server.http.get("/stats").status_code == 401
    assert "num_running" in server.http.get("/stats", headers={"authorization": "Bearer k"}).json()["toy"]


@pytest.mark.browser
class TestInABrowser:
    @pytest.fixture
    def open_page(self, serve, slow_toy):
        from playwright.sync_api import sync_playwright

        browser_path = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
        assert browser_path, "set CHROMIUM to a Chromium"
        server = serve(slow_toy, api_keys=("secret",))
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=browser_path, args=["--no-sandbox"])

            def visit(width: int, height: int):
                page = browser.new_page(viewport={"width": width, "height": height})
                page.set_default_timeout(10_000)
                page.complaints = []
                page.on("pageerror", lambda error: page.complaints.append(str(error)))
                page.goto(server.url)
                return page

            yield server, visit
            browser.close()

    @pytest.mark.parametrize("size", [(1280, 800), (360, 640)], ids=["desktop", "phone"])
    def test_a_conversation_by_keyboard(self, open_page, size):
        server, visit = open_page
        page = visit(*size)
        page.wait_for_selector("article.error")  # no key yet
        page.get_by_text("Settings", exact=True).click()
        page.get_by_label("API key").fill("secret")
        page.get_by_label("Longest answer").fill("9")
        page.keyboard.press("Tab")
        page.wait_for_selector("#model option", state="attached")
        page.get_by_role("button", name="Clear").click()
        page.keyboard.type("hello")
        page.keyboard.press("Shift+Enter")
        page.keyboard.type("you")
        page.keyboard.press("Enter")
        footer = page.wait_for_selector("article.assistant footer:not(:empty)")
        assert re.match(r"\d tokens: the first after", footer.inner_text())
        assert page.inner_text("article.user .text") == "hello\nyou"
        # It neither scrolls sideways nor hides its form.
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert page.is_visible("#send")
        page.wait_for_selector("#figures output:not(:empty)")
        assert page.complaints == []
        server.settle()

    def test_escape_stops_an_answer(self, open_page):
        server, visit = open_page
        page = visit(1280, 800)
        page.evaluate("document.getElementById('key').value = 'secret'")
        page.evaluate("document.getElementById('key').dispatchEvent(new Event('change'))")
        page.wait_for_selector("#model option", state="attached")
        page.fill("#question", "a")
        page.keyboard.press("Enter")
        page.wait_for_selector("#stop:enabled")
        page.wait_for_timeout(100)
        page.keyboard.press("Escape")
        page.wait_for_selector("#send:enabled")
        assert server.settle()["num_generated_tokens"] < 100
        assert page.complaints == []
