#include "api/handle.h"

static struct strm *call_strm(struct call *c, mlx_stream s, const char *name)
{
    const struct strm_box *box = call_box(c, s.ctx, "stream", name);

    return box ? box->strm : NULL;
}

mlx_stream mlx_stream_new(void)
{
    return (mlx_stream){ NULL };
}

mlx_stream mlx_stream_new_device(mlx_device dev)
{
    mlx_stream res = { NULL };
    struct call c = CALL_BARE;
    struct dev d = call_dev(&c, dev, "dev");
    struct strm *s = NULL;

    if (call_ok(&c))
        c.err = strm_new(&s, d);
    if (call_ok(&c))
        c.err = box_set_strm(&res, s);
    CALL_END(&c);
    return res;
}

int mlx_stream_set(mlx_stream *stream, const mlx_stream src)
{
    struct call c = CALL(stream);
    struct strm *s = call_strm(&c, src, "src");

    if (call_ok(&c))
        c.err = box_set_strm(stream, s);
    return CALL_END(&c);
}

int mlx_stream_free(mlx_stream stream)
{
    mem_free(stream.ctx);
    return 0;
}

int mlx_stream_tostring(mlx_string *str, mlx_stream stream)
{
    struct call c = CALL(str);
    struct strm *s = call_strm(&c, stream, "stream");
    struct text t = { 0 };

    if (call_ok(&c))
        c.err = text_add(&t, "Stream(Device(%s, %d), %d)", dev_name(s->dev.type), s->dev.index,
                         s->index);
    if (call_ok(&c))
        c.err = box_set_text(str, t.s.v);
    return CALL_END(&c);
}

bool mlx_stream_equal(mlx_stream lhs, mlx_stream rhs)
{
    struct call c = CALL_BARE;
    struct strm *a = call_strm(&c, lhs, "lhs"), *b = call_strm(&c, rhs, "rhs");

    return !CALL_END(&c) && a == b;
}

int mlx_stream_get_device(mlx_device *dev, mlx_stream stream)
{
    struct call c = CALL(dev);
    struct strm *s = call_strm(&c, stream, "stream");

    if (call_ok(&c))
        c.err = box_set_dev(dev, s->dev);
    return CALL_END(&c);
}

int mlx_stream_get_index(int *index, mlx_stream stream)
{
    struct call c = CALL(index);
    struct strm *s = call_strm(&c, stream, "stream");

    if (call_ok(&c))
        *index = s->index;
    return CALL_END(&c);
}

int mlx_synchronize(mlx_stream stream)
{
    struct call c = CALL_OP(&stream, stream);

    if (call_ok(&c))
        c.err = strm_synchronize(c.strm);
    return CALL_END(&c);
}

int mlx_get_default_stream(mlx_stream *stream, mlx_device dev)
{
    struct call c = CALL(stream);
    struct dev d = call_dev(&c, dev, "dev");
    struct strm *s = NULL;

    if (call_ok(&c))
        c.err = strm_default(&s, d);
    if (call_ok(&c))
        c.err = box_set_strm(stream, s);
    return CALL_END(&c);
}

int mlx_set_default_stream(mlx_stream stream)
{
    struct call c = CALL_BARE;
    struct strm *s = call_strm(&c, stream, "stream");

    if (call_ok(&c))
        strm_set_default(s);
    return CALL_END(&c);
}

static mlx_stream default_of(struct call *c, enum dev_type type)
{
    mlx_stream res = { NULL };
    struct strm *s = NULL;

    c->err = strm_default(&s, (struct dev){ type, 0 });
    if (call_ok(c))
        c->err = box_set_strm(&res, s);
    return res;
}

mlx_stream mlx_default_cpu_stream_new(void)
{
    struct call c = CALL_BARE;
    mlx_stream res = default_of(&c, DEV_CPU);

    CALL_END(&c);
    return res;
}

mlx_stream mlx_default_gpu_stream_new(void)
{
    struct call c = CALL_BARE;
    mlx_stream res = default_of(&c, DEV_GPU);

    CALL_END(&c);
    return res;
}
