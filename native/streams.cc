// Part of every addon. Node's binary has its own copies of std::cout, std::cerr and std::ctype<char>::id (copy relocations).
// What is opened with RTLD_DEEPBIND sees the originals inside libstdc++ instead, which nobody ever initialised: the first warning
// that a library writes to std::cerr would crash the process. So the originals get what Node's copies have.
#include <dlfcn.h>

#include <cstring>
#include <iostream>
#include <locale>
#include <new>

namespace {

// What the main program calls by this name; the handle asks it, not the scope that this addon looks in.
void* in_program(const char* symbol) { return dlsym(dlopen(nullptr, RTLD_LAZY), symbol); }

bool is_zero(const void* memory, size_t size) {
    const char* bytes = static_cast<const char*>(memory);
    return size == 0 || (bytes[0] == 0 && std::memcmp(bytes, bytes + 1, size - 1) == 0);
}

void adopt(std::ostream& original, const char* symbol) {
    auto* copy = static_cast<std::ostream*>(in_program(symbol));
    // A stream that was ever constructed starts with the address of its virtual functions.
    if (!copy || copy == &original || !is_zero(&original, sizeof(void*))) return;
    new (&original) std::ostream(copy->rdbuf());
    original.flags(copy->flags());
}

__attribute__((constructor)) void adopt_streams() {
    adopt(std::cout, "_ZSt4cout");
    adopt(std::cerr, "_ZSt4cerr");
    // The place of a facet in every locale, 0 until first asked for: std::regex would not find its character classes.
    std::locale::id& original = std::ctype<char>::id;
    if (const void* copy = in_program("_ZNSt5ctypeIcE2idE"); copy && is_zero(&original, sizeof original)) std::memcpy(static_cast<void*>(&original), copy, sizeof original);
}

}  // namespace
