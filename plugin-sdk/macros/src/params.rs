//! `params(…)` of `#[plugin(…)]`: the params of the plugin's resources, checked; errors point at the param.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote};
use syn::ext::IdentExt;
use syn::parse::ParseStream;
use syn::{Error, Ident, LitStr, Result, Token, parenthesized, token};

use crate::attribute::{list, value};

/// Bytes of the name of a param, as the crawler takes it.
const NAME_MAX: usize = 128;
const KEYS: &str = "the keys of a param are about, default and optional";

/// A param as the author declares it.
pub(crate) struct Param {
    name: String,
    about: LitStr,
    default: Option<LitStr>,
    is_optional: bool,
}

/// Reads `(start(about = "…", default = "…"), "start-url"(about = "…", optional))`.
pub(crate) fn params(input: ParseStream<'_>) -> Result<Vec<Param>> {
    let mut params: Vec<Param> = Vec::new();
    for (param, at) in list(input, param)? {
        if params.iter().any(|earlier| earlier.name == param.name) {
            let message = format!("there are two params named `{}`", param.name);
            return Err(Error::new(at, message));
        }
        params.push(param);
    }
    Ok(params)
}

/// Reads one param, and the place of its name.
fn param(input: ParseStream<'_>) -> Result<(Param, Span)> {
    let (name, written, at) = name(input)?;
    let (mut about, mut default, mut is_optional) = (None, None, false);
    if input.peek(token::Paren) {
        let keys;
        parenthesized!(keys in input);
        let mut seen = Vec::new();
        while !keys.is_empty() {
            let key: Ident = keys.call(Ident::parse_any)?;
            let text = key.to_string();
            let fault = |message| Err(Error::new(key.span(), message));
            if seen.contains(&text) {
                return fault(format!("`{text}` is given twice"));
            }
            match text.as_str() {
                "about" => about = Some(value(&keys)?),
                "default" => default = Some(value(&keys)?),
                "optional" => is_optional = true,
                _ => return fault(format!("unknown key `{text}`; {KEYS}")),
            }
            if is_optional && default.is_some() {
                let message =
                    "a param with a default is never missing; leave out `optional` or `default`";
                return fault(message.to_owned());
            }
            seen.push(text);
            if !keys.is_empty() {
                keys.parse::<Token![,]>()?;
            }
        }
    }
    match about.filter(|about| !about.value().trim().is_empty()) {
        Some(about) => Ok((
            Param {
                name,
                about,
                default,
                is_optional,
            },
            at,
        )),
        None => {
            let message = format!(
                "param `{name}` does not tell what it is for; write one sentence: `{written}(about = \"…\")`"
            );
            Err(Error::new(at, message))
        }
    }
}

/// Reads the name of a param, in plain form and as it is written, and its place.
fn name(input: ParseStream<'_>) -> Result<(String, String, Span)> {
    let (name, written, at) = if input.peek(LitStr) {
        let literal: LitStr = input.parse()?;
        let written = literal.to_token_stream().to_string();
        (literal.value(), written, literal.span())
    } else {
        // Any word will do, `type` too.
        let ident = input.call(Ident::parse_any)?;
        (ident.unraw().to_string(), ident.to_string(), ident.span())
    };
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if name.is_empty() || name.len() > NAME_MAX || !name.chars().all(is_allowed) {
        let message =
            format!("the name of a param has 1 to {NAME_MAX} letters, digits, `-`, `_` and `.`");
        return Err(Error::new(at, message));
    }
    Ok((name, written, at))
}

impl ToTokens for Param {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        let Self {
            name,
            about,
            default,
            is_optional,
        } = self;
        let default = match default {
            Some(default) => quote!(::core::option::Option::Some(#default)),
            None => quote!(::core::option::Option::None),
        };
        tokens.extend(quote! {
            ::crawler_plugin_sdk::Param::__new(#name, #about, #default, #is_optional)
        });
    }
}
