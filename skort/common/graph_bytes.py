"""Objects that hold ONNX graphs, in pickles and files of `skops`: the graphs are bytes there."""

from typing import Any, ClassVar


class GraphBytes:
    """A class with the attributes `_graphs`, which `pickle`, `copy.deepcopy` and `skops` see as bytes."""

    _graphs: ClassVar[tuple[str, ...]]

    def __getstate__(self) -> dict[str, Any]:
        graphs = {name: getattr(self, name) for name in self._graphs}
        as_bytes = {name: None if graph is None else graph.SerializeToString() for name, graph in graphs.items()}
        return {**vars(self), **as_bytes}

    def __setstate__(self, state: dict[str, Any]) -> None:
        import onnx

        serialized = {name: state[name] for name in self._graphs}
        graphs = {name: None if b is None else onnx.ModelProto.FromString(b) for name, b in serialized.items()}
        vars(self).update({**state, **graphs})
