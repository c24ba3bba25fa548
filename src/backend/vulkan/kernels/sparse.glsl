// What counts of a sparse product: a segment of k, or blocks by masks. Tiles lie inside of a block, and
// so does a step along k.
layout(buffer_reference, scalar, buffer_reference_align = 8) readonly buffer Sparse
{
    mm_sparse_args v;
};

float mask_value(uint64_t address, uint is_bool, uint64_t at)
{
    if (is_bool != 0u)
        return AT(U8Buf, address, 1, at) != uint8_t(0) ? 1.0 : 0.0;
    return dt_get(address, int64_t(at));
}

// Where the masks of a tile are.
struct Blocks {
    uint64_t a, b; // of the first k
    float factor;  // of the result
};

Blocks blocks_of(uint row, uint col, uint batch)
{
    Sparse s = Sparse(p.c);
    uint m = row / s.v.block, n = col / s.v.block;
    Blocks at = Blocks(0ul, 0ul, 1.0);
    at.a = (uint64_t(batch) * s.v.tiles_m + m) * s.v.tiles_k;
    at.b = uint64_t(batch) * s.v.tiles_k * s.v.tiles_n + n;
    if (s.v.has_out != 0u)
        at.factor = mask_value(s.v.mask_out, s.v.out_is_bool,
                               (uint64_t(batch) * s.v.tiles_m + m) * s.v.tiles_n + n);
    return at;
}

// What the products of a step along k, which is below k_end, are multiplied by.
float step_factor(Blocks at, uint k)
{
    Sparse s = Sparse(p.c);
    if (s.v.has_operands == 0u)
        return 1.0;
    uint block = k / s.v.block;
    return mask_value(s.v.mask_a, s.v.operands_are_bool, at.a + block) *
           mask_value(s.v.mask_b, s.v.operands_are_bool, at.b + uint64_t(block) * s.v.tiles_n);
}

// The first step from k on that counts; or what is not below k_end.
uint next_step(Blocks at, uint k, uint k_end, uint step)
{
    while (k < k_end && step_factor(at, k) == 0.0)
        k += step;
    return k;
}

// The part of a segment's k that a workgroup takes.
uvec2 segment_part(uint batch, uint split, uvec2 part)
{
    Sparse s = Sparse(p.c);
    if (!is_given(s.v.segments))
        return part;
    uint64_t at = s.v.segments + 8ul * batch;
    uint first = min(U32Buf(at).v[0], p.k), end = max(min(U32Buf(at).v[1], p.k), first);
    uint length = (end - first + p.splits - 1u) / p.splits;
    length = (length + s.v.step - 1u) / s.v.step * s.v.step;
    part.x = min(first + split * length, end);
    part.y = min(part.x + length, end);
    return part;
}
