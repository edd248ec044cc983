/* Verifying a receipt: repeats parts of the run and compares. */
#include "base/alloc.h"
#include "base/fail.h"
#include "base/sized.h"
#include "trireme/trireme.h"
#include "verify/replay.h"

#include <inttypes.h>
#include <string.h>

/* Least hexadecimal digits of an expected hash. */
#define EXPECT_LEAST 16

/* The releases with each version of the arithmetic. */
static const struct {
    int numerics;
    const char *release;
} releases[] = {
    {1, "0.1.0"},
    {2, "0.2.0"},
};

static const char *release_of(int64_t numerics)
{
    for (size_t i = 0; i < sizeof releases / sizeof releases[0]; i++)
        if (releases[i].numerics == numerics) return releases[i].release;
    return NULL;
}

static tr_status check_expect(const char *expect)
{
    size_t length = expect ? strlen(expect) : 0;
    if (!expect ||
        (length >= EXPECT_LEAST && length < TR_SHA256_TEXT && strspn(expect, "0123456789abcdef") == length))
        return TR_OK;
    return tr_fail(TR_EINVAL, "\"%.80s\" is no hash: give its %d hexadecimal digits, or the first %d or more",
                   expect, TR_SHA256_TEXT - 1, EXPECT_LEAST);
}

/* Whether this program has the run's version of the arithmetic. */
static void check_numerics(struct verification *verification)
{
    const struct tr_receipt *receipt = &verification->claim.receipt;
    const char *release = release_of(receipt->numerics);
    if (receipt->numerics == tr_numerics_version()) return;
    verification->result.outcome = TR_UNVERIFIABLE;
    tr_text_addf(&verification->text,
                 "numerics version: the receipt is of %" PRId64 ", this program has %d; take ",
                 receipt->numerics, tr_numerics_version());
    if (release)
        tr_text_addf(&verification->text, "release %s", release);
    else
        tr_text_addf(&verification->text, "the one that made it (%.80s)", receipt->program);
}

static tr_status verify_all(struct verification *verification)
{
    struct stretches *stretches = &verification->stretches;
    TR_TRY(claim_open(verification->settings->path, &verification->claim));
    TR_TRY(stretches_plan(&verification->claim, verification->settings, stretches));
    verification->result.segments = verification->claim.receipt.count - 1;
    check_numerics(verification);
    for (int64_t i = 0; verification->result.outcome == TR_VERIFIED && i < stretches->count; i++) {
        TR_TRY(verify_replay(verification, &stretches->stretch[i]));
        if (verification->result.outcome == TR_VERIFIED)
            verification->result.checked += stretches->stretch[i].end - stretches->stretch[i].first;
    }
    return TR_OK;
}

/* The sentence at the end. */
static tr_status say(struct verification *verification, char **text)
{
    const struct tr_verify_result *result = &verification->result;
    const struct tr_receipt *receipt = &verification->claim.receipt;
    if (result->outcome == TR_VERIFIED)
        tr_text_addf(&verification->text,
                     "%" PRId64 " of %" PRId64 " segments came out as the receipt says, up to step %" PRId64
                     " of %" PRId64,
                     result->checked, result->segments, receipt->boundary[receipt->count - 1].step,
                     receipt->steps);
    return tr_text_finish(&verification->text, text);
}

tr_status tr_verify(const struct tr_verify_settings *given, tr_verify_listener listener, void *user,
                    struct tr_verify_result *result, char **text)
{
    struct tr_verify_settings settings;
    static const struct tr_verify_settings defaults = TR_VERIFY_SETTINGS_INIT;
    *text = NULL;
    TR_TRY(tr_sized_take(given, &defaults, sizeof settings, "TR_VERIFY_SETTINGS_INIT", &settings));
    TR_TRY(tr_sized_check(result, "TR_VERIFY_RESULT_INIT"));
    if (!settings.path)
        return tr_fail(TR_EINVAL, "nothing to verify; name a receipt or the directory of a run");
    TR_TRY(check_expect(settings.expect));
    struct verification verification = {
        .settings = &settings,
        .listener = listener,
        .user = user,
        .result = {.size = sizeof verification.result, .outcome = TR_VERIFIED},
    };
    tr_status status = verify_all(&verification);
    if (status == TR_OK) status = say(&verification, text);
    if (status == TR_OK)
        status =
            tr_sized_give(&verification.result, sizeof verification.result, "TR_VERIFY_RESULT_INIT", result);
    tr_text_release(&verification.text);
    stretches_release(&verification.stretches);
    claim_release(&verification.claim);
    return status;
}
