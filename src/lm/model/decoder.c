#include "lm/model/decoder.h"

#include "base/gate.h"
#include "base/log.h"

/* Inputs: the token, then keys and values of every layer. Results: logits, then the same. */
static size_t n_arrays(const struct lm_decoder *d)
{
    return 1 + 2 * (size_t)d->cache->n_layers;
}

static struct arr **array_at(const struct lm_cache *c, size_t i)
{
    struct lm_cache_layer *l = &c->layer[(i - 1) / 2];

    return i % 2 ? &l->keys : &l->values;
}

/* ---- building ---- */

struct draft {
    struct lm_cache cache; /* of placeholders, then of what the graph makes of them */
    struct arr **in;       /* owned */
    struct arr **out;      /* owned: logits; the others belong to the cache */
};

static enum err make_placeholders(struct draft *f, const struct lm_decoder *d,
                                  const struct arr *token)
{
    enum err err;

    TRY(program_placeholder(&f->in[0], token));
    for (size_t i = 1; i < n_arrays(d); i++) {
        TRY(program_placeholder(&f->in[i], *array_at(d->cache, i)));
        *array_at(&f->cache, i) = arr_ref(f->in[i]);
    }
    f->cache.used = d->cache->used;
out:
    return err;
}

static enum err build_graph(struct draft *f, struct lm_moves *moves, const struct lm_decoder *d)
{
    struct lm_graph g;

    graph_begin(&g, d->stream);
    struct arr *tokens = g_reshape(&g, f->in[0], SHAPE(1, 1));
    struct arr *hidden = model_hidden(&g, d->model, tokens, &f->cache);
    struct arr *logits = g_squeeze(&g, model_logits(&g, d->model, hidden), 1);
    graph_keep(&g, &f->out[0], logits);
    *moves = g.moves;
    g.moves = (struct lm_moves){ 0 };
    return graph_end(&g); /* only the cache and the logits hold the graph now */
}

static enum err build(struct lm_decoder *d, const struct arr *token)
{
    size_t n = n_arrays(d);
    struct draft f = { .in = mem_alloc_array(n, sizeof(struct arr *)),
                       .out = mem_alloc_array(n, sizeof(struct arr *)) };
    struct lm_moves moves = { 0 };
    enum err err = ERR_NO_MEMORY;

    if (!f.in || !f.out)
        goto out;
    TRY(cache_init(&f.cache, d->cache->n_layers));
    TRY(make_placeholders(&f, d, token));
    TRY(build_graph(&f, &moves, d));
    cache_arrays(&f.cache, f.out + 1);
    err = program_new(
        &d->program,
        &(struct program_params){
            .in = f.in, .n_in = n, .out = f.out, .n_out = n, .move = moves.v, .n_moves = moves.n });
    d->position = d->cache->used;
out:
    for (size_t i = 0; f.in && i < n; i++)
        arr_unref(&f.in[i]);
    if (f.out)
        arr_unref(&f.out[0]);
    cache_fini(&f.cache);
    VEC_FINI(&moves);
    mem_free(f.in);
    mem_free(f.out);
    return err;
}

/* ---- running ---- */

/* More than one position: at the last one what is used of a cache is all of it, no slice that could
 * grow. */
static bool has_room(const struct lm_cache *c)
{
    const struct arr *keys = c->layer[0].keys;

    return keys && arr_is_scheduled(keys) && c->used + 1 < keys->shape[LM_CACHE_AXIS];
}

/* What begins behind the first position moves in a way that graphs which are built once do not. */
static bool has_moving_window(const struct lm_decoder *d)
{
    int32_t window = d->model->config.window;

    return window && d->cache->used >= window;
}

static bool is_sampled(const struct arr *token)
{
    return token->ndim == 1 && token->dtype == DT_UINT32 && arr_is_scheduled(token);
}

static enum err make_ready(struct lm_decoder *d, const struct arr *token)
{
    int32_t room = d->cache->layer[0].keys->shape[LM_CACHE_AXIS];
    uint64_t gates = gate_changes();

    if (d->room == room && d->gates == gates && (d->program || d->is_refused))
        return ERR_OK;
    decoder_fini(d);
    d->room = room;
    d->gates = gates;
    enum err err = build(d, token);
    d->is_refused = err == ERR_UNSUPPORTED;
    if (d->is_refused)
        log_line(LOG_INFO, "the graph of a token is built each time: %s", err_text());
    return d->is_refused ? ERR_OK : err;
}

static enum err run(struct arr **logits, struct lm_decoder *d, struct arr *token)
{
    struct lm_cache *c = d->cache;
    size_t n = n_arrays(d);
    struct arr **in = mem_alloc_array(2 * n, sizeof(struct arr *));

    if (!in)
        return ERR_NO_MEMORY;
    struct arr **out = in + n;
    in[0] = arr_ref(token);
    for (size_t i = 1; i < n; i++) {
        in[i] = *array_at(c, i);
        *array_at(c, i) = NULL;
    }
    program_advance(d->program, c->used - d->position);
    d->position = c->used;
    enum err err = program_call(d->program, in, out);
    if (!err) {
        *logits = out[0];
        for (size_t i = 1; i < n; i++)
            *array_at(c, i) = out[i];
        cache_advance(c, 1);
    }
    for (size_t i = 0; err && i < n; i++)
        arr_unref(&in[i]);
    mem_free(in);
    return err;
}

enum err decoder_step(struct arr **logits, struct lm_decoder *d, struct arr *token)
{
    enum err err = ERR_OK;

    *logits = NULL;
    if (!gate_on(GATE_LM_REPLAY) || !is_sampled(token) || !has_room(d->cache) ||
        has_moving_window(d))
        return ERR_OK;
    TRY(make_ready(d, token));
    if (!d->is_refused)
        TRY(run(logits, d, token));
out:
    if (err) {
        cache_reset(d->cache);
        decoder_fini(d);
    }
    return err;
}

void decoder_fini(struct lm_decoder *d)
{
    program_destroy(&d->program);
    d->is_refused = false;
}
