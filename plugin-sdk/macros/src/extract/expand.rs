//! Code that reads a struct: its shape as constants, and a call for each field. Types and functions of the author,
//! in which the compiler may find errors, carry the author's place.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Ident, Lifetime, Type};

use super::Shape;
use super::field::{Count, Field, Kind, OfPage, Take};
use super::reader::Reader;
use super::types::{is_borrowed_text, without};

impl Shape {
    pub(crate) fn expand(&self) -> TokenStream {
        let ident = &self.ident;
        let sdk = sdk(Span::call_site());
        let name = ident.to_string();
        let lifetime = self.lifetime.as_ref();
        let parts = self.fields.iter();
        let parts = parts.filter_map(|field| field.part(&sdk, lifetime));
        let needs_row = match self.fields.iter().find(|field| field.needs_row()) {
            Some(field) => {
                let why = format!(
                    "`{name}.{}` has a selector that needs a row around it, so that `{name}` can be rows of another struct, and not a page; name the element in the selector",
                    field.name
                );
                quote!(::core::option::Option::Some(#why))
            }
            None => quote!(::core::option::Option::None),
        };
        let row = row(Span::mixed_site());
        let fields = self.fields.iter().map(|field| {
            let (ident, read) = (&field.ident, field.read());
            quote!(#ident: #read)
        });
        let of = lifetime.map(|lifetime| quote!(<#lifetime>));
        let own = lifetime.map(|_| quote!(<'static>));
        let page = lifetime.cloned();
        let page = page.unwrap_or_else(|| Lifetime::new("'page", Span::mixed_site()));
        quote! {
            #[automatically_derived]
            impl #of #sdk::__extract::Shaped for #ident #of {
                const SHAPE: &'static #sdk::__extract::Shape = {
                    const PARTS: &[#sdk::__extract::Part] = &[#(#parts),*];
                    &#sdk::__extract::Shape::new(#name, PARTS, #needs_row)
                };

                type Own = #ident #own;
            }

            #[automatically_derived]
            impl<#page> #sdk::Extract<#page> for #ident #of {
                fn read(#row: &mut #sdk::__extract::Row<#page>) -> #sdk::Result<Self> {
                    ::core::result::Result::Ok(Self { #(#fields),* })
                }
            }
        }
    }
}

impl Field {
    /// Returns its part of the shape, unless the field is not in the page.
    fn part(&self, sdk: &TokenStream, lifetime: Option<&Lifetime>) -> Option<TokenStream> {
        let Field {
            name, inner, count, ..
        } = self;
        let selector = self.selector.as_ref()?;
        let part = quote!(#sdk::__extract::Part);
        Some(match &self.kind {
            Kind::Value { take, regex, .. } => {
                // Any capture may be the first that matches.
                let first = *count != Count::All && regex.is_none();
                let take = take.expand(sdk);
                quote!(#part::value(#name, #selector, #take, #first))
            }
            Kind::Present => {
                quote!(#part::value(#name, #selector, #sdk::__extract::Take::Present, true))
            }
            Kind::Links(take) => {
                let take = take.expand(sdk);
                quote!(#part::links(#name, #selector, #take))
            }
            Kind::Rows => {
                let inner = without(lifetime, inner);
                quote!(#part::rows(#name, #selector, <#inner as #sdk::__extract::Shaped>::SHAPE))
            }
            Kind::Page(_) => return None,
        })
    }

    /// Returns the code that reads it from a row.
    fn read(&self) -> TokenStream {
        let (inner, name) = (&self.inner, &self.name);
        let (read, place) = match &self.kind {
            Kind::Value { reader, .. } => reader.expand(inner),
            Kind::Present | Kind::Links(_) | Kind::Rows | Kind::Page(_) => {
                (TokenStream::new(), at(inner))
            }
        };
        let row = row(place);
        let mut row = quote!(#row);
        if let Kind::Value {
            regex: Some(regex), ..
        } = &self.kind
        {
            let sdk = sdk(place);
            row = quote_spanned!(place=> #row.matching({
                static REGEX: #sdk::__extract::Compiled =
                    #sdk::__extract::Compiled::new(|| #sdk::__extract::compiled(#regex));
                #sdk::__extract::Pattern {
                    text: #regex,
                    find: |text| #sdk::__extract::find(&REGEX, text),
                }
            }));
        }
        match (&self.kind, self.count) {
            (
                Kind::Value {
                    or_default: true, ..
                },
                Count::One,
            ) => {
                let place = at(inner);
                let default =
                    quote_spanned!(place=> <#inner as ::core::default::Default>::default());
                quote_spanned! {place=>
                    match #row.maybe::<#inner>(#read)? {
                        ::core::option::Option::Some(value) => value,
                        ::core::option::Option::None => #default,
                    }
                }
            }
            (Kind::Value { .. }, Count::One) => {
                quote_spanned!(place=> #row.one::<#inner>(#read)?)
            }
            (Kind::Value { .. }, Count::Maybe) => {
                quote_spanned!(place=> #row.maybe::<#inner>(#read)?)
            }
            (Kind::Value { .. }, Count::All) => {
                quote_spanned!(place=> #row.all::<#inner>(#read)?)
            }
            (Kind::Present, _) => quote_spanned!(place=> #row.present()),
            (Kind::Links(_), _) => quote_spanned!(place=> #row.links()),
            (Kind::Rows, Count::One) => quote_spanned!(place=> #row.one_row::<#inner>()?),
            (Kind::Rows, Count::Maybe) => quote_spanned!(place=> #row.maybe_row::<#inner>()?),
            (Kind::Rows, Count::All) => quote_spanned!(place=> #row.rows::<#inner>()?),
            (Kind::Page(OfPage::Url), _) if is_borrowed_text(inner) => {
                quote_spanned!(place=> ::core::convert::From::from(#row.page_url_text()))
            }
            (Kind::Page(OfPage::State), _) if is_borrowed_text(inner) => {
                quote_spanned!(place=> ::core::convert::From::from(#row.page_state_text()?))
            }
            (Kind::Page(OfPage::Url), _) => {
                quote_spanned!(place=> #row.page_url::<#inner>(#name)?)
            }
            (Kind::Page(OfPage::State), _) => {
                quote_spanned!(place=> #row.page_state::<#inner>(#name)?)
            }
        }
    }
}

fn sdk(place: Span) -> TokenStream {
    quote_spanned!(place=> ::crawler_plugin_sdk)
}

/// Name of the row in generated code.
fn row(place: Span) -> Ident {
    Ident::new("row", place)
}

impl Reader {
    /// Returns the function that reads a capture, and the author's place that it stands for.
    fn expand(&self, inner: &Type) -> (TokenStream, Span) {
        let place = match self {
            Reader::With(path) => at(path),
            _ => at(inner),
        };
        let sdk = sdk(place);
        let made = quote_spanned!(place=> #sdk::__extract);
        let read = match self {
            Reader::Plain if is_borrowed_text(inner) => quote_spanned!(place=> #made::borrowed),
            Reader::Plain => quote_spanned!(place=> <#inner as #sdk::Value>::read),
            // A closure is needed, because a function may have a single lifetime, as `serde_json::from_str` does.
            Reader::With(path) => quote_spanned! {place=>
                #made::by::<#inner, _, _>(|text| #path(text))
            },
            Reader::Date { format } => quote_spanned!(place=> #made::date(#format)),
            Reader::DateTime { format, offset } => {
                let (format, offset) = (option(format), option(offset));
                quote_spanned!(place=> #made::date_time(#format, #offset))
            }
            Reader::Money { currency, decimal } => {
                let currency = option(&currency.as_ref().map(|code| {
                    let place = at(code);
                    let sdk = self::sdk(place);
                    // The constant is an item, because `cargo check` does not evaluate a block of constants.
                    quote_spanned!(place=> {
                        const CURRENCY: #sdk::Currency = #sdk::Currency::of(#code);
                        CURRENCY
                    })
                }));
                let decimal = option(decimal);
                quote_spanned!(place=> #made::money(#currency, #decimal))
            }
        };
        (read, place)
    }
}

fn option(value: &Option<impl ToTokens>) -> TokenStream {
    match value {
        Some(value) => quote!(::core::option::Option::Some(#value)),
        None => quote!(::core::option::Option::None),
    }
}

/// Returns a span of generated code at the author's place, for errors of the compiler.
fn at(place: &impl Spanned) -> Span {
    Span::mixed_site().located_at(place.span())
}

impl Take {
    fn expand(&self, sdk: &TokenStream) -> TokenStream {
        let take = quote!(#sdk::__extract::Take);
        match self {
            Take::Text => quote!(#take::Text),
            Take::Raw => quote!(#take::Raw),
            Take::Inner => quote!(#take::Inner),
            Take::Attr(name) => quote!(#take::Attr(#name)),
            Take::Tag => quote!(#take::Tag),
        }
    }
}
