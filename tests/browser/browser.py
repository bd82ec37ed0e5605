# Drives headless Chromium over the DevTools protocol through pipes; needs nothing but the standard library.
import base64
import json
import os
import subprocess
import tempfile
import time


class Browser:
    """One page in a headless Chromium."""

    def __init__(self, width=1280, height=900, dark=False, program="chromium"):
        to_browser, from_us = os.pipe()
        from_browser, to_us = os.pipe()

        def place_pipes():
            for source, at in ((os.dup(to_browser), 3), (os.dup(to_us), 4)):
                os.dup2(source, at)

        self.profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self.process = subprocess.Popen(
            [program, "--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe", "--hide-scrollbars",
             "--user-data-dir=" + self.profile.name, "--no-first-run", "about:blank"],
            preexec_fn=place_pipes, pass_fds=(3, 4), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_browser), os.close(to_us)
        self.out, self.into = os.fdopen(from_us, "wb", 0), os.fdopen(from_browser, "rb")
        self.buffer, self.number, self.events, self.session = b"", 0, [], None
        self.version = self.call("Browser.getVersion")["product"]
        pages = [one for one in self.call("Target.getTargets")["targetInfos"] if one["type"] == "page"]
        self.session = self.call("Target.attachToTarget", targetId=pages[0]["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(domain + ".enable")
        self.resize(width, height)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def call(self, method, **parameters):
        self.number += 1
        number = self.number
        message = {"id": number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        self.out.write(json.dumps(message).encode() + b"\0")
        while True:
            answer = self.read()
            if answer.get("id") == number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)

    def read(self):
        while b"\0" not in self.buffer:
            got = os.read(self.into.fileno(), 1 << 20)
            if not got:
                raise RuntimeError("the browser has ended")
            self.buffer += got
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def resize(self, width, height):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def open(self, path):
        began = time.monotonic()
        self.call("Page.navigate", url="file://" + os.path.abspath(path))
        self.wait_for("document.readyState === 'complete' && performance.getEntriesByType('navigation')[0].loadEventEnd > 0")
        return time.monotonic() - began

    def evaluate(self, expression):
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(f"{expression}: {json.dumps(answer['exceptionDetails'])[:600]}")
        return answer["result"].get("value")

    def wait_for(self, condition, seconds=60):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            try:
                if self.evaluate(condition):
                    return
            except RuntimeError as error:  # the page is just being replaced
                if "context" not in str(error) and "navigat" not in str(error):
                    raise
            time.sleep(0.05)
        raise RuntimeError("waited in vain for " + condition)

    def mouse(self, kind, x, y, **more):
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def drag(self, x, y, to_x, to_y):
        self.mouse("mouseMoved", x, y)
        self.mouse("mousePressed", x, y, button="left", buttons=1, clickCount=1)
        for i in range(1, 6):
            self.mouse("mouseMoved", x + (to_x - x) * i / 5, y + (to_y - y) * i / 5, button="left", buttons=1)
        self.mouse("mouseReleased", to_x, to_y, button="left", clickCount=1)

    def key(self, key):
        more = {"text": key} if len(key) == 1 else {}
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, **more)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key)

    def picture(self, path, whole=False):
        more = {}
        if whole:
            size = self.call("Page.getLayoutMetrics")["cssContentSize"]
            more = {"captureBeyondViewport": True, "clip": {"x": 0, "y": 0, "width": size["width"], "height": min(size["height"], 6000), "scale": 1}}
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.call("Page.captureScreenshot", format="png", **more)["data"]))

    def problems(self):
        """Returns errors that the page caused, and requests that left the file."""
        self.evaluate("1")
        found = []
        for event in self.events:
            if event.get("method") == "Runtime.exceptionThrown":
                details = event["params"]["exceptionDetails"]
                found.append(details.get("exception", {}).get("description", details["text"]))
            elif event.get("method") == "Log.entryAdded" and event["params"]["entry"]["level"] == "error":
                found.append(event["params"]["entry"]["text"])
            elif event.get("method") == "Network.requestWillBeSent":
                url = event["params"]["request"]["url"]
                if not url.startswith(("file:", "data:", "about:")):
                    found.append("request to " + url)
        return found

    def close(self):
        self.process.terminate()
        self.process.wait()
        self.profile.cleanup()
