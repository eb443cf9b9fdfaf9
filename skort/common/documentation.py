"""Where the documentation is."""

__all__ = ["DOCUMENTATION", "DocumentationLink"]

#: The address of the pages; that of the project in pyproject.toml is the same.
DOCUMENTATION = "https://skort.readthedocs.io/en/stable/"


class DocumentationLink:
    """Links the diagram that scikit-learn draws of an estimator to the page of its class."""

    _doc_link_module = "skort"
    _doc_link_template = DOCUMENTATION + "api/{name}.html"

    def _doc_link_url_param_generator(self) -> dict[str, str]:
        """Return the name by which users import the class, such as ``skort.dask.OrtSGDRegressor``."""
        package = ".".join(type(self).__module__.split(".")[:2]).removesuffix(".estimators")
        return {"name": f"{package}.{type(self).__name__}"}
