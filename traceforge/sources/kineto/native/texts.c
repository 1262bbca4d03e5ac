/* Texts of arguments. In: bytes of sound UTF-8. Out: one piece of memory, and where each text ends in it. */
#include "scanner.h"

#include <stdlib.h>
#include <string.h>

#define LEAST_TEXTS 1024u

static bool grow_list(Texts *texts) {
    size_t wanted = texts->capacity ? 2 * texts->capacity : LEAST_TEXTS;
    int64_t *event_ids = realloc(texts->event_ids, wanted * sizeof *event_ids);
    if (!event_ids) return false;
    texts->event_ids = event_ids;
    int64_t *offsets = realloc(texts->offsets, (wanted + 1) * sizeof *offsets);
    if (!offsets) return false;
    texts->offsets = offsets;
    texts->offsets[0] = 0;
    texts->capacity = wanted;
    return true;
}

bool texts_append(Texts *texts, int64_t event_id, const char *text, uint32_t length) {
    if (texts->count == texts->capacity && !grow_list(texts)) return false;
    size_t size = (size_t)texts->offsets[texts->count];
    if (size + length > texts->data_capacity) {
        size_t wanted = 2 * (size + length);
        char *data = realloc(texts->data, wanted);
        if (!data) return false;
        texts->data = data;
        texts->data_capacity = wanted;
    }
    memcpy(texts->data + size, text, length);
    texts->event_ids[texts->count] = event_id;
    texts->offsets[++texts->count] = (int64_t)(size + length);
    return true;
}

void texts_shorten(Texts *texts, size_t count) {
    if (count < texts->count) texts->count = count;
}

void texts_free(Texts *texts) {
    free(texts->event_ids);
    free(texts->offsets);
    free(texts->data);
    memset(texts, 0, sizeof *texts);
}
