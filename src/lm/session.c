#include "lm/session.h"

#include "base/log.h"
#include "eval/eval.h"
#include "eval/stream.h"
#include "graph/memory.h"
#include "lm/files/model_files.h"

/* Memory beyond weights and cache that work in flight may fill; the rest of what a session may take
 * (session.h) is for the op that runs into this limit. */
#define IN_FLIGHT_BYTES ((size_t)160 << 20)

/* ---- opening ---- */

struct loading {
    const struct session_params *p;
    size_t done, total, bytes;
};

static enum err count_weight(struct arr *w, void *data)
{
    (void)w;
    ((struct loading *)data)->total++;
    return ERR_OK;
}

/* One by one, so that each is complete before the next is read and memory holds each of them once.
 */
static enum err load_weight(struct arr *w, void *data)
{
    struct loading *l = data;
    enum err err = eval_arrays(&w, 1, false);

    l->done++;
    l->bytes += w->size * dt_size((enum dtype)w->dtype);
    if (!err && l->p->on_load)
        l->p->on_load(l->done, l->total, l->p->data);
    return err;
}

static enum err load_model(struct lm_session *s, struct model_files *parts,
                           const struct session_params *p)
{
    struct loading loading = { .p = p };
    enum err err;

    TRY(model_new(&s->model, &parts->config, parts->weights));
    weights_destroy(&parts->weights); /* what the model does not use goes before anything is read */
    TRY(model_each_weight(s->model, count_weight, &loading));
    TRY(model_each_weight(s->model, load_weight, &loading));
    s->weight_bytes = loading.bytes;
out:
    return err;
}

enum err session_open(struct lm_session *s, const struct session_params *p)
{
    struct model_files parts;
    enum err err;

    *s = (struct lm_session){ .stream = p->stream };
    TRY(model_files_open(&parts, p->path, MODEL_FILES_ALL, p->stream));
    s->tok = parts.tok;
    parts.tok = NULL;
    if (p->raw)
        TRY(chat_create(&s->chat, &(struct chat_source){ .template_text = NULL }));
    else
        TRY(chat_create_for(&s->chat, s->tok)); /* before the weights, which may take long */
    TRY(load_model(s, &parts, p));
    TRY(cache_init(&s->cache, s->model->config.layers));
    s->decoder = (struct lm_decoder){ .model = s->model, .cache = &s->cache, .stream = s->stream };
out:
    model_files_fini(&parts);
    if (err)
        session_close(s);
    return err;
}

void session_close(struct lm_session *s)
{
    /* An answer that was ended leaves a step in flight, and a driver that is torn down meanwhile
     * may crash. What went wrong with it is nobody's concern any more. */
    if (s->decoder.stream && strm_synchronize(s->stream) != ERR_OK)
        log_info("what was in flight has failed: %s", err_text());
    decoder_fini(&s->decoder);
    cache_fini(&s->cache);
    VEC_FINI(&s->held);
    chat_destroy(&s->chat);
    tok_destroy(&s->tok);
    model_destroy(&s->model);
}

/* ---- prompts ---- */

enum err session_encode(struct ids *out, struct lm_session *s, const struct chat_msg *msgs,
                        size_t n, const struct chat_params *params)
{
    struct str text = { 0 };
    enum err err;

    TRY(chat_render(&text, s->chat, msgs, n, params));
    err = tok_encode(s->tok, text.v, text.n, chat_is_plain(s->chat), out);
out:
    VEC_FINI(&text);
    return err;
}

/* ---- text ---- */

/* Text on its way to the caller: what may become a stop text is held back. */
struct outlet {
    const struct session_request *r;
    struct tok_stream *stream;
    struct lm_session *session;
    struct str text;
    enum err err;
};

/* Where the first stop text begins, or n. */
static size_t find_stop(const struct outlet *o)
{
    size_t first = o->text.n;

    for (size_t i = 0; i < o->r->n_stop; i++) {
        size_t n = strlen(o->r->stop[i]);
        for (size_t at = 0; n && at + n <= o->text.n && at < first; at++)
            if (memcmp(o->text.v + at, o->r->stop[i], n) == 0)
                first = at;
    }
    return first;
}

/* How much of the end could be the beginning of a stop text. */
static size_t held_back(const struct outlet *o)
{
    size_t most = 0;

    for (size_t i = 0; i < o->r->n_stop; i++)
        for (size_t n = strlen(o->r->stop[i]); n-- > most + 1;)
            if (n <= o->text.n && memcmp(o->text.v + o->text.n - n, o->r->stop[i], n) == 0) {
                most = n;
                break;
            }
    return most;
}

/* Gives out what can be; false ends the answer. */
static bool pour(struct outlet *o, bool is_end)
{
    size_t stop = find_stop(o), n = stop;
    bool go_on = stop == o->text.n;

    if (go_on && !is_end)
        n -= held_back(o);
    if (n && !o->r->on_text(o->text.v, n, o->r->data))
        go_on = false;
    if (n)
        memmove(o->text.v, o->text.v + n, o->text.n - n);
    o->text.n = stop < o->text.n ? 0 : o->text.n - n;
    return go_on;
}

static void on_logprobs(int32_t id, const float *logprobs, size_t n, void *data)
{
    struct outlet *o = data;

    if (!o->err)
        o->err = o->r->on_token(id, logprobs, n, o->r->data);
}

static bool on_token(int32_t id, void *data)
{
    struct outlet *o = data;

    if (!o->err && o->r->on_token && !o->r->with_logprobs)
        o->err = o->r->on_token(id, NULL, 0, o->r->data);
    if (!o->err)
        o->err = VEC_PUSH(&o->session->held, id);
    if (!o->err)
        o->err = tok_stream_add(o->stream, id, &o->text);
    return !o->err && (!o->text.n || pour(o, false));
}

static bool on_prompt(size_t done, size_t total, void *data)
{
    const struct outlet *o = data;

    return !o->r->on_prompt || o->r->on_prompt(done, total, o->r->data);
}

/* ---- running ---- */

static size_t cache_bytes(const struct lm_session *s, size_t tokens)
{
    const struct lm_config *c = &s->model->config;
    size_t room = align_up(tokens, LM_CACHE_STEP);

    return 2 * room * (size_t)c->layers * (size_t)c->kv_heads * (size_t)c->head_dim *
           dt_size((enum dtype)s->model->norm->dtype);
}

/* The limit for a request, which begins work on the GPU long before what came earlier is complete.
 */
static size_t limit_for(const struct lm_session *s, const struct session_request *r)
{
    size_t tokens = MIN(r->prompt->n + (size_t)r->max_tokens, (size_t)s->model->config.context);

    return s->weight_bytes / 100 * 115 + cache_bytes(s, tokens) + IN_FLIGHT_BYTES;
}

/* Goes back to what prompt and cache have in common, but for one token, which makes the first
 * logits.
 */
static size_t keep_common(struct lm_session *s, const struct ids *prompt)
{
    size_t n = 0, most = MIN(s->held.n, (size_t)s->cache.used);

    while (n < most && n + 1 < prompt->n && s->held.v[n] == prompt->v[n])
        n++;
    cache_trim(&s->cache, (int32_t)n);
    if (n == 0)
        cache_reset(&s->cache);
    s->held.n = n;
    return n;
}

static enum err hold_prompt(struct lm_session *s, const struct ids *prompt, size_t from)
{
    enum err err = ERR_OK;

    for (size_t i = from; i < prompt->n; i++)
        TRY(VEC_PUSH(&s->held, prompt->v[i]));
out:
    return err;
}

enum err session_run(struct lm_session *s, struct lm_stats *stats, const struct session_request *r)
{
    const struct tok_info *info = tok_info(s->tok);
    struct outlet o = { .r = r, .session = s };
    size_t common = keep_common(s, r->prompt);
    struct lm_generation g = { .model = s->model,
                               .cache = &s->cache,
                               .stream = s->stream,
                               .decoder = &s->decoder,
                               .prompt = common ? r->prompt->v + common : r->prompt->v,
                               .n_prompt = r->prompt->n - common,
                               .sampling = r->sampling,
                               .chunk = LM_CHUNK,
                               .max_tokens = r->max_tokens,
                               .eos = info->eos_ids.v,
                               .n_eos = info->eos_ids.n,
                               .on_token = on_token,
                               .on_logprobs = r->on_token && r->with_logprobs ? on_logprobs : NULL,
                               .on_prompt = on_prompt,
                               .data = &o };
    size_t limit = memory_limit();
    enum err err;

    *stats = (struct lm_stats){ 0 };
    memory_set_limit(MIN(limit, limit_for(s, r)));
    TRY(tok_stream_create(&o.stream, s->tok, true));
    TRY(hold_prompt(s, r->prompt, common));
    TRY(generate(stats, &g));
    TRY(o.err);
    if (stats->finish != LM_FINISH_CALLER) {
        TRY(tok_stream_end(o.stream, &o.text));
        pour(&o, true);
    }
out:
    memory_set_limit(limit);
    tok_stream_destroy(&o.stream);
    VEC_FINI(&o.text);
    return err;
}
