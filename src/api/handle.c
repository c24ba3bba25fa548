#include "api/handle.h"

/* ---- calls ---- */

struct call call_begin(const char *fn, const void *res)
{
    struct call c = { .fn = fn };

    if (!res)
        c.err = err_set(ERR_ARG, "[%s] The pointer to the result is NULL.", fn);
    return c;
}

struct call call_begin_default(const char *fn, const void *res)
{
    struct call c = call_begin(fn, res);

    if (call_ok(&c))
        c.err = strm_default(&c.strm, dev_default());
    return c;
}

void *call_box(struct call *c, const void *ctx, const char *kind, const char *name)
{
    if (!ctx && call_ok(c))
        c->err = err_set(ERR_ARG, "[%s] Empty %s handle %s.", c->fn, kind, name);
    return call_ok(c) ? (void *)ctx : NULL;
}

struct arr *call_arr_opt(struct call *c, mlx_array a)
{
    return call_ok(c) && a.ctx ? ((struct arr_box *)a.ctx)->arr : NULL;
}

const struct list *call_vec(struct call *c, mlx_vector_array v, const char *name)
{
    return call_box(c, v.ctx, "vector", name);
}

struct dev call_dev(struct call *c, mlx_device dev, const char *name)
{
    const struct dev_box *box = call_box(c, dev.ctx, "device", name);

    return box ? box->dev : (struct dev){ DEV_CPU, 0 };
}

enum dtype call_dtype(struct call *c, mlx_dtype t)
{
    if (call_ok(c) && (unsigned)t >= DT_COUNT)
        c->err = err_set(ERR_ARG, "[%s] %d is no dtype.", c->fn, (int)t);
    return call_ok(c) ? (enum dtype)t : DT_BOOL;
}

const void *call_ptr(struct call *c, const void *p, const char *name)
{
    if (!p && call_ok(c))
        c->err = err_set(ERR_ARG, "[%s] The pointer %s is NULL.", c->fn, name);
    return p;
}

struct ints call_ints(struct call *c, const int *v, size_t n, const char *name)
{
    if (n)
        call_ptr(c, v, name);
    if (n > INT32_MAX && call_ok(c))
        c->err = err_set(ERR_ARG, "[%s] The list %s has %zu entries.", c->fn, name, n);
    return call_ok(c) ? (struct ints){ v, n } : (struct ints){ NULL, 0 };
}

struct arr **call_outs(struct call *c, size_t n)
{
    struct arr **outs = call_ok(c) ? mem_alloc_array(n, sizeof(struct arr *)) : NULL;

    if (call_ok(c) && !outs)
        c->err = ERR_NO_MEMORY;
    return outs;
}

void call_set_outs(struct call *c, mlx_vector_array *res, struct arr **outs, size_t n)
{
    if (call_ok(c))
        c->err = box_set_vec(res, outs, n);
    mem_free(outs);
}

static _Thread_local enum err last_error;

enum err call_last_error(void)
{
    return last_error;
}

int call_end(struct call *c, const char *file, int line)
{
    arr_unref(&c->out);
    if (call_ok(c))
        return 0;
    last_error = c->err;
    _mlx_error(file, line, "%s", err_text());
    return 1;
}

int call_end_arr(struct call *c, mlx_array *res, const char *file, int line)
{
    if (call_ok(c)) {
        c->err = box_set_arr(res, c->out);
        c->out = NULL;
    }
    return call_end(c, file, line);
}

int call_end_pair(struct call *c, mlx_array *const res[2], struct arr *outs[2], const char *file,
                  int line)
{
    void *spare = NULL;

    /* Both or none: the second box is there before the first is written. */
    if (call_ok(c) && !res[1]->ctx)
        c->err = box_make(&spare, sizeof(struct arr_box));
    if (call_ok(c)) {
        c->err = box_set_arr(res[0], outs[0]);
        outs[0] = NULL;
    }
    if (call_ok(c)) {
        if (!res[1]->ctx) { /* it is live now if both are the same handle */
            res[1]->ctx = spare;
            spare = NULL;
        }
        c->err = box_set_arr(res[1], outs[1]);
        outs[1] = NULL;
    }
    mem_free(spare);
    arr_unref(&outs[0]);
    arr_unref(&outs[1]);
    return call_end(c, file, line);
}

/* ---- out-parameters ---- */

enum err box_make(void **ctx, size_t size)
{
    if (!*ctx)
        *ctx = mem_alloc(size);
    return *ctx ? ERR_OK : ERR_NO_MEMORY;
}

enum err box_set_arr(mlx_array *res, struct arr *a)
{
    enum err err = box_make(&res->ctx, sizeof(struct arr_box));
    struct arr_box *box = res->ctx;

    if (err) {
        arr_unref(&a);
        return err;
    }
    /* The old value goes last: it may be what keeps the caller's other handles' graph alive. */
    struct arr *old = box->arr;
    box->arr = a;
    arr_unref(&old);
    return ERR_OK;
}

enum err box_set_text(mlx_string *res, char *text)
{
    enum err err = box_make(&res->ctx, sizeof(struct text_box));
    struct text_box *box = res->ctx;

    if (err) {
        mem_free(text);
        return err;
    }
    mem_free(box->text);
    box->text = text;
    return ERR_OK;
}

enum err box_set_dev(mlx_device *res, struct dev d)
{
    enum err err = box_make(&res->ctx, sizeof(struct dev_box));

    if (!err)
        ((struct dev_box *)res->ctx)->dev = d;
    return err;
}

enum err box_set_strm(mlx_stream *res, struct strm *s)
{
    enum err err = box_make(&res->ctx, sizeof(struct strm_box));

    if (!err)
        ((struct strm_box *)res->ctx)->strm = s;
    return err;
}
