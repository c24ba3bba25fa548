#include "cli/terminal.h"

#include <editline/readline.h>
#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/llm.h"

/* SIGINT is blocked but for the time that a key is waited for, so that none comes between looking
 * for it and waiting. */
static sigset_t while_waiting;

/* -1 at the end of the input and after Ctrl-C. */
static int read_byte(void)
{
    struct pollfd input = { .fd = STDIN_FILENO, .events = POLLIN };
    unsigned char c;

    do {
        if (llm_was_interrupted())
            return -1;
    } while (ppoll(&input, 1, NULL, &while_waiting) < 0 && errno == EINTR);
    return read(STDIN_FILENO, &c, 1) == 1 ? c : -1;
}

/* A character, for the library. */
static int read_key(FILE *in)
{
    char bytes[4];
    struct u8_step step = { .kind = U8_PART };

    (void)in;
    for (size_t n = 0; step.kind == U8_PART && n < sizeof bytes; n++) {
        int c = read_byte();
        if (c < 0)
            return -1;
        bytes[n] = (char)c;
        step = u8_step(bytes, n + 1);
    }
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
    sigset_t interrupt, before;

    set_up();
    sigemptyset(&interrupt);
    sigaddset(&interrupt, SIGINT);
    sigprocmask(SIG_BLOCK, &interrupt, &before);
    while_waiting = before;
    char *line = readline(prompt);
    sigprocmask(SIG_SETMASK, &before, NULL);
    return line;
}

void terminal_keep(const char *line)
{
    add_history(line);
}
