#include "cli/program/exit_codes.h"

enum cli_exit cli_exit_of(tr_status status)
{
    switch (status) {
    case TR_OK:
        return CLI_EXIT_DONE;
    case TR_EINVAL:
    case TR_EFORMAT:
    case TR_EMISMATCH:
    case TR_EUNSUPPORTED:
    case TR_ENOTFOUND:
        return CLI_EXIT_WRONG;
    case TR_EINTERRUPTED:
        return CLI_EXIT_INTERRUPTED;
    case TR_ENONFINITE:
        return CLI_EXIT_NOT_FINITE;
    case TR_ECORRUPT:
        return CLI_EXIT_DAMAGED;
    case TR_ENOMEM:
    case TR_EIO:
    case TR_EPEER:
        break;
    }
    return CLI_EXIT_FAILED;
}
