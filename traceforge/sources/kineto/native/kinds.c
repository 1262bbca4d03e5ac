/* Kinds of events: combinations of phase, category, name, process and thread. In: their tokens. Out: small numbers.

   Idea: an open hash table over the bytes of the tokens as written, so that each combination is decoded once, by Python.
   The same values written differently get numbers of their own here, and one identifier there. */
#include "scanner.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_SLOTS 1024u

/* Bytes of a product of 128 bits, folded: mixes two words well (as in wyhash by Wang Yi). */
static uint64_t mixed(uint64_t a, uint64_t b) {
    unsigned __int128 product = (unsigned __int128)(a ^ UINT64_C(0xA0761D6478BD642F)) * (b ^ UINT64_C(0xE7037ED1A0B428DB));
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static uint64_t hash_of(const Token *parts) {
    uint64_t hash = 0;
    for (int part = 0; part < KIND_PARTS; part++) {
        const char *text = parts[part].text;
        size_t left = parts[part].length;
        uint64_t words[2];
        for (; left >= sizeof words; left -= sizeof words, text += sizeof words) {
            memcpy(words, text, sizeof words);
            hash = mixed(words[0] ^ hash, words[1]);
        }
        memset(words, 0, sizeof words);
        if (left) memcpy(words, text, left);
        hash = mixed(words[0] ^ hash, words[1] ^ parts[part].length);
    }
    return hash;
}

static bool is_same(const KindTable *table, const Kind *kind, const Token *parts) {
    const char *text = table->texts + kind->text;
    for (int part = 0; part < KIND_PARTS; part++) {
        if (kind->lengths[part] != parts[part].length) return false;
        if (parts[part].length && memcmp(text, parts[part].text, parts[part].length)) return false;
        text += kind->lengths[part];
    }
    return true;
}

/* The slot of a kind, or the free one where it belongs. */
static uint32_t *slot_for(KindTable *table, uint64_t hash, const Token *parts) {
    uint32_t mask = table->slot_count - 1, place = (uint32_t)hash & mask;
    for (;; place = (place + 1) & mask) {
        uint32_t *slot = &table->slots[place];
        if (!*slot) return slot;
        const Kind *kind = &table->kinds[*slot - 1];
        if (parts && kind->hash == hash && is_same(table, kind, parts)) return slot;
    }
}

static void fill_slots(KindTable *table) {
    memset(table->slots, 0, table->slot_count * sizeof *table->slots);
    for (uint32_t i = 0; i < table->count; i++) *slot_for(table, table->kinds[i].hash, NULL) = i + 1;
}

/* Room for one more kind, with at least every second slot free. */
static bool has_room(KindTable *table) {
    if (2 * table->count >= table->slot_count) {
        uint32_t wanted = table->slot_count ? 2 * table->slot_count : FIRST_SLOTS;
        uint32_t *slots = realloc(table->slots, wanted * sizeof *slots);
        if (!slots) return false;
        table->slots = slots;
        table->slot_count = wanted;
        fill_slots(table);
    }
    if (table->count == table->capacity) {
        uint32_t wanted = table->capacity ? 2 * table->capacity : FIRST_SLOTS / 2;
        Kind *kinds = realloc(table->kinds, wanted * sizeof *kinds);
        if (!kinds) return false;
        table->kinds = kinds;
        table->capacity = wanted;
    }
    return true;
}

static bool keep_text(KindTable *table, Kind *kind, const Token *parts) {
    size_t size = 0;
    for (int part = 0; part < KIND_PARTS; part++) size += parts[part].length;
    if (table->text_size + size > table->text_capacity) {
        size_t wanted = 2 * (table->text_size + size);
        char *texts = realloc(table->texts, wanted);
        if (!texts) return false;
        table->texts = texts;
        table->text_capacity = wanted;
    }
    kind->text = table->text_size;
    for (int part = 0; part < KIND_PARTS; part++) {
        kind->lengths[part] = parts[part].length;
        if (!parts[part].length) continue;
        memcpy(table->texts + table->text_size, parts[part].text, parts[part].length);
        table->text_size += parts[part].length;
    }
    return true;
}

int64_t kind_index(KindTable *table, const Token *parts) {
    uint64_t hash = hash_of(parts);
    if (table->slot_count) {
        uint32_t found = *slot_for(table, hash, parts);
        if (found) return found - 1;
    }
    if (!has_room(table)) return -1;
    Kind *kind = &table->kinds[table->count];
    *kind = (Kind){.hash = hash};
    if (!keep_text(table, kind, parts)) return -1;
    *slot_for(table, hash, NULL) = ++table->count;
    return table->count - 1;
}

void kinds_shorten(KindTable *table, uint32_t count) {
    if (count >= table->count) return;
    table->text_size = table->kinds[count].text;
    table->count = count;
    fill_slots(table);
}

void kinds_free(KindTable *table) {
    free(table->kinds);
    free(table->slots);
    free(table->texts);
    memset(table, 0, sizeof *table);
}
