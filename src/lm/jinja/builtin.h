/* What templates find: filters, tests, functions, methods, and how they are called. */
#pragma once

#include "lm/jinja/value.h"

/* NULL if there is none of that name. */
const struct jfn *jin_filter(const struct jstr *name);
const struct jfn *jin_test(const struct jstr *name);
const struct jfn *jin_global(const struct jstr *name);
/* The method of a value's type; one without fn changes the value and is not to be called. */
const struct jfn *jin_method(struct jval self, const struct jstr *name);

/* The row of a table with this name, or NULL. */
const struct jfn *jin_row(const struct jfn *rows, size_t n, const struct jstr *name);

/* Binds the arguments to the function's parameters, and calls it. */
struct jval jin_call_fn(struct jin *j, const struct jfn *fn, struct jval self,
                        const struct jargs *args);
/* Calls whatever can be called. */
struct jval jin_call(struct jin *j, struct jval callee, const struct jargs *args);
struct jval jin_call_macro(struct jin *j, const struct jmacro *m, const struct jargs *args);
/* A recursive loop over other elements, as text. */
struct jval jin_call_loop(struct jin *j, const struct jloop *l, struct jval items);

/* obj.name and obj[key]; what is not there is undefined. */
struct jval jin_attr(struct jin *j, struct jval obj, struct jval name);
struct jval jin_item(struct jin *j, struct jval obj, struct jval key);
/* obj[from:to:step]; what is not given is none. */
struct jval jin_slice(struct jin *j, struct jval obj, const struct jval bounds[3]);

/* ---- what arguments are; they fail where one is of another type ---- */

/* The i-th parameter, or `other` where it was not given. */
static inline struct jval arg_or(const struct jargs *args, size_t i, struct jval other)
{
    return args->v[i].kind == J_MISSING ? other : args->v[i];
}

static inline bool arg_given(const struct jargs *args, size_t i)
{
    return args->v[i].kind != J_MISSING;
}

int64_t jin_want_int(struct jin *j, struct jval v);
/* Strings; others become one as str() makes it. */
const struct jstr *jin_want_text(struct jin *j, struct jval v);
/* Strings only. */
const struct jstr *jin_want_str(struct jin *j, struct jval v);

/* ---- text (methods.c, text_case.c, format.c): results are as safe as what they are made of ----
 */

struct jval jin_strip(struct jin *j, struct jval s, struct jval chars, bool left, bool right);
enum jcase { CASE_UPPER, CASE_LOWER, CASE_TITLE, CASE_CAPITAL, CASE_SWAP, CASE_FOLD };
struct jval jin_case(struct jin *j, struct jval s, enum jcase to);
/* most < 0: all of them. */
struct jval jin_replace(struct jin *j, struct jval s, const struct jstr *old,
                        const struct jstr *new, int64_t most);
/* Fills to a width of so many characters; share: how much of it goes to the left. */
struct jval jin_pad(struct jin *j, struct jval s, int64_t width, struct jval fill, char align);
/* HTML's special characters as entities, which is safe. */
struct jval jin_escape(struct jin *j, struct jval s);
/* '%s' % args, and '{}'.format(args). */
struct jval jin_percent(struct jin *j, struct jval format, struct jval args);
struct jval jin_format(struct jin *j, struct jval self, const struct jargs *args);
bool jin_is_printable(uint32_t cp);
bool jin_all(struct jval s, bool (*is)(uint32_t cp));
bool jin_is_lower(struct jval s);
bool jin_is_upper(struct jval s);

/* a op b with Python's rules. */
struct jval jin_add(struct jin *j, struct jval a, struct jval b);
struct jval jin_arithmetic(struct jin *j, int op, struct jval a, struct jval b);
struct jval jin_negate(struct jin *j, struct jval v);
/* Sorts in place, stable, by keys beside them. */
void jin_sort(struct jin *j, struct jval *keys, struct jval *values, size_t n, bool reverse);
