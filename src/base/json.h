/* JSON documents, read only: config.json, tokenizer.json, the header of a safetensors file.
 *
 * A document owns all its values; a `struct json` is a small handle into it, passed by value and
 * valid as long as the document. Members and elements keep the order of the text and are walked
 * with json_first and json_next; looking one up by key is a linear search, so large objects are
 * walked and not searched. Of members with the same key the last one counts for a search; a walk
 * sees them all.
 *
 * Errors are ERR_ARG (ERR_RUNTIME for a file that cannot be read) and name document and place:
 * "config.json: quantization.bits: expected an integer, found a string".
 *
 * Refused, besides broken syntax: text that is not UTF-8, the character U+0000, and more than 512
 * levels of nesting. Thread-safety: documents are immutable; different threads may read one. */
#pragma once

#include "base/common.h"
#include "base/err.h"

struct json_doc;

enum json_kind {
    JSON_ABSENT, /* no such member, or past the last element */
    JSON_NULL,
    JSON_BOOL,
    JSON_NUMBER,
    JSON_STRING,
    JSON_ARRAY,
    JSON_OBJECT,
};

struct json {
    const struct json_doc *doc;
    const void *node;
};

/* Parses n bytes; name is what errors call the document. The text is not kept. */
MUST_CHECK enum err json_parse(struct json_doc **out, const char *text, size_t n, const char *name);
/* Files beyond this are no settings, indexes or vocabularies; a document takes several times as
 * much memory as its text. */
#define JSON_MAX_BYTES ((size_t)256 << 20)
/* Parses a regular file of at most that size; errors call it by its path. */
MUST_CHECK enum err json_load(struct json_doc **out, const char *path);
void json_destroy(struct json_doc **doc);

struct json json_root(const struct json_doc *doc);
enum json_kind json_kind(struct json v);

/* Walks the members of an object or the elements of an array; others have none. Ends with a value
 * of kind JSON_ABSENT. */
struct json json_first(struct json container);
struct json json_next(struct json v);
#define JSON_EACH(v, container)                                                                    \
    for (struct json v = json_first(container); (v).node; v = json_next(v))

/* The key of a member, NULL for anything else. Borrowed from the document. */
const char *json_key(struct json member);
/* Number of members or elements; counts them. */
size_t json_count(struct json container);

/* ---- typed values: an error names the place if v is of another kind ---- */

MUST_CHECK enum err json_string(const char **out, struct json v);
MUST_CHECK enum err json_bool(bool *out, struct json v);
MUST_CHECK enum err json_number(double *out, struct json v);
/* A whole number of at most 2^53 in magnitude, which a double holds exactly. */
MUST_CHECK enum err json_int(int64_t *out, struct json v);

/* ---- members ---- */

/* The member, or a value of kind JSON_ABSENT. */
struct json json_find(struct json object, const char *key);
/* The member, which must be there and of this kind. */
MUST_CHECK enum err json_get(struct json *out, struct json object, const char *key,
                             enum json_kind kind);
MUST_CHECK enum err json_get_string(const char **out, struct json object, const char *key);
MUST_CHECK enum err json_get_bool(bool *out, struct json object, const char *key);
MUST_CHECK enum err json_get_number(double *out, struct json object, const char *key);
MUST_CHECK enum err json_get_int(int64_t *out, struct json object, const char *key);

/* Optional members: one that is missing or null leaves *out as it is. */
MUST_CHECK enum err json_opt(struct json *out, struct json object, const char *key,
                             enum json_kind kind);
MUST_CHECK enum err json_opt_string(const char **out, struct json object, const char *key);
MUST_CHECK enum err json_opt_bool(bool *out, struct json object, const char *key);
MUST_CHECK enum err json_opt_number(double *out, struct json object, const char *key);
MUST_CHECK enum err json_opt_int(int64_t *out, struct json object, const char *key);

/* Writes s as a JSON string. ERR_ARG if it is not UTF-8, and then nothing is written. */
struct text;
MUST_CHECK enum err json_add_string(struct text *t, const char *s);

/* Sets an error that names the document and the place of v: "tokenizer.json: model.type: ...". */
enum err json_fail(struct json v, const char *fmt, ...) PRINTF_LIKE(2, 3);
