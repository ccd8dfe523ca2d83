#include "binding/operation_arguments.h"

#include "binding/pinned_memory.h"
#include "terse/napi_buffer.h"

namespace terse::collectives::binding {
namespace {

// Reads lists of buffers. Sets the device of all of them, and the stream that writes them.
struct BufferReader {
    Operation& operation;
    std::vector<std::shared_ptr<void>>& pinned;
    bool first = true;

    std::vector<BufferView> read(const Napi::Value& list, const char* what) {
        const auto array = list.As<Napi::Array>();
        std::vector<BufferView> buffers;
        for (uint32_t i = 0; i < array.Length(); i++) {
            Napi::HandleScope scope(list.Env());
            const Napi::Value value = array.Get(i);
            const BufferView buffer = buffers.emplace_back(buffer_of(value, what));
            uint64_t stream = 0;
            if (value.IsTypedArray()) {
                pinned.push_back(pin_memory(value.As<Napi::TypedArray>()));
            } else {
                const Napi::Value handle = value.As<Napi::Object>().Get("stream");
                bool lossless;
                if (handle.IsBigInt()) stream = handle.As<Napi::BigInt>().Uint64Value(&lossless);
            }
            if (!buffer.on_cpu && buffer.cuda < 0)
                throw Napi::TypeError::New(list.Env(),
                                           "collectives take memory on cpu or cuda, not on " +
                                               value.As<Napi::Object>().Get("device").ToString().Utf8Value());
            // A copy has one buffer on the CPU and one on the device.
            if (operation.kind == Kind::copy && buffer.on_cpu) continue;
            if (!first && (buffer.cuda != operation.device || stream != operation.stream))
                throw Napi::TypeError::New(list.Env(),
                                           "all buffers of an operation must be on one device and one stream");
            first = false;
            operation.device = buffer.cuda;
            operation.stream = stream;
        }
        return buffers;
    }
};

void validate(Napi::Env env, const Operation& operation, const Communicator& communicator) {
    const auto require = [&](bool holds, const char* sentence) {
        if (!holds) throw Napi::RangeError::New(env, sentence);
    };
    const Kind kind = operation.kind;
    const auto &parts = operation.parts, &incoming = operation.incoming;
    const size_t n = communicator.size, rank = communicator.rank;
    require(kind > Kind::connect && kind < Kind::split, "unknown operation");
    require(operation.reduction <= Reduction::mean, "unknown reduction");
    for (const auto* list : {&parts, &incoming})
        for (const BufferView& buffer : *list)
            require(buffer.dtype == (parts.empty() ? incoming : parts)[0].dtype, "all parts must have one type");
    const bool lists = kind == Kind::reduce_scatter || kind == Kind::all_gather || kind == Kind::all_to_all;
    const bool to_root = kind == Kind::gather, from_root = kind == Kind::scatter;
    const size_t root_list = operation.peer == communicator.rank ? n : 0;
    require(parts.size() == (kind == Kind::barrier ? 0
                             : from_root           ? root_list
                             : lists               ? n
                                                   : 1),
            "wrong number of parts");
    require(incoming.size() == (kind == Kind::all_to_all          ? n
                                : to_root                         ? root_list
                                : from_root || kind == Kind::copy ? 1
                                                                  : 0),
            "wrong number of incoming parts");
    if (const char* why = communicator.refusal(operation)) require(false, why);
    require(kind != Kind::copy || parts[0].length == incoming[0].length, "a copy must be as long as its source");
    if (operation.even && kind == Kind::all_to_all)
        for (const auto* list : {&parts, &incoming})
            for (const BufferView& buffer : *list)
                require(buffer.length == parts[0].length, "even parts must have one length");
    if (kind == Kind::all_to_all)
        require(parts[rank].length == incoming[rank].length,
                "a rank's part for itself must be as long as the incoming one");
    if ((to_root || from_root) && root_list)
        require(to_root ? parts[0].length == incoming[operation.peer].length
                        : parts[operation.peer].length == incoming[0].length,
                "the root's own part must be as long as its buffer");
    if (is_rooted(kind) || is_point_to_point(kind))
        require(operation.peer >= 0 && static_cast<size_t>(operation.peer) < n, "no such rank");
    if (is_point_to_point(kind)) require(operation.peer != communicator.rank, "a rank cannot send to itself");
}

}  // namespace

Operation read_operation(const Napi::CallbackInfo& info, const Communicator& communicator,
                         std::vector<std::shared_ptr<void>>& pinned) {
    Operation operation;
    operation.kind = static_cast<Kind>(info[0].ToNumber().Uint32Value());
    operation.reduction = static_cast<Reduction>(info[1].ToNumber().Uint32Value());
    operation.peer = info[2].ToNumber().Int32Value();
    BufferReader buffers{operation, pinned};
    operation.parts = buffers.read(info[3], "parts");
    operation.incoming = buffers.read(info[4], "incoming");
    const uint32_t guarantees = info[6].IsNumber() ? info[6].ToNumber().Uint32Value() : 0;
    operation.packed = guarantees & 1;
    operation.even = guarantees & 2;
    const uint32_t note = info[5].IsNumber() ? info[5].ToNumber().Uint32Value() : 0;
    if (note > max_note) throw Napi::RangeError::New(info.Env(), "a note must be a number from 0 to 127");
    operation.note = static_cast<uint8_t>(note);
    validate(info.Env(), operation, communicator);
    return operation;
}

}  // namespace terse::collectives::binding
