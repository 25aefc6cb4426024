//! The settings of a crawl and of its placement, to and from their messages.

use crawler_proto as proto;

use crate::spec::{affinity_target, set};
use crawler_master::ControlError;
use crawler_model::placement::{PlacementChange, PlacementSpec};
use crawler_model::resource::CrawlSettings;
use crawler_model::settings::{Setting, Value};

/// Defines both directions. A row that the message lacks, or has with another type, does not compile.
macro_rules! convert {
    ($($field:ident: $kind:ident $args:tt { name: $name:literal, $($rest:tt)* })*) => {
        pub(crate) fn crawl_settings(
            message: proto::CrawlSettings,
        ) -> Result<CrawlSettings, ControlError> {
            let mut crawl = CrawlSettings::default();
            let proto::CrawlSettings { $($field),* } = message;
            $(if let Some(value) = $field.into_value() {
                let setting = Setting::named($name).expect("the row is in the table");
                set(&mut crawl, setting, value)?;
            })*
            Ok(crawl)
        }

        pub(crate) fn crawl_message(crawl: CrawlSettings) -> proto::CrawlSettings {
            proto::CrawlSettings { $($field: crawl.$field.into_field()),* }
        }
    };
}

crawler_model::crawl_settings!(convert);

/// Field of a message that is a setting.
trait MessageField {
    /// Returns the value of the setting, or `None` if it is absent.
    fn into_value(self) -> Option<Value>;
}

impl MessageField for Option<u32> {
    fn into_value(self) -> Option<Value> {
        self.map(u64::from).into_value()
    }
}

impl MessageField for Option<u64> {
    fn into_value(self) -> Option<Value> {
        self.map(Value::Number)
    }
}

impl MessageField for Option<String> {
    fn into_value(self) -> Option<Value> {
        self.map(Value::Text)
    }
}

impl MessageField for Vec<String> {
    fn into_value(self) -> Option<Value> {
        (!self.is_empty()).then_some(Value::Texts(self))
    }
}

/// Field of the settings that becomes a field `F` of a message.
trait SettingField<F: MessageField> {
    fn into_field(self) -> F;
}

impl SettingField<Option<u32>> for Option<u32> {
    fn into_field(self) -> Option<u32> {
        self
    }
}

impl SettingField<Option<u64>> for Option<u64> {
    fn into_field(self) -> Option<u64> {
        self
    }
}

impl<T: ToString> SettingField<Option<String>> for Option<T> {
    fn into_field(self) -> Option<String> {
        self.map(|value| value.to_string())
    }
}

impl<T: ToString> SettingField<Vec<String>> for Vec<T> {
    fn into_field(self) -> Vec<String> {
        self.iter().map(ToString::to_string).collect()
    }
}

/// Parses the placement of a resource in an answer.
pub fn placement_spec(message: proto::Placement) -> Result<PlacementSpec, ControlError> {
    Ok(placement_change(message)?.into_spec())
}

pub(crate) fn placement_change(message: proto::Placement) -> Result<PlacementChange, ControlError> {
    let other = |field, text: Option<String>| match text {
        Some(text) => affinity_target(field, &text).map(Some),
        None => Ok(None),
    };
    Ok(PlacementChange {
        shards: message.shards,
        weight: message.weight,
        selector: message.selector,
        near: other("placement.near", message.near)?,
        apart: other("placement.apart", message.apart)?,
    })
}

pub(crate) fn placement_message(placement: PlacementChange) -> proto::Placement {
    proto::Placement {
        shards: placement.shards,
        weight: placement.weight,
        selector: placement.selector,
        near: placement.near.map(|near| near.to_string()),
        apart: placement.apart.map(|apart| apart.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crawler_model::placement::AffinityTarget;

    #[test]
    fn s21_what_is_asked_of_placement_survives_its_message() {
        let change = PlacementChange {
            shards: Some(0),
            weight: Some(0),
            selector: [("gpu".into(), "true".into()), ("zone".into(), "".into())].into(),
            near: Some(AffinityTarget::Cleared),
            apart: Some("shop".parse().unwrap()),
        };
        for change in [change, PlacementChange::default()] {
            let message = placement_message(change.clone());
            assert_eq!(placement_change(message).unwrap(), change);
        }
        let message = proto::Placement {
            near: Some("a//b".into()),
            ..proto::Placement::default()
        };
        let error = placement_change(message).unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("resource name \"a//b\" has an empty part")
        );
    }

    use crawler_model::settings::examples;

    #[test]
    fn every_setting_survives_its_message() {
        let crawl = examples();
        assert_eq!(crawl_settings(crawl_message(crawl.clone())).unwrap(), crawl);
        let message = proto::CrawlSettings {
            unchanged: Some("ignore".into()),
            ..crawl_message(crawl.clone())
        };
        let error = crawl_settings(message).unwrap_err();
        let expected = "setting unchanged takes parse or skip, not \"ignore\"";
        assert_eq!(error.to_string(), expected);
        let message = proto::CrawlSettings {
            robots: Some("bend".into()),
            ..crawl_message(crawl)
        };
        let error = crawl_settings(message).unwrap_err();
        let expected = "setting robots takes obey or ignore, not \"bend\"";
        assert_eq!(error.to_string(), expected);
    }
}
