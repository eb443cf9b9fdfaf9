"""What watches a training."""

import sys

__all__ = ["ProgressBar"]


class ProgressBar:
    """
    A tqdm bar over epochs that shows the last objective, in a terminal or a notebook; elsewhere it shows nothing.

    A context manager; call it with the objective of each epoch.

    Parameters
    ----------
    max_iter : int
        Largest number of epochs.
    enabled : bool, default=True
    """

    def __init__(self, max_iter, enabled=True):
        self.max_iter = max_iter
        self.enabled = enabled

    def __enter__(self):
        self._bar = None
        # Without a console, as in pythonw, stderr is None.
        terminal = getattr(sys.stderr, "isatty", bool)()
        if not self.enabled or not (terminal or "ipykernel" in sys.modules):
            return self
        from tqdm.auto import tqdm

        self._bar = tqdm(total=self.max_iter, unit="epoch")
        return self

    def __call__(self, objective):
        """Show the objective of one more epoch."""
        if self._bar is not None:
            self._bar.set_postfix(loss=f"{objective:.4g}", refresh=False)
            self._bar.update()

    def __exit__(self, *exception):
        if self._bar is not None:
            self._bar.close()
