// Batches of products with packed matrices.

layout(buffer_reference, scalar, buffer_reference_align = 8) readonly buffer QmmBatch
{
    qmm_batch_args v;
};

// Element offsets of x, words, scales and biases for a batch.
void qmm_offsets(uint64_t address, uint batch, out int64_t at[4])
{
    QmmBatch b = QmmBatch(address);
    [[unroll]] for (uint i = 0u; i < 4u; i++)
        at[i] = 0l;
    if (is_given(b.v.lhs)) {
        uint left = min(U32Buf(b.v.lhs).v[batch], b.v.n_x - 1u);
        uint right = min(U32Buf(b.v.rhs).v[batch], b.v.n_w - 1u);
        [[unroll]] for (uint i = 0u; i < 4u; i++)
            at[i] = int64_t(i == 0u ? left : right) * b.v.stride[i * WALK_MAX];
        return;
    }
    for (uint d = 0u; d < b.v.ndim; d++) {
        uint next = batch / b.v.dim[d];
        int64_t step = int64_t(batch - next * b.v.dim[d]);
        [[unroll]] for (uint i = 0u; i < 4u; i++)
            at[i] += step * b.v.stride[i * WALK_MAX + d];
        batch = next;
    }
}
