"""The ONNX graph of a model or of a training step."""

import html
import io
import shutil
import subprocess
from typing import TYPE_CHECKING, Any

from skort.plotting.displays import axes_for, the_fitted_estimator

if TYPE_CHECKING:
    import onnx

_SECONDS = 30
# dot looks for better places in this number of rounds, times the number of boxes. More rounds take
# minutes for a step of 300 operators.
_ROUNDS = "-Gnslimit=2"
_DPI = 150
# The largest side of a new figure, the height of its title, and the size of letters in points.
_INCHES = 20.0
_TITLE = 0.4
_LETTERS = 8
# The space in inches that a layout leaves free on both sides.
_EDGES = 0.1
# The name of the graph of a step: of solver "graph", of "agent", and of the others.
_STEPS = ("step", "gradient", "training")


class GraphDisplay:
    """
    The ONNX graph of a model, or of a whole training step.

    A box is an operator, with the constants that it reads. The colours and frames of a step show
    its phases: forward, loss, backward, penalty and update. The phases are in the ONNX file itself,
    as the doc_string of each node.

    The program ``dot`` of `Graphviz <https://graphviz.org/download/>`_ places the boxes. Without
    it, the graph is shown as text. A notebook shows the graph as an SVG picture.

    It is best made by `from_estimator` or `from_model`. All parameters are kept as attributes.

    Parameters
    ----------
    model : onnx.ModelProto
        The model to draw.
    title : str or None, default=None
        The title of the picture. None: the name of the graph.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes with the graph. Without a call of `plot`, the first access draws it.
    figure_ : matplotlib Figure

    Examples
    --------
    >>> from skort import OrtSGDRegressor
    >>> from skort.plotting import GraphDisplay
    >>> model = OrtSGDRegressor().fit([[0.0], [1.0]], [0.0, 1.0])
    >>> print(GraphDisplay.from_estimator(model))
    inputs
      X: float32[?, 1]
    operators
      multiplied = MatMul(X, coef[1, 1])
      resh = Add(multiplied, intercept[1])
      variable = Identity(resh)
    outputs
      variable: float32[?, 1]
    """

    def __init__(self, model: "onnx.ModelProto", title: str | None = None):
        self.model = model
        self.title = title

    @property
    def ax_(self) -> Any:
        """The axes with the graph."""
        return vars(self).get("_ax") or self.plot()._ax

    @property
    def figure_(self) -> Any:
        """The figure of the axes."""
        return self.ax_.figure

    @classmethod
    def from_model(cls, model: "onnx.ModelProto") -> "GraphDisplay":
        """
        Return the display of an ONNX model.

        Parameters
        ----------
        model : onnx.ModelProto
            Such as an item of `training_graphs()`, or `onnx.load(path)`.
        """
        return cls(model)

    @classmethod
    def from_estimator(cls, estimator: Any, which: str = "model") -> "GraphDisplay":
        """
        Return the display of the model or of the training step of a fitted estimator.

        Parameters
        ----------
        estimator : estimator
            Fitted: one of skort, a pipeline that ends in one, or a search.
        which : str, default="model"
            "model": the deployable model. "step": the training step, if it is one ONNX graph. Or
            the name of another graph in `training_graphs()`, such as "start".

        Raises
        ------
        ValueError, NotFittedError
            For an unknown name, for several estimators, and for an estimator that is not fitted.
        """
        one, _ = the_fitted_estimator(estimator)
        if which == "model":
            return cls(one.onnx_, "Model")

        graphs = one.training_graphs()
        name = (
            next((step for step in _STEPS if step in graphs), which) if which == "step" else which
        )
        if name not in graphs:
            raise ValueError(
                f'which must be "model", "step" or one of {list(graphs)}, got {which!r}.'
            )

        return cls(graphs[name], "Training step" if which == "step" else which.capitalize())

    def plot(self, ax: Any = None) -> "GraphDisplay":
        """
        Return the display, after drawing the graph on axes, or its text if Graphviz is missing.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw. None: on a new figure, as large as the graph.
        """
        self._ax = axes_for(self, ax)
        self._ax.set_axis_off()
        title = self.model.graph.name if self.title is None else self.title
        draw = self._draw_picture
        if _program() is None:
            title = f"{title}\nFor a picture, install Graphviz: graphviz.org/download"
            draw = self._draw_text
        heading = self._ax.set_title(title, parse_math=False)
        width, height = draw(_INCHES if ax is None else None)
        if ax is None:
            figure = self._ax.figure
            title_width = heading.get_window_extent().width / figure.dpi + _EDGES
            figure.set_size_inches(
                max(width, title_width), height + _TITLE * len(title.splitlines())
            )

        return self

    def _draw_picture(self, most):
        """Draw the picture of Graphviz; return its width and height in inches, at most `most`."""
        from matplotlib import image

        pixels = image.imread(
            io.BytesIO(_drawn(self.to_dot(), "png", f"-Gdpi={_DPI}")), format="png"
        )
        self._ax.imshow(pixels)
        height, width = (size / _DPI for size in pixels.shape[:2])
        shrunk = min(1, (most or _INCHES) / max(width, height))

        return width * shrunk, height * shrunk

    def _draw_text(self, most):
        """
        Draw the text in letters so small that it fits; return its width and height in inches.

        The room is `most` inches on each side or, if that is None, the axes.
        """
        style = {
            "family": "monospace",
            "fontsize": _LETTERS,
            "va": "top",
            "parse_math": False,
            "in_layout": False,
        }
        text = self._ax.text(0, 1, self.to_text(), transform=self._ax.transAxes, **style)
        figure = self._ax.figure
        of_axes = self._ax.get_window_extent()
        room = ((most - _EDGES) * figure.dpi,) * 2 if most else (of_axes.width, of_axes.height)

        # Small letters are not exactly as large as asked for.
        while (size := text.get_window_extent()) and text.get_fontsize() > 1:
            shrunk = min(room[0] / size.width, room[1] / size.height)
            if shrunk >= 1:
                break
            text.set_fontsize(text.get_fontsize() * shrunk)

        return size.width / figure.dpi + _EDGES, size.height / figure.dpi

    def to_text(self) -> str:
        """
        Return the graph as text: inputs, operators in the order of the file
        with their phases, and outputs.
        """
        from skort.plotting.graph_text import plain_text

        return plain_text(self.model)

    def to_dot(self) -> str:
        """Return the graph in the language of Graphviz."""
        from skort.plotting.graph_text import dot_text

        return dot_text(self.model)

    def to_svg(self) -> str:
        """
        Return the graph as an SVG picture for a file or a page,
        readable on light and dark backgrounds.

        Raises
        ------
        FileNotFoundError
            If the program ``dot`` of Graphviz is not installed.
        TimeoutError
            If the graph is so large that Graphviz finds no places in half a minute.
        """
        if _program() is None:
            raise FileNotFoundError(
                'GraphDisplay.to_svg needs the program "dot" of Graphviz, see '
                "https://graphviz.org/download/. to_text() and to_dot() work without it."
            )

        svg = _drawn(self.to_dot(), "svg").decode()
        return svg[svg.index("<svg") :]

    def __str__(self) -> str:
        return self.to_text()

    def _repr_svg_(self):
        """Return the picture for a notebook; None without Graphviz or for a too large graph."""
        try:
            return None if _program() is None else self.to_svg()
        except TimeoutError:
            return None

    def _repr_html_(self):
        """Return the picture with a scroll bar if it is wide; the text if there is no picture."""
        svg = self._repr_svg_()
        return (
            f"<pre>{html.escape(self.to_text())}</pre>"
            if svg is None
            else f'<div style="overflow-x: auto">{svg}</div>'
        )


def _program() -> str | None:
    """Return the path of the program that finds the places of boxes."""
    return shutil.which("dot")


def _drawn(text: str, form: str, *options: str) -> bytes:
    """Return the picture that Graphviz makes of a text in its language."""
    command = [str(_program()), f"-T{form}", _ROUNDS, *options]
    try:
        return subprocess.run(
            command, input=text.encode(), capture_output=True, check=True, timeout=_SECONDS
        ).stdout
    except subprocess.TimeoutExpired as error:
        raise TimeoutError(
            f"Graphviz found no places for the boxes of the graph in {_SECONDS} seconds: it is too "
            "large to draw. Use to_text()."
        ) from error
