#include "support/infer.h"

#include <stdio.h>
#include <string.h>

#include "graph/op_call.h"

/* Room for any params struct: a convolution has five words for each axis. */
#define WORDS_MAX (8 + 5 * (SHP_MAX + 1))
#define INPUTS_MAX 8

static char text[1024];

const char *infer_again(const struct node *n)
{
    struct out_desc *out = mem_alloc_array((size_t)MAX(OP_MAX_OUT, n->n_in), sizeof *out);
    struct infer_call c = { .op = (enum op_id)n->op,
                            .params = n->params,
                            .in = n->in,
                            .n_in = (size_t)n->n_in,
                            .out = out };

    assert_non_null(out);
    if (op_infer(&c)) {
        snprintf(text, sizeof text, "infer: %s", err_text());
        mem_free(out);
        return text;
    }
    bool same = c.n_out == (size_t)n->n_out;
    for (size_t i = 0; same && i < c.n_out; i++) {
        struct shp shape;
        arr_shape(&shape, &n->out[i]);
        same = c.out[i].dtype == (enum dtype)n->out[i].dtype && shp_equal(&shape, &c.out[i].shape);
    }
    mem_free(out);
    if (same)
        return "";
    snprintf(text, sizeof text, "%s is inferred as something else", op_name((enum op_id)n->op));
    return text;
}

/* A rule that succeeds has made arrays that can be. */
static const char *check(struct infer_call *c)
{
    struct out_desc out[OP_MAX_OUT]; /* inputs are fewer here */

    c->out = out;
    if (op_infer(c))
        return "";
    bool fits = c->n_out >= 1 && c->n_out <= OP_MAX_OUT;
    for (size_t i = 0; fits && i < c->n_out; i++) {
        const struct shp *s = &c->out[i].shape;
        fits = s->ndim >= 0 && s->ndim <= SHP_MAX && c->out[i].dtype < DT_COUNT;
        for (int k = 0; fits && k < s->ndim; k++)
            fits = s->d[k] >= 0;
    }
    if (fits)
        return "";
    snprintf(text, sizeof text, "%s is inferred as what cannot be", op_name(c->op));
    return text;
}

static int32_t random_word(struct rng *r)
{
    static const int32_t odd[] = { INT32_MIN, INT32_MAX, -1, 32, 33, 64, 0x3f800000, 0x7fc00000 };

    return rng_one_in(r, 8) ? odd[rng_below(r, ARRAY_LEN(odd))] : rng_below(r, 6) - 1;
}

static struct arr *random_array(struct rng *r)
{
    struct shp s = { .ndim = rng_one_in(r, 20) ? SHP_MAX : rng_below(r, 5) };
    struct arr *a = NULL;

    for (int i = 0; i < s.ndim; i++)
        s.d[i] = s.ndim == SHP_MAX ? 1 : rng_below(r, 5);
    assert_ok(arr_new_empty(&a, &s, (enum dtype)rng_below(r, DT_COUNT)));
    return a;
}

/* A list has no more than the struct has room for, nor fewer than none. */
static void bound_length(enum op_id op, int32_t *words)
{
    const struct op_params_layout *l = &op_params_layouts[op_table[op].params];

    if (!l->item)
        return;
    int32_t *n = &words[l->fixed / sizeof *words - 1];
    if (*n < -1 || *n > SHP_MAX + 1)
        *n = SHP_MAX;
}

const char *infer_changed(const struct node *n, struct rng *r)
{
    int32_t words[WORDS_MAX] = { 0 };
    struct arr *in[INPUTS_MAX], *other = random_array(r);
    size_t n_in = MIN((size_t)n->n_in, (size_t)INPUTS_MAX), n_words = n->params_size / 4;

    memcpy(words, n->params, n->params_size);
    memcpy(in, n->in, n_in * sizeof in[0]);
    if (n_words && rng_one_in(r, 2))
        words[rng_below(r, (int)n_words)] = random_word(r);
    else if (n_in)
        in[rng_below(r, (int)n_in)] = other;
    if (rng_one_in(r, 8))
        n_in = (size_t)rng_below(r, (int)n_in + 1);
    bound_length((enum op_id)n->op, words);
    struct infer_call c = { .op = (enum op_id)n->op, .params = words, .in = in, .n_in = n_in };
    const char *wrong = check(&c);
    arr_unref(&other);
    return wrong;
}

const char *infer_random(enum op_id op, struct rng *r)
{
    int32_t words[WORDS_MAX];
    struct arr *in[INPUTS_MAX] = { NULL };
    const struct op_info *o = &op_table[op];
    int most = MIN(o->most_in, INPUTS_MAX);
    size_t n_in = (size_t)(o->least_in + rng_below(r, most - o->least_in + 1));

    for (size_t i = 0; i < WORDS_MAX; i++)
        words[i] = random_word(r);
    for (size_t i = 0; i < n_in; i++)
        in[i] = i && rng_one_in(r, 2) ? arr_ref(in[i - 1]) : random_array(r);
    bound_length(op, words);
    struct infer_call c = { .op = op, .params = words, .in = in, .n_in = n_in };
    const char *wrong = check(&c);
    for (size_t i = 0; i < n_in; i++)
        arr_unref(&in[i]);
    return wrong;
}
