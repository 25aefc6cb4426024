//! Description of a call over HTTP: the cells of its row in the book, and what the OpenAPI document tells of its parameters,
//! body and answers.

use crate::http::params::QueryParam;

/// Description of a call. A text that is empty says that there is nothing.
#[derive(Default)]
#[cfg_attr(
    not(test),
    expect(
        dead_code,
        reason = "cells of the book are read by the test that writes it"
    )
)]
pub(in crate::http) struct RouteDocs {
    /// Parameters of the query.
    pub(in crate::http) query: &'static [QueryParam],
    /// Fields of the body.
    pub(in crate::http) takes: Body,
    /// Cell of the book about the body.
    pub(super) body: &'static str,
    /// Forms of the answer.
    pub(in crate::http) gives: &'static [Content],
    /// Cell of the book about the answer.
    pub(super) answer: &'static str,
    /// Errors that not every call has, by status, with their reasons.
    pub(in crate::http) errors: &'static [(u16, &'static str)],
}

/// Body of a request.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::http) enum Body {
    /// There is none.
    #[default]
    Nothing,
    /// A JSON object.
    Object(Fields),
    /// A JSON object, which may be left out.
    Optional(Fields),
    /// The bytes of a plugin.
    Wasm,
}

/// Fields of a message that a body has.
#[derive(Debug, Clone, Copy)]
pub(in crate::http) struct Fields {
    /// Message of the `.proto` file.
    pub(in crate::http) message: &'static str,
    pub(in crate::http) required: &'static [&'static str],
    pub(in crate::http) optional: &'static [&'static str],
}

/// Body of a call whose path says everything.
pub(super) const NO_FIELDS: Fields = Fields {
    message: "ResourceRequest",
    required: &[],
    optional: &[],
};

/// Form of an answer.
#[derive(Debug, Clone, Copy)]
pub(in crate::http) enum Content {
    /// An object without fields.
    Empty,
    /// A message.
    Message(&'static str),
    /// Lines, each of which is a message.
    Lines(&'static str),
    /// Lines, each of which is an item, or its envelope.
    Items,
    /// Server-sent events, each of which has a message as data.
    Events(&'static str),
    /// Bytes of a file.
    Bytes,
}

impl RouteDocs {
    /// Returns the cell of the book about the parameters.
    #[cfg(test)]
    pub(super) fn query_cell(&self) -> String {
        use crate::http::params::ParamKind;

        let param = |param: &QueryParam| {
            let value = match param.kind {
                ParamKind::Flag => "",
                ParamKind::Number | ParamKind::Positive => "=N",
                ParamKind::Text | ParamKind::Word(_) => "=…",
            };
            format!("`{}{value}`: {}", param.name, param.about)
        };
        let params: Vec<String> = self.query.iter().map(param).collect();
        params.join(" · ")
    }

    /// Returns the cell of the book about errors.
    #[cfg(test)]
    pub(super) fn errors_cell(&self) -> String {
        let error = |(status, why): &(u16, &str)| format!("{status} {why}").trim_end().to_owned();
        let errors: Vec<String> = self.errors.iter().map(error).collect();
        errors.join(" · ")
    }
}
