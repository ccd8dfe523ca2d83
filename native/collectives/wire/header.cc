#include "wire/header.h"

#include <string>

#include "communicator/failure.h"

namespace terse::collectives {
namespace {

constexpr uint32_t magic = 0x32535254;  // "TRS2"

std::string elements(const Header& header) {
    const char* type = header.dtype <= static_cast<uint8_t>(DType::boolean) ? name_of(static_cast<DType>(header.dtype))
                                                                            : "unknown";
    return std::to_string(header.count) + " " + type;
}

std::string operation_of(Kind kind, uint32_t sequence) {
    return std::string(name_of(kind)) + " number " + std::to_string(sequence);
}

}  // namespace

void compare(const Header& received, const Header& expected, int peer, int rank) {
    const std::string theirs = "rank " + std::to_string(peer), ours = "rank " + std::to_string(rank);
    const auto refuse = [&](const std::string& sentence) { throw Failure(Reason::mismatch, peer, sentence); };
    const auto kind = static_cast<Kind>(expected.kind);
    const bool point_to_point = kind == Kind::send;
    if (received.magic != expected.magic)
        refuse("the message from " + theirs +
               " does not begin like a message of this version; every rank must run the same build");
    if (received.kind != expected.kind || received.sequence != expected.sequence)
        refuse(theirs + " is in " + operation_of(static_cast<Kind>(received.kind), received.sequence) + " while " +
               ours + " is in " + operation_of(point_to_point ? Kind::recv : kind, expected.sequence) +
               "; every rank must call the same operations in the same order");
    if (is_rooted(kind) && received.agreement != expected.agreement)
        refuse("the root of this " + std::string(name_of(kind)) + " is rank " + std::to_string(received.agreement) +
               " on " + theirs + " and rank " + std::to_string(expected.agreement) + " on " + ours +
               "; every rank must name the same root");
    if (received.count != expected.count || received.dtype != expected.dtype) {
        const char *has = point_to_point ? " sends " : " has ", *wants = point_to_point ? " receives " : " has ";
        refuse(theirs + has + elements(received) + " where " + ours + wants + elements(expected) +
               "; sizes and types must be the same on both");
    }
    if (received.reduction != expected.reduction)
        refuse(theirs + " calls " + name_of(static_cast<Reduction>(received.reduction)) + " and " + ours + " calls " +
               name_of(static_cast<Reduction>(expected.reduction)) + "; every rank must call the same reduction");
    if (received.agreement != expected.agreement)
        refuse(theirs + " and " + ours + " have parts of different lengths; every rank must give the same lengths");
    if (received.bytes != expected.bytes)
        refuse(theirs + " announces " + std::to_string(received.bytes) + " bytes where " + ours + " expects " +
               std::to_string(expected.bytes) + "; what one rank sends must be as long as what the other receives");
    if (is_inline(received) != is_inline(expected))
        refuse(theirs + " cuts its messages in another way; every rank must run the same build");
}

Header header_of(const Message& m) {
    return {magic,
            static_cast<uint8_t>(m.kind),
            static_cast<uint8_t>(m.dtype),
            static_cast<uint8_t>(m.reduction),
            static_cast<uint8_t>(m.note << 1 | (m.may_inline && m.bytes <= inline_bytes)),
            m.sequence,
            m.agreement,
            m.count,
            m.bytes};
}

Message message_of(const Operation& operation, uint64_t count, uint64_t bytes, uint32_t agreement) {
    const auto& buffers = operation.parts.empty() ? operation.incoming : operation.parts;
    const DType dtype = buffers.empty() ? DType::u8 : buffers[0].dtype;
    return {operation.kind, dtype, operation.reduction, operation.sequence, agreement, count, bytes};
}

uint32_t hash_lengths(const std::vector<BufferView>& parts) {  // FNV-1a over the lengths
    uint32_t hash = 2166136261u;
    for (const BufferView& part : parts)
        for (int byte = 0; byte < 8; byte++) hash = (hash ^ ((part.length >> (8 * byte)) & 0xff)) * 16777619u;
    return hash;
}

}  // namespace terse::collectives
