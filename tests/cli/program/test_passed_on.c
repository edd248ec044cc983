/* What the commands ask of the library: functions that take their settings are replaced by ones that write
 * them down, so that each option is seen where it arrives.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "base/files/file.h"
#include "base/threads/team.h"
#include "cli/data/data.h"
#include "cli/noting.h"
#include "cli/play.h"
#include "cli/printed.h"
#include "cli/program/arguments.h"
#include "cli/program/commands.h"
#include "cli/program/noted.h"
#include "cli/session.h"
#include "refuse.h"

/* Runs a command with these words, and compares what was noted. */
static void expect(const struct cli_command *command, const char *words, const char *expected)
{
    const tr_status status = run_noted(command, words);
    if (status != TR_EUNSUPPORTED) fail_msg("%s: %d, %s", words, (int)status, tr_error_message());
    if (strcmp(noted, expected) != 0) fail_msg("%s %s\n%s\nnot\n%s", command->name, words, noted, expected);
}

static void train(void **state)
{
    (void)state;
    expect(&cli_train, "tiny.yaml",
           "transport=none slow=- out=runs/tiny tensorboard=- cache=/c/trireme programs=/c/trireme/programs");
    expect(&cli_train,
           "tiny.yaml --slow 1:5 --slow=2:3 --out=o --tensorboard --data-cache-dir=d --transport=mpi",
           "transport=mpi slow=1:5,2:3 out=o tensorboard=o cache=d programs=d/programs");
    expect(&cli_train, "tiny.yaml --tensorboard=t --no-data-cache",
           "transport=none slow=- out=runs/tiny tensorboard=t cache=- programs=-");
    assert_int_equal(tr_file_make_directory(NULL, "there"), TR_OK);
    assert_int_equal(tr_file_make_directory(NULL, "there/run"), TR_OK);
    expect(&cli_train, "--replay=there/run/updates --no-data-cache",
           "transport=none slow=- out=there/run-replay tensorboard=- cache=- programs=-");
    expect(&cli_train, "--replay=there/run// --no-data-cache",
           "transport=none slow=- out=there/run-replay tensorboard=- cache=- programs=-");
    setenv("TRIREME_LOCAL", "0/1/x", 1);
    expect(&cli_train, "tiny.yaml --transport=local --no-data-cache",
           "transport=local:0/1/x slow=- out=runs/tiny tensorboard=- cache=- programs=-");
    unsetenv("TRIREME_LOCAL");
}

static void networks_that_are_used(void **state)
{
    static const struct cli_command *const commands[] = {&cli_eval, &cli_predict};
    (void)state;
    for (int i = 0; i < 2; i++) {
        expect(commands[i], "run",
               "run device=cpu threads=0 isa=- average=1 best=0 cache=/c/trireme bytes=10737418240 "
               "programs=/c/trireme/programs destroyed");
        expect(commands[i], "run --device=ref --threads=3 --isa=plain --no-average --data-cache-size=2",
               "run device=ref threads=3 isa=plain average=0 best=0 cache=/c/trireme bytes=2097152 "
               "programs=/c/trireme/programs destroyed");
        expect(
            commands[i], "run --best --no-data-cache",
            "run device=cpu threads=0 isa=- average=1 best=1 cache=- bytes=10737418240 programs=- destroyed");
    }
    predictors_inform = true;
    expect(&cli_generate, "run",
           "prompt=- tokens=500 temperature=1 top_k=0 seed=1 context=0 source=- destroyed");
    expect(&cli_generate, "run --source=x",
           "prompt=- tokens=500 temperature=0 top_k=0 seed=1 context=0 source=x destroyed");
    expect(&cli_generate, "run --source=x -p y --tokens=2 --temperature=0.5 --top-k=4 --seed=5 --context=6",
           "prompt=y tokens=2 temperature=0.5 top_k=4 seed=5 context=6 source=x destroyed");
    expect(&cli_generate, "run -T 0 --seed=0",
           "prompt=- tokens=500 temperature=0 top_k=0 seed=0 context=0 source=- destroyed");
    predictors_inform = false;
    expect(
        &cli_generate, "run --device=ref --threads=3 --isa=plain --no-average --best --data-cache-dir=d",
        "run device=ref threads=3 isa=plain average=0 best=1 cache=d bytes=10737418240 programs=d/programs "
        "destroyed");
}

static void files_of_networks(void **state)
{
    (void)state;
    expect(&cli_export, "run --onnx=x", "run average=1 best=0 layout=trireme name=- merge=0 half=0");
    expect(&cli_export, "run --torch=x --name=n --best --no-average",
           "run average=0 best=1 layout=torch name=n merge=0 half=0");
    expect(&cli_export, "run --torch=x --layout=trireme --merge",
           "run average=1 best=0 layout=trireme name=- merge=1 half=0");
    expect(&cli_export, "run --hub=x --layout=torch --half",
           "run average=1 best=0 layout=torch name=- merge=0 half=1");
    static const char none[] = "layout=auto partial=0 overwrite=0 prefix=- text=- base=- set rename";
    char expected[256];
    snprintf(expected, sizeof expected, "a/b model=- out=runs/b %s", none);
    expect(&cli_import, "a/b", expected);
    snprintf(expected, sizeof expected, "b model=tiny.yaml out=runs/tiny %s", none);
    expect(&cli_import, "b -m tiny.yaml", expected);
    expect(&cli_import,
           "f -o o --layout=torch --partial --prefix=p --text=t --base=b -s x=1 -s y=2 "
           "--rename=u=v --rename=w=",
           "f model=- out=o layout=torch partial=1 overwrite=0 prefix=p text=t base=b set=x=1,y=2 "
           "rename=u=v,w=");
    expect(&cli_import, "f -o o --layout=trireme --overwrite",
           "f model=- out=o layout=trireme partial=0 overwrite=1 prefix=- text=- base=- set rename");
    expect(&cli_data_tokenizer, "a b", "pattern=gpt2 tokens=8192 least=2 special paths=a,b");
    expect(&cli_data_tokenizer, "a -n 300 --pattern=cl100k --special=x --special=y --least=5",
           "pattern=cl100k tokens=300 least=5 special=x,y paths=a");
    expect(&cli_data_tokenizer, "a --pattern=qwen2", "pattern=qwen2 tokens=8192 least=2 special paths=a");
}

static void runs_that_are_judged(void **state)
{
    (void)state;
    expect(&cli_verify, "run",
           "run model=- from=- device=cpu isa=- threads=0 segments=0 seed=1 share=0/0 expect=- check=1 "
           "cache=/c/trireme bytes=10737418240 programs=/c/trireme/programs set");
    expect(&cli_verify,
           "run -m m --from=f --device=ref --isa=plain -t 3 --segments=4 --seed=5 --share=2/6 --expect=ab "
           "--no-memory-check --data-cache-dir=d --data-cache-size=1 -s x=1 -s y=2",
           "run model=m from=f device=ref isa=plain threads=3 segments=4 seed=5 share=1/6 expect=ab check=0 "
           "cache=d bytes=1048576 programs=d/programs set=x=1,y=2");
    expect(&cli_verify, "run --no-data-cache --share=1/1000000 --seed=0",
           "run model=- from=- device=cpu isa=- threads=0 segments=0 seed=0 share=0/1000000 expect=- check=1 "
           "cache=- bytes=10737418240 programs=- set");
    expect(&cli_verify, "--burn-in=1.5m", "seconds=90 devices=0 programs=-");
    expect(&cli_dispute, "a b",
           "a model=- from=- device=cpu isa=- threads=0 check=1 cache=/c/trireme bytes=10737418240 set");
    expect(&cli_dispute,
           "--answer=c -m m --from=f --device=ref --isa=plain -t 3 --no-memory-check --data-cache-dir=d "
           "--data-cache-size=3 -s x=1",
           "c model=m from=f device=ref isa=plain threads=3 check=0 cache=d bytes=3145728 set=x=1");
    expect(&cli_dispute, "a b --no-data-cache",
           "a model=- from=- device=cpu isa=- threads=0 check=1 cache=- bytes=10737418240 set");
}

static void runs_that_are_looked_at(void **state)
{
    (void)state;
    expect(&cli_receipt, "run", "run json");
    expect(&cli_receipt, "run --format=in-toto", "run in-toto");
    expect(&cli_receipt, "run --format=cyclonedx", "run cyclonedx");
    expect(&cli_report_runs, "a b", "title=- trace=- examples=1 runs=a,b");
    expect(&cli_report_runs, "a --title=t --trace=f --no-examples", "title=t trace=f examples=0 runs=a");
    expect(&cli_inspect, "tiny.yaml -s x=1 -s y=2", "tiny.yaml set=x=1,y=2");
    expect(&cli_inspect, "tiny.yaml --json", "json tiny.yaml set");
}

#define SHIPPED "--dir=" TRIREME_SOURCE_DIR "/data"

static void data_sets(void **state)
{
    (void)state;
    expect(&cli_data_convert, "mnist x --part=test " SHIPPED, "10000 as tfrecord,none to x");
    expect(&cli_data_convert, "mnist x -p test -f idx --packing=zlib " SHIPPED, "10000 as idx,zlib to x");
    expect(&cli_data_convert, "mnist all " SHIPPED, "60000 as tfrecord,none to all/train.tfrecord");
    expect(&cli_data_convert, "mnist all --format=idx " SHIPPED, "60000 as idx,none to all/train");
    expect(&cli_data_show, "mnist " SHIPPED, "3 from 0 of 60000, 80");
    expect(&cli_data_show, "mnist -p test --first=7 --count=2 " SHIPPED, "2 from 7 of 10000, 80");
    expect(&cli_data_fetch, "mnist sst2", "mnist from - to data");
    expect(&cli_data_fetch, "sst2 --mirror=file:///x --dir=y", "sst2 from file:///x to y");
}

/* Before the library is asked for anything, memory that is refused is said, and nothing stays. */
static void memory_is_refused(void **state)
{
    static const struct {
        const struct cli_command *command;
        const char *words[5];
    } cases[] = {
        {&cli_train, {"tiny.yaml", "--slow=1:5", "--slow=2:3", "--out=o", "--tensorboard"}},
        {&cli_train, {"tiny.yaml", "--no-data-cache"}},
        {&cli_train, {"--replay=there/run"}},
        {&cli_eval, {"run"}},
        {&cli_verify, {"run"}},
        {&cli_dispute, {"a", "b"}},
        {&cli_import, {"a/b"}},
    };
    static const char *const environment[] = {NULL};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        void *options;
        int count = 0;
        while (count < 5 && cases[i].words[count]) count++;
        assert_int_equal(cli_command_read(cases[i].command, count, cases[i].words, environment, &options),
                         TR_OK);
        for (int64_t at = 0, done = 0; !done; at++) {
            const int64_t live = tr_alloc_live();
            noted[0] = '\0';
            refuse_begin(at);
            const tr_status status = cases[i].command->run(options);
            done = refuse_end();
            if (status != (done ? TR_EUNSUPPORTED : TR_ENOMEM))
                fail_msg("%s, allocation %d: %d, %s", cases[i].command->name, (int)at, (int)status,
                         tr_error_message());
            if (!done) assert_string_equal(noted, "");
            assert_int_equal(tr_alloc_live(), live);
        }
        cli_command_release(cases[i].command, &options);
    }
}

/* The processors of the machine are divided among the processes, which get all else as it was given. */
static void verifications_by_workers(void **state)
{
    static const char *const environment[] = {NULL};
    static const char *const words[] = {"run",
                                        "-m",
                                        "m",
                                        "--from=f",
                                        "--device=ref",
                                        "--isa=plain",
                                        "-t",
                                        "5",
                                        "--segments=4",
                                        "--seed=6",
                                        "--expect=ab",
                                        "--no-memory-check",
                                        "--data-cache-dir=d",
                                        "--data-cache-size=7",
                                        "-s",
                                        "x=1",
                                        "--workers=2"};
    char expected[2048];
    struct tr_file_content content;
    (void)state;
    for (int way = 0; way < 2; way++) {
        void *options;
        const int count = (int)(sizeof words / sizeof words[0]);
        const char *const plain[] = {"run", "--no-data-cache", "--workers=2"};
        assert_int_equal(
            cli_command_read(&cli_verify, way ? 3 : count, way ? plain : words, environment, &options),
            TR_OK);
        play_with("arguments", "{\"outcome\":\"cannot\",\"text\":\"x\"}\n", "7");
        printed_begin();
        cli_verify.run(options);
        printed_end();
        cli_command_release(&cli_verify, &options);
        assert_int_equal(tr_file_read("arguments", 4096, &content), TR_OK);
        const int half = tr_team_processors() / 2;
        for (int i = 1; i <= 2; i++) {
            snprintf(expected, sizeof expected,
                     way ? "verify\nrun\n--json\n--share=%d/2\n--threads=%d\n--segments=0\n--seed=1\n"
                           "--device=cpu\n--no-data-cache\n--data-cache-size=10240\n"
                         : "verify\nrun\n--json\n--share=%d/2\n--threads=%d\n--segments=4\n--seed=6\n"
                           "--device=ref\n--model=m\n--from=f\n--expect=ab\n--isa=plain\n"
                           "--no-memory-check\n--data-cache-dir=d\n--data-cache-size=7\n--set=x=1\n",
                     i, way ? (half > 0 ? half : 1) : 5);
            if (!strstr(content.data, expected)) fail_msg("%s\nis not in\n%s", expected, content.data);
        }
        tr_file_content_free(&content);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(train),
        cmocka_unit_test(networks_that_are_used),
        cmocka_unit_test(files_of_networks),
        cmocka_unit_test(runs_that_are_judged),
        cmocka_unit_test(runs_that_are_looked_at),
        cmocka_unit_test(data_sets),
        cmocka_unit_test(memory_is_refused),
        cmocka_unit_test(verifications_by_workers),
    };
    if (is_played(argc)) return play(argv);
    setenv("XDG_CACHE_HOME", "/c", 1);
    return cmocka_run_group_tests_name("cli.passed_on", tests, place_make, place_remove);
}
