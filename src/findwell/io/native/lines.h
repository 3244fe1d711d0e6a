/* Lines of text: words, numbers, and what is not plain. */
#ifndef FINDWELL_LINES_H
#define FINDWELL_LINES_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#if defined(__GNUC__) || defined(__clang__)
#define RARELY(x) __builtin_expect(!!(x), 0)
#else
#define RARELY(x) (x)
#endif

/* --- texts --------------------------------------------------------------------------------- */

typedef struct {
    const char *at;
    size_t size;
} Text;

/* The order of UTF-8 bytes is the order of code points. */
static int compare_texts(Text a, Text b)
{
    int order = memcmp(a.at, b.at, a.size < b.size ? a.size : b.size);
    return order ? order : (a.size > b.size) - (a.size < b.size);
}

static uint64_t seed; /* another one in every process, so that nobody can make hashes collide */

static uint64_t load8(const char *at)
{
    uint64_t word;
    memcpy(&word, at, 8);
    return word;
}

static uint64_t load4(const char *at)
{
    uint32_t word;
    memcpy(&word, at, 4);
    return word;
}

/* Up to 8 bytes as one number, others for others of as many bytes. Ids are so short that a call of
 * memcpy or memcmp would take most of the time. */
static uint64_t load_short(const char *at, size_t size)
{
    if (size >= 4)
        return load4(at) | load4(at + size - 4) << 32;
    if (!size)
        return 0;
    return (uint64_t)(uint8_t)at[0] | (uint64_t)(uint8_t)at[size / 2] << 8 |
           (uint64_t)(uint8_t)at[size - 1] << 16;
}

static int same_text(Text a, Text b)
{
    if (a.size != b.size)
        return 0;
    if (a.size <= 8)
        return load_short(a.at, a.size) == load_short(b.at, b.size);
    if (a.size <= 16)
        return load8(a.at) == load8(b.at) && load8(a.at + a.size - 8) == load8(b.at + b.size - 8);
    return memcmp(a.at, b.at, a.size) == 0;
}

static uint64_t mix(uint64_t a, uint64_t b)
{
    a = (a ^ seed) * 0x9E3779B97F4A7C15u;
    a ^= a >> 32;
    a = (a + b) * 0xC2B2AE3D27D4EB4Fu;
    return a ^ (a >> 29);
}

static uint64_t hash_text(Text text)
{
    const char *at = text.at;
    size_t left = text.size;
    uint64_t hash = left;
    while (left > 8) {
        hash = mix(hash, load8(at));
        at += 8;
        left -= 8;
    }
    return mix(hash, load_short(at, left));
}

/* --- growing arrays ------------------------------------------------------------------------ */

typedef struct {
    int32_t *data;
    size_t count, room;
} Numbers;

/* Every allocation that fails ends here; the caller sees `failed` and raises MemoryError. */
static int push(Numbers *numbers, int64_t value)
{
    if (RARELY(numbers->count == numbers->room)) {
        size_t room = numbers->room ? numbers->room * 2 : 1024;
        int32_t *data = realloc(numbers->data, room * sizeof *data);
        if (data == NULL)
            return -1;
        numbers->data = data;
        numbers->room = room;
    }
    numbers->data[numbers->count++] = (int32_t)value;
    return 0;
}

/* Memory that the kernel filled and hands over as it is. */
typedef struct {
    PyObject_HEAD
    void *data;
    size_t size;
} Memory;

static int memory_buffer(PyObject *self, Py_buffer *view, int flags)
{
    Memory *memory = (Memory *)self;
    return PyBuffer_FillInfo(view, self, memory->data, (Py_ssize_t)memory->size, 1, flags);
}

static void memory_free(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    free(((Memory *)self)->data);
    PyObject_Free(self);
    Py_DECREF(type);
}

static PyType_Slot MEMORY_SLOTS[] = {
    {Py_tp_doc, "What a memoryview of the kernel looks at."},
    {Py_bf_getbuffer, memory_buffer},
    {Py_tp_dealloc, memory_free},
    {0},
};

static PyType_Spec MEMORY = {"findwell.io.native._kernel.Memory", sizeof(Memory), 0,
                             Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                             MEMORY_SLOTS};
static PyTypeObject *memory_type;

/* Return a view of the first bytes of some memory, which belongs to it then. */
static PyObject *new_memory(void *data, size_t size)
{
    void *fitting = realloc(data, size ? size : 1);
    Memory *memory = fitting ? PyObject_New(Memory, memory_type) : NULL;
    if (memory == NULL) {
        free(fitting ? fitting : data);
        return PyErr_NoMemory();
    }
    memory->data = fitting;
    memory->size = size;
    PyObject *view = PyMemoryView_FromObject((PyObject *)memory);
    Py_DECREF(memory);
    return view;
}

/* Hand numbers over. */
static PyObject *take_numbers(Numbers *numbers)
{
    PyObject *view = new_memory(numbers->data, numbers->count * sizeof *numbers->data);
    memset(numbers, 0, sizeof *numbers);
    return view;
}

/* --- lines --------------------------------------------------------------------------------- */

enum { BLANK = 1, NEWLINE = 2 };

static const uint8_t KIND[256] = {
    [' '] = BLANK, ['\t'] = BLANK, ['\r'] = BLANK, ['\v'] = BLANK, ['\f'] = BLANK,
    ['\n'] = NEWLINE,
};

enum { WORDS = 6 };

/* Read the next line that is neither blank nor a comment; return its words, at most WORDS of them.
 * 0: the end; WORDS + 1: there are more. */
static int next_line(const char **at, const char *end, Text words[WORDS])
{
    const char *p = *at;
    for (;;) {
        int count = 0;
        while (p < end && KIND[(uint8_t)*p] == BLANK)
            p++;
        if (p < end && *p == '#') {
            const char *newline = memchr(p, '\n', (size_t)(end - p));
            p = newline ? newline : end;
        }
        while (p < end && *p != '\n') {
            const char *begin = p;
            while (p < end && !KIND[(uint8_t)*p])
                p++;
            if (count < WORDS) {
                words[count].at = begin;
                words[count].size = (size_t)(p - begin);
            }
            count++;
            while (p < end && KIND[(uint8_t)*p] == BLANK)
                p++;
        }
        if (p < end)
            p++; /* the newline */
        if (count || p >= end) {
            *at = p;
            return count > WORDS ? WORDS + 1 : count;
        }
    }
}

/* --- numbers ------------------------------------------------------------------------------- */

static const double POWERS[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

/* The nearest double to mantissa / 10^places, for places up to 19, by one exact division. */
static double divide(uint64_t mantissa, int places)
{
#ifdef __SIZEOF_INT128__
    static const uint64_t TENS[] = {1u,
                                    10u,
                                    100u,
                                    1000u,
                                    10000u,
                                    100000u,
                                    1000000u,
                                    10000000u,
                                    100000000u,
                                    1000000000u,
                                    10000000000u,
                                    100000000000u,
                                    1000000000000u,
                                    10000000000000u,
                                    100000000000000u,
                                    1000000000000000u,
                                    10000000000000000u,
                                    100000000000000000u,
                                    1000000000000000000u,
                                    10000000000000000000u};
    /* the quotient of a number of at least 127 bits and one of at most 64 has at least 63 */
    int shift = 63 + __builtin_clzll(mantissa);
    unsigned __int128 wide = (unsigned __int128)mantissa << shift;
    unsigned __int128 quotient = wide / TENS[places];
    int sticky = quotient * TENS[places] != wide;
    int drop = 0; /* bits beyond the 64 that are kept; of these 53 stay, and the rest rounds */
    while (quotient >> (64 + drop))
        drop++;
    sticky |= (quotient & (((unsigned __int128)1 << drop) - 1)) != 0;
    uint64_t bits = (uint64_t)(quotient >> drop) | (uint64_t)sticky;
    /* converting rounds to nearest even, and the lowest bit says that something lies below it */
    return ldexp((double)bits, drop - shift);
#else
    (void)mantissa;
    (void)places;
    return NAN; /* the caller asks strtod */
#endif
}

/* Read a plain decimal number as Python's float() does. 0: it is spelled otherwise. */
static int read_number(Text text, double *value)
{
    const char *p = text.at, *end = text.at + text.size;
    int negative = 0, exponent = 0;
    if (p < end && (*p == '-' || *p == '+'))
        negative = *p++ == '-';
    uint64_t mantissa = 0;
    int digits = 0, places = 0, read = 0; /* digits that count; after the point; in all */
    for (; p < end && *p >= '0' && *p <= '9'; p++, read++) {
        mantissa = mantissa * 10 + (uint64_t)(*p - '0');
        digits += digits || *p != '0'; /* not by the mantissa, which may overflow to 0 */
    }
    if (p < end && *p == '.')
        for (p++; p < end && *p >= '0' && *p <= '9'; p++, read++, places++) {
            mantissa = mantissa * 10 + (uint64_t)(*p - '0');
            digits += digits || *p != '0';
        }
    if (!read)
        return 0;
    if (p < end && (*p == 'e' || *p == 'E')) {
        int minus = 0, any = 0;
        p++;
        if (p < end && (*p == '-' || *p == '+'))
            minus = *p++ == '-';
        for (; p < end && *p >= '0' && *p <= '9' && exponent < 1000; p++, any = 1)
            exponent = exponent * 10 + (*p - '0');
        if (!any)
            return 0;
        exponent = minus ? -exponent : exponent;
    }
    if (p != end)
        return 0;
    exponent -= places;
    double found = NAN;
    if (digits <= 19) { /* else the mantissa has overflowed */
        if (mantissa == 0)
            found = 0.0;
        else if (mantissa <= (1ull << 53) && exponent >= -22 && exponent <= 22)
            found = exponent < 0 ? (double)mantissa / POWERS[-exponent]
                                 : (double)mantissa * POWERS[exponent];
        else if (exponent < 0 && exponent >= -19)
            found = divide(mantissa, -exponent);
    }
    if (isnan(found)) {
        char copy[64], *stop;
        if (text.size >= sizeof copy)
            return 0;
        memcpy(copy, text.at, text.size);
        copy[text.size] = 0;
        *value = strtod(copy, &stop);
        return *stop == 0 && isfinite(*value); /* another decimal point stops it, too */
    }
    *value = negative ? -found : found;
    return 1;
}

/* --- what is not plain --------------------------------------------------------------------- */

static int is_utf8(const uint8_t *p, const uint8_t *end)
{
    while (p < end) {
        if (*p < 0x80) {
            while (end - p >= 8 && !(load8((const char *)p) & 0x8080808080808080u))
                p += 8;
            while (p < end && *p < 0x80)
                p++;
            continue;
        }
        int more = *p >= 0xF0 ? 3 : *p >= 0xE0 ? 2 : 1;
        if (*p < 0xC2 || *p > 0xF4 || end - p <= more)
            return 0;
        /* no overlong forms, no surrogates, nothing above U+10FFFF */
        uint8_t low = *p == 0xE0 ? 0xA0 : *p == 0xF0 ? 0x90 : 0x80;
        uint8_t high = *p == 0xED ? 0x9F : *p == 0xF4 ? 0x8F : 0xBF;
        if (p[1] < low || p[1] > high)
            return 0;
        for (int i = 2; i <= more; i++)
            if ((p[i] & 0xC0) != 0x80)
                return 0;
        p += more + 1;
    }
    return 1;
}

/* Whether an id begins with a blank of Unicode: it may be blank as a whole. */
static int begins_blank(Text id)
{
    const uint8_t *p = (const uint8_t *)id.at;
    if (p[0] < 0xC2)
        return 0;
    if (p[0] == 0xC2)
        return p[1] == 0x85 || p[1] == 0xA0;
    return p[0] >= 0xE1 && p[0] <= 0xE3 && (p[1] == 0x80 || p[1] == 0x81 || p[1] == 0x9A);
}

#endif
