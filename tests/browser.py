"""A page in a browser without a window: it is clicked, measured and photographed over the browser's own pipe.

Chromium started with --remote-debugging-pipe reads commands of the DevTools protocol from file descriptor 3 and answers
on 4, each message in JSON and ended by a zero byte. So no package and no port is needed.
"""

import base64
import contextlib
import itertools
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.clock import HANGS

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
SWITCHES = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars")
PIPE = ("--remote-debugging-pipe", "--no-first-run", "--force-color-profile=srgb")


def find() -> str | None:
    """The browser of this machine, None where none of NAMES is installed."""
    return next(filter(None, map(shutil.which, NAMES)), None)


class Tab:
    """One open page; `complaints` holds what its scripts have written to the console and their errors, `requests` all
    addresses that it has asked for."""

    def __init__(self, commands: int, answers: int):
        self.commands, self.answers, self.rest, self.numbers = commands, answers, b"", itertools.count(1)
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.session: dict = {}
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = {"sessionId": self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]}
        for domain in ("Page", "Runtime", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters) -> dict:
        """What the browser answers to a command."""
        number = next(self.numbers)
        message = {"id": number, "method": method, "params": parameters, **self.session}
        os.write(self.commands, json.dumps(message).encode() + b"\0")
        while (answer := self.read()).get("id") != number:
            pass
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']}")
        return answer["result"]

    def read(self) -> dict:
        """The next message; complaints of the page are kept on the way."""
        end = time.monotonic() + HANGS
        while b"\0" not in self.rest:
            if not select.select([self.answers], [], [], max(0.0, end - time.monotonic()))[0]:
                raise TimeoutError("the browser does not answer")
            self.rest += os.read(self.answers, 1 << 20)
        line, self.rest = self.rest.split(b"\0", 1)
        message = json.loads(line)
        if message.get("method") == "Runtime.exceptionThrown":
            self.complaints.append(str(message["params"]["exceptionDetails"]))
        if message.get("method") == "Runtime.consoleAPICalled":
            self.complaints.append(str(message["params"]["args"]))
        if message.get("method") == "Network.requestWillBeSent":
            self.requests.append(message["params"]["request"]["url"])
        self.loaded = message.get("method") == "Page.loadEventFired"
        return message

    def open(self, page: Path, width: int = 1280, dark: bool = False, query: str = "") -> None:
        """Load a file, in a window of this width, on a light or dark system; `query` follows the name of the file."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self.loaded = False
        self.call("Page.navigate", url=page.resolve().as_uri() + query)
        while not self.loaded:
            self.read()

    def run(self, script: str) -> Any:
        """The value of an expression in the page."""
        done = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in done:
            raise RuntimeError(done["exceptionDetails"])
        return done["result"].get("value")

    def click(self, selector: str, x: float = 0.5, y: float = 0.5) -> None:
        """Press the mouse on the first element of a selector, at this share of its width and height."""
        box = self.run(
            f"(() => {{ const one = document.querySelector({json.dumps(selector)});"
            " one.scrollIntoView({ block: 'center' }); const box = one.getBoundingClientRect();"
            " return [box.left, box.top, box.width, box.height] })()"
        )
        at = {"x": box[0] + x * box[2], "y": box[1] + y * box[3], "button": "left", "clickCount": 1}
        for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, **at)

    def press(self, key: str) -> None:
        """Press a key, by its name in the protocol, such as Tab or ArrowRight."""
        codes = {"Tab": 9, "Enter": 13, "ArrowLeft": 37, "ArrowRight": 39, "Space": 32}
        about = {"key": " " if key == "Space" else key, "code": key, "windowsVirtualKeyCode": codes[key]}
        text = {"text": {"Enter": "\r", "Space": " "}[key]} if key in ("Enter", "Space") else {}
        self.call("Input.dispatchKeyEvent", type="keyDown", **about, **text)
        self.call("Input.dispatchKeyEvent", type="keyUp", **about)

    def photograph(self, path: Path) -> None:
        """Write the whole page as a PNG."""
        shot = self.call("Page.captureScreenshot", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(shot["data"]))


@contextlib.contextmanager
def tab() -> Iterator[Tab]:
    """A context manager: a tab of a new browser with nothing remembered."""
    browser = find()
    if browser is None:
        raise FileNotFoundError(f"no browser: none of {', '.join(NAMES)} is installed")
    to_browser, commands = os.pipe()
    answers, from_browser = os.pipe()

    def descriptors():  # the browser wants them as 3 and 4
        kept = os.dup(to_browser), os.dup(from_browser)
        os.dup2(kept[0], 3)
        os.dup2(kept[1], 4)

    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        started = subprocess.Popen(
            [browser, *SWITCHES, *PIPE, f"--user-data-dir={profile}"],
            preexec_fn=descriptors,
            close_fds=False,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_browser)
        os.close(from_browser)
        try:
            yield Tab(commands, answers)
        finally:
            started.terminate()
            started.wait()
            os.close(commands)
            os.close(answers)
