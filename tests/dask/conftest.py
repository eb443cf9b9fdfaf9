"""A cluster for all tests that leave it as it is."""

import pytest


@pytest.fixture(scope="session")
def client():
    """Return the client of a cluster of two processes of one thread."""
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client
