//! Every stage of a page alone, on the same page of a made-up web: how long it takes, and how many instructions.
//!
//! ```text
//! cargo bench -p crawler --bench stages                 all stages, timed
//! cargo bench -p crawler --bench stages -- extract      those whose name has this
//! tests/run bench check                                 instructions of each, compared with the committed ones
//! ```
//!
//! The program has two more commands, for `tests/run bench check`: `list` prints the names of the stages, each with a
//! number of repetitions, and `count STAGE N FOLDER` does a stage N times and nothing else. The folder is for compiled
//! plugins, which stay there, and for files that are removed. So the difference between N and 2 N repetitions has
//! nothing of the start of the process.
//!
//! All input follows from constants and seeds, and the work runs on as few threads as possible. Where time matters to a
//! stage, it is that of a paused clock.

use std::path::Path;
use std::process::ExitCode;

use crawler_process::stage::Stage;
use criterion::Criterion;

#[path = "../tests/engine/guests.rs"]
#[expect(
    dead_code,
    reason = "shared with the tests of the engine, which need more"
)]
mod guests;
#[path = "stages/keeping.rs"]
mod keeping;
#[path = "stages/reaching.rs"]
mod reaching;
#[path = "stages/reading.rs"]
mod reading;
#[path = "stages/sample.rs"]
mod sample;
#[path = "frontier/work.rs"]
#[expect(
    dead_code,
    reason = "shared with the benchmark of the frontier, which needs more"
)]
mod work;

/// A stage, ready to be repeated: each call does it for one page.
type Repeated = Box<dyn FnMut()>;

/// Repetitions of a stage: their number, and what each of them does.
struct Repetition {
    /// Number of repetitions that are counted. It is so large that nothing else in the process makes a difference of
    /// one percent.
    n: u32,
    /// Prepares the stage. The folder is there until the end.
    prepare: fn(&Path) -> Repeated,
}

fn repetition(stage: Stage) -> Repetition {
    match stage {
        Stage::Guard => Repetition::new(500, reaching::guard),
        Stage::Fetch => Repetition::new(100, reaching::fetch),
        Stage::Decode => Repetition::new(500, reaching::decode),
        Stage::Extract => Repetition::new(200, reading::extract),
        Stage::Instance => Repetition::new(400, reading::instance),
        Stage::Guest => Repetition::new(100, reading::guest),
        Stage::Seen => Repetition::new(500, keeping::seen),
        Stage::Commit => Repetition::new(1_024, keeping::commit),
        Stage::Sink => Repetition::new(200, keeping::sink),
    }
}

impl Repetition {
    fn new(n: u32, prepare: fn(&Path) -> Repeated) -> Self {
        Self { n, prepare }
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        ["list"] => list(),
        ["count", stage, n, folder] => {
            let stage = Stage::ALL
                .into_iter()
                .find(|known| known.as_str() == *stage);
            count(
                stage.expect("the stage is one of the list"),
                n.parse().expect("a number of repetitions"),
                Path::new(folder),
            );
        }
        // `cargo test --all-targets` runs this program as well.
        others if others.contains(&"--bench") => time(),
        _ => {}
    }
    ExitCode::SUCCESS
}

#[expect(clippy::print_stdout, reason = "another program reads it")]
fn list() {
    for stage in Stage::ALL {
        println!("{} {}", stage.as_str(), repetition(stage).n);
    }
}

fn count(stage: Stage, n: u32, folder: &Path) {
    let mut once = (repetition(stage).prepare)(folder);
    for _ in 0..n {
        once();
    }
}

fn time() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let mut criterion = Criterion::default().configure_from_args();
    for stage in Stage::ALL {
        // Stages that the command line leaves out are not prepared.
        let mut once = None;
        criterion.bench_function(stage.as_str(), |bencher| {
            let once = once.get_or_insert_with(|| (repetition(stage).prepare)(folder.path()));
            bencher.iter(once);
        });
    }
    criterion.final_summary();
}
