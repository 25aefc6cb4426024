//! Types as they are written, as far as a derive can know them.

use proc_macro2::{Group, TokenStream, TokenTree};
use quote::ToTokens;
use syn::{GenericArgument, Lifetime, PathArguments, Type};

use super::field::Count;

/// Returns true for a text that is borrowed from the page: `&'p str`, or `Cow<'p, str>`.
pub(super) fn is_borrowed_text(ty: &Type) -> bool {
    match ty {
        Type::Reference(reference) => is_called(&reference.elem, "str"),
        Type::Path(path) => path
            .path
            .segments
            .last()
            .is_some_and(|last| last.ident == "Cow"),
        _ => false,
    }
}

/// Returns the type with `'static` for this lifetime: constants of an `impl` cannot name its own.
pub(super) fn without(lifetime: Option<&Lifetime>, ty: &Type) -> TokenStream {
    match lifetime {
        Some(lifetime) => replaced(&lifetime.ident.to_string(), ty.to_token_stream()),
        None => ty.to_token_stream(),
    }
}

fn replaced(name: &str, tokens: TokenStream) -> TokenStream {
    let mut after_quote = false;
    let tokens = tokens.into_iter().map(|token| {
        let is_lifetime = std::mem::take(&mut after_quote);
        match token {
            TokenTree::Group(group) => {
                let inner = replaced(name, group.stream());
                let mut replaced = Group::new(group.delimiter(), inner);
                replaced.set_span(group.span());
                replaced.into()
            }
            TokenTree::Ident(ident) if is_lifetime && ident == name => {
                proc_macro2::Ident::new("static", ident.span()).into()
            }
            TokenTree::Punct(punct) => {
                after_quote = punct.as_char() == '\'';
                punct.into()
            }
            token => token,
        }
    });
    tokens.collect()
}

/// Returns the type in an `Option` or a `Vec`, however its path is written.
pub(super) fn counted(ty: &Type) -> (Type, Count) {
    let Type::Path(path) = ty else {
        return (ty.clone(), Count::One);
    };
    let argument = path.path.segments.last().and_then(|last| {
        let count = match last.ident.to_string().as_str() {
            "Option" => Count::Maybe,
            "Vec" => Count::All,
            _ => return None,
        };
        let PathArguments::AngleBracketed(arguments) = &last.arguments else {
            return None;
        };
        match (arguments.args.first(), arguments.args.len()) {
            (Some(GenericArgument::Type(inner)), 1) => Some((inner.clone(), count)),
            _ => None,
        }
    });
    argument.unwrap_or_else(|| (ty.clone(), Count::One))
}

/// Returns true if the last part of the type is this name; lifetimes are ignored.
pub(super) fn is_called(ty: &Type, name: &str) -> bool {
    let Type::Path(path) = ty else {
        return false;
    };
    let last = path.path.segments.last();
    last.is_some_and(|last| {
        let only_lifetimes = match &last.arguments {
            PathArguments::None => true,
            PathArguments::AngleBracketed(of) => of
                .args
                .iter()
                .all(|argument| matches!(argument, GenericArgument::Lifetime(_))),
            PathArguments::Parenthesized(_) => false,
        };
        last.ident == name && only_lifetimes
    })
}
