/* Threefry-2x32 with 20 rounds over counters, bit for bit as MLX lays them out (contract 8). */
#include "backend/cpu/cpu.h"
#include "backend/cpu/tile.h"

#define PARALLEL_PAIRS 16384

struct task {
    struct cpu_src keys;
    char *out;
    size_t n_keys, bytes; /* of random bits per key */
    int64_t word_stride;  /* from the first word of a key to the second */
    struct nest nest;     /* over the keys */
};

/* One key's part of the output. */
struct stream {
    uint32_t key[3];
    char *out;
    size_t bytes, half, odd; /* words = 2 half + odd */
};

struct pair {
    uint32_t x, y;
};

static inline uint32_t rotate(uint32_t v, int by)
{
    return v << by | v >> (32 - by);
}

static inline struct pair threefry(const uint32_t key[3], uint32_t x, uint32_t y)
{
    static const int rotation[2][4] = { { 13, 15, 26, 6 }, { 17, 29, 16, 24 } };

    x += key[0];
    y += key[1];
    for (unsigned block = 0; block < 5; block++) {
        for (int round = 0; round < 4; round++) {
            x += y;
            y = rotate(y, rotation[block % 2][round]) ^ x;
        }
        x += key[(block + 1) % 3];
        y += key[(block + 2) % 3] + block + 1;
    }
    return (struct pair){ x, y };
}

/* The last word may be cut off by the end of the output. */
static void store_word(const struct stream *s, size_t word, uint32_t v)
{
    size_t at = word * sizeof v;

    memcpy(s->out + at, &v, MIN(sizeof v, s->bytes - at));
}

/* Counter (i, i + half + odd) gives words i and i + half + odd. */
static void run_pairs(void *arg, size_t begin, size_t end)
{
    const struct stream *s = arg;
    size_t apart = s->half + s->odd;
    /* Only the last pair can meet the cut-off word. */
    size_t whole = s->bytes % 4 && end == s->half ? end - 1 : end;
    uint32_t key[3] = { s->key[0], s->key[1], s->key[2] };
    char *low = s->out, *high = s->out + apart * 4;

    for (size_t i = begin; i < whole; i++) {
        struct pair p = threefry(key, (uint32_t)i, (uint32_t)(i + apart));
        memcpy(low + i * 4, &p.x, 4);
        memcpy(high + i * 4, &p.y, 4);
    }
    for (size_t i = whole; i < end; i++) {
        struct pair p = threefry(key, (uint32_t)i, (uint32_t)(i + apart));
        store_word(s, i, p.x);
        store_word(s, i + apart, p.y);
    }
}

static void run_key(const struct task *t, const char *keys, size_t i)
{
    const uint32_t *k = (const uint32_t *)keys + nest_offset(&t->nest, 0, i);
    size_t words = (t->bytes + 3) / 4;
    struct stream s = {
        .key = { k[0], k[t->word_stride], k[0] ^ k[t->word_stride] ^ 0x1bd11bdau },
        .out = t->out + i * t->bytes,
        .bytes = t->bytes,
        .half = words / 2,
        .odd = words % 2,
    };

    cpu_parallel_for(s.half, PARALLEL_PAIRS, run_pairs, &s);
    if (s.odd)
        store_word(&s, s.half, threefry(s.key, (uint32_t)s.half, 0).x);
}

static enum err run_task(void *payload)
{
    const struct task *t = payload;
    const char *keys;
    enum err err = cpu_src_host(&keys, &t->keys);

    for (size_t i = 0; err == ERR_OK && i < t->n_keys; i++)
        run_key(t, keys, i);
    return err;
}

enum err cpu_random_bits(const struct exec *x)
{
    const struct arr *keys = x->in[0];
    struct arr *out = x->out[0];
    int last = keys->ndim - 1;
    struct task t = { .keys = cpu_src(keys), .word_stride = keys->strides[last] };
    struct shp shape;
    enum err err;

    TRY(arr_alloc(out, &be_cpu));
    arr_shape(&shape, keys);
    shape.ndim = last;
    nest_make(&t.nest, &shape, keys->strides);
    t.out = cpu_dst(out);
    t.n_keys = keys->size / 2;
    t.bytes = arr_nbytes(out) / t.n_keys;
    err = cpu_enqueue(x->strm, run_task, &t, sizeof t);
out:
    return err;
}
