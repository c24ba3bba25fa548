/* Which family a template belongs to, and its details. */
#include "lm/chat_family.h"

#include "core/mem.h"

static bool has(const char *text, const char *what)
{
    return strstr(text, what) != NULL;
}

/* ---- literals inside of a template ---- */

/* Appends what a literal says, up to `end` or the closing quote: line feeds may be escaped. */
static enum err add_literal(struct str *out, const char *s, const char *end)
{
    enum err err = ERR_OK;

    for (size_t n = strlen(end); *s && *s != '\'' && *s != '"' && strncmp(s, end, n) != 0; s++) {
        char c = *s;
        if (c == '\\' && s[1]) {
            s++;
            c = *s == 'n' ? '\n' : *s == 't' ? '\t' : *s;
        }
        TRY(str_add(out, &c, 1));
    }
out:
    return err;
}

/* Behind a line feed, written as such or escaped; NULL if there is none. */
static const char *skip_line_feed(const char *s)
{
    if (*s == '\n')
        return s + 1;
    return s[0] == '\\' && s[1] == 'n' ? s + 2 : NULL;
}

/* <|im_start|>system, a text and <|im_end|> in one literal: the system message where there is none.
 */
static enum err read_default_system(struct chat *c, const char *text)
{
    static const char open[] = "<|im_start|>system";
    enum err err = ERR_OK;

    for (const char *s = strstr(text, open); s; s = strstr(s + 1, open)) {
        const char *content = skip_line_feed(s + strlen(open));
        if (!content || *content == '\'' || *content == '"')
            continue;
        TRY(add_literal(&c->system, content, "<|im_end|>"));
        c->has_system = true;
        break;
    }
out:
    return err;
}

/* ---- ChatML ---- */

/* The generation prompt that goes on with a thought. */
static bool opens_thought(const char *text)
{
    return has(text, "assistant\\n<think>\\n'") || has(text, "assistant\n<think>\n'");
}

/* Qwen's templates that know thoughts. */
static bool recognise_thoughts(struct chat *c, const char *text)
{
    bool switched = has(text, "enable_thinking");

    c->opens_thought = opens_thought(text);
    if (has(text, "last_query_index") && has(text, "reasoning_content")) {
        c->think = CHAT_KEEP_THOUGHTS;
        c->can_skip_thought = switched;
        return !has(text, "enable_thinking is true");
    }
    c->think = CHAT_STRIP_THOUGHTS;
    return has(text, "split('</think>')[-1]") && c->opens_thought && !switched;
}

static enum err recognise_chatml(struct chat *c, const char *text, bool *known)
{
    /* Words of templates that do more than is done here. */
    static const char *const foreign[] = { "raise_exception", "strftime_now", "trim",
                                           "strip(",          "think",        "loop_messages" };

    *known =
        has(text, "'<|im_start|>' + message") && !has(text, "macro") && !has(text, "bos_token");
    c->family = CHAT_CHATML;
    c->tools = has(text, "<tool_response>");
    if (has(text, "</think>")) {
        c->family = CHAT_QWEN3;
        *known = *known && recognise_thoughts(c, text);
        return ERR_OK;
    }
    for (size_t i = 0; i < ARRAY_LEN(foreign); i++)
        *known = *known && !has(text, foreign[i]);
    return read_default_system(c, text);
}

/* ---- Llama 3 ---- */

static enum err recognise_llama3(struct chat *c, const char *text, bool *known)
{
    static const char cutoff[] = "Cutting Knowledge Date: ", set_date[] = "set date_string = \"";
    const char *s = strstr(text, cutoff), *date = strstr(text, set_date);
    enum err err = ERR_OK;

    c->family = CHAT_LLAMA3;
    c->always_prompt = !has(text, "add_generation_prompt");
    c->dated = s != NULL;
    *known = has(text, "message['content'] | trim + '<|eot_id|>'") && !has(text, "macro") &&
             !has(text, "filter ") && (!c->dated || date);
    if (!c->dated || !date)
        return ERR_OK;
    TRY(add_literal(&c->cutoff, s + strlen(cutoff), "\\n"));
    TRY(add_literal(&c->date, date + strlen(set_date), "\""));
    c->date_is_today = has(text, "strftime_now");
out:
    return err;
}

/* ---- [INST] ---- */

/* The literal around a mark: what is between its quotes, which may be spaces too. */
static enum err read_mark(struct str *out, const char *text, const char *mark)
{
    const char *s = strstr(text, mark), *start = s;
    enum err err = ERR_OK;

    if (!s)
        return ERR_OK;
    while (start > text && start[-1] == ' ')
        start--;
    if (start == text || (start[-1] != '\'' && start[-1] != '"'))
        start = s; /* text stands before it in the same literal */
    TRY(add_literal(out, start, "\n"));
out:
    return err;
}

static bool quoted_space_before(const char *text, const char *s)
{
    return s - text >= 6 &&
           (strncmp(s - 6, "' ' + ", 6) == 0 || strncmp(s - 6, "\" \" + ", 6) == 0);
}

/* message['content'] + eos_token, with what stands around it. */
static bool read_reply(struct chat *c, const char *text)
{
    static const char *const forms[] = { "message['content']", "message[\"content\"]" };

    for (size_t i = 0; i < ARRAY_LEN(forms); i++)
        for (const char *s = strstr(text, forms[i]); s; s = strstr(s + 1, forms[i])) {
            const char *rest = s + strlen(forms[i]);
            c->reply_trim = strncmp(rest, "|trim", 5) == 0;
            rest += c->reply_trim ? 5 : 0;
            if (strncmp(rest, " + eos_token", 12) != 0)
                continue;
            c->reply_space = quoted_space_before(text, s);
            c->reply_space_after = strncmp(rest + 12, " + ' '", 6) == 0;
            return true;
        }
    return false;
}

static enum err recognise_mistral(struct chat *c, const char *text, bool *known)
{
    static const char *const foreign[] = { "macro", "strftime_now", "default_system_message",
                                           "block['type']", "strip(" };
    enum err err;

    c->family = CHAT_MISTRAL;
    TRY(read_mark(&c->user_open, text, "[INST]"));
    TRY(read_mark(&c->user_close, text, "[/INST]"));
    TRY(read_mark(&c->system_open, text, "[SYSTEM_PROMPT]"));
    TRY(read_mark(&c->system_close, text, "[/SYSTEM_PROMPT]"));
    if (c->system_open.n)
        c->place = CHAT_SYSTEM_OWN;
    else if (has(text, "loop.last and system_message is defined"))
        c->place = CHAT_SYSTEM_LAST;
    else if (has(text, "loop.first and system_message is defined"))
        c->place = CHAT_SYSTEM_FIRST;
    *known = c->user_close.n && read_reply(c, text);
    *known = *known && (c->place || !has(text, "'system'"));
    for (size_t i = 0; i < ARRAY_LEN(foreign); i++)
        *known = *known && !has(text, foreign[i]);
out:
    return err;
}

static enum err recognise_llama2(struct chat *c, const char *text, bool *known)
{
    c->family = CHAT_LLAMA2;
    *known = has(text, "bos_token + '[INST] ' + content.strip() + ' [/INST]'") &&
             has(text, "content.strip() + ' ' + eos_token") && !has(text, "macro");
    return ERR_OK;
}

enum err chat_recognise(struct chat *c, const char *text, bool *known)
{
    *known = false;
    if (has(text, "<|im_start|>"))
        return recognise_chatml(c, text, known);
    if (has(text, "<|start_header_id|>"))
        return recognise_llama3(c, text, known);
    if (has(text, "<<SYS>>"))
        return recognise_llama2(c, text, known);
    if (has(text, "[INST]"))
        return recognise_mistral(c, text, known);
    return ERR_OK;
}
