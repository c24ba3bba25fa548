/* Readers, writers and GGUF contents behind their handles. */
#pragma once

#include "api/handle.h"
#include "io/gguf.h"

/* A reader or writer of the caller, shared by handles and by what was loaded. */
struct user_io {
    refcount rc;
    void *desc;
    mlx_io_vtable fn;
};

struct user_io *user_io_ref(struct user_io *io);
void user_io_unref(struct user_io **io);
/* What errors call it; borrowed. */
const char *user_io_label(const struct user_io *io);
/* Fails with the caller's words unless it is open and good. */
MUST_CHECK enum err user_io_check(const struct user_io *io, const char *what);

/* The objects behind handles; NULL after a failure. */
struct user_io *call_reader(struct call *c, mlx_io_reader io);
struct user_io *call_writer(struct call *c, mlx_io_writer io);
struct gguf *call_gguf(struct call *c, mlx_io_gguf io);
/* Replaces the content of *res by g, which is emptied; on failure both are as before. */
MUST_CHECK enum err box_set_gguf(mlx_io_gguf *res, struct gguf *g);
