// The addon's functions for JavaScript, by file. Each function here adds those of one file to the addon's exports.
#pragma once
#include <napi.h>

namespace terse::collectives::binding {

void add_buffers(Napi::Env env, Napi::Object exports);          // buffers.cc: reduce, copy, average, addressOf
void add_end_with_parent(Napi::Env env, Napi::Object exports);  // end_with_parent.cc: endWithParent
void add_engines(Napi::Env env, Napi::Object exports);          // engines.cc: loopback, tcp, gloo, link
void add_heartbeat(Napi::Env env, Napi::Object exports);        // heartbeat.cc: heartbeat, heartbeatReplies
void add_mpi(Napi::Env env, Napi::Object exports);              // mpi.cc: startMpi, mpi, mpiBootstrap
void add_nccl(Napi::Env env, Napi::Object exports);             // nccl.cc: nccl…

}  // namespace terse::collectives::binding
