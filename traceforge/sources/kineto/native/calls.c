/* What tells calls of communication apart. In: their arguments. Out: a key that like calls have in common.

   Idea: calls of one collective differ in little but numbers that count them. Cut out where they stand as members of the
   object, these leave a text that recurs, so that it need be read once. The sequence number is told beside it; where it
   stands twice, or in another form, it stays in the text. */
#include "scanner.h"

#include "json.h"

#include <stdlib.h>

enum { KEPT, PASSING, SEQUENCE };

#define IS(name) (length == sizeof(name) - 1 && !memcmp(key, name, sizeof(name) - 1))

static int role_of(const char *key, size_t length) {
    if (IS("Seq")) return SEQUENCE;
    return IS("External id") || IS("correlation") || IS("Record function id") || IS("Ev Idx") ? PASSING : KEPT;
}

bool is_call(const char *text, uint32_t length) {
    static const char *const names[] = {"\"Collective name\"", "\"Process Group Name\"", "\"Process Group Ranks\"",
                                        "\"In msg nelems\""};
    const char *end = text + length;
    for (const char *p = text; (p = memchr(p, '"', (size_t)(end - p))); p++)
        for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
            size_t size = strlen(names[i]);
            if ((size_t)(end - p) >= size && !memcmp(p, names[i], size)) return true;
        }
    return false;
}

static bool append(CallKey *key, const char *from, const char *to) {
    size_t size = (size_t)(to - from);
    if (key->size + size > key->capacity) {
        size_t wanted = 2 * (key->size + size);
        char *text = realloc(key->text, wanted);
        if (!text) return false;
        key->text = text;
        key->capacity = wanted;
    }
    memcpy(key->text + key->size, from, size);
    key->size += size;
    return true;
}

/* Behind a count: digits alone. */
static const char *count_end(const char *p, int64_t *value) { return *p == '-' ? NULL : integer_end(p, value); }

bool call_key(CallKey *key, const char *text, const char *end) {
    const char *kept = text;
    Members at = {.place = text + 1, .is_first = true};
    int sequences = 0;
    key->size = 0;
    key->sequence = -1;
    while (next_member(&at, end) > 0) {
        int64_t value = -1;
        const char *start = at.key - 1;
        int role = role_of(at.key, at.length);
        const char *behind = role == KEPT ? NULL : count_end(at.place, &value);
        at.place = value_end(at.place, end);
        if (!at.place) break; /* never: the text is plain */
        if (role == SEQUENCE && ++sequences > 1) break;
        if (!behind) continue;
        if (role == SEQUENCE) key->sequence = value;
        if (!append(key, kept, start)) return false;
        kept = at.place;
    }
    if (sequences > 1) {
        key->size = 0;
        key->sequence = -1;
        kept = text;
    }
    return append(key, kept, end);
}
