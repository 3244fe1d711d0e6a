"""The weights of an int8 ONNX model as signed numbers: the same vectors, bit for bit, but sooner.

Processors multiply unsigned bytes by signed ones in a single instruction (VNNI), and models whose
weights are unsigned miss it. 128 is taken from each weight and from its zero point, which leaves
every product as it was. Without that instruction sums of signed weights overflow, so only
processors that have it get them.

A model is a protocol buffer; only bytes of known places are changed, and no length.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

PROCESSOR = Path("/proc/cpuinfo")
INSTRUCTIONS = frozenset({"avx512_vnni", "avx_vnni"})
UINT8, INT8 = 2, 3  # types of tensors
MIDDLE = 128
# the numbers of fields in ONNX's protocol buffers
GRAPH, NODE, INITIALIZER = 7, 1, 5
INPUT, OPERATOR = 1, 4
DATA_TYPE, INT32_DATA, NAME, RAW_DATA = 2, 5, 8, 9


@dataclass(slots=True)
class _Tensor:
    """Where a model keeps the type and the numbers of a tensor."""

    kind: int = 0  # places of bytes
    raw: tuple[int, int] = (0, 0)
    numbers: tuple[int, int] = (0, 0)


@dataclass(slots=True)
class _Graph:
    tensors: dict[str, _Tensor] = field(default_factory=dict)
    nodes: list[tuple[str, list[str]]] = field(default_factory=list)  # operators and their inputs


def multiplies_signed() -> bool:
    """Tell whether the processor has the instruction; where that cannot be told, it has not."""
    try:
        lines = PROCESSOR.read_text("utf-8", errors="replace").splitlines()
    except OSError:
        return False
    flags = next((line for line in lines if line.startswith("flags")), "")
    return not INSTRUCTIONS.isdisjoint(flags.split())


def with_signed_weights(model: bytes) -> bytes:
    """Return a model with signed weights; as it was, if any of its weights is not as expected."""
    graph = _graph(model)
    changed = bytearray(model)
    uses = [name for _, inputs in graph.nodes for name in inputs]
    for operator, inputs in graph.nodes:
        if operator != "MatMulInteger" or inputs[1] not in graph.tensors:
            continue  # what is multiplied is not a weight
        for name in (inputs[1], inputs[3] if len(inputs) > 3 else ""):
            tensor = graph.tensors.get(name)
            if tensor is None or uses.count(name) != 1 or not _make_signed(changed, tensor):
                return model
    return bytes(changed)


def _make_signed(model: bytearray, tensor: _Tensor) -> bool:
    """Take 128 from each number of a tensor; say whether that was possible."""
    if model[tensor.kind] != UINT8:
        return False
    model[tensor.kind] = INT8
    first, last = tensor.raw
    if last > first:
        signed = np.frombuffer(bytes(model[first:last]), np.uint8) ^ MIDDLE
        model[first:last] = signed.tobytes()
        return True
    first, last = tensor.numbers  # of two bytes each: 128 is 80 01, and 80 00 is 0
    halves = np.frombuffer(bytes(model[first:last]), np.uint8)
    if not len(halves) or (halves[::2] != MIDDLE).any() or (halves[1::2] != 1).any():
        return False
    model[first + 1 : last : 2] = bytes(len(halves) // 2)
    return True


def _graph(model: bytes) -> _Graph:
    found = _Graph()
    for number, first, last in _fields(model, 0, len(model)):
        if number == GRAPH:
            for part, start, end in _fields(model, first, last):
                if part == NODE:
                    found.nodes.append(_node(model, start, end))
                elif part == INITIALIZER:
                    name, tensor = _tensor(model, start, end)
                    found.tensors[name] = tensor
    return found


def _node(model: bytes, start: int, end: int) -> tuple[str, list[str]]:
    operator, inputs = "", []
    for number, first, last in _fields(model, start, end):
        if number == INPUT:
            inputs.append(model[first:last].decode())
        elif number == OPERATOR:
            operator = model[first:last].decode()
    return operator, inputs


def _tensor(model: bytes, start: int, end: int) -> tuple[str, _Tensor]:
    name, tensor = "", _Tensor()
    for number, first, last in _fields(model, start, end):
        if number == NAME:
            name = model[first:last].decode()
        elif number == DATA_TYPE:
            tensor.kind = first
        elif number == RAW_DATA:
            tensor.raw = first, last
        elif number == INT32_DATA:
            tensor.numbers = first, last
    return name, tensor


def _fields(model: bytes, start: int, end: int) -> Iterator[tuple[int, int, int]]:
    """Go through the fields of a message: their numbers, and where their contents begin and end."""
    while start < end:
        key, start = _varint(model, start)
        match key & 7:
            case 0:
                first, (_, last) = start, _varint(model, start)
            case 1:
                first, last = start, start + 8
            case 2:
                length, first = _varint(model, start)
                last = first + length
            case _:
                first, last = start, start + 4
        yield key >> 3, first, last
        start = last


def _varint(model: bytes, start: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        byte = model[start]
        start += 1
        number |= (byte & 127) << shift
        shift += 7
        if byte < MIDDLE:
            return number, start
