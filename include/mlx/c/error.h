/* What happens when a call fails. Conventions: see mlx.h. */
#ifndef MLX_ERROR_H
#define MLX_ERROR_H

#ifdef __cplusplus
extern "C" {
#endif

/* Called with the text of every failure, on the thread that failed, before the failing function
 * returns. msg is borrowed for the duration of the call. */
typedef void (*mlx_error_handler_func)(const char *msg, void *data);

/* Installs the handler of the process. NULL restores the default, which prints the text to stdout
 * and ends the process with status -1: programs that test return codes install their own.
 * data reaches the handler; dtor, which may be NULL, runs once with it when the handler is
 * replaced. Thread-safety: install the handler before other threads use the library. */
void mlx_set_error_handler(mlx_error_handler_func handler, void *data, void (*dtor)(void *));

/* Formats a message as printf does, appends " at FILE:LINE" and calls the handler. For bindings
 * that report their own failures the same way; fmt must be a literal of the program. */
void _mlx_error(const char *file, const int line, const char *fmt, ...);

/* _mlx_error with the place of the call. */
#define mlx_error(...) _mlx_error(__FILE__, __LINE__, __VA_ARGS__)

#ifdef __cplusplus
}
#endif

#endif
