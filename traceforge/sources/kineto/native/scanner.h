/* What the C files share: one event's row, the kinds of events, and the columns of a batch. */
#ifndef TRACEFORGE_SCANNER_H
#define TRACEFORGE_SCANNER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Columns of raw.occurrence; see `COLUMNS` in columns.c. */
enum {
    KIND_ID,
    EVENT_ID,
    CORRELATION,
    EXTERNAL_ID,
    STREAM,
    DEVICE,
    SIZE_BYTES,
    RECORD_FUNCTION_ID,
    FLOW_ID,
    RAW_START_NS,
    DURATION_NS,
    COLUMN_COUNT
};

/* What makes a kind, in the order of `Kinds` in kinds.py. */
enum { PHASE, CATEGORY, NAME, PROCESS, THREAD, KIND_PARTS };

/* A JSON scalar as written, quotes included; of length 0 where the event does not have it. */
typedef struct {
    const char *text;
    uint32_t length;
} Token;

typedef struct {
    int64_t values[COLUMN_COUNT];
    uint32_t present; /* one bit a column */
    Token kind[KIND_PARTS];
    Token args; /* the whole object */
    bool is_collective;
} Row;

/* event.c: behind the event that begins at p, or NULL where it is not plain. */
const char *scan_event(const char *p, const char *end, Row *row);

/* Arguments that Python looks at itself; those of communication, which are kept and told apart here. */
enum { ASKS_TEXT = 1, ASKS_CALL = 2 };

/* kinds.c: numbers combinations of tokens in the order in which they come. */
typedef struct {
    uint64_t hash;
    size_t text; /* place of its tokens in `texts`, one behind the other */
    uint32_t lengths[KIND_PARTS];
    int32_t id;   /* its number in the file, once told */
    uint8_t asks; /* what is asked of the arguments of its events: ASKS_TEXT, ASKS_CALL */
} Kind;

typedef struct {
    Kind *kinds;
    uint32_t count, capacity;
    uint32_t *slots; /* hash table of indices into `kinds`, plus 1; 0 is empty */
    uint32_t slot_count;
    char *texts;
    size_t text_size, text_capacity;
} KindTable;

/* The index of a kind, a new one where it is not known; -1 without memory. */
int64_t kind_index(KindTable *table, const Token *parts);
/* Keep the first `count` kinds only. */
void kinds_shorten(KindTable *table, uint32_t count);
void kinds_free(KindTable *table);

/* columns.c: values and validity bits of the rows gathered since the last batch. */
typedef struct {
    char *values[COLUMN_COUNT];
    uint8_t *valid[COLUMN_COUNT];
    size_t count, capacity;
} Columns;

bool columns_reserve(Columns *columns, size_t more);
void columns_append(Columns *columns, const Row *row);
/* Keep the first `count` rows only. */
void columns_shorten(Columns *columns, size_t count);
void columns_free(Columns *columns);

/* calls.c: arguments of communication without the numbers that differ from call to call. */
typedef struct {
    char *text;
    size_t size, capacity;
    int64_t sequence; /* the only sequence number, -1 where there is none */
} CallKey;

/* Whether the text names what only collectives have. */
bool is_call(const char *text, uint32_t length);
/* Fill the key from the object that begins at `text`, which is plain; false without memory. */
bool call_key(CallKey *key, const char *text, const char *end);

/* texts.c: arguments kept as written since the last batch. */
typedef struct {
    int64_t *event_ids, *offsets; /* one offset more than there are texts */
    char *data;
    size_t count, capacity, data_capacity;
} Texts;

bool texts_append(Texts *texts, int64_t event_id, const char *text, uint32_t length);
/* Keep the first `count` texts only. */
void texts_shorten(Texts *texts, size_t count);
void texts_free(Texts *texts);

#endif
