"""Read two, four, eight or 64 bytes of an Arrow buffer at once.

64 bytes become one number with a bit for each, the first byte's the lowest: words, their ends and
what they hold are then found by additions and shifts, without a branch for each byte. The functions
are inlined into their callers, across files as well.
"""
# mypy: disable-error-code="untyped-decorator, no-any-return"

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types, uint64
from numba.core import cgutils
from numba.core.registry import cpu_target
from numba.extending import intrinsic
from numpy.typing import NDArray

from assets.text.kernels.compiling import INLINED

Bytes = NDArray[np.uint8]

ONE, EIGHT, RUN = uint64(1), uint64(8), uint64(64)
_BYTES, _BITS = ir.VectorType(ir.IntType(8), 64), ir.VectorType(ir.IntType(1), 64)
_CHANGES = types.UniTuple(types.uint64, 2)
ONES, HIGH_BITS = uint64(0x0101010101010101), uint64(0x8080808080808080)


def _load(word: Any, position: Any) -> Any:
    """Make a reader of a little-endian number, since numba has no unaligned read."""

    def read(typing_context: Any, data: Any, at: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            array = context.make_array(signature.args[0])(context, builder, arguments[0])
            address = cgutils.pointer_add(builder, array.data, arguments[1])
            pointer = builder.bitcast(address, context.get_value_type(word).as_pointer())
            return builder.load(pointer, align=1)

        return word(data, position), generate

    return read


read_2 = intrinsic(_load(types.uint16, types.uint64))
read_4 = intrinsic(_load(types.uint32, types.int64))
read_8 = intrinsic(_load(types.uint64, types.uint64))


@intrinsic
def write_8(typing_context: Any, data: Any, at: Any, word: Any) -> Any:
    """Write eight bytes, little-endian, since numba has no unaligned write."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        address = cgutils.pointer_add(builder, array.data, arguments[1])
        pointer = builder.bitcast(address, context.get_value_type(types.uint64).as_pointer())
        builder.store(arguments[2], pointer, align=1)
        return context.get_dummy_value()

    return types.none(data, types.uint64, types.uint64), generate


def _vector(context: Any, builder: Any, kind: Any, array: Any, at: Any) -> Any:
    """Return the address of the 64 bytes of an array at a position."""
    data = context.make_array(kind)(context, builder, array).data
    return builder.bitcast(cgutils.pointer_add(builder, data, at), _BYTES.as_pointer())


def _repeated(builder: Any, byte: Any) -> Any:
    """Return a vector of 64 times the lowest byte of a number."""
    nothing = ir.Constant(_BYTES, ir.Undefined)
    one = builder.insert_element(
        nothing, builder.trunc(byte, ir.IntType(8)), ir.Constant(ir.IntType(32), 0)
    )
    places = ir.Constant(ir.VectorType(ir.IntType(32), 64), [0] * 64)
    return builder.shuffle_vector(one, nothing, places)


def _as_number(builder: Any, marks: Any) -> Any:
    """Return 64 marks as a number, by way of an instruction of assembly that does nothing.

    Where the processor has no masks of 64 bits, the compiler would put off making the number, and
    compute with 64 bytes that it takes apart one by one, which made `count_form` three times as
    slow. Where it has them (AVX-512), times are the same with and without.
    """
    same = ir.FunctionType(ir.IntType(64), [ir.IntType(64)])
    number = builder.bitcast(marks, ir.IntType(64))
    return builder.asm(same, "", "=r,0", [number], side_effect=False)


@intrinsic
def mark_bytes(typing_context: Any, data: Any, at: Any, first: Any, number: Any) -> Any:
    """Mark those of the 64 bytes at data[at] that are one of `number` values from `first` on.

    All uint64; the lowest bit is that of data[at]. The compiler makes a few vector instructions of
    it if `first` and `number` are constants. 64 bytes must be readable.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        address = _vector(context, builder, signature.args[0], *arguments[:2])
        values = builder.load(address, align=1)
        lows, sizes = (_repeated(builder, argument) for argument in arguments[2:])
        is_marked = builder.icmp_unsigned("<", builder.sub(values, lows), sizes)
        return _as_number(builder, is_marked)

    return types.uint64(data, types.uint64, types.uint64, types.uint64), generate


@intrinsic
def mark_bits(typing_context: Any, numbers: Any, bits: Any) -> Any:
    """Mark those of the first 64 of an array of uint16 that have one of some bits; all uint64."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        kind = ir.VectorType(ir.IntType(16), 64)
        values = builder.load(builder.bitcast(data, kind.as_pointer()), align=1)
        wanted = builder.trunc(arguments[1], ir.IntType(16))
        one = builder.insert_element(
            ir.Constant(kind, ir.Undefined), wanted, ir.Constant(ir.IntType(32), 0)
        )
        places = ir.Constant(ir.VectorType(ir.IntType(32), 64), [0] * 64)
        both = builder.and_(values, builder.shuffle_vector(one, one, places))
        is_marked = builder.icmp_unsigned("!=", both, ir.Constant(kind, [0] * 64))
        return _as_number(builder, is_marked)

    return types.uint64(numbers, types.uint64), generate


def _changed(builder: Any, context: Any, signature: Any, arguments: Any) -> tuple[Any, Any]:
    """Return 64 bytes of an array, changed as `copy_64` says, and where they are written to."""
    blanks, case = (builder.extract_value(arguments[4], i) for i in range(2))
    source = _vector(context, builder, signature.args[0], *arguments[:2])
    values = builder.load(source, align=1)
    first, number = (ir.Constant(_BYTES, [value] * 64) for value in (ord("A"), 26))
    is_capital = builder.icmp_unsigned("<", builder.sub(values, first), number)
    added = builder.select(is_capital, _repeated(builder, case), ir.Constant(_BYTES, [0] * 64))
    blank = ir.Constant(_BYTES, [ord(" ")] * 64)
    is_blank = builder.bitcast(blanks, _BITS)
    changed = builder.select(is_blank, blank, builder.add(values, added))
    return changed, _vector(context, builder, signature.args[2], *arguments[2:4])


@intrinsic
def copy_64(typing_context: Any, data: Any, at: Any, target: Any, place: Any, changes: Any) -> Any:
    """Copy the 64 bytes at data[at] to target[place].

    `changes` are those for which a blank is written, and what is added to capitals of ASCII. All
    numbers are uint64. 64 bytes must be readable, and writable.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        changed, address = _changed(builder, context, signature, arguments)
        builder.store(changed, address, align=1)
        return context.get_dummy_value()

    return types.void(data, types.uint64, target, types.uint64, _CHANGES), generate


@intrinsic
def compress_64(
    typing_context: Any, data: Any, at: Any, target: Any, place: Any, changes: Any
) -> Any:
    """Do what `copy_runs` does by one instruction of AVX-512."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        changed, address = _changed(builder, context, signature, arguments)
        kept = builder.bitcast(builder.extract_value(arguments[4], 2), _BITS)
        kind = ir.FunctionType(_BYTES, [_BYTES, _BITS, _BYTES])
        name = "llvm.experimental.vector.compress.v64i8"
        compress = cgutils.get_or_insert_function(builder.module, kind, name)
        packed = builder.call(compress, [changed, kept, ir.Constant(_BYTES, ir.Undefined)])
        builder.store(packed, address, align=1)
        return context.get_dummy_value()

    marks = types.UniTuple(types.uint64, 3)
    return types.void(data, types.uint64, target, types.uint64, marks), generate


@intrinsic
def size_of(typing_context: Any, word: Any) -> Any:
    """Return the number of bits up to the highest one that is set, uint64; 0 if none is."""

    def generate(_: Any, builder: Any, __: Any, words: Any) -> Any:
        above = builder.ctlz(words[0], ir.Constant(ir.IntType(1), 0))
        return builder.sub(ir.Constant(ir.IntType(64), 64), above)

    return types.uint64(types.uint64), generate


@njit("uint64(uint64)", **INLINED)
def count_ones(word: int) -> int:
    """Count the bits that are set, in a form that the compiler turns into one instruction."""
    word -= (word >> ONE) & uint64(0x5555555555555555)
    fours = uint64(0x3333333333333333)
    word = (word & fours) + ((word >> uint64(2)) & fours)
    word = (word + (word >> uint64(4))) & uint64(0x0F0F0F0F0F0F0F0F)
    return uint64(word * ONES) >> uint64(56)


@njit("uint64(uint64)", **INLINED)
def first_one(word: int) -> int:
    """Return the number of zeros below the lowest bit that is set, uint64; 64 if none is."""
    return count_ones(~word & (word - ONE))


@njit("uint64(uint64)", **INLINED)
def reverse_bytes(word: int) -> int:
    """Return a word, uint64, with its bytes in reverse: one instruction, too."""
    odd, pairs = uint64(0x00FF00FF00FF00FF), uint64(0x0000FFFF0000FFFF)
    word = (word >> EIGHT) & odd | (word & odd) << EIGHT
    word = (word >> uint64(16)) & pairs | (word & pairs) << uint64(16)
    return word >> uint64(32) | word << uint64(32)


@njit(**INLINED)
def ones_below(place: int) -> int:
    """Return a number, uint64, with all bits below `place`, 0 to 63, set."""
    return (ONE << place) - ONE


@njit(**INLINED)
def copy_runs(data: Bytes, at: int, target: Bytes, place: int, marks: tuple[int, int, int]) -> None:
    """Copy some of the 64 bytes at data[at] to target[place], one after another.

    `marks` are the changes of `copy_64`, and the bytes that are copied, not the last of the 64.
    From target[place] on 64 bytes are overwritten. All numbers are uint64.
    """
    blanks, case, kept = marks
    while kept:
        first = first_one(kept)
        # 64 bytes in any case: those behind the run are written over by the next one.
        copy_64(data, at + first, target, place, (blanks >> first, case))
        run = first_one(~(kept >> first))
        place += run
        kept &= ~(ones_below(run) << first)


# A copy for each run takes twice as long as that instruction; where it is missing, LLVM's way to
# do without takes three times as long as the copies.
HAS_COMPRESS = "+avx512vbmi2" in cpu_target.target_context.codegen().magic_tuple()[2]
pack_64 = compress_64 if HAS_COMPRESS else copy_runs


@njit(**INLINED)
def held(words: int, signs: int) -> int:
    """Mark the place after each run of ones of `words` that holds a bit of `signs`; all uint64.

    An addition carries a bit of a run to the place after its end. `signs` are among `words`, and
    the highest bit of `words` is 0.
    """
    return (words + signs) & ~words


@njit(**INLINED)
def run_on(run: int, first: int) -> int:
    """Mark the bits of runs of ones from a run's first bit on, if that is in `first`; all uint64.

    No other bit is in `first`.
    """
    return run & ~(run + first)


@njit(**INLINED)
def read_some(data: Bytes, at: int, size: int) -> int:
    """Return the next `size` bytes, 1 to 8, as one uint64; the unused high bytes are 0."""
    if at + EIGHT <= uint64(len(data)):
        return read_8(data, at) & (~uint64(0) >> (uint64(64) - EIGHT * size))
    word = uint64(0)
    for i in range(size):
        word |= uint64(data[at + uint64(i)]) << (EIGHT * uint64(i))
    return word


@njit(**INLINED)
def find_bytes(word: int, wanted: int) -> int:
    """Mark the bytes of a word, uint64, that are equal to the byte that `wanted` repeats 8 times.

    The lowest bit set is the highest bit of the first equal byte; higher bits may be wrong. Returns
    0 if no byte is equal.
    """
    # Mycroft's test: less 1, only a zero byte borrows into a highest bit that it lacked.
    differences = word ^ wanted
    return (differences - ONES) & ~differences & HIGH_BITS


@njit(**INLINED)
def find_byte(data: Bytes, span: tuple[int, int], byte: int) -> int:
    """Return the position of the first `byte` in data[span], or the span's end; all uint64."""
    at, stop = span
    wanted = uint64(byte) * ONES
    while at + EIGHT <= stop:
        equal = find_bytes(read_8(data, at), wanted)
        if equal:
            # The ones below the mark reach into its byte: one of each adds up to its place + 1.
            below = (equal & (~equal + ONE)) - ONE
            return at + ((below & ONES) * ONES >> uint64(56)) - ONE
        at += EIGHT
    while at < stop and data[at] != byte:
        at += ONE
    return at
