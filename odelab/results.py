"""What every result can do, in one place: draw itself, show itself in a notebook, and become a table.

A class joins by naming its figures, class Mine(Result, kinds={...}). `kinds` maps the name of a figure to
"module:function", which is imported when the figure is drawn. A function called draw_... draws into one axes,
draw_...(result, axes, **options); any other returns a whole figure, function(result, **options), and takes `ax=` where
it has one panel. The first kind is the default."""

import base64
import html
import importlib
import inspect
import io
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np

from odelab.arrays import to_numpy

MOST_COLUMNS = 64  # of a table, which states of many components would make unreadable


class Result:
    """A result that draws itself by `plot`, shows itself in notebooks, and becomes a table by `to_dataframe`."""

    kinds: ClassVar[Mapping[str, str]] = MappingProxyType({})

    def __init_subclass__(cls, kinds: Mapping[str, str] | None = None, **options):
        super().__init_subclass__(**options)
        if kinds is not None:
            cls.kinds = MappingProxyType(dict(kinds))

    def plot(self, kind: str | None = None, *, ax: Any = None, **options):
        """Draw this result.

        kind     which figure; the names are the keys of `kinds`, of which the first is the default
        ax       axes of matplotlib to draw into, instead of a new figure. Not for figures of several panels
        options  those of the figure

        Returns a matplotlib Figure, which notebooks show; the one that holds `ax` where that is given.
        """
        if not self.kinds:
            raise ValueError(f"`{type(self).__name__}` has no figure; `table` has its columns.")
        kind = next(iter(self.kinds)) if kind is None else kind
        if kind not in self.kinds:
            raise ValueError(f"`kind` must be one of {', '.join(map(repr, self.kinds))}, got {kind!r}.")
        module, name = self.kinds[kind].split(":")
        draw = getattr(importlib.import_module(module), name)
        if not name.startswith("draw_"):
            if ax is not None and "ax" not in inspect.signature(draw).parameters:
                raise ValueError(f"`ax` is for figures of one panel, and {kind!r} has several; leave it out.")
            return draw(self, **options) if ax is None else draw(self, ax=ax, **options)
        if ax is not None:
            draw(self, ax, **options)
            return ax.figure
        from odelab.plot import style

        with style.figure(height=3.6) as (drawing, axes):
            draw(self, axes[0, 0], **options)
        return drawing

    def _repr_html_(self) -> str:
        """What a notebook shows: the sentences of `print`, and the first figure where matplotlib is installed."""
        said = f"<pre>{html.escape(str(self))}</pre>"
        if not self.kinds:
            return said
        data = io.BytesIO()
        try:
            self.plot().savefig(data, format="png", dpi=110)
        except (ModuleNotFoundError, ValueError):  # no matplotlib, or nothing of this result that could be drawn
            return said
        return f'{said}<img alt="" src="data:image/png;base64,{base64.b64encode(data.getvalue()).decode()}">'

    def table(self) -> dict[str, Any]:
        """This result as columns of numbers and words, {name: column}."""
        raise NotImplementedError

    def to_dataframe(self):
        """This result as a table of pandas. Raises ModuleNotFoundError where pandas is not installed."""
        try:
            import pandas
        except ModuleNotFoundError:
            raise ModuleNotFoundError("a table needs pandas: pip install pandas", name="pandas") from None
        return pandas.DataFrame({name: to_numpy(column) for name, column in self.table().items()})


def named_components(states, name: str = "u") -> dict[str, np.ndarray]:
    """The columns of states (k, n): u0, u1 and so on, at most 64 of them."""
    states = np.asarray(states)
    return {f"{name}{i}": states[:, i] for i in range(min(states.shape[1], MOST_COLUMNS))}
