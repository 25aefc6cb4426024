//! The variables of the environment that the program reads.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use super::credentials::{Credentials, CredentialsError};
use crawler_process::telemetry::Colors;

/// Variables that the program knows.
#[derive(Clone, Default)]
pub struct Environment {
    /// `CRAWLER_MASTER`: URL that client commands call, or several, separated by commas.
    pub master: Option<String>,
    /// `CRAWLER_CA`: file of CA certificates that vouch for the masters that client commands call.
    pub ca: Option<PathBuf>,
    /// `CRAWLER_CERTIFICATE`: certificate that client commands show to masters.
    pub certificate: Option<PathBuf>,
    /// `CRAWLER_KEY`: key of that certificate.
    pub key: Option<PathBuf>,
    /// `CRAWLER_BIN`: program to start for compiling plugins, instead of this one.
    pub bin: Option<PathBuf>,
    /// `CRAWLER_LOG` and `CRAWLER_LOG_FORMAT`, without colours if `NO_COLOR` is set.
    pub log: crawler_process::telemetry::Settings,
    /// `XDG_STATE_HOME`, or `.local/state` in the home folder.
    pub state_home: Option<PathBuf>,
    /// `XDG_CACHE_HOME`, or `.cache` in the home folder.
    pub cache_home: Option<PathBuf>,
    /// `CRAWLER_BUILD_DIR`: folder in which plugins are compiled.
    pub build_dir: Option<PathBuf>,
    /// True if `CARGO_TARGET_DIR` or `CARGO_BUILD_BUILD_DIR` names the folder in which cargo compiles.
    pub has_cargo_dir: bool,
    /// `CRAWLER_TOKEN`: access token that client commands show.
    pub token: Option<String>,
    /// `XDG_CONFIG_HOME`, or `.config` in the home folder.
    pub config_home: Option<PathBuf>,
    /// `NOTIFY_SOCKET`: address at which a supervisor such as systemd is told how a server stands.
    pub notify_socket: Option<String>,
    /// `WATCHDOG_USEC`: time after which the supervisor takes a silent server for a hung one. `None` if `WATCHDOG_PID`
    /// names another process.
    pub watchdog: Option<Duration>,
    /// Values of those of [`Environment::VARIABLES`] that are set.
    pub set: BTreeMap<&'static str, String>,
}

impl Environment {
    /// Names of the variables, as `crawler config show` lists them.
    pub const VARIABLES: [&'static str; 13] = [
        "CRAWLER_MASTER",
        "CRAWLER_TOKEN",
        "CRAWLER_CA",
        "CRAWLER_CERTIFICATE",
        "CRAWLER_KEY",
        "CRAWLER_LOG",
        "CRAWLER_LOG_FORMAT",
        "NO_COLOR",
        "CRAWLER_BIN",
        "CRAWLER_BUILD_DIR",
        "XDG_CACHE_HOME",
        "XDG_CONFIG_HOME",
        "XDG_STATE_HOME",
    ];

    /// Reads the environment of this process. Empty variables count as absent.
    pub fn read() -> Self {
        Self::from_lookup(variable)
    }

    fn from_lookup(lookup: impl Fn(&str) -> Option<String>) -> Self {
        let set = |name: &str| lookup(name).filter(|value| !value.is_empty());
        let home = set("HOME").map(PathBuf::from);
        // The specification of XDG folders says that relative paths are ignored.
        let xdg = |name: &str, usual: &str| {
            let named = set(name).map(PathBuf::from);
            let named = named.filter(|path| path.is_absolute());
            named.or(home.as_ref().map(|home| home.join(usual)))
        };
        let cargo_dirs = ["CARGO_TARGET_DIR", "CARGO_BUILD_BUILD_DIR"];
        Self {
            master: set("CRAWLER_MASTER"),
            ca: set("CRAWLER_CA").map(PathBuf::from),
            certificate: set("CRAWLER_CERTIFICATE").map(PathBuf::from),
            key: set("CRAWLER_KEY").map(PathBuf::from),
            bin: set("CRAWLER_BIN").map(PathBuf::from),
            log: crawler_process::telemetry::Settings {
                filter: set("CRAWLER_LOG"),
                format: set("CRAWLER_LOG_FORMAT"),
                colors: match set("NO_COLOR") {
                    Some(_) => Colors::Never,
                    None => Colors::Auto,
                },
                file: None,
            },
            state_home: xdg("XDG_STATE_HOME", ".local/state"),
            cache_home: xdg("XDG_CACHE_HOME", ".cache"),
            build_dir: set("CRAWLER_BUILD_DIR").map(PathBuf::from),
            has_cargo_dir: cargo_dirs.iter().any(|name| set(name).is_some()),
            token: set("CRAWLER_TOKEN"),
            config_home: xdg("XDG_CONFIG_HOME", ".config"),
            notify_socket: set("NOTIFY_SOCKET"),
            watchdog: set("WATCHDOG_USEC")
                .filter(|_| is_own(set("WATCHDOG_PID").as_deref()))
                .and_then(|microseconds| microseconds.parse::<u64>().ok())
                .filter(|microseconds| *microseconds > 0)
                .map(Duration::from_micros),
            set: Self::VARIABLES
                .into_iter()
                .filter_map(|name| Some((name, shown(name, set(name)?))))
                .collect(),
        }
    }

    /// Reads the access tokens that this user has.
    pub fn credentials(&self) -> Result<Credentials, CredentialsError> {
        Credentials::read(self.config_home.as_deref())
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

    /// Returns the folder of what is kept only to be faster. Without a home folder, it is in the current folder.
    fn cache_folder(&self) -> PathBuf {
        match &self.cache_home {
            Some(home) => home.join("crawler"),
            None => PathBuf::from(".crawler-cache"),
        }
    }

    /// Returns the folder in which answers of sites are kept for development.
    pub fn http_cache_folder(&self) -> PathBuf {
        self.cache_folder().join("http-cache")
    }

    /// Returns the folder in which plugins are compiled. `None` if cargo's own variables name one.
    fn build_folder(&self) -> Option<PathBuf> {
        match &self.build_dir {
            Some(folder) => Some(folder.clone()),
            None if self.has_cargo_dir => None,
            None => Some(self.cache_folder().join("build")),
        }
    }
}

/// Returns true if a supervisor means this process: it names no other one.
fn is_own(id: Option<&str>) -> bool {
    id.is_none_or(|id| id == std::process::id().to_string())
}

/// Returns the value of a variable as users may see it.
fn shown(name: &str, value: String) -> String {
    match name {
        "CRAWLER_TOKEN" => "a token, which is not shown".to_owned(),
        _ => value,
    }
}

/// Returns the folder of what is kept only to be faster, as an absolute path.
pub fn cache_folder() -> std::io::Result<PathBuf> {
    std::path::absolute(Environment::read().cache_folder())
}

/// Returns the folder in which plugins are compiled, as an absolute path: `CRAWLER_BUILD_DIR`, or one in the cache
/// folder. `None` if cargo's own variables name one.
pub fn build_folder() -> std::io::Result<Option<PathBuf>> {
    let folder = Environment::read().build_folder();
    folder.map(std::path::absolute).transpose()
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

/// Variables by which the tools of object stores find their credentials, and the home folder.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Variables {
    /// Values by the names of the variables, which begin with `AWS_`, `AZURE_` or `GOOGLE_`.
    pub(super) of_providers: BTreeMap<String, String>,
    home: Option<PathBuf>,
}

impl Variables {
    /// Reads the environment of this process.
    pub(super) fn read() -> Self {
        const PROVIDERS: [&str; 3] = ["AWS_", "AZURE_", "GOOGLE_"];
        let all = std::env::vars_os();
        let all = all.filter_map(|(name, value)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        });
        let of_providers = all.filter(|(name, value)| {
            PROVIDERS.iter().any(|start| name.starts_with(start)) && !value.is_empty()
        });
        Self {
            of_providers: of_providers.collect(),
            home: variable("HOME").map(PathBuf::from),
        }
    }

    /// Returns the value of a provider's variable; `None` if it is empty or not set.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.of_providers.get(name).map(String::as_str)
    }

    /// Returns the home folder.
    pub(super) fn home(&self) -> Option<&std::path::Path> {
        self.home.as_deref()
    }
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
        assert_eq!(set.log.format.as_deref(), Some("json"));
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

    #[test]
    fn a_watchdog_of_another_process_is_none_of_ours() {
        let own = std::process::id().to_string();
        let watchdog = |variables: &[_]| environment(variables).watchdog;
        let time = ("WATCHDOG_USEC", "30000000");
        let half_a_minute = Some(Duration::from_secs(30));
        assert_eq!(watchdog(&[time]), half_a_minute);
        assert_eq!(watchdog(&[time, ("WATCHDOG_PID", &own)]), half_a_minute);
        assert_eq!(watchdog(&[time, ("WATCHDOG_PID", "1")]), None);
        for text in ["0", "soon", "-1"] {
            assert_eq!(watchdog(&[("WATCHDOG_USEC", text)]), None, "{text}");
        }
    }

    #[test]
    fn plugins_are_compiled_where_the_user_says_or_in_the_cache() {
        let folder = |variables: &[_]| environment(variables).build_folder();
        let home = ("HOME", "/home/a");
        let build = |path: &str| Some(PathBuf::from(path));
        assert_eq!(folder(&[]), build(".crawler-cache/build"));
        assert_eq!(folder(&[home]), build("/home/a/.cache/crawler/build"));
        let cache = ("XDG_CACHE_HOME", "/x");
        assert_eq!(folder(&[home, cache]), build("/x/crawler/build"));
        for cargo in ["CARGO_TARGET_DIR", "CARGO_BUILD_BUILD_DIR"] {
            assert_eq!(folder(&[home, (cargo, "/t")]), None);
            let own = ("CRAWLER_BUILD_DIR", "/b");
            assert_eq!(folder(&[home, (cargo, "/t"), own]), build("/b"));
        }
    }
}
