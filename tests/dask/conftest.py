"""A cluster for the tests of a module."""

import pytest


@pytest.fixture(scope="module")
def client():
    """Return the client of a cluster of two processes of one thread."""
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client
