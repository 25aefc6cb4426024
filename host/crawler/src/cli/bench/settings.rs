//! Settings of the crawl of a benchmark: those of any crawl, but without the bounds that protect a crawl from sites
//! without end, and without the ways to sites that are elsewhere.

use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};

use crate::bench;
use crate::cli::Failure;
use crate::cli::crawl::{CrawlArgs, option};
use crawler_model::resource::CrawlSettings;
use crawler_model::settings::{Kind, SETTINGS, Setting, Value};

/// Settings that have their largest value unless the user sets another.
const UNBOUNDED: [&str; 7] = [
    "max-depth",
    "max-pages",
    "max-bytes",
    "max-url-length",
    "max-segment-repeats",
    "max-pattern-urls",
    "max-disk",
];
/// Settings that have no meaning for a benchmark: they name an entry of the config file of workers, or files of a data
/// root, or are about earlier runs. A benchmark has none of these.
const WITHOUT_MEANING: [&str; 9] = [
    "proxy",
    "credentials",
    "sink",
    "archive",
    "archive-size",
    "changes",
    "drift",
    "revisit",
    "revisit-max",
];

/// Settings that are given.
#[derive(Debug)]
pub(super) struct SettingArgs(CrawlArgs);

impl SettingArgs {
    /// Returns the settings with bounds that no web reaches, where the user has set none. All hosts are in the scope.
    pub(super) fn settings(self) -> Result<CrawlSettings, Failure> {
        let mut settings = self.0.settings();
        for setting in SETTINGS {
            let is_given = setting.value(&settings).is_some();
            if is_given && WITHOUT_MEANING.contains(&setting.name) {
                return Err(Failure::new(
                    format!(
                        "--{} has no meaning for a benchmark, whose web is on this machine",
                        setting.name
                    ),
                    "leave it out",
                ));
            }
            if !is_given && UNBOUNDED.contains(&setting.name) {
                let set = setting.set(&mut settings, Value::Number(largest(setting)));
                set.expect("the largest value is in the range");
            }
        }
        let all = format!("*.{}", bench::DOMAIN);
        settings.scope.push(all.parse().expect("it is a pattern"));
        Ok(settings)
    }
}

impl Args for SettingArgs {
    fn augment_args(command: Command) -> Command {
        command.args(SETTINGS.iter().map(option_of_benchmark))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for SettingArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        CrawlArgs::from_arg_matches(matches).map(Self)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        self.0.update_from_arg_matches(matches)
    }
}

/// Returns the option of a setting, with the default that it has here. Settings that are refused are hidden.
fn option_of_benchmark(setting: &'static Setting) -> Arg {
    let default = match setting.name {
        name if WITHOUT_MEANING.contains(&name) => return option(setting).hide(true),
        // The web is in an allowed network.
        "delay" => "0s".to_owned(),
        name if UNBOUNDED.contains(&name) => match *setting.range.end() {
            u64::MAX => "no bound".to_owned(),
            most => most.to_string(),
        },
        _ => return option(setting),
    };
    option(setting).help(format!("{} [default: {default}]", setting.help))
}

/// Returns the largest value that a setting may have.
fn largest(setting: &Setting) -> u64 {
    let largest = *setting.range.end();
    match setting.kind {
        Kind::U32 => largest.min(u32::MAX.into()),
        Kind::U64 | Kind::Bytes | Kind::Time | Kind::Text | Kind::Texts | Kind::List => largest,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crawler_model::settings::HostPattern;

    /// Returns the settings that a line gives.
    fn parsed(line: &str) -> Result<CrawlSettings, Failure> {
        let command = SettingArgs::augment_args(Command::new("bench"));
        let words = std::iter::once("bench").chain(line.split_whitespace());
        let matches = command.try_get_matches_from(words).unwrap();
        SettingArgs::from_arg_matches(&matches).unwrap().settings()
    }

    #[test]
    fn only_bounds_that_are_given_bound_a_benchmark() {
        let settings = parsed("--max-depth=3 --scope=a.test").unwrap();
        settings.check().unwrap();
        assert_eq!(settings.max_depth(), 3);
        assert_eq!(settings.max_pages(), u64::MAX);
        assert_eq!(settings.max_bytes(), u64::MAX);
        assert_eq!(settings.max_url_length(), 8_192);
        assert_eq!(settings.max_segment_repeats(), u32::MAX);
        assert_eq!(settings.max_pattern_urls(), u64::MAX);
        assert_eq!(settings.max_disk(), u64::MAX);
        let scope = ["a.test", "*.bench.test"].map(|host| host.parse::<HostPattern>().unwrap());
        assert_eq!(settings.scope, scope);
    }

    #[test]
    fn help_tells_the_defaults_of_a_benchmark() {
        let help = |name: &str| {
            let setting = Setting::named(name).unwrap();
            let help = option_of_benchmark(setting).get_help().unwrap().to_string();
            help.replace(setting.help, "")
        };
        for name in UNBOUNDED.iter().filter(|name| **name != "max-url-length") {
            assert_eq!(help(name), " [default: no bound]", "{name}");
        }
        assert_eq!(help("max-url-length"), " [default: 8192]");
        assert_eq!(help("delay"), " [default: 0s]");
        assert_eq!(help("max-attempts"), " [default: 5]");
    }

    #[test]
    fn settings_without_a_meaning_for_a_benchmark_are_refused() {
        for (line, setting) in [
            ("--proxy=abroad", "--proxy"),
            ("--proxy=direct", "--proxy"),
            ("--credentials=shop", "--credentials"),
            ("--sink=db", "--sink"),
            ("--revisit=20h", "--revisit"),
            ("--revisit-max=30d", "--revisit-max"),
        ] {
            let refused = parsed(line).unwrap_err();
            let what =
                format!("{setting} has no meaning for a benchmark, whose web is on this machine");
            assert_eq!(refused.what, what);
        }
        let named = UNBOUNDED.iter().chain(&WITHOUT_MEANING);
        let unknown: Vec<_> = named
            .filter(|name| Setting::named(name).is_none())
            .collect();
        assert!(unknown.is_empty(), "{unknown:?}");
    }
}
