// What the kernels of Fourier transforms share: roots of unity, numbers from and to memory.
//
// The includer declares ARGS(fft_args) and the specialization constants LOAD, STORE and FLAGS, and
// includes common.glsl, index.glsl and math.glsl before.
BUF(C64Buf, vec2, 8);

bool has(uint flag)
{
    return (FLAGS & flag) != 0u;
}

// ---- where lines are ----

struct line_place {
    uint u;
    int64_t src, dst; // of number 0 of the whole transform
};

line_place place_of(uint number)
{
    uint span = p.before * p.parts;
    uint batch = has(FFT_BATCH_FIRST) ? number % p.n_batch : number / span;
    line_place l;

    l.u = has(FFT_BATCH_FIRST) ? number / p.n_batch : number - batch * span;
    if (is_given(p.walks)) {
        l.src = walk_offset(Walk(p.walks), uint64_t(batch));
        l.dst = walk_offset(Walk(p.walks + uint64_t(WALK_BYTES)), uint64_t(batch));
    } else {
        l.src = int64_t(batch) * p.src_batch;
        l.dst = int64_t(batch) * p.dst_batch;
    }
    return l;
}

// ---- loads ----

float real_at(int64_t base, uint i)
{
    return AT(F32Buf, p.src, 4, base + int64_t(i) * p.src_step);
}

vec2 complex_at(int64_t base, uint i)
{
    return AT(C64Buf, p.src, 8, base + int64_t(i) * p.src_step);
}

vec2 conjugate(const vec2 z)
{
    return vec2(z.x, -z.y);
}

// Frequency i of n, the first n / 2 + 1 of which are in memory.
vec2 frequency(int64_t base, uint i, uint n)
{
    bool is_there = i <= n / 2u;
    vec2 z = complex_at(base, is_there ? i : n - i);

    if (i == 0u || 2u * i == n)
        z.y = 0.0;
    return is_there ? z : conjugate(z);
}

// The sum of what the even and, turned, the odd results come from, each twice.
vec2 halved(int64_t base, uint i, uint n)
{
    vec2 a = frequency(base, i, 2u * n);
    vec2 b = conjugate(frequency(base, n - i, 2u * n));
    vec2 t = times(conjugate(root(i, 2u * n)), a - b);

    return a + b - turned(t);
}

vec2 source_number(int64_t base, uint i)
{
    switch (LOAD) {
    case FFT_LOAD_REAL:
        return vec2(real_at(base, i), 0.0);
    case FFT_LOAD_PAIRS:
        if (has(FFT_WIDE_IN))
            return AT(C64Buf, p.src, 8, (base >> 1) + int64_t(i));
        return vec2(real_at(base, 2u * i), real_at(base, 2u * i + 1u));
    case FFT_LOAD_MIRRORED:
        return frequency(base, i, p.count);
    case FFT_LOAD_HALVED:
        return halved(base, i, p.count);
    default:
        return complex_at(base, i);
    }
}

vec2 table_at(uint i)
{
    return C64Buf(p.table).v[i];
}

vec2 load_number(int64_t base, uint i)
{
    if (LOAD == FFT_LOAD_CHIRP) {
        uint mirrored = p.n * p.before * p.parts - i;
        uint at = min(i, mirrored);
        return at < p.count ? conjugate(table_at(at)) : vec2(0.0);
    }
    if (has(FFT_CHIRP_IN) && i >= p.count)
        return vec2(0.0);
    vec2 z = source_number(base, i);
    if (has(FFT_CONJ_IN))
        z = conjugate(z);
    return has(FFT_CHIRP_IN) ? times(z, table_at(i)) : z;
}

// ---- stores ----

void store_number(int64_t base, uint i, vec2 z)
{
    if (i >= p.limit)
        return;
    if (has(FFT_SPECTRUM_OUT))
        z = conjugate(times(z, C64Buf(p.spectrum).v[i]));
    if (has(FFT_CHIRP_OUT))
        z = times(conjugate(z), table_at(i));
    if (has(FFT_CONJ_OUT))
        z = conjugate(z);
    z *= p.scale;
    int64_t at = base + int64_t(STORE == FFT_STORE_PAIRS ? 2u * i : i) * p.dst_step;
    if (STORE == FFT_STORE_REAL) {
        AT(F32Buf, p.dst, 4, at) = z.x;
    } else if (STORE != FFT_STORE_PAIRS || has(FFT_WIDE_OUT)) {
        AT(C64Buf, p.dst, 8, STORE == FFT_STORE_PAIRS ? at >> 1 : at) = z;
    } else {
        AT(F32Buf, p.dst, 4, at) = z.x;
        AT(F32Buf, p.dst, 4, at + p.dst_step) = z.y;
    }
}

// Where result k of a line goes in the whole transform.
uint result_place(uint u, uint k)
{
    uint part = p.parts == 1u ? 0u : u / p.before;

    return u - part * p.before + p.before * (p.n * part + k);
}
