/* Functions of callers as those of transformations, and the other way round. */
#include "api/fun_handle.h"

/* ---- boxes ---- */

void *call_fun(struct call *c, const void *ctx, const char *name)
{
    const struct fun_box *box = call_box(c, ctx, "closure", name);

    return box ? box->fun : NULL;
}

void *call_fun_opt(struct call *c, const void *ctx)
{
    return call_ok(c) && ctx ? ((const struct fun_box *)ctx)->fun : NULL;
}

enum err box_set_fun(void **ctx, void *fun)
{
    enum err err = box_make(ctx, sizeof(struct fun_box));
    struct fun_box *box = *ctx;

    if (err) {
        counted_unref(fun);
        return err;
    }
    struct counted *old = box->fun;
    box->fun = fun;
    counted_unref(old);
    return ERR_OK;
}

static int fun_free(void *ctx)
{
    struct fun_box *box = ctx;

    if (box)
        counted_unref(box->fun);
    mem_free(box);
    return 0;
}

enum err box_set_outs(mlx_vector_array *res, struct outs *o)
{
    enum err err = box_set_vec(res, o->v, o->n);

    mem_free(o->v);
    *o = (struct outs){ 0 };
    return err;
}

enum err box_set_outs_pair(mlx_vector_array *res_0, mlx_vector_array *res_1, struct outs *first,
                           struct outs *second)
{
    enum err err = box_set_outs(res_0, first);

    if (err)
        outs_fini(second);
    return err ? err : box_set_outs(res_1, second);
}

/* ---- functions of callers ---- */

/* One of any kind. */
struct user {
    union {
        struct counted counted;
        struct fun plain;
        struct fun_named named;
        struct fun_grad grad;
        struct fun_vjp vjp;
        struct fun_jvp jvp;
        struct fun_vmap vmap;
    } as;
    void (*fun)(void); /* its type is the kind's */
    bool has_payload;  /* which comes last then */
    void *payload;
    void (*dtor)(void *); /* may be NULL */
};

static void user_destroy(void *self)
{
    struct user *u = self;

    if (u->dtor)
        u->dtor(u->payload);
    mem_free(u);
}

/* The new closure's ctx, or NULL after a failure, when the payload stays the caller's. */
static void *user_new(const char *fn, const struct user *like)
{
    struct call c = { .fn = fn };
    struct user *u = NULL;
    void *ctx = NULL;

    if (!like->fun)
        c.err = err_set(ERR_ARG, "[%s] The pointer fun is NULL.", fn);
    else if (!(u = mem_alloc(sizeof *u)) || box_make(&ctx, sizeof(struct fun_box)) != ERR_OK)
        c.err = ERR_NO_MEMORY;
    if (call_ok(&c)) {
        *u = *like;
        atomic_init(&u->as.counted.rc, 1);
        u->as.counted.destroy = user_destroy;
        ((struct fun_box *)ctx)->fun = &u->as.counted;
    } else {
        mem_free(u);
    }
    CALL_END(&c);
    return ctx;
}

/* Calls a user's function: the types of its parameters, then the arguments, both in brackets. */
#define TYPES(...) __VA_ARGS__
#define ASK(u, types, ...)                                                                         \
    ((u)->has_payload ? ((int (*)(types, void *))(u)->fun)(__VA_ARGS__, (u)->payload)              \
                      : ((int (*)(types))(u)->fun)(__VA_ARGS__))

/* A list for the callback, with references of its own. */
static enum err lend(mlx_vector_array *list, struct arrs a)
{
    for (size_t i = 0; i < a.n; i++)
        arr_ref(a.v[i]);
    return box_set_vec(list, a.v, a.n);
}

static enum err check_status(int status, const char *kind)
{
    return status ? err_set(ERR_RUNTIME, "%s returned a non-zero value", kind) : ERR_OK;
}

/* What the callback left in its result, whose handle may be empty. */
static enum err take(struct outs *out, mlx_vector_array res)
{
    return outs_copy(out, res.ctx ? list_arrs(res.ctx) : (struct arrs){ NULL, 0 });
}

static enum err call_plain(struct fun *f, struct arrs in, struct outs *out)
{
    struct user *u = (struct user *)f;
    mlx_vector_array res = { NULL }, input = { NULL };
    enum err err;

    TRY(lend(&input, in));
    TRY(check_status(ASK(u, TYPES(mlx_vector_array *, const mlx_vector_array), &res, input),
                     "mlx_closure"));
    err = take(out, res);
out:
    mlx_vector_array_free(input);
    mlx_vector_array_free(res);
    return err;
}

static enum err call_unary(struct fun *f, struct arrs in, struct outs *out)
{
    struct user *u = (struct user *)f;
    mlx_array res = { NULL }, input = { NULL };
    enum err err;

    if (in.n != 1)
        return err_set(ERR_RUNTIME, "[mlx_closure] Expected one input, got %zu.", in.n);
    TRY(box_set_arr(&input, arr_ref(in.v[0])));
    TRY(check_status(((int (*)(mlx_array *, const mlx_array))u->fun)(&res, input), "mlx_closure"));
    if (!res.ctx)
        err = err_set(ERR_RUNTIME, "mlx_closure returned no array");
    else
        err = outs_copy(out, (struct arrs){ &((struct arr_box *)res.ctx)->arr, 1 });
out:
    mlx_array_free(input);
    mlx_array_free(res);
    return err;
}

static enum err call_named(struct fun_named *f, struct arrs in, const struct io_arrays *named,
                           struct outs *out)
{
    struct user *u = (struct user *)f;
    mlx_vector_array res = { NULL }, input = { NULL };
    mlx_map_string_to_array map = { NULL };
    enum err err;

    TRY(lend(&input, in));
    TRY(box_set_tables(&map, NULL, named, NULL));
    TRY(check_status(
        ASK(u, TYPES(mlx_vector_array *, const mlx_vector_array, const mlx_map_string_to_array),
            &res, input, map),
        "mlx_closure_kwargs"));
    err = take(out, res);
out:
    mlx_vector_array_free(input);
    mlx_map_string_to_array_free(map);
    mlx_vector_array_free(res);
    return err;
}

static enum err call_grad(struct fun_grad *f, struct arrs in, struct outs *values,
                          struct outs *grads)
{
    struct user *u = (struct user *)f;
    mlx_vector_array res_0 = { NULL }, res_1 = { NULL }, input = { NULL };
    enum err err;

    TRY(lend(&input, in));
    TRY(check_status(ASK(u, TYPES(mlx_vector_array *, mlx_vector_array *, const mlx_vector_array),
                         &res_0, &res_1, input),
                     "mlx_closure_value_and_grad"));
    TRY(take(values, res_0));
    err = take(grads, res_1);
    if (err)
        outs_fini(values);
out:
    mlx_vector_array_free(input);
    mlx_vector_array_free(res_0);
    mlx_vector_array_free(res_1);
    return err;
}

static enum err call_vjp(struct fun_vjp *f, struct arrs primals, struct arrs cotans,
                         struct arrs outs, struct outs *grads)
{
    struct user *u = (struct user *)f;
    mlx_vector_array res = { NULL }, input[3] = { { NULL }, { NULL }, { NULL } };
    const struct arrs from[] = { primals, cotans, outs };
    enum err err = ERR_OK;

    for (int i = 0; i < 3; i++)
        TRY(lend(&input[i], from[i]));
    TRY(check_status(ASK(u,
                         TYPES(mlx_vector_array *, const mlx_vector_array, const mlx_vector_array,
                               const mlx_vector_array),
                         &res, input[0], input[1], input[2]),
                     "mlx_closure_custom"));
    err = take(grads, res);
out:
    for (int i = 0; i < 3; i++)
        mlx_vector_array_free(input[i]);
    mlx_vector_array_free(res);
    return err;
}

static enum err call_jvp(struct fun_jvp *f, struct arrs primals, struct arrs tangents,
                         struct ints argnums, struct outs *out)
{
    struct user *u = (struct user *)f;
    mlx_vector_array res = { NULL }, input[2] = { { NULL }, { NULL } };
    enum err err;

    TRY(lend(&input[0], primals));
    TRY(lend(&input[1], tangents));
    TRY(check_status(ASK(u,
                         TYPES(mlx_vector_array *, const mlx_vector_array, const mlx_vector_array,
                               const int *, size_t),
                         &res, input[0], input[1], argnums.v, argnums.n),
                     "mlx_closure_custom_jvp"));
    err = take(out, res);
out:
    mlx_vector_array_free(input[0]);
    mlx_vector_array_free(input[1]);
    mlx_vector_array_free(res);
    return err;
}

/* The axes of n results. */
static enum err take_axes(int32_t **axes, mlx_vector_int from, size_t n)
{
    const struct list *list = from.ctx;

    if ((list ? list->n : 0) != n)
        return err_set(ERR_RUNTIME, "mlx_closure_custom_vmap returned %zu axes for %zu arrays",
                       list ? list->n : 0, n);
    if (!(*axes = mem_alloc_array(n, sizeof **axes)))
        return ERR_NO_MEMORY;
    if (n)
        memcpy(*axes, list->v, n * sizeof **axes);
    return ERR_OK;
}

static enum err call_vmap(struct fun_vmap *f, struct arrs in, struct ints axes, struct outs *out,
                          int32_t **out_axes)
{
    struct user *u = (struct user *)f;
    mlx_vector_array res_0 = { NULL }, input = { NULL };
    mlx_vector_int res_1 = { NULL };
    enum err err;

    TRY(lend(&input, in));
    TRY(check_status(ASK(u,
                         TYPES(mlx_vector_array *, mlx_vector_int *, const mlx_vector_array,
                               const int *, size_t),
                         &res_0, &res_1, input, axes.v, axes.n),
                     "mlx_closure_custom_vmap"));
    TRY(take(out, res_0));
    err = take_axes(out_axes, res_1, out->n);
    if (err)
        outs_fini(out);
out:
    mlx_vector_array_free(input);
    mlx_vector_array_free(res_0);
    mlx_vector_int_free(res_1);
    return err;
}

/* ---- what all closures have ---- */

#define CLOSURE(handle, kind, call_fn, ...)                                                        \
    handle handle##_new(void)                                                                      \
    {                                                                                              \
        return (handle){ NULL };                                                                   \
    }                                                                                              \
    int handle##_free(handle cls)                                                                  \
    {                                                                                              \
        return fun_free(cls.ctx);                                                                  \
    }                                                                                              \
    handle handle##_new_func(int (*fun)(__VA_ARGS__))                                              \
    {                                                                                              \
        return (handle){ user_new(                                                                 \
            __func__, &(struct user){ .as.kind.call = (call_fn), .fun = (void (*)(void))fun }) };  \
    }                                                                                              \
    handle handle##_new_func_payload(int (*fun)(__VA_ARGS__, void *), void *payload,               \
                                     void (*dtor)(void *))                                         \
    {                                                                                              \
        return (handle){ user_new(__func__, &(struct user){ .as.kind.call = (call_fn),             \
                                                            .fun = (void (*)(void))fun,            \
                                                            .has_payload = true,                   \
                                                            .payload = payload,                    \
                                                            .dtor = dtor }) };                     \
    }                                                                                              \
    int handle##_set(handle *cls, const handle src)                                                \
    {                                                                                              \
        struct call c = CALL(cls);                                                                 \
        void *fun = call_fun(&c, src.ctx, "src");                                                  \
        if (call_ok(&c))                                                                           \
            c.err = box_set_fun(&cls->ctx, counted_ref(fun));                                      \
        return CALL_END(&c);                                                                       \
    }

CLOSURE(mlx_closure, plain, call_plain, mlx_vector_array *, const mlx_vector_array)
CLOSURE(mlx_closure_kwargs, named, call_named, mlx_vector_array *, const mlx_vector_array,
        const mlx_map_string_to_array)
CLOSURE(mlx_closure_value_and_grad, grad, call_grad, mlx_vector_array *, mlx_vector_array *,
        const mlx_vector_array)
CLOSURE(mlx_closure_custom, vjp, call_vjp, mlx_vector_array *, const mlx_vector_array,
        const mlx_vector_array, const mlx_vector_array)
CLOSURE(mlx_closure_custom_jvp, jvp, call_jvp, mlx_vector_array *, const mlx_vector_array,
        const mlx_vector_array, const int *, size_t)
CLOSURE(mlx_closure_custom_vmap, vmap, call_vmap, mlx_vector_array *, mlx_vector_int *,
        const mlx_vector_array, const int *, size_t)

mlx_closure mlx_closure_new_unary(int (*fun)(mlx_array *, const mlx_array))
{
    return (mlx_closure){ user_new(
        __func__, &(struct user){ .as.plain.call = call_unary, .fun = (void (*)(void))fun }) };
}

/* ---- calling them ---- */

int mlx_closure_apply(mlx_vector_array *res, mlx_closure cls, const mlx_vector_array input)
{
    struct call c = CALL(res);
    struct fun *f = call_fun(&c, cls.ctx, "cls");
    const struct list *in = call_vec(&c, input, "input");
    struct outs out = { 0 };

    if (call_ok(&c))
        c.err = f->call(f, list_arrs(in), &out);
    if (call_ok(&c))
        c.err = box_set_outs(res, &out);
    return CALL_END(&c);
}

int mlx_closure_kwargs_apply(mlx_vector_array *res, mlx_closure_kwargs cls,
                             const mlx_vector_array input_0, const mlx_map_string_to_array input_1)
{
    struct call c = CALL(res);
    struct fun_named *f = call_fun(&c, cls.ctx, "cls");
    const struct list *in = call_vec(&c, input_0, "input_0");
    struct io_arrays named = { 0 };
    struct outs out = { 0 };

    call_arrays(&c, input_1, &named);
    if (call_ok(&c))
        c.err = f->call(f, list_arrs(in), &named, &out);
    if (call_ok(&c))
        c.err = box_set_outs(res, &out);
    io_arrays_fini(&named);
    return CALL_END(&c);
}

int mlx_closure_value_and_grad_apply(mlx_vector_array *res_0, mlx_vector_array *res_1,
                                     mlx_closure_value_and_grad cls, const mlx_vector_array input)
{
    struct call c = CALL(res_0);
    struct fun_grad *f = call_fun(&c, cls.ctx, "cls");
    const struct list *in = call_vec(&c, input, "input");
    struct outs values = { 0 }, grads = { 0 };

    call_ptr(&c, res_1, "res_1");
    if (call_ok(&c))
        c.err = f->call(f, list_arrs(in), &values, &grads);
    if (call_ok(&c))
        c.err = box_set_outs_pair(res_0, res_1, &values, &grads);
    return CALL_END(&c);
}

int mlx_closure_custom_apply(mlx_vector_array *res, mlx_closure_custom cls,
                             const mlx_vector_array input_0, const mlx_vector_array input_1,
                             const mlx_vector_array input_2)
{
    struct call c = CALL(res);
    struct fun_vjp *f = call_fun(&c, cls.ctx, "cls");
    const struct list *primals = call_vec(&c, input_0, "input_0");
    const struct list *cotans = call_vec(&c, input_1, "input_1");
    const struct list *outputs = call_vec(&c, input_2, "input_2");
    struct outs out = { 0 };

    if (call_ok(&c))
        c.err = f->call(f, list_arrs(primals), list_arrs(cotans), list_arrs(outputs), &out);
    if (call_ok(&c))
        c.err = box_set_outs(res, &out);
    return CALL_END(&c);
}

int mlx_closure_custom_jvp_apply(mlx_vector_array *res, mlx_closure_custom_jvp cls,
                                 const mlx_vector_array input_0, const mlx_vector_array input_1,
                                 const int *input_2, size_t input_2_num)
{
    struct call c = CALL(res);
    struct fun_jvp *f = call_fun(&c, cls.ctx, "cls");
    const struct list *primals = call_vec(&c, input_0, "input_0");
    const struct list *tangents = call_vec(&c, input_1, "input_1");
    struct ints argnums = call_ints(&c, input_2, input_2_num, "input_2");
    struct outs out = { 0 };

    if (call_ok(&c))
        c.err = f->call(f, list_arrs(primals), list_arrs(tangents), argnums, &out);
    if (call_ok(&c))
        c.err = box_set_outs(res, &out);
    return CALL_END(&c);
}

int mlx_closure_custom_vmap_apply(mlx_vector_array *res_0, mlx_vector_int *res_1,
                                  mlx_closure_custom_vmap cls, const mlx_vector_array input_0,
                                  const int *input_1, size_t input_1_num)
{
    struct call c = CALL(res_0);
    struct fun_vmap *f = call_fun(&c, cls.ctx, "cls");
    const struct list *in = call_vec(&c, input_0, "input_0");
    struct ints axes = call_ints(&c, input_1, input_1_num, "input_1");
    struct outs out = { 0 };
    int32_t *out_axes = NULL;

    call_ptr(&c, res_1, "res_1");
    if (call_ok(&c))
        c.err = f->call(f, list_arrs(in), axes, &out, &out_axes);
    if (call_ok(&c))
        c.err = box_set_ints(res_1, out_axes, out.n);
    if (call_ok(&c))
        c.err = box_set_outs(res_0, &out);
    outs_fini(&out);
    mem_free(out_axes);
    return CALL_END(&c);
}
