/* How examples enter as PyTorch source: prepare(), which takes examples as data sets have them. */
#include "export/torch/layers.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* A number for each channel: "0.5", or "torch.tensor([0.5, 0.4, 0.3], ...)". */
static void add_per_channel(struct tr_text *text, int32_t count, const float values[4])
{
    if (count == 1) {
        tr_torch_add_float(text, values[0]);
        return;
    }
    tr_text_add(text, "torch.tensor([");
    for (int32_t i = 0; i < count; i++) {
        if (i) tr_text_add(text, ", ");
        tr_torch_add_float(text, values[i]);
    }
    tr_text_add(text, "], device=x.device).view(-1, 1, 1)");
}

/* "mean = torch.tensor([0.5, 0.25], dtype=torch.float64, device=values.device)" */
static void add_doubles(struct tr_text *text, const char *name, int32_t count, const double *values,
                        const char *argument)
{
    char number[TR_TEXT_NUMBER_SIZE];
    tr_text_addf(text, "        %s = torch.tensor([", name);
    for (int32_t i = 0; i < count; i++)
        tr_text_addf(text, "%s%s", i ? ", " : "", tr_text_from_double(values[i], number));
    tr_text_addf(text, "], dtype=torch.float64, device=%s.device)\n", argument);
}

/* Sets x. */
static void add_image(struct tr_text *text, const struct tr_intake_part *part,
                      const struct tr_input_options *input, const char *argument)
{
    const struct tr_op_load_images *op = &part->images;
    /* The middle of the image; where that is larger than the image, with zeros around it. */
    const int64_t top = (op->in_h - op->out_h) / 2, left = (op->in_w - op->out_w) / 2;
    const struct tr_torch_margin margin = {-top, op->out_h + top - op->in_h, -left,
                                           op->out_w + left - op->in_w, false};
    if (part->numbers)
        tr_text_addf(text, "        x = %s.to(torch.float32).reshape(-1, %d, %d, %d).permute(0, 3, 1, 2)\n",
                     argument, (int)op->in_h, (int)op->in_w, (int)op->channels);
    else
        tr_text_addf(text, "        x = %s.permute(0, 3, 1, 2).to(torch.float32)\n", argument);
    if (margin.top || margin.bottom || margin.left || margin.right) {
        tr_text_add(text, "        x = F.pad(x, ");
        tr_torch_add_margin(text, &margin);
        tr_text_add(text, ")\n");
    }
    tr_text_add(text, "        x = x * ");
    add_per_channel(text, input->scale.count, op->scale);
    if (input->shift.count > 1 || input->shift.item[0] != 0) {
        tr_text_add(text, " + ");
        add_per_channel(text, input->shift.count, op->shift);
    }
    tr_text_add(text, part->numbers ? "\n        x = x.permute(0, 2, 3, 1).flatten(1)\n" : "\n");
}

/* Sets the argument: missing values are filled in, and a missing name is none of them. */
static void add_fill(struct tr_text *text, const struct tr_intake_part *part, const char *argument)
{
    char number[TR_TEXT_NUMBER_SIZE];
    tr_text_add(text, "        fill = torch.tensor([");
    for (int64_t c = 0; c < part->stored.size[0]; c++)
        tr_text_addf(text, "%s%s", c ? ", " : "",
                     isnan(part->fill[c]) ? "-1" : tr_text_from_float(part->fill[c], number));
    tr_text_addf(text, "], dtype=torch.float32, device=%s.device)\n", argument);
    tr_text_addf(text, "        %s = torch.where(torch.isnan(%s), fill, %s.to(torch.float32))\n", argument,
                 argument, argument);
}

/* A name as a string of Python in ASCII. */
static void add_string(struct tr_text *text, const char *name)
{
    tr_text_add(text, "\"");
    for (; *name; name++) {
        unsigned char byte = (unsigned char)*name;
        bool plain = byte >= ' ' && byte < 127 && byte != '"' && byte != '\\';
        tr_text_addf(text, plain ? "%c" : "\\x%02x", byte);
    }
    tr_text_add(text, "\"");
}

/* Sets the argument: a column of names, each given by its number, becomes a number for each. */
static void add_names(struct tr_text *text, const struct tr_categories *categories, const char *argument)
{
    tr_text_add(text, "        # The names that numbers stand for, in UTF-8; -1 is none of them.\n"
                      "        names = {");
    const char *comma = "";
    for (int32_t c = 0; c < categories->columns; c++) {
        const struct tr_class_names *names = &categories->names[c];
        if (names->count == 0) continue;
        tr_text_addf(text, "%s%" PRId32 ": [", comma, c);
        for (int32_t i = 0; i < names->count; i++) {
            tr_text_add(text, i ? ", b" : "b");
            add_string(text, names->name[i]);
        }
        tr_text_add(text, "]");
        comma = ", ";
    }
    tr_text_addf(
        text,
        "}\n        %s = torch.cat([(%s[:, c:c + 1] == torch.arange(len(names[c]), device=%s.device)).to("
        "%s.dtype)\n            if c in names else %s[:, c:c + 1] for c in range(%" PRId32 ")], 1)\n",
        argument, argument, argument, argument, argument, categories->columns);
}

/* Sets x. */
static void add_numbers(struct tr_text *text, const struct tr_intake_part *part, const char *argument)
{
    const struct tr_scaling *scaling = &part->scaling;
    if (scaling->count == 0) {
        tr_text_addf(text, "        x = %s.to(torch.float32)\n", argument);
        return;
    }
    if (part->fill) add_fill(text, part, argument);
    if (scaling->categories.columns > 0) add_names(text, &scaling->categories, argument);
    add_doubles(text, "mean", scaling->count, scaling->mean, argument);
    add_doubles(text, "deviation", scaling->count, scaling->deviation, argument);
    tr_text_addf(text, "        x = ((%s.to(torch.float64) - mean) / deviation).to(torch.float32)\n",
                 argument);
}

/* The name of a source in the source text: its own, if that is an identifier. */
struct argument {
    char name[TR_NAMED_SHAPE_NAME + 8];
};

static struct argument argument_of(const struct tr_intake *intake, int32_t i)
{
    static const char *const taken[] = {"x",     "parts", "mean", "deviation", "fill",
                                        "names", "torch", "nn",   "F"};
    const char *name = intake->part[i].name;
    bool usable = tr_torch_is_identifier(name);
    struct argument argument;
    if (intake->count == 1) name = intake->part[i].stored.rank == 3 ? "images" : "values";
    for (size_t k = 0; k < sizeof taken / sizeof taken[0]; k++) usable &= strcmp(name, taken[k]) != 0;
    if (usable || intake->count == 1)
        snprintf(argument.name, sizeof argument.name, "%s", name);
    else
        snprintf(argument.name, sizeof argument.name, "source_%d", (int)i);
    return argument;
}

static void add_sizes(struct tr_text *text, const struct tr_intake_part *part)
{
    const int64_t *size = part->stored.size;
    if (part->stored.rank == 3)
        tr_text_addf(text, "bytes [batch, %" PRId64 ", %" PRId64 ", %" PRId64 "] (height, width, channels)",
                     size[0], size[1], size[2]);
    else
        tr_text_addf(text, "numbers [batch, %" PRId64 "] of the data", size[0]);
}

static void add_head(struct tr_text *text, const struct tr_intake *intake)
{
    tr_text_add(text, "    @staticmethod\n    def prepare(");
    for (int32_t i = 0; i < intake->count; i++)
        tr_text_addf(text, "%s%s", i ? ", " : "", argument_of(intake, i).name);
    tr_text_add(text, "):\n        \"\"\"What forward() wants, made of ");
    for (int32_t i = 0; i < intake->count; i++) {
        if (i) tr_text_add(text, ", and ");
        add_sizes(text, &intake->part[i]);
    }
    tr_text_add(text, ".\"\"\"\n");
}

void tr_torch_add_prepare(const struct tr_intake *intake, const struct tr_input_options *input,
                          struct tr_text *text)
{
    const bool joined = intake->count > 1 || (intake->count == 1 && intake->part[0].name[0]);
    const bool plain = intake->count == 1 && intake->part[0].stored.rank != 3 &&
                       intake->part[0].scaling.count == 0 && !intake->part[0].numbers;
    if (intake->count == 0 || (plain && !joined)) return;
    add_head(text, intake);
    if (joined) tr_text_add(text, "        parts = []\n");
    for (int32_t i = 0; i < intake->count; i++) {
        const struct tr_intake_part *part = &intake->part[i];
        const bool image = part->stored.rank == 3;
        const struct argument argument = argument_of(intake, i);
        if (image || part->numbers)
            add_image(text, part, input, argument.name);
        else
            add_numbers(text, part, argument.name);
        if (joined)
            tr_text_addf(text, "        parts.append(x%s)\n", image ? ".permute(0, 2, 3, 1).flatten(1)" : "");
    }
    tr_text_add(text, joined ? "        return torch.cat(parts, 1)\n\n" : "        return x\n\n");
}
