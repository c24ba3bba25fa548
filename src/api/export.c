#include "transforms/export.h"
#include "api/fun_handle.h"
#include "mlx/c/ext.h"

/* Who listens to an exporter that writes no file. */
struct listener {
    int (*fun)(void *payload, const mlx_export_event *event);
    void *payload;
};

struct exporter_box {
    struct exporter *exporter;
    struct listener listener;
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

static mlx_function_exporter make_exporter(struct call *c, const struct exporter_params *p)
{
    mlx_function_exporter res = { NULL };

    if (call_ok(c))
        c->err = box_make(&res.ctx, sizeof(struct exporter_box));
    if (call_ok(c))
        c->err = exporter_new(&((struct exporter_box *)res.ctx)->exporter, p);
    if (!call_ok(c)) {
        mem_free(res.ctx);
        res.ctx = NULL;
    }
    CALL_END(c);
    return res;
}

mlx_function_exporter mlx_function_exporter_new(const char *file, const mlx_closure fun,
                                                bool shapeless)
{
    struct call c = CALL(file);
    struct exporter_params p = { .path = file,
                                 .fun = call_fun(&c, fun.ctx, "fun"),
                                 .shapeless = shapeless };

    return make_exporter(&c, &p);
}

mlx_function_exporter mlx_function_exporter_new_kwargs(const char *file,
                                                       const mlx_closure_kwargs fun, bool shapeless,
                                                       const char *metadata)
{
    struct call c = CALL(file);
    struct exporter_params p = { .path = file,
                                 .named = call_fun(&c, fun.ctx, "fun"),
                                 .shapeless = shapeless,
                                 .metadata = metadata };

    return make_exporter(&c, &p);
}

static_assert(MLXFN_INPUTS == (int)MLX_EXPORT_INPUTS &&
                  MLXFN_PRIMITIVE == (int)MLX_EXPORT_PRIMITIVE &&
                  ARG_BOOL == (int)MLX_EXPORT_BOOL && ARG_INTS == (int)MLX_EXPORT_INTS,
              "events have their public numbers");

/* A list for the listener, with references of its own. */
static enum err lend(mlx_vector_array *list, struct arrs a)
{
    for (size_t i = 0; i < a.n; i++)
        arr_ref(a.v[i]);
    return box_set_vec(list, a.v, a.n);
}

static enum err tell(void *data, const struct mlxfn_event *from)
{
    const struct listener *l = data;
    mlx_export_argument args[MLXFN_ARGS];
    mlx_export_event e = { .kind = (mlx_export_kind)from->kind,
                           .name = from->name,
                           .names = from->names,
                           .arguments = args,
                           .arguments_num = from->n_args };
    enum err err;

    for (size_t i = 0; i < from->n_args; i++) {
        const struct mlxfn_arg *a = &from->args[i];
        args[i] = (mlx_export_argument){ .kind = (mlx_export_argument_kind)a->kind,
                                         .number = a->number,
                                         .real = a->real,
                                         .text = a->text,
                                         .ints = a->ints,
                                         .ints_num = a->n };
    }
    TRY(lend(&e.inputs, from->in));
    TRY(lend(&e.outputs, from->out));
    if (l->fun(l->payload, &e))
        err = err_set(ERR_RUNTIME, "[export_function] The listener returned a non-zero value");
out:
    mlx_vector_array_free(e.inputs);
    mlx_vector_array_free(e.outputs);
    return err;
}

mlx_function_exporter mlx_function_exporter_new_listener(
    int (*listener)(void *payload, const mlx_export_event *event), void *payload,
    const mlx_closure_kwargs fun, bool shapeless)
{
    struct call c = CALL_BARE;
    mlx_function_exporter res = { NULL };
    struct exporter_params p = { .named = call_fun(&c, fun.ctx, "fun"), .shapeless = shapeless };

    if (call_ok(&c) && !listener)
        c.err = err_set(ERR_ARG, "[%s] The pointer listener is NULL.", __func__);
    if (call_ok(&c))
        c.err = box_make(&res.ctx, sizeof(struct exporter_box));
    if (call_ok(&c)) {
        struct exporter_box *box = res.ctx;
        box->listener = (struct listener){ listener, payload };
        p.listener = &(struct mlxfn_listener){ tell, &box->listener };
        c.err = exporter_new(&box->exporter, &p);
    }
    if (!call_ok(&c)) {
        mem_free(res.ctx);
        res.ctx = NULL;
    }
    CALL_END(&c);
    return res;
}

mlx_function_exporter mlx_function_exporter_new_metadata(const char *file, const mlx_closure fun,
                                                         bool shapeless, const char *metadata)
{
    struct call c = CALL(file);
    struct exporter_params p = { .path = file,
                                 .fun = call_fun(&c, fun.ctx, "fun"),
                                 .shapeless = shapeless,
                                 .metadata = metadata };

    return make_exporter(&c, &p);
}

int mlx_function_exporter_close(mlx_function_exporter xfunc)
{
    struct call c = CALL_BARE;
    const struct exporter_box *box = call_box(&c, xfunc.ctx, "function exporter", "xfunc");

    if (call_ok(&c))
        exporter_close(box->exporter);
    return CALL_END(&c);
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

int mlx_imported_function_metadata(mlx_string *res, mlx_imported_function xfunc)
{
    struct call c = CALL(res);
    const struct imported_box *box = call_box(&c, xfunc.ctx, "imported function", "xfunc");

    char *text = call_ok(&c) ? mem_strdup(imported_metadata(box->fun)) : NULL;

    if (call_ok(&c))
        c.err = text ? box_set_text(res, text) : ERR_NO_MEMORY;
    return CALL_END(&c);
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
