/* A GGUF file with a model: what can be read writes two tokens. */
#include "fuzz/fuzz.h"
#include "fuzz/lm_run.h"

#include "base/mem.h"
#include "eval/stream.h"
#include "lm/gguf_model.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct gguf g = { .metadata = { 0 } };
    struct lm_config c = { 0 };
    struct lm_weights *weights = NULL;
    struct source *src = NULL;
    struct strm *cpu;
    void *copy = mem_alloc(size); /* of exactly this size, so that a sanitizer sees its end */
    enum err err = ERR_NO_MEMORY;

    if (!copy)
        return 0;
    memcpy(copy, data, size);
    TRY(source_new_memory(&src, copy, size, "fuzz.gguf"));
    copy = NULL;
    TRY(strm_default(&cpu, (struct dev){ DEV_CPU, 0 }));
    TRY(gguf_load(&g, src, cpu));
    TRY(gguf_config(&c, &g));
    TRY(weights_from_gguf(&weights, &g, "fuzz.gguf", cpu));
    lm_run(&c, weights, cpu);
out:
    if (err)
        config_fini(&c);
    gguf_fini(&g);
    source_unref(&src);
    mem_free(copy);
    return 0;
}
