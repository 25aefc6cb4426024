//! `crawler completions` and `crawler man`: files for the shell of a user, made from the definition of the
//! command line.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::{Args, CommandFactory as _, ValueEnum};

use super::table;

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  crawler completions bash > ~/.local/share/bash-completion/completions/crawler\n  crawler completions zsh > ~/.zfunc/_crawler\n  crawler completions fish > ~/.config/fish/completions/crawler.fish"
)]
pub(super) struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

/// Shell that completes what is typed.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Shell {
    Bash,
    Zsh,
    Fish,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  crawler man ~/.local/share/man/man1 && man crawler-resource-add"
)]
pub(super) struct ManArgs {
    /// The folder for the pages; it is made if it is not there
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

/// Prints the completions for a shell.
pub(super) fn completions(args: &CompletionsArgs) -> anyhow::Result<()> {
    table::print_text(&script(args.shell))?;
    Ok(())
}

fn script(shell: Shell) -> Vec<u8> {
    let shell = match shell {
        Shell::Bash => clap_complete::Shell::Bash,
        Shell::Zsh => clap_complete::Shell::Zsh,
        Shell::Fish => clap_complete::Shell::Fish,
    };
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut super::Args::command(), "crawler", &mut script);
    script
}

/// Writes a manual page for the program and each of its commands.
pub(super) fn man(args: &ManArgs) -> anyhow::Result<()> {
    let n = write_pages(&args.folder)?;
    table::print_line(&format!("{n} pages written to {}", args.folder.display()))?;
    Ok(())
}

fn write_pages(folder: &Path) -> anyhow::Result<usize> {
    let cannot_write = || format!("cannot write to {}", folder.display());
    std::fs::create_dir_all(folder).with_context(cannot_write)?;
    let mut program = super::Args::command();
    program.build();
    let mut n = 0;
    let mut left = vec![program];
    while let Some(command) = left.pop() {
        let shown = command
            .get_subcommands()
            .filter(|below| !below.is_hide_set() && below.get_name() != "help");
        left.extend(shown.cloned());
        let page = clap_mangen::Man::new(command);
        let mut text = Vec::new();
        page.render(&mut text)?;
        std::fs::write(folder.join(page.get_filename()), text).with_context(cannot_write)?;
        n += 1;
    }
    Ok(n)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn completions_know_the_commands_and_their_options() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            let script = String::from_utf8(script(shell)).unwrap();
            for word in ["frontier", "max-pages", "completions"] {
                assert!(script.contains(word), "{shell:?}: {word}");
            }
        }
    }

    #[test]
    fn each_command_has_a_manual_page() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("man1");
        let n = write_pages(&folder).unwrap();
        assert_eq!(
            std::fs::read_dir(&folder).unwrap().count(),
            n,
            "no name twice"
        );
        let page = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
        assert!(page("crawler.1").contains("crawler\\-resource(1)"));
        let add = page("crawler-resource-add.1");
        assert!(add.contains("\\-\\-max\\-pages"), "{add}");
        assert!(add.contains("Examples:"), "{add}");
        assert!(!folder.join("crawler-help.1").exists());
    }
}
