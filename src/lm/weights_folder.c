/* Weights from the safetensors files of a model folder. */
#include <stdio.h>
#include <sys/stat.h>

#include "core/json.h"
#include "io/io.h"
#include "lm/weights.h"
#include "lm/weights_list.h"

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

/* ---- shards ---- */

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The index names the file of every tensor; each file is read once. */
static enum err read_shards(struct io_arrays *out, const char *folder, const char *index,
                            struct strm *s)
{
    VEC(const char *) files = { 0 };
    struct json_doc *doc = NULL;
    struct json map;
    enum err err;

    TRY(json_load(&doc, index));
    TRY(json_get(&map, json_root(doc), "weight_map", JSON_OBJECT));
    JSON_EACH(entry, map)
    {
        const char *file;
        TRY(json_string(&file, entry));
        if (strchr(file, '/')) {
            err = json_fail(entry, "'%s' is not a file of the folder", file);
            goto out;
        }
        TRY(VEC_PUSH(&files, file));
    }
    if (files.n)
        qsort(files.v, files.n, sizeof *files.v, by_text);
    for (size_t i = 0; i < files.n; i++)
        if (i == 0 || strcmp(files.v[i], files.v[i - 1]) != 0)
            TRY(read_file(out, folder, files.v[i], s));
out:
    VEC_FINI(&files);
    json_destroy(&doc);
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
    char index[PATH_LENGTH];
    struct stat st;
    enum err err = ERR_NO_MEMORY;

    if (!w)
        return ERR_NO_MEMORY;
    w->base =
        (struct lm_weights){ folder_has, folder_get, NULL, folder_check_read, folder_destroy };
    if (!(w->folder = mem_strdup(folder)))
        goto out;
    TRY(path_in(index, folder, "model.safetensors.index.json"));
    TRY(stat(index, &st) == 0 ? read_shards(&arrays, folder, index, s)
                              : read_file(&arrays, folder, "model.safetensors", s));
    TRY(weights_list_init(&w->list, &arrays, folder));
    *out = &w->base;
    w = NULL;
out:
    io_arrays_fini(&arrays);
    if (w)
        folder_destroy(&w->base);
    return err;
}
