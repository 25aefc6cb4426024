//! `#[derive(Item)]`: the shape of the written form of a type.
//!
//! The derive of schemars makes the schema, from a twin of the type that has its fields and the attributes for its
//! written form. A derive cannot ask for another derive on the type itself.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::punctuated::Punctuated;
use syn::{Attribute, Data, DeriveInput, Error, Fields, GenericParam, LitStr, Meta, Result, Token};

/// Attribute of this derive.
const ITEM: &str = "item";

pub(crate) fn expand(mut twin: DeriveInput) -> Result<TokenStream> {
    let item = twin.ident.clone();
    if let Data::Union(union) = &twin.data {
        let message = "an item is a struct or an enum, not a union";
        return Err(Error::new(union.union_token.span, message));
    }
    if let Some(GenericParam::Type(parameter)) = twin
        .generics
        .params
        .iter()
        .find(|parameter| matches!(parameter, GenericParam::Type(_)))
    {
        let message = "an item has one shape, so it takes no types as parameters";
        return Err(Error::new(parameter.ident.span(), message));
    }
    let key = key(&twin.attrs)?;
    // The twin has no values, so it has no default value either.
    let default = has(&twin.attrs, "default").then(|| quote!(, !default));
    strip(&mut twin)?;
    twin.ident = format_ident!("__{item}");
    let (twin_ident, name) = (&twin.ident, item.to_string());
    let (impl_generics, type_generics, where_clause) = twin.generics.split_for_impl();
    let made = quote!(::crawler_plugin_sdk::__item);
    let schemars = quote!(::crawler_plugin_sdk::schemars).to_string();
    let schema = match key {
        Some(key) => quote!(#made::schema_with_key::<Self>(#key)),
        None => quote!(#made::schema_of::<Self>()),
    };
    Ok(quote! {
        const _: () = {
            #[derive(#made::JsonSchema)]
            #[schemars(crate = #schemars, rename = #name #default)]
            #[allow(dead_code, non_camel_case_types, reason = "only its shape is of use")]
            #twin

            impl #impl_generics #made::JsonSchema for #item #type_generics #where_clause {
                fn schema_name() -> ::std::borrow::Cow<'static, str> {
                    <#twin_ident #type_generics as #made::JsonSchema>::schema_name()
                }

                fn schema_id() -> ::std::borrow::Cow<'static, str> {
                    ::std::borrow::Cow::Borrowed(::core::concat!(::core::module_path!(), "::", #name))
                }

                fn json_schema(generator: &mut #made::SchemaGenerator) -> #made::Schema {
                    <#twin_ident #type_generics as #made::JsonSchema>::json_schema(generator)
                }
            }

            impl #impl_generics ::crawler_plugin_sdk::Item for #item #type_generics #where_clause {
                fn schema() -> ::std::string::String {
                    #schema
                }
            }
        };
    })
}

/// Returns the field that `#[item(key = "…")]` names.
fn key(attributes: &[Attribute]) -> Result<Option<LitStr>> {
    let mut key = None;
    for attribute in attributes.iter().filter(|one| one.path().is_ident(ITEM)) {
        attribute.parse_nested_meta(|meta| {
            if !meta.path.is_ident("key") {
                return Err(meta.error("unknown key; write `#[item(key = \"isbn\")]`"));
            }
            if key.is_some() {
                return Err(meta.error("`key` is given twice"));
            }
            key = Some(meta.value()?.parse()?);
            Ok(())
        })?;
    }
    Ok(key)
}

/// Keeps the attributes that describe the shape; it is an error if they leave the shape open.
fn strip(twin: &mut DeriveInput) -> Result<()> {
    keep(&mut twin.attrs);
    match &mut twin.data {
        Data::Struct(data) => strip_fields(&mut data.fields),
        Data::Enum(data) => data.variants.iter_mut().try_for_each(|variant| {
            keep(&mut variant.attrs);
            strip_fields(&mut variant.fields)
        }),
        Data::Union(_) => Ok(()),
    }
}

fn strip_fields(fields: &mut Fields) -> Result<()> {
    for field in fields {
        let of_type = field.attrs.iter().find(|one| one.path().is_ident(ITEM));
        if let Some(attribute) = of_type {
            let message = "it belongs before the struct: `#[item(key = \"isbn\")]`";
            return Err(Error::new_spanned(attribute, message));
        }
        keep(&mut field.attrs);
        let is_told = has(&field.attrs, "with") || has(&field.attrs, "schema_with");
        if has(&field.attrs, "serialize_with") && !is_told {
            let message = "say what this is written as: `#[schemars(with = \"String\")]`";
            return Err(Error::new_spanned(&field.ty, message));
        }
    }
    Ok(())
}

/// Returns true if attributes of serde or schemars have this key.
fn has(attributes: &[Attribute], key: &str) -> bool {
    let lists = attributes.iter().filter_map(|attribute| {
        let of_shape = ["schemars", "serde"];
        let is_one = of_shape.iter().any(|name| attribute.path().is_ident(name));
        let parse = Punctuated::<Meta, Token![,]>::parse_terminated;
        // The derives that an attribute is for report it if it cannot be read.
        is_one.then(|| attribute.parse_args_with(parse).ok())?
    });
    lists.flatten().any(|meta| meta.path().is_ident(key))
}

fn keep(attributes: &mut Vec<Attribute>) {
    const KEPT: [&str; 4] = ["doc", "deprecated", "schemars", "serde"];
    attributes.retain(|attribute| KEPT.iter().any(|name| attribute.path().is_ident(name)));
}
