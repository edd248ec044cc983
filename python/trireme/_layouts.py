"""Structures and functions of the C interface. Made by tools/layouts.py from include/trireme; not edited."""

# ruff: noqa
# mypy: ignore-errors
from ctypes import (
    CFUNCTYPE,
    POINTER,
    Structure,
    c_bool,
    c_char,
    c_char_p,
    c_double,
    c_float,
    c_int,
    c_int32,
    c_int64,
    c_size_t,
    c_uint8,
    c_uint64,
    c_void_p,
)

TR_ARRAY_DIMENSIONS = 4
TR_NO_LABEL = -1
TR_LOCAL_TRANSPORT_SIZE = 64
TR_TRANSLATION_TOKENS = 1024
TR_PARAMETER_DIMENSIONS = 4
TR_ARRAY_FLOAT32 = 0
TR_ARRAY_FLOAT64 = 1
TR_ARRAY_UINT8 = 2
TR_ARRAY_INT32 = 3
TR_ARRAY_INT64 = 4
TR_ARRAY_UINT16 = 5
TR_ARRAY_INT16 = 6
TR_FEATURE_IMAGE = 0
TR_FEATURE_FLOATS = 1
TR_FEATURE_TOKENS = 2
TR_LABEL_NONE = 0
TR_LABEL_CLASS = 1
TR_LABEL_VALUES = 2
TR_LABEL_TOKENS = 3
TR_LABEL_PIXELS = 4
TR_DATA_FILE_GOOD = 0
TR_DATA_FILE_MISSING = 1
TR_DATA_FILE_BAD = 2
TR_DATA_FILE_FETCHED = 3
TR_LAYOUT_TRIREME = 0
TR_LAYOUT_TORCH = 1
TR_LAYOUT_AUTO = 2
TR_CAUSE_FORWARD = 0
TR_CAUSE_BACKWARD = 1
TR_CAUSE_UPDATE = 2
TR_CAUSE_COMMUNICATION = 3
TR_CAUSE_WAITING = 4
TR_CAUSE_INPUT = 5
TR_CAUSE_EVALUATION = 6
TR_CAUSE_CHECKPOINT = 7
TR_CAUSE_OTHER = 8
TR_CAUSES = 9
TR_VERIFIED = 0
TR_DIFFERS = 1
TR_UNVERIFIABLE = 2
TR_OK = 0
TR_EINVAL = 1
TR_ENOMEM = 2
TR_EIO = 3
TR_EFORMAT = 4
TR_ECORRUPT = 5
TR_EMISMATCH = 6
TR_EUNSUPPORTED = 7
TR_ENONFINITE = 8
TR_EINTERRUPTED = 9
TR_ENOTFOUND = 10
TR_EPEER = 11
TR_EVENT_STEP = 0
TR_EVENT_PROGRESS = 1
TR_EVENT_EVALUATION = 2
TR_EVENT_CHECKPOINT = 3
TR_EVENT_WARNING = 4
TR_EVENT_END = 5
TR_EVENT_SHARES = 6

tr_data_report = CFUNCTYPE(None, c_void_p, c_char_p, c_int, c_char_p)
tr_data_progress = CFUNCTYPE(c_int, c_void_p, c_char_p, c_int64, c_int64)
tr_data_cache_visit = CFUNCTYPE(None, c_void_p, c_void_p)
tr_prediction_listener = CFUNCTYPE(c_int, c_void_p, c_void_p)
tr_text_listener = CFUNCTYPE(c_int, c_void_p, c_char_p, c_size_t)
tr_verify_listener = CFUNCTYPE(c_int, c_void_p, c_void_p)
tr_burn_in_listener = CFUNCTYPE(None, c_void_p, c_void_p)
tr_run_state_writer = CFUNCTYPE(c_int, c_void_p, c_void_p, c_size_t)
tr_run_state_reader = CFUNCTYPE(c_int64, c_void_p, c_void_p, c_size_t)
tr_train_listener = CFUNCTYPE(c_int, c_void_p, c_void_p)


class tr_array(Structure):
    _fields_ = [
        ("data", c_void_p),
        ("type", c_int),
        ("dimensions", c_int32),
        ("shape", c_int64 * 4),
        ("stride", c_int64 * 4),
    ]


class tr_arrays(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("features", tr_array),
        ("labels", tr_array),
        ("lengths", tr_array),
        ("offsets", tr_array),
        ("tokens", c_int32),
        ("vocabulary", c_int32),
        ("classes", c_int32),
        ("class_names", POINTER(c_char_p)),
        ("release", CFUNCTYPE(None, c_void_p)),
        ("user", c_void_p),
    ]


class tr_source_info(Structure):
    _fields_ = [
        ("count", c_int64),
        ("features", c_int),
        ("labels", c_int),
        ("height", c_int32),
        ("width", c_int32),
        ("channels", c_int32),
        ("floats", c_int32),
        ("max_tokens", c_int32),
        ("vocabulary", c_int32),
        ("classes", c_int32),
        ("values", c_int32),
        ("class_names", POINTER(c_char_p)),
        ("skipped", c_int64),
        ("slow", c_bool),
        ("steps", c_int32),
    ]


class tr_example_reader(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("info", tr_source_info),
        ("read", CFUNCTYPE(c_int, c_void_p, c_int64, c_void_p, POINTER(c_int64), c_void_p)),
        ("any_thread", c_int32),
        ("release", CFUNCTYPE(None, c_void_p)),
        ("user", c_void_p),
    ]


class tr_named_source(Structure):
    _fields_ = [
        ("name", c_char_p),
        ("source", c_void_p),
    ]


class tr_data_set_info(Structure):
    _fields_ = [
        ("name", c_char_p),
        ("title", c_char_p),
        ("origin", c_char_p),
        ("can_fetch", c_bool),
        ("parts", POINTER(c_char_p)),
    ]


class tr_data_cache_entry(Structure):
    _fields_ = [
        ("path", c_char_p),
        ("bytes", c_int64),
        ("used", c_int64),
        ("good", c_bool),
        ("examples", c_char_p),
    ]


class tr_run_state(Structure):
    _fields_ = [
        ("bytes", c_void_p),
        ("size", c_size_t),
        ("read", tr_run_state_reader),
        ("user", c_void_p),
    ]


class tr_export_settings(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("checkpoint", c_char_p),
        ("use_average", c_bool),
        ("layout", c_int),
        ("name", c_char_p),
        ("best", c_bool),
        ("state", tr_run_state),
        ("merge", c_bool),
        ("half", c_bool),
    ]


class tr_export_format(Structure):
    _fields_ = [
        ("name", c_char_p),
        ("help", c_char_p),
    ]


class tr_import_settings(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("file", c_char_p),
        ("model", c_char_p),
        ("set", POINTER(c_char_p)),
        ("set_count", c_int),
        ("out", c_char_p),
        ("layout", c_int),
        ("rename", POINTER(c_char_p)),
        ("rename_count", c_int),
        ("partial", c_bool),
        ("prefix", c_char_p),
        ("overwrite", c_bool),
        ("bytes", c_void_p),
        ("bytes_size", c_size_t),
        ("model_text", c_char_p),
        ("model_length", c_size_t),
        ("model_name", c_char_p),
        ("directory", c_char_p),
        ("data", POINTER(tr_named_source)),
        ("data_count", c_int),
        ("text", c_char_p),
        ("base", c_char_p),
    ]


class tr_inspect_settings(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("path", c_char_p),
        ("set", POINTER(c_char_p)),
        ("set_count", c_int),
        ("model_text", c_char_p),
        ("model_length", c_size_t),
        ("model_name", c_char_p),
        ("directory", c_char_p),
        ("state", tr_run_state),
        ("data", POINTER(tr_named_source)),
        ("data_count", c_int),
        ("json", c_int),
    ]


class tr_metric(Structure):
    _fields_ = [
        ("name", c_char_p),
        ("value", c_double),
    ]


class tr_metrics(Structure):
    _fields_ = [
        ("count", c_int),
        ("metric", POINTER(tr_metric)),
        ("outputs", c_int64),
        ("columns", c_int),
        ("column", POINTER(c_char_p)),
        ("table", POINTER(c_double)),
        ("name", POINTER(c_char_p)),
    ]


class tr_predict_settings(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("checkpoint", c_char_p),
        ("device", c_char_p),
        ("threads", c_int),
        ("isa", c_char_p),
        ("use_average", c_bool),
        ("data_cache", c_char_p),
        ("data_cache_bytes", c_int64),
        ("best", c_bool),
        ("program_cache", c_char_p),
        ("state", tr_run_state),
        ("data", POINTER(tr_named_source)),
        ("data_count", c_int),
    ]


class tr_predict_info(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("name", c_char_p),
        ("checkpoint", c_char_p),
        ("skipped", c_char_p),
        ("hash", c_char_p),
        ("step", c_int64),
        ("features", c_int),
        ("height", c_int32),
        ("width", c_int32),
        ("channels", c_int32),
        ("floats", c_int32),
        ("outputs", c_int32),
        ("classification", c_bool),
        ("class_names", POINTER(c_char_p)),
        ("accuracy", c_bool),
        ("of_tokens", c_bool),
        ("language_model", c_bool),
        ("heads", c_int32),
        ("targets", c_int32),
        ("target_names", POINTER(c_char_p)),
        ("pixel_height", c_int32),
        ("pixel_width", c_int32),
        ("two_texts", c_bool),
    ]


class tr_predict_head(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("loss", c_char_p),
        ("outputs", c_int32),
        ("classification", c_bool),
        ("yes_or_no", c_bool),
        ("first_output", c_int32),
        ("name", c_char_p),
    ]


class tr_prediction(Structure):
    _fields_ = [
        ("first", c_int64),
        ("count", c_int64),
        ("rows", c_int64),
        ("output", POINTER(c_float)),
        ("offset", POINTER(c_int32)),
        ("tokens", POINTER(c_int32)),
        ("labels", POINTER(c_int32)),
        ("targets", POINTER(c_float)),
    ]


class tr_example_range(Structure):
    _fields_ = [
        ("first", c_int64),
        ("end", c_int64),
    ]


class tr_examples(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("count", c_int64),
        ("images", POINTER(c_uint8)),
        ("floats", POINTER(c_float)),
        ("texts", POINTER(c_char_p)),
        ("tokens", POINTER(c_int32)),
        ("offsets", POINTER(c_int64)),
    ]


class tr_generate_settings(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("prompt", c_char_p),
        ("tokens", c_int64),
        ("temperature", c_double),
        ("top_k", c_int32),
        ("seed", c_uint64),
        ("context", c_int64),
        ("source", c_char_p),
    ]


class tr_profile_layer(Structure):
    _fields_ = [
        ("name", c_char_p),
        ("calls", c_int64),
        ("forward_seconds", c_double),
        ("backward_seconds", c_double),
        ("forward_operations", c_double),
        ("backward_operations", c_double),
        ("parameters", c_int64),
        ("bytes", c_int64),
    ]


class tr_profile_rank(Structure):
    _fields_ = [
        ("seconds", c_double * 9),
        ("awaited", c_double),
    ]


class tr_train_profile(Structure):
    _fields_ = [
        ("peak", c_double),
        ("layer_count", c_int),
        ("ranks", c_int),
        ("layers", POINTER(tr_profile_layer)),
        ("rank", POINTER(tr_profile_rank)),
    ]


class tr_verify_settings(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("path", c_char_p),
        ("model", c_char_p),
        ("set", POINTER(c_char_p)),
        ("set_count", c_int),
        ("from", c_char_p),
        ("device", c_char_p),
        ("isa", c_char_p),
        ("threads", c_int),
        ("segments", c_int64),
        ("seed", c_uint64),
        ("share", c_int),
        ("shares", c_int),
        ("expect", c_char_p),
        ("no_memory_check", c_bool),
        ("data_cache", c_char_p),
        ("data_cache_bytes", c_int64),
        ("program_cache", c_char_p),
        ("stop", c_void_p),
    ]


class tr_verify_result(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("outcome", c_int),
        ("step", c_int64),
        ("segments", c_int64),
        ("checked", c_int64),
        ("steps", c_int64),
        ("hash", c_char * 65),
    ]


class tr_verify_event(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("first", c_int64),
        ("end", c_int64),
    ]


class tr_burn_in_settings(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("seconds", c_double),
        ("devices", POINTER(c_char_p)),
        ("device_count", c_int),
        ("program_cache", c_char_p),
    ]


class tr_burn_in_event(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("place", c_char_p),
        ("rounds", c_int64),
        ("wrong", c_int64),
        ("hash", c_char_p),
        ("failure", c_char_p),
    ]


class tr_report_settings(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("title", c_char_p),
        ("trace", c_char_p),
        ("examples", c_bool),
    ]


class tr_tokenizer_settings(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("pattern", c_char_p),
        ("tokens", c_int32),
        ("least", c_int64),
        ("special", POINTER(c_char_p)),
        ("special_count", c_int32),
        ("paths", POINTER(c_char_p)),
        ("path_count", c_int32),
    ]


class tr_train_settings(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("model", c_char_p),
        ("set", POINTER(c_char_p)),
        ("set_count", c_int),
        ("device", c_char_p),
        ("threads", c_int),
        ("isa", c_char_p),
        ("out", c_char_p),
        ("resume", c_char_p),
        ("resume_changed", c_bool),
        ("has_seed", c_bool),
        ("seed", c_uint64),
        ("steps", c_int64),
        ("transport", c_char_p),
        ("strategy", c_char_p),
        ("slow", c_char_p),
        ("delay_seed", c_uint64),
        ("timeout", c_double),
        ("patience", c_double),
        ("trace", c_char_p),
        ("trace_first", c_int64),
        ("trace_steps", c_int64),
        ("profile", c_bool),
        ("tensorboard", c_char_p),
        ("histograms", c_int64),
        ("record_digests", c_int64),
        ("parameters_on", c_char_p),
        ("continues", c_bool),
        ("journal", c_char_p),
        ("bind", c_bool),
        ("data_cache", c_char_p),
        ("data_cache_bytes", c_int64),
        ("no_memory_check", c_bool),
        ("system_root", c_char_p),
        ("epochs", c_int64),
        ("from", c_char_p),
        ("program_cache", c_char_p),
        ("outlives", c_bool),
        ("shares", c_char_p),
        ("replicas_of_state", c_int),
        ("model_text", c_char_p),
        ("model_length", c_size_t),
        ("model_name", c_char_p),
        ("directory", c_char_p),
        ("data", POINTER(tr_named_source)),
        ("data_count", c_int),
        ("state", tr_run_state),
        ("stop", c_void_p),
        ("from_state", tr_run_state),
        ("replay", c_char_p),
        ("receipt", c_bool),
        ("schedule", c_char_p),
        ("simulate_delays", c_uint64),
        ("simulate_workers", c_int),
        ("teacher", c_char_p),
    ]


class tr_train_plan(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("strategy", c_char_p),
        ("asynchronous", c_bool),
    ]


class tr_train_info(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("name", c_char_p),
        ("model", c_char_p),
        ("device", c_char_p),
        ("resumed", c_char_p),
        ("resume_warnings", c_char_p),
        ("settings", c_char_p),
        ("digest", c_char_p),
        ("tensorboard", c_char_p),
        ("seed", c_uint64),
        ("parameters", c_int64),
        ("kept", c_int64),
        ("memory", c_int64),
        ("host_memory", c_int64),
        ("data_memory", c_int64),
        ("free_memory", c_int64),
        ("host_processes", c_int),
        ("train_examples", c_int64),
        ("test_examples", c_int64),
        ("batch", c_int64),
        ("microbatches", c_int64),
        ("steps", c_int64),
        ("steps_per_epoch", c_int64),
        ("step", c_int64),
        ("seconds", c_double),
        ("best_step", c_int64),
        ("best_loss", c_double),
        ("best_accuracy", c_double),
        ("best_set", c_char_p),
        ("classification", c_bool),
        ("label_smoothing", c_double),
        ("log_every", c_int64),
        ("rank", c_int),
        ("ranks", c_int),
        ("strategy", c_char_p),
        ("strategy_options", c_char_p),
        ("role", c_char_p),
        ("first_microbatch", c_int64),
        ("end_microbatch", c_int64),
        ("start", c_char_p),
        ("tokens_per_example", c_double),
        ("monitor", c_char_p),
        ("best_monitor", c_double),
    ]


class tr_train_placement(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("host", c_char_p),
        ("role", c_char_p),
        ("device", c_char_p),
        ("holder", c_char_p),
        ("threads", c_int),
        ("memory", c_int64),
        ("first_microbatch", c_int64),
        ("end_microbatch", c_int64),
        ("first_layer", c_char_p),
        ("last_layer", c_char_p),
        ("parameters", c_int64),
        ("updates", c_int64),
    ]


class tr_train_event(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("kind", c_int),
        ("step", c_int64),
        ("steps", c_int64),
        ("epoch", c_double),
        ("loss", c_double),
        ("accuracy", c_double),
        ("rate", c_double),
        ("gradient_norm", c_double),
        ("examples", c_int64),
        ("seconds", c_double),
        ("examples_per_second", c_double),
        ("name", c_char_p),
        ("hash", c_char_p),
        ("best", c_bool),
        ("metrics", POINTER(tr_metrics)),
        ("perplexity", c_double),
        ("tokens_per_second", c_double),
    ]


class tr_train_rank(Structure):
    _fields_ = [
        ("bytes_sent", c_int64),
        ("bytes_received", c_int64),
        ("bytes_shared", c_int64),
        ("wait_seconds", c_double),
        ("compute_seconds", c_double),
        ("contributions", c_int64),
    ]


class tr_train_statistics(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("ranks", c_int),
        ("rank", POINTER(tr_train_rank)),
        ("steps", c_int64),
        ("asynchronous", c_bool),
        ("staleness", POINTER(c_int64)),
        ("staleness_bins", c_int),
        ("dropped", c_int64),
    ]


class tr_parameter_info(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("name", c_char_p),
        ("count", c_int64),
        ("dimensions", c_int32),
        ("shape", c_int64 * 4),
    ]


#: Of each function: the result, and the parameters.
FUNCTIONS = {
    "tr_source_from_arrays": (c_int, [POINTER(tr_arrays), POINTER(c_void_p)]),
    "tr_source_from_reader": (c_int, [POINTER(tr_example_reader), POINTER(c_void_p)]),
    "tr_source_open": (c_int, [c_char_p, c_char_p, c_char_p, POINTER(c_void_p)]),
    "tr_source_close": (None, [POINTER(c_void_p)]),
    "tr_source_info": (POINTER(tr_source_info), [c_void_p]),
    "tr_source_capacity": (c_int64, [c_void_p]),
    "tr_source_read": (c_int, [c_void_p, c_int64, c_void_p, c_int64, POINTER(c_int64), c_void_p]),
    "tr_source_state": (c_int, [c_void_p, POINTER(c_char_p), POINTER(c_char_p)]),
    "tr_source_digest": (c_int, [c_void_p, POINTER(c_char)]),
    "tr_source_show": (c_int, [c_void_p, c_int64, c_int64, c_int, POINTER(c_char_p)]),
    "tr_source_convert": (c_int, [c_void_p, c_char_p, c_char_p, c_char_p]),
    "tr_data_set_at": (POINTER(tr_data_set_info), [c_int]),
    "tr_data_set_describe": (c_int, [c_char_p, c_char_p, POINTER(c_char_p)]),
    "tr_data_set_open": (c_int, [c_char_p, c_char_p, c_char_p, c_char_p, POINTER(c_void_p)]),
    "tr_data_set_verify": (c_int, [c_char_p, c_char_p, tr_data_report, c_void_p]),
    "tr_data_set_fetch": (c_int, [c_char_p, c_char_p, c_char_p, tr_data_progress, tr_data_report, c_void_p]),
    "tr_data_cache_list": (c_int, [c_char_p, tr_data_cache_visit, c_void_p]),
    "tr_data_cache_clear": (c_int, [c_char_p, POINTER(c_int), POINTER(c_int64)]),
    "tr_data_file_at": (c_char_p, [c_void_p]),
    "tr_text_free": (None, [c_char_p]),
    "tr_exporter_create": (c_int, [POINTER(tr_export_settings), POINTER(c_void_p)]),
    "tr_exporter_destroy": (None, [POINTER(c_void_p)]),
    "tr_exporter_skipped": (c_char_p, [c_void_p]),
    "tr_exporter_write": (c_int, [c_void_p, c_char_p, c_char_p]),
    "tr_export_format_at": (POINTER(tr_export_format), [c_int]),
    "tr_import": (c_int, [POINTER(tr_import_settings), POINTER(c_char_p)]),
    "tr_import_state": (c_int, [POINTER(tr_import_settings), POINTER(c_void_p), POINTER(c_size_t)]),
    "tr_inspect": (c_int, [c_char_p, POINTER(c_char_p), c_int, POINTER(c_char_p)]),
    "tr_inspect_json": (c_int, [c_char_p, POINTER(c_char_p), c_int, POINTER(c_char_p)]),
    "tr_inspect_model": (c_int, [POINTER(tr_inspect_settings), POINTER(c_char_p)]),
    "tr_devices": (c_int, [POINTER(c_char_p)]),
    "tr_devices_json": (c_int, [POINTER(c_char_p)]),
    "tr_devices_tested": (c_int, [c_char_p, c_int, POINTER(c_char_p)]),
    "tr_layers": (c_int, [POINTER(c_char_p)]),
    "tr_manual": (c_int, [POINTER(c_char_p)]),
    "tr_local_group_create": (c_int, [c_int, POINTER(c_void_p)]),
    "tr_local_group_descriptor": (c_int, [c_void_p]),
    "tr_local_group_transport": (c_int, [c_void_p, c_int, c_int, c_char_p, c_size_t]),
    "tr_local_group_ended": (None, [c_void_p, c_int]),
    "tr_local_group_destroy": (None, [POINTER(c_void_p)]),
    "tr_predictor_create": (c_int, [POINTER(tr_predict_settings), POINTER(c_void_p)]),
    "tr_predictor_destroy": (None, [POINTER(c_void_p)]),
    "tr_predictor_info": (c_int, [c_void_p, POINTER(tr_predict_info)]),
    "tr_predictor_category_count": (c_int32, [c_void_p, c_int32]),
    "tr_predictor_category_name": (c_char_p, [c_void_p, c_int32, c_int32]),
    "tr_predictor_category": (c_int, [c_void_p, c_int32, c_char_p, POINTER(c_float)]),
    "tr_predictor_head": (c_int, [c_void_p, c_int32, POINTER(tr_predict_head)]),
    "tr_predictor_image": (c_int, [c_void_p, POINTER(c_uint8), POINTER(c_float)]),
    "tr_predictor_floats": (c_int, [c_void_p, POINTER(c_float), POINTER(c_float)]),
    "tr_predictor_text": (c_int, [c_void_p, c_char_p, POINTER(c_float)]),
    "tr_predictor_run": (c_int, [c_void_p, c_void_p, POINTER(tr_example_range), c_int64, tr_prediction_listener, c_void_p]),
    "tr_predictor_batch": (c_int, [c_void_p, POINTER(tr_examples), tr_prediction_listener, c_void_p]),
    "tr_predictor_tokens": (c_int, [c_void_p, c_char_p, c_int64, POINTER(c_size_t), POINTER(c_size_t), POINTER(c_int64), POINTER(c_int64)]),
    "tr_predictor_word": (c_int, [c_void_p, c_int32, POINTER(c_char_p)]),
    "tr_predictor_source": (c_int, [c_void_p, c_void_p, c_int64, c_int64, POINTER(c_float)]),
    "tr_predictor_evaluate": (c_int, [c_void_p, c_void_p, POINTER(c_double), POINTER(c_double), POINTER(c_int64)]),
    "tr_predictor_metrics": (POINTER(tr_metrics), [c_void_p]),
    "tr_predictor_generate": (c_int, [c_void_p, POINTER(tr_generate_settings), tr_text_listener, c_void_p]),
    "tr_predictor_translate": (c_int, [c_void_p, c_char_p, POINTER(c_char_p)]),
    "tr_predictor_translate_example": (c_int, [c_void_p, c_void_p, c_int64, POINTER(c_char_p), POINTER(c_char_p)]),
    "tr_predictor_open_data": (c_int, [c_void_p, c_char_p, POINTER(c_void_p)]),
    "tr_predictor_has_data": (c_bool, [c_void_p, c_char_p]),
    "tr_predictor_view": (c_int, [c_void_p, c_void_p, POINTER(c_void_p)]),
    "tr_predictor_view_inputs": (c_int, [c_void_p, POINTER(tr_named_source), c_int, POINTER(c_void_p)]),
    "tr_predictor_open_source": (c_int, [c_void_p, c_char_p, c_char_p, POINTER(c_void_p)]),
    "tr_predictor_open_file": (c_int, [c_void_p, c_char_p, POINTER(c_void_p)]),
    "tr_trainer_receipt": (c_int, [c_void_p, POINTER(c_char_p)]),
    "tr_receipt_form": (c_int, [c_char_p, c_char_p, POINTER(c_char_p)]),
    "tr_verify": (c_int, [POINTER(tr_verify_settings), tr_verify_listener, c_void_p, POINTER(tr_verify_result), POINTER(c_char_p)]),
    "tr_verify_chance": (c_double, [c_int64, c_int64, c_int64]),
    "tr_burn_in": (c_int, [POINTER(tr_burn_in_settings), tr_burn_in_listener, c_void_p, POINTER(c_bool)]),
    "tr_report": (c_int, [POINTER(c_char_p), c_int, POINTER(tr_report_settings), POINTER(c_char_p)]),
    "tr_diff": (c_int, [c_char_p, c_char_p, POINTER(c_bool), POINTER(c_char_p)]),
    "tr_state_free": (None, [c_void_p]),
    "tr_status_name": (c_char_p, [c_int]),
    "tr_error_message": (c_char_p, []),
    "tr_tokenizer_open": (c_int, [c_char_p, POINTER(c_void_p)]),
    "tr_tokenizer_destroy": (None, [POINTER(c_void_p)]),
    "tr_tokenizer_train": (c_int, [POINTER(tr_tokenizer_settings), POINTER(c_void_p)]),
    "tr_tokenizer_save": (c_int, [c_void_p, c_char_p]),
    "tr_tokenizer_size": (c_int32, [c_void_p]),
    "tr_tokenizer_encode": (c_int, [c_void_p, c_char_p, c_size_t, c_int64, POINTER(c_int32), POINTER(c_int64)]),
    "tr_tokenizer_decode": (c_int, [c_void_p, POINTER(c_int32), c_int64, c_size_t, c_char_p, POINTER(c_size_t)]),
    "tr_stop_create": (c_int, [POINTER(c_void_p)]),
    "tr_stop_destroy": (None, [POINTER(c_void_p)]),
    "tr_stop_set": (None, [c_void_p, c_int]),
    "tr_train_plan": (c_int, [POINTER(tr_train_settings), POINTER(tr_train_plan)]),
    "tr_trainer_create": (c_int, [POINTER(tr_train_settings), POINTER(c_void_p)]),
    "tr_trainer_destroy": (None, [POINTER(c_void_p)]),
    "tr_trainer_info": (c_int, [c_void_p, POINTER(tr_train_info)]),
    "tr_trainer_placement": (c_int, [c_void_p, c_int, POINTER(tr_train_placement)]),
    "tr_trainer_is_reporter": (c_bool, [c_void_p]),
    "tr_trainer_set_command": (c_int, [c_void_p, c_char_p]),
    "tr_trainer_run": (c_int, [c_void_p, tr_train_listener, c_void_p]),
    "tr_trainer_step": (c_int, [c_void_p, POINTER(tr_train_event)]),
    "tr_trainer_stop": (None, [c_void_p]),
    "tr_trainer_statistics": (c_int, [c_void_p, POINTER(tr_train_statistics)]),
    "tr_trainer_evaluate": (c_int, [c_void_p, c_char_p, POINTER(tr_train_event)]),
    "tr_trainer_save": (c_int, [c_void_p, POINTER(c_char_p)]),
    "tr_trainer_save_at": (c_int, [c_void_p, c_char_p]),
    "tr_trainer_save_state": (c_int, [c_void_p, POINTER(c_void_p), POINTER(c_size_t)]),
    "tr_trainer_save_stream": (c_int, [c_void_p, tr_run_state_writer, c_void_p]),
    "tr_trainer_predictor": (c_int, [c_void_p, POINTER(tr_predict_settings), POINTER(c_void_p)]),
    "tr_trainer_rate": (c_int, [c_void_p, POINTER(c_double)]),
    "tr_trainer_set_rate": (c_int, [c_void_p, c_double]),
    "tr_trainer_hash": (c_int, [c_void_p, POINTER(c_char)]),
    "tr_trainer_parameter_count": (c_int32, [c_void_p]),
    "tr_trainer_parameter_at": (c_int, [c_void_p, c_int32, POINTER(tr_parameter_info)]),
    "tr_trainer_set_parameter": (c_int, [c_void_p, c_char_p, POINTER(c_float), c_int64]),
    "tr_trainer_parameter": (c_int, [c_void_p, c_char_p, POINTER(c_float), c_int64]),
    "tr_trainer_profile": (c_int, [c_void_p, POINTER(POINTER(tr_train_profile))]),
    "tr_version": (c_char_p, []),
    "tr_numerics_version": (c_int, []),
}

STRUCTURES = [
    tr_array,
    tr_arrays,
    tr_source_info,
    tr_example_reader,
    tr_named_source,
    tr_data_set_info,
    tr_data_cache_entry,
    tr_run_state,
    tr_export_settings,
    tr_export_format,
    tr_import_settings,
    tr_inspect_settings,
    tr_metric,
    tr_metrics,
    tr_predict_settings,
    tr_predict_info,
    tr_predict_head,
    tr_prediction,
    tr_example_range,
    tr_examples,
    tr_generate_settings,
    tr_profile_layer,
    tr_profile_rank,
    tr_train_profile,
    tr_verify_settings,
    tr_verify_result,
    tr_verify_event,
    tr_burn_in_settings,
    tr_burn_in_event,
    tr_report_settings,
    tr_tokenizer_settings,
    tr_train_settings,
    tr_train_plan,
    tr_train_info,
    tr_train_placement,
    tr_train_event,
    tr_train_rank,
    tr_train_statistics,
    tr_parameter_info,
]
