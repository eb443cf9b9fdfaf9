"""Functions that are made of the functions of several losses."""

from typing import TYPE_CHECKING

from skort.common.component import Component
from skort.objective.base import ScoreLoss

if TYPE_CHECKING:
    import onnx

    from skort.common.onnx_text import Fragment

__all__ = ["check_part", "composed"]


def composed(name: str, inputs: list[str], output: str, fragment: "Fragment") -> "onnx.FunctionProto":
    """
    Return the nodes of a fragment as one function, in which every call is replaced by its nodes.

    Parameters
    ----------
    name : str
    inputs : list of str
        The results that the nodes take.
    output : str
        The result that they make.
    fragment : Fragment
        Of float64: constants get the dtype of the training later.
    """
    import onnx
    from onnx import helper

    from skort.common.model_builder import build_model
    from skort.common.onnx_text import DOMAIN

    infos = [onnx.ValueInfoProto(name=each) for each in (*inputs, output)]
    model = build_model(helper.make_graph(fragment.nodes, name, infos[:-1], infos[-1:]), fragment)
    return helper.make_function(DOMAIN, name, inputs, [output], model.graph.node, model.opset_import)


def check_part(what: str, loss) -> None:
    """
    Raise a ValueError where a loss cannot be a part of another one.

    Parameters
    ----------
    what : str
        What takes it, for the message.
    loss : object
    """
    if not isinstance(loss, ScoreLoss):
        raise ValueError(f"{what} takes instances of losses, such as Huber(), got {loss!r}.")
    if isinstance(loss, Component):
        loss._validate_params()
    if loss.takes_weight or loss.weight_names:
        kind = "weights of its own" if loss.weight_names else "sample weights as an input"
        raise ValueError(f"{what} cannot hold a loss with {kind}, got {type(loss).__name__}.")
