from collections.abc import Mapping
from typing import Any, Self, TypeAlias, final

import numpy as np
import polars as pl
from numpy.typing import NDArray

INTERFACE: int

@final
class Column:
    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]: ...
    def __len__(self) -> int: ...
    def __getitem__(self, at: int) -> str: ...

Texts: TypeAlias = pl.Series | tuple[Column, ...]
# queries, counts, documents, numbers
Columns: TypeAlias = tuple[Column, memoryview, Column, memoryview]
Outcome: TypeAlias = tuple[tuple[memoryview, ...], list[str], int]

class Index:
    def __new__(
        cls,
        queries: Texts,
        docs: Texts,
        first: NDArray[np.int64],
        item: NDArray[np.int32],
        judged: NDArray[np.bool_],
    ) -> Self: ...
    def draw(self, data: memoryview, columns: int, narrow: bool) -> Outcome | None: ...
    def draw_records(self, data: memoryview, field: str) -> Outcome | None: ...
    def draw_columns(
        self,
        queries: Texts,
        counts: bytes | NDArray[np.int32],
        docs: Texts,
        scores: bytes | NDArray[np.float64] | None,
        narrow: bool,
        unique: bool,
    ) -> Outcome | None: ...
    def split(self, data: bytes, parts: int) -> list[bytes]: ...

def read_gold(data: memoryview, field: str | None = None) -> tuple[Columns, bytes] | None: ...
def pack(data: Mapping[Any, Any], listed: bool, judged: bool) -> list[Columns] | None: ...
def last_query(data: memoryview) -> int: ...
