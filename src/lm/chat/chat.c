#include "lm/chat/chat.h"

#include <stdio.h>
#include <time.h>

#include "base/mem.h"
#include "lm/chat/chat_family.h"

#define IM_START "<|im_start|>"
#define IM_END "<|im_end|>\n"
#define ALTERNATE                                                                                  \
    "[chat] after the optional system message, conversation roles must alternate "                 \
    "user/assistant/user/assistant/..."

/* ---- life ---- */

void chat_destroy(struct chat **pc)
{
    struct chat *c = *pc;

    *pc = NULL;
    if (!c)
        return;
    VEC_FINI(&c->system);
    mem_free(c->bos);
    mem_free(c->eos);
    mem_free(c);
}

enum err chat_create_styled(struct chat **out, const struct chat_source *source,
                            const struct chat_style *style)
{
    struct chat *c = mem_alloc(sizeof *c);

    if (!c || !(c->bos = mem_strdup(source->bos ? source->bos : "")) ||
        !(c->eos = mem_strdup(source->eos ? source->eos : ""))) {
        chat_destroy(&c);
        return ERR_NO_MEMORY;
    }
    c->style = style;
    *out = c;
    return ERR_OK;
}

enum err chat_create(struct chat **out, const struct chat_source *source)
{
    const struct chat_style *style = chat_style("plain");
    struct str system = { 0 };
    enum err err = ERR_OK;

    if (source->template_text && source->template_text[0])
        TRY(chat_recognise(&style, source->template_text, &system));
    if (style)
        TRY(chat_create_styled(out, source, style));
    else
        err = err_set(ERR_UNSUPPORTED,
                      "the chat template%s%s is not known, and templates are not run; --raw passes "
                      "the text as it is",
                      source->model_type ? " of this model of type " : "",
                      source->model_type ? source->model_type : "");
    if (!err) {
        (*out)->system = system;
        system = (struct str){ 0 };
    }
out:
    VEC_FINI(&system);
    return err;
}

enum err chat_create_for(struct chat **out, const struct tok *t)
{
    const struct tok_info *info = tok_info(t);

    return chat_create(out, &(struct chat_source){
                                .template_text = info->chat_template,
                                .model_type = info->model_type,
                                .bos = info->bos >= 0 ? tok_token(t, info->bos) : NULL,
                                .eos = info->eos >= 0 ? tok_token(t, info->eos) : NULL,
                            });
}

enum chat_family chat_family(const struct chat *c)
{
    return c->style->family;
}

const char *chat_family_name(const struct chat *c)
{
    static const char *const names[] = {
        [CHAT_PLAIN] = "plain text", [CHAT_CHATML] = "ChatML",  [CHAT_QWEN3] = "Qwen3",
        [CHAT_LLAMA3] = "Llama 3",   [CHAT_LLAMA2] = "Llama 2", [CHAT_MISTRAL] = "Mistral",
    };

    return names[c->style->family];
}

/* ---- pieces of text ---- */

struct span {
    const char *s;
    size_t n;
};

static struct span whole(const char *s)
{
    return (struct span){ s, strlen(s) };
}

/* What Python's strip() takes away: white space, and the separators among the control characters.
 */
static bool is_py_space(uint32_t cp)
{
    return u8_is_space(cp) || (cp >= 0x1c && cp <= 0x1f);
}

static struct span trim(struct span t)
{
    while (t.n) {
        struct u8_step c = u8_step(t.s, t.n);
        if (c.kind != U8_CHAR || !is_py_space(c.cp))
            break;
        t.s += c.len;
        t.n -= c.len;
    }
    while (t.n) {
        size_t last = u8_last(t.s, t.n);
        struct u8_step c = u8_step(t.s + last, t.n - last);
        if (c.kind != U8_CHAR || !is_py_space(c.cp))
            break;
        t.n = last;
    }
    return t;
}

static struct span trim_line_feeds(struct span t, bool left, bool right)
{
    for (; left && t.n && t.s[0] == '\n'; t.n--)
        t.s++;
    while (right && t.n && t.s[t.n - 1] == '\n')
        t.n--;
    return t;
}

/* What is behind the last mark; all of it if there is none. */
static struct span behind(struct span t, const char *mark)
{
    size_t n = strlen(mark);

    for (size_t at = t.n; at >= n; at--)
        if (memcmp(t.s + at - n, mark, n) == 0)
            return (struct span){ t.s + at, t.n - at };
    return t;
}

static enum err add_span(struct str *out, struct span t)
{
    return str_add(out, t.s, t.n);
}

static bool is_role(const struct chat_msg *m, const char *role)
{
    return strcmp(m->role, role) == 0;
}

static enum err refuse_role(const struct chat *c, const struct chat_msg *m)
{
    return err_set(ERR_ARG, "[chat] the %s template has no role \"%.40s\" here",
                   chat_family_name(c), m->role);
}

struct dialog {
    struct str *out;
    const struct chat *c;
    const struct chat_msg *m;
    size_t n;
    const struct chat_params *params;
};

/* ---- ChatML and Qwen ---- */

static enum err add_im(const struct dialog *d, const char *role, struct span content)
{
    enum err err;

    TRY(str_add_text(d->out, IM_START));
    TRY(str_add_text(d->out, role));
    TRY(str_add_text(d->out, "\n"));
    TRY(add_span(d->out, content));
    TRY(str_add_text(d->out, IM_END));
out:
    return err;
}

/* Results of tools that follow each other share a turn of the user. */
static enum err add_tool(const struct dialog *d, size_t i)
{
    enum err err;

    if (i == 0 || !is_role(&d->m[i - 1], "tool"))
        TRY(str_add_text(d->out, IM_START "user"));
    TRY(str_add_text(d->out, "\n<tool_response>\n"));
    TRY(str_add_text(d->out, d->m[i].content));
    TRY(str_add_text(d->out, "\n</tool_response>"));
    if (i + 1 == d->n || !is_role(&d->m[i + 1], "tool"))
        TRY(str_add_text(d->out, IM_END));
out:
    return err;
}

static bool is_tool_response(const char *s)
{
    static const char open[] = "<tool_response>", close[] = "</tool_response>";
    size_t n = strlen(s);

    return strncmp(s, open, strlen(open)) == 0 && n >= strlen(close) &&
           strcmp(s + n - strlen(close), close) == 0;
}

/* Thoughts belong to an answer until the next question. */
static size_t last_question(const struct dialog *d)
{
    for (size_t i = d->n; i-- > 0;)
        if (is_role(&d->m[i], "user") && !is_tool_response(d->m[i].content))
            return i;
    return d->n - 1;
}

static struct span thoughts_of(struct span content)
{
    static const char close[] = "</think>";
    const char *end = memmem(content.s, content.n, close, strlen(close));

    content.n = (size_t)(end - content.s);
    content = behind(trim_line_feeds(content, false, true), "<think>");
    return trim_line_feeds(content, true, false);
}

static enum err add_answer(const struct dialog *d, size_t i, size_t question)
{
    const struct chat_msg *m = &d->m[i];
    struct span content = whole(m->content), thoughts = whole(m->reasoning ? m->reasoning : "");
    enum err err;

    if (!m->reasoning && strstr(m->content, "</think>")) {
        thoughts = thoughts_of(content);
        content = trim_line_feeds(behind(content, "</think>"), true, false);
    }
    if (i <= question || (i + 1 < d->n && !thoughts.n))
        return add_im(d, m->role, content);
    TRY(str_add_text(d->out, IM_START));
    TRY(str_add_text(d->out, m->role));
    TRY(str_add_text(d->out, "\n<think>\n"));
    TRY(add_span(d->out, trim_line_feeds(thoughts, true, true)));
    TRY(str_add_text(d->out, "\n</think>\n\n"));
    TRY(add_span(d->out, trim_line_feeds(content, true, false)));
    TRY(str_add_text(d->out, IM_END));
out:
    return err;
}

static enum err add_chatml(const struct dialog *d, size_t i, size_t question)
{
    const struct chat_msg *m = &d->m[i];
    const struct chat_style *style = d->c->style;

    if (style->tools && is_role(m, "tool"))
        return add_tool(d, i);
    if (style->tools && !is_role(m, "user") && !is_role(m, "system") && !is_role(m, "assistant"))
        return refuse_role(d->c, m);
    if (style->think == CHAT_KEEP_THOUGHTS && is_role(m, "assistant"))
        return add_answer(d, i, question);
    if (style->think == CHAT_STRIP_THOUGHTS && is_role(m, "assistant") && i + 1 < d->n)
        return add_im(d, m->role,
                      trim_line_feeds(behind(whole(m->content), "</think>"), true, false));
    return add_im(d, m->role, whole(m->content));
}

static enum err render_chatml(const struct dialog *d)
{
    const struct chat *c = d->c;
    size_t question = last_question(d);
    enum err err = ERR_OK;

    if (c->system.n && !is_role(&d->m[0], "system"))
        TRY(add_im(d, "system", (struct span){ c->system.v, c->system.n }));
    for (size_t i = 0; i < d->n; i++)
        TRY(add_chatml(d, i, question));
    if (!d->params->add_generation_prompt)
        return ERR_OK;
    TRY(str_add_text(d->out, IM_START "assistant\n"));
    if (c->style->opens_thought)
        TRY(str_add_text(d->out, "<think>\n"));
    else if (c->style->can_skip_thought && d->params->thinking == CHAT_THINK_OFF)
        TRY(str_add_text(d->out, "<think>\n\n</think>\n\n"));
out:
    return err;
}

/* ---- Llama 3 ---- */

static enum err add_header(const struct dialog *d, const char *role)
{
    enum err err;

    TRY(str_add_text(d->out, "<|start_header_id|>"));
    TRY(str_add_text(d->out, role));
    TRY(str_add_text(d->out, "<|end_header_id|>\n\n"));
out:
    return err;
}

static enum err add_date(const struct dialog *d)
{
    char today[64];
    time_t now = time(NULL);
    struct tm tm;

    if (d->params->date)
        return str_add_text(d->out, d->params->date);
    if (!d->c->style->date_is_today)
        return str_add_text(d->out, d->c->style->date);
    /* Names of months are English whatever the locale is. */
    static const char *const months[] = { "Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                          "Jul", "Aug", "Sep", "Oct", "Nov", "Dec" };
    localtime_r(&now, &tm);
    snprintf(today, sizeof today, "%02d %s %d", tm.tm_mday, months[tm.tm_mon], tm.tm_year + 1900);
    return str_add_text(d->out, today);
}

/* The dates, and the system message if the first one is that. */
static enum err add_preamble(const struct dialog *d, bool system)
{
    enum err err;

    TRY(add_header(d, "system"));
    TRY(str_add_text(d->out, "Cutting Knowledge Date: "));
    TRY(str_add_text(d->out, d->c->style->cutoff));
    TRY(str_add_text(d->out, "\nToday Date: "));
    TRY(add_date(d));
    TRY(str_add_text(d->out, "\n\n"));
    if (system)
        TRY(add_span(d->out, trim(whole(d->m[0].content))));
    TRY(str_add_text(d->out, "<|eot_id|>"));
out:
    return err;
}

static enum err render_llama3(const struct dialog *d)
{
    bool dated = d->c->style->cutoff != NULL;
    bool system = dated && is_role(&d->m[0], "system");
    enum err err;

    TRY(str_add_text(d->out, d->c->bos));
    if (dated)
        TRY(add_preamble(d, system));
    for (size_t i = system; i < d->n; i++) {
        if (dated && (is_role(&d->m[i], "tool") || is_role(&d->m[i], "ipython")))
            return refuse_role(d->c, &d->m[i]);
        TRY(add_header(d, d->m[i].role));
        TRY(add_span(d->out, trim(whole(d->m[i].content))));
        TRY(str_add_text(d->out, "<|eot_id|>"));
    }
    if (d->params->add_generation_prompt || d->c->style->always_prompt)
        TRY(add_header(d, "assistant"));
out:
    return err;
}

/* ---- Llama 2 and Mistral: questions and answers in turn ---- */

static enum err check_turns(const struct dialog *d, size_t from)
{
    for (size_t i = from; i < d->n; i++) {
        if (!is_role(&d->m[i], "user") && !is_role(&d->m[i], "assistant"))
            return refuse_role(d->c, &d->m[i]);
        if (is_role(&d->m[i], "user") != ((i - from) % 2 == 0))
            return err_set(ERR_ARG, ALTERNATE);
    }
    return ERR_OK;
}

static enum err add_llama2(const struct dialog *d, size_t i, bool system)
{
    struct str content = { 0 };
    bool first = system && i == 1;
    enum err err = ERR_OK;

    if (is_role(&d->m[i], "assistant")) {
        TRY(str_add_text(d->out, " "));
        TRY(add_span(d->out, trim(whole(d->m[i].content))));
        TRY(str_add_text(d->out, " "));
        TRY(str_add_text(d->out, d->c->eos));
        goto out;
    }
    if (first) {
        TRY(str_add_text(&content, "<<SYS>>\n"));
        TRY(str_add_text(&content, d->m[0].content));
        TRY(str_add_text(&content, "\n<</SYS>>\n\n"));
    }
    TRY(str_add_text(&content, d->m[i].content));
    TRY(str_add_text(d->out, d->c->bos));
    TRY(str_add_text(d->out, "[INST] "));
    if (content.n)
        TRY(add_span(d->out, trim((struct span){ content.v, content.n })));
    TRY(str_add_text(d->out, " [/INST]"));
out:
    VEC_FINI(&content);
    return err;
}

static enum err render_llama2(const struct dialog *d)
{
    bool system = is_role(&d->m[0], "system");
    enum err err;

    TRY(check_turns(d, system));
    for (size_t i = system; i < d->n; i++)
        TRY(add_llama2(d, i, system));
out:
    return err;
}

/* `system` goes before the question; NULL for none. */
static enum err add_question(const struct dialog *d, size_t i, const char *system)
{
    enum err err;

    TRY(str_add_text(d->out, d->c->style->user_open));
    if (system) {
        TRY(str_add_text(d->out, system));
        TRY(str_add_text(d->out, "\n\n"));
    }
    TRY(str_add_text(d->out, d->m[i].content));
    TRY(str_add_text(d->out, d->c->style->user_close));
out:
    return err;
}

static enum err add_reply(const struct dialog *d, size_t i)
{
    const struct chat_style *style = d->c->style;
    struct span content = whole(d->m[i].content);
    enum err err;

    if (style->reply_space)
        TRY(str_add_text(d->out, " "));
    TRY(add_span(d->out, style->reply_trim ? trim(content) : content));
    TRY(str_add_text(d->out, d->c->eos));
    if (style->reply_space_after)
        TRY(str_add_text(d->out, " "));
out:
    return err;
}

/* Every system message is a turn; roles need not alternate. */
static enum err render_mistral_turns(const struct dialog *d)
{
    enum err err = ERR_OK;

    for (size_t i = 0; i < d->n; i++) {
        if (is_role(&d->m[i], "user")) {
            TRY(add_question(d, i, NULL));
        } else if (is_role(&d->m[i], "assistant")) {
            TRY(add_reply(d, i));
        } else if (is_role(&d->m[i], "system")) {
            TRY(str_add_text(d->out, d->c->style->system_open));
            TRY(str_add_text(d->out, d->m[i].content));
            TRY(str_add_text(d->out, d->c->style->system_close));
        } else {
            return refuse_role(d->c, &d->m[i]);
        }
    }
out:
    return err;
}

static enum err render_mistral(const struct dialog *d)
{
    bool system = d->c->style->place != CHAT_SYSTEM_NONE && is_role(&d->m[0], "system");
    enum err err;

    TRY(str_add_text(d->out, d->c->bos));
    if (d->c->style->place == CHAT_SYSTEM_OWN)
        return render_mistral_turns(d);
    TRY(check_turns(d, system));
    for (size_t i = system; i < d->n; i++) {
        size_t holder = d->c->style->place == CHAT_SYSTEM_FIRST ? 1 : d->n - 1;
        if (is_role(&d->m[i], "user"))
            TRY(add_question(d, i, system && i == holder ? d->m[0].content : NULL));
        else
            TRY(add_reply(d, i));
    }
out:
    return err;
}

/* ---- no template ---- */

static enum err render_plain(const struct dialog *d)
{
    enum err err = ERR_OK;

    for (size_t i = 0; i < d->n; i++) {
        if (i)
            TRY(str_add_text(d->out, "\n"));
        TRY(str_add_text(d->out, d->m[i].content));
    }
out:
    return err;
}

enum err chat_render(struct str *out, const struct chat *c, const struct chat_msg *msgs, size_t n,
                     const struct chat_params *params)
{
    static enum err (*const render[])(const struct dialog *) = {
        [CHAT_PLAIN] = render_plain,   [CHAT_CHATML] = render_chatml,
        [CHAT_QWEN3] = render_chatml,  [CHAT_LLAMA3] = render_llama3,
        [CHAT_LLAMA2] = render_llama2, [CHAT_MISTRAL] = render_mistral,
    };
    const struct dialog d = { out, c, msgs, n, params };
    size_t was = out->n;

    if (!n)
        return err_set(ERR_ARG, "[chat] there are no messages");
    enum err err = render[c->style->family](&d);
    if (err != ERR_OK)
        out->n = was;
    return err;
}
