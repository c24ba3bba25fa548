// Shared by the kernels of matrix products: batches, four elements at a time, the end of a product.
//
// The including file declares EPILOGUE, one of the values below.
#define EPILOGUE_PLAIN 0u   // dst = sum
#define EPILOGUE_SCALED 1u  // dst = alpha * sum + beta * c
#define EPILOGUE_PARTIAL 2u // dst = sum in f32, one of several parts of k

// FLAGS of a pipeline.
#define FLAG_A_ALONG_K 1u // unit stride of a (w) along k, else along its rows
#define FLAG_B_ALONG_K 2u // unit stride of b along k, else along its columns
#define FLAG_A_WIDE 4u    // several elements of a (w) per load: aligned, and no remainder
#define FLAG_B_WIDE 8u    // the same of b (x)
#define FLAG_K_EDGE 16u   // k is not a multiple of the tile
#define FLAG_PROGRAM 32u  // a program follows: epilogue.glsl
#define FLAG_X_BY_ROW 64u // gemv: the vectors are rows of the product
// and those of unfold.glsl

layout(buffer_reference, scalar, buffer_reference_align = 8) readonly buffer MmBatch
{
    mm_batch_args v;
};

// Element offsets of a, b and c for a batch, which may lie past the last one. `one` holds the strides
// of a single batch dimension.
i64vec3 mm_batch_offsets(uint64_t address, i64vec3 one, uint batch)
{
    if (!is_given(address))
        return one * int64_t(batch);
    MmBatch b = MmBatch(address);
    i64vec3 at = i64vec3(0l);
    uint number = batch, left = 0u, n_right = b.v.ndim;
    if (is_given(b.v.lhs)) {
        batch = min(batch, b.v.n_pairs - 1u);
        left = min(U32Buf(b.v.lhs).v[batch], b.v.n_a - 1u);
        number = min(U32Buf(b.v.rhs).v[batch], b.v.n_b - 1u);
        n_right = b.v.ndim_b;
    }
    for (uint d = 0u; d < b.v.ndim; d++) {
        if (d == n_right)
            number = left;
        uint next = number / b.v.dim[d];
        int64_t i = int64_t(number - next * b.v.dim[d]);
        at += i * i64vec3(b.v.stride[d], b.v.stride[WALK_MAX + d], b.v.stride[2 * WALK_MAX + d]);
        number = next;
    }
    return at;
}

// The number of this workgroup over the whole grid.
uint mm_group()
{
    return gl_WorkGroupID.x +
           gl_NumWorkGroups.x * (gl_WorkGroupID.y + gl_NumWorkGroups.y * gl_WorkGroupID.z);
}

// acc + x * y
VAL mm_mul_add(VAL x, VAL y, VAL acc)
{
#if DT_IS_COMPLEX
    return vec2(fma(x.x, y.x, fma(-x.y, y.y, acc.x)), fma(x.x, y.y, fma(x.y, y.x, acc.y)));
#else
    return fma(x, y, acc);
#endif
}

VAL mm_scaled(VAL sum, float alpha, float beta, VAL c)
{
    return alpha * sum + (beta == 0.0 ? DT_ZERO : beta * c);
}

// ---- four neighbouring elements, complex ones with real and imaginary parts apart ----

#if DT_IS_COMPLEX
struct Quad {
    vec4 re, im;
};
#define QUAD_ZERO Quad(vec4(0.0), vec4(0.0))
#define quad_re(q) (q).re
#define quad_im(q) (q).im
#define quad_get(q, i) vec2((q).re[i], (q).im[i])
#define QUAD_SET(q, i, v)                                                                          \
    {                                                                                              \
        (q).re[i] = (v).x;                                                                         \
        (q).im[i] = (v).y;                                                                         \
    }
#else
#define Quad vec4
#define QUAD_ZERO vec4(0.0)
#define quad_re(q) (q)
#define quad_get(q, i) (q)[i]
#define QUAD_SET(q, i, v) (q)[i] = (v)
#endif

BUF(U64x2Buf, uvec2, 8);

Quad quad_load(uint64_t address)
{
#if DT_IS_COMPLEX
    vec4 lo = uintBitsToFloat(U128Buf(address).v[0]);
    vec4 hi = uintBitsToFloat(U128Buf(address + 16ul).v[0]);
    return Quad(vec4(lo.xz, hi.xz), vec4(lo.yw, hi.yw));
#elif DT_BYTES == 2
    uvec2 w = U64x2Buf(address).v[0];
    return vec4(dt_from_bits(w.x), dt_from_bits(w.x >> 16), dt_from_bits(w.y),
                dt_from_bits(w.y >> 16));
#else
    return uintBitsToFloat(U128Buf(address).v[0]);
#endif
}

void quad_store(uint64_t address, Quad q)
{
#if DT_IS_COMPLEX
    U128Buf(address).v[0] = floatBitsToUint(vec4(q.re.x, q.im.x, q.re.y, q.im.y));
    U128Buf(address + 16ul).v[0] = floatBitsToUint(vec4(q.re.z, q.im.z, q.re.w, q.im.w));
#elif DT_BYTES == 2
    U64x2Buf(address).v[0] = uvec2(dt_to_bits(q.x) | dt_to_bits(q.y) << 16,
                                   dt_to_bits(q.z) | dt_to_bits(q.w) << 16);
#else
    U128Buf(address).v[0] = floatBitsToUint(q);
#endif
}

// Partial sums are f32, or two of them for a complex number.
#if DT_IS_COMPLEX
#define PART_BYTES 8
BUF(PartBuf, vec2, 8);
#else
#define PART_BYTES 4
BUF(PartBuf, float, 4);
#endif

Quad quad_load_part(uint64_t address)
{
#if DT_IS_COMPLEX
    return quad_load(address);
#else
    return uintBitsToFloat(U128Buf(address).v[0]);
#endif
}

void quad_store_part(uint64_t address, Quad q)
{
#if DT_IS_COMPLEX
    quad_store(address, q);
#else
    U128Buf(address).v[0] = floatBitsToUint(q);
#endif
}
