// Part of every addon. Node's binary has its own copies of std::cout, std::cerr and std::ctype<char>::id (copy
// relocations). A library opened with RTLD_DEEPBIND sees the originals inside libstdc++ instead, and these are never
// initialised: its first warning on std::cerr would crash the process. So this file gives the originals the values of
// Node's copies.
#include <dlfcn.h>

#include <cstring>
#include <iostream>
#include <locale>
#include <new>

namespace {

// The main program's symbol of this name. Looked up by the program's handle, because this addon's own scope has the
// original first.
void* program_symbol(const char* symbol) { return dlsym(dlopen(nullptr, RTLD_LAZY), symbol); }

bool is_zero(const void* memory, size_t size) {
    const char* bytes = static_cast<const char*>(memory);
    return size == 0 || (bytes[0] == 0 && std::memcmp(bytes, bytes + 1, size - 1) == 0);
}

void adopt(std::ostream& original, const char* symbol) {
    auto* copy = static_cast<std::ostream*>(program_symbol(symbol));
    // A constructed stream starts with the address of its virtual function table.
    if (!copy || copy == &original || !is_zero(&original, sizeof(void*))) return;
    new (&original) std::ostream(copy->rdbuf());
    original.flags(copy->flags());
}

__attribute__((constructor)) void adopt_streams() {
    adopt(std::cout, "_ZSt4cout");
    adopt(std::cerr, "_ZSt4cerr");
    // The index of this facet in every locale, 0 until its first use. With another index std::regex does not find its
    // character classes.
    std::locale::id& original = std::ctype<char>::id;
    if (const void* copy = program_symbol("_ZNSt5ctypeIcE2idE"); copy && is_zero(&original, sizeof original))
        std::memcpy(static_cast<void*>(&original), copy, sizeof original);
}

}  // namespace
