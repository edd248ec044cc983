/* Lists of launches in CUDA: graphs whose kernels form a chain. A kernel's first group is set by a node
 * before it and reset by a node behind it, as on the stream (programs.c).
 *
 * cuGraphExecKernelNodeSetParams() leaves launches of the graph alone that are already enqueued. It names a
 * kernel by its node, so the graph lives as long as the executable one.
 */
#include "base/alloc.h"
#include "base/fail.h"
#include "device/gpu/cuda/internal.h"

#define cu cuda_library

struct cuda_list {
    cu_graph graph;
    cu_graph_exec list;
    cu_graph_node last; /* while it is made */
    cu_graph_node kernels[];
};

/* ---- making ---- */

/* Appends nodes that set the first group, or reset it with `back`. */
static cu_result add_first(const struct cuda_session *session, struct cuda_list *made,
                           const struct gpu_launch *launch, bool back)
{
    const struct cuda_kernel *kernel = launch->kernel;
    cu_result error = CUDA_SUCCESS;
    for (unsigned axis = 1; axis < 3 && error == CUDA_SUCCESS && kernel->program->first_group; axis++) {
        const struct cu_set_node node = {.to = kernel->program->first_group + axis * sizeof(uint32_t),
                                         .value = back ? 0 : launch->first[axis],
                                         .element = sizeof(uint32_t),
                                         .width = 1,
                                         .height = 1};
        if (launch->first[axis])
            error = cu.cuGraphAddMemsetNode(&made->last, made->graph, &made->last, made->last ? 1 : 0, &node,
                                            session->context);
    }
    return error;
}

/* Describes a launch as a node, which borrows the launch and `arguments`. */
static bool describe(const struct gpu_launch *launch, void *arguments[CUDA_MOST_ARGUMENTS],
                     struct cu_kernel_node *node)
{
    const struct cuda_kernel *kernel = launch->kernel;
    *node = (struct cu_kernel_node){.function = kernel->function,
                                    .grid = {launch->groups[0], launch->groups[1], launch->groups[2]},
                                    .group = {launch->threads, 1, 1},
                                    .arguments = arguments};
    return cuda_fill_arguments(launch, arguments);
}

static cu_result add_launch(const struct cuda_session *session, struct cuda_list *made,
                            const struct gpu_launch *launch, cu_graph_node *out)
{
    void *arguments[CUDA_MOST_ARGUMENTS];
    struct cu_kernel_node node;
    if (!describe(launch, arguments, &node)) return CUDA_ERROR_INVALID_VALUE;
    cu_result error = add_first(session, made, launch, false);
    if (error == CUDA_SUCCESS)
        error = cu.cuGraphAddKernelNode(out, made->graph, &made->last, made->last ? 1 : 0, &node);
    if (error != CUDA_SUCCESS) return error;
    made->last = *out;
    return add_first(session, made, launch, true);
}

static cu_result build(const struct cuda_session *session, const struct gpu_launch *launches, int count,
                       struct cuda_list *made)
{
    cu_result error = cu.cuGraphCreate(&made->graph, 0);
    if (error != CUDA_SUCCESS) made->graph = NULL;
    for (int i = 0; i < count && error == CUDA_SUCCESS; i++)
        error = add_launch(session, made, &launches[i], &made->kernels[i]);
    if (error == CUDA_SUCCESS) error = cu.cuGraphInstantiateWithFlags(&made->list, made->graph, 0);
    if (error != CUDA_SUCCESS) made->list = NULL;
    return error;
}

tr_status cuda_build_list(void *session_, const struct gpu_launch *launches, int count, void **out)
{
    struct cuda_session *session = session_;
    if (!cu.graphs) return tr_fail(TR_EUNSUPPORTED, "%s: this driver has no graphs", session->name);
    struct cuda_list *made = tr_alloc_zero(1, sizeof *made + (size_t)count * sizeof *made->kernels);
    if (!made) return TR_ENOMEM;
    cu_result error = cuda_enter(session);
    if (error == CUDA_SUCCESS) {
        error = build(session, launches, count, made);
        cuda_leave();
    }
    if (error == CUDA_SUCCESS)
        *out = made;
    else
        cuda_free_list(session, made);
    return cuda_failed(session, "recording launches", error);
}

void cuda_free_list(void *session, void *list_)
{
    struct cuda_list *list = list_;
    bool entered = cuda_enter(session) == CUDA_SUCCESS;
    if (list->list) cu.cuGraphExecDestroy(list->list);
    if (list->graph) cu.cuGraphDestroy(list->graph);
    if (entered) cuda_leave();
    tr_free(list);
}

/* ---- using ---- */

tr_status cuda_change_list(void *session_, void *list_, int index, const struct gpu_launch *launch)
{
    struct cuda_session *session = session_;
    const struct cuda_list *list = list_;
    void *arguments[CUDA_MOST_ARGUMENTS];
    struct cu_kernel_node node;
    cu_result error = describe(launch, arguments, &node) ? cuda_enter(session) : CUDA_ERROR_INVALID_VALUE;
    if (error == CUDA_SUCCESS) {
        error = cu.cuGraphExecKernelNodeSetParams(list->list, list->kernels[index], &node);
        cuda_leave();
    }
    return cuda_failed(session, "changing recorded launches", error);
}

tr_status cuda_launch_list(void *session_, void *list_)
{
    struct cuda_session *session = session_;
    const struct cuda_list *list = list_;
    cu_result error = cuda_enter(session);
    session->rests = false;
    if (error == CUDA_SUCCESS) {
        error = cu.cuGraphLaunch(list->list, session->queue);
        cuda_leave();
    }
    return cuda_failed(session, "computing", error);
}
