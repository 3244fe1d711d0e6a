"""Protobuf, as small as it can be written: fields are tag, length, content."""

from __future__ import annotations

import struct
from typing import Any


def _varint(number: int) -> bytes:
    found = bytearray()
    while number > 127:
        found.append(number & 127 | 128)
        number >>= 7
    return bytes([*found, number])


def message(*fields: tuple[int, bytes | int | float]) -> bytes:
    """Return a message of numbered fields: bytes, numbers of variable length, or doubles."""
    found = b""
    for number, value in fields:
        if isinstance(value, bytes):
            found += _varint(number << 3 | 2) + _varint(len(value)) + value
        elif isinstance(value, float):
            found += _varint(number << 3 | 1) + struct.pack("<d", value)
        else:
            found += _varint(number << 3) + _varint(value & (1 << 64) - 1)
    return found


def fixed64(number: int, value: int) -> bytes:
    return _varint(number << 3 | 1) + struct.pack("<Q", value)


def proto_value(value: Any) -> bytes:
    match value:
        case bool():
            return message((2, int(value)))
        case str():
            return message((1, value.encode()))
        case int():
            return message((3, value))
        case float():
            return message((4, value))
        case list():
            return message((5, message(*((1, proto_value(each)) for each in value))))
        case dict():
            return message((6, message(*((1, pair) for pair in proto_pairs(value)))))
    raise TypeError(value)


def proto_pairs(attributes: dict[str, Any]) -> list[bytes]:
    return [
        message((1, key.encode()), (2, proto_value(value))) for key, value in attributes.items()
    ]
