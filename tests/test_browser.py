"""
The page that trains, in a browser without a window,
and what else the build of the pages may lack.
"""

import html
import json
import re
import runpy
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

DOCS = Path(__file__).parent.parent / "docs"
# The button is enabled again.
DONE = (
    'document.getElementById("skort-status").textContent && '
    '!document.getElementById("skort-train").disabled'
)
BROWSER = runpy.run_path(str(Path(__file__).with_name("browser.py")))


@pytest.fixture
def folder(tmp_path):
    """Return a folder with a page of nothing but the training."""
    static = tmp_path / "_static" / "browser"
    shutil.copytree(DOCS / "static" / "browser", static)
    names = runpy.run_path(str(DOCS / "browser_files.py"))
    names["fetch_runtime"](static)
    names["write_training"](static)
    page = (static / "page.html").read_text()
    (tmp_path / "index.html").write_text(f"<!doctype html><title>training</title>{page}")
    return tmp_path


@pytest.mark.slow
@pytest.mark.skipif(
    not (shutil.which("chromium") and shutil.which("npm")), reason="needs Chromium and npm"
)
def test_the_page_trains_to_the_weights_of_skort(folder):
    page = BROWSER["page_when"](DONE, folder, "index.html#train")
    (result,) = re.findall(r'data-result="([^"]*)"', page)
    result = json.loads(html.unescape(result))
    assert result["difference"] < 1e-4
    assert len(result["losses"]) == 60
    assert result["losses"][-1] < 0.3 * result["losses"][0]
    (points,) = re.findall(r'points="([^"]*)"', page)
    assert len(points.split()) == 60
    # Nothing is fetched from elsewhere.
    sources = re.findall(r'(?:src|href)="([^"]*)"', page)
    files = ["ort.wasm.min.js", "training.js", "train.js"]
    assert sorted(sources) == sorted(f"_static/browser/{name}" for name in files)


@pytest.mark.slow
@pytest.mark.skipif(
    not (shutil.which("chromium") and shutil.which("npm")), reason="needs Chromium and npm"
)
def test_the_page_runs_no_other_script_than_that_of_the_package(folder):
    with (folder / "_static" / "browser" / "ort.wasm.min.js").open("ab") as file:
        file.write(b"\n")
    page = BROWSER["page_when"](DONE, folder, "index.html#train")
    (status,) = re.findall(r'id="skort-status"[^>]*>([^<]*)<', page)
    assert status == "Error: _static/browser/ort.wasm.min.js does not load, or is another file."
    assert "data-result" not in page


def _runtime(static):
    text = (static / "training.js").read_text()
    return json.loads(text.removeprefix("window.skortTraining = ").removesuffix(";\n"))["runtime"]


def test_without_the_files_of_npm_the_page_names_pinned_ones(tmp_path):
    names = runpy.run_path(str(DOCS / "browser_files.py"))
    names["write_training"](tmp_path)
    found = _runtime(tmp_path)
    assert (
        found["address"] == f"https://cdn.jsdelivr.net/npm/onnxruntime-web@{names['VERSION']}/dist/"
    )
    assert len(found["integrity"]) == 3
    assert all(re.fullmatch(r"sha384-[\w+/]{64}", digest) for digest in found["integrity"].values())


def test_a_file_that_is_not_of_the_package_is_named(tmp_path):
    names = runpy.run_path(str(DOCS / "browser_files.py"))
    (tmp_path / "ort.wasm.min.js").write_text("")
    with pytest.raises(
        ValueError, match=r"ort\.wasm\.min\.js is not that of onnxruntime-web 1\.30\.0: remove it"
    ):
        names["write_training"](tmp_path)


def test_a_failed_example_of_the_gallery_keeps_its_own_error(tmp_path):
    pytest.importorskip("PIL")
    settings = runpy.run_path(str(DOCS / "gallery_settings.py"))
    thumbnail = (
        tmp_path / "gallery" / "basics" / "images" / "thumb" / "sphx_glr_classification_thumb.png"
    )
    thumbnail.parent.mkdir(parents=True)
    thumbnail.write_bytes(b"broken")
    (tmp_path / "gallery" / "basics" / "classification.py").write_text("1 / 0\n")
    config = SimpleNamespace(
        sphinx_gallery_conf={"gallery_dirs": "gallery", "thumbnail_size": (400, 280)}
    )
    settings["crop_thumbnails"](SimpleNamespace(srcdir=tmp_path, config=config))
    assert thumbnail.read_bytes() == b"broken"
