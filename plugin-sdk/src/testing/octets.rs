//! Bytes in the file of a saved call.

use serde::{Deserialize, Serialize};

/// Bytes: text if they are UTF-8.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
pub(super) enum Octets {
    Text(String),
    Hex { hex: Digits },
}

/// Bytes as hexadecimal digits.
#[derive(Clone, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(super) struct Digits(Vec<u8>);

impl TryFrom<String> for Digits {
    type Error = String;

    fn try_from(digits: String) -> Result<Self, String> {
        let bytes = digits.as_bytes().chunks(2).map(|pair| {
            let pair = str::from_utf8(pair).ok().filter(|pair| pair.len() == 2)?;
            u8::from_str_radix(pair, 16).ok()
        });
        let bytes: Option<Vec<u8>> = bytes.collect();
        bytes
            .map(Self)
            .ok_or_else(|| format!("{digits:?} are no hexadecimal digits of bytes"))
    }
}

impl From<Digits> for String {
    fn from(Digits(bytes): Digits) -> Self {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

impl Octets {
    pub(super) fn of(bytes: Vec<u8>) -> Self {
        String::from_utf8(bytes).map_or_else(
            |error| {
                let hex = Digits(error.into_bytes());
                Self::Hex { hex }
            },
            Self::Text,
        )
    }

    pub(super) fn into_bytes(self) -> Vec<u8> {
        match self {
            Self::Text(text) => text.into_bytes(),
            Self::Hex { hex } => hex.0,
        }
    }
}
