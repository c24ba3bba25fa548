#include "eval/notes.h"

#include "backend/backend.h"
#include "base/stat.h"
#include "eval/eval_step.h"

enum { NOT_STEADY = -2, WANTED = -1 }; /* else the number of the backend's note */

struct input {
    const struct arr *a;
    const struct buf *buf;
};

struct noted {
    int32_t number;
    uint32_t first, n, n_inner; /* inputs */
};

struct notes {
    struct strm *strm;
    struct be_notes *book;
    struct noted *step;
    size_t n_step;
    VEC(struct input) input;
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
    VEC_FINI(&t->input);
    mem_free(t->step);
    mem_free(t);
}

enum err notes_want(struct notes *t, size_t step, const struct notes_inputs *in)
{
    struct noted s = { WANTED, (uint32_t)t->input.n, (uint32_t)in->n, (uint32_t)in->n_inner };
    enum err err = VEC_RESERVE(&t->input, (size_t)in->n);

    if (err)
        return err;
    for (int i = 0; i < in->n; i++)
        t->input.v[t->input.n++] = (struct input){ in->v[i], in->v[i]->buf };
    t->step[step] = s;
    return ERR_OK;
}

bool notes_has(const struct notes *t, size_t step)
{
    return step < t->n_step && t->step[step].number >= 0;
}

static bool is_as_before(const struct notes *t, const struct noted *s)
{
    const struct input *in = t->input.v + s->first;

    for (uint32_t i = 0; i < s->n_inner; i++)
        if (in[i].a->buf != in[i].buf)
            return false;
    return true;
}

static int32_t end_note(const struct notes *t, const struct noted *s)
{
    const struct buf *constants[NOTES_MAX_IN];
    size_t n = 0;

    for (uint32_t i = s->n_inner; i < s->n; i++)
        if (t->input.v[s->first + i].buf)
            constants[n++] = t->input.v[s->first + i].buf;
    return t->strm->be->notes_end(t->book, t->strm, constants, n);
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
    s->number = end_note(t, s);
    if (err || s->number < 0)
        s->number = NOT_STEADY;
out:
    return err;
}
