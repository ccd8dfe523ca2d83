// The fuzz targets without a fuzzer: real frames of every codec, mutated in the ways that damage and malice have,
// always the same.
//
//     codecs_mutate [MUTATIONS]       feeds so many (100000), and prints what became of them
//     codecs_mutate --seeds FOLDER    writes the frames, one a file, for a fuzzer to begin with
//     codecs_mutate --read            reads frames in hexadecimal, one per line, and prints what each is; so readers
//                                     can be compared
#include <signal.h>
#include <string.h>

#include "crc32c.h"
#include "targets.h"

enum { FRAMES = 2048, MOST_BYTES = 8192, STATUSES = TERSE_FRAME_NO_ROOM + 1 };

typedef struct sample {
    uint8_t *bytes;
    size_t size;
} sample;
static sample frames[FRAMES];
static size_t frame_count;

static uint64_t random_state = 0x9E3779B97F4A7C15u;
static uint64_t random_below(uint64_t bound) {  // splitmix64
    uint64_t z = random_state += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return (z ^ z >> 31) % bound;
}

static int keep_frame(const terse_codec *codec, size_t n, terse_codec_options *options) {
    size_t length, wire_at;
    if (frame_count == FRAMES || terse_frame_bytes(codec, n, options, &length, &wire_at) != TERSE_CODEC_OK ||
        length > MOST_BYTES)
        return 0;
    uint8_t *frame = room_for(length);
    float *x = room_for(n * sizeof *x);
    for (size_t i = 0; i < n; i++) x[i] = (float)random_below(3) - 1.0f;  // what every codec can write
    const size_t wire_bytes = length - wire_at - 4;
    const int good = terse_codec_encode(codec, frame + wire_at, wire_bytes, x, n, options, NULL) == TERSE_CODEC_OK &&
                     terse_frame_write(codec, frame, length, frame + wire_at, wire_bytes, n, options) == TERSE_CODEC_OK;
    free(x);
    if (good) frames[frame_count++] = (sample){frame, length};
    else free(frame);
    return good;
}

// Tries random options: those that a codec accepts make a frame. So a new codec needs no line here.
static void make_frames(void) {
    static const size_t lengths[] = {0, 1, 9, 64, 130, 300};
    static const uint32_t bits[] = {0, 0, 1, 2, 4, 8}, widths[] = {0, 0, 4, 8, 16};
    static const size_t blocks[] = {0, 0, 3, 8, 64}, ks[] = {0, 0, 1, 5};
    const terse_codec *codec;
    const char *last = "";
    for (size_t i = 0; (codec = terse_codec_at(i)); i++) {
        if (!strcmp(last, codec->name)) continue;
        last = codec->name;
        int kept = 0;
        for (int trial = 0; trial < 200000 && kept < 60; trial++) {
            const size_t n = lengths[random_below(6)];
            size_t segments[3] = {n / 3, n / 3, n};
            terse_codec_options options = TERSE_CODEC_OPTIONS;
            options.zero = TERSE_ZERO_PLUS;
            options.bits = bits[random_below(6)];
            options.width = widths[random_below(5)];
            options.ranks = (uint32_t)random_below(3);
            options.unscaled = random_below(4) == 0;
            options.levels = random_below(2) ? TERSE_LEVELS_UNIFORM : (terse_levels)random_below(3);
            options.dimensions = random_below(2) ? 0 : (uint32_t)random_below(3);
            options.block = blocks[random_below(5)];
            options.k = ks[random_below(4)];
            options.indices = (terse_indices)(random_below(3) == 0);
            options.values = random_below(2) ? TERSE_VALUES_F32 : (terse_values)random_below(4);
            options.clip = random_below(4) ? 0 : 2.5f;
            if (random_below(3) == 0) options.segments = segments, options.segment_count = 3;
            kept += keep_frame(codec, n, &options);
        }
        require(kept > 0, "no options were found that it takes: add them to make_frames", codec);
    }
}

static void put(uint8_t *at, uint64_t value, int bytes) {
    for (int i = 0; i < bytes; i++) at[i] = (uint8_t)(value >> 8 * i);
}

// A number that is wrong as a length, or near one that is.
static uint64_t awkward(void) {
    static const uint64_t numbers[] = {0,
                                       1,
                                       2,
                                       7,
                                       8,
                                       63,
                                       64,
                                       255,
                                       256,
                                       0x7FFFFFFF,
                                       0x80000000,
                                       0xFFFFFFFF,
                                       0x100000000,
                                       (uint64_t)1 << 48,
                                       ((uint64_t)1 << 48) + 1,
                                       (uint64_t)1 << 61,
                                       INT64_MAX,
                                       (uint64_t)1 << 63,
                                       UINT64_MAX - 7,
                                       UINT64_MAX};
    const uint64_t number = numbers[random_below(sizeof numbers / sizeof *numbers)];
    return random_below(2) ? number : number + random_below(16) - 8;
}

// One mutation in place; returns the new size, at most the old one and 64 more.
static size_t mutate(uint8_t *bytes, size_t size) {
    static const struct {
        int at, bytes;
    } lengths[] = {{4, 4},  {24, 8}, {32, 4}, {36, 4}, {40, 4}, {44, 4}, {48, 4}, {52, 4},
                   {56, 8}, {64, 8}, {72, 4}, {76, 4}, {80, 8}, {88, 8}, {96, 8}};
    if (size == 0) return 0;
    switch (random_below(7)) {
        case 0: bytes[random_below(size)] ^= (uint8_t)(1 << random_below(8)); return size;
        case 1: bytes[random_below(size < 112 ? size : 112)] = (uint8_t)random_below(256); return size;
        case 2: return random_below(size + 1);
        case 3: {
            const size_t more = random_below(65);
            for (size_t i = 0; i < more; i++) bytes[size + i] = (uint8_t)random_below(256);
            return size + more;
        }
        case 4:
        case 5: {
            const size_t field = random_below(sizeof lengths / sizeof *lengths);
            if ((size_t)(lengths[field].at + lengths[field].bytes) <= size)
                put(bytes + lengths[field].at, awkward(), lengths[field].bytes);
            return size;
        }
        default: {  // the header of one frame, what follows of another
            const sample *other = &frames[random_below(frame_count)];
            const size_t cut = random_below(2) ? 88 : random_below(112), end = other->size < size ? other->size : size;
            if (cut < end) memcpy(bytes + cut, other->bytes + cut, end - cut);
            return size;
        }
    }
}

static long verdicts[STATUSES];

// After an abort, prints the bytes that caused it, as --read takes them.
static const uint8_t *fed;
static size_t fed_size;
static void print_fed(int signal_number) {
    (void)signal_number;
    for (size_t i = 0; i < fed_size; i++) fprintf(stderr, "%02x", fed[i]);
    fputc('\n', stderr);
}

static void feed(const sample *from, int mutations) {
    uint8_t *room = room_for(from->size + 64 * (size_t)mutations);
    memcpy(room, from->bytes, from->size);
    size_t size = from->size;
    for (int i = 0; i < mutations; i++) size = mutate(room, size);
    uint8_t *exact = room_for(size);  // so that a sanitizer sees a step too far
    memcpy(exact, room, size);
    if (random_below(4)) seal(exact, size);
    fed = exact, fed_size = size;
    verdicts[fuzz_frame(exact, size)]++;
    if (random_below(8) == 0) fuzz_options(exact, size);
    fed_size = 0;
    free(exact);
    free(room);
}

// "status codec n wire", or the status alone.
static void read_and_print(const char *line, size_t length) {
    const size_t size = length / 2;
    uint8_t *bytes = room_for(size);
    for (size_t i = 0; i < size; i++) {
        const char byte[3] = {line[2 * i], line[2 * i + 1], 0};
        bytes[i] = (uint8_t)strtoul(byte, NULL, 16);
    }
    terse_frame frame;
    size_t *segments = room_for(size);
    const terse_codec_status status = terse_frame_read(&frame, bytes, size, segments, size / sizeof *segments);
    require(read_and_use(bytes, size) == status, "two readings of one frame differ", NULL);
    printf("%d", status);
    if (status == TERSE_CODEC_OK) {
        printf(" %s %zu ", frame.codec->name, frame.n);
        for (size_t i = 0; i < frame.wire_bytes; i++) printf("%02x", frame.wire[i]);
    }
    puts("");
    free(bytes);
    free(segments);
}

int main(int count, char **words) {
    if (count == 2 && !strcmp(words[1], "--read")) {
        static char line[1 << 20];
        while (fgets(line, sizeof line, stdin)) read_and_print(line, strcspn(line, "\n"));
        return 0;
    }
    make_frames();
    if (count == 3 && !strcmp(words[1], "--seeds")) {
        for (size_t i = 0; i < frame_count; i++) {
            char path[4096];
            snprintf(path, sizeof path, "%s/%04zu", words[2], i);
            FILE *file = fopen(path, "wb");
            if (!file || fwrite(frames[i].bytes, 1, frames[i].size, file) != frames[i].size || fclose(file))
                return perror(path), 1;
        }
        return printf("%zu frames\n", frame_count), 0;
    }

    require(terse_crc32c((const uint8_t *)"123456789", 9) == 0xE3069283 &&
                terse_crc32c_by_table((const uint8_t *)"123456789", 9) == 0xE3069283,
            "CRC-32C of \"123456789\"", NULL);
    for (size_t i = 0; i < frame_count; i++) {
        const sample *f = &frames[i];
        require(read_and_use(f->bytes, f->size) == TERSE_CODEC_OK, "a frame is refused that was just written", NULL);
        for (size_t start = 0; start < 9 && start < f->size; start++)
            require(terse_crc32c(f->bytes + start, f->size - start) ==
                        terse_crc32c_by_table(f->bytes + start, f->size - start),
                    "the instruction's CRC-32C is not the table's", NULL);
        for (size_t size = 0; size < f->size; size++) {  // every truncation, with no byte behind it
            uint8_t *cut = room_for(size);
            memcpy(cut, f->bytes, size);
            require(read_and_use(cut, size) == (size < 4 ? TERSE_FRAME_NOT_A_FRAME : TERSE_FRAME_CUT_SHORT),
                    "a frame that was cut is not cut short", NULL);
            free(cut);
        }
        for (size_t bit = 0; bit < 8 * f->size; bit += 1 + random_below(40)) {  // one bit is always noticed
            f->bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
            require(read_and_use(f->bytes, f->size) != TERSE_CODEC_OK, "a flipped bit went unnoticed", NULL);
            f->bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        }
    }
    signal(SIGABRT, print_fed);
    const long mutations = count == 2 ? atol(words[1]) : 100000;
    for (long i = 0; i < mutations; i++) feed(&frames[random_below(frame_count)], 1 + (int)random_below(3));
    for (int status = 0; status < STATUSES; status++)
        if (verdicts[status]) printf("%7ld  %s\n", verdicts[status], terse_codec_sentence((terse_codec_status)status));
    printf("%ld mutations of %zu frames\n", mutations, frame_count);
    for (size_t i = 0; i < frame_count; i++) free(frames[i].bytes);
    return 0;
}
