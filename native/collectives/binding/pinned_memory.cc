// A reference of Node-API keeps an ArrayBuffer object, but not its memory, which another ArrayBuffer gets when it is
// transferred. Only V8 gives a share of the memory itself. The one function that is needed is declared here as in
// v8-array-buffer.h: its name and type have been the same in all versions since Node 14.
#include "binding/pinned_memory.h"

namespace v8 {

class BackingStore;

class __attribute__((visibility("default"))) ArrayBuffer {
public:
    std::shared_ptr<BackingStore> GetBackingStore();
};

}  // namespace v8

namespace terse::collectives::binding {

std::shared_ptr<void> pin_memory(const Napi::TypedArray& array) {
    napi_value buffer;
    if (napi_get_typedarray_info(array.Env(), array, nullptr, nullptr, nullptr, &buffer, nullptr) != napi_ok)
        throw Napi::Error::New(array.Env());
    return reinterpret_cast<v8::ArrayBuffer*>(buffer)->GetBackingStore();  // a napi_value is the pointer in V8's Local
}

}  // namespace terse::collectives::binding
