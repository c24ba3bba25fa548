/* A config.json and, behind a zero byte, what becomes of the tensors that it asks for: what can be
 * read is a model, which writes two tokens. */
#include "fuzz/fuzz.h"
#include "fuzz/lm_run.h"

#include "base/mem.h"
#include "eval/stream.h"
#include "ops/ops.h"

/* Random weights of the config, some of which are not what it asks for. */
struct weights {
    struct lm_weights base;
    struct lm_weights *right;
    struct strm *s;
    const uint8_t *bytes; /* one for each tensor; none: it is right */
    size_t n;
};

static uint8_t next_byte(struct weights *w)
{
    if (!w->n)
        return 0;
    w->n--;
    return *w->bytes++;
}

static bool fuzz_has(struct lm_weights *base, const char *name)
{
    struct weights *w = (struct weights *)base;

    return w->right->has(w->right, name);
}

static enum err fuzz_get(struct lm_weights *base, struct arr **out, const char *name,
                         const struct shp *shape)
{
    struct weights *w = (struct weights *)base;
    uint8_t byte = next_byte(w);
    struct shp other = *shape;

    if (byte == 0)
        return w->right->get(w->right, out, name, shape);
    if (byte == 1)
        return err_set(ERR_ARG, "no %s", name);
    if (byte & 0x80 && shape->ndim)
        other.d[byte % (unsigned)shape->ndim] ^= 1;
    return ops_fill(out, (struct ints){ other.d, (size_t)other.ndim }, 1,
                    (enum dtype)(byte % DT_COUNT), w->s);
}

static void fuzz_destroy(struct lm_weights *base)
{
    struct weights *w = (struct weights *)base;

    weights_destroy(&w->right);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *zero = size ? memchr(data, 0, size) : NULL;
    size_t n = zero ? (size_t)(zero - data) : size;
    struct weights w = { .base = { fuzz_has, fuzz_get, NULL, NULL, fuzz_destroy },
                         .bytes = zero ? zero + 1 : data,
                         .n = zero ? size - n - 1 : 0 };
    struct json_doc *doc = NULL;
    struct lm_config c = { 0 };
    enum err err;

    TRY(strm_default(&w.s, (struct dev){ DEV_CPU, 0 }));
    TRY(json_parse(&doc, (const char *)data, n, "config.json"));
    TRY(config_read(&c, doc));
    TRY(weights_random(&w.right, &c, 1, w.s));
    lm_run(&c, &w.base, w.s);
    return 0;
out:
    config_fini(&c);
    return 0;
}
