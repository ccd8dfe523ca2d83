// Which libtorch is in this process, and opening its CUDA half when a CUDA device is asked for.
#pragma once
#include <string>

#include "torch.h"

namespace terse {

std::string loaded_version();         // "2.13.0"
std::string build_options();          // NAME=VALUE, a line each
std::string libtorch_folder();        // the folder of the mapped libtorch_cpu.so
// Throws one sentence when the mapped libraries are not those that this addon was built against.
void check_libraries();
// "cpu", "cuda", "cuda:1". The first CUDA device opens libtorch_cuda.so.
c10::Device open_device(const std::string& name);
// CUDA cannot be opened any more once the autograd engine has counted the devices.
void backward_has_begun();
bool cuda_is_open();

}  // namespace terse
