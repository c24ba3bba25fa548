/* Weights from the safetensors files of a model folder. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>

#include "io/io.h"
#include "lm/model/weights.h"
#include "lm/model/weights_list.h"

#define PATH_LENGTH 4096

struct folder_weights {
    struct lm_weights base;
    char *folder;
    struct weights_list list;
};

static enum err path_in(char *path, const char *folder, const char *file)
{
    if ((size_t)snprintf(path, PATH_LENGTH, "%s/%s", folder, file) >= PATH_LENGTH)
        return err_set(ERR_ARG, "the path is too long: %s/%s", folder, file);
    return ERR_OK;
}

static enum err read_file(struct io_arrays *out, const char *folder, const char *file,
                          struct strm *s)
{
    struct io_arrays found = { 0 };
    struct io_texts metadata = { 0 };
    struct source *src = NULL;
    char path[PATH_LENGTH];
    enum err err;

    TRY(path_in(path, folder, file));
    TRY(source_open(&src, path));
    TRY(io_load_safetensors(&found, &metadata, src, s));
    for (size_t i = 0; i < found.list.n; i++)
        TRY(io_arrays_add(out, found.list.v[i].name, arr_ref(found.list.v[i].arr)));
out:
    source_unref(&src);
    io_arrays_fini(&found);
    io_texts_fini(&metadata);
    return err;
}

/* ---- the files ---- */

struct names {
    VEC(char *) list; /* owned */
};

static bool is_model_file(const char *name)
{
    static const char begin[] = "model", end[] = ".safetensors";
    size_t n = strlen(name), most = sizeof begin - 1 + sizeof end - 1;

    return n >= most && strncmp(name, begin, sizeof begin - 1) == 0 &&
           strcmp(name + n - (sizeof end - 1), end) == 0;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static enum err add_name(struct names *out, const char *name)
{
    char *copy = mem_strdup(name);
    enum err err = copy ? VEC_PUSH(&out->list, copy) : ERR_NO_MEMORY;

    if (err)
        mem_free(copy);
    return err;
}

static enum err list_files(struct names *out, const char *folder)
{
    DIR *d = opendir(folder);
    enum err err = ERR_OK;

    if (!d)
        return err_set(ERR_RUNTIME, "%s: %s", folder, strerror(errno));
    for (struct dirent *e; (e = readdir(d)) != NULL;)
        if (is_model_file(e->d_name))
            TRY(add_name(out, e->d_name));
    if (out->list.n)
        qsort(out->list.v, out->list.n, sizeof *out->list.v, by_text);
    else
        err = err_set(ERR_ARG, "%s has no model.safetensors, nor any model*.safetensors", folder);
out:
    closedir(d);
    return err;
}

/* Every model*.safetensors, as mlx-lm does it: what an index says is of no concern. */
static enum err read_files(struct io_arrays *out, const char *folder, struct strm *s)
{
    struct names names = { 0 };
    enum err err;

    TRY(list_files(&names, folder));
    for (size_t i = 0; i < names.list.n; i++)
        TRY(read_file(out, folder, names.list.v[i], s));
out:
    for (size_t i = 0; i < names.list.n; i++)
        mem_free(names.list.v[i]);
    VEC_FINI(&names.list);
    return err;
}

/* ---- lookup ---- */

static bool folder_has(struct lm_weights *base, const char *name)
{
    return weights_list_find(&((struct folder_weights *)base)->list, name) != NULL;
}

static enum err folder_get(struct lm_weights *base, struct arr **out, const char *name,
                           const struct shp *shape)
{
    struct folder_weights *w = (struct folder_weights *)base;
    struct arr *a = weights_list_take(&w->list, name);

    (void)shape;
    if (!a)
        return err_set(ERR_ARG, "%s has no tensor %s, which the config asks for", w->folder, name);
    *out = arr_ref(a);
    return ERR_OK;
}

static enum err folder_check_read(struct lm_weights *base, const struct lm_config *c)
{
    struct folder_weights *w = (struct folder_weights *)base;

    return weights_list_check_read(&w->list, c, w->folder);
}

static void folder_destroy(struct lm_weights *base)
{
    struct folder_weights *w = (struct folder_weights *)base;

    weights_list_fini(&w->list);
    mem_free(w->folder);
    mem_free(w);
}

enum err weights_open_folder(struct lm_weights **out, const char *folder, struct strm *s)
{
    struct folder_weights *w = mem_alloc(sizeof *w);
    struct io_arrays arrays = { 0 };
    enum err err = ERR_NO_MEMORY;

    if (!w)
        return ERR_NO_MEMORY;
    w->base =
        (struct lm_weights){ folder_has, folder_get, NULL, folder_check_read, folder_destroy };
    if (!(w->folder = mem_strdup(folder)))
        goto out;
    TRY(read_files(&arrays, folder, s));
    TRY(weights_list_init(&w->list, &arrays, folder));
    *out = &w->base;
    w = NULL;
out:
    io_arrays_fini(&arrays);
    if (w)
        folder_destroy(&w->base);
    return err;
}
