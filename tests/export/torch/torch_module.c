#include "export/torch/torch_module.h"

#include "export/formats.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

tr_status torch_module_write(const struct network *network, const char *path, struct tr_file_content *out)
{
    struct tr_model *model;
    must(network_build(network->text, network->input, network->vocabulary, &model));
    const struct tr_job job = {.model = model};
    const struct tr_checkpoint_facts facts = {.program = "a program"};
    const struct tr_intake intake = {.count = 0};
    const struct tr_export what = {.job = &job, .facts = &facts, .intake = &intake, .name = "net"};
    tr_status status = tr_export_torch(&what, path);
    tr_model_destroy(&model);
    if (status == TR_OK) must(tr_file_read(path, 1 << 20, out));
    return status;
}

void torch_module_expect(const struct tr_file_content *module, const char *text)
{
    if (!strstr(module->data, text)) fail_msg("there is no\n%s\nin\n%s", text, module->data);
}
