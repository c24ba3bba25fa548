/* Values of templates, and the state of a rendering.
 *
 * Values live in the arena of the rendering (or of the template, if they are constants) and are
 * never freed one by one. An error is kept in the state, with the line it belongs to: functions
 * that return a value return J_NONE then, and whoever loops looks at jin_ok. The first error stays.
 */
#pragma once

#include "base/mem.h"
#include "lm/jinja/jinja.h"

struct jin;
struct jnode;

enum jkind {
    J_MISSING, /* an argument that was not given */
    J_UNDEFINED,
    J_NONE,
    J_BOOL,
    J_INT,
    J_FLOAT,
    J_STR,
    J_LIST,
    J_TUPLE,
    J_DICT,
    J_VIEW,  /* of a dict's keys, values or items */
    J_RANGE, /* from range() */
    J_ITER,  /* Python's generators: elements that can be taken once */
    J_SPACE, /* from namespace() */
    J_MACRO,
    J_FUNCTION,
    J_METHOD, /* a function with its self */
    J_LOOP,
    J_CYCLER,
    J_JOINER,
    J_KINDS
};

/* Bytes that strings share; a string that ends where they end can grow in place. */
struct jbuf {
    char *v;
    size_t used, cap;
};

struct jstr {
    const char *v; /* UTF-8, not terminated */
    size_t n;      /* bytes */
    struct jbuf *buf;
};

struct jval {
    enum jkind kind;
    bool safe; /* a string that is Markup: what is added to it is escaped */
    union {
        bool b;
        int64_t i;
        double f;
        struct jstr *s;
        struct jlist *l; /* lists, tuples, iterators */
        struct jdict *d; /* dicts, namespaces */
        struct jview *view;
        struct jrange *range;
        struct jmacro *macro;
        const struct jfn *fn;
        struct jmethod *method;
        struct jloop *loop;
        struct jcycle *cycle;
        struct jundef *undef;
    };
};

struct jlist {
    struct jval *v;
    size_t n, cap;
};

struct jpair {
    struct jval key, value;
    uint64_t hash;
};

struct jdict {
    struct jpair *v;
    size_t n, cap;
};

enum jview_of { VIEW_KEYS, VIEW_VALUES, VIEW_ITEMS };

struct jview {
    struct jdict *d;
    enum jview_of of;
};

struct jrange {
    int64_t from, to, step, n;
};

struct jmacro {
    const struct jnode *node; /* of a macro, or of a call block */
    struct jscope *scope;
};

/* Why something is undefined. */
struct jundef {
    const char *owner; /* kind of what has no such attribute or element; NULL: a variable */
    struct jval name;
    bool unsafe; /* it is there, but not for templates */
};

/* The state of cycler (items, at) and joiner (items[0], at). */
struct jcycle {
    struct jlist *items;
    size_t at;
};

struct jloop {
    struct jlist *items;
    size_t at;
    int depth;
    const struct jnode *node;
    struct jscope *scope; /* around the loop, for recursive ones */
    struct jval changed;  /* what `changed` was told last */
};

/* Arguments of a call. Of a function with a list of parameters, v has one for each of them, and kw
 * is empty. */
struct jargs {
    const struct jval *v;
    size_t n;
    const struct jpair *kw;
    size_t n_kw;
    struct jval caller; /* of a call block; or J_MISSING */
};

/* A function, filter, test or method; self is what a filter or test is applied to, or a method
 * belongs to. */
typedef struct jval jin_fn(struct jin *j, struct jval self, const struct jargs *args);

struct jfn {
    const char *name;
    const char *params; /* names with spaces between them; NULL: fn takes any */
    size_t least;       /* of them must be given */
    jin_fn *fn;
};

struct jmethod {
    struct jval self;
    const struct jfn *fn;
};

struct jscope {
    struct jscope *parent;
    struct jdict vars;
    bool kept; /* by a macro that may be called later */
};

enum jflow { FLOW_ON, FLOW_BREAK, FLOW_CONTINUE };

struct jin {
    struct jinja_limits limits; /* none of them zero */
    struct arena mem;
    size_t used;
    uint64_t steps;
    size_t written;
    int depth, line;
    enum err err;
    struct err_note note;
    struct str *out; /* where text goes */
    struct jscope *scope;
    struct jdict *vars;
    enum jflow flow;
    int64_t now;
};

/* ---- state ---- */

static inline bool jin_ok(const struct jin *j)
{
    return j->err == ERR_OK;
}

/* Keeps the first error, with the line that is evaluated. J_NONE. */
struct jval jin_fail(struct jin *j, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* The same for a status of a function that has set the text. */
struct jval jin_fail_with(struct jin *j, enum err err);
/* Counts work; false if there was too much of it, or an error before. */
bool jin_tick(struct jin *j, size_t n);
/* One level deeper; false, and no level deeper, if that is too deep. Goes with jin_leave. */
bool jin_enter(struct jin *j);
void jin_leave(struct jin *j);
/* Zeroed memory of the rendering; NULL after an error. */
void *jin_alloc(struct jin *j, size_t size);

/* Text on its way to become a string: appends, and does nothing after an error. */
void jin_put(struct jin *j, struct str *t, const char *s, size_t n);
void jin_puts(struct jin *j, struct str *t, const char *s);
void jin_putc(struct jin *j, struct str *t, uint32_t cp);
/* The text as a string; t is empty and freed afterwards. */
struct jval jin_take(struct jin *j, struct str *t);

/* ---- making values ---- */

static inline struct jval jv_none(void)
{
    return (struct jval){ .kind = J_NONE };
}

static inline struct jval jv_bool(bool b)
{
    return (struct jval){ .kind = J_BOOL, .b = b };
}

static inline struct jval jv_int(int64_t i)
{
    return (struct jval){ .kind = J_INT, .i = i };
}

static inline struct jval jv_float(double f)
{
    return (struct jval){ .kind = J_FLOAT, .f = f };
}

struct jval jv_str(struct jin *j, const char *s, size_t n);
struct jval jv_text(struct jin *j, const char *s);
/* Bytes of a string from `from` on, which are shared with it. */
struct jval jv_part(struct jin *j, struct jval s, size_t from, size_t n);
/* An empty list, tuple or iterator with room for n. */
struct jval jv_list(struct jin *j, enum jkind kind, size_t n);
void jv_push(struct jin *j, struct jval list, struct jval v);
struct jval jv_pair(struct jin *j, struct jval a, struct jval b);
struct jval jv_dict(struct jin *j, enum jkind kind);
struct jval jv_undefined(struct jin *j, const char *owner, struct jval name);
/* a with b behind it, both strings. */
struct jval jv_concat(struct jin *j, struct jval a, struct jval b);

/* ---- dicts: keys are found by Python's equality ---- */

/* NULL if there is none. ERR_ARG for keys that cannot be hashed. */
struct jval *jd_find(struct jin *j, const struct jdict *d, struct jval key);
struct jval *jd_find_text(struct jin *j, const struct jdict *d, const char *key);
void jd_set(struct jin *j, struct jdict *d, struct jval key, struct jval v);

/* ---- what values are ---- */

static inline bool is_str(struct jval v)
{
    return v.kind == J_STR;
}

/* Integers, and booleans, which are integers in Python. */
static inline bool is_int(struct jval v)
{
    return v.kind == J_INT || v.kind == J_BOOL;
}

static inline bool is_number(struct jval v)
{
    return is_int(v) || v.kind == J_FLOAT;
}

static inline bool is_seq(struct jval v)
{
    return v.kind == J_LIST || v.kind == J_TUPLE;
}

static inline int64_t int_of(struct jval v)
{
    return v.kind == J_BOOL ? v.b : v.i;
}

static inline double number_of(struct jval v)
{
    return v.kind == J_FLOAT ? v.f : (double)int_of(v);
}

/* What Python calls the type. */
const char *jv_type(struct jval v);
bool jv_true(struct jin *j, struct jval v);
bool jv_equal(struct jin *j, struct jval a, struct jval b);
/* -1, 0 or 1 as a is below, equal to or above b; 2 where one of them is NaN; an error where they
 * have no order. */
int jv_compare(struct jin *j, struct jval a, struct jval b, const char *op);
/* Whether v is in what may be a string, a list, a dict. */
bool jv_contains(struct jin *j, struct jval in, struct jval v);
/* Number of elements or characters; an error for what has none. */
size_t jv_length(struct jin *j, struct jval v);
bool jv_has_length(struct jval v);
/* All elements as a list that is not to be changed; an iterator has none afterwards. */
struct jlist *jv_items(struct jin *j, struct jval v);
bool jv_is_iterable(struct jval v);
size_t jstr_chars(struct jin *j, const struct jstr *s);
/* Offset of the n-th character; the length where there are fewer. */
size_t jstr_offset(struct jin *j, const struct jstr *s, size_t n);
bool jstr_is(const struct jstr *s, const char *text);
/* Fails for what is undefined, as nearly every use of it does. False then. */
bool jin_defined(struct jin *j, struct jval v);
bool is_py_space(uint32_t cp);

/* ---- text of values (text.c) ---- */

/* Appends Python's str(v), and repr(v). */
void jin_str(struct jin *j, struct str *t, struct jval v);
void jin_repr(struct jin *j, struct str *t, struct jval v);
/* str(v) as a value; strings stay what they are. */
struct jval jv_to_str(struct jin *j, struct jval v);
/* The shortest digits that read back the same. */
void jin_float(struct jin *j, struct str *t, double f);

/* ---- JSON (json_in.c, json_out.c) ---- */

/* The value of a JSON text: integers stay apart from floats, members keep their order. */
struct jval jin_from_json(struct jin *j, const char *text, size_t n);
struct jval jin_to_json(struct jin *j, struct jval v, const struct jargs *args);
