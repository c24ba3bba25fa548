#include "io/sink.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/text.h"

/* A single write transfers at most 2 GiB. */
#define WRITE_MAX ((size_t)1 << 30)

struct sink {
    char *name;  /* where the file belongs */
    char *aside; /* where it is written, NULL where that is its own place */
    int fd;
    uint64_t at;
    struct sink_writer writer;
    size_t n; /* bytes in buf */
    char buf[65536];
};

static bool ends_in(const char *s, const char *end)
{
    size_t n = strlen(s), m = strlen(end);

    return n >= m && strcmp(s + n - m, end) == 0;
}

static char *print(const char *fmt, const char *a, const char *b)
{
    struct text t = { 0 };

    if (text_add(&t, fmt, a, b) != ERR_OK) /* NOLINT: two strings */
        VEC_FINI(&t.s);
    return t.s.v;
}

static enum err fail(const struct sink *s, const char *what)
{
    return err_set(ERR_RUNTIME, "[save] %s %s: %s", what, s->name, strerror(errno));
}

/* The file behind links, so that a link stays one. */
static enum err resolve(struct sink *s)
{
    char *real = realpath(s->name, NULL);
    char *copy = real ? mem_strdup(real) : NULL;

    free(real);
    if (real && !copy)
        return ERR_NO_MEMORY;
    if (copy) {
        mem_free(s->name);
        s->name = copy;
    }
    return ERR_OK;
}

static enum err open_aside(struct sink *s)
{
    static atomic_uint counter;
    char suffix[64];

    for (int attempt = 0; attempt < 100; attempt++) {
        snprintf(suffix, sizeof suffix, ".%ld-%u.part", (long)getpid(),
                 atomic_fetch_add(&counter, 1));
        mem_free(s->aside);
        if (!(s->aside = print("%s%s", s->name, suffix)))
            return ERR_NO_MEMORY;
        s->fd = open(s->aside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (s->fd >= 0 || errno != EEXIST)
            break;
    }
    if (s->fd >= 0)
        return ERR_OK;
    int reason = errno;
    mem_free(s->aside);
    s->aside = NULL;
    errno = reason;
    return fail(s, "Failed to open");
}

static enum err open_file(struct sink *s)
{
    struct stat st;
    bool exists = stat(s->name, &st) == 0;
    enum err err;

    if (exists && !S_ISREG(st.st_mode)) {
        s->fd = open(s->name, O_WRONLY | O_CLOEXEC);
        return s->fd >= 0 ? ERR_OK : fail(s, "Failed to open");
    }
    TRY(resolve(s));
    TRY(open_aside(s));
    if (exists && fchmod(s->fd, st.st_mode & 07777) != 0)
        err = fail(s, "Failed to set the permissions of");
out:
    return err;
}

static enum err sink_new(struct sink **out, const struct sink_writer *writer, char *name)
{
    struct sink *s = name ? mem_alloc(sizeof *s) : NULL;

    if (!s) {
        mem_free(name);
        return ERR_NO_MEMORY;
    }
    s->writer = *writer;
    s->name = name;
    s->fd = -1;
    *out = s;
    return ERR_OK;
}

enum err sink_create(struct sink **out, const char *path, const char *extension)
{
    struct sink *s = NULL;
    enum err err;

    TRY(sink_new(&s, &(struct sink_writer){ 0 },
                 print("%s%s", path, ends_in(path, extension) ? "" : extension)));
    TRY(open_file(s));
    *out = s;
    s = NULL;
out:
    sink_destroy(&s);
    return err;
}

enum err sink_new_writer(struct sink **out, const struct sink_writer *w, const char *name)
{
    return sink_new(out, w, mem_strdup(name));
}

static enum err file_write(struct sink *s, const char *bytes, size_t n)
{
    while (n) {
        ssize_t put = write(s->fd, bytes, MIN(n, WRITE_MAX));
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return fail(s, "Failed to write");
        bytes += put;
        n -= (size_t)put;
    }
    return ERR_OK;
}

static enum err write_through(struct sink *s, const void *bytes, size_t n)
{
    if (!s->writer.write)
        return file_write(s, bytes, n);
    enum err err = s->writer.write(s->writer.self, bytes, n);
    return err ? err_set(err, "[save] %s: %s", s->name, err_text()) : ERR_OK;
}

static enum err flush(struct sink *s)
{
    size_t n = s->n;

    s->n = 0;
    return n ? write_through(s, s->buf, n) : ERR_OK;
}

enum err sink_write(struct sink *s, const void *bytes, size_t n)
{
    enum err err = ERR_OK;

    if (n == 0)
        return ERR_OK;
    if (n > sizeof s->buf - s->n)
        TRY(flush(s));
    if (n > sizeof s->buf) {
        TRY(write_through(s, bytes, n));
    } else {
        memcpy(s->buf + s->n, bytes, n);
        s->n += n;
    }
    s->at += n;
out:
    return err;
}

enum err sink_pad(struct sink *s, size_t n)
{
    static const char zeros[4096];
    enum err err = ERR_OK;

    for (size_t now; n && !err; n -= now) {
        now = MIN(n, sizeof zeros);
        err = sink_write(s, zeros, now);
    }
    return err;
}

uint64_t sink_at(const struct sink *s)
{
    return s->at;
}

const char *sink_name(const struct sink *s)
{
    return s->name;
}

enum err sink_patch(struct sink *s, const void *bytes, size_t n, uint64_t at)
{
    enum err err;

    TRY(flush(s));
    if (pwrite(s->fd, bytes, n, (off_t)at) != (ssize_t)n)
        err = fail(s, "Failed to write");
out:
    return err;
}

static enum err give_name(struct sink *s)
{
    if (s->aside && rename(s->aside, s->name) != 0)
        return fail(s, "Failed to rename the new file to");
    mem_free(s->aside);
    s->aside = NULL;
    return ERR_OK;
}

enum err sink_publish(struct sink *s)
{
    enum err err = flush(s);

    return err ? err : give_name(s);
}

enum err sink_commit(struct sink *s)
{
    enum err err = flush(s);
    int fd = s->fd;

    if (err)
        return err;
    s->fd = -1;
    if (fd >= 0 && close(fd) != 0)
        return fail(s, "Failed to write");
    return give_name(s);
}

void sink_destroy(struct sink **ps)
{
    struct sink *s = *ps;

    *ps = NULL;
    if (!s)
        return;
    if (s->fd >= 0)
        close(s->fd);
    if (s->aside)
        unlink(s->aside);
    mem_free(s->aside);
    mem_free(s->name);
    mem_free(s);
}
