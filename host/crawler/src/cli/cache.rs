//! Options of the HTTP cache for development: answers of sites that later runs get without asking again.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::args::size;
use crate::config::Environment;
use crawler_fetch::cache::CacheSettings;

#[derive(Debug, Args)]
pub(super) struct CacheArgs {
    /// For development: keep the answers of sites in this folder, and take those that are there instead of asking again
    /// [default folder: http-cache in ~/.cache/crawler]
    #[arg(long, value_name = "DIR", num_args = 0..=1, require_equals = true)]
    cache: Option<Option<PathBuf>>,
    /// Age from which an answer of --cache is asked for again, like 1d [default: none]
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration, requires = "cache")]
    cache_age: Option<Duration>,
    /// Bytes of all answers of --cache; those used least recently go
    #[arg(long, value_name = "SIZE", default_value = "1GiB", value_parser = size, requires = "cache")]
    cache_size: u64,
}

impl CacheArgs {
    /// True if there is to be a cache.
    pub(super) fn is_given(&self) -> bool {
        self.cache.is_some()
    }

    /// Returns the settings of the cache, if there is to be one.
    pub(super) fn into_settings(self, environment: &Environment) -> Option<CacheSettings> {
        let folder = self.cache?;
        Some(CacheSettings {
            folder: folder.unwrap_or_else(|| environment.http_cache_folder()),
            max_age: self.cache_age,
            max_bytes: self.cache_size,
        })
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        /// An argument that is not the folder.
        plugin: String,
        #[command(flatten)]
        cache: CacheArgs,
    }

    fn parsed(args: &[&str]) -> Result<Option<CacheSettings>, String> {
        let line = Line::try_parse_from(["run"].iter().chain(args));
        let line = line.map_err(|error| error.to_string())?;
        assert_eq!(line.plugin, "books");
        let environment = Environment {
            cache_home: Some("/home/ann/.cache".into()),
            ..Environment::default()
        };
        Ok(line.cache.into_settings(&environment))
    }

    fn settings(folder: &str) -> CacheSettings {
        CacheSettings {
            folder: folder.into(),
            max_age: None,
            max_bytes: 1 << 30,
        }
    }

    #[test]
    fn a_cache_is_used_only_if_it_is_asked_for() {
        let usual = settings("/home/ann/.cache/crawler/http-cache");
        for (args, expected) in [
            (&["books"][..], None),
            (&["--cache", "books"], Some(usual)),
            (&["--cache=here", "books"], Some(settings("here"))),
        ] {
            assert_eq!(parsed(args).unwrap(), expected, "{args:?}");
        }
        let args = ["books", "--cache", "--cache-age=1d", "--cache-size=2MiB"];
        let bounded = parsed(&args).unwrap().unwrap();
        let day = Duration::from_secs(24 * 60 * 60);
        assert_eq!((bounded.max_age, bounded.max_bytes), (Some(day), 2 << 20));
    }

    #[test]
    fn what_makes_no_sense_is_refused_by_the_name_of_the_option() {
        for (args, option) in [
            (&["books", "--cache-age=1d"][..], "--cache"),
            (&["books", "--cache-size=2MiB"], "--cache"),
            (&["books", "--cache="], "--cache"),
            (&["books", "--cache", "--cache-age=long"], "--cache-age"),
            (&["books", "--cache", "--cache-size=0"], "--cache-size"),
            (&["books", "--cache", "--cache-size=many"], "--cache-size"),
        ] {
            let error = parsed(args).unwrap_err();
            assert!(error.contains(option), "{error}");
        }
    }
}
