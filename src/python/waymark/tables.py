"""Tables of numpy arrays: answers and samples."""
from __future__ import annotations

import os as _os
import typing as _t

import numpy as _np

from waymark import _waymark

TABLES: tuple[str, ...] = _waymark.table_names
"""Names of the tables of answers."""


def masked(pandas, values, known):
    """Numbers of which some are not known."""
    if known.all():
        return values
    return pandas.arrays.IntegerArray(_np.array(values), ~_np.asarray(known))


class _Columns:
    """What tables of numpy arrays have in common. Needs `_names` and __getitem__."""

    def _names(self) -> list[str]:
        raise NotImplementedError

    def keys(self) -> list[str]:
        """Names of the columns."""
        return self._names()

    def __contains__(self, name) -> bool:
        return name in self._names()

    def __iter__(self) -> _t.Iterator[str]:
        return iter(self._names())


class Samples(_Columns):
    """Sampled operations, column by column: samples["pc"] is an array."""

    def __init__(self, columns: dict[str, _np.ndarray], totals: dict[str, int], damage: list[str]):
        self._columns = columns
        self.totals = totals
        self.damage = damage

    def _names(self) -> list[str]:
        return list(self._columns)

    def __len__(self) -> int:
        return len(self._columns["pc"]) if "pc" in self._columns else 0

    def __getitem__(self, name: str) -> _np.ndarray:
        return self._columns[name]

    def to_pandas(self):
        """A DataFrame with the same columns."""
        import pandas
        return pandas.DataFrame(self._columns)


class Column(_t.NamedTuple):
    """The description of a column of a table."""
    name: str
    type: str
    """`integer`, `address`, `real` or `text`."""
    meaning: str
    refers: str
    """`functions.id` if it holds rows of another table, else empty."""


class Table(_Columns):
    """A table of answers: table["self"] is a numpy array, not copied where it holds numbers. Where a value is not known,
    numbers are 0 and texts None; `known` says where."""

    def __init__(self, handle, name: str):
        self._handle = handle
        self.name = name
        self.columns: list[Column] = [Column(*c) for c in handle.columns]
        self._index = {c.name: i for i, c in enumerate(self.columns)}

    def _names(self) -> list[str]:
        return [c.name for c in self.columns]

    def _number(self, name: str) -> int:
        if name not in self._index:
            raise KeyError(f"the table {self.name} has no column {name!r}; it has {', '.join(self._index)}")
        return self._index[name]

    def __len__(self) -> int:
        return self._handle.rows

    def __getitem__(self, name: str) -> _np.ndarray:
        return self._handle.column(self._number(name))

    def known(self, name: str) -> _np.ndarray:
        """Where the values of a column are known."""
        return self._handle.known(self._number(name))

    def rows(self) -> _t.Iterator[dict[str, _t.Any]]:
        """A dictionary for each row; None where a value is not known."""
        columns = [(c, self[c], self.known(c)) for c in self._names()]
        for i in range(len(self)):
            yield {name: (values[i].item() if hasattr(values[i], "item") else values[i]) if known[i] else None
                   for name, values, known in columns}

    def to_pandas(self):
        """A DataFrame with the same columns; NA where a value is not known."""
        import pandas
        data = {}
        for c in self.columns:
            values, known = self[c.name], self.known(c.name)
            if c.type in ("integer", "address"):
                data[c.name] = masked(pandas, values, known)
            elif c.type == "real":
                data[c.name] = values if known.all() else _np.where(known, values, _np.nan)
            else:
                data[c.name] = values
        return pandas.DataFrame(data)

    def __repr__(self) -> str:
        return f"<table {self.name}: {len(self)} rows of {', '.join(self._index)}>"


class Answers:
    """What a capture says: tables as attributes (waymark.TABLES), such as `answers.functions`."""

    def __init__(self, handle):
        self._handle = handle
        self._tables: dict[str, Table] = {}

    def table(self, name: str) -> Table:
        """A table by its name."""
        if name not in self._tables:
            self._tables[name] = Table(_waymark.Table(self._handle, name), name)
        return self._tables[name]

    def __getattr__(self, name: str) -> Table:
        if name.startswith("_") or name not in TABLES:
            raise AttributeError(f"answers have no table {name!r}; they have {', '.join(TABLES)}")
        return self.table(name)

    def __dir__(self):
        return [*super().__dir__(), *TABLES]

    def save(self, path) -> None:
        """Writes an answers file, which `open` and `waymark merge` read."""
        self._handle.save(_os.fsencode(path))

    def export(self, format: str, path) -> None:
        """Writes a file in a format of `waymark export`, such as perfetto, pprof or lcov."""
        self._handle.export(format, _os.fsencode(path))
