// The libtorch that this process has loaded. Its CUDA library is opened for the first CUDA device.
#pragma once
#include <string>

#include "torch.h"

namespace terse {

std::string loaded_version();   // "2.13.0"
std::string build_options();    // one NAME=VALUE per line
std::string libtorch_folder();  // folder of the loaded libtorch_cpu.so
// Throws if the loaded libraries are not those that this addon was built against.
void check_libraries();
// The device of this name: "cpu", "cuda", "cuda:1". Opens libtorch_cuda.so for the first CUDA device.
c10::Device open_device(const std::string& name);
// Records that the autograd engine has counted the devices; after that CUDA cannot be opened.
void backward_has_begun();
bool cuda_is_open();

}  // namespace terse
