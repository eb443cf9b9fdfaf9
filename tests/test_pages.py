"""The pages of the documentation, as they were built, in a browser: `nox -s docs`."""

import builtins
import functools
import html.parser
import importlib
import pydoc
import runpy
import shutil
from pathlib import Path
from urllib.parse import quote_plus, unquote, urljoin, urlsplit

import pytest

BUILT = Path(__file__).parent.parent / "docs" / "_build"
BROWSER = runpy.run_path(str(Path(__file__).with_name("browser.py")))
PAGES = sorted(
    str(path.relative_to(BUILT))
    for path in BUILT.rglob("*.html")
    if not {"_static", "_modules"} & {*path.parts}
)
WIDTHS = {"wide": 1280, "narrow": 390}
# What people look for, and the page that answers it.
SEARCHES = {
    "install": "install",
    "numpy 2": "install",
    "conda": "install",
    "first model": "first_model",
    "SGDClassifier": "coming_from_sklearn",
    "MLPClassifier": "coming_from_sklearn",
    "keras": "coming_from_deep_learning",
    "skorch": "coming_from_deep_learning",
    "OrtGradientOptimizer": "coming_from_onnxcustom",
    "generate_artifacts": "coming_from_onnxcustom",
    "pipeline": "pipelines",
    "missing values": "pipelines",
    "text": "text_and_sparse",
    "sparse": "text_and_sparse",
    "embedding": "text_and_sparse",
    "losses": "losses",
    "huber": "losses",
    "quantile regression": "prediction_intervals",
    "prediction interval": "prediction_intervals",
    "confidence": "prediction_intervals",
    "penalty": "objective",
    "elastic net": "objective",
    "class_weight": "objective",
    "learning rate": "learning_rates",
    "scheduler": "learning_rates",
    "optimizer": "learning_rates",
    "momentum": "learning_rates",
    "standardize": "learning_rates",
    "early stopping": "stopping",
    "callback": "stopping",
    "partial_fit": "stopping",
    "checkpoint": "stopping",
    "fine-tuning": "fine_tuning",
    "freeze weights": "fine_tuning",
    "custom loss": "custom_parts",
    "custom penalty": "custom_parts",
    "training loop": "custom_loops",
    "plot loss curve": "plotting",
    "calibration": "interpretation",
    "permutation importance": "interpretation",
    "mlflow": "interpretation",
    "quantize": "serving",
    "deployment": "serving",
    "javascript": "serving",
    "browser": "on_device",
    "dask": "dask",
    "GPU": "speed",
    "n_jobs": "speed",
    "gradient graph": "low_level",
    "diverged": "troubleshooting",
}

pytestmark = [
    pytest.mark.pages,
    pytest.mark.skipif(not PAGES, reason="needs the pages: nox -s docs"),
]


class _Addresses(html.parser.HTMLParser):
    """What a page links to or loads, and the places in it that one can link to."""

    def __init__(self, path):
        super().__init__()
        self.links, self.anchors = set(), {""}
        self.feed(path.read_text())

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name in ("href", "src") and value is not None:
                self.links.add(value)
            if name == "id" or (tag == "a" and name == "name"):
                self.anchors.add(value)


_addresses = functools.cache(_Addresses)


def _is_there(page, link):
    """Whether a link goes elsewhere, or to a file and a place in it that exist."""
    target = urlsplit(urljoin(page, link))
    if target.scheme:
        return True
    path = BUILT / unquote(target.path)
    if not path.is_file():
        return False
    return path.suffix != ".html" or unquote(target.fragment) in _addresses(path).anchors


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page):
    links = _addresses(BUILT / page).links
    assert links
    assert [link for link in sorted(links) if not _is_there(page, link)] == []


def test_each_example_has_a_figure_and_a_picture_of_its_own():
    examples = [
        page for page in PAGES if page.startswith("gallery/") and Path(page).name != "index.html"
    ]
    assert examples
    figures = {
        page: [at for at in _addresses(BUILT / page).links if "/_images/" in at]
        for page in examples
    }
    assert [page for page in examples if all("_thumb." in at for at in figures[page])] == []
    pictures = [
        path.read_bytes() for path in sorted((BUILT / "_images").glob("sphx_glr_*_thumb.png"))
    ]
    assert len(pictures) == len(examples)
    # sphinx-gallery has the same placeholder for all that draw nothing.
    assert len(pictures) == len(set(pictures))


@pytest.mark.parametrize(
    "inventory", sorted((BUILT.parent / "inventories").glob("*.txt")), ids=lambda path: path.stem
)
def test_inventories_name_what_exists(inventory):
    pytest.importorskip(inventory.stem if inventory.stem != "python" else "builtins")
    if inventory.stem == "sklearn":
        importlib.import_module("sklearn.experimental.enable_halving_search_cv")
        importlib.import_module("sklearn.experimental.enable_iterative_imputer")
    rows = [line.split() for line in inventory.read_text().splitlines()]
    names = [name for name, role, _ in rows if role.startswith("py:")]
    assert names
    assert [
        name for name in names if pydoc.locate(name) is None and not hasattr(builtins, name)
    ] == []


@pytest.fixture(scope="module")
def address():
    with BROWSER["served"](BUILT) as address:
        yield address


@pytest.fixture(scope="module")
def driver(tmp_path_factory):
    pytest.importorskip("selenium")
    if not (shutil.which("chromium") and shutil.which("chromedriver")):
        pytest.skip("needs Chromium and its driver")
    with BROWSER["driven"](tmp_path_factory.mktemp("profile")) as driver:
        yield driver


# What is wider than the window, code that cannot be read to its end, and pictures that
# are not there.
_DEFECTS = """
const right = document.documentElement.clientWidth;
const scrolls = (element) => ["auto", "scroll"].includes(getComputedStyle(element).overflowX);
const text = (element) => element.textContent.trim().slice(0, 60);
const defects = [];
const isInside = (element) => element !== null && (scrolls(element) || isInside(element.parentElement));
if (document.documentElement.scrollWidth > right) {
  const wide = [...document.querySelectorAll(".bd-main *")].filter((e) => e.getBoundingClientRect().right > right + 1);
  const first = wide.find((e) => !isInside(e));
  defects.push(`the page is ${document.documentElement.scrollWidth} wide: ${first && first.outerHTML.slice(0, 200)}`);
}
for (const words of document.querySelectorAll(".bd-article :is(h1, h2, h3, h4, p, li, dt)"))
  if (words.scrollWidth > words.clientWidth + 1 && words.clientWidth && !isInside(words))
    defects.push(`too long: ${text(words)}`);
for (const code of document.querySelectorAll("pre")) {
  if (code.scrollWidth > code.clientWidth + 1 && !scrolls(code)) defects.push(`clipped: ${text(code)}`);
  for (let parent = code.parentElement; parent && !scrolls(parent); parent = parent.parentElement) {
    const hides = getComputedStyle(parent).overflowX === "hidden";
    if (hides && parent.getBoundingClientRect().right < code.getBoundingClientRect().right - 1)
      defects.push(`hidden: ${text(code)}`);
  }
}
for (const picture of document.images)
  if (picture.checkVisibility() && !picture.naturalWidth) defects.push(`no picture: ${picture.src}`);
return defects;
"""


@pytest.mark.parametrize("page", PAGES)
def test_a_page_can_be_read(page, address, driver):
    driver.get(f"{address}/{page}")
    defects = {}
    for name, width in WIDTHS.items():
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        defects[name] = driver.execute_script(_DEFECTS)
    assert defects == {name: [] for name in WIDTHS}
    assert driver.get_log("browser") == []


@pytest.mark.parametrize("words", SEARCHES)
def test_the_search_finds_the_page_that_answers(words, address, driver):
    from selenium.webdriver.common.by import By
    from selenium.webdriver.support.wait import WebDriverWait

    driver.get(f"{address}/search.html?q={quote_plus(words)}")
    done = (By.CSS_SELECTOR, "#search-results .search-summary")
    WebDriverWait(driver, 20).until(lambda driver: "found" in driver.find_element(*done).text)
    links = driver.find_elements(By.CSS_SELECTOR, "#search-results ul.search li > a")
    first = [urlsplit(link.get_attribute("href")).path.lstrip("/") for link in links[:3]]
    assert f"{SEARCHES[words]}.html" in first
