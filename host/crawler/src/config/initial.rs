//! The config file that `crawler init` writes: the example, each key of it behind a `#`, so that the file changes
//! nothing.

/// Example of a config file, whose keys and defaults come from the tables of settings.
pub(super) const EXAMPLE: &str = include_str!("example.toml");

/// First lines of the file.
const HEAD: &str = "\
# Nothing here changes a default yet. To set a key, take away the # before it, and before the [table] above it;
# `crawler config check` tells whether the file is right, and `crawler config show` what holds then.
#
";

/// Returns the text of a config file with all keys, none of which is set.
pub fn initial_file() -> String {
    let lines = EXAMPLE.lines().map(|line| match line {
        "" => "\n".to_owned(),
        line if line.starts_with('#') => format!("{line}\n"),
        line => format!("#{line}\n"),
    });
    std::iter::once(HEAD.to_owned()).chain(lines).collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::FileConfig;
    use super::super::file::Reading;
    use super::*;

    fn read(text: &str) -> FileConfig {
        let reading = Reading::of(text, Path::new("crawler.toml"));
        assert!(reading.faults.is_empty(), "{:?}", reading.faults);
        reading.config
    }

    #[test]
    fn the_initial_file_sets_nothing_and_shows_every_key() {
        let initial = initial_file();
        assert_eq!(read(&initial), FileConfig::default());
        let set = initial.lines().map(|line| match line.strip_prefix('#') {
            Some(key) if !key.is_empty() && !key.starts_with(' ') => key,
            _ => line,
        });
        let set: String = set.flat_map(|line| [line, "\n"]).collect();
        assert_eq!(read(&set), read(EXAMPLE));
    }
}
