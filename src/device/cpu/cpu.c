#include "device/cpu/cpu.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "device/cpu/isa.h"
#include "device/ref/ref.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>

/* Work shorter than this is not worth waking the team. */
#define ALONE_NANOSECONDS 8000.0

static tr_status cpu_alloc(tr_device *device, size_t bytes, void **out)
{
    (void)device;
    *out = tr_alloc_aligned(bytes, 1);
    return *out ? TR_OK : TR_ENOMEM;
}

static void cpu_free(tr_device *device, void *memory)
{
    (void)device;
    tr_free(memory);
}

static tr_status cpu_copy(tr_device *device, void *to, const void *from, size_t bytes)
{
    (void)device;
    if (bytes > 0) memcpy(to, from, bytes);
    return TR_OK;
}

static tr_status cpu_wait(tr_device *device)
{
    (void)device; /* every operation is complete when its function returns */
    return TR_OK;
}

struct peak {
    const struct cpu_kernels *kernels;
    double seconds, rate[TR_TEAM_MAX];
};

static void peak_member(void *arguments, int member, int size)
{
    struct peak *peak = arguments;
    (void)size;
    peak->rate[member] = peak->kernels->peak(peak->seconds);
}

/* The sum over all threads, measured at the same time. */
static double cpu_peak(tr_device *device, double seconds)
{
    struct cpu_device *cpu = cpu_device_of(device);
    struct peak peak = {.kernels = cpu->kernels, .seconds = seconds};
    double sum = 0;
    tr_team_run_together(cpu->team, peak_member, &peak);
    for (int i = 0; i < device->threads; i++) sum += peak.rate[i];
    return sum;
}

/* A team of one never waits. */
static bool cpu_set_idle(tr_device *device, tr_team_idle idle, void *arguments)
{
    struct cpu_device *cpu = cpu_device_of(device);
    if (device->threads == 1 || (idle && cpu->idles)) return false;
    tr_team_set_idle(cpu->team, idle, arguments);
    cpu->idles = idle != NULL;
    return true;
}

static void cpu_destroy(tr_device *device)
{
    struct cpu_device *cpu = cpu_device_of(device);
    for (int i = 0; i < cpu->base.threads; i++) tr_free(cpu->member[i].memory);
    tr_free(cpu->shared.memory);
    cpu_balance_destroy(cpu->balance);
    tr_team_destroy(&cpu->team);
    tr_free(cpu);
}

static tr_status cpu_create(const struct tr_device_choice *choice, tr_device **out)
{
    int threads = choice->threads;
    *out = NULL;
    const struct cpu_isa *isa = cpu_isa_find(choice->isa);
    if (!isa) return TR_EUNSUPPORTED;
    const struct cpu_kernels *kernels = isa->kernels;
    if (threads == 0) {
        int processors = tr_team_processors();
        threads = processors > TR_TEAM_MAX ? TR_TEAM_MAX : processors;
    }
    tr_team *team;
    TR_TRY(tr_team_create(threads, &team));
    struct cpu_device *cpu = tr_alloc_zero(1, sizeof(*cpu) + (size_t)threads * sizeof(struct cpu_scratch));
    struct cpu_balance *balance = cpu_balance_create(threads);
    if (!cpu || !balance) {
        cpu_balance_destroy(balance);
        tr_free(cpu);
        tr_team_destroy(&team);
        return TR_ENOMEM;
    }
    cpu->balance = balance;
    cpu->team = team;
    cpu->kernels = kernels;
    cpu->alone = ALONE_NANOSECONDS;
    struct tr_caches caches;
    tr_caches_find(&caches);
    cpu->room = cpu_room_of(&caches, threads, tr_team_processors());
    struct tr_processor processor;
    tr_processor_find(&processor);
    cpu->blocks = *cpu_blocks_find(&processor, isa->name);
    cpu->class = (struct tr_device_class){.name = "cpu",
                                          .version = TR_DEVICE_VERSION,
                                          .host_memory = true,
                                          .alloc = cpu_alloc,
                                          .free = cpu_free,
                                          .to_device = cpu_copy,
                                          .to_host = cpu_copy,
                                          .wait = cpu_wait,
                                          .set_idle = cpu_set_idle,
                                          .peak = cpu_peak,
                                          .destroy = cpu_destroy,
#define SLOT(op) .op = kernels->op ? kernels->op : tr_device_ref.op,
                                          TR_DEVICE_OPS(SLOT)
#undef SLOT
    };
    if (cpu_isa_leaves_chains(isa)) {
#define TAKE(op) cpu->class.op = tr_device_ref.op;
        TR_DEVICE_CHAIN_OPS(TAKE)
        TR_DEVICE_CHAIN_FUSIONS(TAKE)
#undef TAKE
    }
    cpu->base.class = &cpu->class;
    cpu->base.threads = threads;
    snprintf(cpu->base.description, sizeof(cpu->base.description), "cpu (%s, %d thread%s)", isa->name,
             threads, threads == 1 ? "" : "s");
    *out = &cpu->base;
    return TR_OK;
}

const struct tr_device_kind tr_device_kind_cpu = {
    .name = "cpu",
    .help = "vector kernels on all cores",
    .create = cpu_create,
};

static tr_status grow(struct cpu_scratch *scratch, size_t bytes)
{
    if (bytes <= scratch->bytes) return TR_OK;
    void *memory = tr_alloc_aligned(bytes, 1);
    if (!memory) return TR_ENOMEM;
    tr_free(scratch->memory);
    *scratch = (struct cpu_scratch){memory, bytes};
    return TR_OK;
}

tr_status cpu_reserve(struct cpu_device *cpu, size_t member_bytes, size_t shared_bytes)
{
    for (int i = 0; i < cpu->base.threads; i++) TR_TRY(grow(&cpu->member[i], member_bytes));
    return grow(&cpu->shared, shared_bytes);
}

void cpu_run_together(struct cpu_device *cpu, double nanoseconds, tr_team_function function, void *arguments)
{
    if (nanoseconds < cpu->alone)
        function(arguments, 0, 1);
    else
        tr_team_run_together(cpu->team, function, arguments);
}

void cpu_run(struct cpu_device *cpu, double nanoseconds, tr_team_function function, void *arguments)
{
    if (nanoseconds < cpu->alone)
        function(arguments, 0, 1);
    else
        cpu_balance_run(cpu->balance, cpu->team, function, arguments);
}
