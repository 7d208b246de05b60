"""Ask the processor for a place in memory before it is read.

A read of a random place in a few megabytes takes as long as a hundred steps of a loop, unless the
processor was told of it some rounds before.
"""

# mypy: disable-error-code="untyped-decorator"

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

READ, KEPT, DATA = (ir.Constant(ir.IntType(32), value) for value in (0, 3, 1))


@intrinsic
def prefetch(typing_context: Any, data: Any, at: Any) -> Any:
    """Bring data[at] to the processor's cache."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        address = builder.gep(array.data, [arguments[1]])
        pointer = ir.IntType(8).as_pointer()
        call = ir.FunctionType(ir.VoidType(), [pointer, *[ir.IntType(32)] * 3])
        function = cgutils.get_or_insert_function(builder.module, call, "llvm.prefetch.p0i8")
        builder.call(function, [builder.bitcast(address, pointer), READ, KEPT, DATA])
        return context.get_dummy_value()

    return types.void(data, types.int64), generate
