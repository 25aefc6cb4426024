//! `crawler completions` and `crawler man`: files for the shell of a user, made from the definition of the
//! command line.

use std::path::PathBuf;

use anyhow::Context as _;
use clap::{Args, CommandFactory as _};
use clap_complete::Shell;

use super::table;

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  crawler completions bash > ~/.local/share/bash-completion/completions/crawler\n  crawler completions zsh > ~/.zfunc/_crawler\n  crawler completions fish > ~/.config/fish/completions/crawler.fish"
)]
pub(super) struct CompletionsArgs {
    /// The shell
    shell: Shell,
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
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut super::Args::command(), "crawler", &mut script);
    script
}

/// Writes a manual page for the program and each of its commands.
pub(super) fn man(args: &ManArgs) -> anyhow::Result<()> {
    let folder = args.folder.display();
    let written = std::fs::create_dir_all(&args.folder)
        .and_then(|()| clap_mangen::generate_to(super::Args::command(), &args.folder));
    written.with_context(|| format!("cannot write to {folder}"))?;
    table::print_line(&format!("manual pages written to {folder}"))?;
    Ok(())
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
        man(&ManArgs {
            folder: folder.clone(),
        })
        .unwrap();
        let page = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
        assert!(page("crawler.1").contains("crawler\\-resource(1)"));
        let add = page("crawler-resource-add.1");
        assert!(add.contains("\\-\\-max\\-pages"), "{add}");
        assert!(add.contains("Examples:"), "{add}");
        assert!(!folder.join("crawler-help.1").exists());
        assert!(!page("crawler.1").contains("crawler\\-help"));
    }
}
