#include "lm/model/config_numbers.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#define NEEDED (-1)
#define INT false
#define REAL true

const struct lm_number lm_numbers[LM_NUMBER_COUNT] = {
#define NUMBER(id, group, field, kind, key, gguf_key, ...)                                         \
    { LM_NUMBERS_##group, kind, offsetof(struct lm_config, field), key, gguf_key, __VA_ARGS__ },
#include "lm/model/config_numbers.def"
#undef NUMBER
};

enum err numbers_fail(const struct lm_number_source *s, enum lm_number_id id, const char *fmt, ...)
{
    char what[200];
    va_list args;

    va_start(args, fmt);
    vsnprintf(what, sizeof what, fmt, args);
    va_end(args);
    return s->fail(s, &lm_numbers[id], what);
}

static enum err check(const struct lm_number_source *s, const struct lm_number *n, double value)
{
    char what[120];

    if (!n->is_real && value != floor(value))
        snprintf(what, sizeof what, "%.10g is not a whole number", value);
    else if (!(value >= n->least && value <= n->most)) /* nor NaN */
        snprintf(what, sizeof what, "%.10g is not between %.10g and %.10g", value, n->least,
                 n->most);
    else
        return ERR_OK;
    return s->fail(s, n, what);
}

static void store(struct lm_config *c, const struct lm_number *n, double value)
{
    void *field = (char *)c + n->offset;

    if (n->is_real)
        *(float *)field = (float)value;
    else
        *(int32_t *)field = (int32_t)value;
}

static enum err read_number(struct lm_config *c, const struct lm_number *n,
                            const struct lm_number_source *s)
{
    double value = n->fallback;
    bool found = false;
    enum err err;

    TRY(s->get(s, n, &value, &found));
    if (found)
        TRY(check(s, n, value));
    else if (value < 0)
        TRY(s->fail(s, n, "it is missing"));
    store(c, n, value);
out:
    return err;
}

enum err numbers_read(struct lm_config *c, enum lm_number_group group,
                      const struct lm_number_source *s)
{
    enum err err = ERR_OK;

    for (size_t i = 0; i < LM_NUMBER_COUNT; i++)
        if (lm_numbers[i].group == group)
            TRY(read_number(c, &lm_numbers[i], s));
out:
    return err;
}

enum err numbers_check_model(struct lm_config *c, const struct lm_number_source *s)
{
    if (!c->kv_heads)
        c->kv_heads = c->heads;
    if (!c->head_dim)
        c->head_dim = c->hidden / c->heads;
    if (c->heads % c->kv_heads)
        return numbers_fail(s, LM_NUMBER_KV_HEADS, "%d heads are not a multiple of %d", c->heads,
                            c->kv_heads);
    if (c->head_dim < 2 || c->head_dim % 2)
        return numbers_fail(s, LM_NUMBER_HEAD_DIM, "%d is not a positive even number", c->head_dim);
    if ((int64_t)c->heads * c->head_dim > INT32_MAX)
        return numbers_fail(s, LM_NUMBER_HEAD_DIM, "%d heads of %d are too much", c->heads,
                            c->head_dim);
    return ERR_OK;
}

enum err numbers_check_scaling(struct lm_config *c, const struct lm_number_source *s)
{
    struct lm_rope *r = &c->rope;

    if (!r->original_context)
        r->original_context = r->kind == LM_ROPE_LLAMA3 ? 8192 : 4096;
    if (r->high_freq_factor < r->low_freq_factor)
        return numbers_fail(s, LM_NUMBER_HIGH_FREQ, "%g is less than low_freq_factor's %g",
                            (double)r->high_freq_factor, (double)r->low_freq_factor);
    return ERR_OK;
}

enum err numbers_check_experts(struct lm_config *c, const struct lm_number_source *s)
{
    if (c->experts && c->experts_per_token > c->experts)
        return numbers_fail(s, LM_NUMBER_EXPERTS_USED, "%d of %d experts", c->experts_per_token,
                            c->experts);
    return ERR_OK;
}
