/* The files beside a tokenizer.json, with zero bytes between them, and at last a text: a folder
 * that loads has a tokenizer that works, and a template of chats that is recognised or refused. */
#include "fuzz/fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "fuzz/fuzz_lm.h"
#include "lm/chat/chat.h"

static const char tokenizer[] =
    "{\"model\":{\"vocab\":{\"a\":0,\"b\":1,\"ab\":2,\"<s>\":3,\"</s>\":4,\"<pad>\":5},"
    "\"merges\":[\"a b\"]},\"added_tokens\":[{\"id\":4,\"content\":\"</s>\",\"special\":true}]}";
static const char *const names[] = { "tokenizer_config.json",  "special_tokens_map.json",
                                     "generation_config.json", "config.json",
                                     "chat_template.jinja",    "tokenizer.json" };
enum { TEXT = ARRAY_LEN(names) - 1, PARTS };

static char folder[] = "/tmp/mlx-fuzz-XXXXXX"; /* for mkdtemp */

static const char *path_of(const char *name)
{
    static char path[128];

    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void put(const char *name, const char *text)
{
    FILE *f = *text ? fopen(path_of(name), "wb") : NULL;

    if (!f) {
        unlink(path_of(name));
        return;
    }
    fputs(text, f);
    fclose(f);
}

static void clean_up(void)
{
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        unlink(path_of(names[i]));
    rmdir(folder);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static bool ready;
    const char *parts[PARTS];
    char *in = fuzz_parts(parts, PARTS, data, size);
    struct tok *t = NULL;
    struct chat *c = NULL;

    if (!ready && mkdtemp(folder)) {
        ready = true;
        atexit(clean_up);
        put("tokenizer.json", tokenizer);
    }
    for (size_t i = 0; in && ready && i < TEXT; i++)
        put(names[i], parts[i]);
    if (in && ready && tok_load(&t, folder) == ERR_OK) {
        fuzz_tokenizer(t, parts[TEXT], strlen(parts[TEXT]));
        if (chat_create_for(&c, t) != ERR_OK)
            c = NULL;
    }
    chat_destroy(&c);
    tok_destroy(&t);
    mem_free(in);
    return 0;
}
