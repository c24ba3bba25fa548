#include "lm/files/hub.h"

#include <stdio.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/gate.h"
#include "base/mem.h"

/* A version is the hash of a commit. */
#define MAX_VERSION 64
/* Bytes of a file that holds one. */
#define MAX_REF 4096

bool hub_is_name(const char *model)
{
    const char *slash = strchr(model, '/');

    return slash && slash > model && slash[1] && !strchr(slash + 1, '/') && *model != '.' &&
           *model != '~' && strlen(model) < 200;
}

/* As huggingface_hub looks for it: the folder itself, or one below that of the tools' settings, or
 * below the user's cache folder. */
enum err hub_cache(struct str *path)
{
    static const struct {
        enum gate base;
        const char *below;
    } places[] = { { GATE_HF_HUB_CACHE, "" },
                   { GATE_HF_HOME, "/hub" },
                   { GATE_XDG_CACHE_HOME, "/huggingface/hub" },
                   { GATE_HOME, "/.cache/huggingface/hub" } };
    enum err err = ERR_OK;

    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        const char *base = gate_text(places[i].base);
        if (!base)
            continue;
        TRY(str_add_text(path, base));
        TRY(str_add_text(path, places[i].below));
        TRY(VEC_PUSH(path, '\0'));
        break;
    }
out:
    return err;
}

/* models--org--name of the cache. */
static enum err add_folder(struct str *path, const char *name)
{
    const char *slash = strchr(name, '/');
    enum err err;

    path->n--; /* the zero */
    TRY(str_add_text(path, "/models--"));
    TRY(str_add(path, name, (size_t)(slash - name)));
    TRY(str_add_text(path, "--"));
    err = str_add_text(path, slash + 1);
out:
    return err;
}

/* The version that refs/main names, "" if there is none. */
static enum err read_version(char *version, struct str *folder)
{
    static const char ref[] = "/refs/main";
    size_t n = folder->n, got;
    char *text = NULL;
    enum err err;

    version[0] = 0;
    TRY(str_add(folder, ref, sizeof ref));
    err = file_read(&text, &got, folder->v, MAX_REF);
    folder->n = n;
    if (err == ERR_OK)
        snprintf(version, MAX_VERSION + 1, "%.*s", (int)strspn(text, "0123456789abcdef"), text);
    else if (err == ERR_RUNTIME) /* what cannot be read names none */
        err = ERR_OK;
out:
    mem_free(text);
    return err;
}

enum err hub_find(struct str *path, const char *name)
{
    char version[MAX_VERSION + 1];
    struct str folder = { 0 };
    struct stat st;
    enum err err;

    TRY(hub_cache(&folder));
    if (!folder.n)
        goto out;
    TRY(add_folder(&folder, name));
    TRY(read_version(version, &folder));
    if (!version[0])
        goto out;
    TRY(str_add_text(&folder, "/snapshots/"));
    TRY(str_add(&folder, version, strlen(version) + 1));
    if (stat(folder.v, &st) == 0 && S_ISDIR(st.st_mode))
        err = str_add(path, folder.v, folder.n);
out:
    VEC_FINI(&folder);
    return err;
}
