// Freed memory stays in the process for the next training step, and large tensors are on huge pages.
#pragma once

namespace terse {

// A step allocates and frees the same blocks as the one before. By default glibc returns much of them to the system at
// each free, which must clear them for the next step: ResNet-18 for CIFAR, 8 images, up to 14,000 pages a step. And
// backward's thread would have an arena of its own, so it could not reuse what it frees of forward's. Blocks over 32
// MiB still return at once, which is glibc's limit.
//
// What the environment sets (MALLOC_TRIM_THRESHOLD_, MALLOC_MMAP_THRESHOLD_, MALLOC_TOP_PAD_, MALLOC_ARENA_MAX) stays
// as it is. Without glibc it does nothing.
void keep_freed_memory();

// libtorch asks for huge pages (madvise) for tensors of 2 MiB and more, as with THP_MEM_ALLOC_ENABLE=1; what the
// environment says goes before. An optimizer's step walks three or four arrays at once, and the processor follows
// physical addresses from page to page: on Zen 5 AdamW takes 37 ms for 64 Mi parameters in place of 48. Where the
// system gives no huge pages it does nothing.
void use_huge_pages();

}  // namespace terse
