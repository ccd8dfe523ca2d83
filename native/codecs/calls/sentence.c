// A sentence for each status.
#include "terse/codecs.h"

const char *terse_codec_sentence(terse_codec_status status) {
    switch (status) {
        case TERSE_CODEC_OK: return "All is well.";
        case TERSE_CODEC_UNKNOWN: return "No codec has this name.";
        case TERSE_CODEC_UNAVAILABLE: return "This codec has no such implementation, or this machine cannot run it.";
        case TERSE_CODEC_BAD_RANKS: return "A vote takes 1 to 1024 ranks, not all of them absent.";
        case TERSE_CODEC_BAD_ABI:
            return "The options are of another version of terse/codecs.h than this library: rebuild what calls it, and "
                   "begin with TERSE_CODEC_OPTIONS.";
        case TERSE_CODEC_BAD_LENGTH:
            return "The wire does not have the bytes that so many floats take: ask terse_codec_wire_bytes. No vector "
                   "has more than 2^48.";
        case TERSE_CODEC_OVERLAP: return "Buffers of one call overlap: give each its own memory.";
        case TERSE_CODEC_MISALIGNED: return "A float pointer is no multiple of 4.";
        case TERSE_CODEC_NOT_FINITE: return "The floats hold a NaN or an infinity.";
        case TERSE_CODEC_DOES_NOT_FIT: return "The floats hold a number that this codec cannot write.";
        case TERSE_CODEC_BAD_WIRE:
            return "No encoder writes such a wire: it was damaged, or written with other options.";
        case TERSE_CODEC_NOT_TAKEN: return "An option is set that this codec does not take.";
        case TERSE_CODEC_BAD_ZERO:
            return "The sign of an exact zero, or of a tie, must be set: TERSE_ZERO_MINUS or TERSE_ZERO_PLUS.";
        case TERSE_CODEC_BAD_BITS: return "This codec does not write that many bits per float.";
        case TERSE_CODEC_BAD_WIDTH:
            return "This codec does not know fields of that width, or they are narrower than its bits.";
        case TERSE_CODEC_TOO_MANY_RANKS:
            return "So many ranks times so many levels do not fit the field: ranks * (2^bits - 1), or ranks * 2 * "
                   "side, must be at most 2^width - 1. Take wider fields or fewer bits.";
        case TERSE_CODEC_BAD_SCALE_GROUPS:
            return "Scales go by block, or by segments, or by neither; segments are ends that rise to the number of "
                   "floats, units one per scale group, and squares of a transform whole.";
        case TERSE_CODEC_BAD_K: return "k must be at least 1 and at most the number of floats that it chooses among.";
        case TERSE_CODEC_BAD_INDEX: return "index must be a multiple of 64.";
        case TERSE_CODEC_BAD_SCALE:
            return "The scale must be finite, and units not negative and so small that the largest field is finite.";
        case TERSE_CODEC_BAD_CHOICE:
            return "An option has a value that this codec does not know: one of unscaled, levels, dimensions, clip, "
                   "indices, values, or of a block, ranks or units beside them.";
        case TERSE_FRAME_NOT_A_FRAME: return "These bytes are not a frame: they do not begin with \"TERS\".";
        case TERSE_FRAME_OTHER_VERSION: return "The frame is of another version than this library reads.";
        case TERSE_FRAME_CUT_SHORT: return "The frame is cut short: it says that it has more bytes than there are.";
        case TERSE_FRAME_DAMAGED: return "The frame is damaged: its checksum is not that of its bytes.";
        case TERSE_FRAME_BAD_HEADER: return "The frame's checksum is right, and its header says what no writer writes.";
        case TERSE_CODEC_BAD_DECAY:
            return "The decay of an error must be more than 0 and at most 1: begin with TERSE_CODEC_OPTIONS, where it "
                   "is 1.";
        case TERSE_FRAME_NO_ROOM:
            return "The frame has more segments than there is room for: read again with room for "
                   "options.segment_count.";
    }
    return "This status is not one of terse_codec_status.";
}
