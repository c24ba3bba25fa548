#include "transforms/compile.h"

#include "base/gate.h"
#include "eval/program.h"
#include "eval/stream.h"
#include "transforms/compile_cache.h"
#include "transforms/simplify.h"

/* ---- the mode ---- */

#define UNSET (-1)
static _Atomic int mode = UNSET;

static enum compile_mode mode_now(void)
{
    int now = atomic_load(&mode);

    if (now != UNSET)
        return (enum compile_mode)now;
    return gate_text(GATE_DISABLE_COMPILE) ? COMPILE_DISABLED : COMPILE_ENABLED;
}

void compile_set_mode(enum compile_mode m)
{
    atomic_store(&mode, (int)m);
}

/* ---- notes ---- */

static _Thread_local uint64_t note_now;

void compile_set_note(uint64_t note)
{
    note_now = note;
}

uint64_t compile_get_note(void)
{
    return note_now;
}

/* ---- a function ---- */

struct compiled {
    struct fun base;
    struct fun *fun; /* owned */
    struct compile_id id;
    bool is_shapeless;
    size_t n_constants;
    uint64_t constant[];
};

static bool has_tracer(struct arrs in)
{
    for (size_t i = 0; i < in.n; i++)
        if (arr_is_tracer(in.v[i]))
            return true;
    return false;
}

/* *out stays NULL if the function reads what another one was given that is being traced: its graph
 * is good for this call only. */
static enum err trace(struct program **out, const struct compiled *f, struct arrs in)
{
    struct traced t, own = { 0 };
    bool has_others;
    enum err err = trace_fun(&t, f->fun, in, TRACE_PLAIN); /* sizes are part of the key */

    if (err)
        return err;
    TRY(simplify_has_others(&has_others, &t));
    if (has_others)
        goto out;
    TRY(simplify(&own, &(struct simplify_params){ .trace = &t,
                                                  .given = in,
                                                  .merges = mode_now() != COMPILE_NO_SIMPLIFY }));
    err = program_new(out,
                      &(struct program_params){
                          .in = own.in.v, .n_in = own.in.n, .out = own.out.v, .n_out = own.out.n });
out:
    traced_fini(&own);
    traced_fini(&t);
    return err;
}

static enum err find(struct compile_entry **out, const struct compiled *f, struct arrs in)
{
    struct compile_key key = { .id = f->id,
                               .is_shapeless = f->is_shapeless,
                               .constants = f->constant,
                               .n_constants = f->n_constants,
                               .in = in };
    struct program *p = NULL;
    enum err err;

    TRY(strm_default(&key.strm, dev_default()));
    TRY(compile_cache_get(out, &key));
    if (*out)
        goto out;
    TRY(trace(&p, f, in));
    if (p)
        err = compile_cache_add(out, &key, p, note_now);
out:
    return err;
}

/* The inputs are lent, where a program takes them over. */
static enum err call_program(const struct program *p, struct arrs in, struct outs *out)
{
    struct outs given = { 0 };
    enum err err;

    TRY(outs_copy(&given, in));
    TRY(outs_init(out, program_n_out(p)));
    err = program_call(p, given.v, out->v);
out:
    if (err)
        outs_fini(out);
    outs_fini(&given);
    return err;
}

static enum err call(struct fun *base, struct arrs in, struct outs *out)
{
    struct compiled *f = (struct compiled *)base;
    struct compile_entry *e = NULL;
    enum err err;

    if (has_tracer(in))
        return f->fun->call(f->fun, in, out);
    TRY(find(&e, f, in));
    err = e ? call_program(e->program, in, out) : f->fun->call(f->fun, in, out);
    if (e)
        note_now = e->note;
    compile_entry_unref(&e);
out:
    return err;
}

static void destroy(void *self)
{
    struct compiled *f = self;

    if (f->id.is_own)
        compile_cache_erase(f->id);
    counted_unref(f->fun);
    mem_free(f);
}

enum err transform_compile(struct fun **out, struct fun *fun, const struct compile_params *q)
{
    static _Atomic uint64_t n_own;
    struct compiled *f;

    if (mode_now() == COMPILE_DISABLED) {
        *out = counted_ref(fun);
        return ERR_OK;
    }
    if (!(f = mem_alloc(sizeof *f + q->n_constants * sizeof *f->constant)))
        return ERR_NO_MEMORY;
    f->base = (struct fun){ .counted = { .destroy = destroy }, .call = call };
    atomic_init(&f->base.counted.rc, 1);
    f->fun = counted_ref(fun);
    f->id = (struct compile_id){ q->is_own ? atomic_fetch_add(&n_own, 1) : q->id, q->is_own };
    f->is_shapeless = q->is_shapeless;
    f->n_constants = q->n_constants;
    for (size_t i = 0; i < q->n_constants; i++)
        f->constant[i] = q->constants[i];
    *out = &f->base;
    return ERR_OK;
}

void compile_erase(uint64_t id)
{
    compile_cache_erase((struct compile_id){ .number = id });
}

void compile_clear(void)
{
    compile_cache_clear();
}
