//! The Rust side of `plugin-sdk/wit/rules.wit`, generated.
//!
//! These types are used only within this crate: [`super::host_calls`] and [`super::instance`] convert them to
//! those of `model`.

wasmtime::component::bindgen!({
    path: "../../plugin-sdk/wit",
    world: "plugin",
    imports: {
        // These calls may read a long page, which is not done on a thread of the executor.
        "crawler:rules/page.extract": async | trappable,
        "crawler:rules/page.choose-links": async | trappable,
        "crawler:rules/output.follow-field": async | trappable,
        "crawler:rules/output.follow-captures": async | trappable,
        default: trappable,
    },
    exports: { default: async },
});
