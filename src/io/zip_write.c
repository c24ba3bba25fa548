#include <zlib.h>

#include "io/zip.h"

#define STORED 0
#define DEFLATED 8
#define VERSION_64 45 /* of the format, for 64-bit sizes */
#define FLAG_UTF8 0x800u
#define DATE_1980 0x21u
#define MADE_BY_UNIX (3u << 8)
#define REGULAR_FILE (0100644u << 16)

/* Counts of zlib have 32 bits. */
#define PIECE ((size_t)1 << 30)

/* Little-endian fields one after the other. */
struct record {
    uint8_t v[128];
    size_t n;
};

static void put(struct record *r, uint64_t value, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        r->v[r->n++] = (uint8_t)(value >> (8 * i));
}

/* What stands in a 32-bit field whose value is in the 64-bit one of the extra field. Every member
 * has that, so that headers need no second form. */
#define WIDE 0xffffffffu

static void put_common(struct record *r, const struct zip_member *m)
{
    put(r, VERSION_64, 2);
    put(r, FLAG_UTF8, 2);
    put(r, m->method, 2);
    put(r, 0, 2);
    put(r, DATE_1980, 2);
    put(r, m->crc, 4);
    put(r, WIDE, 4);
    put(r, WIDE, 4);
    put(r, strlen(m->name), 2);
}

static enum err write_local(struct zip_writer *w, const struct zip_member *m)
{
    struct record head = { .n = 0 }, extra = { .n = 0 };
    enum err err;

    put(&extra, 1, 2);
    put(&extra, 16, 2);
    put(&extra, m->size, 8);
    put(&extra, m->packed, 8);
    put(&head, 0x04034b50u, 4);
    put_common(&head, m);
    put(&head, extra.n, 2);
    TRY(sink_write(w->sink, head.v, head.n));
    TRY(sink_write(w->sink, m->name, strlen(m->name)));
    err = sink_write(w->sink, extra.v, extra.n);
out:
    return err;
}

static enum err write_central(struct zip_writer *w, const struct zip_member *m)
{
    struct record head = { .n = 0 }, extra = { .n = 0 };
    enum err err;

    put(&extra, 1, 2);
    put(&extra, 24, 2);
    put(&extra, m->size, 8);
    put(&extra, m->packed, 8);
    put(&extra, m->header, 8);
    put(&head, 0x02014b50u, 4);
    put(&head, VERSION_64 | MADE_BY_UNIX, 2);
    put_common(&head, m);
    put(&head, extra.n, 2);
    put(&head, 0, 2); /* comment */
    put(&head, 0, 2); /* disk */
    put(&head, 0, 2);
    put(&head, REGULAR_FILE, 4);
    put(&head, WIDE, 4);
    TRY(sink_write(w->sink, head.v, head.n));
    TRY(sink_write(w->sink, m->name, strlen(m->name)));
    err = sink_write(w->sink, extra.v, extra.n);
out:
    return err;
}

/* ---- content ---- */

struct packer {
    z_stream z;
    VEC(uint8_t) out;
};

/* Takes all of next_in; with Z_FINISH everything comes out. */
static enum err deflate_piece(struct packer *p, int flush)
{
    enum err err = ERR_OK;
    int status;

    do {
        TRY(VEC_RESERVE(&p->out, 65536));
        uInt room = (uInt)MIN(p->out.cap - p->out.n, PIECE);
        p->z.next_out = p->out.v + p->out.n;
        p->z.avail_out = room;
        status = deflate(&p->z, flush);
        p->out.n += room - p->z.avail_out;
    } while (status == Z_OK && p->z.avail_out == 0);
out:
    return err;
}

static enum err deflate_all(struct packer *p, const struct zip_piece *pieces, size_t n)
{
    enum err err = ERR_OK;

    for (size_t i = 0; i < n; i++)
        for (size_t done = 0, now; done < pieces[i].n; done += now) {
            now = MIN(pieces[i].n - done, PIECE);
            p->z.next_in = (uint8_t *)pieces[i].bytes + done;
            p->z.avail_in = (uInt)now;
            TRY(deflate_piece(p, Z_NO_FLUSH));
        }
    p->z.avail_in = 0;
    err = deflate_piece(p, Z_FINISH);
out:
    return err;
}

static enum err pack(struct packer *p, const struct zip_piece *pieces, size_t n)
{
    if (deflateInit2(&p->z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY) !=
        Z_OK)
        return err_set(ERR_NO_MEMORY, "out of host memory (deflate)");
    enum err err = deflate_all(p, pieces, n);
    deflateEnd(&p->z);
    return err;
}

static void measure(struct zip_member *m, const struct zip_piece *pieces, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        m->size += pieces[i].n;
        for (size_t done = 0, now; done < pieces[i].n; done += now) {
            now = MIN(pieces[i].n - done, PIECE);
            m->crc = (uint32_t)crc32(m->crc, (const uint8_t *)pieces[i].bytes + done, (uInt)now);
        }
    }
    m->packed = m->size;
}

static enum err write_content(struct zip_writer *w, const struct zip_piece *pieces, size_t n)
{
    enum err err = ERR_OK;

    for (size_t i = 0; i < n; i++)
        TRY(sink_write(w->sink, pieces[i].bytes, pieces[i].n));
out:
    return err;
}

enum err zip_write_member(struct zip_writer *w, const char *name, const struct zip_piece *pieces,
                          size_t n, bool compressed)
{
    struct zip_member m = { .header = sink_at(w->sink), .method = compressed ? DEFLATED : STORED };
    struct packer packer = { .out = { 0 } };
    enum err err = ERR_OK;

    if (strlen(name) > UINT16_MAX)
        return err_set(ERR_ARG, "[save] The name of an array has %zu bytes.", strlen(name));
    if (!(m.name = mem_strdup(name)))
        return ERR_NO_MEMORY;
    measure(&m, pieces, n);
    if (compressed) {
        TRY(pack(&packer, pieces, n));
        m.packed = packer.out.n;
    }
    TRY(write_local(w, &m));
    if (compressed)
        TRY(sink_write(w->sink, packer.out.v, packer.out.n));
    else
        TRY(write_content(w, pieces, n));
    TRY(VEC_PUSH(&w->written.list, m));
    m.name = NULL;
out:
    VEC_FINI(&packer.out);
    mem_free(m.name);
    return err;
}

/* ---- the end ---- */

enum err zip_write_end(struct zip_writer *w)
{
    uint64_t begin = sink_at(w->sink), count = w->written.list.n;
    struct record r = { .n = 0 };
    enum err err = ERR_OK;

    for (size_t i = 0; i < w->written.list.n; i++)
        TRY(write_central(w, &w->written.list.v[i]));
    uint64_t end = sink_at(w->sink);
    put(&r, 0x06064b50u, 4); /* 64-bit end record */
    put(&r, 44, 8);
    put(&r, VERSION_64 | MADE_BY_UNIX, 2);
    put(&r, VERSION_64, 2);
    put(&r, 0, 8); /* disks */
    put(&r, count, 8);
    put(&r, count, 8);
    put(&r, end - begin, 8);
    put(&r, begin, 8);
    put(&r, 0x07064b50u, 4); /* its place */
    put(&r, 0, 4);
    put(&r, end, 8);
    put(&r, 1, 4);
    put(&r, 0x06054b50u, 4); /* end record */
    put(&r, 0, 4);
    put(&r, MIN(count, UINT16_MAX), 2);
    put(&r, MIN(count, UINT16_MAX), 2);
    put(&r, MIN(end - begin, WIDE), 4);
    put(&r, MIN(begin, WIDE), 4);
    put(&r, 0, 2);
    err = sink_write(w->sink, r.v, r.n);
out:
    return err;
}

void zip_writer_fini(struct zip_writer *w)
{
    zip_directory_fini(&w->written);
}
