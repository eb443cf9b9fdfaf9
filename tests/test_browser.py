"""The page that trains, in a browser without a window."""

import html
import json
import re
import runpy
import shutil
import subprocess
from pathlib import Path

import pytest

DOCS = Path(__file__).parent.parent / "docs"
BROWSER = runpy.run_path(str(Path(__file__).with_name("browser.py")))


@pytest.fixture
def folder(tmp_path):
    """Return a folder with a page of nothing but the training."""
    static = tmp_path / "_static" / "browser"
    shutil.copytree(DOCS / "static" / "browser", static)
    names = runpy.run_path(str(DOCS / "browser_files.py"))
    names["write_training"](static)
    names["write_runtime"](static)
    page = (static / "page.html").read_text()
    (tmp_path / "index.html").write_text(f"<!doctype html><title>training</title>{page}")
    return tmp_path


@pytest.mark.slow
@pytest.mark.skipif(not (shutil.which("chromium") and shutil.which("npm")), reason="needs Chromium and npm")
def test_the_page_trains_to_the_weights_of_skort(folder):
    flags = [*BROWSER["FLAGS"], "--virtual-time-budget=120000", "--dump-dom", f"--user-data-dir={folder / 'profile'}"]
    with BROWSER["served"](folder) as address:
        command = ["chromium", *flags, f"{address}/#train"]
        page = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout
    (result,) = re.findall(r'data-result="([^"]*)"', page)
    result = json.loads(html.unescape(result))
    assert result["difference"] < 1e-4
    assert len(result["losses"]) == 60
    assert result["losses"][-1] < 0.3 * result["losses"][0]
    (points,) = re.findall(r'points="([^"]*)"', page)
    assert len(points.split()) == 60
    # Nothing is fetched from elsewhere.
    sources = re.findall(r'(?:src|href)="([^"]*)"', page)
    assert len(sources) == 3
    assert all(source.startswith("_static/browser/") for source in sources)
