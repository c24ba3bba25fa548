#include "core/notes.h"

#include "backend/backend.h"
#include "core/eval_step.h"
#include "core/stat.h"

enum { NOT_STEADY = -2, WANTED = -1 }; /* else the number of the backend's note */

struct watched {
    const struct arr *a;
    const struct buf *buf;
};

struct noted {
    int32_t number;
    uint32_t first, n; /* of watched */
};

struct notes {
    struct strm *strm;
    struct be_notes *book;
    struct noted *step;
    size_t n_step;
    VEC(struct watched) watched;
};

enum err notes_new(struct notes **out, const struct plan *p, struct strm *s)
{
    struct notes *t = mem_alloc(sizeof *t);
    enum err err = ERR_NO_MEMORY;

    if (!t || !(t->step = mem_alloc_array(p->n_step, sizeof *t->step)))
        goto out;
    t->strm = s;
    t->n_step = p->n_step;
    for (size_t i = 0; i < t->n_step; i++)
        t->step[i].number = NOT_STEADY;
    TRY(s->be->notes_new(&t->book));
    *out = t;
    t = NULL;
out:
    notes_destroy(&t);
    return err;
}

void notes_destroy(struct notes **pt)
{
    struct notes *t = *pt;

    *pt = NULL;
    if (!t)
        return;
    if (t->book)
        t->strm->be->notes_free(&t->book, t->strm);
    VEC_FINI(&t->watched);
    mem_free(t->step);
    mem_free(t);
}

enum err notes_want(struct notes *t, size_t step, struct arr *const *in, int n)
{
    struct noted s = { WANTED, (uint32_t)t->watched.n, (uint32_t)n };
    enum err err = VEC_RESERVE(&t->watched, (size_t)n);

    if (err)
        return err;
    for (int i = 0; i < n; i++)
        t->watched.v[t->watched.n++] = (struct watched){ in[i], in[i]->buf };
    t->step[step] = s;
    return ERR_OK;
}

bool notes_has(const struct notes *t, size_t step)
{
    return step < t->n_step && t->step[step].number >= 0;
}

static bool is_as_before(const struct notes *t, const struct noted *s)
{
    const struct watched *w = t->watched.v + s->first;

    for (uint32_t i = 0; i < s->n; i++)
        if (w[i].a->buf != w[i].buf)
            return false;
    return true;
}

enum err notes_run_step(struct notes *t, struct open_stream *os, size_t step,
                        struct node *const *nodes)
{
    const struct be *be = t->strm->be;
    struct noted *s = &t->step[step];
    enum err err = ERR_OK;

    if (s->number != NOT_STEADY && !is_as_before(t, s))
        s->number = NOT_STEADY;
    if (s->number >= 0) {
        stat_add(STAT_REPEATED_STEPS, 1);
        TRY(be->notes_repeat(t->book, t->strm, s->number));
        return be->step_end(t->strm);
    }
    if (s->number == NOT_STEADY)
        return eval_step(os, &os->plan->step[step], nodes);
    TRY(be->notes_begin(t->book, t->strm));
    err = eval_step(os, &os->plan->step[step], nodes);
    s->number = be->notes_end(t->book, t->strm);
    if (err || s->number < 0)
        s->number = NOT_STEADY;
out:
    return err;
}
