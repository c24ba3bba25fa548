/* Runs a target without libFuzzer: over all small files of a folder with an extension, and over
 * mutations of them that are the same on every machine.
 *
 * usage: fuzz_TARGET FOLDER EXTENSION MUTATIONS */
#include "fuzz/fuzz.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/common.h"

#define MAX_SIZE 16384

struct input {
    uint8_t bytes[MAX_SIZE + 64];
    size_t n;
};

static uint64_t state;

/* splitmix64 */
static uint64_t draw(void)
{
    uint64_t z = state += 0x9e3779b97f4a7c15ull;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ z >> 27) * 0x94d049bb133111ebull;
    return z ^ z >> 31;
}

static size_t below(size_t n)
{
    return n ? (size_t)(draw() % n) : 0;
}

/* ---- mutations ---- */

static void flip_bit(struct input *in)
{
    if (in->n)
        in->bytes[below(in->n)] ^= (uint8_t)(1u << below(8));
}

static void set_byte(struct input *in)
{
    static const char bytes[] = "\0\1\x7f\x80\xff\"{}[],:09-";

    if (in->n)
        in->bytes[below(in->n)] = (uint8_t)bytes[below(sizeof bytes - 1)];
}

/* A number of 2, 4 or 8 bytes becomes one at a limit. */
static void set_number(struct input *in)
{
    static const uint64_t values[] = { 0,          1,          0x7f,       0xffff,
                                       0x7fffffff, 0x80000000, 0xffffffff, 0x100000000,
                                       1ull << 62, 1ull << 63, UINT64_MAX, UINT64_MAX - 31 };
    size_t size = (size_t)2 << below(3);
    uint64_t v = values[below(ARRAY_LEN(values))];

    if (in->n >= size)
        memcpy(in->bytes + below(in->n - size + 1), &v, size);
}

static void cut(struct input *in)
{
    in->n = below(in->n + 1);
}

static void remove_part(struct input *in)
{
    size_t at = below(in->n), n = below(MIN(in->n - at, (size_t)32) + 1);

    memmove(in->bytes + at, in->bytes + at + n, in->n - at - n);
    in->n -= n;
}

static void repeat_part(struct input *in)
{
    size_t at = below(in->n), n = below(MIN(in->n - at, (size_t)32) + 1);

    if (in->n + n > sizeof in->bytes)
        return;
    memmove(in->bytes + at + n, in->bytes + at, in->n - at);
    in->n += n;
}

static void mutate(struct input *in)
{
    static void (*const ways[])(struct input *) = { flip_bit, set_byte,    set_number,
                                                    cut,      remove_part, repeat_part };

    for (size_t i = 1 + below(3); i > 0; i--)
        ways[below(ARRAY_LEN(ways))](in);
}

/* ---- files ---- */

/* False if the file is too large. */
static int read_file(struct input *in, const char *folder, const char *name)
{
    char path[1024];
    FILE *f;

    snprintf(path, sizeof path, "%s/%s", folder, name);
    f = fopen(path, "rb");
    if (!f)
        return 0;
    in->n = fread(in->bytes, 1, MAX_SIZE + 1, f);
    fclose(f);
    return in->n <= MAX_SIZE;
}

static void run_file(const struct input *original, const char *name, long mutations)
{
    static struct input in;

    state = 0;
    for (const char *c = name; *c; c++)
        state = state * 31 + (unsigned char)*c;
    LLVMFuzzerTestOneInput(original->bytes, original->n);
    for (long i = 0; i < mutations; i++) {
        in = *original;
        mutate(&in);
        LLVMFuzzerTestOneInput(in.bytes, in.n);
    }
}

int main(int argc, char **argv)
{
    static struct input in;
    DIR *dir = argc == 4 ? opendir(argv[1]) : NULL;
    int files = 0;

    if (!dir) {
        fprintf(stderr, "usage: fuzz_TARGET FOLDER EXTENSION MUTATIONS\n");
        return 1;
    }
    for (struct dirent *e = readdir(dir); e; e = readdir(dir)) {
        const char *dot = strrchr(e->d_name, '.');
        if (!dot || strcmp(dot + 1, argv[2]) != 0 || !read_file(&in, argv[1], e->d_name))
            continue;
        run_file(&in, e->d_name, atol(argv[3]));
        files++;
    }
    closedir(dir);
    printf("%d files with %s mutations each\n", files, argv[3]);
    return files ? 0 : 1;
}
