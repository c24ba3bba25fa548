#include "cli/terminal.h"

#include <editline/readline.h>
#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/interrupt.h"
#include "lm/str.h"

/* -1 at the end of the input and after Ctrl-C. */
static int read_byte(void)
{
    struct pollfd fds[] = { { .fd = STDIN_FILENO, .events = POLLIN },
                            { .fd = interrupt_fd(), .events = POLLIN } };
    unsigned char c;
    int n;

    while ((n = poll(fds, ARRAY_LEN(fds), -1)) < 0 && errno == EINTR)
        ;
    /* Without a key a read would wait, and Ctrl-C with it. */
    return n > 0 && !fds[1].revents && read(STDIN_FILENO, &c, 1) == 1 ? c : -1;
}

#define CTRL_D 4

static bool at_start; /* no key was read since the prompt */

/* A character, for the library. It shows its prompt before it takes the terminal: a Ctrl-D between
 * the two comes as a zero. */
static int read_key(FILE *in)
{
    char bytes[4];
    struct u8_step step = { .kind = U8_PART };
    bool first = at_start;

    (void)in;
    at_start = false;
    for (size_t n = 0; step.kind == U8_PART && n < sizeof bytes; n++) {
        int c = read_byte();
        if (c < 0)
            return -1;
        bytes[n] = (char)c;
        step = u8_step(bytes, n + 1);
    }
    if (first && step.kind == U8_CHAR && !step.cp)
        return CTRL_D;
    return step.kind == U8_CHAR ? (int)step.cp : 0xfffd;
}

/* The library turns characters into bytes by the locale; numbers are not to depend on it. */
static void set_up(void)
{
    static bool done;

    if (done)
        return;
    done = true;
    if (!setlocale(LC_CTYPE, "") || strcmp(nl_langinfo(CODESET), "UTF-8") != 0)
        setlocale(LC_CTYPE, "C.UTF-8");
    rl_catch_signals = 0;
    rl_getc_function = read_key;
}

char *terminal_line(const char *prompt)
{
    set_up();
    at_start = true;
    return readline(prompt);
}

void terminal_keep(const char *line)
{
    add_history(line);
}
