// From a row-major element number to an operand's element offset.
//
// Offsets are signed 64-bit (negative strides, arrays past 2^31 elements). The divisions are 32-bit
// where the element number allows it, because 64-bit ones cost a subroutine each. Entries are read
// with an index that is never negative: a software device loads for lanes that have left the loop,
// too, and what lies before the nest may be no memory at all.

layout(buffer_reference, scalar, buffer_reference_align = 8) readonly buffer Walk
{
    walk_args w;
};

int64_t walk_offset(Walk a, uint64_t index)
{
    int64_t offset = 0l;
    int d = int(a.w.ndim) - 1;
    for (; d >= 0 && index > 0xfffffffful; d--) {
        int at = max(d, 0);
        uint64_t dim = uint64_t(a.w.dim[at]);
        uint64_t next = index / dim;
        offset += int64_t(index - next * dim) * a.w.stride[at];
        index = next;
    }
    uint rest = uint(index);
    for (; d >= 0; d--) {
        int at = max(d, 0);
        uint dim = a.w.dim[at];
        uint next = rest / dim;
        offset += int64_t(rest - next * dim) * a.w.stride[at];
        rest = next;
    }
    return offset;
}

// Over the rows of an operand, which has a walk or else a stride.
int64_t row_offset(uint64_t walk, int64_t stride, uint64_t number)
{
    return is_given(walk) ? walk_offset(Walk(walk), number) : int64_t(number) * stride;
}

// From an element number over a nest of at most four dimensions held in push constants (innermost last).
int64_t walk4_offset(uint index, uvec4 dim, ivec4 stride)
{
    int64_t offset = 0l;
    [[unroll]] for (int d = 3; d > 0; d--) {
        uint next = index / dim[d];
        offset += int64_t(index - next * dim[d]) * int64_t(stride[d]);
        index = next;
    }
    return offset + int64_t(index) * int64_t(stride[0]);
}
