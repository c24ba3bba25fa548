#include "backend/vulkan/jit/elementwise_words.h"

static uint32_t u32(struct words *w, uint32_t v)
{
    return spv_const_u32(w->m, v);
}

static uint32_t call1(struct words *w, int fn, uint32_t type, uint32_t arg)
{
    return spv_op(w->m, SpvOpFunctionCall, type, spv_lib_id(w->m, fn), arg);
}

static uint32_t vector_of(struct words *w, uint32_t scalar, uint32_t n)
{
    return spv_type_vector(w->m, scalar, n);
}

/* ---- memory ---- */

static uint32_t pointer_at(struct words *w, uint32_t addr, uint32_t offset, uint32_t type)
{
    if (offset)
        addr = spv_op(w->m, SpvOpIAdd, w->t_u64, addr, spv_const_u64(w->m, offset));
    return spv_op(w->m, SpvOpConvertUToPtr,
                  spv_type_pointer(w->m, SpvStorageClassPhysicalStorageBuffer, type), addr);
}

/* Type of one access of 1, 2, 4, 8 or 16 bytes. 8 bytes are one integer, because llvmpipe spends a
 * loop over its lanes on each component of a vector. */
static uint32_t access_type(struct words *w, uint32_t bytes)
{
    if (bytes == 1)
        spv_capability(w->m, SpvCapabilityStorageBuffer8BitAccess);
    if (bytes == 2)
        spv_capability(w->m, SpvCapabilityStorageBuffer16BitAccess);
    return bytes <= 8 ? spv_type_int(w->m, bytes * 8, false) : vector_of(w, w->t_u32, bytes / 4);
}

static uint32_t load_access(struct words *w, uint32_t addr, uint32_t offset, uint32_t bytes)
{
    uint32_t type = access_type(w, bytes);

    return spv_op(w->m, SpvOpLoad, type, pointer_at(w, addr, offset, type),
                  SpvMemoryAccessAlignedMask, bytes);
}

/* Up to four bytes in pieces, as one word. */
static uint32_t load_word(struct words *w, uint32_t addr, uint32_t offset, uint32_t bytes)
{
    uint32_t piece = MIN(bytes, w->align), word = 0;

    for (uint32_t at = 0; at < bytes; at += piece) {
        uint32_t v = load_access(w, addr, offset + at, piece);

        if (piece < 4)
            v = spv_op(w->m, SpvOpUConvert, w->t_u32, v);
        if (at)
            v = spv_op(w->m, SpvOpBitwiseOr, w->t_u32, word,
                       spv_op(w->m, SpvOpShiftLeftLogical, w->t_u32, v, u32(w, at * 8)));
        word = v;
    }
    return word;
}

void words_load(struct words *w, uint32_t *words, uint32_t addr, uint32_t bytes)
{
    uint32_t wide = MIN(MIN(bytes, w->align), 16);

    for (uint32_t at = 0; at < bytes; at += MAX(wide, 4)) {
        if (wide <= 4) {
            words[at / 4] = load_word(w, addr, at, MIN(bytes, 4));
            continue;
        }
        uint32_t v = load_access(w, addr, at, wide);
        if (wide == 8)
            v = spv_op(w->m, SpvOpBitcast, vector_of(w, w->t_u32, 2), v);
        for (uint32_t i = 0; i < wide / 4; i++)
            words[at / 4 + i] = spv_op(w->m, SpvOpCompositeExtract, w->t_u32, v, i);
    }
}

static void store_access(struct words *w, uint32_t addr, uint32_t offset, uint32_t bytes,
                         uint32_t v)
{
    uint32_t type = access_type(w, bytes);

    if (bytes < 4)
        v = spv_op(w->m, SpvOpUConvert, type, v);
    spv_do(w->m, SpvOpStore, pointer_at(w, addr, offset, type), v, SpvMemoryAccessAlignedMask,
           bytes);
}

static void store_word(struct words *w, uint32_t addr, uint32_t offset, uint32_t bytes, uint32_t v)
{
    uint32_t piece = MIN(bytes, w->align);

    for (uint32_t at = 0; at < bytes; at += piece) {
        uint32_t part = at ? spv_op(w->m, SpvOpShiftRightLogical, w->t_u32, v, u32(w, at * 8)) : v;

        store_access(w, addr, offset + at, piece, part);
    }
}

void words_store(struct words *w, const uint32_t *words, uint32_t addr, uint32_t bytes)
{
    uint32_t wide = MIN(MIN(bytes, w->align), 16);

    for (uint32_t at = 0; at < bytes; at += MAX(wide, 4)) {
        if (wide <= 4) {
            store_word(w, addr, at, MIN(bytes, 4), words[at / 4]);
            continue;
        }
        uint32_t v = spv_emit(w->m, SpvOpCompositeConstruct, vector_of(w, w->t_u32, wide / 4),
                              words + at / 4, (int)wide / 4);
        if (wide == 8)
            v = spv_op(w->m, SpvOpBitcast, w->t_u64, v);
        store_access(w, addr, at, wide, v);
    }
}

/* ---- between words and values ---- */

static uint32_t half_pair(struct words *w)
{
    return vector_of(w, spv_type_float(w->m, 16), 2);
}

static bool has_native_half(const struct words *w, enum dtype t)
{
    return t == DT_FLOAT16 && w->native_half;
}

/* Element `lane` of a group of elements smaller than a word, by its bits. */
static uint32_t narrow_bits(struct words *w, const uint32_t *words, uint32_t lane, enum dtype t)
{
    uint32_t bits = (uint32_t)dt_size(t) * 8, per_word = 32 / bits;
    uint32_t shift = lane % per_word * bits;
    bool is_signed = dt_table[t].kind == DT_KIND_I;

    return spv_op(w->m, is_signed ? SpvOpBitFieldSExtract : SpvOpBitFieldUExtract, w->t_u32,
                  words[lane / per_word], u32(w, shift), u32(w, bits));
}

static uint32_t native_half_value(struct words *w, const uint32_t *words, uint32_t lane)
{
    uint32_t pair = spv_op(w->m, SpvOpBitcast, half_pair(w), words[lane / 2]);
    uint32_t half = spv_op(w->m, SpvOpCompositeExtract, spv_type_float(w->m, 16), pair, lane % 2);

    return spv_op(w->m, SpvOpFConvert, spv_type_float(w->m, 32), half);
}

static uint32_t wide_value(struct words *w, const uint32_t *words, uint32_t type)
{
    uint32_t pair =
        spv_op(w->m, SpvOpCompositeConstruct, vector_of(w, w->t_u32, 2), words[0], words[1]);

    return spv_op(w->m, SpvOpBitcast, type, pair);
}

uint32_t words_value(struct words *w, const uint32_t *words, uint32_t lane, enum dtype t)
{
    enum work_type work = (enum work_type)work_type(t);
    uint32_t type = work_spv_type(w->m, work);

    if (has_native_half(w, t))
        return native_half_value(w, words, lane);
    if (dt_size(t) == 8)
        return wide_value(w, words + 2 * lane, type);
    uint32_t bits = dt_size(t) == 4 ? words[lane] : narrow_bits(w, words, lane, t);
    if (elem_load_fn(t) >= 0)
        return call1(w, elem_load_fn(t), type, bits);
    if (work == WORK_BOOL)
        return spv_op(w->m, SpvOpINotEqual, type, bits, u32(w, 0));
    return work == WORK_U32 ? bits : spv_op(w->m, SpvOpBitcast, type, bits);
}

/* Bits of a value of less than 8 bytes; above the dtype's bits there may be anything. */
static uint32_t bits_of(struct words *w, uint32_t value, enum dtype t)
{
    enum work_type work = (enum work_type)work_type(t);

    if (elem_store_fn(t) >= 0)
        return call1(w, elem_store_fn(t), w->t_u32, value);
    if (work == WORK_BOOL)
        return spv_op(w->m, SpvOpSelect, w->t_u32, value, u32(w, 1), u32(w, 0));
    return work == WORK_U32 ? value : spv_op(w->m, SpvOpBitcast, w->t_u32, value);
}

static void native_half_words(struct words *w, uint32_t *words, const uint32_t *values, uint32_t n)
{
    uint32_t half = spv_type_float(w->m, 16);

    for (uint32_t i = 0; i < n; i += 2) {
        uint32_t lo = spv_op(w->m, SpvOpFConvert, half, values[i]);
        uint32_t hi = i + 1 < n ? spv_op(w->m, SpvOpFConvert, half, values[i + 1]) : lo;
        uint32_t pair = spv_op(w->m, SpvOpCompositeConstruct, half_pair(w), lo, hi);

        words[i / 2] = spv_op(w->m, SpvOpBitcast, w->t_u32, pair);
    }
}

static void narrow_words(struct words *w, uint32_t *words, const uint32_t *values, uint32_t n,
                         enum dtype t)
{
    uint32_t bits = (uint32_t)dt_size(t) * 8, per_word = 32 / bits;

    for (uint32_t i = 0; i < n; i++) {
        uint32_t v = bits_of(w, values[i], t);
        uint32_t *word = &words[i / per_word];

        *word = i % per_word == 0 ? v
                                  : spv_op(w->m, SpvOpBitFieldInsert, w->t_u32, *word, v,
                                           u32(w, i % per_word * bits), u32(w, bits));
    }
}

void words_pack(struct words *w, uint32_t *words, const uint32_t *values, uint32_t n, enum dtype t)
{
    if (has_native_half(w, t)) {
        native_half_words(w, words, values, n);
        return;
    }
    if (dt_size(t) < 4) {
        narrow_words(w, words, values, n, t);
        return;
    }
    for (uint32_t i = 0; i < n; i++) {
        if (dt_size(t) == 4) {
            words[i] = bits_of(w, values[i], t);
            continue;
        }
        uint32_t pair = spv_op(w->m, SpvOpBitcast, vector_of(w, w->t_u32, 2), values[i]);
        for (uint32_t j = 0; j < 2; j++)
            words[2 * i + j] = spv_op(w->m, SpvOpCompositeExtract, w->t_u32, pair, j);
    }
}

/* ---- rounding ---- */

/* To float16 and back. NVIDIA's compiler takes the pair of conversions for a loss of precision that
 * may be left out, even across bit casts; it cannot when an unknown zero meets the bits. */
static uint32_t native_half_rounded(struct words *w, uint32_t v)
{
    uint32_t word;

    native_half_words(w, &word, &v, 1);
    word = spv_op(w->m, SpvOpBitwiseXor, w->t_u32, word, w->zero);
    return native_half_value(w, &word, 0);
}

uint32_t words_round(struct words *w, uint32_t v, enum dtype t)
{
    uint32_t bits = (uint32_t)dt_size(t) * 8;
    uint32_t type = work_spv_type(w->m, (enum work_type)work_type(t));

    if (has_native_half(w, t))
        return native_half_rounded(w, v);
    if (elem_round_fn(t) >= 0)
        return call1(w, elem_round_fn(t), type, v);
    return spv_op(w->m,
                  dt_table[t].kind == DT_KIND_I ? SpvOpBitFieldSExtract : SpvOpBitFieldUExtract,
                  type, v, u32(w, 0), u32(w, bits));
}
