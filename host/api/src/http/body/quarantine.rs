//! The body that decides about held items.

use crawler_proto::DecideQuarantineRequest;

use super::Fields;
use crate::problem::Problem;

/// Example of a body.
pub(in crate::http) const EXAMPLE: &str = r#"{"action":"release","hold":"0.1"}"#;

/// Parses what becomes of held items, and of which.
pub(in crate::http) fn decide(
    name: String,
    bytes: &[u8],
) -> Result<DecideQuarantineRequest, Problem> {
    let mut fields = Fields::of_body(bytes, &["action", "hold"], EXAMPLE)?;
    Ok(DecideQuarantineRequest {
        name,
        action: fields.text("action")?.unwrap_or_default(),
        hold: fields.text("hold")?.unwrap_or_default(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decision_is_about_one_hold_or_all() {
        let parsed = |json: &str| decide("shop".to_owned(), json.as_bytes());
        let one = parsed(EXAMPLE).unwrap();
        assert_eq!((one.action.as_str(), one.hold.as_str()), ("release", "0.1"));
        assert_eq!(parsed(r#"{"action":"drop"}"#).unwrap().hold, "");
        for json in [r#"{"holds":"0.1"}"#, r#"{"action":1}"#, "[]"] {
            assert!(parsed(json).is_err(), "{json}");
        }
    }
}
