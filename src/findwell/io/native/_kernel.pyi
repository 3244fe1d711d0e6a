from typing import Self, final

import numpy as np
import polars as pl
from numpy.typing import NDArray

INTERFACE: int

@final
class Column:
    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]: ...

class Index:
    def __new__(
        cls,
        queries: pl.Series,
        docs: pl.Series,
        first: NDArray[np.int64],
        item: NDArray[np.int32],
        judged: NDArray[np.bool_],
    ) -> Self: ...
    def draw(
        self, data: memoryview, columns: int, narrow: bool
    ) -> tuple[tuple[bytes, ...], list[str], int] | None: ...
    def split(self, data: bytes, parts: int) -> list[bytes]: ...

def read_qrels(data: memoryview) -> tuple[Column, bytes, Column, bytes, bytes] | None: ...
def last_query(data: memoryview) -> int: ...
