"""Reading memory ahead: hints to the processor, which change no value."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from ._jit import subroutine

_LINE = 64  # bytes that the processor reads at once

_INT8, _INT32, _INT64 = ir.IntType(8), ir.IntType(32), ir.IntType(64)


def _prefetch(typing: Any, X: Any, row: Any, offset: Any) -> Any:
    """Have the processor read the line of memory that begins some bytes into a row, and go on."""

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(X)(context, builder, value=arguments[0])
        distance = builder.mul(arguments[1], builder.extract_value(array.strides, 0))
        begin = builder.add(builder.ptrtoint(array.data, _INT64), distance)
        line = builder.inttoptr(builder.add(begin, arguments[2]), _INT8.as_pointer())
        takes = ir.FunctionType(ir.VoidType(), [line.type, _INT32, _INT32, _INT32])
        hint = builder.module.declare_intrinsic("llvm.prefetch", [line.type], takes)
        builder.call(hint, [line, _INT32(0), _INT32(3), _INT32(1)])  # to read data, into all caches
        return context.get_dummy_value()

    return types.void(X, types.int64, types.int64), emit


_prefetch_line: Any = intrinsic(_prefetch)


@subroutine
def prefetch_row(X: NDArray[Any], row: int) -> None:
    """Have the processor read a row of a matrix, which is needed soon, while other work goes on.

    Rows lie many lines of memory apart, and would be waited for one after the other.
    """
    for offset in range(0, X.shape[1] * X.itemsize, _LINE):
        _prefetch_line(X, row, offset)
