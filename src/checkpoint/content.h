/* Shared by all ways of writing a checkpoint: into a directory or a stream. */
#ifndef TR_CHECKPOINT_CONTENT_H
#define TR_CHECKPOINT_CONTENT_H

#include "checkpoint/checkpoint.h"
#include "checkpoint/manifest.h"

/* In the header of both files of tensors. */
extern const struct tr_stored_metadata tr_content_note;

/* TR_EINVAL for content that cannot be saved. */
tr_status tr_content_check(const struct tr_checkpoint_content *content);

/* Room for the checksums of `content`; freed in one piece with tr_free(*memory). TR_ENOMEM. */
tr_status tr_content_make_sums(const struct tr_checkpoint_content *content, struct tr_manifest_sums *sums,
                               void **memory);

/* Passes on the data of a group's tensors, and refuses numbers that must not be saved: TR_ENONFINITE. */
struct tr_content_checker {
    const struct tr_stored_tensor *tensors;
    struct tr_stored_giver giver;
};
/* Initializes one, which the returned giver borrows. */
struct tr_stored_giver tr_content_giver(const struct tr_checkpoint_content *content, int group,
                                        struct tr_content_checker *checker);

#endif
