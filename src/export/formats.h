/* The formats that networks are exported to. To add one: a file with its function, and a line here.
 *
 * `trireme export` has an option for each, of the same name.
 */
#ifndef TR_EXPORT_FORMATS_H
#define TR_EXPORT_FORMATS_H

#include "base/options/registry.h"
#include "job/feed/intake.h"
#include "trireme/export.h"

/* What is exported. Read-only; borrowed for the call. */
struct tr_export {
    const struct tr_job *job;
    const struct tr_checkpoint_facts *facts; /* of the checkpoint */
    /* On the host, an arena of the model's parameters; moving averages where `averages`. */
    const float *parameters;
    bool averages;
    const struct tr_intake *intake; /* how examples enter the network */
    enum tr_layout layout;
    const char *name; /* of the exported network; the job's where none was given */
    bool half;        /* numbers of 16 bits, in formats that have them */
};

/* X(name, "what the file is", the value's name), in the order in which they are written and documented. */
#define TR_EXPORT_FORMATS(X)                                                                                 \
    X(safetensors, "the tensors, in the safetensors format, in either layout", "FILE")                       \
    X(npz, "the tensors as arrays of NumPy, in either layout", "FILE")                                       \
    X(torch, "a PyTorch module as Python source, which takes the tensors in the layout of PyTorch", "FILE")  \
    X(onnx, "a graph for ONNX Runtime and others", "FILE")                                                   \
    X(c, "one C99 file without dependencies, which predicts with the same bits", "FILE")                     \
    X(hub, "a directory for Hugging Face's transformers, of a network like GPT-2, Llama, Mistral or Qwen2",  \
      "DIR")                                                                                                 \
    X(gguf, "a file for llama.cpp and its kin, of such a network", "FILE")                                   \
    X(peft, "a directory of PEFT of Hugging Face with the adapters of an imported network", "DIR")

/* The same as a registry. */
extern const struct tr_registry tr_export_formats;

/* One function for each: writes the file `path`, whole or not at all. */
#define TR_EXPORT_DECLARE(name, text, value)                                                                 \
    tr_status tr_export_##name(const struct tr_export *what, const char *path);
TR_EXPORT_FORMATS(TR_EXPORT_DECLARE)
#undef TR_EXPORT_DECLARE

#endif
