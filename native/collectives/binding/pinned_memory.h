// Keeps the memory of a typed array while an operation uses it.
#pragma once
#include <napi.h>

#include <memory>

namespace terse::collectives::binding {

// While the result exists the array's memory stays where it is, even if its ArrayBuffer is transferred or collected. A
// resizable ArrayBuffer can shrink all the same; TypeScript refuses those.
std::shared_ptr<void> pin_memory(const Napi::TypedArray& array);

}  // namespace terse::collectives::binding
