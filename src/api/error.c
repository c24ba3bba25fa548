#include "api/handle.h"

#include <stdarg.h>

#include "base/process.h"

/* Mandated by mlx-c: programs written for it ignore return codes and rely on this. */
static void print_and_exit(const char *msg, void *data)
{
    (void)data;
    if (process_is_ending()) /* another thread is at it; what fails now fails for that reason */
        return;
    printf("MLX error: %s\n", msg);
    exit(-1);
}

static struct {
    mlx_error_handler_func func;
    void *data;
    void (*dtor)(void *);
} handler = { .func = print_and_exit };

void mlx_set_error_handler(mlx_error_handler_func func, void *data, void (*dtor)(void *))
{
    void (*old_dtor)(void *) = handler.dtor;
    void *old_data = handler.data;

    handler.func = func ? func : print_and_exit;
    handler.data = data;
    handler.dtor = dtor;
    if (old_dtor)
        old_dtor(old_data);
}

void _mlx_error(const char *file, const int line, const char *fmt, ...)
{
    /* The text of err_set plus a place; a longer message of a binding is cut, not lost. */
    char msg[2 * ERR_TEXT_MAX];
    va_list args;
    int n = 0;

    if (fmt) {
        va_start(args, fmt);
        n = vsnprintf(msg, sizeof msg, fmt, args);
        va_end(args);
    }
    size_t used = n < 0 ? 0 : (size_t)n;
    size_t room = 128; /* for the place */
    if (used > sizeof msg - room)
        used = sizeof msg - room;
    snprintf(msg + used, sizeof msg - used, " at %s:%d", file ? file : "?", line);
    handler.func(msg, handler.data);
}
