#include "base/json.h"

#include <cjson/cJSON.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/text.h"

#define MAX_DEPTH 512
#define PATH_MAX_TEXT 160
#define EXACT_INT 9007199254740992.0 /* 2^53 */

struct json_doc {
    cJSON *root;
    char *name;
};

/* ---- what the parser itself does not look at ---- */

struct vet {
    const char *name;
    const unsigned char *text;
    size_t n, at;
    int depth;
};

static enum err fail_at(const struct vet *t, size_t at, const char *what)
{
    size_t line = 1, column = 1;

    for (size_t i = 0; i < at && i < t->n; i++) {
        column++;
        if (t->text[i] == '\n') {
            line++;
            column = 1;
        }
    }
    return err_set(ERR_ARG, "%s: line %zu, column %zu: %s", t->name, line, column, what);
}

/* Length of the UTF-8 sequence at p, 0 if it is not one (overlong forms and surrogates are not). */
static size_t utf8_length(const unsigned char *p, size_t left)
{
    static const struct {
        unsigned char first, last, low, high; /* of the first byte; of the second */
        uint8_t length;
    } forms[] = {
        { 0xc2, 0xdf, 0x80, 0xbf, 2 }, { 0xe0, 0xe0, 0xa0, 0xbf, 3 }, { 0xe1, 0xec, 0x80, 0xbf, 3 },
        { 0xed, 0xed, 0x80, 0x9f, 3 }, { 0xee, 0xef, 0x80, 0xbf, 3 }, { 0xf0, 0xf0, 0x90, 0xbf, 4 },
        { 0xf1, 0xf3, 0x80, 0xbf, 4 }, { 0xf4, 0xf4, 0x80, 0x8f, 4 },
    };

    for (size_t i = 0; i < ARRAY_LEN(forms); i++) {
        if (p[0] < forms[i].first || p[0] > forms[i].last)
            continue;
        if (left < forms[i].length || p[1] < forms[i].low || p[1] > forms[i].high)
            return 0;
        for (size_t k = 2; k < forms[i].length; k++)
            if ((p[k] & 0xc0) != 0x80)
                return 0;
        return forms[i].length;
    }
    return 0;
}

/* From the opening quote to behind the closing one. */
static enum err vet_string(struct vet *t)
{
    size_t i = t->at + 1;

    while (i < t->n && t->text[i] != '"') {
        const unsigned char *p = t->text + i;
        size_t step = 1;
        if (*p < 0x20)
            return fail_at(t, i, "control character in a string");
        if (*p == '\\') {
            step = 2; /* whatever is escaped, it is not the end of the string */
            if (t->n - i >= 6 && memcmp(p, "\\u0000", 6) == 0)
                return fail_at(t, i, "U+0000 in a string is not supported");
        } else if (*p >= 0x80) {
            step = utf8_length(p, t->n - i);
            if (!step)
                return fail_at(t, i, "not UTF-8");
        }
        i += step;
    }
    if (i >= t->n)
        return fail_at(t, t->at, "string without end");
    t->at = i + 1;
    return ERR_OK;
}

static enum err vet_other(struct vet *t)
{
    unsigned char c = t->text[t->at];

    if (c == '{' || c == '[') {
        if (++t->depth > MAX_DEPTH)
            return fail_at(t, t->at, "nested too deeply");
    } else if (c == '}' || c == ']') {
        t->depth--;
    } else if (c >= 0x80 || (c < 0x20 && !strchr("\t\n\r", c)) || !c) {
        return fail_at(t, t->at, "unexpected character");
    }
    t->at++;
    return ERR_OK;
}

static enum err vet(struct vet *t)
{
    enum err err = ERR_OK;

    while (t->at < t->n && err == ERR_OK)
        err = t->text[t->at] == '"' ? vet_string(t) : vet_other(t);
    return err;
}

/* ---- documents ---- */

/* cJSON notes the place of an error in a variable of the process, at every call. */
static pthread_mutex_t parser_lock = PTHREAD_MUTEX_INITIALIZER;

static enum err parse_tree(cJSON **out, const struct vet *t)
{
    const char *text = (const char *)t->text, *end = NULL;
    cJSON *root;

    pthread_mutex_lock(&parser_lock);
    root = cJSON_ParseWithLengthOpts(text, t->n, &end, false);
    pthread_mutex_unlock(&parser_lock);
    size_t at = end ? (size_t)(end - text) : 0;
    if (!root)
        return fail_at(t, at, "syntax error");
    while (at < t->n && strchr(" \t\r\n", text[at]))
        at++;
    if (at < t->n) {
        cJSON_Delete(root);
        return fail_at(t, at, "text after the end of the document");
    }
    *out = root;
    return ERR_OK;
}

enum err json_parse(struct json_doc **out, const char *text, size_t n, const char *name)
{
    struct vet t = { .name = name, .text = (const unsigned char *)text, .n = n };
    struct json_doc *doc = NULL;
    enum err err;

    if (n >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
        t.text += 3, t.n -= 3;
    TRY(vet(&t));
    doc = mem_alloc(sizeof *doc);
    if (!doc || !(doc->name = mem_strdup(name))) {
        err = ERR_NO_MEMORY;
        goto out;
    }
    TRY(parse_tree(&doc->root, &t));
    *out = doc;
    return ERR_OK;
out:
    json_destroy(&doc);
    return err;
}

enum err json_load(struct json_doc **out, const char *path)
{
    char *text = NULL;
    size_t n = 0;
    enum err err;

    TRY(file_read(&text, &n, path, JSON_MAX_BYTES));
    err = json_parse(out, text, n, path);
out:
    mem_free(text);
    return err;
}

void json_destroy(struct json_doc **pdoc)
{
    struct json_doc *doc = *pdoc;

    *pdoc = NULL;
    if (!doc)
        return;
    cJSON_Delete(doc->root);
    mem_free(doc->name);
    mem_free(doc);
}

/* ---- walking ---- */

struct json json_root(const struct json_doc *doc)
{
    return (struct json){ doc, doc->root };
}

enum json_kind json_kind(struct json v)
{
    const cJSON *node = v.node;

    if (!node)
        return JSON_ABSENT;
    switch (node->type & 0xff) {
    case cJSON_False:
    case cJSON_True:
        return JSON_BOOL;
    case cJSON_Number:
        return JSON_NUMBER;
    case cJSON_String:
        return JSON_STRING;
    case cJSON_Array:
        return JSON_ARRAY;
    case cJSON_Object:
        return JSON_OBJECT;
    default:
        return JSON_NULL;
    }
}

struct json json_first(struct json container)
{
    const cJSON *node = container.node;

    return (struct json){ container.doc, node ? node->child : NULL };
}

struct json json_next(struct json v)
{
    const cJSON *node = v.node;

    return (struct json){ v.doc, node ? node->next : NULL };
}

const char *json_key(struct json member)
{
    const cJSON *node = member.node;

    return node ? node->string : NULL;
}

size_t json_count(struct json container)
{
    size_t n = 0;

    JSON_EACH(v, container)
    n++;
    return n;
}

struct json json_find(struct json object, const char *key)
{
    struct json found = { object.doc, NULL };

    if (json_kind(object) != JSON_OBJECT)
        return found;
    JSON_EACH(v, object)
    if (strcmp(json_key(v), key) == 0)
        found = v;
    return found;
}

/* ---- errors with a path ---- */

struct path {
    char text[PATH_MAX_TEXT];
    size_t n;
};

static void path_add(struct path *p, struct json v, size_t index)
{
    const char *key = json_key(v);
    int n = key ? snprintf(p->text + p->n, sizeof p->text - p->n, "%s%s", p->n ? "." : "", key)
                : snprintf(p->text + p->n, sizeof p->text - p->n, "[%zu]", index);

    p->n = MIN(p->n + (size_t)MAX(n, 0), sizeof p->text - 1);
}

/* Nodes do not know their parents; after an error there is time to search. Depth is limited. */
static bool path_find(struct path *p, struct json from, const void *node)
{
    size_t index = 0, length = p->n;

    if (from.node == node)
        return true;
    JSON_EACH(v, from)
    {
        path_add(p, v, index++);
        if (path_find(p, v, node))
            return true;
        p->n = length;
    }
    p->text[length] = '\0';
    return false;
}

static void path_of(struct path *p, struct json v)
{
    memset(p, 0, sizeof *p);
    path_find(p, json_root(v.doc), v.node);
}

enum err json_fail(struct json v, const char *fmt, ...)
{
    char what[ERR_TEXT_MAX];
    struct path p;
    va_list args;

    va_start(args, fmt);
    vsnprintf(what, sizeof what, fmt, args);
    va_end(args);
    path_of(&p, v);
    return err_set(ERR_ARG, "%s: %s%s%s", v.doc->name, p.text, p.n ? ": " : "", what);
}

static const char *kind_name(enum json_kind kind)
{
    static const char *const names[] = {
        [JSON_ABSENT] = "nothing",   [JSON_NULL] = "null",       [JSON_BOOL] = "a boolean",
        [JSON_NUMBER] = "a number",  [JSON_STRING] = "a string", [JSON_ARRAY] = "an array",
        [JSON_OBJECT] = "an object",
    };

    return names[kind];
}

static enum err want(struct json v, enum json_kind kind)
{
    if (json_kind(v) == kind)
        return ERR_OK;
    return json_fail(v, "expected %s, found %s", kind_name(kind), kind_name(json_kind(v)));
}

/* ---- typed values ---- */

enum err json_string(const char **out, struct json v)
{
    enum err err = want(v, JSON_STRING);

    if (err == ERR_OK)
        *out = ((const cJSON *)v.node)->valuestring;
    return err;
}

enum err json_bool(bool *out, struct json v)
{
    enum err err = want(v, JSON_BOOL);

    if (err == ERR_OK)
        *out = (((const cJSON *)v.node)->type & 0xff) == cJSON_True;
    return err;
}

enum err json_number(double *out, struct json v)
{
    enum err err = want(v, JSON_NUMBER);

    if (err == ERR_OK)
        *out = ((const cJSON *)v.node)->valuedouble;
    return err;
}

enum err json_int(int64_t *out, struct json v)
{
    double d = json_kind(v) == JSON_NUMBER ? ((const cJSON *)v.node)->valuedouble : 0.5;

    if (json_kind(v) != JSON_NUMBER)
        return json_fail(v, "expected an integer, found %s", kind_name(json_kind(v)));
    if (!(d >= -EXACT_INT && d <= EXACT_INT) || d != (double)(int64_t)d)
        return json_fail(v, "expected an integer, found %g", d);
    *out = (int64_t)d;
    return ERR_OK;
}

enum err json_get(struct json *out, struct json object, const char *key, enum json_kind kind)
{
    struct json v = json_find(object, key);
    enum err err;

    TRY(want(object, JSON_OBJECT));
    if (!v.node)
        return json_fail(object, "\"%s\" is missing", key);
    TRY(want(v, kind));
    *out = v;
out:
    return err;
}

enum err json_opt(struct json *out, struct json object, const char *key, enum json_kind kind)
{
    struct json v = json_find(object, key);
    enum err err = ERR_OK;

    if (json_kind(v) <= JSON_NULL)
        return ERR_OK;
    TRY(want(v, kind));
    *out = v;
out:
    return err;
}

#define GETTERS(type, ctype, kind)                                                                 \
    enum err json_get_##type(ctype *out, struct json object, const char *key)                      \
    {                                                                                              \
        struct json v;                                                                             \
        enum err err = json_get(&v, object, key, kind);                                            \
                                                                                                   \
        return err == ERR_OK ? json_##type(out, v) : err;                                          \
    }                                                                                              \
                                                                                                   \
    enum err json_opt_##type(ctype *out, struct json object, const char *key)                      \
    {                                                                                              \
        struct json v = json_find(object, key);                                                    \
                                                                                                   \
        return json_kind(v) <= JSON_NULL ? ERR_OK : json_##type(out, v);                           \
    }

GETTERS(string, const char *, JSON_STRING)
GETTERS(bool, bool, JSON_BOOL)
GETTERS(number, double, JSON_NUMBER)
GETTERS(int, int64_t, JSON_NUMBER)

/* ---- writing ---- */

static bool is_utf8(const char *s)
{
    const unsigned char *p = (const unsigned char *)s;
    size_t left = strlen(s), step;

    for (; left; p += step, left -= step)
        if (!(step = *p < 0x80 ? 1 : utf8_length(p, left)))
            return false;
    return true;
}

enum err json_add_string(struct text *t, const char *s)
{
    enum err err;

    if (!is_utf8(s))
        return err_set(ERR_ARG, "a text is not UTF-8");
    TRY(text_add(t, "\""));
    for (; *s; s++)
        if (*s == '"' || *s == '\\')
            TRY(text_add(t, "\\%c", *s));
        else if ((unsigned char)*s < 0x20)
            TRY(text_add(t, "\\u%04x", (unsigned)*s));
        else
            TRY(text_add(t, "%c", *s));
    err = text_add(t, "\"");
out:
    return err;
}
