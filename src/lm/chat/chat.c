#include "lm/chat/chat.h"

#include "base/json.h"
#include "base/mem.h"
#include "lm/chat/messages.h"
#include "lm/jinja/jinja.h"

/* What is written without a template. */
#define PLAIN                                                                                      \
    "{% for message in messages %}{{ message.content if message.content is string else "           \
    "message.content | map(attribute='text') | join('\\n') }}"                                     \
    "{% if not loop.last %}{{ '\\n' }}{% endif %}{% endfor %}"

enum { TOKEN_BOS, TOKEN_EOS, TOKEN_UNK, TOKEN_PAD, TOKENS };

struct chat {
    struct jinja *main, *tools; /* tools: NULL where it is the same */
    bool plain;
    char *tokens[TOKENS];
};

/* ---- life ---- */

void chat_destroy(struct chat **pc)
{
    struct chat *c = *pc;

    *pc = NULL;
    if (!c)
        return;
    jinja_destroy(&c->main);
    jinja_destroy(&c->tools);
    for (size_t i = 0; i < TOKENS; i++)
        mem_free(c->tokens[i]);
    mem_free(c);
}

static enum err parse(struct jinja **out, const char *text)
{
    char why[ERR_TEXT_MAX];
    enum err err = jinja_create(out, text, strlen(text));

    if (err != ERR_ARG)
        return err;
    memcpy(why, err_text(), sizeof why - 1);
    why[sizeof why - 1] = '\0';
    return err_set(ERR_ARG, "%.400s; --raw passes the text as it is", why);
}

enum err chat_create(struct chat **out, const struct chat_source *source)
{
    const char *const tokens[TOKENS] = { source->bos, source->eos, source->unk, source->pad };
    const char *text = source->template_text;
    struct chat *c = NULL;
    enum err err;

    if (source->needs_name)
        return err_set(ERR_ARG, "[chat] the model has several chat templates, and none of them is "
                                "called default; --raw passes the text as it is");
    if (!(c = mem_alloc(sizeof *c)))
        return ERR_NO_MEMORY;
    c->plain = !text || !*text;
    TRY(parse(&c->main, c->plain ? PLAIN : text));
    if (source->tool_template)
        TRY(parse(&c->tools, source->tool_template));
    err = ERR_NO_MEMORY;
    for (size_t i = 0; i < TOKENS; i++)
        if (tokens[i] && !(c->tokens[i] = mem_strdup(tokens[i])))
            goto out;
    *out = c;
    return ERR_OK;
out:
    chat_destroy(&c);
    return err;
}

static const char *token_of(const struct tok *t, int32_t id)
{
    return id >= 0 ? tok_token(t, id) : NULL;
}

enum err chat_create_for(struct chat **out, const struct tok *t)
{
    const struct tok_info *info = tok_info(t);

    return chat_create(out, &(struct chat_source){
                                .template_text = info->chat_template,
                                .tool_template = info->tool_template,
                                .needs_name = info->templates_need_name,
                                .bos = token_of(t, info->bos),
                                .eos = token_of(t, info->eos),
                                .unk = token_of(t, info->unk),
                                .pad = token_of(t, info->pad),
                            });
}

bool chat_is_plain(const struct chat *c)
{
    return c->plain;
}

/* ---- variables ---- */

/* A JSON string; what is not UTF-8 becomes U+FFFD. */
static enum err add_string(struct str *out, const char *s)
{
    static const char hex[] = "0123456789abcdef";
    struct str text = { 0 };
    enum err err;

    TRY(str_add_lossy(&text, s, strlen(s)));
    TRY(str_add_text(out, "\""));
    for (size_t i = 0; i < text.n; i++) {
        unsigned char c = (unsigned char)text.v[i];
        const char code[] = { '\\', 'u', '0', '0', hex[c >> 4], hex[c & 15] };
        if (c < 0x20) {
            TRY(str_add(out, code, sizeof code));
            continue;
        }
        if (c == '"' || c == '\\')
            TRY(str_add_text(out, "\\"));
        TRY(str_add(out, &text.v[i], 1));
    }
    err = str_add_text(out, "\"");
out:
    VEC_FINI(&text);
    return err;
}

/* "name": and a comma before it where that is not the first one. */
static enum err add_name(struct str *out, const char *name)
{
    enum err err;

    if (out->v[out->n - 1] != '{')
        TRY(str_add_text(out, ","));
    TRY(add_string(out, name));
    err = str_add_text(out, ":");
out:
    return err;
}

static enum err add_member(struct str *out, const char *name, const char *text)
{
    enum err err;

    if (!text)
        return ERR_OK;
    TRY(add_name(out, name));
    err = add_string(out, text);
out:
    return err;
}

/* A member whose value is JSON already. */
static enum err add_json(struct str *out, const char *name, const char *json)
{
    enum err err;

    TRY(add_name(out, name));
    err = str_add_text(out, json ? json : "null");
out:
    return err;
}

/* The members of an object. */
static enum err add_members(struct str *out, const char *object)
{
    struct json_doc *doc = NULL;
    const char *from, *to;
    enum err err;

    TRY(json_parse(&doc, object, strlen(object), "the settings of the chat template"));
    if (json_kind(json_root(doc)) != JSON_OBJECT)
        err = json_fail(json_root(doc), "expected an object");
    from = strchr(object, '{');
    to = strrchr(object, '}');
    if (err || !json_first(json_root(doc)).node)
        goto out;
    if (out->v[out->n - 1] != '{')
        TRY(str_add_text(out, ","));
    err = str_add(out, from + 1, (size_t)(to - from) - 1);
out:
    json_destroy(&doc);
    return err;
}

/* What comes later counts where a name comes twice. */
static enum err add_vars(struct str *out, const struct chat *c, const char *messages,
                         const struct chat_params *p)
{
    static const char *const names[TOKENS] = { "bos_token", "eos_token", "unk_token", "pad_token" };
    enum err err;

    TRY(str_add_text(out, "{"));
    for (size_t i = 0; i < TOKENS; i++)
        TRY(add_member(out, names[i], c->tokens[i]));
    if (p->more)
        TRY(add_members(out, p->more));
    if (p->thinking != CHAT_THINK_DEFAULT)
        TRY(add_json(out, "enable_thinking", p->thinking == CHAT_THINK_ON ? "true" : "false"));
    TRY(add_json(out, "tools", p->tools));
    TRY(add_json(out, "documents", p->documents));
    TRY(add_json(out, "add_generation_prompt", p->add_generation_prompt ? "true" : "false"));
    TRY(add_json(out, "messages", messages));
    err = str_add_text(out, "}");
out:
    return err;
}

/* ---- messages ---- */

static enum err add_message(struct str *out, const struct chat_msg *m)
{
    enum err err;

    TRY(str_add_text(out, "{"));
    TRY(add_member(out, "role", m->role));
    TRY(add_member(out, "content", m->content));
    TRY(add_member(out, "reasoning_content", m->reasoning));
    err = str_add_text(out, "}");
out:
    return err;
}

enum err chat_render_json(struct str *out, const struct chat *c, const char *messages,
                          const struct chat_params *params)
{
    const struct jinja *template = params->tools && c->tools ? c->tools : c->main;
    struct str vars = { 0 };
    enum err err;

    TRY(add_vars(&vars, c, messages, params));
    err = jinja_render(
        out, template,
        &(struct jinja_request){
            .vars = vars.v, .n_vars = vars.n, .prepare = messages_prepare, .now = params->now });
out:
    VEC_FINI(&vars);
    return err;
}

enum err chat_render(struct str *out, const struct chat *c, const struct chat_msg *msgs, size_t n,
                     const struct chat_params *params)
{
    struct str list = { 0 };
    enum err err;

    TRY(str_add_text(&list, "["));
    for (size_t i = 0; i < n; i++) {
        if (i)
            TRY(str_add_text(&list, ","));
        TRY(add_message(&list, &msgs[i]));
    }
    TRY(str_add_text(&list, "]"));
    TRY(VEC_PUSH(&list, '\0'));
    err = chat_render_json(out, c, list.v, params);
out:
    VEC_FINI(&list);
    return err;
}
