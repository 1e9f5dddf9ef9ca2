"""Those of SQLAlchemy's own tests of a dialect which fit one that creates and writes nothing, by class.

The others create tables, write rows and read them again, which a private answer never gives.
test_sqlalchemy_dialect.py runs these in a process of their own.
"""

from typing import Any

from sqlalchemy.testing import suite

CHOSEN: dict[str, tuple[str, ...]] = {
    "PingTest": ("do_ping",),
    "ArgSignatureTest": ("all_visit_methods_accept_kw",),
    "DistinctOnTest": ("distinct_on",),
    "HasTableTest": ("has_table", "has_multi_table"),
    "ReturningGuardsTest": ("insert_single", "insert_many"),
    "PostCompileParamsTest": ("compile", "compile_literal_binds"),
    "ComponentReflectionTest": ("not_existing_table", "unreflectable"),
    "TrueDivTest": (
        "truediv_integer", "floordiv_integer", "truediv_numeric", "truediv_float", "floordiv_numeric",
        "truediv_integer_bound", "floordiv_integer_bound",
    ),
    "StringTest": ("concatenate_binary", "concatenate_clauselist"),
    "DateTest": ("select_direct",),
    "TimeTest": ("select_direct",),
    "DateTimeTest": ("select_direct",),
}  # fmt: skip


def _chosen(name: str, tests: tuple[str, ...]) -> type:
    theirs: Any = getattr(suite, name)
    known = {f"test_{test}" for test in tests}
    assert known <= set(dir(theirs)), name
    left_out = {test: None for test in dir(theirs) if test.startswith("test_") and test not in known}
    kept: dict[str, Any] = {"run_create_tables": None, "run_inserts": None, "run_deletes": None}
    if name == "ComponentReflectionTest":  # its tables are temporary, and what is chosen asks about others
        kept["run_define_tables"] = None
    return type(name, (theirs,), left_out | kept | {"__module__": __name__})


globals().update({name: _chosen(name, tests) for name, tests in CHOSEN.items()})
