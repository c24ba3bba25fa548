#include "lm/chat/messages.h"

static void refuse(struct jin *j, size_t i, const char *what, const struct jstr *name)
{
    jin_fail_with(j, err_set(ERR_ARG, "[chat] message %zu %s%.*s", i + 1, what,
                             name ? (int)MIN(name->n, (size_t)80) : 0, name ? name->v : ""));
}

/* Parts of text only. */
static void check_parts(struct jin *j, size_t i, const struct jlist *parts)
{
    for (size_t k = 0; k < parts->n && jin_ok(j); k++) {
        struct jval *type =
            parts->v[k].kind == J_DICT ? jd_find_text(j, parts->v[k].d, "type") : NULL;
        if (parts->v[k].kind != J_DICT)
            refuse(j, i, "has a part that is no object", NULL);
        else if (type && is_str(*type) && !jstr_is(type->s, "text"))
            refuse(j, i, "has a part that is no text, which models cannot read here: ", type->s);
    }
}

/* A copy without members that are null; with thoughts, those first, as templates may print all of
 * it.
 */
static struct jval copy(struct jin *j, const struct jdict *message, const struct jval *thoughts)
{
    struct jval copy = jv_dict(j, J_DICT);

    if (jin_ok(j) && thoughts)
        jd_set(j, copy.d, jv_text(j, "thinking"), *thoughts);
    for (size_t i = 0; i < message->n && jin_ok(j); i++)
        if (message->v[i].value.kind != J_NONE)
            jd_set(j, copy.d, message->v[i].key, message->v[i].value);
    if (jin_ok(j) && thoughts)
        jd_set(j, copy.d, jv_text(j, "reasoning_content"), *thoughts);
    return copy;
}

static struct jval prepare(struct jin *j, size_t i, struct jval message)
{
    static const char *const names[] = { "reasoning_content", "thinking", "reasoning" };
    struct jval *v;

    if (message.kind != J_DICT) {
        refuse(j, i, "is no object", NULL);
        return message;
    }
    v = jd_find_text(j, message.d, "content");
    if (v && v->kind == J_LIST)
        check_parts(j, i, v->l);
    for (size_t k = 0; k < ARRAY_LEN(names) && jin_ok(j); k++)
        if ((v = jd_find_text(j, message.d, names[k])) && v->kind != J_NONE)
            return copy(j, message.d, v);
    return copy(j, message.d, NULL);
}

void messages_prepare(struct jin *j, struct jdict *vars)
{
    struct jval *messages = jd_find_text(j, vars, "messages"), list;

    if (!jin_ok(j) || !messages || messages->kind != J_LIST) {
        jin_fail_with(j, err_set(ERR_ARG, "[chat] the messages are no list"));
        return;
    }
    if (!messages->l->n)
        jin_fail_with(j, err_set(ERR_ARG, "[chat] there are no messages"));
    list = jv_list(j, J_LIST, messages->l->n);
    for (size_t i = 0; i < messages->l->n && jin_ok(j); i++) {
        struct jval m = prepare(j, i, messages->l->v[i]);
        if (jin_ok(j))
            jv_push(j, list, m);
    }
    if (jin_ok(j))
        *messages = list;
}
