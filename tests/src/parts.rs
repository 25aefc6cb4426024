//! Parts of a machine that tests, loops and benchmarks are skipped without, by the names that a skip prints and that
//! `TESTS_REQUIRE` demands. Pages of the documentation, whose commands need several programs and a network of their
//! own, have names too.

/// Parts that the tests of `tests/run` need. `.ci/run` demands all of them.
pub const OF_TESTS: [&str; 35] = [
    "axe",
    "by-hand",
    "cargo-deny",
    "chromium",
    "componentize-py",
    "componentize-qjs",
    "compose-spec",
    "confinement",
    "declarative",
    "duckdb",
    "etcd",
    "first-crawl",
    "grpcio",
    "helm",
    "many-machines",
    "mariadb",
    "moto",
    "nats",
    "node",
    "openssl",
    "parsel",
    "postgres",
    "prometheus",
    "protego",
    "python3",
    "python3-doc",
    "rustdoc",
    "schemathesis",
    "script",
    "systemd-analyze",
    "three-machines",
    "tmpfs",
    "tutorial",
    "typescript",
    "warcio",
];

/// Parts that `.ci/run` does not demand: those of loops and benchmarks, a network namespace, which only root may make,
/// an earlier version of the program, and a folder for the pictures of the book.
pub const OF_OTHERS: [&str; 11] = [
    "bare",
    "flood-in-full",
    "fuzz",
    "namespace",
    "nginx",
    "old-version",
    "peers",
    "pictures",
    "scrapy",
    "spider-peer",
    "taskset",
];
