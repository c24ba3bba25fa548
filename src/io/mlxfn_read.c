/* Reading files of exported functions. */
#include "base/clock.h"
#include "base/hash.h"
#include "base/ptr_map.h"
#include "graph/load.h"
#include "io/mlxfn_node.h"

/* A primitive's name, or that of a named argument. */
#define NAME_MAX_BYTES 4096

/* Bytes of a shape, a list and a dtype in the file. */
#define COUNT_BYTES 8
#define DTYPE_BYTES 5

/* An array whose bytes are in the file. The node that reads it first says where it is needed. */
struct constant {
    struct out_desc desc;
    uint64_t at;
    struct arr *arr; /* owned; NULL until it was read by a node */
};

/* What an id stands for while a trace is read. */
struct reader {
    struct bytes_in in;
    struct mlxfn *f;
    struct mlxfn_trace *t;
    uint64_t secret;      /* ids are chosen by the file, their places in tables are not */
    struct ptr_map value; /* of the trace, by id */
    struct ptr_map known; /* of the file: number of a constant by id */
    VEC(struct constant) constant;
    VEC(uint32_t) of_value; /* one more than the number of the constant that a value is, or 0 */
};

/* ---- ids ---- */

static const void *key_of(const struct reader *r, uint64_t id)
{
    return (const void *)(uintptr_t)(hash_mix(r->secret, id) | 1);
}

static enum err add_value(struct reader *r, uint64_t id, uint32_t constant)
{
    const void *key = key_of(r, id);
    size_t n = r->of_value.n;
    enum err err;

    if (n >= UINT32_MAX)
        return bytes_fail(&r->in, "too many values");
    if (ptr_map_get(&r->value, key) != PTR_NONE)
        return bytes_fail(&r->in, "two values have the same id");
    TRY(VEC_PUSH(&r->of_value, constant));
    TRY(VEC_PUSH(&r->t->value, NULL));
    err = ptr_map_put(&r->value, key, n);
out:
    return err;
}

static enum err find_value(const struct reader *r, uint32_t *out, uint64_t id)
{
    size_t at = ptr_map_get(&r->value, key_of(r, id));

    if (at == PTR_NONE)
        return bytes_fail(&r->in, "a value is used before it is there");
    *out = (uint32_t)at;
    return ERR_OK;
}

/* ---- what files are made of ---- */

static enum err get_name(struct bytes_in *b, char **out)
{
    size_t n;
    char *name = NULL;
    enum err err;

    TRY(bytes_get_count(b, &n, 1));
    if (n > NAME_MAX_BYTES)
        return bytes_fail(b, "a name is too long");
    if (!(name = mem_alloc(n + 1)))
        return ERR_NO_MEMORY;
    TRY(bytes_get(b, name, n));
    if (memchr(name, 0, n))
        err = bytes_fail(b, "a name holds a zero");
out:
    if (err)
        mem_free(name);
    else
        *out = name;
    return err;
}

static enum err get_shape(struct bytes_in *b, struct shp *out)
{
    size_t n;
    int64_t size;
    enum err err;

    TRY(bytes_get_count(b, &n, sizeof out->d[0]));
    if (n > SHP_MAX)
        return bytes_fail(b, "an array has too many dimensions");
    out->ndim = (int)n;
    TRY(bytes_get(b, out->d, n * sizeof out->d[0]));
    for (size_t i = 0; i < n; i++)
        if (out->d[i] < 0)
            return bytes_fail(b, "an array has a negative dimension");
    if (!shp_size_checked(out, &size))
        return bytes_fail(b, "an array is too large");
out:
    return err;
}

static enum err get_desc(struct bytes_in *b, struct out_desc *out)
{
    enum err err;

    TRY(get_shape(b, &out->shape));
    err = bytes_get_dtype(b, &out->dtype);
out:
    return err;
}

/* ---- the parts of a trace ---- */

static enum err read_names(struct reader *r)
{
    char *name = NULL;
    size_t n;
    enum err err;

    TRY(bytes_get_count(&r->in, &n, COUNT_BYTES));
    TRY(VEC_RESERVE(&r->t->names, n));
    for (size_t i = 0; i < n; i++) {
        TRY(get_name(&r->in, &name));
        if (i && strcmp(r->t->names.v[i - 1], name) >= 0) {
            mem_free(name);
            return bytes_fail(&r->in, "names of arguments are not sorted");
        }
        r->t->names.v[r->t->names.n++] = name;
    }
out:
    return err;
}

static enum err read_inputs(struct reader *r)
{
    struct out_desc desc;
    uint64_t id;
    size_t n, n_descs;
    enum err err;

    TRY(bytes_get_count(&r->in, &n, sizeof id));
    for (size_t i = 0; i < n; i++) {
        TRY(bytes_get(&r->in, &id, sizeof id));
        TRY(add_value(r, id, 0));
    }
    TRY(bytes_get_count(&r->in, &n_descs, COUNT_BYTES + DTYPE_BYTES));
    if (n != n_descs || n < r->t->names.n)
        return bytes_fail(&r->in, "the inputs do not fit each other");
    for (size_t i = 0; i < n; i++) {
        TRY(get_desc(&r->in, &desc));
        TRY(VEC_PUSH(&r->t->in, desc));
    }
out:
    return err;
}

/* Ids of arrays that a node reads, or of a trace's results. */
static enum err read_values(struct reader *r, uint32_t *count)
{
    uint64_t id;
    uint32_t value = 0;
    size_t n;
    enum err err;

    TRY(bytes_get_count(&r->in, &n, sizeof id));
    if (n > UINT16_MAX)
        return bytes_fail(&r->in, "a node reads too many arrays");
    for (size_t i = 0; i < n; i++) {
        TRY(bytes_get(&r->in, &id, sizeof id));
        TRY(find_value(r, &value, id));
        TRY(VEC_PUSH(&r->t->arg, value));
    }
    *count = (uint32_t)n;
out:
    return err;
}

static enum err read_prim(struct reader *r, struct mlxfn_node *node)
{
    struct {
        int32_t index, type, device;
    } strm;
    union prim_params params;
    char *name = NULL;
    enum err err;

    TRY(bytes_get(&r->in, &strm, sizeof strm));
    if (strm.type < 0 || strm.type >= DEV_TYPE_COUNT)
        return bytes_fail(&r->in, "a device that is not known");
    node->dev = (struct dev){ (enum dev_type)strm.type, strm.device };
    TRY(get_name(&r->in, &name));
    TRY(prim_read(&node->prim, &params, &r->in, name));
    if (node->prim->read_state)
        TRY(node->prim->read_state(&node->state, &r->in));
    void *own = arena_alloc(&r->f->params, node->prim->params_size);
    if (own)
        node->params = memcpy(own, &params, node->prim->params_size);
    else
        err = ERR_NO_MEMORY;
out:
    mem_free(name);
    return err;
}

static enum err add_output(struct reader *r, uint64_t id, const struct out_desc *desc)
{
    enum err err;

    TRY(add_value(r, id, 0));
    err = VEC_PUSH(&r->t->made, *desc);
out:
    return err;
}

/* Of a node with several outputs: their ids, shapes and dtypes. */
static enum err read_siblings(struct reader *r, size_t n)
{
    VEC(uint64_t) ids = { 0 };
    size_t count, first = r->t->made.n;
    struct out_desc *made;
    enum err err;

    TRY(bytes_get_count(&r->in, &count, sizeof ids.v[0]));
    if (count != n)
        TRY(bytes_fail(&r->in, "the results of a node do not fit each other"));
    TRY(VEC_RESERVE(&ids, n));
    TRY(VEC_RESERVE(&r->t->made, n));
    TRY(bytes_get(&r->in, ids.v, n * sizeof ids.v[0]));
    made = r->t->made.v + first;
    TRY(bytes_get_count(&r->in, &count, COUNT_BYTES));
    for (size_t i = 0; i < n && count == n; i++)
        TRY(get_shape(&r->in, &made[i].shape));
    if (count == n)
        TRY(bytes_get_count(&r->in, &count, DTYPE_BYTES));
    for (size_t i = 0; i < n && count == n; i++)
        TRY(bytes_get_dtype(&r->in, &made[i].dtype));
    if (count != n)
        TRY(bytes_fail(&r->in, "the results of a node do not fit each other"));
    for (size_t i = 0; i < n; i++)
        TRY(add_output(r, ids.v[i], &r->t->made.v[first + i]));
out:
    VEC_FINI(&ids);
    return err;
}

static enum err read_node(struct reader *r, uint64_t id)
{
    struct mlxfn_node node = { 0 };
    struct out_desc desc;
    uint64_t n_siblings;
    enum err err;

    TRY(read_values(r, &node.n_in));
    TRY(read_prim(r, &node));
    TRY(bytes_get(&r->in, &n_siblings, sizeof n_siblings));
    if (n_siblings > UINT16_MAX)
        TRY(bytes_fail(&r->in, "a node has too many results"));
    node.first = (uint32_t)r->of_value.n;
    node.n_out = (uint32_t)n_siblings + 1;
    if (n_siblings) {
        TRY(read_siblings(r, node.n_out));
    } else {
        TRY(get_desc(&r->in, &desc));
        TRY(add_output(r, id, &desc));
    }
    err = VEC_PUSH(&r->t->node, node);
out:
    if (err)
        op_state_unref(&node.state);
    return err;
}

/* The first time that an id occurs its bytes follow. */
static enum err read_constant(struct reader *r, uint64_t id)
{
    size_t number = ptr_map_get(&r->known, key_of(r, id));
    struct constant c = { .arr = NULL };
    uint64_t bytes;
    enum err err = ERR_OK;

    if (number == PTR_NONE) {
        number = r->constant.n;
        TRY(get_desc(&r->in, &c.desc));
        c.at = r->in.at;
        if (MUL_OVERFLOWS((uint64_t)shp_size(&c.desc.shape), (uint64_t)dt_size(c.desc.dtype),
                          &bytes) ||
            !source_holds(r->in.src, r->in.at, bytes))
            return bytes_fail(&r->in, "the file is cut off in a constant");
        r->in.at += bytes;
        TRY(VEC_PUSH(&r->constant, c));
        TRY(ptr_map_put(&r->known, key_of(r, id), number));
    }
    err = add_value(r, id, (uint32_t)number + 1);
out:
    return err;
}

/* ---- constants become arrays ---- */

/* Numbers are read at once, so that programs of nodes can have them as such. */
static enum err read_number(struct reader *r, struct constant *c)
{
    uint64_t after = r->in.at, v = 0;
    size_t size = dt_size(c->desc.dtype);
    enum err err;

    r->in.at = c->at;
    TRY(bytes_get(&r->in, &v, size));
    if (c->desc.dtype == DT_BOOL)
        v = v != 0;
    r->in.at = after;
    err = arr_new_scalar(&c->arr, &v, c->desc.dtype);
out:
    return err;
}

static enum err load_constant(struct reader *r, struct constant *c, struct dev dev)
{
    struct load_part part = { .source = r->in.src,
                              .offset = c->at,
                              .codec = c->desc.dtype == DT_BOOL ? CODEC_BOOL : CODEC_RAW,
                              .name = "" };
    struct strm *s = NULL;
    enum err err;

    if (c->desc.shape.ndim == 0)
        return read_number(r, c);
    TRY(strm_default(&s, dev));
    err = ops_load(&c->arr, &part, &c->desc.shape, c->desc.dtype, s);
out:
    return err;
}

static enum err need_value(struct reader *r, uint32_t value, struct dev dev)
{
    uint32_t number = r->of_value.v[value];
    enum err err = ERR_OK;

    if (!number || r->t->value.v[value])
        return ERR_OK;
    struct constant *c = &r->constant.v[number - 1];
    if (!c->arr)
        TRY(load_constant(r, c, dev));
    r->t->value.v[value] = arr_ref(c->arr);
out:
    return err;
}

static enum err need_constants(struct reader *r)
{
    const uint32_t *arg = r->t->arg.v;
    enum err err = ERR_OK;

    for (size_t i = 0; i < r->t->node.n; i++) {
        const struct mlxfn_node *n = &r->t->node.v[i];
        for (uint32_t k = 0; k < n->n_in; k++)
            TRY(need_value(r, *arg++, n->dev));
    }
    for (size_t i = 0; i < r->t->out.n; i++)
        TRY(need_value(r, r->t->out.v[i], (struct dev){ DEV_CPU, 0 }));
out:
    return err;
}

/* ---- traces ---- */

static enum err read_step(struct reader *r)
{
    bool is_node, is_constant;
    uint32_t value = 0;
    uint64_t id;
    enum err err;

    TRY(bytes_get(&r->in, &id, sizeof id));
    TRY(bytes_get_bool(&r->in, &is_node));
    if (is_node)
        return read_node(r, id);
    TRY(bytes_get_bool(&r->in, &is_constant));
    err = is_constant ? read_constant(r, id) : find_value(r, &value, id);
out:
    return err;
}

static enum err read_outputs(struct reader *r, uint64_t start, size_t n)
{
    uint64_t after = r->in.at, id;
    uint32_t value = 0;
    enum err err = ERR_OK;

    r->in.at = start;
    for (size_t i = 0; i < n; i++) {
        TRY(bytes_get(&r->in, &id, sizeof id));
        TRY(find_value(r, &value, id));
        TRY(VEC_PUSH(&r->t->out, value));
    }
    r->in.at = after;
out:
    return err;
}

static enum err read_trace(struct reader *r)
{
    uint64_t outputs, steps, id;
    size_t n_out;
    enum err err;

    TRY(VEC_PUSH(&r->f->trace, (struct mlxfn_trace){ 0 }));
    r->t = &r->f->trace.v[r->f->trace.n - 1];
    r->of_value.n = 0;
    ptr_map_fini(&r->value);
    r->value = (struct ptr_map){ 0 };
    TRY(read_names(r));
    TRY(read_inputs(r));
    /* Results have ids before there is anything that they could stand for. */
    TRY(bytes_get_count(&r->in, &n_out, sizeof id));
    outputs = r->in.at;
    r->in.at += n_out * sizeof id;
    TRY(bytes_get(&r->in, &steps, sizeof steps));
    for (uint64_t i = 0; i < steps; i++)
        TRY(read_step(r));
    TRY(read_outputs(r, outputs, n_out));
    err = need_constants(r);
out:
    return err;
}

/* ---- checking ---- */

/* The trace on placeholders: whatever its nodes do not accept is found before anybody calls it. */
static enum err check_trace(const struct mlxfn *f, const struct mlxfn_trace *t)
{
    struct arr **in = mem_alloc_array(t->in.n + 1, sizeof *in);
    struct arr **out = mem_alloc_array(t->out.n + 1, sizeof *out);
    enum err err = in && out ? ERR_OK : ERR_NO_MEMORY;

    for (size_t i = 0; i < t->in.n && !err; i++)
        err = arr_new_empty(&in[i], &t->in.v[i].shape, t->in.v[i].dtype);
    if (!err)
        err = mlxfn_apply(out, f, t, (struct arrs){ in, t->in.n });
    for (size_t i = 0; out && i < t->out.n; i++)
        arr_unref(&out[i]);
    for (size_t i = 0; in && i < t->in.n; i++)
        arr_unref(&in[i]);
    mem_free(in);
    mem_free(out);
    return err;
}

/* ---- files ---- */

static enum err read_file(struct reader *r)
{
    char *version = NULL;
    int32_t n;
    size_t metadata;
    enum err err;

    TRY(get_name(&r->in, &version));
    TRY(bytes_get(&r->in, &n, sizeof n));
    TRY(bytes_get_bool(&r->in, &r->f->shapeless));
    TRY(bytes_get_count(&r->in, &metadata, 1));
    err = ERR_NO_MEMORY;
    if (!(r->f->metadata = mem_alloc(metadata + 1)))
        goto out;
    TRY(bytes_get(&r->in, r->f->metadata, metadata));
    for (int32_t i = 0; i < n; i++) {
        TRY(read_trace(r));
        TRY(check_trace(r->f, r->t));
    }
out:
    mem_free(version);
    return err;
}

enum err mlxfn_read(struct mlxfn **out, struct source *src)
{
    struct reader *r = mem_alloc(sizeof *r);
    struct mlxfn *f = mem_alloc(sizeof *f);
    enum err err = r && f ? ERR_OK : ERR_NO_MEMORY;

    if (!err) {
        r->f = f;
        r->in.src = src;
        r->secret = hash_mix((uint64_t)clock_ns(), (uintptr_t)r);
        err = read_file(r);
    }
    if (r) {
        ptr_map_fini(&r->value);
        ptr_map_fini(&r->known);
        for (size_t i = 0; i < r->constant.n; i++)
            arr_unref(&r->constant.v[i].arr);
        VEC_FINI(&r->constant);
        VEC_FINI(&r->of_value);
    }
    mem_free(r);
    if (err)
        mlxfn_destroy(&f);
    else
        *out = f;
    return err;
}

void mlxfn_destroy(struct mlxfn **pf)
{
    struct mlxfn *f = *pf;

    *pf = NULL;
    if (!f)
        return;
    for (size_t i = 0; i < f->trace.n; i++) {
        struct mlxfn_trace *t = &f->trace.v[i];
        for (size_t k = 0; k < t->names.n; k++)
            mem_free(t->names.v[k]);
        for (size_t k = 0; k < t->value.n; k++)
            arr_unref(&t->value.v[k]);
        for (size_t k = 0; k < t->node.n; k++)
            op_state_unref(&t->node.v[k].state);
        VEC_FINI(&t->names);
        VEC_FINI(&t->in);
        VEC_FINI(&t->out);
        VEC_FINI(&t->node);
        VEC_FINI(&t->arg);
        VEC_FINI(&t->made);
        VEC_FINI(&t->value);
    }
    VEC_FINI(&f->trace);
    arena_fini(&f->params);
    mem_free(f->metadata);
    mem_free(f);
}
