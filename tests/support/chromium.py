"""A real browser for tests: headless Chromium, spoken to through a pipe in the DevTools protocol."""

from __future__ import annotations

import base64
import contextlib
import itertools
import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
# Nothing of these is of use to a test, and some would ask the network.
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-background-timer-throttling",  # of several pages one is in front
    "--disable-backgrounding-occluded-windows",
    "--disable-renderer-backgrounding",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-extensions",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--mute-audio",
    "--no-default-browser-check",
    "--remote-debugging-pipe",
)
PHONE = (390, 844)
DESKTOP = (1280, 800)
ANSWER_S = 60.0


class NotInstalled(Exception):
    """There is no browser on this machine."""


class BrowserError(Exception):
    """The browser did not do what it was told."""


class Browser:
    """One browser process. `with Browser(folder) as browser, browser.page(url, ...) as page:`"""

    def __init__(self, folder: Path) -> None:
        binary = next((found for name in NAMES if (found := shutil.which(name))), None)
        if binary is None:
            raise NotInstalled("no Chromium here (on Debian and Ubuntu: apt install chromium)")
        to_read, self._write = os.pipe()
        self._read, to_write = os.pipe()
        self._rest = b""
        self._events: list[dict[str, Any]] = []
        self._numbers = itertools.count(1)

        # Our ends may sit on 3 and 4, where the browser wants its own: move both out of the way first.
        def fds() -> None:
            a, b = os.dup(to_read), os.dup(to_write)
            os.dup2(a, 3)
            os.dup2(b, 4)

        self._process = subprocess.Popen(
            [binary, *FLAGS, f"--user-data-dir={folder}", "about:blank"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            preexec_fn=fds,
            close_fds=False,
            start_new_session=True,
        )
        os.close(to_read)
        os.close(to_write)

    def __enter__(self) -> Browser:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        with contextlib.suppress(BrowserError, OSError):
            self.call("Browser.close")
        with contextlib.suppress(OSError):
            os.close(self._write)
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, 9)
            self._process.wait()
        os.close(self._read)

    def call(self, method: str, session: str | None = None, /, **params: Any) -> dict[str, Any]:
        """One command, and its result. Raises BrowserError."""
        number = next(self._numbers)
        message: dict[str, Any] = {"id": number, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        data = memoryview(json.dumps(message).encode() + b"\0")
        while data:
            data = data[os.write(self._write, data) :]
        deadline = time.monotonic() + ANSWER_S
        while True:
            answer = self._message(deadline)
            if answer.get("id") == number:
                if "error" in answer:
                    raise BrowserError(f"{method}: {answer['error'].get('message')}")
                result: dict[str, Any] = answer["result"]
                return result
            if "method" in answer:
                self._events.append(answer)

    def events(self, session: str) -> list[dict[str, Any]]:
        """What a page has told so far."""
        return [e for e in self._events if e.get("sessionId") == session]

    def _message(self, deadline: float) -> dict[str, Any]:
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._read], [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                raise BrowserError(f"no answer within {ANSWER_S:.0f} s")
            part = os.read(self._read, 1 << 20)
            if not part:
                raise BrowserError("the browser has gone")
            self._rest += part
        line, _, self._rest = self._rest.partition(b"\0")
        message: dict[str, Any] = json.loads(line)
        return message

    @contextlib.contextmanager
    def page(
        self, url: str, size: tuple[int, int] = DESKTOP, *, dark: bool = False, javascript: bool = True
    ) -> Iterator[Page]:
        """A page of that size, loaded."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = Page(self, session)
        phone = size[0] < 600
        for domain in ("Page", "Runtime", "Log", "Network"):
            page.call(f"{domain}.enable")
        page.call(
            "Emulation.setDeviceMetricsOverride",
            width=size[0],
            height=size[1],
            deviceScaleFactor=1,
            mobile=phone,
        )
        page.call("Emulation.setTouchEmulationEnabled", enabled=phone)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        page.call("Emulation.setEmulatedMedia", features=[scheme])
        page.call("Emulation.setScriptExecutionDisabled", value=not javascript)
        page.call("Page.navigate", url=url)
        page.wait_for("document.readyState === 'complete' && location.href !== 'about:blank'")
        try:
            yield page
        finally:
            self.call("Target.closeTarget", targetId=target)


class Page:
    def __init__(self, browser: Browser, session: str) -> None:
        self._browser, self._session = browser, session

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        return self._browser.call(method, self._session, **params)

    def value(self, expression: str) -> Any:
        """The value of a JavaScript expression. Raises BrowserError where it throws."""
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise BrowserError(f"{expression}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def wait_for(self, condition: str, seconds: float = 60.0) -> None:
        """Until a condition holds. Raises BrowserError if it doesn't in time."""
        deadline = time.monotonic() + seconds
        while not self.value(condition):
            if time.monotonic() > deadline:
                raise BrowserError(f"not within {seconds:.0f} s: {condition}")
            time.sleep(0.02)

    def complaints(self) -> list[str]:
        """Errors and warnings of the console, and exceptions."""
        out = []
        for event in self._browser.events(self._session):
            params = event["params"]
            if event["method"] == "Runtime.exceptionThrown":
                out.append(str(params["exceptionDetails"]))
            elif event["method"] == "Runtime.consoleAPICalled" and params["type"] in (
                "error",
                "warning",
                "assert",
            ):
                out.append(" ".join(str(a.get("value", a)) for a in params["args"]))
            elif event["method"] == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
                out.append(params["entry"]["text"])
        return out

    def requested(self) -> list[str]:
        """The addresses that the page asked for."""
        return [
            e["params"]["request"]["url"]
            for e in self._browser.events(self._session)
            if e["method"] == "Network.requestWillBeSent"
        ]

    def screenshot(self, path: Path, clip: tuple[int, int, int, int] | None = None) -> None:
        """A picture of what is seen, or of (x, y, width, height) of the page, as PNG."""
        part = (
            {}
            if clip is None
            else {"clip": dict(zip(("x", "y", "width", "height"), clip, strict=True), scale=1)}
        )
        result = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=bool(part), **part)
        path.write_bytes(base64.b64decode(result["data"]))

    def pdf(self, path: Path) -> None:
        result = self.call("Page.printToPDF", printBackground=True, preferCSSPageSize=True)
        path.write_bytes(base64.b64decode(result["data"]))
