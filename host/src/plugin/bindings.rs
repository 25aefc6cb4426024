//! The Rust side of `plugin-sdk/wit/rules.wit`, generated.
//!
//! Nothing outside `plugin` sees these types: [`super::host_calls`] and [`super::instance`] turn
//! them into those of `model`.

wasmtime::component::bindgen!({
    path: "../plugin-sdk/wit",
    world: "plugin",
    imports: { default: trappable },
    exports: { default: async },
});
