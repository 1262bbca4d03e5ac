/* One event. In: the text of an object. Out: its row, or NULL where it is not plain.

   Idea: one pass; members that become columns are read where they stand, all others only stepped over. What the Python
   reader would report as an issue (a missing start, a negative duration, a number that does not fit) is not plain, nor
   are members that stand twice. Not handled: keys with escapes. */
#include "scanner.h"

#include "json.h"

#define NO_STREAM INT64_C(4294967295) /* what CUPTI writes for synchronisation without a stream */

/* Members of an event, those of its kind first; then the members of `args`. Each is a bit of what was seen. */
enum { START = KIND_PARTS, DURATION, FLOW, ARGS, OTHER_MEMBER };
enum {
    EXTERNAL,
    OLD_EXTERNAL,
    RECORD_FUNCTION,
    DEVICE_NUMBER,
    STREAM_NUMBER,
    CORRELATION_NUMBER,
    BYTES,
    MEMORY_BYTES,
    INTEGER_ARGUMENTS,
    COLLECTIVE = INTEGER_ARGUMENTS,
    TRACK_NAME,
    TRACK_LABELS,
    OTHER_ARGUMENT
};

#define IS(text) (!memcmp(key, text, sizeof(text) - 1))

static int member_of(const char *key, size_t length) {
    switch (length) {
    case 2:
        return IS("ph") ? PHASE : IS("ts") ? START : IS("id") ? FLOW : OTHER_MEMBER;
    case 3:
        return IS("tid") ? THREAD : IS("pid") ? PROCESS : IS("dur") ? DURATION : IS("cat") ? CATEGORY : OTHER_MEMBER;
    case 4:
        return IS("name") ? NAME : IS("args") ? ARGS : OTHER_MEMBER;
    default:
        return OTHER_MEMBER;
    }
}

static int argument_of(const char *key, size_t length) {
    switch (length) {
    case 4:
        return IS("name") ? TRACK_NAME : OTHER_ARGUMENT;
    case 5:
        return IS("bytes") ? BYTES : IS("Bytes") ? MEMORY_BYTES : OTHER_ARGUMENT;
    case 6:
        return IS("device") ? DEVICE_NUMBER : IS("stream") ? STREAM_NUMBER : IS("labels") ? TRACK_LABELS : OTHER_ARGUMENT;
    case 11:
        return IS("External id")   ? EXTERNAL
               : IS("correlation") ? CORRELATION_NUMBER
               : IS("external id") ? OLD_EXTERNAL
                                   : OTHER_ARGUMENT;
    case 15:
        return IS("Collective name") ? COLLECTIVE : OTHER_ARGUMENT;
    case 18:
        return IS("Record function id") ? RECORD_FUNCTION : OTHER_ARGUMENT;
    default:
        return OTHER_ARGUMENT;
    }
}

static inline void set(Row *row, int column, int64_t value) {
    row->values[column] = value;
    row->present |= 1u << column;
}

/* A column of 32 bits: what does not fit is reported by the Python reader, but for CUPTI's "no stream". */
static bool set_int32(Row *row, int column, int64_t value) {
    if (value == NO_STREAM) return true;
    if (value <= -(INT64_C(1) << 31) || value >= INT64_C(1) << 31) return false;
    set(row, column, value);
    return true;
}

static bool keep_arguments(Row *row, const int64_t *values, unsigned seen) {
#define SEEN(argument) (seen & 1u << (argument))
    if (SEEN(CORRELATION_NUMBER)) set(row, CORRELATION, values[CORRELATION_NUMBER]);
    if (SEEN(RECORD_FUNCTION)) set(row, RECORD_FUNCTION_ID, values[RECORD_FUNCTION]);
    if (SEEN(EXTERNAL)) set(row, EXTERNAL_ID, values[EXTERNAL]);
    else if (SEEN(OLD_EXTERNAL)) set(row, EXTERNAL_ID, values[OLD_EXTERNAL]);
    if (SEEN(BYTES)) set(row, SIZE_BYTES, values[BYTES]);
    else if (SEEN(MEMORY_BYTES)) set(row, SIZE_BYTES, values[MEMORY_BYTES]);
    row->is_collective = SEEN(COLLECTIVE) != 0;
    if (SEEN(STREAM_NUMBER) && !set_int32(row, STREAM, values[STREAM_NUMBER])) return false;
    return !SEEN(DEVICE_NUMBER) || set_int32(row, DEVICE, values[DEVICE_NUMBER]);
#undef SEEN
}

static const char *scan_arguments(const char *p, const char *end, Row *row) {
    if (*p != '{') return NULL;
    int64_t values[INTEGER_ARGUMENTS];
    unsigned seen = 0;
    Members at = {.place = p + 1, .is_first = true};
    int more;
    while ((more = next_member(&at, end)) > 0) {
        int argument = argument_of(at.key, at.length);
        if (argument < OTHER_ARGUMENT) {
            if (seen & 1u << argument) return NULL;
            seen |= 1u << argument;
        }
        at.place =
            argument < INTEGER_ARGUMENTS ? integer_end(at.place, &values[argument]) : value_end(at.place, end);
        if (!at.place) return NULL;
    }
    if (more < 0 || !keep_arguments(row, values, seen)) return NULL;
    row->args = (Token){p, (uint32_t)(at.place - p)};
    return at.place;
}

/* A time, perhaps in quotes, or null. */
static const char *scan_time(const char *p, Row *row, int column) {
    if (*p == 'n') return literal_end(p);
    bool is_quoted = *p == '"';
    int64_t value;
    if (!(p = time_end(p + is_quoted, &value))) return NULL;
    set(row, column, value);
    if (is_quoted && *p++ != '"') return NULL;
    return p;
}

/* Part of a kind: a text or null; processes and threads may be integers, too. */
static const char *scan_kind_part(const char *p, const char *end, Row *row, int part) {
    const char *start = p;
    int64_t ignored;
    bool has_escape = false;
    if (*p == '"') {
        p = text_end(p + 1, end, &has_escape);
        if (!p++ || (has_escape && part == PHASE)) return NULL;
    } else if (*p == 'n') {
        p = literal_end(p);
    } else {
        p = part == PROCESS || part == THREAD ? integer_end(p, &ignored) : NULL;
    }
    if (p) row->kind[part] = (Token){start, (uint32_t)(p - start)};
    return p;
}

/* The id of a flow arrow: an integer; any text on events that are none. */
static const char *scan_flow(const char *p, const char *end, Row *row, bool *is_text) {
    *is_text = *p == '"';
    if (*is_text) return scalar_end(p, end);
    int64_t value;
    p = integer_end(p, &value);
    if (p) set(row, FLOW_ID, value);
    return p;
}

static const char *scan_member(Members *at, int member, const char *end, Row *row, bool *has_text_id) {
    switch (member) {
    case START:
        return scan_time(at->place, row, RAW_START_NS);
    case DURATION:
        return scan_time(at->place, row, DURATION_NS);
    case ARGS:
        return scan_arguments(at->place, end, row);
    case FLOW:
        return scan_flow(at->place, end, row, has_text_id);
    case OTHER_MEMBER:
        return value_end(at->place, end);
    default:
        return scan_kind_part(at->place, end, row, member);
    }
}

/* The letter of a phase; NUL where it is absent or longer. */
static char phase_of(const Row *row) { return row->kind[PHASE].length == 3 ? row->kind[PHASE].text[1] : '\0'; }

const char *scan_event(const char *p, const char *end, Row *row) {
    if (*p != '{') return NULL;
    row->present = 0;
    row->is_collective = false;
    row->args.length = 0;
    for (int part = 0; part < KIND_PARTS; part++) row->kind[part].length = 0;
    unsigned seen = 0;
    bool has_text_id = false;
    Members at = {.place = p + 1, .is_first = true};
    int more;
    while ((more = next_member(&at, end)) > 0) {
        int member = member_of(at.key, at.length);
        if (member < OTHER_MEMBER) {
            if (seen & 1u << member) return NULL;
            seen |= 1u << member;
        }
        if (!(at.place = scan_member(&at, member, end, row, &has_text_id))) return NULL;
    }
    if (more < 0) return NULL;
    char phase = phase_of(row);
    bool is_flow = phase == 's' || phase == 't' || phase == 'f';
    if (is_flow && has_text_id) return NULL;
    if (!is_flow) row->present &= ~(1u << FLOW_ID);
    if (!(row->present & 1u << RAW_START_NS) && phase != 'M') return NULL;
    if ((row->present & 1u << DURATION_NS) && row->values[DURATION_NS] < 0) return NULL;
    return at.place;
}
