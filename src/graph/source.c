#include "graph/source.h"

#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/file.h"
#include "base/gate.h"
#include "base/mem.h"

enum kind { KIND_FILE, KIND_MEMORY, KIND_READER };

struct source {
    refcount rc;
    enum kind kind;
    char *name;
    uint64_t size;
    int fd;
    bool mappable;
    pthread_mutex_t lock; /* guards base of a file; serialises the calls of a reader */
    char *base;           /* memory, or the mapping once it is wanted */
    struct source_reader reader;
};

static enum err source_new(struct source **out, const struct source *init, const char *name)
{
    struct source *s = mem_alloc(sizeof *s);

    if (!s)
        return ERR_NO_MEMORY;
    *s = *init;
    if (!(s->name = mem_strdup(name))) {
        mem_free(s);
        return ERR_NO_MEMORY;
    }
    atomic_init(&s->rc, 1);
    pthread_mutex_init(&s->lock, NULL);
    *out = s;
    return ERR_OK;
}

/* ---- files ---- */

/* Where other machines or programs serve the pages, one of them may be gone when it is needed. */
static bool is_on_local_disk(int fd)
{
    static const uint32_t remote[] = {
        0x6969,     /* NFS */
        0x517b,     /* SMB */
        0xff534d42, /* CIFS */
        0xfe534d42, /* SMB 2 */
        0x65735546, /* FUSE */
        0x01021997, /* 9P */
        0x00c36400, /* Ceph */
        0x5346414f, /* AFS */
        0x6b414653, /* the kernel's AFS */
        0x73757245, /* Coda */
        0x0bd00bd0, /* Lustre */
        0x47504653, /* GPFS */
    };
    struct statfs fs;

    if (fstatfs(fd, &fs) != 0)
        return false;
    for (size_t i = 0; i < ARRAY_LEN(remote); i++)
        if ((uint32_t)fs.f_type == remote[i])
            return false;
    return true;
}

enum err source_open(struct source **out, const char *path)
{
    struct source init = { .kind = KIND_FILE };
    enum err err = file_open(&init.fd, &init.size, path);

    if (err)
        return err_set(err, "[load] Failed to open file %s", err_text());
    init.mappable = is_on_local_disk(init.fd);
    err = source_new(out, &init, path);
    if (err)
        close(init.fd);
    return err;
}

static enum err read_file(const struct source *s, char *dst, size_t n, uint64_t offset)
{
    while (n) {
        ssize_t got = pread(s->fd, dst, n, (off_t)offset);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return err_set(ERR_RUNTIME, "%s: %zu bytes at %llu cannot be read: %s", s->name, n,
                           (unsigned long long)offset,
                           got < 0 ? strerror(errno) : "the file has become shorter");
        dst += got;
        n -= (size_t)got;
        offset += (uint64_t)got;
    }
    return ERR_OK;
}

/* The mapping, made on first use. Writable for this process alone: whoever gets the address of an
 * array's bytes may expect to be able to write them. */
static char *file_map(struct source *s)
{
    pthread_mutex_lock(&s->lock);
    if (!s->base && s->mappable && s->size <= SIZE_MAX) {
        void *p = mmap(NULL, (size_t)s->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE,
                       s->fd, 0);
        s->base = p == MAP_FAILED ? NULL : p;
        s->mappable = s->base != NULL;
    }
    char *base = s->base;
    pthread_mutex_unlock(&s->lock);
    return base;
}

static void *file_in_place(struct source *s, uint64_t offset, size_t n)
{
    struct stat st;
    char *base;

    if (!gate_on(GATE_IO_MAP) || fstat(s->fd, &st) != 0 || (uint64_t)st.st_size < offset + n)
        return NULL;
    base = file_map(s);
    if (!base)
        return NULL;
    uint64_t page = offset - offset % (uint64_t)sysconf(_SC_PAGESIZE);
    (void)madvise(base + page, (size_t)(offset - page) + n, MADV_WILLNEED);
    return base + offset;
}

/* ---- memory and readers ---- */

enum err source_new_memory(struct source **out, void *bytes, size_t n, const char *name)
{
    return source_new(
        out, &(struct source){ .kind = KIND_MEMORY, .fd = -1, .base = bytes, .size = n }, name);
}

enum err source_new_reader(struct source **out, const struct source_reader *r, const char *name)
{
    return source_new(
        out, &(struct source){ .kind = KIND_READER, .fd = -1, .reader = *r, .size = r->size },
        name);
}

static enum err reader_read(struct source *s, void *dst, size_t n, uint64_t offset)
{
    pthread_mutex_lock(&s->lock);
    enum err err = s->reader.read(s->reader.self, dst, n, offset);
    pthread_mutex_unlock(&s->lock);
    return err ? err_set(err, "%s: %s", s->name, err_text()) : ERR_OK;
}

/* ---- every kind ---- */

struct source *source_ref(struct source *s)
{
    ref_inc(&s->rc);
    return s;
}

void source_unref(struct source **ps)
{
    struct source *s = *ps;

    *ps = NULL;
    if (!s || !ref_dec(&s->rc))
        return;
    if (s->kind == KIND_MEMORY)
        mem_free(s->base);
    else if (s->base)
        munmap(s->base, (size_t)s->size);
    if (s->fd >= 0)
        close(s->fd);
    if (s->kind == KIND_READER && s->reader.free)
        s->reader.free(s->reader.self);
    pthread_mutex_destroy(&s->lock);
    mem_free(s->name);
    mem_free(s);
}

const char *source_name(const struct source *s)
{
    return s->name;
}

uint64_t source_size(const struct source *s)
{
    return s->size;
}

bool source_holds(const struct source *s, uint64_t offset, uint64_t n)
{
    return offset <= s->size && n <= s->size - offset;
}

bool source_is_parallel(const struct source *s)
{
    return s->kind != KIND_READER;
}

enum err source_read(struct source *s, void *dst, size_t n, uint64_t offset)
{
    if (!source_holds(s, offset, n))
        return err_set(ERR_RUNTIME, "%s: %zu bytes at %llu are wanted, but there are %llu", s->name,
                       n, (unsigned long long)offset, (unsigned long long)s->size);
    if (n == 0)
        return ERR_OK;
    switch (s->kind) {
    case KIND_FILE:
        return read_file(s, dst, n, offset);
    case KIND_READER:
        return reader_read(s, dst, n, offset);
    case KIND_MEMORY:
        break;
    }
    memcpy(dst, s->base + offset, n);
    return ERR_OK;
}

void *source_in_place(struct source *s, uint64_t offset, size_t n, size_t small)
{
    if (!source_holds(s, offset, n) || n == 0)
        return NULL;
    if (s->kind == KIND_MEMORY)
        return s->base + offset;
    return s->kind == KIND_FILE && n >= small ? file_in_place(s, offset, n) : NULL;
}
