/* Scans for other families. */
#pragma once

#include "backend/backend.h"

/* Every number of a dense array becomes the sum of its row up to there. */
MUST_CHECK enum err vk_scan_counts(struct strm *s, const struct arr *counts, uint64_t rows);
