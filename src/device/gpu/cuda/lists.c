/* Lists of launches in CUDA: graphs, captured from the stream that would otherwise run the launches. */
#include "base/fail.h"
#include "device/gpu/cuda/internal.h"

#define cu cuda_library

static cu_result capture(struct cuda_session *session, const struct gpu_launch *launches, int count,
                         cu_graph *graph)
{
    *graph = NULL;
    cu_result error = cu.cuStreamBeginCapture_v2(session->queue, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    if (error != CUDA_SUCCESS) return error;
    for (int i = 0; i < count && error == CUDA_SUCCESS; i++) error = cuda_enqueue(session, &launches[i]);
    cu_result ended =
        cu.cuStreamEndCapture(session->queue, graph); /* in any case: otherwise the stream becomes unusable */
    if (ended != CUDA_SUCCESS) *graph = NULL;
    return error != CUDA_SUCCESS ? error : ended;
}

static cu_result build(struct cuda_session *session, const struct gpu_launch *launches, int count,
                       cu_graph_exec *list)
{
    cu_graph graph;
    cu_result error = capture(session, launches, count, &graph);
    if (error == CUDA_SUCCESS) error = cu.cuGraphInstantiateWithFlags(list, graph, 0);
    if (graph) cu.cuGraphDestroy(graph);
    return error;
}

tr_status cuda_build_list(void *session_, const struct gpu_launch *launches, int count, void **out)
{
    struct cuda_session *session = session_;
    cu_graph_exec list = NULL;
    if (!cu.graphs) return tr_fail(TR_EUNSUPPORTED, "%s: this driver has no graphs", session->name);
    cu_result error = cuda_enter(session);
    if (error == CUDA_SUCCESS) {
        error = build(session, launches, count, &list);
        cuda_leave();
    }
    if (error == CUDA_SUCCESS) *out = list;
    return cuda_failed(session, "recording launches", error);
}

tr_status cuda_launch_list(void *session_, void *list)
{
    struct cuda_session *session = session_;
    cu_result error = cuda_enter(session);
    session->rests = false;
    if (error == CUDA_SUCCESS) {
        error = cu.cuGraphLaunch(list, session->queue);
        cuda_leave();
    }
    return cuda_failed(session, "computing", error);
}

void cuda_free_list(void *session, void *list)
{
    bool entered = cuda_enter(session) == CUDA_SUCCESS;
    cu.cuGraphExecDestroy(list);
    if (entered) cuda_leave();
}
