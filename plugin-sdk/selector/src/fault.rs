//! Faults of selectors, with the way out.

/// A fault of a selector, or a part that one pass over the page cannot match, with the way out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SelectorFault {
    /// The selector is longer than the limit.
    #[error(
        "it has {n} bytes, and {limit} is the limit; begin it nearer to the element, with a class or an id"
    )]
    TooLong {
        /// Bytes of the selector.
        n: usize,
        /// Largest number of bytes allowed.
        limit: usize,
    },
    /// Parentheses nest too deep.
    #[error("parentheses nest deeper than {limit}; write less of them into each other")]
    TooDeep {
        /// Largest depth allowed.
        limit: usize,
    },
    /// The selector is empty, or a part between commas is.
    #[error("there is nothing, or nothing beside a comma; write a selector there")]
    Empty,
    /// `a >`, `a > > b`.
    #[error("there is nothing after a `{0}`; write what follows it, or leave it out")]
    Dangling(&'static str),
    /// The selector begins with `>`, and there is no row.
    #[error(
        "it begins with `>`, and there is no row whose child it could be; write the parent before it"
    )]
    NoRow,
    /// `||`.
    #[error("the combinator `{0}` is not known; use scraper inside the rule (SDK feature dom)")]
    Combinator(&'static str),
    /// A pseudo-class that is not known.
    #[error(
        "`{0}` is not known: only :not(), :is(), :where(), :first-child, :nth-child(), :first-of-type and :nth-of-type() are; use scraper inside the rule (SDK feature dom)"
    )]
    PseudoClass(String),
    /// A pseudo-element.
    #[error(
        "`{0}` is no part of a page; select the element, or use scraper inside the rule (SDK feature dom)"
    )]
    PseudoElement(String),
    /// `a::attr(href)`, as Scrapy writes it.
    #[error(
        "`::attr()` is not known; select the element, and name its attribute beside the selector: attr = \"…\", or `-> @…` in the shell"
    )]
    Attr,
    /// `a::text`, as Scrapy writes it.
    #[error("`::text` is not known; select the element: without an attribute its text is read")]
    Text,
    /// `//h2`.
    #[error(
        "this is XPath, which is not known; write CSS: `//div/a` is `div > a`, and `//h2` is `h2`"
    )]
    XPath,
    /// `:nth-child(2 of .x)`.
    #[error("`of` inside `{0}` is not known; use scraper inside the rule (SDK feature dom)")]
    Of(String),
    /// `:not(a b)`.
    #[error(
        "a combinator inside :not() or :is() is not known; use scraper inside the rule (SDK feature dom)"
    )]
    CombinatorInside,
    /// `svg|a`, `[xlink|href]`.
    #[error(
        "namespaces are not known; leave the part before `|` out, or write a colon as `\\:` as in [xlink\\:href]"
    )]
    Namespace,
    /// `/* … */`.
    #[error("comments are not known; leave them out")]
    Comment,
    /// `.1`, `#1`.
    #[error(
        "a class or an id that begins with a digit is written with an escape: `.\\31 ` for 1, or [class~='1']"
    )]
    Digit,
    /// A string, a bracket or an escape that is not closed.
    #[error("`{0}` is not closed; close it")]
    Unclosed(char),
    /// A character that has no meaning there.
    #[error(
        "{character:?} at byte {at} is not expected there; leave it out, or write it with a \\ before it"
    )]
    Unexpected {
        /// Character that was found.
        character: char,
        /// Byte position of the character.
        at: usize,
    },
    /// Any other mistake.
    #[error("{0}; correct it")]
    Syntax(&'static str),
}
