//! Access: subjects, roles, the rights that roles give, and the names that they are limited to.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::id::{IdError, Namespace, check_name};
use super::suggest;
use super::text::as_text;

/// Length of a token's id in characters.
const TOKEN_ID_LENGTH: usize = 16;

/// Name of a person or a program that calls. Several tokens may have one subject.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Subject(String);

/// Id of a token. It is no secret: it finds the token's record, and stands in logs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TokenId(String);

/// Kind of action that a call needs the right to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Right {
    /// To see resources, items, frontiers, nodes and plugins.
    Read,
    /// To add, change, pause and delete resources, and to drain workers.
    Operate,
    /// To push and delete plugins.
    Publish,
    /// To give and take access, and to read who did what.
    Administer,
}

/// Set of rights that a token has under one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// May see everything.
    Viewer,
    /// May see everything, and decide what is crawled.
    Operator,
    /// May see everything, and push and delete plugins.
    Publisher,
    /// May do everything.
    Admin,
}

/// Rights of a caller.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Grants {
    /// Roles, whose rights add up. Without one, nothing is allowed.
    pub roles: BTreeSet<Role>,
    /// Namespaces that the rights are limited to. If empty, they hold for all names and for the cluster itself.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub namespaces: BTreeSet<Namespace>,
}

/// Fault in the text of a role, or in what is granted together.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GrantError {
    /// The word is no role.
    #[error("there is no role {word:?}{hint}")]
    Role {
        /// The word.
        word: String,
        /// Suggestion, or the roles that there are.
        hint: String,
    },
    /// Nothing is granted.
    #[error("a token needs a role: viewer, operator, publisher or admin")]
    NoRole,
    /// An administrator decides for the whole cluster.
    #[error(
        "the role admin holds for the whole cluster, and goes with no namespace; give operator and publisher there"
    )]
    AdminOfNamespace,
}

impl Right {
    /// Returns the word that messages use.
    pub fn as_str(self) -> &'static str {
        match self {
            Right::Read => "read",
            Right::Operate => "operate",
            Right::Publish => "publish",
            Right::Administer => "administer",
        }
    }
}

impl fmt::Display for Right {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Role {
    /// All roles.
    pub const ALL: [Self; 4] = [Self::Viewer, Self::Operator, Self::Publisher, Self::Admin];

    /// Returns the word that users write.
    pub fn as_str(self) -> &'static str {
        match self {
            Role::Viewer => "viewer",
            Role::Operator => "operator",
            Role::Publisher => "publisher",
            Role::Admin => "admin",
        }
    }

    /// True if the role gives this right.
    pub fn gives(self, right: Right) -> bool {
        match right {
            Right::Read => true,
            Right::Operate => matches!(self, Role::Operator | Role::Admin),
            Right::Publish => matches!(self, Role::Publisher | Role::Admin),
            Right::Administer => self == Role::Admin,
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Role {
    type Err = GrantError;

    fn from_str(word: &str) -> Result<Self, GrantError> {
        let role = Role::ALL.into_iter().find(|role| role.as_str() == word);
        role.ok_or_else(|| {
            let hint = suggest::hint(word, &Role::ALL.map(Role::as_str));
            GrantError::Role {
                word: word.to_owned(),
                hint: format!("; {hint}"),
            }
        })
    }
}

impl Grants {
    /// Returns the rights of an administrator.
    pub fn all() -> Self {
        Self {
            roles: [Role::Admin].into(),
            namespaces: BTreeSet::new(),
        }
    }

    /// Checks that something is granted, and nothing that contradicts itself.
    pub fn check(&self) -> Result<(), GrantError> {
        if self.roles.is_empty() {
            return Err(GrantError::NoRole);
        }
        match self.roles.contains(&Role::Admin) && !self.namespaces.is_empty() {
            true => Err(GrantError::AdminOfNamespace),
            false => Ok(()),
        }
    }

    /// True if one of the roles gives this right.
    pub fn gives(&self, right: Right) -> bool {
        self.roles.iter().any(|role| role.gives(right))
    }

    /// True if the rights hold for this name of a resource or a plugin.
    pub fn covers(&self, name: &str) -> bool {
        let in_namespace = || self.namespaces.iter().any(|space| space.contains(name));
        self.covers_all() || (!self.roles.is_empty() && in_namespace())
    }

    /// True if the rights hold for all names and for the cluster itself.
    pub fn covers_all(&self) -> bool {
        !self.roles.is_empty() && self.namespaces.is_empty()
    }
}

impl fmt::Display for Grants {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = |words: Vec<String>| words.join(", ");
        f.write_str(&words(self.roles.iter().map(ToString::to_string).collect()))?;
        match self.namespaces.is_empty() {
            true => Ok(()),
            false => {
                let namespaces = self.namespaces.iter().map(ToString::to_string).collect();
                write!(f, " of {}", words(namespaces))
            }
        }
    }
}

impl Subject {
    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Subject {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        check_name("subject", text)?;
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TokenId {
    /// Makes an id from random bytes.
    pub fn of(random: [u8; TOKEN_ID_LENGTH / 2]) -> Self {
        Self(hex::encode(random))
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for TokenId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        let is_digit = |byte: u8| byte.is_ascii_digit() || matches!(byte, b'a'..=b'f');
        match text.len() == TOKEN_ID_LENGTH && text.bytes().all(is_digit) {
            true => Ok(Self(text.to_owned())),
            false => Err(IdError::TokenId),
        }
    }
}

impl fmt::Display for TokenId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

as_text!(Subject, TokenId, Role);

#[cfg(test)]
mod tests {
    use super::*;

    fn grants(roles: &str, namespaces: &str) -> Grants {
        let words = |text: &str| -> Vec<String> {
            let words = text.split(',').filter(|word| !word.is_empty());
            words.map(ToOwned::to_owned).collect()
        };
        Grants {
            roles: words(roles)
                .iter()
                .map(|role| role.parse().unwrap())
                .collect(),
            namespaces: words(namespaces)
                .iter()
                .map(|space| space.parse().unwrap())
                .collect(),
        }
    }

    #[test]
    fn roles_add_up() {
        let rights = |roles| {
            let all = [
                Right::Read,
                Right::Operate,
                Right::Publish,
                Right::Administer,
            ];
            let grants = grants(roles, "");
            let given = all.into_iter().filter(|right| grants.gives(*right));
            given.map(Right::as_str).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(rights(""), "");
        assert_eq!(rights("viewer"), "read");
        assert_eq!(rights("operator"), "read operate");
        assert_eq!(rights("publisher"), "read publish");
        assert_eq!(rights("operator,publisher"), "read operate publish");
        assert_eq!(rights("admin"), "read operate publish administer");
    }

    #[test]
    fn rights_in_a_namespace_hold_for_its_names_only() {
        let grants = grants("operator", "team,shared/books");
        assert!(grants.covers("team/shop") && grants.covers("team/sub/shop"));
        assert!(grants.covers("shared/books/one"));
        for foreign in ["team", "teams/shop", "shared/one", "shop", ""] {
            assert!(!grants.covers(foreign), "{foreign}");
        }
        assert!(!grants.covers_all());
        for nothing in [
            Grants::default(),
            Grants {
                roles: BTreeSet::new(),
                ..grants.clone()
            },
        ] {
            assert!(!nothing.covers("team/shop") && !nothing.covers_all());
        }
        assert!(Grants::all().covers("shop") && Grants::all().covers_all());
        assert_eq!(grants.to_string(), "operator of shared/books, team");
    }

    #[test]
    fn what_is_granted_has_to_make_sense() {
        assert_eq!(grants("", "team").check(), Err(GrantError::NoRole));
        assert_eq!(
            grants("admin,viewer", "team").check(),
            Err(GrantError::AdminOfNamespace)
        );
        for (roles, namespaces) in [
            ("admin", ""),
            ("operator,publisher", "team"),
            ("viewer", ""),
        ] {
            assert_eq!(grants(roles, namespaces).check(), Ok(()));
        }
        let error = "operater".parse::<Role>().unwrap_err().to_string();
        assert_eq!(
            error,
            "there is no role \"operater\"; did you mean \"operator\"?"
        );
    }

    #[test]
    fn a_token_id_is_sixteen_digits() {
        let id = TokenId::of([0xab; 8]);
        assert_eq!(id.to_string().parse(), Ok(id));
        for wrong in [
            "",
            "abc",
            "ABCDEF0123456789",
            "abcdef012345678g",
            "abcdef01234567890",
        ] {
            assert!(wrong.parse::<TokenId>().is_err(), "{wrong}");
        }
    }
}
