//! The variables of the environment that the program reads.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crawler_process::telemetry::Colors;

/// Variables that the program knows.
#[derive(Debug, Clone, Default)]
pub struct Environment {
    /// `CRAWLER_MASTER`: URL that client commands call, or several, separated by commas.
    pub master: Option<String>,
    /// `CRAWLER_BIN`: program to start for compiling plugins, instead of this one.
    pub bin: Option<PathBuf>,
    /// `CRAWLER_LOG` and `CRAWLER_LOG_FORMAT`, without colours if `NO_COLOR` is set.
    pub log: crawler_process::telemetry::Settings,
    /// `XDG_STATE_HOME`, or `.local/state` in the home folder.
    pub state_home: Option<PathBuf>,
    /// Values of those of [`Environment::VARIABLES`] that are set.
    pub set: BTreeMap<&'static str, String>,
}

impl Environment {
    /// Names of the variables, as `crawler config show` lists them.
    pub const VARIABLES: [&'static str; 6] = [
        "CRAWLER_MASTER",
        "CRAWLER_LOG",
        "CRAWLER_LOG_FORMAT",
        "NO_COLOR",
        "CRAWLER_BIN",
        "XDG_STATE_HOME",
    ];

    /// Reads the environment of this process. Empty variables count as absent.
    pub fn read() -> Self {
        Self::from_lookup(variable)
    }

    fn from_lookup(lookup: impl Fn(&str) -> Option<String>) -> Self {
        let set = |name: &str| lookup(name).filter(|value| !value.is_empty());
        let home = set("HOME").map(|home| PathBuf::from(home).join(".local/state"));
        Self {
            master: set("CRAWLER_MASTER"),
            bin: set("CRAWLER_BIN").map(PathBuf::from),
            log: crawler_process::telemetry::Settings {
                filter: set("CRAWLER_LOG"),
                json: set("CRAWLER_LOG_FORMAT").is_some_and(|format| format == "json"),
                colors: match set("NO_COLOR") {
                    Some(_) => Colors::Never,
                    None => Colors::Auto,
                },
            },
            // The specification of XDG folders says that relative paths are ignored.
            state_home: set("XDG_STATE_HOME")
                .map(PathBuf::from)
                .filter(|path| path.is_absolute())
                .or(home),
            set: Self::VARIABLES
                .into_iter()
                .filter_map(|name| Some((name, set(name)?)))
                .collect(),
        }
    }

    /// Returns the folder in which a process of this role keeps compiled code and other state that is local
    /// to the machine. Without a home folder, it is in the current folder.
    pub fn state_folder(&self, role: &str, grpc_port: u16) -> PathBuf {
        let home = match &self.state_home {
            Some(home) => home.join("crawler"),
            None => PathBuf::from(".crawler-state"),
        };
        home.join(format!("{role}-{grpc_port}"))
    }
}

/// Returns a variable of the environment; `None` if it is not valid text.
pub(super) fn variable(name: &str) -> Option<String> {
    #[expect(
        clippy::disallowed_methods,
        reason = "the one place that reads the environment"
    )]
    std::env::var(name).ok()
}

/// Returns the program to start for compiling plugins, if it is not this one: `CRAWLER_BIN`.
pub fn program() -> Option<PathBuf> {
    Environment::read().bin
}

/// Returns the folders in which programs are looked for: `PATH`.
pub fn search_path() -> Vec<PathBuf> {
    let path = variable("PATH").unwrap_or_default();
    std::env::split_paths(&path).collect()
}

/// Returns the virtual environment of Python that is active: `VIRTUAL_ENV`.
pub fn virtual_environment() -> Option<PathBuf> {
    let folder = variable("VIRTUAL_ENV").filter(|folder| !folder.is_empty());
    folder.map(PathBuf::from)
}

/// Returns the files and folders of CA certificates that the environment names: `SSL_CERT_FILE` and
/// `SSL_CERT_DIR`.
pub fn certificates() -> impl Iterator<Item = PathBuf> {
    let named = ["SSL_CERT_FILE", "SSL_CERT_DIR"];
    named.into_iter().filter_map(variable).map(PathBuf::from)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn environment(variables: &[(&str, &str)]) -> Environment {
        Environment::from_lookup(|name| {
            let found = variables.iter().find(|(n, _)| *n == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn an_empty_variable_is_an_absent_one() {
        assert_eq!(environment(&[("CRAWLER_MASTER", "")]).master, None);
        let set = environment(&[
            ("CRAWLER_MASTER", "http://a:1"),
            ("CRAWLER_LOG_FORMAT", "json"),
        ]);
        assert_eq!(set.master.as_deref(), Some("http://a:1"));
        assert!(set.log.json);
        assert_eq!(set.log.colors, Colors::Auto);
        assert_eq!(environment(&[("NO_COLOR", "1")]).log.colors, Colors::Never);
    }

    #[test]
    fn state_lies_in_the_xdg_folder_or_below_home() {
        let folder = |variables: &[_]| environment(variables).state_folder("up", 9091);
        let home = ("HOME", "/home/a");
        assert_eq!(folder(&[]), Path::new(".crawler-state/up-9091"));
        assert_eq!(
            folder(&[home]),
            Path::new("/home/a/.local/state/crawler/up-9091")
        );
        assert_eq!(
            folder(&[home, ("XDG_STATE_HOME", "/x")]),
            Path::new("/x/crawler/up-9091")
        );
        assert_eq!(folder(&[home, ("XDG_STATE_HOME", "x")]), folder(&[home]));
    }
}
