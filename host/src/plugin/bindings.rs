//! The Rust side of `plugin-sdk/wit/rules.wit`, generated.
//!
//! Nothing outside `plugin` sees these types: [`super::host_calls`] and [`super::instance`] turn
//! them into those of `model`.

wasmtime::component::bindgen!({
    path: "../plugin-sdk/wit",
    world: "plugin",
    imports: {
        // These may read a long page, which is not done on a thread of the executor.
        "crawler:rules/page.extract": async | trappable,
        "crawler:rules/output.follow-field": async | trappable,
        "crawler:rules/output.follow-captures": async | trappable,
        default: trappable,
    },
    exports: { default: async },
});
