/* Plain JSON, byte by byte. In: text that ends with a NUL. Out: where a value ends, or NULL where it is not plain.

   Idea: no function looks behind a byte that is not part of plain JSON, and NUL is none, so the NUL at the end stops all
   of them. "Plain" leaves out what only a repair or an exact detour can read (see module.c); NULL then means "declined",
   never "wrong". Not handled: nesting beyond 64 levels. */
#ifndef TRACEFORGE_JSON_H
#define TRACEFORGE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#define DEEPEST 64
#define MOST_DIGITS 18 /* any number of so many digits fits into 64 bits, also times 10 */
#define LIMIT_NS (INT64_C(1) << 62)

static inline const char *skip_blank(const char *p, const char *end) {
    if (*p > ' ') return p;
    if (*p == ' ' && p[1] > ' ') return p + 1;
#ifdef __SSE2__
    const __m128i blank = _mm_set1_epi8(' '), newline = _mm_set1_epi8('\n');
    while (end - p >= 16) {
        __m128i bytes = _mm_loadu_si128((const __m128i *)p);
        __m128i found = _mm_or_si128(_mm_cmpeq_epi8(bytes, blank), _mm_cmpeq_epi8(bytes, newline));
        unsigned others = ~(unsigned)_mm_movemask_epi8(found) & 0xFFFF;
        if (others) {
            p += __builtin_ctz(others);
            break;
        }
        p += 16;
    }
#endif
    while (p < end && (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t')) p++;
    return p;
}

static inline bool is_digit(char c) { return (unsigned char)(c - '0') < 10; }

static inline bool is_hexadecimal(char c) {
    return is_digit(c) || (unsigned char)((c | 0x20) - 'a') < 6;
}

/* Behind the escape that begins at p; half a surrogate pair is not plain. */
static inline const char *escape_end(const char *p) {
    if (p[1] != 'u') return p[1] != '\0' && strchr("\"\\/bfnrt", p[1]) ? p + 2 : NULL;
    for (int i = 2; i < 6; i++)
        if (!is_hexadecimal(p[i])) return NULL;
    bool is_surrogate = (p[2] | 0x20) == 'd' && !(p[3] >= '0' && p[3] <= '7');
    return is_surrogate ? NULL : p + 6;
}

/* Behind the character of several bytes that begins at p. */
static inline const char *utf8_end(const char *p) {
    unsigned char first = (unsigned char)p[0], second = (unsigned char)p[1];
    unsigned char least = 0x80, most = 0xBF;
    int more;
    if (first >= 0xC2 && first <= 0xDF) more = 1;
    else if (first >= 0xE0 && first <= 0xEF) more = 2;
    else if (first >= 0xF0 && first <= 0xF4) more = 3;
    else return NULL;
    if (first == 0xE0) least = 0xA0; /* longer than needed */
    if (first == 0xED) most = 0x9F;  /* surrogates */
    if (first == 0xF0) least = 0x90; /* longer than needed */
    if (first == 0xF4) most = 0x8F;  /* beyond U+10FFFF */
    if (second < least || second > most) return NULL;
    for (int i = 2; i <= more; i++)
        if (((unsigned char)p[i] & 0xC0) != 0x80) return NULL;
    return p + more + 1;
}

/* The first byte from p on that is no plain ASCII character of a text: quote, backslash, control, or beyond ASCII. */
static inline const char *skip_ascii(const char *p, const char *end) {
#ifdef __SSE2__
    const __m128i quote = _mm_set1_epi8('"'), backslash = _mm_set1_epi8('\\'), blank = _mm_set1_epi8(' ');
    while (end - p >= 16) {
        __m128i bytes = _mm_loadu_si128((const __m128i *)p);
        /* compared with their signs, bytes beyond ASCII are below a blank, too */
        __m128i found = _mm_or_si128(_mm_or_si128(_mm_cmpeq_epi8(bytes, quote), _mm_cmpeq_epi8(bytes, backslash)),
                                     _mm_cmplt_epi8(bytes, blank));
        int mask = _mm_movemask_epi8(found);
        if (mask) return p + __builtin_ctz((unsigned)mask);
        p += 16;
    }
#endif
    while (p < end && *p != '"' && *p != '\\' && (signed char)*p >= ' ') p++;
    return p;
}

/* The quote that ends a text, given the place behind the one that begins it. */
static inline const char *text_end(const char *p, const char *end, bool *has_escape) {
    while (p) {
        p = skip_ascii(p, end);
        if (*p == '"') return p;
        if (*p == '\\') {
            *has_escape = true;
            p = escape_end(p);
        } else {
            p = (unsigned char)*p >= 0x80 ? utf8_end(p) : NULL;
        }
    }
    return NULL;
}

static inline const char *number_end(const char *p) {
    if (*p == '-') p++;
    if (!is_digit(*p)) return NULL;
    if (*p == '0') p++;
    else while (is_digit(*p)) p++;
    if (*p == '.') {
        if (!is_digit(*++p)) return NULL;
        while (is_digit(*p)) p++;
    }
    if (*p == 'e' || *p == 'E') {
        p++;
        if (*p == '+' || *p == '-') p++;
        if (!is_digit(*p)) return NULL;
        while (is_digit(*p)) p++;
    }
    return p;
}

static inline const char *literal_end(const char *p) {
    if (!strncmp(p, "true", 4) || !strncmp(p, "null", 4)) return p + 4;
    return strncmp(p, "false", 5) ? NULL : p + 5;
}

/* Behind a number, literal or text. */
static inline const char *scalar_end(const char *p, const char *end) {
    if (*p == '"') {
        bool ignored = false;
        p = text_end(p + 1, end, &ignored);
        return p ? p + 1 : NULL;
    }
    return *p == '-' || is_digit(*p) ? number_end(p) : literal_end(p);
}

/* Behind the colon of the member whose key begins at p, or NULL. */
static inline const char *key_end(const char *p, const char *end) {
    bool ignored = false;
    if (*p != '"' || !(p = text_end(p + 1, end, &ignored))) return NULL;
    p = skip_blank(p + 1, end);
    return *p == ':' ? skip_blank(p + 1, end) : NULL;
}

/* Behind the list or object that begins at p. */
static inline const char *nested_end(const char *p, const char *end) {
    uint64_t is_object = 0; /* one bit a level, the innermost lowest */
    unsigned depth = 0;
    for (;;) {
        bool is_empty = false;
        if (*p == '{' || *p == '[') {
            if (++depth > DEEPEST) return NULL;
            is_object = is_object << 1 | (*p == '{');
            p = skip_blank(p + 1, end);
            is_empty = *p == (is_object & 1 ? '}' : ']');
        } else {
            if (!(p = scalar_end(p, end))) return NULL;
            p = skip_blank(p, end);
            if (*p == ',') p = skip_blank(p + 1, end);
            else is_empty = true; /* nothing more at this level */
        }
        while (is_empty) {
            if (*p != (is_object & 1 ? '}' : ']')) return NULL;
            p++;
            is_object >>= 1;
            if (!--depth) return p;
            p = skip_blank(p, end);
            is_empty = *p != ',';
            if (!is_empty) p = skip_blank(p + 1, end);
        }
        if ((is_object & 1) && !(p = key_end(p, end))) return NULL;
    }
}

static inline const char *value_end(const char *p, const char *end) {
    return *p == '{' || *p == '[' ? nested_end(p, end) : scalar_end(p, end);
}

/* Walks the members of one object: from its bracket, or from behind a value, to the next value or behind the end. */
typedef struct {
    const char *place;
    const char *key;
    size_t length;
    bool is_first;
} Members;

/* Step to the value of the next member: 1, at the end: 0, not plain: -1. */
static inline int next_member(Members *at, const char *end) {
    const char *p = skip_blank(at->place, end);
    if (*p == '}') {
        at->place = p + 1;
        return 0;
    }
    if (!at->is_first) {
        if (*p != ',') return -1;
        p = skip_blank(p + 1, end);
    }
    at->is_first = false;
    if (*p != '"') return -1;
    bool has_escape = false;
    const char *key = p + 1;
    if (!(p = text_end(key, end, &has_escape)) || has_escape) return -1;
    at->key = key;
    at->length = (size_t)(p - key);
    p = skip_blank(p + 1, end);
    if (*p != ':') return -1;
    at->place = skip_blank(p + 1, end);
    return 1;
}

/* Behind an integer of at most 18 digits; a fraction or an exponent is not plain. */
static inline const char *integer_end(const char *p, int64_t *value) {
    bool is_negative = *p == '-';
    const char *digits = p += is_negative;
    int64_t number = 0;
    while (is_digit(*p)) {
        if (p - digits >= MOST_DIGITS) return NULL;
        number = number * 10 + (*p++ - '0');
    }
    if (p == digits || (*digits == '0' && p - digits > 1) || *p == '.' || *p == 'e' || *p == 'E') return NULL;
    *value = is_negative ? -number : number;
    return p;
}

/* Behind a time in µs, as ns; digits beyond the nanosecond round half to even, as in exact_time.py. */
static inline const char *time_end(const char *p, int64_t *value_ns) {
    bool is_negative = *p == '-';
    const char *digits = p += is_negative;
    uint64_t number = 0;
    while (is_digit(*p)) {
        if (p - digits >= 16) return NULL; /* 16 digits of µs, then 3 of ns, fit into 64 bits without a sign */
        number = number * 10 + (uint64_t)(*p++ - '0');
    }
    if (p == digits || (*digits == '0' && p - digits > 1)) return NULL;
    int places = 0;
    if (*p == '.') {
        if (!is_digit(*++p)) return NULL;
        for (; is_digit(*p) && places < 3; places++) number = number * 10 + (uint64_t)(*p++ - '0');
    }
    for (; places < 3; places++) number *= 10;
    if (is_digit(*p)) {
        char next = *p++;
        bool has_rest = false;
        for (; is_digit(*p); p++) has_rest |= *p != '0';
        if (next > '5' || (next == '5' && (has_rest || number % 2 == 1))) number++;
    }
    if (*p == 'e' || *p == 'E' || number > (uint64_t)LIMIT_NS) return NULL;
    *value_ns = is_negative ? -(int64_t)number : (int64_t)number;
    return p;
}

#endif
