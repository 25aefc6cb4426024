//! `#[derive(Extract)]`: the fields of a struct, checked one by one, so that errors point at the field.

mod css;
mod dates;
mod expand;
mod field;
mod reader;
mod types;

use syn::parse::{Parse, ParseStream};
use syn::{Data, DeriveInput, Error, Fields, GenericParam, Generics, Ident, Lifetime, Result};

use field::Field;

/// A struct that is read from pages.
pub(crate) struct Shape {
    ident: Ident,
    /// Lifetime of the page, if the struct borrows from it.
    lifetime: Option<Lifetime>,
    fields: Vec<Field>,
}

impl Parse for Shape {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        Shape::check(input.parse()?)
    }
}

impl Shape {
    fn check(input: DeriveInput) -> Result<Self> {
        let ident = input.ident;
        let lifetime = lifetime(&input.generics)?;
        let wrong = |what| {
            let message = format!("{what}; `Extract` is for a struct with named fields");
            Err(Error::new(ident.span(), message))
        };
        let fields = match input.data {
            Data::Struct(of) => of.fields,
            Data::Enum(_) => return wrong("an enum is not read from pages"),
            Data::Union(_) => return wrong("a union is not read from pages"),
        };
        let fields = match fields {
            Fields::Named(fields) if !fields.named.is_empty() => fields.named,
            Fields::Named(_) | Fields::Unit => return wrong("there is nothing to read"),
            Fields::Unnamed(_) => return wrong("fields without names cannot be told apart"),
        };
        let mut checked = Vec::new();
        let mut errors: Option<Error> = None;
        for field in fields {
            match Field::check(field, &ident, lifetime.as_ref()) {
                Ok(field) => checked.push(field),
                Err(error) => match &mut errors {
                    Some(errors) => errors.combine(error),
                    None => errors = Some(error),
                },
            }
        }
        match errors {
            Some(errors) => Err(errors),
            None => Ok(Shape {
                ident,
                lifetime,
                fields: checked,
            }),
        }
    }
}

/// Returns the lifetime of the page, which is the only parameter allowed.
fn lifetime(generics: &Generics) -> Result<Option<Lifetime>> {
    let mut lifetime = None;
    for parameter in &generics.params {
        let GenericParam::Lifetime(parameter) = parameter else {
            let message = "what is read from pages has no generic parameters: it is declared before there is a page";
            return Err(Error::new_spanned(generics, message));
        };
        if lifetime.replace(parameter.lifetime.clone()).is_some() {
            let message = "it is read from one page; write one lifetime for all that it borrows";
            return Err(Error::new_spanned(parameter, message));
        }
    }
    Ok(lifetime)
}
