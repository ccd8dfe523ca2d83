// The element types of the fake NCCL, by NCCL's numbers.
#pragma once
#include <cstddef>
#include <vector>

// Bytes of an element; 0: there is no such type.
size_t size_of(int type);

// to[i] = the reduction of from[0][i], from[1][i], …, in this order.
void reduce(int type, std::vector<const void*> from, void* to, size_t count, int op);
