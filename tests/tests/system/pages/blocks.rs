//! Reads the fenced blocks of a Markdown page, and the commands in them.

/// Information word of a block whose commands a test types.
pub(crate) const RUN: &str = "console";
/// Information word of a block whose commands no test types, for a reason that a table gives.
pub(crate) const EXCUSED: &str = "console,ignore";

/// A fenced block of a page.
#[derive(Debug)]
pub(crate) struct Block {
    /// Words behind the opening fence.
    pub(crate) info: String,
    /// Lines between the fences.
    pub(crate) lines: Vec<String>,
}

/// A command of a page.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Command {
    /// Text behind the prompt, with the lines that continue it.
    pub(crate) typed: String,
    /// Lines that the page shows as its output.
    pub(crate) prints: Vec<String>,
}

/// Returns all fenced blocks, in their order.
pub(crate) fn blocks(page: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        if let Some(info) = line.strip_prefix("```") {
            blocks.push(Block {
                info: info.to_owned(),
                lines: lines
                    .by_ref()
                    .take_while(|line| *line != "```")
                    .map(str::to_owned)
                    .collect(),
            });
        }
    }
    blocks
}

impl Block {
    /// Returns the commands of a block of the console.
    #[track_caller]
    pub(crate) fn commands(&self) -> Vec<Command> {
        let mut commands: Vec<Command> = Vec::new();
        for line in &self.lines {
            match (line.strip_prefix("$ "), commands.last_mut()) {
                (Some(typed), _) => commands.push(Command {
                    typed: typed.to_owned(),
                    prints: Vec::new(),
                }),
                (None, Some(last)) if last.prints.is_empty() && last.typed.ends_with('\\') => {
                    last.typed.push('\n');
                    last.typed.push_str(line);
                }
                (None, Some(last)) => last.prints.push(line.clone()),
                (None, None) => panic!("a block of the console begins with an output: {line}"),
            }
        }
        commands
    }
}

#[test]
fn commands_are_read_with_the_lines_that_continue_them() {
    let page = "a\n```console\n$ a \\\n    b\nc\n$ d\n```\n```text\n$ e\n```\n";
    let blocks = blocks(page);
    let command = |typed: &str, prints: &[&str]| Command {
        typed: typed.to_owned(),
        prints: prints.iter().map(ToString::to_string).collect(),
    };
    assert_eq!(
        blocks[0].commands(),
        [command("a \\\n    b", &["c"]), command("d", &[])]
    );
    assert_eq!((blocks.len(), blocks[1].info.as_str()), (2, "text"));
}
