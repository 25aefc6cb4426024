//! The options of every command about its log: form and file.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::args::size;
use crawler_process::telemetry::{FileSettings, Settings};

#[derive(Debug, Args)]
pub(super) struct LogArgs {
    /// Form of the log: text for people, or json for one flat object a line [default: CRAWLER_LOG_FORMAT, or text]
    #[arg(long, global = true, value_name = "FORM", value_parser = ["text", "json"], help_heading = "Global options")]
    log_format: Option<String>,
    /// Write the log to this file, in a folder that exists, and not to stderr; older files are FILE.1, FILE.2 and so on
    #[arg(
        long,
        global = true,
        value_name = "FILE",
        help_heading = "Global options"
    )]
    log_file: Option<PathBuf>,
    /// Bytes of a file of the log; the next one begins then
    #[arg(long, global = true, value_name = "SIZE", default_value = "64MiB", value_parser = size, help_heading = "Global options")]
    log_file_size: u64,
    /// Age of a file of the log at which the next one begins
    #[arg(long, global = true, value_name = "TIME", default_value = "24h", value_parser = age, help_heading = "Global options")]
    log_file_age: Duration,
    /// Files of the log that are kept, with the one that is written
    #[arg(long, global = true, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(2..=1_000), help_heading = "Global options")]
    log_files: u32,
}

impl LogArgs {
    /// Puts the options into the settings that the environment gives.
    pub(super) fn add_to(&self, log: &mut Settings) {
        if let Some(format) = &self.log_format {
            log.format = Some(format.clone());
        }
        log.file = self.log_file.clone().map(|path| FileSettings {
            path,
            size: self.log_file_size,
            age: self.log_file_age,
            files: self.log_files,
        });
    }
}

/// Parses an age.
fn age(text: &str) -> Result<Duration, String> {
    let age = humantime::parse_duration(text).ok();
    let age = age.filter(|age| !age.is_zero());
    age.ok_or_else(|| "write a time like 30m or 24h".to_owned())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        log: LogArgs,
    }

    fn parse(line: &str) -> Result<Settings, String> {
        let line = std::iter::once("crawler").chain(line.split_whitespace());
        let parsed = Line::try_parse_from(line).map_err(|error| error.to_string())?;
        let mut log = Settings {
            format: Some("json".to_owned()),
            ..Settings::default()
        };
        parsed.log.add_to(&mut log);
        Ok(log)
    }

    #[test]
    fn options_win_over_the_environment_and_have_defaults() {
        let log = parse("").unwrap();
        assert_eq!((log.format.as_deref(), log.file), (Some("json"), None));
        let log = parse("--log-format text --log-file a.log").unwrap();
        assert_eq!(log.format.as_deref(), Some("text"));
        let expected = FileSettings {
            path: "a.log".into(),
            size: 64 << 20,
            age: Duration::from_secs(24 * 60 * 60),
            files: 8,
        };
        assert_eq!(log.file, Some(expected));
        let log = parse("--log-file a --log-file-size 1MiB --log-file-age 1h --log-files 2");
        let file = log.unwrap().file.unwrap();
        assert_eq!(
            (file.size, file.age.as_secs(), file.files),
            (1 << 20, 3_600, 2)
        );
    }

    #[test]
    fn values_that_cannot_be_meant_are_refused() {
        for (line, why) in [
            ("--log-format xml", "[possible values: text, json]"),
            ("--log-file-size 0", "write a size like 64MiB or 4096"),
            ("--log-file-age 0s", "write a time like 30m or 24h"),
            ("--log-file-age 5", "write a time like 30m or 24h"),
            ("--log-files 1", "1 is not in 2..=1000"),
        ] {
            let refused = parse(line).unwrap_err();
            assert!(refused.contains(why), "{line}: {refused}");
        }
    }
}
