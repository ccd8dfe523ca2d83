// The memory of tensors on the CPU: what is freed stays in the process for the next training step, and large tensors
// are on huge pages.
#pragma once
#include <cstdint>
#include <vector>

namespace terse {

// A step allocates and frees the same blocks as the one before. By default glibc returns much of them to the system at
// each free, which must clear them for the next step: ResNet-18 for CIFAR, 8 images, up to 14,000 pages a step. And
// backward's thread would have an arena of its own, so it could not reuse what it frees of forward's. Blocks over 32
// MiB still return at once, which is glibc's limit.
//
// What the environment sets (MALLOC_TRIM_THRESHOLD_, MALLOC_MMAP_THRESHOLD_, MALLOC_TOP_PAD_, MALLOC_ARENA_MAX) stays
// as it is. Without glibc it does nothing.
void keep_freed_memory();

// Takes tensors from malloc in place of libtorch's allocator, which asks for aligned blocks: glibc cuts those out of
// larger ones, so that a freed block rarely fits the next tensor of its size. A Llama of 135 M parameters with LoRA, 4
// × 256 tokens, counts 1,322 MiB of activations, and takes 1,384 MiB for them, with aligned blocks 1,627.
//
// Tensors of 2 MiB and more ask for huge pages (madvise), unless the environment has THP_MEM_ALLOC_ENABLE=0. An
// optimizer's step walks three or four arrays at once, and the processor follows physical addresses from page to page:
// on Zen 5 AdamW takes 37 ms for 64 Mi parameters in place of 48. Where the system gives no huge pages it does nothing.
void use_own_allocator();

// Counts from now on what tensors take, in the whole process. What was there before does not count, also where it is
// freed meanwhile. Throws if it counts already.
void begin_counting();

// Ends the counting. Returns the bytes that tensors took after each allocation.
std::vector<int64_t> end_counting();

}  // namespace terse
