#include <string.h>

#include "crc32c.h"
#include "targets.h"

static void decode_with_every_implementation(const terse_frame *frame, size_t size) {
    // A sparse frame can stand for far more floats than it has bytes, so every reader needs a limit.
    if (frame->n > 8 * size + 4096) return;
    float *first = NULL;
    terse_codec_status expected = TERSE_CODEC_OK;
    const terse_codec *codec;
    for (size_t i = 0; (codec = terse_codec_at(i)); i++) {
        if (strcmp(codec->name, frame->codec->name)) continue;
        float *sum = room_for(frame->n * sizeof *sum);
        for (size_t at = 0; at < frame->n; at++) sum[at] = 0.5f;
        const terse_codec_status status = terse_codec_decode_add(codec, sum, frame->n, frame->wire, frame->wire_bytes,
                                                                 &frame->options);
        require(status == TERSE_CODEC_OK || status == TERSE_CODEC_BAD_WIRE,
                "a frame that was read has a wire of another length", codec);
        for (size_t at = 0; at < frame->n && status != TERSE_CODEC_OK; at++)
            require(sum[at] == 0.5f, "a bad wire was added", codec);
        for (size_t at = 0; at < frame->n; at++) require(sum[at] == sum[at], "a wire gave NaN", codec);
        if (first) {
            require(status == expected, "another status than the first implementation's", codec);
            require(!memcmp(first, sum, frame->n * sizeof *sum), "other sums than the first implementation's", codec);
            free(sum);
        } else {
            first = sum, expected = status;
        }
    }
    free(first);
}

static void write_anew(const terse_frame *frame, const uint8_t *bytes) {
    size_t length = 0, wire_at = 0;
    require(terse_frame_bytes(frame->codec, frame->n, &frame->options, &length, &wire_at) == TERSE_CODEC_OK,
            "what was read cannot be written", frame->codec);
    require(length == frame->bytes && bytes + wire_at == frame->wire, "a frame written anew has another length",
            frame->codec);
    uint8_t *again = room_for(length);
    require(terse_frame_write(frame->codec, again, length, frame->wire, frame->wire_bytes, frame->n, &frame->options) ==
                TERSE_CODEC_OK,
            "what was read cannot be written", frame->codec);
    require(!memcmp(again, bytes, length), "a frame written anew has other bytes", frame->codec);
    free(again);
}

terse_codec_status read_and_use(const uint8_t *bytes, size_t size) {
    terse_frame frame;
    size_t *segments = NULL;
    terse_codec_status status = terse_frame_read(&frame, bytes, size, NULL, 0);
    if (status == TERSE_FRAME_NO_ROOM) {
        const size_t room = frame.options.segment_count;
        require(room <= size / 8, "more segments than the bytes can hold", NULL);
        segments = room_for(room * sizeof *segments);
        status = terse_frame_read(&frame, bytes, size, segments, room);
        require(status != TERSE_FRAME_NO_ROOM, "no room where there is as much as was asked for", NULL);
    }
    if (status == TERSE_CODEC_OK) {
        require(frame.bytes <= size && frame.wire >= bytes && frame.wire + frame.wire_bytes <= bytes + frame.bytes,
                "a wire outside its frame", frame.codec);
        write_anew(&frame, bytes);
        decode_with_every_implementation(&frame, size);
    }
    free(segments);
    return status;
}

static uint64_t number(const uint8_t *at, int bytes) {
    uint64_t value = 0;
    for (int i = 0; i < bytes; i++) value |= (uint64_t)at[i] << 8 * i;
    return value;
}

int seal(uint8_t *bytes, size_t size) {
    if (size < 92 || number(bytes + 76, 4) > (size - 92) / 8) return 0;
    const size_t wire_at = 88 + 8 * number(bytes + 76, 4);
    if (number(bytes + 80, 8) > size - 4 - wire_at) return 0;
    const size_t end = wire_at + number(bytes + 80, 8);
    const uint32_t crc = terse_crc32c(bytes, end);
    for (int i = 0; i < 4; i++) bytes[end + i] = (uint8_t)(crc >> 8 * i);
    return 1;
}

terse_codec_status fuzz_frame(const uint8_t *bytes, size_t size) {
    const terse_codec_status status = read_and_use(bytes, size);
    if (status != TERSE_FRAME_DAMAGED) return status;
    // No fuzzer guesses a checksum, so the frame is read once more with the right one.
    uint8_t *sealed = room_for(size);
    memcpy(sealed, bytes, size);
    require(seal(sealed, size) && read_and_use(sealed, size) != TERSE_FRAME_DAMAGED, "a checksum was refused that fits",
            NULL);
    free(sealed);
    return status;
}
