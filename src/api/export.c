#include "transforms/export.h"
#include "api/fun_handle.h"

struct exporter_box {
    struct exporter *exporter;
};

struct imported_box {
    struct imported *fun;
};

/* ---- exporting ---- */

/* Arguments of a call, the named ones only where there is a map. */
struct arguments {
    const struct list *in;
    struct io_arrays named;
    bool has_named;
};

static void add_named(struct call *c, struct arguments *a, mlx_map_string_to_array kwargs)
{
    call_arrays(c, kwargs, &a->named);
    a->has_named = true;
}

static const struct io_arrays *named_of(const struct arguments *a)
{
    return a->has_named ? &a->named : NULL;
}

static int export_once(struct call *c, const struct exporter_params *p, struct arguments *a)
{
    struct exporter *x = NULL;

    call_ptr(c, p->path, "file");
    if (call_ok(c))
        c->err = exporter_new(&x, p);
    if (call_ok(c))
        c->err = exporter_call(x, list_arrs(a->in), named_of(a));
    exporter_destroy(&x);
    io_arrays_fini(&a->named);
    return CALL_END(c);
}

int mlx_export_function(const char *file, const mlx_closure fun, const mlx_vector_array args,
                        bool shapeless)
{
    struct call c = CALL_BARE;
    struct exporter_params p = { .path = file,
                                 .fun = call_fun(&c, fun.ctx, "fun"),
                                 .shapeless = shapeless };
    struct arguments a = { .in = call_vec(&c, args, "args") };

    return export_once(&c, &p, &a);
}

int mlx_export_function_kwargs(const char *file, const mlx_closure_kwargs fun,
                               const mlx_vector_array args, const mlx_map_string_to_array kwargs,
                               bool shapeless)
{
    struct call c = CALL_BARE;
    struct exporter_params p = { .path = file,
                                 .named = call_fun(&c, fun.ctx, "fun"),
                                 .shapeless = shapeless };
    struct arguments a = { .in = call_vec(&c, args, "args") };

    add_named(&c, &a, kwargs);
    return export_once(&c, &p, &a);
}

static mlx_function_exporter new_exporter(struct call c, const struct exporter_params *p)
{
    mlx_function_exporter res = { NULL };

    if (call_ok(&c))
        c.err = box_make(&res.ctx, sizeof(struct exporter_box));
    if (call_ok(&c))
        c.err = exporter_new(&((struct exporter_box *)res.ctx)->exporter, p);
    if (!call_ok(&c)) {
        mem_free(res.ctx);
        res.ctx = NULL;
    }
    CALL_END(&c);
    return res;
}

mlx_function_exporter mlx_function_exporter_new(const char *file, const mlx_closure fun,
                                                bool shapeless)
{
    struct call c = CALL(file);
    struct exporter_params p = { .path = file,
                                 .fun = call_fun(&c, fun.ctx, "fun"),
                                 .shapeless = shapeless };

    return new_exporter(c, &p);
}

mlx_function_exporter mlx_function_exporter_new_metadata(const char *file, const mlx_closure fun,
                                                         bool shapeless, const char *metadata)
{
    struct call c = CALL(file);
    struct exporter_params p = { .path = file,
                                 .fun = call_fun(&c, fun.ctx, "fun"),
                                 .shapeless = shapeless,
                                 .metadata = metadata };

    return new_exporter(c, &p);
}

int mlx_function_exporter_free(mlx_function_exporter xfunc)
{
    struct exporter_box *box = xfunc.ctx;

    if (box)
        exporter_destroy(&box->exporter);
    mem_free(box);
    return 0;
}

static int add_trace(struct call *c, mlx_function_exporter xfunc, struct arguments *a)
{
    const struct exporter_box *box = call_box(c, xfunc.ctx, "function exporter", "xfunc");

    if (call_ok(c))
        c->err = exporter_call(box->exporter, list_arrs(a->in), named_of(a));
    io_arrays_fini(&a->named);
    return CALL_END(c);
}

int mlx_function_exporter_apply(const mlx_function_exporter xfunc, const mlx_vector_array args)
{
    struct call c = CALL_BARE;
    struct arguments a = { .in = call_vec(&c, args, "args") };

    return add_trace(&c, xfunc, &a);
}

int mlx_function_exporter_apply_kwargs(const mlx_function_exporter xfunc,
                                       const mlx_vector_array args,
                                       const mlx_map_string_to_array kwargs)
{
    struct call c = CALL_BARE;
    struct arguments a = { .in = call_vec(&c, args, "args") };

    add_named(&c, &a, kwargs);
    return add_trace(&c, xfunc, &a);
}

/* ---- importing ---- */

mlx_imported_function mlx_imported_function_new(const char *file)
{
    struct call c = CALL(file);
    mlx_imported_function res = { NULL };

    if (call_ok(&c))
        c.err = box_make(&res.ctx, sizeof(struct imported_box));
    if (call_ok(&c))
        c.err = imported_new(&((struct imported_box *)res.ctx)->fun, file);
    if (!call_ok(&c)) {
        mem_free(res.ctx);
        res.ctx = NULL;
    }
    CALL_END(&c);
    return res;
}

int mlx_imported_function_free(mlx_imported_function xfunc)
{
    struct imported_box *box = xfunc.ctx;

    if (box)
        imported_destroy(&box->fun);
    mem_free(box);
    return 0;
}

static int apply_imported(struct call *c, mlx_vector_array *res, mlx_imported_function xfunc,
                          struct arguments *a)
{
    const struct imported_box *box = call_box(c, xfunc.ctx, "imported function", "xfunc");
    struct outs out = { 0 };

    if (call_ok(c))
        c->err = imported_call(box->fun, list_arrs(a->in), named_of(a), &out);
    if (call_ok(c))
        c->err = box_set_outs(res, &out);
    io_arrays_fini(&a->named);
    return CALL_END(c);
}

int mlx_imported_function_apply(mlx_vector_array *res, const mlx_imported_function xfunc,
                                const mlx_vector_array args)
{
    struct call c = CALL(res);
    struct arguments a = { .in = call_vec(&c, args, "args") };

    return apply_imported(&c, res, xfunc, &a);
}

int mlx_imported_function_apply_kwargs(mlx_vector_array *res, const mlx_imported_function xfunc,
                                       const mlx_vector_array args,
                                       const mlx_map_string_to_array kwargs)
{
    struct call c = CALL(res);
    struct arguments a = { .in = call_vec(&c, args, "args") };

    add_named(&c, &a, kwargs);
    return apply_imported(&c, res, xfunc, &a);
}
