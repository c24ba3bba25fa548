#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"

static enum err fail(const char *path, int why, const char *text)
{
    enum err err = err_set(ERR_RUNTIME, "%s: %s", path, text ? text : strerror(why));

    errno = why;
    return err;
}

enum err file_open(int *out, uint64_t *size, const char *path)
{
    /* Without O_NONBLOCK a FIFO would keep us here; for regular files it means nothing. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    struct stat st;

    if (fd < 0)
        return fail(path, errno, NULL);
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        close(fd);
        return fail(path, EINVAL, "not a regular file");
    }
    *out = fd;
    *size = (uint64_t)st.st_size;
    return ERR_OK;
}

/* Until the buffer is full or the file ends, which may have become shorter. */
static enum err read_up_to(size_t *n, int fd, char *dst, size_t most)
{
    size_t done = 0;

    while (done < most) {
        ssize_t got = read(fd, dst + done, most - done);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return ERR_RUNTIME;
        if (got == 0)
            break;
        done += (size_t)got;
    }
    *n = done;
    return ERR_OK;
}

enum err file_read(char **out, size_t *n, const char *path, size_t most)
{
    uint64_t size;
    char *text = NULL;
    int fd = -1;
    enum err err;

    TRY(file_open(&fd, &size, path));
    if (size > most) {
        err = err_set(ERR_RUNTIME, "%s: %llu bytes are more than the %zu that are read", path,
                      (unsigned long long)size, most);
        errno = EFBIG;
        goto out;
    }
    if (!(text = mem_alloc_aligned((size_t)size + 1))) {
        err = ERR_NO_MEMORY;
        goto out;
    }
    if (read_up_to(n, fd, text, (size_t)size) != ERR_OK) {
        err = fail(path, errno, NULL);
        goto out;
    }
    text[*n] = '\0';
    *out = text;
    text = NULL;
out:
    mem_free(text);
    if (fd >= 0) {
        int why = errno;
        close(fd);
        errno = why;
    }
    return err;
}
