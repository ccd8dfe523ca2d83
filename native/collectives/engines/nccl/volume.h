// The bytes and messages that a rank sends, in closed form, because NCCL has no counters. Each operation counts as the
// least that a ring or a direct copy must carry; flags, padding and network retries are not counted.
// packages/collectives/src/testing/nccl-bytes.ts has the same formulas.
//
// S: bytes of the whole, n: ranks, r: this rank, c(r): bytes of the part of rank r, next: r + 1.
//                    bytes                         messages
//   all-reduce       2 S − c(r) − c(next)          1
//   reduce-scatter   S − c(r)                      1
//   all-gather       S − c(next)                   1
//   broadcast        S; 0 where next is the root   1 or 0
//   all-to-all       Σ outgoing − own              n − 1, and n − 1 bytes of notes
//   gather           c(r); the root 0              1; the root none
//   scatter          the root S − c(r)             the root n − 1
//   barrier          0                             1
#pragma once
#include "communicator/operation.h"

namespace terse::nccl {

struct Volume {
    uint64_t bytes = 0, messages = 0, header_bytes = 0;
};

Volume volume_of(const collectives::Operation& operation, int rank, int size);

}  // namespace terse::nccl
