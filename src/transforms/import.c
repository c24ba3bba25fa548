/* Functions of files. */
#include "io/mlxfn.h"
#include "transforms/export.h"
#include "transforms/signature.h"

struct imported {
    struct mlxfn *file;
};

enum err imported_read(struct imported **out, struct source *src)
{
    struct imported *f = mem_alloc(sizeof *f);
    enum err err = f ? mlxfn_read(&f->file, src) : ERR_NO_MEMORY;

    if (err)
        mem_free(f);
    else
        *out = f;
    return err;
}

enum err imported_new(struct imported **out, const char *path)
{
    struct source *src = NULL;
    enum err err;

    if (source_open(&src, path) != ERR_OK)
        return err_set(ERR_RUNTIME, "[import_function] Failed to open %s", path);
    err = imported_read(out, src);
    source_unref(&src);
    return err;
}

const char *imported_metadata(const struct imported *f)
{
    return f->file->metadata;
}

void imported_destroy(struct imported **pf)
{
    struct imported *f = *pf;

    *pf = NULL;
    if (f)
        mlxfn_destroy(&f->file);
    mem_free(f);
}

static struct signature signature_of(const struct mlxfn_trace *t)
{
    return (struct signature){ t->in.v, t->in.n, (const char *const *)t->names.v, t->names.n };
}

static enum err no_such(const struct imported *f, const struct call_inputs *c)
{
    struct text t = { 0 };
    enum err err;

    TRY(text_add(&t, "[import_function::call] No imported function found which matches the given "
                     "positional and keyword arguments. Possible functions include:\n"));
    for (size_t i = 0; i < f->file->trace.n; i++) {
        struct signature s = signature_of(&f->file->trace.v[i]);
        TRY(signature_print(&t, &s, i + 1));
    }
    TRY(call_print(&t, c));
    err = err_set(ERR_ARG, "%s", t.s.v);
out:
    VEC_FINI(&t.s);
    return err;
}

static const struct mlxfn_trace *find(const struct imported *f, const struct call_inputs *c)
{
    for (size_t i = 0; i < f->file->trace.n; i++) {
        struct signature s = signature_of(&f->file->trace.v[i]);
        if (signature_fits(&s, c, f->file->shapeless))
            return &f->file->trace.v[i];
    }
    return NULL;
}

enum err imported_call(const struct imported *f, struct arrs in, const struct io_arrays *named,
                       struct outs *out)
{
    struct call_inputs c = { in, named };
    const struct mlxfn_trace *t = find(f, &c);
    struct arr **all = NULL;
    enum err err = ERR_OK;

    if (!t)
        return no_such(f, &c);
    if (t->in.n && !(all = mem_alloc_array(t->in.n, sizeof *all)))
        return ERR_NO_MEMORY;
    for (size_t i = 0; i < t->in.n; i++)
        all[i] = call_input(&c, i);
    TRY(outs_init(out, t->out.n));
    err = mlxfn_apply(out->v, f->file, t, (struct arrs){ all, t->in.n });
out:
    if (err)
        outs_fini(out);
    mem_free(all);
    return err;
}
