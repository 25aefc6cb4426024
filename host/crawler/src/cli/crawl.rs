//! Options of a crawl: one for each row of the table of settings.

use clap::builder::{TypedValueParser as _, ValueParser};
use clap::error::ErrorKind;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches, value_parser};

use super::args::{millis, size};
use crawler_model::resource::CrawlSettings;
use crawler_model::settings::{Kind, SETTINGS, Setting, SettingError, Value};

/// Settings that are given.
#[derive(Debug)]
pub(super) struct CrawlArgs(CrawlSettings);

impl CrawlArgs {
    pub(super) fn settings(self) -> CrawlSettings {
        self.0
    }
}

impl Args for CrawlArgs {
    fn augment_args(command: Command) -> Command {
        command.args(SETTINGS.iter().map(option))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for CrawlArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut settings = Self(CrawlSettings::default());
        settings.update_from_arg_matches(matches)?;
        Ok(settings)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        for setting in SETTINGS {
            let Some(values) = matches.get_many::<Value>(setting.name) else {
                continue;
            };
            if let Some(value) = joined(values.cloned()) {
                let set = setting.set(&mut self.0, value);
                set.map_err(|e| clap::Error::raw(ErrorKind::ValueValidation, e))?;
            }
        }
        Ok(())
    }
}

/// Returns the option of a setting. Its values are parsed as far as they can be without the others.
pub(super) fn option(setting: &'static Setting) -> Arg {
    let option = Arg::new(setting.name)
        .long(setting.name)
        .value_name(setting.takes)
        .help(setting.help_with_default())
        .value_parser(parser(setting));
    match setting.kind {
        Kind::U32 | Kind::U64 | Kind::Bytes | Kind::Time | Kind::Text => option,
        Kind::Texts => option.action(ArgAction::Append),
        Kind::List => option.action(ArgAction::Append).value_delimiter(','),
    }
}

fn parser(setting: &'static Setting) -> ValueParser {
    match setting.kind {
        Kind::U32 => ValueParser::new(value_parser!(u32).map(|n| Value::Number(n.into()))),
        Kind::U64 => ValueParser::new(value_parser!(u64).map(Value::Number)),
        Kind::Bytes => ValueParser::new(|text: &str| size(text).map(Value::Number)),
        Kind::Time => ValueParser::new(|text: &str| millis(text).map(Value::Number)),
        Kind::Text => ValueParser::new(move |text: &str| {
            checked(setting, Value::Text(text.to_owned())).map_err(|e| e.why)
        }),
        Kind::Texts => ValueParser::new(move |text: &str| {
            checked(setting, Value::Texts(vec![text.to_owned()])).map_err(|e| e.why)
        }),
        // One entry among several: the message names the setting.
        Kind::List => ValueParser::new(move |text: &str| {
            checked(setting, Value::Texts(vec![text.to_owned()]))
        }),
    }
}

/// Returns the value if it parses.
fn checked(setting: &Setting, value: Value) -> Result<Value, SettingError> {
    setting.set(&mut CrawlSettings::default(), value.clone())?;
    Ok(value)
}

/// Joins the values of an option: lists are appended.
fn joined(values: impl Iterator<Item = Value>) -> Option<Value> {
    values.reduce(|all, next| match (all, next) {
        (Value::Texts(mut all), Value::Texts(next)) => {
            all.extend(next);
            Value::Texts(all)
        }
        (_, last) => last,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crawler_model::settings::examples;

    #[test]
    fn every_setting_is_an_option() {
        let command = CrawlArgs::augment_args(Command::new("run"));
        let options = SETTINGS.iter().flat_map(|setting| {
            let option = |text: &&str| format!("--{}={text}", setting.name);
            setting.example.iter().map(option)
        });
        let line = std::iter::once("run".to_owned()).chain(options);
        let matches = command.try_get_matches_from(line).unwrap();
        let args = CrawlArgs::from_arg_matches(&matches).unwrap();
        assert_eq!(args.settings(), examples());
    }
}
