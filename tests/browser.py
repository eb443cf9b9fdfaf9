"""Pages in a browser without a window."""

import contextlib
import functools
import http.server
import queue
import shutil
import subprocess
import threading

# Nothing is fetched from elsewhere.
FLAGS = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@contextlib.contextmanager
def served(folder, take=None):
    """
    Serve a folder to this machine, and give a function the text of each POST;
    yield the address.
    """

    class Handler(http.server.SimpleHTTPRequestHandler):
        def do_POST(self):
            take(self.rfile.read(int(self.headers["Content-Length"])).decode())
            self.send_response(204)
            self.end_headers()

        def log_message(self, *args):
            pass

    handler = functools.partial(Handler, directory=folder)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def page_when(condition, folder, address):
    """
    Return a page of a folder, as Chromium has it as soon as a condition in JavaScript holds;
    without the host.
    """
    file = folder / address.partition("#")[0]
    # Chromium's own --virtual-time-budget runs out under load while WebAssembly compiles.
    sent = 'fetch("/", {method: "POST", body: document.documentElement.outerHTML})'
    watch = f"const watch = setInterval(() => ({condition}) && (clearInterval(watch), {sent}), 50)"
    file.write_text(f"{file.read_text()}<script>{watch}</script>")
    pages = queue.Queue()
    with served(folder, pages.put) as host:
        command = ["chromium", *FLAGS, f"--user-data-dir={folder / 'profile'}", f"{host}/{address}"]
        chromium = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            return pages.get(timeout=300).replace(f"{host}/", "")
        finally:
            chromium.terminate()
            chromium.wait()


@contextlib.contextmanager
def driven(profile):
    """Start Chromium with a new profile in a folder; yield what drives it."""
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    for flag in (*FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "SEVERE"})
    driver = webdriver.Chrome(options, webdriver.ChromeService(shutil.which("chromedriver")))
    try:
        yield driver
    finally:
        driver.quit()
