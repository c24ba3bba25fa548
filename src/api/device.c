#include "api/handle.h"

static_assert((int)DEV_CPU == (int)MLX_CPU && (int)DEV_GPU == (int)MLX_GPU, "public device types");

static enum dev_type call_dev_type(struct call *c, mlx_device_type type)
{
    if (call_ok(c) && (unsigned)type >= DEV_TYPE_COUNT)
        c->err = err_set(ERR_ARG, "[%s] %d is no device type.", c->fn, (int)type);
    return call_ok(c) ? (enum dev_type)type : DEV_CPU;
}

mlx_device mlx_device_new(void)
{
    return (mlx_device){ NULL };
}

mlx_device mlx_device_new_type(mlx_device_type type, int index)
{
    mlx_device res = { NULL };
    struct call c = CALL_BARE;
    enum dev_type t = call_dev_type(&c, type);

    if (call_ok(&c))
        c.err = box_set_dev(&res, (struct dev){ t, index });
    CALL_END(&c);
    return res;
}

int mlx_device_free(mlx_device dev)
{
    mem_free(dev.ctx);
    return 0;
}

int mlx_device_set(mlx_device *dev, const mlx_device src)
{
    struct call c = CALL(dev);
    struct dev d = call_dev(&c, src, "src");

    if (call_ok(&c))
        c.err = box_set_dev(dev, d);
    return CALL_END(&c);
}

int mlx_device_tostring(mlx_string *str, mlx_device dev)
{
    struct call c = CALL(str);
    struct dev d = call_dev(&c, dev, "dev");
    struct text t = { 0 };

    if (call_ok(&c))
        c.err = text_add(&t, "Device(%s, %d)", dev_name(d.type), d.index);
    if (call_ok(&c))
        c.err = box_set_text(str, t.s.v);
    return CALL_END(&c);
}

bool mlx_device_equal(mlx_device lhs, mlx_device rhs)
{
    struct call c = CALL_BARE;
    struct dev a = call_dev(&c, lhs, "lhs"), b = call_dev(&c, rhs, "rhs");

    return !CALL_END(&c) && a.type == b.type && a.index == b.index;
}

int mlx_device_get_index(int *index, mlx_device dev)
{
    struct call c = CALL(index);
    struct dev d = call_dev(&c, dev, "dev");

    if (call_ok(&c))
        *index = d.index;
    return CALL_END(&c);
}

int mlx_device_get_type(mlx_device_type *type, mlx_device dev)
{
    struct call c = CALL(type);
    struct dev d = call_dev(&c, dev, "dev");

    if (call_ok(&c))
        *type = (mlx_device_type)d.type;
    return CALL_END(&c);
}

int mlx_get_default_device(mlx_device *dev)
{
    struct call c = CALL(dev);

    if (call_ok(&c))
        c.err = box_set_dev(dev, dev_default());
    return CALL_END(&c);
}

int mlx_set_default_device(mlx_device dev)
{
    struct call c = CALL_BARE;
    struct dev d = call_dev(&c, dev, "dev");

    if (call_ok(&c))
        c.err = dev_set_default(d);
    return CALL_END(&c);
}

int mlx_device_is_available(bool *avail, mlx_device dev)
{
    struct call c = CALL(avail);
    struct dev d = call_dev(&c, dev, "dev");

    if (call_ok(&c))
        *avail = dev_is_available(d);
    return CALL_END(&c);
}

int mlx_device_count(int *count, mlx_device_type type)
{
    struct call c = CALL(count);
    enum dev_type t = call_dev_type(&c, type);

    if (call_ok(&c))
        *count = dev_count(t);
    return CALL_END(&c);
}

/* ---- properties ---- */

struct info_box {
    const struct be_info_row *rows; /* live for the process */
    size_t n;
};

mlx_device_info mlx_device_info_new(void)
{
    return (mlx_device_info){ NULL };
}

int mlx_device_info_get(mlx_device_info *info, mlx_device dev)
{
    struct call c = CALL(info);
    struct dev d = call_dev(&c, dev, "dev");
    struct info_box found = { 0 };

    if (call_ok(&c))
        c.err = dev_info(&found.rows, &found.n, d);
    if (call_ok(&c))
        c.err = box_make(&info->ctx, sizeof(struct info_box));
    if (call_ok(&c))
        *(struct info_box *)info->ctx = found;
    return CALL_END(&c);
}

int mlx_device_info_free(mlx_device_info info)
{
    mem_free(info.ctx);
    return 0;
}

/* The row of a key, NULL if there is none or after a failure. */
static const struct be_info_row *call_row(struct call *c, mlx_device_info info, const char *key)
{
    const struct info_box *box = call_box(c, info.ctx, "device info", "info");

    call_ptr(c, key, "key");
    for (size_t i = 0; call_ok(c) && i < box->n; i++)
        if (strcmp(box->rows[i].key, key) == 0)
            return &box->rows[i];
    return NULL;
}

int mlx_device_info_has_key(bool *exists, mlx_device_info info, const char *key)
{
    struct call c = CALL(exists);
    const struct be_info_row *row = call_row(&c, info, key);

    if (call_ok(&c))
        *exists = row != NULL;
    return CALL_END(&c);
}

int mlx_device_info_is_string(bool *is_string, mlx_device_info info, const char *key)
{
    struct call c = CALL(is_string);
    const struct be_info_row *row = call_row(&c, info, key);

    if (row)
        *is_string = row->text != NULL;
    return call_ok(&c) && !row ? ABSENT : CALL_END(&c);
}

int mlx_device_info_get_string(const char **value, mlx_device_info info, const char *key)
{
    struct call c = CALL(value);
    const struct be_info_row *row = call_row(&c, info, key);

    if (call_ok(&c) && (!row || !row->text))
        return ABSENT;
    if (row)
        *value = row->text;
    return CALL_END(&c);
}

int mlx_device_info_get_size(size_t *value, mlx_device_info info, const char *key)
{
    struct call c = CALL(value);
    const struct be_info_row *row = call_row(&c, info, key);

    if (call_ok(&c) && (!row || row->text))
        return ABSENT;
    if (row)
        *value = row->number;
    return CALL_END(&c);
}

int mlx_device_info_get_keys(mlx_vector_string *keys, mlx_device_info info)
{
    struct call c = CALL(keys);
    const struct info_box *box = call_box(&c, info.ctx, "device info", "info");
    const char **names = NULL;

    if (call_ok(&c) && !(names = mem_alloc_array(box->n, sizeof *names)))
        c.err = ERR_NO_MEMORY;
    for (size_t i = 0; call_ok(&c) && i < box->n; i++)
        names[i] = box->rows[i].key;
    if (call_ok(&c))
        c.err = box_set_texts(keys, names, box->n);
    mem_free(names);
    return CALL_END(&c);
}
