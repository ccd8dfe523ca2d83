// Gloo's own ring all-reduce of f32 beside ours. Arguments: RANK SIZE ADDRESS FOLDER, a folder that all ranks see.
// Reads lines "N TIMES" and answers each with the milliseconds of every all-reduce of N floats, as JSON. Ranks meet in a barrier before each.
#include <gloo/allreduce.h>
#include <gloo/barrier.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

int main(int, char** argv) {
    const int rank = std::atoi(argv[1]), size = std::atoi(argv[2]);
    gloo::transport::tcp::attr attr;
    attr.hostname = argv[3];
    auto device = gloo::transport::tcp::CreateDevice(attr);
    gloo::rendezvous::FileStore store(argv[4]);
    auto context = std::make_shared<gloo::rendezvous::Context>(rank, size);
    context->setTimeout(std::chrono::minutes(10));
    context->connectFullMesh(store, device);
    std::printf("{}\n");
    std::fflush(stdout);

    unsigned long n;
    int times;
    uint32_t tag = 0;
    std::vector<float> x;
    while (std::scanf("%lu %d", &n, &times) == 2) {
        x.assign(n, 0.f);
        std::printf("{\"milliseconds\":[");
        for (int i = 0; i < times; i++) {
            gloo::BarrierOptions barrier(context);
            barrier.setTag(++tag);
            gloo::barrier(barrier);
            gloo::AllreduceOptions options(context);
            options.setOutput(x.data(), x.size());
            options.setAlgorithm(gloo::AllreduceOptions::Algorithm::RING);
            options.setReduceFunction(static_cast<void (*)(void*, const void*, const void*, size_t)>(&gloo::sum<float>));
            options.setTag(++tag);
            const auto began = std::chrono::steady_clock::now();
            gloo::allreduce(options);
            std::printf("%s%.6f", i ? "," : "", std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - began).count());
        }
        std::printf("]}\n");
        std::fflush(stdout);
    }
    return 0;
}
