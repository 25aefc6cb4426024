//! Faults of a connection: its loss, and errors that the server reports apart from answers.
//!
//! An error about one subject is the trouble of the messages that wait under it. All other errors end all waits.

use std::time::Duration;

use async_nats::ServerError;
use tokio::sync::watch;

use super::trouble::{Cause, Trouble};

/// Texts with which errors begin that are about the rights of the user.
const DENIED: [&str; 3] = [
    "permissions violation",
    "user authentication",
    "authentication",
];
/// Text before the subject that the user may not publish to.
const DENIED_SUBJECT: &str = "permissions violation for publish to \"";
/// Largest number of errors that a connection keeps. One more takes the place of the denial that was reported longest ago. No
/// message waits for that one any more: far fewer subjects are tried at a time.
const MAX_TOLD: usize = 1_000;
/// Age of a connection at which another one takes its place if the user may not publish to a subject: rights that they were
/// given since it was opened may count for new connections only.
const RENEWED_AFTER: Duration = Duration::from_secs(60);

/// Reasons not to wait for answers any more.
#[derive(Debug, Default)]
pub(super) struct Faults {
    /// True if the connection is lost.
    pub(super) is_lost: bool,
    /// Errors that the server has reported, each once, as far as there is room.
    told: Vec<Told>,
    /// Number of errors that it has reported so far.
    pub(super) n_told: u64,
}

/// Error that a server reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Told {
    cause: Cause,
    said: String,
    /// Subject of the only messages that it is about; `None` if it is about all.
    subject: Option<String>,
    /// Number among all errors of the connection, as of the last time that it was reported.
    number: u64,
}

impl Faults {
    /// Adds an error of the server. Returns true if somebody may wait in vain because of it.
    pub(super) fn add(&mut self, mut told: Told) -> bool {
        self.n_told += 1;
        told.number = self.n_told;
        let mut known = self.told.iter_mut();
        let known = known.find(|known| (known.cause, &known.said) == (told.cause, &told.said));
        if let Some(known) = known {
            // An error about all messages has ended all waits before.
            known.number = told.number;
            return known.subject.is_some();
        }
        if self.told.len() >= MAX_TOLD {
            self.forget_one();
        }
        self.told.push(told);
        true
    }

    /// Forgets the denial of a subject that was reported longest ago. If there is none, errors about all messages have made
    /// the connection useless, and the last one goes.
    fn forget_one(&mut self) {
        let told = self.told.iter().enumerate();
        let denials = told.filter(|(_place, told)| told.subject.is_some());
        let oldest = denials.min_by_key(|(_place, told)| told.number);
        match oldest.map(|(place, _told)| place) {
            Some(place) => drop(self.told.swap_remove(place)),
            None => drop(self.told.pop()),
        }
    }

    /// Returns true if further batches may use the connection, which has been open for this time.
    pub(super) fn are_bearable(&self, age: Duration) -> bool {
        let is_usable_in_part = self.told.iter().all(|told| told.subject.is_some());
        let is_denied = !self.told.is_empty();
        !self.is_lost && is_usable_in_part && !(is_denied && age >= RENEWED_AFTER)
    }

    /// Returns the trouble of messages whose subjects are those for which `is_own` returns true, and which were sent when the
    /// server had reported `n_told` errors. Subjects that were refused before may be allowed now.
    pub(super) fn trouble(&self, n_told: u64, is_own: impl Fn(&str) -> bool) -> Option<Trouble> {
        let concerns = |told: &&Told| match &told.subject {
            Some(subject) => told.number > n_told && is_own(subject),
            None => true,
        };
        match self.told.iter().find(concerns) {
            Some(told) => Some(Trouble::told(told.cause, told.said.clone())),
            None => self.is_lost.then(|| Trouble::of(Cause::Away)),
        }
    }
}

impl Told {
    pub(super) fn of(error: &ServerError) -> Self {
        let said = match error {
            ServerError::Other(said) => said.replace(char::is_control, " "),
            ServerError::AuthorizationViolation | ServerError::SlowConsumer(_) => error.to_string(),
        };
        let lower = said.to_ascii_lowercase();
        let is_denied = *error == ServerError::AuthorizationViolation
            || DENIED.iter().any(|start| lower.starts_with(start));
        let subject = match lower.starts_with(DENIED_SUBJECT) {
            true => said[DENIED_SUBJECT.len()..].split('"').next(),
            false => None,
        };
        Self {
            cause: match is_denied {
                true => Cause::Denied,
                false => Cause::Away,
            },
            subject: subject.map(str::to_owned),
            said,
            number: 0,
        }
    }
}

/// Returns once it is in vain to wait for answers to messages with these subjects, which were sent when the server had
/// reported `n_told` errors.
pub(super) async fn lost(
    faults: &mut watch::Receiver<Faults>,
    n_told: u64,
    is_own: impl Fn(&str) -> bool,
) -> Trouble {
    let known = faults
        .wait_for(|faults| faults.trouble(n_told, &is_own).is_some())
        .await;
    let trouble = known
        .ok()
        .and_then(|faults| faults.trouble(n_told, &is_own));
    trouble.unwrap_or_else(|| Trouble::of(Cause::Away))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_errors_about_rights_are_those_of_a_user() {
        for (error, expected) in [
            (ServerError::AuthorizationViolation, Cause::Denied),
            (
                ServerError::Other("User Authentication Expired".to_owned()),
                Cause::Denied,
            ),
            (
                ServerError::Other("Permissions Violation for Subscription to \"a\"".to_owned()),
                Cause::Denied,
            ),
            (
                ServerError::Other("Stale Connection".to_owned()),
                Cause::Away,
            ),
            (
                ServerError::Other("maximum connections exceeded".to_owned()),
                Cause::Away,
            ),
        ] {
            let told = Told::of(&error);
            assert_eq!((told.cause, told.subject), (expected, None), "{error}");
        }
        let stale = Told::of(&ServerError::Other("Stale Connection".to_owned()));
        let mut faults = Faults::default();
        assert!(faults.add(stale.clone()) && !faults.add(stale));
        let trouble = faults.trouble(0, |_: &str| false).unwrap().to_string();
        assert!(trouble.ends_with("(Stale Connection)"), "{trouble}");
    }

    #[tokio::test]
    async fn a_denied_subject_ends_the_wait_for_its_own_messages() {
        let (known, mut faults) = watch::channel(Faults::default());
        let denied = r#"Permissions Violation for Publish to "a.B""#.to_owned();
        let denied = Told::of(&ServerError::Other(denied));
        assert!(known.send_if_modified(|faults| faults.add(denied)));
        let trouble = lost(&mut faults, 0, |subject: &str| subject == "a.B").await;
        assert_eq!(trouble.cause, Cause::Denied);
        assert!(
            faults
                .borrow()
                .trouble(0, |subject: &str| subject == "a.b")
                .is_none()
        );
        known.send_modify(|faults| faults.is_lost = true);
        let trouble = lost(&mut faults, 0, |subject: &str| subject == "a.b").await;
        assert_eq!(trouble.cause, Cause::Away);
        let (known, mut faults) = watch::channel(Faults::default());
        drop(known);
        assert_eq!(
            lost(&mut faults, 0, |_: &str| true).await.cause,
            Cause::Away
        );
    }

    #[test]
    fn a_denied_subject_leaves_the_connection_to_others() {
        let denied = || {
            let said = "Permissions Violation for Publish to \"a\"".to_owned();
            Told::of(&ServerError::Other(said))
        };
        let is_own = |subject: &str| subject == "a";
        let mut faults = Faults::default();
        assert!(faults.add(denied()));
        assert!(faults.are_bearable(Duration::ZERO));
        assert!(!Cause::Denied.is_of_connection());
        // Later messages are denied only if the server says so again.
        let n_told = faults.n_told;
        assert!(faults.trouble(0, is_own).is_some());
        assert!(faults.trouble(n_told, is_own).is_none());
        assert!(faults.add(denied()));
        assert!(faults.trouble(n_told, is_own).is_some());
        assert_eq!(faults.told.len(), 1);
        // Rights may count for new connections only.
        assert!(!faults.are_bearable(RENEWED_AFTER));
        assert!(Faults::default().are_bearable(RENEWED_AFTER));
        faults.add(Told::of(&ServerError::AuthorizationViolation));
        assert!(!faults.are_bearable(Duration::ZERO));
        assert!(faults.trouble(faults.n_told, |_: &str| false).is_some());
    }

    #[test]
    fn however_many_subjects_are_denied_others_go_on() {
        let mut faults = Faults::default();
        let denied = |n: usize| {
            let said = format!("Permissions Violation for Publish to \"a.{n}\"");
            Told::of(&ServerError::Other(said))
        };
        for n in 0..3 * MAX_TOLD {
            let n_told = faults.n_told;
            assert!(faults.add(denied(n)));
            let subject = format!("a.{n}");
            assert!(faults.trouble(n_told, |own: &str| own == subject).is_some());
            assert!(faults.trouble(n_told, |own: &str| own == "b").is_none());
        }
        assert_eq!(faults.told.len(), MAX_TOLD);
        assert!(faults.are_bearable(Duration::ZERO));
        // That which was reported last is kept, though it was the first once.
        let (n_oldest, n_next) = (2 * MAX_TOLD, 2 * MAX_TOLD + 1);
        let n_told = faults.n_told;
        faults.add(denied(n_oldest));
        faults.add(denied(3 * MAX_TOLD));
        let is_kept = |n: usize, n_told: u64| {
            let subject = format!("a.{n}");
            let trouble = faults.trouble(n_told, |own: &str| own == subject);
            trouble.is_some()
        };
        assert!(is_kept(n_oldest, n_told));
        assert!(!is_kept(n_next, 0));
    }

    #[test]
    fn errors_about_all_messages_are_never_forgotten() {
        let mut faults = Faults::default();
        for n in 0..=MAX_TOLD {
            let said = format!("Error {n}");
            assert!(faults.add(Told::of(&ServerError::Other(said))));
        }
        assert_eq!(faults.told.len(), MAX_TOLD);
        faults.add(Told::of(&ServerError::Other(
            "Permissions Violation for Publish to \"a\"".to_owned(),
        )));
        assert!(!faults.are_bearable(Duration::ZERO));
        assert!(faults.trouble(faults.n_told, |_: &str| false).is_some());
    }
}
