"""A fitted estimator's models for predictions and for export, made when somebody asks for them."""

import functools

__all__ = ["Deployed"]


class Deployed:
    """
    The deployable model, and what predicts with it.

    A stream of `partial_fit` mostly trains on before there is a question: each model is made at the first use, and
    again in copies.

    Parameters
    ----------
    make : callable
        Transformers, as `onnx.ModelProto` or None -> deployable model.
    transformers : onnx.ModelProto or None
        The steps before the model.
    runner : callable
        Deployable model -> what runs it.
    """

    def __init__(self, make, transformers, runner):
        self._make = make
        self._transformers = transformers
        self._runner = runner

    def __getstate__(self):
        return {name: part for name, part in vars(self).items() if name not in ("model", "inference")}

    @functools.cached_property
    def model(self):
        """The deployable model, an `onnx.ModelProto`."""
        return self._make(self._transformers)

    @functools.cached_property
    def inference(self):
        """What predicts from transformed rows: scikit-learn transforms them, as it did for the training."""
        return self._runner(self.model if self._transformers is None else self._make(None))
