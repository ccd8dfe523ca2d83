// The checks that run both emulated and on a GPU; 0 where all is well.
#ifndef TERSE_CODECS_CUDA_CHECK_H
#define TERSE_CODECS_CUDA_CHECK_H
int check_all();
#endif
