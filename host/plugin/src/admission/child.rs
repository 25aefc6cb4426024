//! Compiles in a process of its own, so that a plugin that is made to exhaust the compiler exhausts only that
//! process.
//!
//! The parent writes the component to the child's standard input and reads one frame from its standard
//! output. The child limits itself before it reads: the kernel ends a child that takes too much memory or
//! processor time, and the parent ends one that takes too long on the clock. The parent always reaps the
//! child. The child gives up files, sockets and other processes as well ([`confine::compiler`]).

use std::ffi::OsString;
use std::io::{Read as _, Write as _};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, ExitStatus, Stdio};
use std::sync::{Arc, Once};
use std::time::Duration;

use bytes::Bytes;
use rustix::process::{Resource, Rlimit, Signal, setrlimit};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, Command};
use wasmtime::component::{Component, Linker};

use super::{Outcome, Refusal, checks, describe, frame};
use crate::bindings::PluginPre;
use crate::engine::{EngineSettings, MemoryMode, Ticker, setup};
use crate::host_calls::{self, CallKind};
use crate::instance::{self, Call};
use crate::{CallConfig, PluginError};
use crawler_model::guest_text::GuestText;
use crawler_model::id::Digest;
use crawler_model::plugin::Limits;
use crawler_process::confine::{self, Confinement, MissingPart};
use crawler_process::memory::Account;

/// The hidden command of the `crawler` program.
const COMMAND: &str = "__compile";
/// Largest size of a frame in bytes: machine code is two to five times the size of a component.
const FRAME_MAX: u64 = 512 << 20;
/// Messages of a process that got no more memory, for its heap, a mapping or a thread.
const OUT_OF_MEMORY: [&str; 3] = [
    "memory allocation of",
    "Cannot allocate memory",
    "Resource temporarily unavailable",
];
/// Messages of a process whose confinement denied something.
const DENIED: [&str; 2] = ["Operation not permitted", "Permission denied"];
/// Bytes of the child's standard error that are kept.
const STDERR_MAX: u64 = 8 << 10;

/// Has a component compiled and described, and returns the frame.
pub(crate) async fn compile(
    settings: &EngineSettings,
    memory_mode: MemoryMode,
    component: Bytes,
) -> Result<Bytes, PluginError> {
    let program = match &settings.child_program {
        Some(program) => program.clone(),
        None => own_program()?,
    };
    let mut child = start(&program, settings, memory_mode)?;
    let said = tokio::time::timeout(settings.compile_time, talk(&mut child, &component)).await;
    let Ok(said) = said else {
        child
            .kill()
            .await
            .map_err(host("end the compiling process"))?;
        return Err(too_long(settings).into());
    };
    let (status, output, complaints) = said.map_err(host("talk to the compiling process"))?;
    if status.success() {
        note_missing(&complaints);
        return Ok(Bytes::from(output));
    }
    Err(failure(settings, status, &complaints))
}

/// Logs once which parts of the confinement this system lacks: a child that succeeds writes about nothing
/// else.
fn note_missing(complaints: &str) {
    static NOTED: Once = Once::new();
    if !complaints.is_empty() {
        NOTED.call_once(|| {
            tracing::warn!(
                missing = complaints,
                "this system lacks a part of the confinement of compiling processes"
            );
        });
    }
}

/// Returns the program of the crawler, which is started for further processes: this one, or the one beside it.
pub fn own_program() -> Result<PathBuf, PluginError> {
    let own = std::env::current_exe().map_err(host("find the program of the crawler"))?;
    if own.file_stem().is_some_and(|name| name == "crawler") {
        return Ok(own);
    }
    // Tests and benches of cargo are one folder below the programs.
    let folders = own.ancestors().skip(1).take(2);
    let name = format!("crawler{}", std::env::consts::EXE_SUFFIX);
    folders
        .map(|folder| folder.join(&name))
        .find(|program| program.is_file())
        .ok_or_else(|| PluginError::Host {
            doing: "find the program of the crawler",
            why: format!("there is no {name} beside {}", own.display()),
        })
}

fn start(
    program: &Path,
    settings: &EngineSettings,
    memory_mode: MemoryMode,
) -> Result<Child, PluginError> {
    Command::new(program)
        .arg(COMMAND)
        .arg(memory_mode.as_str())
        .arg(settings.compile_memory.to_string())
        .arg(settings.compile_time.as_secs().max(1).to_string())
        .arg(settings.confinement.to_string())
        .env_clear()
        // The child cannot read its cgroup's share of the processors any more.
        .env("RAYON_NUM_THREADS", n_processors().to_string())
        // Its memory is limited by what it has mapped, so the allocator unmaps freed pages at once.
        .env("_RJEM_MALLOC_CONF", "retain:false,dirty_decay_ms:0")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .map_err(|e| PluginError::Host {
            doing: "start the compiling process",
            why: format!("{}: {e}", program.display()),
        })
}

fn n_processors() -> usize {
    std::thread::available_parallelism().map_or(1, NonZeroUsize::get)
}

async fn talk(
    child: &mut Child,
    component: &[u8],
) -> std::io::Result<(ExitStatus, Vec<u8>, GuestText)> {
    let missing = || std::io::Error::other("a pipe is missing");
    let mut stdin = child.stdin.take().ok_or_else(missing)?;
    let mut stdout = child.stdout.take().ok_or_else(missing)?;
    let mut stderr = child.stderr.take().ok_or_else(missing)?;
    let ask = async move {
        // A child that died early closes the pipe; its exit status tells more than the broken pipe.
        let _broken_pipe = stdin.write_all(component).await;
    };
    let answer = async {
        let mut output = Vec::new();
        (&mut stdout)
            .take(FRAME_MAX)
            .read_to_end(&mut output)
            .await?;
        drop(stdout);
        std::io::Result::Ok(output)
    };
    let complain = async {
        let mut complaints = Vec::new();
        (&mut stderr)
            .take(STDERR_MAX)
            .read_to_end(&mut complaints)
            .await?;
        tokio::io::copy(&mut stderr, &mut tokio::io::sink()).await?;
        std::io::Result::Ok(complaints)
    };
    let ((), output, complaints) = tokio::join!(ask, answer, complain);
    let status = child.wait().await?;
    let complaints = GuestText::of(String::from_utf8_lossy(&complaints?).trim());
    Ok((status, output?, complaints))
}

/// Way out that helps in most cases.
const SMALLER: &str = "make it smaller: fewer dependencies, release mode, no embedded data";

fn failure(settings: &EngineSettings, status: ExitStatus, complaints: &str) -> PluginError {
    use std::os::unix::process::ExitStatusExt as _;
    let signal = status.signal();
    let is = |s: Signal| signal == Some(s.as_raw());
    if is(Signal::XCPU) || is(Signal::KILL) {
        return too_long(settings).into();
    }
    if OUT_OF_MEMORY.iter().any(|words| complaints.contains(words)) {
        return Refusal {
            found: GuestText::of(format_args!(
                "compiling it needs more than {} MiB of memory",
                settings.compile_memory >> 20
            )),
            allowed: "a plugin of usual size needs 50 to 400 MiB".into(),
            remedy: format!("{SMALLER}; or raise --compile-memory"),
        }
        .into();
    }
    let hint = match DENIED.iter().any(|words| complaints.contains(words)) {
        true => "; if --confinement off makes a difference, its confinement is the reason",
        false => "",
    };
    PluginError::Host {
        doing: "compile the plugin",
        why: format!("the compiling process ended with {status}: {complaints}{hint}"),
    }
}

fn too_long(settings: &EngineSettings) -> Refusal {
    Refusal {
        found: GuestText::of(format_args!(
            "compiling it takes longer than {}",
            humantime::format_duration(settings.compile_time)
        )),
        allowed: "a plugin of usual size takes 0.3 to 20 seconds".into(),
        remedy: format!("{SMALLER}; or raise --compile-time"),
    }
}

fn host(doing: &'static str) -> impl FnOnce(std::io::Error) -> PluginError {
    move |e| PluginError::Host {
        doing,
        why: e.to_string(),
    }
}

/// Runs `crawler __compile MEMORIES BYTES SECONDS CONFINEMENT`: reads a component from standard input, and
/// writes a frame to standard output. It is for the parent only; the form of both may change.
#[expect(
    clippy::print_stderr,
    reason = "standard error is where the parent reads why the child failed"
)]
pub fn child_main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    match serve(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

fn serve(args: impl IntoIterator<Item = OsString>) -> wasmtime::Result<()> {
    let args: Vec<String> = args
        .into_iter()
        .map(|arg| arg.to_string_lossy().into_owned())
        .collect();
    let usage =
        || wasmtime::Error::msg("usage: crawler __compile reserved|moving BYTES SECONDS on|off");
    let [memory_mode, n_bytes, n_seconds, confinement] = args.as_slice() else {
        return Err(usage());
    };
    let memory_mode = MemoryMode::ALL
        .into_iter()
        .find(|m| m.as_str() == memory_mode)
        .ok_or_else(usage)?;
    limit(Resource::Data, n_bytes.parse()?)?;
    limit(Resource::Cpu, n_seconds.parse()?)?;
    limit(Resource::Core, 0)?;
    let confinement: Confinement = confinement.parse().map_err(wasmtime::Error::msg)?;
    if confinement == Confinement::On {
        note(&confine::compiler());
    }

    let mut component = Vec::new();
    std::io::stdin().lock().read_to_end(&mut component)?;
    let frame = match compile_here(memory_mode, &component)? {
        Ok((description, image)) => frame(&Outcome::Compiled(description), &image)?,
        Err(refusal) => frame(&Outcome::Refused(refusal), &[])?,
    };
    std::io::stdout().lock().write_all(&frame)?;
    Ok(())
}

/// Writes the missing parts to standard error for the parent, which has a log.
#[expect(
    clippy::print_stderr,
    reason = "standard error is where the parent reads what the child lacks"
)]
fn note(missing: &[MissingPart]) {
    for missing in missing {
        eprintln!("{missing}");
    }
}

fn limit(resource: Resource, value: u64) -> wasmtime::Result<()> {
    setrlimit(
        resource,
        Rlimit {
            current: Some(value),
            maximum: Some(value),
        },
    )?;
    Ok(())
}

type Described = Result<(crawler_model::plugin::Description, Vec<u8>), Refusal>;

fn compile_here(memory_mode: MemoryMode, bytes: &[u8]) -> wasmtime::Result<Described> {
    let mut config = setup::config(memory_mode);
    if memory_mode == MemoryMode::Reserved {
        // A component that the worker's pool cannot hold is then refused here, with a reason.
        config.allocation_strategy(setup::pool(1, describe_limits().memory));
    }
    let engine = wasmtime::Engine::new(&config)?;
    let unfit = |error: wasmtime::Error| Refusal {
        found: GuestText::of(format_args!("the component cannot be used: {error:#}")),
        allowed: "a plugin imports and exports crawler:rules as plugin-sdk/wit/rules.wit has it"
            .into(),
        remedy: "build it with the plugin SDK".to_owned(),
    };
    let component = match Component::from_binary(&engine, bytes) {
        Ok(component) => component,
        Err(error) => return Ok(Err(unfit(error))),
    };
    let mut linker = Linker::new(&engine);
    host_calls::link(&mut linker)?;
    let plugin = match linker.instantiate_pre(&component).and_then(PluginPre::new) {
        Ok(plugin) => plugin,
        Err(error) => return Ok(Err(unfit(error))),
    };
    let call = Call {
        kind: CallKind::Describe,
        description: None,
        plans: Arc::default(),
        schemas: Arc::default(),
        config: CallConfig {
            params: Arc::default(),
            limits: describe_limits(),
            account: Account::default(),
        },
        now: 0,
        seed: *Digest::of(bytes).as_bytes(),
    };
    let _ticker = Ticker::start(&engine).map_err(|e| wasmtime::Error::msg(e.to_string()))?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()?;
    let said = match runtime.block_on(instance::describe(&plugin, call)) {
        Ok(said) => said,
        Err((kill, cause)) => {
            return Ok(Err(Refusal {
                found: GuestText::of(format_args!("describe was ended ({kill}): {cause}")),
                allowed: "describe returns at once, and calls neither page nor output".into(),
                remedy: "return constants from it".to_owned(),
            }));
        }
    };
    // The parent has checked it.
    let interface = checks::interface(bytes).map_err(|e| wasmtime::Error::msg(e.to_string()))?;
    match describe::checked(said, &interface) {
        Ok(description) => Ok(Ok((description, component.serialize()?))),
        Err(refusal) => Ok(Err(refusal)),
    }
}

/// Returns limits that suffice for an interpreter to start; none of them is a setting.
fn describe_limits() -> Limits {
    Limits {
        fuel: 100_000_000,
        cpu: Duration::from_secs(1),
        timeout: Duration::from_secs(5),
        memory: 256 << 20,
        log_lines: 1,
        ..Limits::default()
    }
}
