"""To a device and back in one environment; the carrying lanes do it in two."""

import runpy
from pathlib import Path

import pytest

from skort.runtime.checkpoint_file import release_here
from skort.runtime.installed import training_api

CARRYING = runpy.run_path(str(Path(__file__).with_name("carrying.py")))


@pytest.mark.skipif("Module" not in training_api(), reason="this runtime is no build for training")
def test_a_device_reaches_the_weights_of_skort(tmp_path, capsys):
    CARRYING["write"](tmp_path, release_here())
    CARRYING["train"](tmp_path)
    CARRYING["read"](tmp_path)
    assert capsys.readouterr().out.count("largest difference between the weights") == len(
        CARRYING["MODELS"]
    )
