#include "support/io_content.h"

void io_content_fini(struct io_content *c)
{
    io_arrays_fini(&c->arrays);
    io_texts_fini(&c->texts);
}

static enum err load_npy(struct io_content *out, struct source *src, struct strm *s)
{
    struct arr *a = NULL;
    enum err err = io_load_npy(&a, src, s);

    return err ? err : io_arrays_add(&out->arrays, "", a);
}

static enum err load_gguf(struct io_content *out, struct source *src, struct strm *s)
{
    struct gguf g = { .metadata = { 0 } };
    enum err err = gguf_load(&g, src, s);

    out->arrays = g.arrays;
    g.arrays = (struct io_arrays){ { 0 } };
    gguf_fini(&g);
    return err;
}

enum err io_content_load(struct io_content *out, const char *file, struct source *src,
                         struct strm *s)
{
    const char *extension = strrchr(file, '.');

    if (strcmp(extension, ".safetensors") == 0)
        return io_load_safetensors(&out->arrays, &out->texts, src, s);
    if (strcmp(extension, ".npy") == 0)
        return load_npy(out, src, s);
    if (strcmp(extension, ".npz") == 0)
        return io_load_npz(&out->arrays, src, s);
    return load_gguf(out, src, s);
}
