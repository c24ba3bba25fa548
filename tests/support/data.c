#include "support/data.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

static struct data_path find(const char *built, const char *carried, const char *name)
{
    const char *folder = getenv("TEST_DATA");
    struct data_path p;

    if (folder)
        snprintf(p.v, sizeof p.v, "%s/%s/%s", folder, carried, name);
    else
        snprintf(p.v, sizeof p.v, "%s/%s", built, name);
    return p;
}

struct data_path data_made(const char *name)
{
    return find(DATA_MADE, "made", name);
}

struct data_path data_stored(const char *name)
{
    return find(DATA_STORED, "stored", name);
}

bool data_fifo(const char *path)
{
    return mkfifo(path, 0600) == 0;
}
