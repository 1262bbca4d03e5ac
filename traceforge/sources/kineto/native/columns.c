/* Columns of a batch, as Arrow lays them out. In: rows. Out: one buffer of values and one of validity bits a column. */
#include "columns.h"

#include <stdlib.h>
#include <string.h>

#define LEAST_ROWS 4096u

const ColumnType COLUMNS[COLUMN_COUNT] = {
    [KIND_ID] = {"kind_id", "i", 4},
    [EVENT_ID] = {"event_id", "l", 8},
    [CORRELATION] = {"correlation", "l", 8},
    [EXTERNAL_ID] = {"external_id", "l", 8},
    [STREAM] = {"stream", "i", 4},
    [DEVICE] = {"device", "i", 4},
    [SIZE_BYTES] = {"size_bytes", "l", 8},
    [RECORD_FUNCTION_ID] = {"record_function_id", "l", 8},
    [FLOW_ID] = {"flow_id", "l", 8},
    [RAW_START_NS] = {"raw_start_ns", "l", 8},
    [DURATION_NS] = {"duration_ns", "l", 8},
};

static bool grow(Columns *columns, size_t capacity) {
    for (int i = 0; i < COLUMN_COUNT; i++) {
        char *values = realloc(columns->values[i], capacity * COLUMNS[i].size);
        if (!values) return false;
        columns->values[i] = values;
        uint8_t *valid = realloc(columns->valid[i], capacity / 8);
        if (!valid) return false;
        columns->valid[i] = valid;
        memset(valid + columns->capacity / 8, 0, (capacity - columns->capacity) / 8);
    }
    columns->capacity = capacity;
    return true;
}

bool columns_reserve(Columns *columns, size_t more) {
    size_t capacity = columns->capacity ? columns->capacity : LEAST_ROWS; /* a multiple of 8, as validity needs */
    while (capacity < columns->count + more) capacity *= 2;
    return capacity == columns->capacity || grow(columns, capacity);
}

void columns_append(Columns *columns, const Row *row) {
    size_t place = columns->count++;
    uint8_t bit = (uint8_t)(1u << (place & 7));
    for (int i = 0; i < COLUMN_COUNT; i++) {
        bool is_present = row->present >> i & 1;
        int64_t value = is_present ? row->values[i] : 0;
        if (COLUMNS[i].size == 4) ((int32_t *)(void *)columns->values[i])[place] = (int32_t)value;
        else ((int64_t *)(void *)columns->values[i])[place] = value;
        if (is_present) columns->valid[i][place >> 3] |= bit;
    }
}

void columns_shorten(Columns *columns, size_t count) {
    for (size_t place = count; place < columns->count; place++)
        for (int i = 0; i < COLUMN_COUNT; i++) columns->valid[i][place >> 3] &= (uint8_t)~(1u << (place & 7));
    columns->count = count;
}

void columns_free(Columns *columns) {
    for (int i = 0; i < COLUMN_COUNT; i++) {
        free(columns->values[i]);
        free(columns->valid[i]);
    }
    memset(columns, 0, sizeof *columns);
}
