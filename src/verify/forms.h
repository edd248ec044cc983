/* The formats in which a receipt is exported. */
#ifndef TR_VERIFY_FORMS_H
#define TR_VERIFY_FORMS_H

#include "verify/claim.h"

/* Additional content for such a format. */
struct form {
    const struct claim *claim;
    const char *job;                 /* the name in the model file */
    char receipt[TR_SHA256_TEXT];    /* SHA-256 of the receipt's file, as written here */
    char parameters[TR_SHA256_TEXT]; /* of parameters.safetensors after the last boundary; "": not
                                        available */
};

/* Each returns a text, free with tr_free(). TR_ENOMEM. */
tr_status form_in_toto(const struct form *form, char **text);
tr_status form_cyclonedx(const struct form *form, char **text);

#endif
