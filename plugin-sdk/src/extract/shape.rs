//! Declaration of a struct for reading pages, as the derive writes it: constants, nested as the structs are. A
//! plan is the same without nesting; its groups and fields have the order of a walk through the shape.

/// A struct that has a shape. [`Extract`](super::Extract) derives it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not made to be read from pages",
    label = "does not derive `Extract`",
    note = "write `#[derive(Extract)]` before the struct; single values are read with `#[css(…)]`"
)]
pub trait Shaped {
    /// Shape of the struct.
    const SHAPE: &'static Shape;

    /// The type itself without its lifetime, which tells it from other types.
    type Own: 'static;
}

/// Fields that a struct reads of a page or of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Name of the type, for messages.
    pub(crate) name: &'static str,
    /// Parts in the order of the fields.
    pub(crate) parts: &'static [Part],
    /// Reason why the struct can only be read of rows. If `None`, it can also be read of pages.
    needs_row: Option<&'static str>,
    /// Number of groups of a plan, including those of nested structs.
    pub(crate) n_groups: u32,
    /// Number of fields of a plan, including those of nested structs.
    pub(crate) n_fields: u32,
}

/// Source of one field of a struct.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// Name of the field.
    pub(crate) name: &'static str,
    pub(crate) selector: &'static str,
    pub(crate) kind: Kind,
}

/// Kind of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Texts, or the first of them.
    Value { take: Take, first: bool },
    /// Addresses that are only followed.
    Links { take: Take },
    /// Nested structs.
    Rows(&'static Shape),
}

/// Part of an element that is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Take {
    /// Text of the element, white space folded.
    Text,
    /// Text of the element, as written.
    Raw,
    /// Markup between the tags of the element.
    Inner,
    /// Value of this attribute.
    Attr(&'static str),
    /// Presence of the element.
    Present,
    /// Name of the element.
    Tag,
}

impl Part {
    /// Declares a field that holds values.
    pub const fn value(
        name: &'static str,
        selector: &'static str,
        take: Take,
        first: bool,
    ) -> Self {
        let kind = Kind::Value { take, first };
        Self {
            name,
            selector,
            kind,
        }
    }

    /// Declares a field that holds links.
    pub const fn links(name: &'static str, selector: &'static str, take: Take) -> Self {
        let kind = Kind::Links { take };
        Self {
            name,
            selector,
            kind,
        }
    }

    /// Declares a field that holds nested structs.
    pub const fn rows(name: &'static str, selector: &'static str, shape: &'static Shape) -> Self {
        let kind = Kind::Rows(shape);
        Self {
            name,
            selector,
            kind,
        }
    }
}

impl Shape {
    /// Declares a shape. `needs_row` names the part that makes no sense for a whole page.
    pub const fn new(
        name: &'static str,
        parts: &'static [Part],
        needs_row: Option<&'static str>,
    ) -> Self {
        let (mut n_groups, mut n_fields, mut n) = (0, 0, 0);
        while n < parts.len() {
            match parts[n].kind {
                Kind::Value { .. } | Kind::Links { .. } => n_fields += 1,
                Kind::Rows(shape) => {
                    n_groups += 1 + shape.n_groups;
                    n_fields += shape.n_fields;
                }
            }
            n += 1;
        }
        Self {
            name,
            parts,
            needs_row,
            n_groups,
            n_fields,
        }
    }

    /// Stops the compilation if this shape can only be read of rows.
    #[track_caller]
    pub const fn check_for_pages(&self) {
        if let Some(why) = self.needs_row {
            panic!("{}", why);
        }
    }

    /// Returns groups and fields without nesting; names are prefixed by those of the rows around them.
    pub(crate) fn flat(&self) -> Flat {
        let mut flat = Flat::default();
        flat.add(self, None, "");
        flat
    }
}

/// A shape without nesting, which the boundary calls a plan.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Flat {
    pub(crate) groups: Vec<FlatGroup>,
    pub(crate) fields: Vec<FlatField>,
}

/// A kind of rows.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct FlatGroup {
    pub(crate) name: String,
    pub(crate) parent: Option<u32>,
    pub(crate) selector: String,
}

/// A kind of values.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct FlatField {
    pub(crate) name: String,
    pub(crate) group: Option<u32>,
    pub(crate) selector: String,
    pub(crate) take: Take,
    pub(crate) first: bool,
    pub(crate) keep: bool,
}

impl Flat {
    fn add(&mut self, shape: &Shape, group: Option<u32>, prefix: &str) {
        for part in shape.parts {
            let name = format!("{prefix}{}", part.name);
            let selector = part.selector.to_owned();
            let (take, first, keep) = match part.kind {
                Kind::Value { take, first } => (take, first, true),
                // Links of a row cross into the sandbox with their texts, since only that tells which row they lie
                // in.
                Kind::Links { take } => (take, false, group.is_some()),
                Kind::Rows(shape) => {
                    let prefix = format!("{name}.");
                    // The groups of a shape are counted in 32 bits.
                    let number = self.groups.len() as u32;
                    self.groups.push(FlatGroup {
                        name,
                        parent: group,
                        selector,
                    });
                    self.add(shape, Some(number), &prefix);
                    continue;
                }
            };
            self.fields.push(FlatField {
                name,
                group,
                selector,
                take,
                first,
                keep,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEAF: &Shape = &Shape::new(
        "Leaf",
        &[
            Part::value("text", "", Take::Text, true),
            Part::links("all", "a", Take::Attr("href")),
        ],
        None,
    );
    const BRANCH: &Shape = &Shape::new(
        "Branch",
        &[
            Part::rows("leaves", "> i", LEAF),
            Part::value("is_dry", ".dry", Take::Present, true),
        ],
        None,
    );
    const TREE: &Shape = &Shape::new(
        "Tree",
        &[
            Part::links("next", "a.next", Take::Attr("href")),
            Part::rows("branches", "ul", BRANCH),
            Part::rows("twigs", "ol", LEAF),
            Part::value("names", "h2", Take::Text, false),
        ],
        None,
    );

    #[test]
    fn a_form_is_flattened_in_its_order_with_prefixed_names() {
        let flat = TREE.flat();
        let groups: Vec<_> = flat.groups.iter().map(|g| (&*g.name, g.parent)).collect();
        let expected = [
            ("branches", None),
            ("branches.leaves", Some(0)),
            ("twigs", None),
        ];
        assert_eq!(groups, expected);
        let fields: Vec<_> = flat.fields.iter().map(|f| (&*f.name, f.group)).collect();
        let expected = [
            ("next", None),
            ("branches.leaves.text", Some(1)),
            ("branches.leaves.all", Some(1)),
            ("branches.is_dry", Some(0)),
            ("twigs.text", Some(2)),
            ("twigs.all", Some(2)),
            ("names", None),
        ];
        assert_eq!(fields, expected);
        let counted = (TREE.n_groups as usize, TREE.n_fields as usize);
        assert_eq!(counted, (flat.groups.len(), flat.fields.len()));
    }

    #[test]
    fn links_of_a_page_stay_with_the_host_and_those_of_rows_do_not() {
        let flat = TREE.flat();
        let kept: Vec<_> = flat.fields.iter().map(|f| (f.keep, f.first)).collect();
        let leaf = [(true, true), (true, false)];
        assert_eq!(kept[0], (false, false));
        assert_eq!(kept[1..3], leaf);
        assert_eq!(kept[4..6], leaf);
        assert_eq!(kept[6], (true, false));
    }
}
