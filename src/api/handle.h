/* What the public functions share: the boxes behind handles, argument checks, error delivery.
 *
 * A handle's ctx points to a small box that holds the value. A live out-parameter is overwritten
 * inside its box, so that every copy of the handle sees the new value.
 *
 * A public function is a call: call_begin, then the arguments, then the work if call_ok, then
 * CALL_END. The first failure sticks and everything after it is skipped. */
#pragma once

#include <assert.h>

#include "api/public.h"
#include "base/text.h"
#include "eval/stream.h"
#include "graph/array.h"
#include "io/io.h"
#include "ops/ops.h"

static_assert(sizeof(int) == sizeof(int32_t), "shapes are lists of int");

/* ---- boxes ---- */

struct arr_box {
    struct arr *arr;
};

/* Every list; what v points to depends on its kind. A list of arrays owns its references. */
struct list {
    void *v;
    size_t n, cap;
};

static inline struct arrs list_arrs(const struct list *l)
{
    return (struct arrs){ l->v, l->n };
}

struct text_box {
    char *text;
};

struct dev_box {
    struct dev dev;
};

struct strm_box {
    struct strm *strm; /* borrowed: streams live for the process */
};

/* ---- calls ---- */

struct call {
    const char *fn; /* public name, for error texts */
    enum err err;
    struct strm *strm;
    struct arr *out; /* an op's result until CALL_END hands it over */
};

/* A call without stream. res is the out-parameter: NULL is an error. */
struct call call_begin(const char *fn, const void *res);
/* A call of an op: the empty stream means the default one. */
struct call call_begin_default(const char *fn, const void *res);
static inline struct call call_begin_op(const char *fn, const void *res, mlx_stream s)
{
    if (!res || !s.ctx)
        return call_begin_default(fn, res);
    return (struct call){ .fn = fn, .strm = ((struct strm_box *)s.ctx)->strm };
}
/* A call that has neither. */
#define CALL_BARE ((struct call){ .fn = __func__ })
#define CALL(res) call_begin(__func__, res)
#define CALL_OP(res, s) call_begin_op(__func__, res, s)

static inline bool call_ok(const struct call *c)
{
    return c->err == ERR_OK;
}

/* Any handle: its box. kind: "stream", "string", ... NULL after a failure. */
void *call_box(struct call *c, const void *ctx, const char *kind, const char *name);

/* Arguments: NULL, or an empty value, after a failure. name is the parameter's. */
static inline struct arr *call_arr(struct call *c, mlx_array a, const char *name)
{
    if (a.ctx && call_ok(c))
        return ((struct arr_box *)a.ctx)->arr;
    call_box(c, a.ctx, "array", name);
    return NULL;
}
/* May be empty: NULL then. */
struct arr *call_arr_opt(struct call *c, mlx_array a);
const struct list *call_vec(struct call *c, mlx_vector_array v, const char *name);
/* Copies of tables; empty lists after a failure, to be released in any case. */
void call_arrays(struct call *c, mlx_map_string_to_array map, struct io_arrays *out);
void call_texts(struct call *c, mlx_map_string_to_string map, struct io_texts *out);
enum dtype call_dtype(struct call *c, mlx_dtype t);
/* A pointer of the caller that must not be NULL; returns it. */
const void *call_ptr(struct call *c, const void *p, const char *name);
/* NULL is allowed with n == 0. */
struct ints call_ints(struct call *c, const int *v, size_t n, const char *name);
struct dev call_dev(struct call *c, mlx_device dev, const char *name);

/* Room for the n references that a constructor writes before they become a list; */
struct arr **call_outs(struct call *c, size_t n);
/* hands them over, after success, and releases the room. */
void call_set_outs(struct call *c, mlx_vector_array *res, struct arr **outs, size_t n);

/* The status for "nothing there", which is not an error. */
#define ABSENT 2

/* How the last call on this thread that failed did. */
enum err call_last_error(void);

/* Ends a call that has nothing to hand over: 0, or 1 after telling the error handler. */
int call_end(struct call *c, const char *file, int line);
/* Moves c->out into *res. */
int call_end_arr(struct call *c, mlx_array *res, const char *file, int line);
/* Moves outs to the two results, *res[0] and *res[1]; both or none. Takes the references. */
int call_end_pair(struct call *c, mlx_array *const res[2], struct arr *outs[2], const char *file,
                  int line);
#if defined(__FILE_NAME__)
#define CALL_FILE __FILE_NAME__
#else
#define CALL_FILE __FILE__
#endif
#define CALL_END(c) call_end(c, CALL_FILE, __LINE__)
#define CALL_END_ARR(c, res) call_end_arr(c, res, CALL_FILE, __LINE__)
#define CALL_END_PAIR(c, res_0, res_1, outs)                                                       \
    call_end_pair(c, (mlx_array *const[]){ res_0, res_1 }, outs, CALL_FILE, __LINE__)

/* ---- out-parameters; on failure *res is as before ---- */

/* Makes sure that *ctx is a box of size bytes. */
MUST_CHECK enum err box_make(void **ctx, size_t size);
/* Takes the reference. */
MUST_CHECK enum err box_set_arr(mlx_array *res, struct arr *a);
/* Takes the text, which is from mem_alloc. */
MUST_CHECK enum err box_set_text(mlx_string *res, char *text);
MUST_CHECK enum err box_set_dev(mlx_device *res, struct dev d);
MUST_CHECK enum err box_set_strm(mlx_stream *res, struct strm *s);
/* Takes the n references. */
MUST_CHECK enum err box_set_vec(mlx_vector_array *res, struct arr *const *items, size_t n);
/* Copies the numbers. */
MUST_CHECK enum err box_set_ints(mlx_vector_int *res, const int *v, size_t n);
/* Copies the lists; texts may be NULL. Either both are set or none. */
MUST_CHECK enum err box_set_tables(mlx_map_string_to_array *arrays, mlx_map_string_to_string *texts,
                                   const struct io_arrays *a, const struct io_texts *t);
/* Copies the texts. */
MUST_CHECK enum err box_set_texts(mlx_vector_string *res, const char *const *texts, size_t n);
