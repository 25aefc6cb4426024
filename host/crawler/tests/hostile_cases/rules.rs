//! The rules of the plugins in the text format. Each is named for its behaviour.

use crate::wat::Guest;

/// Plugin without any malice, in which other components are put.
pub(crate) const PLAIN: Guest = Guest {
    name: "plain",
    rules: &[("ok", "(call $good)")],
    n_pages: 1,
    more: "",
    is_wide: false,
};

/// Plugin without malice whose data lies far apart in a large memory.
pub(crate) const SPARSE: Guest = Guest {
    name: "sparse",
    rules: &[("ok", "(call $good)")],
    n_pages: 4_000,
    more: "(data (i32.const 200000000) \"far\") (data (i32.const 262000000) \"away\")",
    is_wide: false,
};

/// Plugin without malice with strings of UTF-16.
pub(crate) const WIDE: Guest = Guest {
    name: "wide",
    rules: &[
        ("ok", "(call $good)"),
        (
            "odd",
            "(call $log (i32.const 1) (i32.const 81) (i32.const 1))",
        ),
        (
            "half",
            "(call $log (i32.const 1) (i32.const 80) (i32.const 1))",
        ),
        (
            "long",
            "(call $log (i32.const 1) (i32.const 80) (i32.const 0x7fffffff))",
        ),
    ],
    n_pages: 1,
    more: "(data (i32.const 80) \"\\00\\d8\")",
    is_wide: true,
};

/// Plugin with most of the behaviour that only hand-written code can have.
pub(crate) const SHARP: Guest = Guest {
    name: "sharp",
    n_pages: 2,
    is_wide: false,
    more: r#"
        (table $grown 1 funcref)
        (elem declare func $spin)
        (global $mark (mut i32) (i32.const 0))
        (data (i32.const 80) "\ff\fe")
        (data (i32.const 84) "\ed\a0\80")
        (data (i32.const 88) "\f0\9f")
        (data (i32.const 96) "{\"a\":1,\"a\":2}")
        (func $deep (param i32)
            (if (local.get 0)
                (then (call $deep (i32.sub (local.get 0) (i32.const 1))))
                (else (call $good))))
        (func $scan (result i32) (local $at i32)
            (local.set $at (i32.const 131072))
            (loop $l
                (if (i64.ne (i64.load (local.get $at)) (i64.const 0)) (then (return (i32.const 1))))
                (local.set $at (i32.add (local.get $at) (i32.const 8)))
                (br_if $l (i32.lt_u (local.get $at) (i32.shl (memory.size) (i32.const 16)))))
            (i32.const 0))
    "#,
    rules: &[
        ("ok", "(call $good)"),
        (
            "fill",
            "(drop (memory.grow (i32.const 255)))
            (loop $l (memory.fill (i32.const 131072) (i32.const 1) (i32.const 16000000)) (br $l))",
        ),
        (
            "copy",
            "(drop (memory.grow (i32.const 255)))
            (loop $l (memory.copy (i32.const 131072) (i32.const 131080) (i32.const 16000000)) (br $l))",
        ),
        ("grow", "(call $hoard)"),
        (
            "grow-at-once",
            "(drop (memory.grow (i32.const 65000))) unreachable",
        ),
        (
            "grow-table",
            "(loop $l (br_if $l (i32.ne (table.grow $grown (ref.null func) (i32.const 1000)) (i32.const -1)))) unreachable",
        ),
        ("handles", "(loop $l (drop (call $stdout)) (br $l))"),
        ("forged", "(drop (call $subscribe (i32.const 12345)))"),
        (
            "wrong-kind",
            "(drop (call $subscribe (call $subscribe (call $stdout))))",
        ),
        (
            "drop-twice",
            "(local $h i32) (local.set $h (call $stdout))
            (call $drop-stream (local.get $h)) (call $drop-stream (local.get $h))",
        ),
        (
            "use-dropped",
            "(local $h i32) (local.set $h (call $stdout))
            (call $drop-stream (local.get $h)) (drop (call $subscribe (local.get $h)))",
        ),
        (
            "drop-parent",
            "(local $h i32) (local.set $h (call $stdout))
            (drop (call $subscribe (local.get $h))) (call $drop-stream (local.get $h))",
        ),
        ("deep", "(call $deep (i32.const 3000))"),
        (
            "spin-in-realloc",
            "(global.set $mode (i32.const 1)) (call $text (i32.const 2300))",
        ),
        (
            "far-realloc",
            "(global.set $mode (i32.const 2)) (call $text (i32.const 2300))",
        ),
        (
            "call-in-realloc",
            "(global.set $mode (i32.const 3)) (call $text (i32.const 2300))",
        ),
        (
            "odd-realloc",
            "(global.set $mode (i32.const 4)) (call $headers (i32.const 2300))",
        ),
        (
            "hoard-in-realloc",
            "(global.set $mode (i32.const 5)) (call $text (i32.const 2300))",
        ),
        (
            "trap-in-realloc",
            "(global.set $mode (i32.const 6)) (call $text (i32.const 2300))",
        ),
        ("spin-after", "(global.set $mode (i32.const 11))"),
        ("call-after", "(global.set $mode (i32.const 12))"),
        ("trap-after", "(global.set $mode (i32.const 13))"),
        (
            "bad-utf8",
            "(call $good) (call $log (i32.const 1) (i32.const 80) (i32.const 2))",
        ),
        (
            "surrogate",
            "(call $log (i32.const 1) (i32.const 84) (i32.const 3))",
        ),
        (
            "cut-utf8",
            "(call $log (i32.const 1) (i32.const 88) (i32.const 2))",
        ),
        (
            "long-list",
            "(call $follow (i32.const 0) (i32.const -1) (i32.const 2200))",
        ),
        (
            "long-text",
            "(call $emit (i32.const 0) (i32.const 0) (i32.const -1) (i32.const 2200))",
        ),
        (
            "far-text",
            "(call $log (i32.const 1) (i32.const 0xfffffff0) (i32.const 64))",
        ),
        (
            "odd-list",
            "(call $follow (i32.const 2305) (i32.const 1) (i32.const 2200))",
        ),
        (
            "far-place",
            "(call $emit (i32.const 0) (i32.const 64) (i32.const 2) (i32.const 0xfffffff8))",
        ),
        (
            "odd-place",
            "(call $emit (i32.const 0) (i32.const 64) (i32.const 2) (i32.const 2201))",
        ),
        ("far-answer", "(return (i32.const 0xfffffff8))"),
        ("odd-answer", "(return (i32.const 2049))"),
        (
            "bad-level",
            "(call $log (i32.const 4) (i32.const 64) (i32.const 2))",
        ),
        (
            "minus-level",
            "(call $log (i32.const -1) (i32.const 64) (i32.const 2))",
        ),
        ("bad-result", "(i32.store8 (i32.const 2048) (i32.const 2))"),
        (
            "bad-error",
            "(i32.store8 (i32.const 2048) (i32.const 1)) (i32.store8 (i32.const 2056) (i32.const 9))",
        ),
        (
            "bad-option",
            "(i32.store8 (i32.const 2048) (i32.const 1)) (i32.store8 (i32.const 2064) (i32.const 7))",
        ),
        (
            "shared-list",
            "(local $at i32) (drop (memory.grow (i32.const 20))) (local.set $at (i32.const 131072))
            (loop $l
                (i32.store (local.get $at) (i32.const 65536))
                (i32.store offset=4 (local.get $at) (i32.const 65536))
                (local.set $at (i32.add (local.get $at) (i32.const 64)))
                (br_if $l (i32.lt_u (local.get $at) (i32.const 771072))))
            (call $follow (i32.const 131072) (i32.const 10000) (i32.const 2200))",
        ),
        (
            "huge-item",
            "(drop (memory.grow (i32.const 1700)))
            (call $emit (i32.const 0) (i32.const 65536) (i32.const 104857600) (i32.const 2200))",
        ),
        (
            "mark",
            "(drop (memory.grow (i32.const 200)))
            (memory.fill (i32.const 131072) (i32.const 0xa5) (i32.const 13107200))
            (global.set $mark (i32.const 1))
            (drop (table.grow $grown (ref.func $spin) (i32.const 10000)))
            (table.set $grown (i32.const 0) (ref.func $spin))
            unreachable",
        ),
        (
            "look",
            "(drop (memory.grow (i32.const 200)))
            (if (call $scan) (then unreachable))
            (if (global.get $mark) (then unreachable))
            (drop (table.grow $grown (ref.null func) (i32.const 10000)))
            (if (i32.eqz (ref.is_null (table.get $grown (i32.const 0)))) (then unreachable))
            (if (i32.eqz (ref.is_null (table.get $grown (i32.const 9999)))) (then unreachable))
            (call $good)",
        ),
        (
            "leak",
            "(drop (memory.grow (i32.const 16)))
            (memory.fill (i32.const 131072) (i32.const 1) (i32.const 1048576)) (call $good)",
        ),
        (
            "same-key",
            "(call $emit (i32.const 0) (i32.const 96) (i32.const 13) (i32.const 2200))
            (if (i32.load8_u (i32.const 2200)) (then unreachable))",
        ),
        (
            "echo",
            "(call $text (i32.const 2300))
            (call $log (i32.const 1) (i32.load (i32.const 2300)) (i32.load (i32.const 2304)))
            (call $good)",
        ),
    ],
};
