//! WASI that answers nothing: the imports of the standard libraries of guest languages, and no more.
//!
//! A guest has no environment, no arguments and no files, and standard input is empty. Standard output and
//! error become log lines. The clocks stand at the time of the call's page, and random numbers follow from a
//! seed. Interfaces that are not on the list are never linked, so that nothing can reach sockets or HTTP
//! through WASI.

use wasmtime::component::{HasData, HasSelf, Linker, Resource, ResourceTable};
use wasmtime_wasi::cli::{WasiCli, WasiCliView as _};
use wasmtime_wasi::clocks::{WasiClocks, WasiClocksView as _};
use wasmtime_wasi::filesystem::{WasiFilesystem, WasiFilesystemView as _};
use wasmtime_wasi::p2::{DynPollable, bindings};
use wasmtime_wasi::random::{WasiRandom, WasiRandomView as _};
use wasmtime_wasi::{WasiCtxView, WasiView};

use super::fuel::PER_POLLED;
use super::state::CallState;

pub(super) mod context;

/// Interfaces that a plugin may import from WASI, at any 0.2 version.
pub(crate) const ALLOWED: [&str; 20] = [
    "wasi:cli/environment",
    "wasi:cli/exit",
    "wasi:cli/stderr",
    "wasi:cli/stdin",
    "wasi:cli/stdout",
    "wasi:cli/terminal-input",
    "wasi:cli/terminal-output",
    "wasi:cli/terminal-stderr",
    "wasi:cli/terminal-stdin",
    "wasi:cli/terminal-stdout",
    "wasi:clocks/monotonic-clock",
    "wasi:clocks/wall-clock",
    "wasi:filesystem/preopens",
    "wasi:filesystem/types",
    "wasi:io/error",
    "wasi:io/poll",
    "wasi:io/streams",
    "wasi:random/insecure",
    "wasi:random/insecure-seed",
    "wasi:random/random",
];

/// Links every interface of [`ALLOWED`].
pub(crate) fn link(linker: &mut Linker<CallState>) -> wasmtime::Result<()> {
    use bindings::{cli, clocks, filesystem, random};
    type State = CallState;

    bindings::io::error::add_to_linker::<State, HasIo>(linker, table)?;
    bindings::io::poll::add_to_linker::<State, HasSelf<State>>(linker, |state| state)?;
    bindings::io::streams::add_to_linker::<State, HasIo>(linker, table)?;
    clocks::wall_clock::add_to_linker::<State, WasiClocks>(linker, State::clocks)?;
    clocks::monotonic_clock::add_to_linker::<State, WasiClocks>(linker, State::clocks)?;
    filesystem::types::add_to_linker::<State, WasiFilesystem>(linker, State::filesystem)?;
    filesystem::preopens::add_to_linker::<State, WasiFilesystem>(linker, State::filesystem)?;
    random::random::add_to_linker::<State, WasiRandom>(linker, State::random)?;
    random::insecure::add_to_linker::<State, WasiRandom>(linker, State::random)?;
    random::insecure_seed::add_to_linker::<State, WasiRandom>(linker, State::random)?;
    cli::exit::add_to_linker::<State, WasiCli>(linker, State::cli)?;
    cli::environment::add_to_linker::<State, WasiCli>(linker, State::cli)?;
    cli::stdin::add_to_linker::<State, WasiCli>(linker, State::cli)?;
    cli::stdout::add_to_linker::<State, WasiCli>(linker, State::cli)?;
    cli::stderr::add_to_linker::<State, WasiCli>(linker, State::cli)?;
    cli::terminal_input::add_to_linker::<State, WasiCli>(linker, State::cli)?;
    cli::terminal_output::add_to_linker::<State, WasiCli>(linker, State::cli)?;
    cli::terminal_stdin::add_to_linker::<State, WasiCli>(linker, State::cli)?;
    cli::terminal_stdout::add_to_linker::<State, WasiCli>(linker, State::cli)?;
    cli::terminal_stderr::add_to_linker::<State, WasiCli>(linker, State::cli)?;
    Ok(())
}

struct HasIo;

impl HasData for HasIo {
    type Data<'a> = &'a mut ResourceTable;
}

fn table(state: &mut CallState) -> &mut ResourceTable {
    &mut state.table
}

/// The table does the waiting; polling each entry of a list is work, and charged.
impl bindings::io::poll::Host for CallState {
    async fn poll(&mut self, list: Vec<Resource<DynPollable>>) -> wasmtime::Result<Vec<u32>> {
        self.meter.charge(PER_POLLED * list.len() as u64);
        self.charge(0)?;
        bindings::io::poll::Host::poll(&mut self.table, list).await
    }
}

impl bindings::io::poll::HostPollable for CallState {
    async fn ready(&mut self, pollable: Resource<DynPollable>) -> wasmtime::Result<bool> {
        self.charge(0)?;
        bindings::io::poll::HostPollable::ready(&mut self.table, pollable).await
    }

    async fn block(&mut self, pollable: Resource<DynPollable>) -> wasmtime::Result<()> {
        self.charge(0)?;
        bindings::io::poll::HostPollable::block(&mut self.table, pollable).await
    }

    fn drop(&mut self, pollable: Resource<DynPollable>) -> wasmtime::Result<()> {
        bindings::io::poll::HostPollable::drop(&mut self.table, pollable)
    }
}

impl WasiView for CallState {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView {
            ctx: &mut self.wasi,
            table: &mut self.table,
        }
    }
}
