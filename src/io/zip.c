#include "io/zip.h"

#include <zlib.h>

#define LOCAL_SIGNATURE 0x04034b50u
#define CENTRAL_SIGNATURE 0x02014b50u
#define END_SIGNATURE 0x06054b50u
#define END64_SIGNATURE 0x06064b50u
#define END64_LOCATOR_SIGNATURE 0x07064b50u
#define LOCAL_SIZE 30
#define CENTRAL_SIZE 46
#define END_SIZE 22
#define END64_SIZE 56
#define LOCATOR_SIZE 20
#define EXTRA64 1 /* the extra field with 64-bit sizes */
#define NAME_MAX_BYTES 4096

#define STORED 0
#define DEFLATED 8
#define FLAG_ENCRYPTED 1u
#define FLAG_UTF8 0x800u

/* Deflate gains at most a factor of 1032; more is a lie about the size. */
#define MAX_GAIN 1040

static uint16_t get16(const uint8_t *p)
{
    return (uint16_t)(p[0] | p[1] << 8);
}

static uint32_t get32(const uint8_t *p)
{
    return get16(p) | (uint32_t)get16(p + 2) << 16;
}

static uint64_t get64(const uint8_t *p)
{
    return get32(p) | (uint64_t)get32(p + 4) << 32;
}

static enum err fail(const struct source *src, const char *what)
{
    return err_set(ERR_RUNTIME, "[load] %s is no npz archive that can be read: %s",
                   source_name(src), what);
}

static enum err fail_member(const struct source *src, const char *name, const char *what)
{
    return err_set(ERR_RUNTIME, "[load] Member '%s' of %s: %s", name, source_name(src), what);
}

/* ---- the directory ---- */

struct directory_place {
    uint64_t offset, size, count;
};

/* The end record, found from the back because a comment may follow it. */
static enum err find_end(uint8_t *end, uint64_t *at, struct source *src)
{
    uint64_t size = source_size(src), tail = MIN(size, (uint64_t)END_SIZE + UINT16_MAX);
    uint8_t *bytes = mem_alloc_aligned((size_t)tail);
    enum err err = ERR_NO_MEMORY;

    if (!bytes)
        return err;
    TRY(source_read(src, bytes, (size_t)tail, size - tail));
    for (uint64_t i = tail < END_SIZE ? 0 : tail - END_SIZE + 1; i-- > 0;)
        if (get32(bytes + i) == END_SIGNATURE && i + END_SIZE + get16(bytes + i + 20) <= tail) {
            memcpy(end, bytes + i, END_SIZE);
            *at = size - tail + i;
            goto out;
        }
    err = fail(src, "its end record is missing");
out:
    mem_free(bytes);
    return err;
}

static enum err read_end64(struct directory_place *out, uint64_t end, struct source *src)
{
    uint8_t locator[LOCATOR_SIZE], record[END64_SIZE];
    enum err err;

    if (end < LOCATOR_SIZE)
        return fail(src, "its 64-bit end record is missing");
    TRY(source_read(src, locator, sizeof locator, end - LOCATOR_SIZE));
    if (get32(locator) != END64_LOCATOR_SIGNATURE ||
        !source_holds(src, get64(locator + 8), END64_SIZE))
        return fail(src, "its 64-bit end record is missing");
    TRY(source_read(src, record, sizeof record, get64(locator + 8)));
    if (get32(record) != END64_SIGNATURE)
        return fail(src, "its 64-bit end record is missing");
    out->count = get64(record + 32);
    out->size = get64(record + 40);
    out->offset = get64(record + 48);
out:
    return err;
}

static enum err find_directory(struct directory_place *out, struct source *src)
{
    uint8_t end[END_SIZE] = { 0 };
    uint64_t at = 0;
    enum err err;

    TRY(find_end(end, &at, src));
    out->count = get16(end + 10);
    out->size = get32(end + 12);
    out->offset = get32(end + 16);
    if (out->count == UINT16_MAX || out->size == UINT32_MAX || out->offset == UINT32_MAX)
        TRY(read_end64(out, at, src));
    if (out->offset > at || out->size > at - out->offset || out->count > out->size / CENTRAL_SIZE)
        err = fail(src, "its directory lies outside of the file");
out:
    return err;
}

/* Sizes of 0xffffffff stand in the extra field, in this order. False if they are not there. */
static bool read_extra(struct zip_member *m, const uint8_t *p, size_t n)
{
    uint64_t *wide[] = { &m->size, &m->packed, &m->header };

    while (n >= 4) {
        size_t id = get16(p), length = get16(p + 2), used = 4;
        if (length > n - 4)
            return false;
        for (size_t i = 0; i < ARRAY_LEN(wide) && id == EXTRA64; i++) {
            if (*wide[i] != UINT32_MAX)
                continue;
            if (used + 8 > length + 4)
                return false;
            *wide[i] = get64(p + used);
            used += 8;
        }
        if (id == EXTRA64)
            return true;
        p += 4 + length;
        n -= 4 + length;
    }
    return m->size != UINT32_MAX && m->packed != UINT32_MAX && m->header != UINT32_MAX;
}

static enum err check_member(const struct zip_member *m, unsigned flags, const struct source *src)
{
    if (flags & FLAG_ENCRYPTED)
        return fail_member(src, m->name, "it is encrypted");
    if (m->method != STORED && m->method != DEFLATED)
        return fail_member(src, m->name, "its compression is neither none nor deflate");
    if (!source_holds(src, m->header, LOCAL_SIZE) ||
        m->packed > source_size(src) - m->header - LOCAL_SIZE)
        return fail_member(src, m->name, "it lies outside of the file");
    if (m->method == STORED ? m->size != m->packed : m->size / MAX_GAIN > m->packed)
        return fail_member(src, m->name, "its size cannot be true");
    return ERR_OK;
}

/* One entry of the directory at p, of at most `left` bytes; *used says how many. */
static enum err read_entry(struct zip_directory *out, const uint8_t *p, size_t left, size_t *used,
                           const struct source *src)
{
    if (left < CENTRAL_SIZE || get32(p) != CENTRAL_SIGNATURE)
        return fail(src, "its directory is damaged");
    size_t name = get16(p + 28), extra = get16(p + 30), comment = get16(p + 32);
    struct zip_member m = { .method = get16(p + 10),
                            .crc = get32(p + 16),
                            .packed = get32(p + 20),
                            .size = get32(p + 24),
                            .header = get32(p + 42) };
    enum err err;

    *used = CENTRAL_SIZE + name + extra + comment;
    if (*used > left || name > NAME_MAX_BYTES || memchr(p + CENTRAL_SIZE, 0, name) ||
        !read_extra(&m, p + CENTRAL_SIZE + name, extra))
        return fail(src, "its directory is damaged");
    if (!(m.name = mem_alloc(name + 1)))
        return ERR_NO_MEMORY;
    memcpy(m.name, p + CENTRAL_SIZE, name);
    TRY(check_member(&m, get16(p + 8), src));
    TRY(VEC_PUSH(&out->list, m));
    return ERR_OK;
out:
    mem_free(m.name);
    return err;
}

static int compare_members(const void *a, const void *b)
{
    const struct zip_member *x = *(const struct zip_member *const *)a,
                            *y = *(const struct zip_member *const *)b;

    return x->header < y->header ? -1 : x->header > y->header;
}

/* Members that share bytes would let a small file unpack to any size. */
static enum err check_overlaps(const struct zip_directory *d, const struct source *src)
{
    const struct zip_member **order = mem_alloc_array(d->list.n, sizeof *order);
    uint64_t at = 0;
    enum err err = ERR_OK;

    if (!order)
        return ERR_NO_MEMORY;
    for (size_t i = 0; i < d->list.n; i++)
        order[i] = &d->list.v[i];
    qsort(order, d->list.n, sizeof *order, compare_members);
    for (size_t i = 0; i < d->list.n && !err; i++) {
        if (order[i]->header < at)
            err = fail_member(src, order[i]->name, "it overlaps another member");
        at = order[i]->header + LOCAL_SIZE + order[i]->packed;
    }
    mem_free(order);
    return err;
}

enum err zip_read_directory(struct zip_directory *out, struct source *src)
{
    struct directory_place place = { 0 };
    uint8_t *bytes = NULL;
    size_t used = 0;
    enum err err;

    TRY(find_directory(&place, src));
    if (!(bytes = mem_alloc_aligned((size_t)place.size)))
        return ERR_NO_MEMORY;
    TRY(source_read(src, bytes, (size_t)place.size, place.offset));
    for (uint64_t i = 0, at = 0; i < place.count; i++, at += used)
        TRY(read_entry(out, bytes + at, (size_t)(place.size - at), &used, src));
    err = check_overlaps(out, src);
out:
    mem_free(bytes);
    if (err)
        zip_directory_fini(out);
    return err;
}

void zip_directory_fini(struct zip_directory *d)
{
    for (size_t i = 0; i < d->list.n; i++)
        mem_free(d->list.v[i].name);
    VEC_FINI(&d->list);
}

/* ---- members ---- */

static uint32_t checksum(uint32_t crc, const uint8_t *p, size_t n)
{
    for (size_t now; n; p += now, n -= now) {
        now = MIN(n, (size_t)1 << 30);
        crc = (uint32_t)crc32(crc, p, (uInt)now);
    }
    return crc;
}

struct unpacking {
    z_stream z;
    struct source *src;
    const struct zip_member *m;
    uint64_t data; /* where the packed bytes begin */
    uint8_t in[65536];
};

static enum err next_input(struct unpacking *u, uint64_t *done)
{
    size_t n = (size_t)MIN(sizeof u->in, u->m->packed - *done);
    enum err err = source_read(u->src, u->in, n, u->data + *done);

    u->z.next_in = u->in;
    u->z.avail_in = (uInt)n;
    *done += n;
    return err;
}

static enum err inflate_all(struct unpacking *u, uint8_t *out)
{
    uint64_t taken = 0, made = 0;
    int status = Z_OK;
    enum err err = ERR_OK;

    while (status == Z_OK) {
        if (u->z.avail_in == 0 && taken < u->m->packed)
            TRY(next_input(u, &taken));
        uInt room = (uInt)MIN((uint64_t)1 << 30, u->m->size - made);
        u->z.next_out = out + made;
        u->z.avail_out = room;
        status = inflate(&u->z, Z_NO_FLUSH);
        made += room - u->z.avail_out;
    }
    if (status != Z_STREAM_END || made != u->m->size)
        err = fail_member(u->src, u->m->name, "its compressed data are damaged");
out:
    return err;
}

static enum err unpack(uint8_t *out, struct source *src, const struct zip_member *m, uint64_t data)
{
    struct unpacking *u = mem_alloc(sizeof *u);
    enum err err = ERR_NO_MEMORY;

    if (!u)
        return err;
    u->src = src;
    u->m = m;
    u->data = data;
    if (inflateInit2(&u->z, -MAX_WBITS) == Z_OK) {
        err = inflate_all(u, out);
        inflateEnd(&u->z);
    } else {
        err = err_set(ERR_NO_MEMORY, "out of host memory (inflate)");
    }
    mem_free(u);
    return err;
}

enum err zip_read_member(void **out, struct source *src, const struct zip_member *m)
{
    uint8_t local[LOCAL_SIZE], *bytes = NULL;
    enum err err;

    TRY(source_read(src, local, sizeof local, m->header));
    uint64_t data = m->header + LOCAL_SIZE + get16(local + 26) + get16(local + 28);
    if (get32(local) != LOCAL_SIGNATURE || !source_holds(src, data, m->packed))
        return fail_member(src, m->name, "its local header is damaged");
    if (!(bytes = mem_alloc_aligned((size_t)m->size)))
        return ERR_NO_MEMORY;
    if (m->method == STORED)
        TRY(source_read(src, bytes, (size_t)m->size, data));
    else
        TRY(unpack(bytes, src, m, data));
    if (checksum(0, bytes, (size_t)m->size) != m->crc) {
        err = fail_member(src, m->name, "its checksum is wrong");
        goto out;
    }
    *out = bytes;
    bytes = NULL;
out:
    mem_free(bytes);
    return err;
}
