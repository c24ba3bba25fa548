/* npz: a zip archive of npy files. */
#include "eval/wait.h"
#include "io/npy.h"
#include "io/zip.h"

#define SUFFIX ".npy"

/* ---- loading ---- */

/* The name without ".npy" ends at *length; false if the member is no npy file. */
static bool has_suffix(const char *name, size_t *length)
{
    size_t n = strlen(name), m = strlen(SUFFIX);

    *length = n - MIN(n, m);
    return n >= m && strcmp(name + n - m, SUFFIX) == 0;
}

/* A source with the unpacked member; errors of the npy reader name archive and member. */
static enum err open_member(struct source **out, struct source *src, const struct zip_member *m)
{
    struct text name = { 0 };
    void *bytes = NULL;
    enum err err;

    TRY(text_add(&name, "%s(%s)", source_name(src), m->name));
    TRY(zip_read_member(&bytes, src, m));
    TRY(source_new_memory(out, bytes, (size_t)m->size, name.s.v));
    bytes = NULL;
out:
    mem_free(bytes);
    VEC_FINI(&name.s);
    return err;
}

static enum err load_member(struct io_arrays *out, struct source *src, struct zip_member *m,
                            struct strm *s)
{
    struct source *member = NULL;
    struct arr *a = NULL;
    size_t length;
    enum err err;

    if (!has_suffix(m->name, &length))
        return err_set(ERR_RUNTIME, "[load] Member '%s' of %s is no npy file.", m->name,
                       source_name(src));
    TRY(open_member(&member, src, m));
    TRY(io_load_npy(&a, member, s));
    m->name[length] = '\0';
    err = io_arrays_add(out, m->name, a);
out:
    source_unref(&member);
    return err;
}

enum err io_load_npz(struct io_arrays *out, struct source *src, struct strm *s)
{
    struct zip_directory dir = { 0 };
    enum err err;

    TRY(zip_read_directory(&dir, src));
    for (size_t i = 0; i < dir.list.n; i++)
        TRY(load_member(out, src, &dir.list.v[i], s));
    err = io_arrays_check_unique(out, source_name(src));
    if (err == ERR_RUNTIME)
        err = err_set(err, "[load] %s", err_text());
out:
    zip_directory_fini(&dir);
    if (err)
        io_arrays_fini(out);
    return err;
}

/* ---- saving ---- */

static enum err save_member(struct zip_writer *w, const struct io_array *item, bool compressed)
{
    struct text header = { 0 }, name = { 0 };
    struct arr *dense = NULL;
    const void *bytes = NULL;
    enum err err;

    TRY(io_make_dense(&dense, (struct arrs){ &item->arr, 1 }, true));
    bool had_mirror = dense->buf && atomic_load(&dense->buf->mirror);
    TRY(npy_header(&header, dense));
    TRY(text_add(&name, "%s" SUFFIX, item->name));
    TRY(arr_host(&bytes, dense));
    const struct zip_piece pieces[] = { { header.s.v, header.s.n }, { bytes, arr_nbytes(dense) } };
    err = zip_write_member(w, name.s.v, pieces, ARRAY_LEN(pieces), compressed);
    if (dense->buf && !had_mirror)
        buf_drop_mirror(dense->buf);
out:
    VEC_FINI(&header.s);
    VEC_FINI(&name.s);
    arr_unref(&dense);
    return err;
}

enum err io_save_npz(struct sink *out, const struct io_arrays *a, bool compressed)
{
    struct zip_writer w = { .sink = out };
    enum err err = ERR_OK;

    for (size_t i = 0; i < a->list.n; i++)
        TRY(save_member(&w, &a->list.v[i], compressed));
    err = zip_write_end(&w);
out:
    zip_writer_fini(&w);
    return err;
}
