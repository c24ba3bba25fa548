#include "lm/session.h"

#include <sys/stat.h>

#include "core/eval.h"
#include "lm/gguf_model.h"

/* ---- opening ---- */

struct loading {
    const struct session_params *p;
    size_t done, total;
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
    if (!err && l->p->on_load)
        l->p->on_load(l->done, l->total, l->p->data);
    return err;
}

/* What a model is made of, wherever it comes from. */
struct parts {
    struct lm_config config;
    struct lm_weights *weights;
};

static enum err open_folder(struct lm_session *s, struct parts *parts,
                            const struct session_params *p)
{
    enum err err;

    TRY(tok_load(&s->tok, p->path));
    TRY(config_load(&parts->config, p->path));
    err = weights_open_folder(&parts->weights, p->path, p->stream);
out:
    return err;
}

static enum err open_file(struct lm_session *s, struct parts *parts, const struct session_params *p)
{
    struct gguf g = { .metadata = { 0 } };
    struct source *src = NULL;
    enum err err;

    TRY(source_open(&src, p->path));
    TRY(gguf_load(&g, src, p->stream));
    TRY(gguf_tokenizer(&s->tok, &g));
    TRY(gguf_config(&parts->config, &g));
    err = weights_from_gguf(&parts->weights, &g, p->path, p->stream);
out:
    source_unref(&src);
    gguf_fini(&g);
    return err;
}

static enum err open_parts(struct lm_session *s, struct parts *parts,
                           const struct session_params *p)
{
    struct stat st;

    if (stat(p->path, &st) != 0)
        return err_set(ERR_ARG, "there is no model %s", p->path);
    return S_ISDIR(st.st_mode) ? open_folder(s, parts, p) : open_file(s, parts, p);
}

static enum err load_model(struct lm_session *s, struct parts *parts,
                           const struct session_params *p)
{
    struct loading loading = { .p = p };
    enum err err;

    TRY(model_new(&s->model, &parts->config, parts->weights));
    weights_destroy(&parts->weights); /* what the model does not use goes before anything is read */
    TRY(model_each_weight(s->model, count_weight, &loading));
    TRY(model_each_weight(s->model, load_weight, &loading));
out:
    return err;
}

enum err session_open(struct lm_session *s, const struct session_params *p)
{
    struct parts parts = { .weights = NULL };
    enum err err;

    *s = (struct lm_session){ .stream = p->stream };
    TRY(open_parts(s, &parts, p));
    TRY(load_model(s, &parts, p));
    TRY(cache_init(&s->cache, s->model->config.layers));
    err = chat_create_for(&s->chat, s->tok);
    if (err == ERR_UNSUPPORTED) /* raw prompts still work */
        err = ERR_OK;
out:
    weights_destroy(&parts.weights);
    config_fini(&parts.config);
    if (err)
        session_close(s);
    return err;
}

void session_close(struct lm_session *s)
{
    cache_fini(&s->cache);
    VEC_FINI(&s->held);
    chat_destroy(&s->chat);
    tok_destroy(&s->tok);
    model_destroy(&s->model);
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
    memmove(o->text.v, o->text.v + n, o->text.n - n);
    o->text.n = stop < o->text.n ? 0 : o->text.n - n;
    return go_on;
}

static bool on_token(int32_t id, void *data)
{
    struct outlet *o = data;

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
                               .prompt = common ? r->prompt->v + common : r->prompt->v,
                               .n_prompt = r->prompt->n - common,
                               .sampling = r->sampling,
                               .chunk = LM_CHUNK,
                               .max_tokens = r->max_tokens,
                               .eos = info->eos_ids.v,
                               .n_eos = info->eos_ids.n,
                               .on_token = on_token,
                               .on_prompt = on_prompt,
                               .data = &o };
    enum err err;

    *stats = (struct lm_stats){ 0 };
    TRY(tok_stream_create(&o.stream, s->tok, true));
    TRY(hold_prompt(s, r->prompt, common));
    TRY(generate(stats, &g));
    TRY(o.err);
    if (stats->finish != LM_FINISH_CALLER) {
        TRY(tok_stream_end(o.stream, &o.text));
        pour(&o, true);
    }
out:
    tok_stream_destroy(&o.stream);
    VEC_FINI(&o.text);
    return err;
}
