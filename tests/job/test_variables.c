/* Variables of which a process keeps a part: what they compute covers that part, from its first parameter to
 * its last, and nothing besides. Averages; and steps that nobody has judged.
 */
#include "support/networks.h"

#include "base/alloc.h"
#include "job/step/variables.h"

#include <malloc.h>
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

/* A network with running statistics, which have no squares, between its weights. */
static const char text[] = "layers: [{dense: 5}, batch_norm, relu, {dense: 4}, {dense: 3}, {dense: 2}]\n"
                           "loss: mean_squared_error\n";

struct fixture {
    tr_device *device;
    struct tr_model *model;
    struct tr_optimizer optimizer;
    float *gradient; /* an arena */
};

static void begin(struct fixture *fixture)
{
    *fixture = (struct fixture){.optimizer = {.rule = TR_RULE_SGD, .rate = 0.1, .clip_norm = 1}};
    must(tr_device_create("cpu", 1, NULL, &fixture->device));
    must(network_build(text, "6", 0, &fixture->model));
    int64_t floats = fixture->model->arena_floats;
    fixture->gradient = tr_alloc_aligned((size_t)floats, sizeof(float));
    assert_non_null(fixture->gradient);
    for (int64_t i = 0; i < floats; i++) fixture->gradient[i] = (float)(i % 7) - 2.5f;
}

static void end(struct fixture *fixture)
{
    tr_free(fixture->gradient);
    tr_model_destroy(&fixture->model);
    tr_device_destroy(&fixture->device);
}

/* The sum of squares of one parameter's gradient; small numbers, so that its order does not matter. */
static float square_of(const struct fixture *fixture, const struct tr_parameter *parameter)
{
    float sum = 0;
    for (int64_t i = 0; i < parameter->count; i++) {
        float value = fixture->gradient[parameter->offset + i];
        sum += value * value;
    }
    return sum;
}

/* The sums of squares, in host memory, and which of them are of parameters in the floats [0, end). */
static float *squares_of(tr_variables *variables)
{
    const struct tr_staging *squares;
    must(tr_variables_open_squares(variables, &squares));
    return squares->host;
}

static int64_t squares_before(const struct tr_model *model, int64_t end)
{
    int64_t squares = 0;
    for (int i = 0; i < model->parameter_count && model->parameters[i].offset < end; i++)
        squares += model->parameters[i].kind != TR_PARAMETER_STATISTIC;
    return squares;
}

/* Each part [first, last] of the parameters has the squares of exactly these: the others' sums, which other
 * processes bring, stay as they were, and their gradients, which are elsewhere, are not read. */
static void squares_are_those_of_the_part(void **state)
{
    (void)state;
    struct fixture fixture;
    begin(&fixture);
    const struct tr_model *model = fixture.model;
    for (int first = 0; first < model->parameter_count; first++)
        for (int last = first; last < model->parameter_count; last++) {
            const struct tr_parameter *parameters = model->parameters;
            struct tr_variables_part part = {
                .begin = parameters[first].offset,
                .end = last + 1 < model->parameter_count ? parameters[last + 1].offset : model->arena_floats};
            part.state_begin = part.begin;
            part.state_end = part.end;
            tr_variables *variables;
            must(
                tr_variables_create_part(fixture.device, model, &fixture.optimizer, &part, NULL, &variables));
            float *squares = squares_of(variables);
            int square = 0;
            for (int i = 0; i < model->parameter_count; i++)
                if (parameters[i].kind != TR_PARAMETER_STATISTIC) squares[square++] = -1 - (float)i;
            must(tr_variables_measure_squares(variables, fixture.gradient));
            must(tr_device_wait(fixture.device));
            square = 0;
            for (int i = 0; i < model->parameter_count; i++) {
                if (parameters[i].kind == TR_PARAMETER_STATISTIC) continue;
                float expected = i < first || i > last ? -1 - (float)i : square_of(&fixture, &parameters[i]);
                if (squares[square] != expected)
                    fail_msg("part of parameters %d to %d: the square of \"%s\" is %g, expected is %g", first,
                             last, parameters[i].name, (double)squares[square], (double)expected);
                square++;
            }
            assert_int_equal(squares_before(model, model->arena_floats), square);
            tr_variables_destroy(&variables);
        }
    end(&fixture);
}

/* Parts that divide the parameters find the norm of the whole gradient, each after it got the others' sums.
 */
static void parts_join_to_one_norm(void **state)
{
    (void)state;
    struct fixture fixture;
    begin(&fixture);
    const struct tr_model *model = fixture.model;
    double sum = 0;
    for (int i = 0; i < model->parameter_count; i++)
        if (model->parameters[i].kind != TR_PARAMETER_STATISTIC)
            sum += (double)square_of(&fixture, &model->parameters[i]);
    for (int cut = 0; cut < model->parameter_count; cut++) {
        int64_t middle = model->parameters[cut].offset;
        struct tr_variables_part parts[2] = {{.end = middle, .state_end = middle},
                                             {.begin = middle,
                                              .end = model->arena_floats,
                                              .state_begin = middle,
                                              .state_end = model->arena_floats}};
        tr_variables *variables[2];
        for (int p = 0; p < 2; p++) {
            must(tr_variables_create_part(fixture.device, model, &fixture.optimizer, &parts[p], NULL,
                                          &variables[p]));
            must(tr_variables_begin_step(variables[p], 0));
            must(tr_variables_measure_squares(variables[p], fixture.gradient));
        }
        must(tr_device_wait(fixture.device));
        int64_t own = squares_before(model, middle), all = squares_before(model, model->arena_floats);
        float *low = squares_of(variables[0]), *high = squares_of(variables[1]);
        memcpy(low + own, high + own, (size_t)(all - own) * sizeof *low);
        memcpy(high, low, (size_t)own * sizeof *low);
        for (int p = 0; p < 2; p++) {
            float norm;
            must(tr_variables_join_squares(variables[p]));
            must(tr_variables_norm(variables[p], &norm));
            assert_true(fabs((double)norm - sqrt(sum)) < 1e-5 * sqrt(sum));
            tr_variables_destroy(&variables[p]);
        }
    }
    end(&fixture);
}

/* Averages are of what is learned; running statistics beside them are the present ones. */
static void averages_go_with_present_statistics(void **state)
{
    (void)state;
    struct fixture fixture;
    tr_variables *variables;
    begin(&fixture);
    fixture.optimizer.ema = 0.5f;
    const struct tr_model *model = fixture.model;
    must(tr_variables_create(fixture.device, model, &fixture.optimizer, NULL, &variables));
    must(tr_variables_initialize(variables, 3));
    must(tr_variables_begin_ema(variables));
    must(tr_device_wait(fixture.device));
    float *parameters = tr_variables_arena(variables, TR_ARENA_PARAMETERS),
          *averages = tr_variables_arena(variables, TR_ARENA_EMA);
    assert_memory_equal(averages, parameters, (size_t)model->arena_floats * sizeof *averages);
    for (int64_t i = 0; i < model->arena_floats; i++) parameters[i] = 7;
    must(tr_variables_complete_ema(variables));
    must(tr_device_wait(fixture.device));
    int statistics = 0;
    for (int i = 0; i < model->parameter_count; i++) {
        const struct tr_parameter *parameter = &model->parameters[i];
        bool present = parameter->kind == TR_PARAMETER_STATISTIC;
        statistics += present;
        for (int64_t k = 0; k < parameter->count; k++)
            assert_true((averages[parameter->offset + k] == 7) == present);
    }
    assert_int_equal(statistics, 2);
    tr_variables_destroy(&variables);
    end(&fixture);
}

/* Whatever was in the memory before: between parameters, behind the last one, and of a part alone. */
static void gaps_are_zero(void **state)
{
    (void)state;
    struct fixture fixture;
    begin(&fixture);
    fixture.optimizer.ema = 0.5f;
    const struct tr_model *model = fixture.model;
    const int64_t floats = model->arena_floats, middle = model->parameters[2].offset;
    const struct {
        int64_t begin, end;
    } parts[] = {{0, floats}, {0, middle}, {middle, floats}};
    const enum tr_arena arenas[] = {TR_ARENA_PARAMETERS, TR_ARENA_EMA};
    for (size_t p = 0; p < sizeof parts / sizeof parts[0]; p++) {
        struct tr_variables_part part = {.begin = parts[p].begin,
                                         .end = parts[p].end,
                                         .state_begin = parts[p].begin,
                                         .state_end = parts[p].end};
        tr_variables *variables;
        mallopt(M_PERTURB, 0x55);
        must(tr_variables_create_part(fixture.device, model, &fixture.optimizer, &part, NULL, &variables));
        mallopt(M_PERTURB, 0);
        must(tr_device_wait(fixture.device));
        for (int a = 0; a < 2; a++) {
            const float *values = tr_variables_arena(variables, arenas[a]);
            int64_t gaps = 0;
            for (int i = 0; i < model->parameter_count; i++) {
                const struct tr_parameter *parameter = &model->parameters[i];
                const int64_t next =
                    i + 1 < model->parameter_count ? model->parameters[i + 1].offset : floats;
                for (int64_t k = parameter->offset + parameter->count; k < next; k++) {
                    if (k < part.begin || k >= part.end) continue;
                    const float zero = 0;
                    if (memcmp(&values[k], &zero, sizeof zero) != 0)
                        fail_msg("float %d behind parameter %d is %g", (int)k, i, (double)values[k]);
                    gaps++;
                }
            }
            assert_true(gaps > 0);
        }
        tr_variables_destroy(&variables);
    }
    end(&fixture);
}

/* A step of `loss`, whose gradient is fixture->gradient times `scale`, and the sum of the parameters then. */
static double step_with(struct fixture *fixture, tr_variables *variables, float loss, float scale)
{
    const float *parameters = tr_variables_arena(variables, TR_ARENA_PARAMETERS);
    int64_t floats = fixture->model->arena_floats;
    double sum = 0;
    float *gradient = tr_alloc_aligned((size_t)floats, sizeof *gradient);
    assert_non_null(gradient);
    for (int64_t i = 0; i < floats; i++) gradient[i] = fixture->gradient[i] * scale;
    must(tr_variables_hold(variables, &loss, false));
    must(tr_variables_update(variables, gradient, 0, floats));
    must(tr_device_wait(fixture->device));
    for (int64_t i = 0; i < floats; i++) sum += (double)parameters[i] * (double)(i + 1);
    tr_free(gradient);
    return sum;
}

/* Of steps that are begun before those in front of them are judged, the ones behind a bad loss, or behind an
   update that left a parameter infinite, change nothing; all others are applied. */
static void steps_behind_a_bad_one_are_held(void **state)
{
    struct fixture fixture;
    (void)state;
    for (int bad_update = 0; bad_update < 2; bad_update++) {
        tr_variables *variables;
        bool nonfinite;
        begin(&fixture);
        fixture.optimizer.clip_norm = 0;
        must(tr_variables_create(fixture.device, fixture.model, &fixture.optimizer, NULL, &variables));
        must(tr_variables_initialize(variables, 3));
        must(tr_variables_begin_step(variables, 0));
        double first = step_with(&fixture, variables, 1, 1);
        must(tr_variables_begin_behind(variables, 1, false));
        double second = step_with(&fixture, variables, 1, 1);
        assert_true(second != first && isfinite(second));
        must(tr_variables_begin_behind(variables, 2, false));
        if (bad_update)
            (void)step_with(&fixture, variables, 1, INFINITY);
        else
            assert_true(step_with(&fixture, variables, INFINITY, 1) == second);
        size_t bytes = (size_t)fixture.model->arena_floats * sizeof(float);
        float *parameters = tr_variables_arena(variables, TR_ARENA_PARAMETERS),
              *kept = tr_alloc_aligned((size_t)fixture.model->arena_floats, sizeof *kept);
        assert_non_null(kept);
        memcpy(kept, parameters, bytes);
        must(tr_variables_begin_behind(variables, 3, false));
        (void)step_with(&fixture, variables, 1, 1);
        assert_memory_equal(parameters, kept, bytes);
        must(tr_variables_nonfinite(variables, &nonfinite));
        assert_int_equal(nonfinite, bad_update);
        /* with what was judged forgotten it goes on */
        must(tr_variables_begin_step(variables, 3));
        (void)step_with(&fixture, variables, 1, 1);
        assert_memory_not_equal(parameters, kept, bytes);
        tr_free(kept);
        tr_variables_destroy(&variables);
        end(&fixture);
    }
}

/* A rank over memory that all share. */
struct sharer {
    const struct fixture *fixture;
    float *window;
    pthread_barrier_t *start;
    bool fills;
};

static void *share(void *user)
{
    struct sharer *sharer = user;
    tr_variables *variables;
    tr_device *device;
    must(tr_device_create("cpu", 1, NULL, &device));
    pthread_barrier_wait(sharer->start);
    must(tr_variables_create(device, sharer->fixture->model, &sharer->fixture->optimizer, sharer->window,
                             &variables));
    tr_variables_let_fill(variables, sharer->fills);
    must(tr_variables_initialize(variables, 3));
    must(tr_device_wait(device));
    tr_variables_destroy(&variables);
    tr_device_destroy(&device);
    return NULL;
}

/* One rank fills the memory that all share, whenever the others come to it; only the sanitizer of threads
   sees who else writes there. */
static void ranks_do_not_write_where_one_fills(void **state)
{
    enum { RANKS = 4 };
    (void)state;
    struct fixture fixture;
    pthread_barrier_t start;
    pthread_t threads[RANKS];
    struct sharer sharers[RANKS];
    begin(&fixture);
    int64_t floats = fixture.model->arena_floats;
    float *window = tr_alloc_aligned((size_t)floats, sizeof *window),
          *alone = tr_alloc_aligned((size_t)floats, sizeof *alone);
    assert_true(window && alone);
    memset(window, 0, (size_t)floats * sizeof *window);
    assert_int_equal(pthread_barrier_init(&start, NULL, RANKS), 0);
    for (int i = 0; i < RANKS; i++) {
        sharers[i] = (struct sharer){&fixture, window, &start, i == 0};
        assert_int_equal(pthread_create(&threads[i], NULL, share, &sharers[i]), 0);
    }
    for (int i = 0; i < RANKS; i++) assert_int_equal(pthread_join(threads[i], NULL), 0);
    tr_model_initialize(fixture.model, 3, 0, 1, alone);
    assert_memory_equal(window, alone, (size_t)floats * sizeof *window);
    pthread_barrier_destroy(&start);
    tr_free(alone);
    tr_free(window);
    end(&fixture);
}

/* The same to be seen without a sanitizer: numbers that another rank has put into the memory stay. */
static void shared_memory_is_taken_as_it_is(void **state)
{
    (void)state;
    struct fixture fixture;
    tr_variables *variables;
    begin(&fixture);
    int64_t floats = fixture.model->arena_floats;
    float *window = tr_alloc_aligned((size_t)floats, sizeof *window);
    assert_non_null(window);
    for (int64_t i = 0; i < floats; i++) window[i] = 7;
    must(tr_variables_create(fixture.device, fixture.model, &fixture.optimizer, window, &variables));
    must(tr_device_wait(fixture.device));
    assert_ptr_equal(tr_variables_arena(variables, TR_ARENA_PARAMETERS), window);
    for (int64_t i = 0; i < floats; i++) assert_true(window[i] == 7);
    tr_variables_destroy(&variables);
    tr_free(window);
    end(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(squares_are_those_of_the_part),
        cmocka_unit_test(parts_join_to_one_norm),
        cmocka_unit_test(averages_go_with_present_statistics),
        cmocka_unit_test(gaps_are_zero),
        cmocka_unit_test(steps_behind_a_bad_one_are_held),
        cmocka_unit_test(ranks_do_not_write_where_one_fills),
        cmocka_unit_test(shared_memory_is_taken_as_it_is),
    };
    return cmocka_run_group_tests_name("job.variables", tests, NULL, NULL);
}
