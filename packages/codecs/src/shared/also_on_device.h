// Before a function that both C and CUDA compile: one definition, for processors and for GPUs.
#ifndef TERSE_ALSO_ON_DEVICE_H
#define TERSE_ALSO_ON_DEVICE_H

#ifdef __CUDACC__
#define TERSE_ALSO_ON_DEVICE __host__ __device__
#else
#define TERSE_ALSO_ON_DEVICE
#endif

#endif
