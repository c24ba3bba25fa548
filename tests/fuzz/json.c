/* The JSON reader: every value of a document that parses can be walked. */
#include "fuzz/fuzz.h"

#include "base/json.h"

static void walk(struct json v)
{
    const char *text;
    double number;
    int64_t integer;
    bool truth;
    enum err err = json_string(&text, v);

    if (err)
        err = json_number(&number, v);
    if (!err)
        err = json_int(&integer, v);
    if (err)
        err = json_bool(&truth, v);
    (void)err;
    JSON_EACH(child, v)
    walk(child);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct json_doc *doc = NULL;

    if (size < 4096 && json_parse(&doc, (const char *)data, size, "fuzz.json") == ERR_OK)
        walk(json_root(doc));
    json_destroy(&doc);
    return 0;
}
