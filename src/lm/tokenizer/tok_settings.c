/* The files beside tokenizer.json. */
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "lm/tokenizer/tok.h"

#define PATH_SIZE 4096
#define TEMPLATE_MAX ((size_t)4 << 20)
#define EOS_MAX                                                                                    \
    1024 /* ids that end a text; each is looked for in the list, as is every new token */

static enum err join(char *out, const char *folder, const char *name)
{
    int n = snprintf(out, PATH_SIZE, "%s/%s", folder, name);

    return n > 0 && n < PATH_SIZE ? ERR_OK
                                  : err_set(ERR_ARG, "%.100s...: path is too long", folder);
}

/* A file that may be absent: *doc is then NULL. It holds an object. */
static enum err load_optional(struct json_doc **doc, const char *folder, const char *name)
{
    char path[PATH_SIZE];
    enum err err;

    TRY(join(path, folder, name));
    if (access(path, F_OK) == 0)
        TRY(json_load(doc, path));
    if (*doc && json_kind(json_root(*doc)) != JSON_OBJECT)
        err = json_fail(json_root(*doc), "expected an object");
out:
    return err;
}

/* ---- special tokens: "<s>" or {"content": "<s>", ...} ---- */

static enum err read_token(struct tok *t, struct json object, const char *key, int32_t *id)
{
    struct json v = json_find(object, key);
    const char *content = NULL;
    enum err err = ERR_OK;

    if (json_kind(v) == JSON_OBJECT)
        TRY(json_get_string(&content, v, "content"));
    else
        TRY(json_opt_string(&content, object, key));
    if (!content || *id >= 0)
        return ERR_OK;
    *id = tok_id(t, content);
    TRY(tok_add_special(t, content));
out:
    return err;
}

static enum err read_tokens(struct tok *t, struct json object)
{
    enum err err;

    TRY(read_token(t, object, "bos_token", &t->info.bos));
    TRY(read_token(t, object, "eos_token", &t->info.eos));
    TRY(read_token(t, object, "pad_token", &t->info.pad));
    TRY(read_token(t, object, "unk_token", &t->info.unk));
    JSON_EACH(v, json_find(object, "additional_special_tokens"))
    {
        const char *content = NULL;
        if (json_kind(v) == JSON_OBJECT)
            TRY(json_get_string(&content, v, "content"));
        else
            TRY(json_string(&content, v));
        TRY(tok_add_special(t, content));
    }
out:
    return err;
}

/* Where the settings say whether a text begins and ends with a token, they count and not the
 * post-processor of tokenizer.json. */
static enum err read_ends(struct tok *t, struct json config)
{
    bool bos = false, eos = false;
    enum err err;

    if (json_kind(json_find(config, "add_bos_token")) != JSON_BOOL &&
        json_kind(json_find(config, "add_eos_token")) != JSON_BOOL)
        return ERR_OK;
    TRY(json_opt_bool(&bos, config, "add_bos_token"));
    TRY(json_opt_bool(&eos, config, "add_eos_token"));
    t->prefix.n = t->suffix.n = 0;
    if (bos && t->info.bos >= 0)
        TRY(VEC_PUSH(&t->prefix, t->info.bos));
    if (eos && t->info.eos >= 0)
        TRY(VEC_PUSH(&t->suffix, t->info.eos));
out:
    return err;
}

/* ---- templates of chats ---- */

static enum err keep(char **slot, const char **out, const char *s)
{
    char *copy = mem_strdup(s);

    if (!copy)
        return ERR_NO_MEMORY;
    mem_free(*slot);
    *slot = copy;
    *out = copy;
    return ERR_OK;
}

static enum err keep_default(struct tok *t, const char *text)
{
    return keep(&t->chat_template, &t->info.chat_template, text);
}

static enum err keep_tools(struct tok *t, const char *text)
{
    return keep(&t->tool_template, &t->info.tool_template, text);
}

/* A text, or a list of {"name", "template"}: the one called default counts, and the one called
 * tool_use where there are tools. */
static enum err read_template(struct tok *t, struct json config)
{
    struct json v = json_find(config, "chat_template");
    const char *text = NULL, *name;
    enum err err = ERR_OK;

    if (json_kind(v) != JSON_ARRAY) {
        TRY(json_opt_string(&text, config, "chat_template"));
        return text ? keep_default(t, text) : ERR_OK;
    }
    JSON_EACH(entry, v)
    {
        TRY(json_get_string(&name, entry, "name"));
        TRY(json_get_string(&text, entry, "template"));
        if (strcmp(name, "default") == 0)
            TRY(keep_default(t, text));
        else if (strcmp(name, "tool_use") == 0)
            TRY(keep_tools(t, text));
    }
    t->info.templates_need_name = text && !t->info.chat_template;
out:
    return err;
}

/* *text: to be freed, or NULL where there is no such file. */
static enum err read_text_file(char **text, const char *folder, const char *name)
{
    char path[PATH_SIZE];
    size_t n;
    enum err err;

    *text = NULL;
    TRY(join(path, folder, name));
    err = file_read(text, &n, path, TEMPLATE_MAX);
    if (err == ERR_RUNTIME && errno == ENOENT)
        return ERR_OK;
out:
    return err;
}

/* The files, where there are some, replace what the settings say. */
static enum err read_template_file(struct tok *t, const char *folder)
{
    char *text = NULL, *tools = NULL;
    enum err err;

    TRY(read_text_file(&text, folder, "chat_template.jinja"));
    TRY(read_text_file(&tools, folder, "additional_chat_templates/tool_use.jinja"));
    if (!text && !tools)
        return ERR_OK;
    mem_free(t->chat_template);
    mem_free(t->tool_template);
    t->chat_template = t->tool_template = NULL;
    t->info.chat_template = t->info.tool_template = NULL;
    if (text)
        TRY(keep_default(t, text));
    if (tools)
        TRY(keep_tools(t, tools));
    t->info.templates_need_name = !text;
out:
    mem_free(text);
    mem_free(tools);
    return err;
}

/* ---- ids that end a text ---- */

/* What is beyond every vocabulary never comes, so it ends nothing. */
static enum err add_eos(struct tok *t, struct json v)
{
    int64_t id;
    enum err err;

    TRY(json_int(&id, v));
    if (id < 0)
        return json_fail(v, "%lld is no token id", (long long)id);
    for (size_t i = 0; i < t->info.eos_ids.n; i++)
        if (t->info.eos_ids.v[i] == id)
            return ERR_OK;
    if (t->info.eos_ids.n == EOS_MAX)
        return json_fail(v, "more than %d ids", EOS_MAX);
    if (id < VOCAB_MAX_ID)
        TRY(VEC_PUSH(&t->info.eos_ids, (int32_t)id));
out:
    return err;
}

/* A number or a list of them. */
static enum err read_eos(struct tok *t, struct json_doc *doc)
{
    struct json v = json_find(doc ? json_root(doc) : (struct json){ 0 }, "eos_token_id");
    enum err err = ERR_OK;

    if (json_kind(v) == JSON_ARRAY) {
        JSON_EACH(id, v)
        TRY(add_eos(t, id));
    } else if (json_kind(v) > JSON_NULL) {
        TRY(add_eos(t, v));
    }
out:
    return err;
}

/* generation_config.json says it best, config.json where that is silent; the tokenizer's own end of
 * text is one in any case. */
static enum err read_ids(struct tok *t, const char *folder)
{
    struct json_doc *config = NULL, *generation = NULL;
    const char *type = NULL;
    enum err err;

    TRY(load_optional(&config, folder, "config.json"));
    TRY(load_optional(&generation, folder, "generation_config.json"));
    TRY(read_eos(t, generation));
    if (!t->info.eos_ids.n)
        TRY(read_eos(t, config));
    bool known = t->info.eos < 0;
    for (size_t i = 0; i < t->info.eos_ids.n; i++)
        known = known || t->info.eos_ids.v[i] == t->info.eos;
    if (!known)
        TRY(VEC_PUSH(&t->info.eos_ids, t->info.eos));
    if (config)
        TRY(json_opt_string(&type, json_root(config), "model_type"));
    if (type)
        TRY(keep(&t->model_type, &t->info.model_type, type));
out:
    json_destroy(&config);
    json_destroy(&generation);
    return err;
}

enum err tok_read_settings(struct tok *t, const char *folder)
{
    struct json_doc *config = NULL, *map = NULL;
    enum err err;

    TRY(load_optional(&config, folder, "tokenizer_config.json"));
    TRY(load_optional(&map, folder, "special_tokens_map.json"));
    if (config) {
        TRY(read_tokens(t, json_root(config)));
        TRY(read_template(t, json_root(config)));
    }
    if (map)
        TRY(read_tokens(t, json_root(map)));
    if (config)
        TRY(read_ends(t, json_root(config)));
    TRY(read_template_file(t, folder));
    TRY(read_ids(t, folder));
out:
    json_destroy(&config);
    json_destroy(&map);
    return err;
}

enum err tok_load(struct tok **out, const char *folder)
{
    struct json_doc *doc = NULL;
    struct tok *t = NULL;
    char path[PATH_SIZE];
    enum err err;

    TRY(join(path, folder, "tokenizer.json"));
    TRY(json_load(&doc, path));
    TRY(tok_new(&t));
    TRY(tok_read(t, json_root(doc)));
    TRY(tok_read_settings(t, folder));
    TRY(tok_ready(t));
    *out = t;
    t = NULL;
out:
    json_destroy(&doc);
    tok_destroy(&t);
    return err;
}
