/* Queues and their commands; memory. */
#include "device/gpu/fake/machine.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { RUNNING = 1, MOST_COMMANDS = 64, MOST_QUEUES = 8, TICK = 100 };

/* ---- contexts, queues and commands ---- */

struct cl_context_s {
    cl_device device;
};

struct cl_memory_s {
    size_t bytes;
    char *data;
};

struct cl_event_s {
    cl_queue queue;
    int at; /* the command */
    int users;
    uint64_t time;
};

struct command {
    enum { MARK, TO_HOST, TO_DEVICE, OTHER } kind;
    cl_event awaits, event;
    char *there, *here;
    size_t bytes;
};

struct cl_queue_s {
    struct command command[MOST_COMMANDS];
    int enqueued, flushed, done;
};

static cl_queue queues[MOST_QUEUES];

static cl_context make_context(const intptr_t *properties, uint32_t count, const cl_device *devices,
                               void (*notify)(const char *, const void *, size_t, void *), void *user,
                               int32_t *error)
{
    FAIL_WITH(clCreateContext, error);
    assert_null(properties);
    assert_int_equal(count, 1);
    fake.notify = notify;
    fake.notified = user;
    fake.contexts++;
    cl_context context = fake_make(sizeof *context);
    context->device = devices[0];
    return context;
}

static int32_t release_context(cl_context context)
{
    return fake_release(context);
}

static cl_queue make_queue(cl_context context, cl_device device, uint64_t properties, int32_t *error)
{
    FAIL_WITH(clCreateCommandQueue, error);
    assert_ptr_equal(context->device, device);
    fake.properties = properties;
    fake.queues++;
    cl_queue queue = fake_make(sizeof *queue);
    for (int i = 0; i < MOST_QUEUES; i++)
        if (!queues[i]) {
            queues[i] = queue;
            break;
        }
    return queue;
}

static int32_t release_event(cl_event event)
{
    return --event->users > 0 ? CL_SUCCESS : fake_release(event);
}

static void run(cl_queue queue, int until)
{
    assert_true(until <= queue->flushed);
    while (queue->done < until) {
        struct command *command = &queue->command[queue->done];
        if (command->awaits) {
            if (command->awaits->at >= command->awaits->queue->flushed)
                fail_msg("a command waits for one of another queue that was not flushed");
            run(command->awaits->queue, command->awaits->at + 1);
            release_event(command->awaits);
        }
        if (command->kind == TO_HOST) memcpy(command->here, command->there, command->bytes);
        if (command->kind == TO_DEVICE) memcpy(command->there, command->here, command->bytes);
        queue->done++;
        if (command->event) release_event(command->event);
    }
}

static int32_t flush(cl_queue queue)
{
    FAIL(clFlush);
    queue->flushed = queue->enqueued;
    return CL_SUCCESS;
}

static int32_t finish(cl_queue queue)
{
    const bool fails = fake_due("clFinish");
    queue->flushed = queue->enqueued;
    run(queue, queue->enqueued);
    return fails ? fake.code : CL_SUCCESS;
}

static int32_t release_queue(cl_queue queue)
{
    if (queue->done < queue->enqueued) fail_msg("a queue is released that is not done");
    for (int i = 0; i < MOST_QUEUES; i++)
        if (queues[i] == queue) queues[i] = NULL;
    return fake_release(queue);
}

void fake_work(void)
{
    for (int i = 0; i < MOST_QUEUES; i++)
        if (queues[i]) run(queues[i], queues[i]->flushed);
}

static void enqueue(cl_queue queue, struct command command, uint32_t waits, const cl_event *awaited,
                    cl_event *event)
{
    assert_true(waits <= 1 && queue->enqueued < MOST_COMMANDS);
    if (waits) {
        command.awaits = awaited[0];
        command.awaits->users++;
    }
    if (event) {
        command.event = *event = fake_make(sizeof **event);
        **event = (struct cl_event_s){queue, queue->enqueued, 2, (uint64_t)(10 * TICK * queue->enqueued)};
    }
    queue->command[queue->enqueued++] = command;
}

static int32_t mark(cl_queue queue, uint32_t waits, const cl_event *awaited, cl_event *event)
{
    FAIL(clEnqueueMarkerWithWaitList);
    enqueue(queue, (struct command){.kind = MARK}, waits, awaited, event);
    return CL_SUCCESS;
}

static int32_t wait_for(uint32_t count, const cl_event *events)
{
    const bool fails = fake_due("clWaitForEvents");
    assert_int_equal(count, 1);
    if (events[0]->at >= events[0]->queue->flushed) fail_msg("who waits for it has not flushed it");
    run(events[0]->queue, events[0]->at + 1);
    return fails ? fake.code : fake.state;
}

static int32_t event_info(cl_event event, uint32_t what, size_t size, void *value, size_t *bytes)
{
    FAIL(clGetEventInfo);
    assert_int_equal(what, CL_EVENT_COMMAND_EXECUTION_STATUS);
    const int32_t state = event->at < event->queue->done ? fake.state : RUNNING;
    return fake_answer(&state, sizeof state, size, value, bytes);
}

static int32_t event_times(cl_event event, uint32_t what, size_t size, void *value, size_t *bytes)
{
    FAIL(clGetEventProfilingInfo);
    const uint64_t time = event->time + (what == CL_PROFILING_COMMAND_QUEUED  ? 0
                                         : what == CL_PROFILING_COMMAND_START ? TICK
                                                                              : 3 * TICK);
    return fake_answer(&time, sizeof time, size, value, bytes);
}

/* ---- memory ---- */

static cl_memory make_buffer(cl_context context, uint64_t flags, size_t bytes, void *host, int32_t *error)
{
    FAIL_WITH(clCreateBuffer, error);
    assert_true(context && (flags & CL_MEM_READ_WRITE) && bytes > 0 && !host);
    cl_memory memory = fake_make(sizeof *memory);
    *memory = (struct cl_memory_s){bytes, calloc(bytes, 1)};
    return memory;
}

static int32_t release_memory(cl_memory memory)
{
    free(memory->data);
    return fake_release(memory);
}

static int32_t copy_to_host(cl_queue queue, cl_memory memory, uint32_t waits, size_t at, size_t bytes,
                            void *to, uint32_t count, const cl_event *awaited, cl_event *event)
{
    FAIL(clEnqueueReadBuffer);
    assert_true(!waits && at + bytes <= memory->bytes);
    enqueue(queue, (struct command){.kind = TO_HOST, .there = memory->data + at, .here = to, .bytes = bytes},
            count, awaited, event);
    return CL_SUCCESS;
}

static int32_t copy_to_device(cl_queue queue, cl_memory memory, uint32_t waits, size_t at, size_t bytes,
                              const void *from, uint32_t count, const cl_event *awaited, cl_event *event)
{
    FAIL(clEnqueueWriteBuffer);
    assert_true(!waits && at + bytes <= memory->bytes);
    enqueue(
        queue,
        (struct command){
            .kind = TO_DEVICE, .there = memory->data + at, .here = (char *)(uintptr_t)from, .bytes = bytes},
        count, awaited, event);
    return CL_SUCCESS;
}

static void *map(cl_queue queue, cl_memory memory, uint32_t waits, uint64_t flags, size_t at, size_t bytes,
                 uint32_t count, const cl_event *awaited, cl_event *event, int32_t *error)
{
    FAIL_WITH(clEnqueueMapBuffer, error);
    assert_true(waits && flags == CL_MAP_READ_WRITE && at == 0 && bytes == memory->bytes);
    enqueue(queue, (struct command){.kind = OTHER}, count, awaited, event);
    return memory->data;
}

static int32_t unmap(cl_queue queue, cl_memory memory, void *data, uint32_t count, const cl_event *awaited,
                     cl_event *event)
{
    FAIL(clEnqueueUnmapMemObject);
    assert_ptr_equal(data, memory->data);
    enqueue(queue, (struct command){.kind = OTHER}, count, awaited, event);
    return CL_SUCCESS;
}

void fake_enqueue(cl_queue queue, uint32_t waits, const cl_event *awaited, cl_event *event)
{
    enqueue(queue, (struct command){.kind = OTHER}, waits, awaited, event);
}

void fake_queues(struct opencl_library *library)
{
    library->clCreateContext = make_context;
    library->clReleaseContext = release_context;
    library->clCreateCommandQueue = make_queue;
    library->clReleaseCommandQueue = release_queue;
    library->clCreateBuffer = make_buffer;
    library->clReleaseMemObject = release_memory;
    library->clEnqueueReadBuffer = copy_to_host;
    library->clEnqueueWriteBuffer = copy_to_device;
    library->clEnqueueMapBuffer = map;
    library->clEnqueueUnmapMemObject = unmap;
    library->clEnqueueMarkerWithWaitList = mark;
    library->clGetEventInfo = event_info;
    library->clGetEventProfilingInfo = event_times;
    library->clReleaseEvent = release_event;
    library->clFlush = flush;
    library->clFinish = finish;
    library->clWaitForEvents = wait_for;
}
