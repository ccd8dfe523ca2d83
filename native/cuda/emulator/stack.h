// Two stacks that one thread of the CPU goes back and forth between. swapcontext would do, and does where the processor
// is another one: but it asks the kernel for the signal mask each time, and a check changes fibers some ten million
// times.
#ifndef TERSE_EMULATOR_STACK_H
#define TERSE_EMULATOR_STACK_H
#include <cstddef>

#if defined(__x86_64__)
typedef void *stack_state;  // where the registers that a call keeps lie on the stack

extern "C" void terse_emulator_swap(stack_state *from, stack_state to);
asm(R"(
    .text
    .type terse_emulator_swap, @function
terse_emulator_swap:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
    .size terse_emulator_swap, .-terse_emulator_swap
)");

inline void swap_stacks(stack_state *from, stack_state *to) { terse_emulator_swap(from, *to); }

// The first swap to it calls `begin`, which never returns.
inline void prepare_stack(stack_state *state, char *stack, size_t bytes, void (*begin)()) {
    void **top = (void **)(stack + bytes) - 1;  // as if `begin` had been called: 8 below a multiple of 16
    *--top = (void *)begin;
    for (int kept = 0; kept < 6; kept++) *--top = nullptr;
    *state = top;
}
#else
#include <ucontext.h>
typedef ucontext_t stack_state;

inline void swap_stacks(stack_state *from, stack_state *to) { swapcontext(from, to); }

inline void prepare_stack(stack_state *state, char *stack, size_t bytes, void (*begin)()) {
    getcontext(state);
    state->uc_stack.ss_sp = stack;
    state->uc_stack.ss_size = bytes;
    state->uc_link = nullptr;
    makecontext(state, begin, 0);
    state->uc_stack.ss_size = 0;  // or the address sanitizer cleans all of the stack at each swap
}
#endif

#endif
