#include "api/io_handle.h"

#include <stdio.h>

/* ---- what is loaded from ---- */

static enum err reader_read(void *self, void *dst, size_t n, uint64_t offset)
{
    const struct user_io *io = self;

    if (io->fn.read_at_offset) {
        io->fn.read_at_offset(io->desc, dst, n, (size_t)offset);
    } else {
        io->fn.seek(io->desc, (int64_t)offset, SEEK_SET);
        io->fn.read(io->desc, dst, n);
    }
    return user_io_check(io, "reading failed in");
}

static void reader_drop(void *self)
{
    struct user_io *io = self;

    user_io_unref(&io);
}

static enum err reader_size(uint64_t *out, const struct user_io *io)
{
    size_t before = io->fn.tell(io->desc);

    io->fn.seek(io->desc, 0, SEEK_END);
    *out = io->fn.tell(io->desc);
    io->fn.seek(io->desc, (int64_t)before, SEEK_SET);
    if (*out > INT64_MAX)
        return err_set(ERR_RUNTIME, "[load] The size of %s is unknown", user_io_label(io));
    return user_io_check(io, "[load] Failed to find the end of");
}

/* NULL after a failure. */
static struct source *call_source_reader(struct call *c, mlx_io_reader reader)
{
    struct user_io *io = call_reader(c, reader);
    struct source_reader r = { .self = io, .read = reader_read, .free = reader_drop };
    struct source *src = NULL;

    if (call_ok(c))
        c->err = user_io_check(io, "[load] Failed to open");
    if (call_ok(c))
        c->err = reader_size(&r.size, io);
    if (call_ok(c))
        c->err = source_new_reader(&src, &r, user_io_label(io));
    if (src)
        user_io_ref(io);
    return src;
}

static struct source *call_source_file(struct call *c, const char *file)
{
    struct source *src = NULL;

    call_ptr(c, file, "file");
    if (call_ok(c))
        c->err = source_open(&src, file);
    return src;
}

/* ---- what is saved to ---- */

static enum err writer_write(void *self, const void *bytes, size_t n)
{
    const struct user_io *io = self;

    io->fn.write(io->desc, bytes, n);
    return user_io_check(io, "writing failed in");
}

static struct sink *call_sink_writer(struct call *c, mlx_io_writer writer)
{
    struct user_io *io = call_writer(c, writer);
    struct sink *out = NULL;

    if (call_ok(c))
        c->err = user_io_check(io, "[save] Failed to open");
    if (call_ok(c))
        c->err =
            sink_new_writer(&out, &(struct sink_writer){ io, writer_write }, user_io_label(io));
    return out;
}

static struct sink *call_sink_file(struct call *c, const char *file, const char *extension)
{
    struct sink *out = NULL;

    call_ptr(c, file, "file");
    if (call_ok(c))
        c->err = sink_create(&out, file, extension);
    return out;
}

/* Completes the file, if all went well so far. */
static int end_save(struct call *c, struct sink *out)
{
    if (call_ok(c))
        c->err = sink_commit(out);
    sink_destroy(&out);
    return CALL_END(c);
}

/* ---- npy ---- */

static int load_npy(struct call *c, mlx_array *res, struct source *src)
{
    if (call_ok(c))
        c->err = io_load_npy(&c->out, src, c->strm);
    source_unref(&src);
    return CALL_END_ARR(c, res);
}

int mlx_load_reader(mlx_array *res, mlx_io_reader in_stream, const mlx_stream s)
{
    struct call c = CALL_OP(res, s);

    return load_npy(&c, res, call_source_reader(&c, in_stream));
}

int mlx_load(mlx_array *res, const char *file, const mlx_stream s)
{
    struct call c = CALL_OP(res, s);

    return load_npy(&c, res, call_source_file(&c, file));
}

static int save_npy(struct call *c, struct sink *out, struct arr *a)
{
    if (call_ok(c))
        c->err = io_save_npy(out, a);
    return end_save(c, out);
}

int mlx_save_writer(mlx_io_writer out_stream, const mlx_array a)
{
    struct call c = CALL_BARE;
    struct arr *arr = call_arr(&c, a, "a");

    return save_npy(&c, call_sink_writer(&c, out_stream), arr);
}

int mlx_save(const char *file, const mlx_array a)
{
    struct call c = CALL_BARE;
    struct arr *arr = call_arr(&c, a, "a");

    return save_npy(&c, call_sink_file(&c, file, ".npy"), arr);
}

/* ---- safetensors ---- */

static int load_safetensors(struct call *c, mlx_map_string_to_array *arrays,
                            mlx_map_string_to_string *texts, struct source *src)
{
    struct io_arrays a = { 0 };
    struct io_texts t = { 0 };

    call_ptr(c, texts, "res_1");
    if (call_ok(c))
        c->err = io_load_safetensors(&a, &t, src, c->strm);
    if (call_ok(c))
        c->err = box_set_tables(arrays, texts, &a, &t);
    io_arrays_fini(&a);
    io_texts_fini(&t);
    source_unref(&src);
    return CALL_END(c);
}

int mlx_load_safetensors_reader(mlx_map_string_to_array *res_0, mlx_map_string_to_string *res_1,
                                mlx_io_reader in_stream, const mlx_stream s)
{
    struct call c = CALL_OP(res_0, s);

    return load_safetensors(&c, res_0, res_1, call_source_reader(&c, in_stream));
}

int mlx_load_safetensors(mlx_map_string_to_array *res_0, mlx_map_string_to_string *res_1,
                         const char *file, const mlx_stream s)
{
    struct call c = CALL_OP(res_0, s);

    return load_safetensors(&c, res_0, res_1, call_source_file(&c, file));
}

/* What is saved, copied out of the tables. */
struct tables {
    struct io_arrays arrays;
    struct io_texts texts;
};

static struct tables call_tables(struct call *c, mlx_map_string_to_array arrays,
                                 mlx_map_string_to_string texts)
{
    struct tables t = { .arrays = { { 0 } } };

    call_arrays(c, arrays, &t.arrays);
    call_texts(c, texts, &t.texts);
    return t;
}

static int save_safetensors(struct call *c, struct sink *out, struct tables *t)
{
    if (call_ok(c))
        c->err = io_save_safetensors(out, &t->arrays, &t->texts);
    io_arrays_fini(&t->arrays);
    io_texts_fini(&t->texts);
    return end_save(c, out);
}

int mlx_save_safetensors_writer(mlx_io_writer in_stream, const mlx_map_string_to_array param,
                                const mlx_map_string_to_string metadata)
{
    struct call c = CALL_BARE;
    struct tables t = call_tables(&c, param, metadata);

    return save_safetensors(&c, call_sink_writer(&c, in_stream), &t);
}

int mlx_save_safetensors(const char *file, const mlx_map_string_to_array param,
                         const mlx_map_string_to_string metadata)
{
    struct call c = CALL_BARE;
    struct tables t = call_tables(&c, param, metadata);

    return save_safetensors(&c, call_sink_file(&c, file, ".safetensors"), &t);
}

/* ---- GGUF ---- */

int mlx_load_gguf(mlx_io_gguf *gguf, const char *file, const mlx_stream s)
{
    struct call c = CALL_OP(gguf, s);
    struct source *src = call_source_file(&c, file);
    struct gguf g = { .metadata = { 0 } };

    if (call_ok(&c))
        c.err = gguf_load(&g, src, c.strm);
    if (call_ok(&c))
        c.err = box_set_gguf(gguf, &g);
    gguf_fini(&g);
    source_unref(&src);
    return CALL_END(&c);
}

int mlx_save_gguf(const char *file, mlx_io_gguf gguf)
{
    struct call c = CALL_BARE;
    const struct gguf *g = call_gguf(&c, gguf);
    struct sink *out = call_sink_file(&c, file, ".gguf");

    if (call_ok(&c))
        c.err = gguf_save(out, g);
    return end_save(&c, out);
}

/* ---- npz ---- */

int mlx_load_npz(mlx_map_string_to_array *res, const char *file, const mlx_stream s)
{
    struct call c = CALL_OP(res, s);
    struct source *src = call_source_file(&c, file);
    struct io_arrays a = { 0 };

    if (call_ok(&c))
        c.err = io_load_npz(&a, src, c.strm);
    if (call_ok(&c))
        c.err = box_set_tables(res, NULL, &a, NULL);
    io_arrays_fini(&a);
    source_unref(&src);
    return CALL_END(&c);
}

int mlx_save_npz(const char *file, const mlx_map_string_to_array param, bool compressed)
{
    struct call c = CALL_BARE;
    struct io_arrays a = { 0 };
    struct sink *out = NULL;

    call_arrays(&c, param, &a);
    if (call_ok(&c))
        out = call_sink_file(&c, file, ".npz");
    if (call_ok(&c))
        c.err = io_save_npz(out, &a, compressed);
    io_arrays_fini(&a);
    return end_save(&c, out);
}
