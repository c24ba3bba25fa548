#include "lm/generate.h"

#include <math.h>

#include "base/clock.h"
#include "base/log.h"
#include "eval/eval.h"
#include "eval/stream.h"
#include "eval/wait.h"

/* Steps between two whose logits the host looks at: each look costs a copy of them. */
#define STEPS_PER_LOOK 16

static double seconds_since(int64_t ns)
{
    return (double)(clock_ns() - ns) * 1e-9;
}

static enum err tokens_of(struct arr **out, const int32_t *ids, size_t n)
{
    return arr_new_data(out, ids, &(struct shp){ .ndim = 2, .d = { 1, (int32_t)n } }, DT_INT32);
}

static enum err check(const struct lm_generation *g)
{
    const struct lm_config *c = &g->model->config;
    int64_t most = c->context - (int64_t)g->cache->used;

    if (g->n_prompt == 0)
        return err_set(ERR_ARG, "the prompt has no tokens");
    if ((int64_t)g->n_prompt > most)
        return err_set(ERR_ARG, "the prompt has %zu tokens, and %lld of the context's %d are free",
                       g->n_prompt, (long long)most, c->context);
    for (size_t i = 0; i < g->n_prompt; i++)
        if (g->prompt[i] < 0 || g->prompt[i] >= c->vocab)
            return err_set(ERR_ARG, "token %d is outside of the model's vocabulary of %d",
                           g->prompt[i], c->vocab);
    return sampling_check(g->sampling);
}

/* ---- the prompt ---- */

/* Hands the work over; the streams bound how much of it is in flight. */
static enum err submit_cache(const struct lm_cache *c)
{
    struct arr **arrays = mem_alloc_array(2 * (size_t)c->n_layers, sizeof *arrays);

    if (!arrays)
        return ERR_NO_MEMORY;
    enum err err = eval_arrays(arrays, cache_arrays(c, arrays), true);
    mem_free(arrays);
    return err;
}

static enum err run_chunk(const struct lm_generation *g, const int32_t *ids, size_t n)
{
    struct lm_graph graph;
    struct arr *tokens = NULL;
    enum err err;

    TRY(tokens_of(&tokens, ids, n));
    graph_begin(&graph, g->stream);
    model_hidden(&graph, g->model, tokens, g->cache);
    TRY(graph_end(&graph)); /* before eval, so that only the cache holds its arrays */
    err = submit_cache(g->cache);
out:
    arr_unref(&tokens);
    return err;
}

/* *done false: the caller had enough. */
static enum err prefill(bool *done, const struct lm_generation *g, size_t n)
{
    enum err err = ERR_OK;

    *done = true;
    for (size_t i = 0; i < n && *done;) {
        size_t step = MIN((size_t)g->chunk, n - i);
        TRY(run_chunk(g, g->prompt + i, step));
        i += step;
        if (g->on_prompt)
            *done = g->on_prompt(i, n, g->data);
    }
out:
    return err;
}

enum err generate_prefill(const struct lm_generation *g, size_t n)
{
    bool done;

    return prefill(&done, g, n);
}

/* ---- tokens ---- */

static struct arr *build_logits(struct lm_graph *graph, const struct lm_generation *g,
                                struct arr *tokens)
{
    if (tokens->ndim == 1)
        tokens = g_reshape(graph, tokens, SHAPE(1, -1));
    struct arr *hidden = model_hidden(graph, g->model, tokens, g->cache);
    if (!graph->err && tokens->shape[1] > 1)
        hidden = g_slice(graph, hidden, 1, tokens->shape[1] - 1, tokens->shape[1]);
    return g_squeeze(graph, model_logits(graph, g->model, hidden), 1);
}

enum err generate_step(struct lm_step *out, const struct lm_generation *g, struct arr *tokens,
                       struct arr *recent)
{
    struct arr *logits = NULL;
    struct lm_graph graph;
    enum err err = ERR_OK;

    if (g->decoder && (err = decoder_step(&logits, g->decoder, tokens)) != ERR_OK)
        return err;
    graph_begin(&graph, g->stream);
    logits = logits ? graph_own(&graph, logits, err) : build_logits(&graph, g, tokens);
    graph_keep(&graph, &out->logits, logits);
    logits = sample_penalised(&graph, g->sampling, logits, recent);
    graph_keep(&graph, &out->token, sample(&graph, g->sampling, logits));
    if (g->on_logprobs)
        graph_keep(&graph, &out->logprobs, sample_logprobs(&graph, logits));
    return graph_end(&graph);
}

static void step_drop(struct lm_step *s)
{
    arr_unref(&s->token);
    arr_unref(&s->logits);
    arr_unref(&s->logprobs);
}

static enum err step_eval(const struct lm_step *s)
{
    struct arr *arrays[] = { s->token, s->logits, s->logprobs };

    return eval_arrays(arrays, s->logprobs ? 3 : 2, true);
}

/* The tokens that a repetition penalty looks at: host side, because they are few and known but for
 * the newest, which is still on its way. */
struct history {
    int32_t *ids;
    size_t n, most;
};

static enum err history_init(struct history *h, const struct lm_generation *g)
{
    *h = (struct history){ 0 };
    if (g->sampling->repetition_penalty == 1 || g->sampling->repetition_context < 1)
        return ERR_OK;
    h->most = (size_t)g->sampling->repetition_context;
    if (!(h->ids = mem_alloc_array(h->most, sizeof *h->ids)))
        return ERR_NO_MEMORY;
    h->n = MIN(h->most, g->n_prompt);
    memcpy(h->ids, g->prompt + g->n_prompt - h->n, h->n * sizeof *h->ids);
    return ERR_OK;
}

static void history_push(struct history *h, int32_t id)
{
    if (!h->most)
        return;
    if (h->n == h->most)
        memmove(h->ids, h->ids + 1, --h->n * sizeof *h->ids);
    h->ids[h->n++] = id;
}

/* The known ones and the newest. */
static enum err history_array(struct arr **out, const struct history *h, struct arr *newest,
                              struct strm *s)
{
    struct arr *known = NULL, *last = NULL;
    enum err err = ERR_OK;

    *out = NULL;
    if (!h->n)
        return ERR_OK;
    TRY(arr_new_data(&known, h->ids, &(struct shp){ .ndim = 1, .d = { (int32_t)h->n } }, DT_INT32));
    if (newest) {
        TRY(ops_astype(&last, newest, DT_INT32, s));
        err = ops_concatenate(out, (struct arrs){ (struct arr *[]){ known, last }, 2 }, 0, s);
    } else {
        *out = arr_ref(known);
    }
out:
    arr_unref(&known);
    arr_unref(&last);
    return err;
}

/* Submits the step after `newest`, or after the last token of the prompt. *step has nothing before,
 * and after an error. */
static enum err submit(struct lm_step *step, const struct lm_generation *g, struct arr *newest,
                       const struct history *h)
{
    struct arr *tokens = newest ? arr_ref(newest) : NULL, *recent = NULL;
    enum err err = ERR_OK;

    if (!tokens)
        TRY(tokens_of(&tokens, g->prompt + g->n_prompt - 1, 1));
    TRY(history_array(&recent, h, newest, g->stream));
    TRY(generate_step(step, g, tokens, recent));
    arr_unref(&tokens); /* the graph alone holds its inputs now */
    arr_unref(&recent);
    err = step_eval(step);
out:
    if (err)
        step_drop(step);
    arr_unref(&tokens);
    arr_unref(&recent);
    return err;
}

static enum err no_numbers(void)
{
    return err_set(ERR_ARG, "the model computes no numbers (logits are NaN or infinite): are its "
                            "weights damaged?");
}

/* What is still on its way is not waited for. */
static enum err check_logits(const struct lm_step *step)
{
    const struct arr *logits = step->logits;
    const void *p;
    enum err err;

    TRY(arr_host(&p, step->logits));
    if (!sample_has_numbers(p, logits->size, (enum dtype)logits->dtype))
        err = no_numbers();
out:
    return err;
}

static enum err read_token(int32_t *id, const struct lm_step *step, int32_t vocab)
{
    const void *p;
    enum err err;

    TRY(arr_host(&p, step->token));
    *id = *(const int32_t *)p;
    if (*id < 0 || *id >= vocab)
        err = err_set(ERR_ARG, "the model chose token %u, outside of its vocabulary of %d",
                      (unsigned)*id, vocab);
out:
    return err;
}

/* logprobs: NULL, or those of the step that chose the token. A NaN among the logits makes all of
 * them NaN. */
static enum err read_logprobs(const float **logprobs, const struct lm_step *step, int32_t id)
{
    const void *p;
    enum err err = ERR_OK;

    *logprobs = NULL;
    if (!step->logprobs)
        return ERR_OK;
    TRY(arr_host(&p, step->logprobs));
    *logprobs = p;
    if (isnan((*logprobs)[id]))
        err = no_numbers();
out:
    return err;
}

static bool is_eos(const struct lm_generation *g, int32_t id)
{
    for (size_t i = 0; i < g->n_eos; i++)
        if (g->eos[i] == id)
            return true;
    return false;
}

/* What the caller and the model say of a token; false ends the generation. logprobs may be NULL. */
static bool give_token(struct lm_stats *st, const struct lm_generation *g, int32_t id,
                       const float *logprobs)
{
    if (is_eos(g, id)) {
        st->finish = LM_FINISH_STOP;
        return false;
    }
    st->tokens++;
    if (logprobs)
        g->on_logprobs(id, logprobs, (size_t)g->model->config.vocab, g->data);
    if (!g->on_token(id, g->data)) {
        st->finish = LM_FINISH_CALLER;
        return false;
    }
    return true;
}

/* Reads the step's result and gives it to the caller; *go_on false ends the generation. */
static enum err give_step(struct lm_stats *st, const struct lm_generation *g,
                          const struct lm_step *step, struct history *h, bool *go_on)
{
    const float *logprobs;
    int32_t id;
    enum err err;

    TRY(read_token(&id, step, g->model->config.vocab));
    TRY(read_logprobs(&logprobs, step, id));
    if (!st->first_ns)
        st->first_ns = clock_ns();
    st->seconds = seconds_since(st->first_ns);
    history_push(h, id);
    *go_on = give_token(st, g, id, logprobs);
out:
    return err;
}

/* Gives tokens to the caller until one ends it. *step is the first one, on its way. */
static enum err give_tokens(struct lm_stats *st, const struct lm_generation *g,
                            struct lm_step *step, struct history *h)
{
    int32_t start = g->cache->used;
    enum err err = ERR_OK;

    for (int32_t n = 0; step->token; n++) {
        struct lm_step next = { 0 };
        bool looks = n % STEPS_PER_LOOK == 0, go_on = true;

        if (n + 1 < g->max_tokens && start + n < g->model->config.context)
            TRY(submit(&next, g, step->token, h));
        err = looks ? check_logits(step) : ERR_OK;
        if (!err)
            err = give_step(st, g, step, h, &go_on);
        if (!err && !looks && !(go_on && next.token))
            err = check_logits(step);
        step_drop(step);
        *step = next;
        TRY(err);
        if (!go_on) {
            cache_trim(g->cache, start + n + (st->finish == LM_FINISH_CALLER));
            break;
        }
    }
out:
    return err;
}

/* After a failure: what the cache holds may never have been computed, and what else is on its way
 * may fail, too. All of it is waited for, so that nobody meets this error again. */
static enum err give_up(const struct lm_generation *g, enum err err)
{
    struct err_note first = { 0 };

    err_note_take(&first, err);
    if (g->decoder)
        decoder_fini(g->decoder);
    cache_reset(g->cache);
    if (strm_synchronize(g->stream) != ERR_OK)
        log_line(LOG_DEBUG, "after a failure: %s", err_text());
    return err_note_raise(&first);
}

enum err generate(struct lm_stats *st, const struct lm_generation *g)
{
    struct history h = { 0 };
    struct lm_step step = { 0 };
    int64_t began = clock_ns();
    bool go_on = true;
    enum err err;

    *st = (struct lm_stats){ .prompt_tokens = g->n_prompt };
    if ((err = check(g)) != ERR_OK)
        return err;
    TRY(history_init(&h, g));
    if (g->on_prompt)
        go_on = g->on_prompt(0, g->n_prompt, g->data);
    if (go_on)
        TRY(prefill(&go_on, g, g->n_prompt - 1));
    if (!go_on) {
        st->finish = LM_FINISH_CALLER;
        goto out;
    }
    TRY(submit(&step, g, NULL, &h));
    TRY(give_tokens(st, g, &step, &h));
    st->prompt_seconds = seconds_since(began) - st->seconds;
out:
    step_drop(&step);
    mem_free(h.ids);
    return err ? give_up(g, err) : ERR_OK;
}
