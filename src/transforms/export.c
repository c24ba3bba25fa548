/* Functions into files. */
#include "transforms/export.h"
#include "graph/tracing.h"
#include "io/mlxfn.h"
#include "transforms/signature.h"
#include "transforms/trace.h"

/* A signature that was written. */
struct entry {
    struct out_desc *in; /* owned, as all of it */
    size_t n;
    char **names;
    size_t n_names;
};

struct exporter {
    struct mlxfn_writer *file;
    struct mlxfn_listener listener; /* where there is no file */
    struct fun *fun;                /* one of both; owned */
    struct fun_named *named;
    bool shapeless;
    VEC(struct entry) entries;
};

/* ---- signatures ---- */

static void entry_fini(struct entry *e)
{
    for (size_t i = 0; i < e->n_names; i++)
        mem_free(e->names[i]);
    mem_free(e->names);
    mem_free(e->in);
}

static enum err entry_init(struct entry *e, const struct call_inputs *c)
{
    size_t n_named = call_named(c), n = c->in.n + n_named;

    *e = (struct entry){ .in = mem_alloc_array(n + 1, sizeof *e->in),
                         .n = n,
                         .names = mem_alloc_array(n_named + 1, sizeof *e->names) };
    if (!e->in || !e->names)
        goto no_memory;
    for (size_t i = 0; i < n; i++) {
        arr_shape(&e->in[i].shape, call_input(c, i));
        e->in[i].dtype = (enum dtype)call_input(c, i)->dtype;
    }
    for (; e->n_names < n_named; e->n_names++)
        if (!(e->names[e->n_names] = mem_strdup(c->named->list.v[e->n_names].name)))
            goto no_memory;
    return ERR_OK;
no_memory:
    entry_fini(e);
    return ERR_NO_MEMORY;
}

static enum err check_new(const struct exporter *x, const struct call_inputs *c)
{
    for (size_t i = 0; i < x->entries.n; i++) {
        const struct entry *e = &x->entries.v[i];
        struct signature s = { e->in, e->n, (const char *const *)e->names, e->n_names };
        if (signature_fits(&s, c, x->shapeless))
            return err_set(ERR_RUNTIME, "[export_function] Attempting to export a function twice "
                                        "with the same signature is not allowed.");
    }
    return ERR_OK;
}

/* ---- tracing ---- */

/* The function on all inputs in a row. */
struct flat {
    struct fun fun;
    const struct exporter *x;
    const struct call_inputs *like;
};

static enum err call_with_names(const struct flat *f, struct arrs in, struct outs *out)
{
    const struct call_inputs *like = f->like;
    struct io_arrays named = { .list = { 0 } };
    enum err err = ERR_OK;

    for (size_t i = 0; i < call_named(like); i++)
        TRY(io_arrays_add(&named, like->named->list.v[i].name, arr_ref(in.v[like->in.n + i])));
    err = f->x->named->call(f->x->named, (struct arrs){ in.v, like->in.n }, &named, out);
out:
    io_arrays_fini(&named);
    return err;
}

static enum err call_flat(struct fun *fun, struct arrs in, struct outs *out)
{
    const struct flat *f = (const struct flat *)fun;

    if (f->x->named)
        return call_with_names(f, in, out);
    return f->x->fun->call(f->x->fun, (struct arrs){ in.v, f->like->in.n }, out);
}

static enum err write_trace(const struct exporter *x, struct arrs all, const struct entry *e,
                            const struct call_inputs *c)
{
    struct flat f = { .fun = { .call = call_flat }, .x = x, .like = c };
    struct traced t = { 0 };
    enum err err;

    TRY(trace_fun(&t, &f.fun, all, x->shapeless ? TRACE_DYNAMIC : TRACE_PLAIN));
    struct mlxfn_graph g = { .in = outs_arrs(&t.in),
                             .out = outs_arrs(&t.out),
                             .captured = all,
                             .names = (const char *const *)e->names,
                             .n_names = e->n_names };
    err = x->file ? mlxfn_write(x->file, &g) : mlxfn_tell(&x->listener, &g);
out:
    traced_fini(&t);
    return err;
}

enum err exporter_call(struct exporter *x, struct arrs in, const struct io_arrays *named)
{
    struct call_inputs c = { in, named };
    struct arr **all = NULL;
    struct entry e = { 0 };
    enum err err;

    TRY(check_new(x, &c));
    TRY(VEC_RESERVE(&x->entries, 1));
    TRY(entry_init(&e, &c));
    err = ERR_NO_MEMORY;
    if (!(all = mem_alloc_array(e.n + 1, sizeof *all)))
        goto out;
    for (size_t i = 0; i < e.n; i++)
        all[i] = call_input(&c, i);
    TRY(write_trace(x, (struct arrs){ all, e.n }, &e, &c));
    x->entries.v[x->entries.n++] = e;
out:
    if (err)
        entry_fini(&e);
    mem_free(all);
    return err;
}

/* ---- exporters ---- */

enum err exporter_new(struct exporter **out, const struct exporter_params *p)
{
    struct exporter *x = mem_alloc(sizeof *x);
    enum err err = ERR_NO_MEMORY;

    if (!x)
        return err;
    x->fun = counted_ref(p->fun);
    x->named = counted_ref(p->named);
    x->shapeless = p->shapeless;
    if (p->listener)
        x->listener = *p->listener;
    else
        TRY(mlxfn_writer_new(&x->file, p->path,
                             &(struct mlxfn_header){ p->shapeless, p->metadata }));
    err = ERR_OK;
    *out = x;
    x = NULL;
out:
    exporter_destroy(&x);
    return err;
}

void exporter_close(struct exporter *x)
{
    if (x->file)
        mlxfn_writer_close(x->file);
}

void exporter_destroy(struct exporter **px)
{
    struct exporter *x = *px;

    *px = NULL;
    if (!x)
        return;
    mlxfn_writer_destroy(&x->file);
    counted_unref(x->fun);
    counted_unref(x->named);
    for (size_t i = 0; i < x->entries.n; i++)
        entry_fini(&x->entries.v[i]);
    VEC_FINI(&x->entries);
    mem_free(x);
}
