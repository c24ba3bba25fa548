/* Threefry-2x32 with 20 rounds over counters, bit for bit as MLX lays them out (docs/runtime.md).
 */
#include "backend/cpu/cpu.h"
#include "backend/cpu/kernels.h"
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
    size_t pairs;            /* pairs of whole words */
};

/* Words of counters (i, i + half + odd), which stand half + odd words apart. */
static void run_pairs(void *arg, size_t begin, size_t end)
{
    const struct stream *s = arg;
    size_t apart = s->half + s->odd;
    struct cpu_threefry t = {
        .key = { s->key[0], s->key[1], s->key[2] },
        .first = (uint32_t)begin,
        .apart = (uint32_t)apart,
        .low = s->out + begin * 4,
        .high = s->out + (begin + apart) * 4,
    };

    cpu_kernels()->threefry(&t, end - begin);
}

/* The pair whose second word the output cuts off, and the middle word of an odd number. */
static void run_rest(const struct stream *s)
{
    uint32_t low, high;
    struct cpu_threefry t = { .key = { s->key[0], s->key[1], s->key[2] },
                              .low = &low,
                              .high = &high };

    if (s->pairs < s->half) {
        size_t apart = s->half + s->odd;
        t.first = (uint32_t)s->pairs;
        t.apart = (uint32_t)apart;
        cpu_kernels()->threefry(&t, 1);
        memcpy(s->out + s->pairs * 4, &low, 4);
        memcpy(s->out + (s->pairs + apart) * 4, &high, s->bytes % 4);
    }
    if (s->odd) {
        t.first = (uint32_t)s->half;
        t.apart = 0u - t.first; /* the second counter is 0 */
        cpu_kernels()->threefry(&t, 1);
        memcpy(s->out + s->half * 4, &low, MIN(4, s->bytes - s->half * 4));
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

    s.pairs = s.half && t->bytes % 4 ? s.half - 1 : s.half;
    cpu_parallel_for(s.pairs, PARALLEL_PAIRS, run_pairs, &s);
    run_rest(&s);
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
