/* Functions that transformations make: callable objects that behave like the function they were
 * made of. Attributes are its attributes, and cycles through it are collected. */
#pragma once

#include "core.h"

enum { FUNCTION_DATA = 3 };

struct function_object;

struct function_kind {
    /* args: a tuple; keywords: a dict, the callee's own. A new reference. */
    PyObject *(*call)(struct function_object *f, PyObject *args, PyObject *keywords);
    /* Before it goes; may be NULL. */
    void (*end)(struct function_object *f);
};

struct function_object {
    PyObject_HEAD const struct function_kind *kind;
    PyObject *fun;                 /* what it was made of; NULL: attributes are its own */
    PyObject *data[FUNCTION_DATA]; /* the kind's; each may be NULL */
    void *handle;                  /* the kind's */
    uint64_t count;                /* the kind's */
    bool flag;                     /* the kind's */
};

/* A function of fun, with data NULL. */
struct function_object *function_make(const struct function_kind *kind, PyObject *fun);

/* TypeError unless o can be called. who: "grad". */
bool function_check(PyObject *o, const char *who);

/* Whether o is a function of that kind. */
bool function_is(PyObject *o, const struct function_kind *kind);

bool function_init(PyObject *m);
