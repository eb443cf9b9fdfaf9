"""Settings of all sessions."""

import pytest

from skort.runtime.device import Device
from skort.runtime.sessions import session_options


@pytest.mark.parametrize("n_threads", [1, 3])
def test_threads(n_threads):
    options = session_options(Device(n_threads=n_threads))
    assert options.intra_op_num_threads == n_threads
    assert options.inter_op_num_threads == 1
    # Awake inside of a run, asleep between runs.
    assert options.get_session_config_entry("session.intra_op.allow_spinning") == "1"
    assert options.get_session_config_entry("session.force_spinning_stop") == "1"
