/* Trireme: trains neural networks in parallel; one run, one hash. Includes every public header. */
#ifndef TRIREME_TRIREME_H
#define TRIREME_TRIREME_H

#include "trireme/arrays.h"
#include "trireme/data.h"
#include "trireme/export.h"
#include "trireme/inspect.h"
#include "trireme/launch.h"
#include "trireme/metrics.h"
#include "trireme/predict.h"
#include "trireme/profile.h"
#include "trireme/receipt.h"
#include "trireme/report.h"
#include "trireme/state.h"
#include "trireme/status.h"
#include "trireme/tokenizer.h"
#include "trireme/train.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The version of the library, "0.2.0". Static storage. */
TR_API const char *tr_version(void);
/* The version of the arithmetic, from 1: it changes when, and only when, an equal job ends with another hash
   than under the version before, see CHANGELOG.md. Any thread. */
TR_API int tr_numerics_version(void);

#ifdef __cplusplus
}
#endif
#endif
