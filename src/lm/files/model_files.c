#include "lm/files/model_files.h"

#include <sys/stat.h>

#include "lm/files/hub.h"
#include "lm/gguf_model.h"

static enum err open_folder(struct model_files *p, const char *path, enum model_files_wanted wanted,
                            struct strm *s)
{
    enum err err = ERR_OK;

    /* The config first: a kind of model that is not supported explains all the rest. */
    if (wanted & MODEL_FILES_MODEL)
        TRY(config_load(&p->config, path));
    if (wanted & MODEL_FILES_TOKENIZER)
        TRY(tok_load(&p->tok, path));
    if (wanted & MODEL_FILES_MODEL)
        TRY(weights_open_folder(&p->weights, path, s));
out:
    return err;
}

static enum err open_file(struct model_files *p, const char *path, enum model_files_wanted wanted,
                          struct strm *s)
{
    struct gguf g = { .metadata = { 0 } };
    struct source *src = NULL;
    enum err err;

    TRY(source_open(&src, path));
    TRY(gguf_load(&g, src, s));
    if (wanted & MODEL_FILES_MODEL)
        TRY(gguf_config(&p->config, &g));
    if (wanted & MODEL_FILES_TOKENIZER)
        TRY(gguf_tokenizer(&p->tok, &g));
    if (wanted & MODEL_FILES_MODEL)
        TRY(weights_from_gguf(&p->weights, &g, path, s));
out:
    source_unref(&src);
    gguf_fini(&g);
    return err;
}

static enum err refuse(const char *path)
{
    struct str cache = { 0 };
    enum err err = ERR_OK;

    if (hub_is_name(path))
        TRY(hub_cache(&cache));
    err = err_set(ERR_ARG,
                  "there is no model %s%s%s; a model is a folder with config.json, "
                  "tokenizer.json and model*.safetensors, a .gguf file, or ORG/NAME that "
                  "`hf download ORG/NAME` has fetched",
                  path, cache.n ? ", and none of this name in " : "", cache.n ? cache.v : "");
out:
    VEC_FINI(&cache);
    return err;
}

enum err model_files_open(struct model_files *p, const char *path, enum model_files_wanted wanted,
                          struct strm *s)
{
    struct str downloaded = { 0 };
    struct stat st;
    enum err err = ERR_OK;

    *p = (struct model_files){ .tok = NULL };
    if (stat(path, &st) != 0) {
        if (hub_is_name(path))
            TRY(hub_find(&downloaded, path));
        if (!downloaded.n || stat(downloaded.v, &st) != 0) {
            err = refuse(path);
            goto out;
        }
        path = downloaded.v;
    }
    err = S_ISDIR(st.st_mode) ? open_folder(p, path, wanted, s) : open_file(p, path, wanted, s);
out:
    VEC_FINI(&downloaded);
    return err;
}

void model_files_fini(struct model_files *p)
{
    tok_destroy(&p->tok);
    weights_destroy(&p->weights);
    config_fini(&p->config);
}
