"""What pytest does not collect where an extra is not installed."""

from importlib.util import find_spec

collect_ignore_glob = [] if find_spec("distributed") else ["skort/dask/*"]
