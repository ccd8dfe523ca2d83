#pragma once
#include "terse/buffer_view.h"

namespace terse::collectives::binding {

// into = from, of which at least one is on a CUDA device: as many bytes, and both on the same device or one on the CPU.
// Runs after the work that is now in the device's default stream, and has ended when it returns. Throws
// std::runtime_error where there is no driver, no such device, or the copy fails.
void device_copy(const BufferView& into, const BufferView& from);

}  // namespace terse::collectives::binding
