//! Shapes of the properties of items, as far as a column of a table tells one from another.

use super::*;

/// Shape of the values of a property, besides `null`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Shape {
    /// `true` or `false`.
    Boolean,
    /// Number without a fraction.
    Integer,
    /// Number.
    Number,
    /// Text.
    Text,
    /// Array, object, or values of several kinds.
    Any,
}

impl Shape {
    /// Returns the name of the type in JSON Schema, or `None` if there is none for all of the values.
    pub fn type_name(self) -> Option<&'static str> {
        match self {
            Shape::Boolean => Some("boolean"),
            Shape::Integer => Some("integer"),
            Shape::Number => Some("number"),
            Shape::Text => Some("string"),
            Shape::Any => None,
        }
    }
}

/// Property of an object that fits a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Property<'a> {
    /// Name of the property.
    pub name: &'a str,
    /// Shape of its values.
    pub shape: Shape,
    /// True if the property may be missing or `null`.
    pub is_optional: bool,
}

impl JsonSchema {
    /// Returns the properties of an object that fits, with their shapes, in the order of their names.
    ///
    /// ```
    /// use crawler_schema::{JsonSchema, Shape};
    ///
    /// let text = r#"{"properties": {"title": {"type": "string"}}, "required": ["title"]}"#;
    /// let schema = JsonSchema::read(text).unwrap();
    /// let title = schema.shapes().next().unwrap();
    /// assert_eq!((title.name, title.shape, title.is_optional), ("title", Shape::Text, false));
    /// ```
    pub fn shapes(&self) -> impl Iterator<Item = Property<'_>> {
        let root = self.node(self.root);
        root.properties.iter().map(|(name, id)| {
            let kinds = self.kinds(*id);
            let is_required = root.required.binary_search(name).is_ok();
            Property {
                name,
                shape: kinds.without(Kinds::NULL).shape(),
                is_optional: !is_required || kinds.has(Kinds::NULL),
            }
        })
    }
}

impl Kinds {
    fn shape(self) -> Shape {
        match self {
            Kinds::BOOLEAN => Shape::Boolean,
            Kinds::INTEGER => Shape::Integer,
            Kinds::FRACTION | Kinds::NUMBER => Shape::Number,
            Kinds::STRING => Shape::Text,
            _ => Shape::Any,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_follow_from_the_kinds_that_are_left_open() {
        let text = r##"{
            "$defs": {"price": {"type": ["number", "null"]}},
            "required": ["a", "b", "c", "d", "e", "f", "g"],
            "properties": {
                "a": {"type": "boolean"},
                "b": {"type": "integer"},
                "c": {"$ref": "#/$defs/price"},
                "d": {"enum": ["new", "old"]},
                "e": {"type": ["string", "integer"]},
                "f": {"type": "array"},
                "g": {"type": "null"},
                "h": {"type": "string"}
            }
        }"##;
        let schema = JsonSchema::read(text).unwrap();
        let found: Vec<_> = schema
            .shapes()
            .map(|property| (property.name, property.shape, property.is_optional))
            .collect();
        assert_eq!(
            found,
            [
                ("a", Shape::Boolean, false),
                ("b", Shape::Integer, false),
                ("c", Shape::Number, true),
                ("d", Shape::Text, false),
                ("e", Shape::Any, false),
                ("f", Shape::Any, false),
                ("g", Shape::Any, true),
                ("h", Shape::Text, true),
            ]
        );
    }

    #[test]
    fn the_type_of_a_shape_has_this_shape() {
        for shape in [Shape::Boolean, Shape::Integer, Shape::Number, Shape::Text] {
            let name = shape.type_name().unwrap();
            let text = format!(r#"{{"properties": {{"a": {{"type": "{name}"}}}}}}"#);
            let schema = JsonSchema::read(&text).unwrap();
            assert_eq!(schema.shapes().next().unwrap().shape, shape);
        }
        assert_eq!(Shape::Any.type_name(), None);
    }
}
