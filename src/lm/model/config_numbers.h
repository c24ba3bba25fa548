/* The numbers of a config, read and checked in one way wherever they come from. */
#pragma once

#include "lm/model/config.h"

enum lm_number_id {
#define NUMBER(id, ...) LM_NUMBER_##id,
#include "lm/model/config_numbers.def"
#undef NUMBER
    LM_NUMBER_COUNT
};

/* Numbers that are read together. */
enum lm_number_group {
    LM_NUMBERS_MODEL,
    LM_NUMBERS_VOCABULARY,
    LM_NUMBERS_ROPE,
    LM_NUMBERS_SCALING,
    LM_NUMBERS_EXPERTS,
    LM_NUMBERS_WINDOW,
};

struct lm_number {
    enum lm_number_group group;
    bool is_real;
    size_t offset; /* in struct lm_config */
    const char *key, *gguf_key;
    double fallback, least, most;
};
extern const struct lm_number lm_numbers[LM_NUMBER_COUNT];

/* Where numbers are looked up. */
struct lm_number_source {
    /* Sets *found, and *value if it was. */
    enum err (*get)(const struct lm_number_source *s, const struct lm_number *n, double *value,
                    bool *found);
    /* An error that names the number's place and says what is wrong with it. */
    enum err (*fail)(const struct lm_number_source *s, const struct lm_number *n, const char *what);
};

/* Reads all numbers of a group into c. Errors name the number and its value. */
MUST_CHECK enum err numbers_read(struct lm_config *c, enum lm_number_group group,
                                 const struct lm_number_source *s);
/* Works out what was not said, and holds numbers against each other. */
MUST_CHECK enum err numbers_check_model(struct lm_config *c, const struct lm_number_source *s);
MUST_CHECK enum err numbers_check_scaling(struct lm_config *c, const struct lm_number_source *s);
MUST_CHECK enum err numbers_check_experts(struct lm_config *c, const struct lm_number_source *s);

/* An error about one number. */
enum err numbers_fail(const struct lm_number_source *s, enum lm_number_id id, const char *fmt, ...)
    PRINTF_LIKE(3, 4);
