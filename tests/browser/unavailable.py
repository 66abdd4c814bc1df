"""A plugin of pytest for the browser: tests of what is not there are skipped, with the reason.

There are neither processes nor threads, and no ml_dtypes, llvmlite or safetensors. An error that says so is a skip, also
where a program or a docstring shows it; any other error is a failure."""

from __future__ import annotations

import re

import pytest

# text of an error -> reason of the skip
REASONS = {
    r"ml_dtypes": "ml_dtypes has no wheel for the browser",
    r"needs? SciPy|No module named 'scipy": "SciPy is not loaded",
    r"can't start new thread": "no threads in a browser",
    r"does not support processes|Errno 52\] Function not impl|_multiprocessing": "no processes in a browser",
    r"No module named 'safetensors'|need the package safetensors": "safetensors has no wheel for the browser",
    r"No module named '(llvmlite|torch|matplotlib|sympy|mpmath|PIL|resource)": "a package of the tests is not there",
    r"llvmlite is not installed": "no compiled loops in a browser",
    r"LAPACK function \w+ could not be found": "the LAPACK of SciPy here lacks a function",
    r"Cannot export readonly array": "NumPy 2.0 exports no readonly arrays; 2.1 does",
}
OF_WORKERS = (
    *(f"test_workers_draw_torchs_numbers[settings{i}]" for i in (1, 2, 3)),
    *(f"test_streams_shared_out_by_workers[{i}]" for i in (1, 4)),
    "test_worker_init_fn_seeds_only_its_worker",
    "test_spawned_workers",
    "test_errors_tell_where_they_come_from",
    "test_an_error_of_worker_init_fn",
    "test_timeout",
    "test_contexts_refused[ValueError-should specify a valid start method in-options1]",
    "test_contexts_refused[TypeError-should be a valid context object-options2]",
)
# tests of 64-bit systems -> reason of the skip
DIFFERENT = {
    "test_program[from_arrays]": "NumPy's own integers have 32 bits here",
    "test_of_takes_what_names_a_numpy_dtype": "NumPy's index type has 32 bits here",
    "test_cost_follows_what_is_shown": "10**17 elements are more than 32 bits count",
    "test_time_grows_with_the_number_of_nodes": "no time.thread_time in a browser",
    **{
        f"test_wrong_calls_raise_torchs_classes[{part}]": "sizes over 32 bits are NumPy's ValueError"
        for part in range(4)
    },
    **dict.fromkeys(OF_WORKERS, "data sets are read without workers: there are no processes"),
    "test_examples[rushlight.kernels.pool]": "NumPy's own integers have 32 bits here",
    **{
        f"test_straight_pieces_of_strange_numbers[{x}]": "0 * -1 loses no sign here: softshrink"
        for x in ("0.25", "1.0", "0.0", "-0.5", "2.0", "nan")
    },
    **{
        f"test_the_examples_are_true[{name}]": "the zeros of the FFT have another sign here"
        for name in ("fft_fft", "fft_fft2", "fft_fftn")
    },
    **{
        f"test_added_is_exact_to_a_few_places[{c}-shape5-dims5]": "NumPy adds in another order here"
        for c in (True, False)
    },
    "test_typed_storages_of_files": "a memory map here is written when it is flushed",
    "test_tensors_in_files": "a memory map here is written when it is flushed",
    "test_a_save_leaves_the_temporary_files_of_others_that_run": "no locks of files here",
    "test_gradients_that_cancel_are_no_other_numbers": "no compiled loops in a browser",
    "test_a_huge_model_is_trained": "sizes over 32 bits are NumPy's ValueError",
    "test_offline": "no sockets here",
    "erase-bytes]": "the transform casts negative floats to uint8, which gives other numbers here",
    "uint8]": "the test casts negative floats to uint8, which gives other numbers here",
}


def pytest_collection_modifyitems(items):
    """Skip the tests of 64-bit systems."""
    for item in items:
        for name, reason in DIFFERENT.items():
            if item.name.endswith(name) and (name != "uint8]" or item.path.name == "test_printing.py"):
                item.add_marker(pytest.mark.skip(reason=reason))


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    """A report of an error that says that something is not there becomes a skip."""
    report = (yield).get_result()
    if report.failed and call.excinfo is not None:
        text = f"{call.excinfo.value}\n{report.longreprtext}"
        for pattern, reason in REASONS.items():
            if re.search(pattern, text):
                report.outcome = "skipped"
                report.longrepr = (str(item.path), item.location[1] or 0, f"Skipped: {reason}")
                return


@pytest.hookimpl(hookwrapper=True)
def pytest_make_collect_report(collector):
    """The same for files of tests that import what is not there."""
    report = (yield).get_result()
    if report.failed:
        for pattern, reason in REASONS.items():
            if re.search(pattern, str(report.longrepr)):
                report.outcome = "skipped"
                report.longrepr = (str(collector.path), 0, f"Skipped: {reason}")
                return
