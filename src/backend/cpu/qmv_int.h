/* rows_int of qmv.h over the blocks of an instruction set. A qmv_<isa>.c that includes this after
 * qmv_body.h has
 *
 *   struct products          sums of products of a group, in integers
 *   struct totals            sums of groups, in float32
 *   add_block4, add_block8   a block: 64 codes of 4 bits, or 32 of 8, times x
 *   add_scaled               products times the scale of the first half of a block, and of the
 * second total_of                 the sum of everything */
#pragma once

/* One row, so that memory is read front to back. A group is a block, or several of them, or with 4
 * bits half of one. */
INLINE float int_row(const struct cpu_qmv *v, int64_t row, int bits)
{
    int64_t row_bytes = v->k * bits / 8, per_row = v->k / v->group_size;
    int64_t group_bytes = v->group_size * bits / 8, step = MAX(group_bytes, CPU_QMV_BLOCK);
    bool is_pair = group_bytes < CPU_QMV_BLOCK;
    const unsigned char *w = v->w + row * row_bytes;
    const float *s = v->scales + row * per_row;
    const int16_t *x = v->x;
    struct totals sum = { 0 };

    for (int64_t at = 0; at + step <= row_bytes; at += step, s += 1 + is_pair) {
        struct products p = { 0 };
        __builtin_prefetch(w + at + AHEAD);
        for (int64_t b = at; b < at + step; b += CPU_QMV_BLOCK)
            if (bits == 4)
                add_block4(&p, w + b, x + b * 2);
            else
                add_block8(&p, w + b, x + b);
        add_scaled(&sum, &p, bits, (const float[2]){ s[0], s[is_pair] });
    }
    return total_of(&sum) + bias_part(v, row);
}

/* Half a block is left where k is an odd number of groups of 32. */
INLINE float int_rest(const struct cpu_qmv *v, int64_t row)
{
    int64_t row_bytes = v->k / 2, at = row_bytes / CPU_QMV_BLOCK * CPU_QMV_BLOCK;
    unsigned char w[CPU_QMV_BLOCK] = { 0 };
    struct products p = { 0 };
    struct totals sum = { 0 };

    if (at == row_bytes)
        return 0.0f;
    memcpy(w, v->w + row * row_bytes + at, CPU_QMV_BLOCK / 2);
    add_block4(&p, w, (const int16_t *)v->x + at * 2);
    add_scaled(&sum, &p, 4, (const float[2]){ v->scales[(row + 1) * v->k / 32 - 1], 0.0f });
    return total_of(&sum);
}

static void rows_int(float *out, const struct cpu_qmv *v, int64_t rows)
{
    if (v->bits == 4)
        for (int64_t i = 0; i < rows; i++)
            out[i] = int_row(v, i, 4) + int_rest(v, i);
    else
        for (int64_t i = 0; i < rows; i++)
            out[i] = int_row(v, i, 8);
}
