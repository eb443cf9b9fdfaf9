"""Settings of all sessions."""

import pytest

from skort.runtime.device import Device
from skort.runtime.sessions import session_options


@pytest.mark.parametrize("spinning", [False, True])
@pytest.mark.parametrize("n_threads", [1, 3])
def test_threads(n_threads, spinning):
    options = session_options(Device(n_threads=n_threads), spinning=spinning)
    assert options.intra_op_num_threads == n_threads
    assert options.inter_op_num_threads == 1
    assert options.get_session_config_entry("session.intra_op.allow_spinning") == str(int(spinning))
