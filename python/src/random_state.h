/* mx.random.state: one key for each thread, from which calls without a key draw theirs. */
#pragma once

#include "array.h"

/* The object mx.random.state, which stands for the key of whichever thread asks. */
extern PyObject *random_state;

static inline bool is_random_state(PyObject *o)
{
    return o == random_state;
}

/* The calling thread's key, a new reference. The first one is made of the time. */
PyObject *random_state_get(void);

/* Makes key, an array, the calling thread's. */
bool random_state_set(PyObject *key);

/* Makes *res a key that nobody had, and moves the thread's on. */
bool random_state_next(mlx_array *res);

/* Begins anew with a number, or, after random_state_forget, with the time. */
bool random_state_seed(uint64_t seed);
void random_state_forget(void);

bool random_state_init(PyObject *m);
