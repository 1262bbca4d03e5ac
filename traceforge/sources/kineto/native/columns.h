/* Names and types of the columns, for those who fill them and those who hand them over. */
#ifndef TRACEFORGE_COLUMNS_H
#define TRACEFORGE_COLUMNS_H

#include "scanner.h"

typedef struct {
    const char *name;
    const char *format; /* of Arrow: `i` int32, `l` int64 */
    size_t size;        /* bytes a value */
} ColumnType;

extern const ColumnType COLUMNS[COLUMN_COUNT];

#endif
