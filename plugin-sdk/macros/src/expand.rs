//! Code that makes an `impl` block a plugin.

use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Ident, LitStr};

use crate::attribute::Attribute;
use crate::rules::{Function, Rules};

pub(crate) fn plugin(attribute: &Attribute, rules: &Rules) -> TokenStream {
    let Rules { block, root, rules } = rules;
    let plugin = &block.self_ty;
    let sdk = quote!(::crawler_plugin_sdk);

    let package = |text: &Option<LitStr>, variable: &str| match text {
        Some(text) => quote!(#text),
        None => quote!(::core::env!(#variable)),
    };
    let name = package(&attribute.name, "CARGO_PKG_NAME");
    let version = package(&attribute.version, "CARGO_PKG_VERSION");
    let hosts = &attribute.hosts;
    let limits = attribute
        .limits
        .iter()
        .map(|(name, value)| quote!((#name, #value)));

    let params = attribute.params.iter();
    let with_params = params.map(|params| quote!(.__with_params(&[#(#params),*])));

    let item_paths: Vec<_> = attribute.items.iter().map(|item| &item.path).collect();
    let items = attribute.items.iter().zip(0u32..).map(|(item, number)| {
        let (path, name) = (&item.path, &item.name);
        let at = Span::mixed_site().located_at(path.span());
        quote_spanned! {at=>
            impl #sdk::PluginItem for #path {
                const NAME: &'static str = #name;
                const NUMBER: u32 = #number;
            }
        }
    });

    let read_paths: Vec<_> = attribute.reads.iter().map(|plan| &plan.path).collect();
    let plans = attribute.reads.iter().zip(0u32..).map(|(plan, number)| {
        let (path, name) = (&plan.path, &plan.name);
        let at = Span::mixed_site().located_at(path.span());
        quote_spanned! {at=>
            impl #sdk::Declared for #path {
                const NAME: &'static str = #name;
                const NUMBER: u32 = #number;
            }

            const _: () = <#path as #sdk::__extract::Shaped>::SHAPE.check_for_pages();
        }
    });

    let rule_names: Vec<_> = rules.iter().map(|rule| &rule.name).collect();
    let constants = rules.iter().zip(0u32..).map(|(rule, number)| {
        let (constant, name) = (&rule.constant, &rule.name);
        let docs = format!("Names the rule `{name}` in requests.");
        quote! {
            #[doc = #docs]
            #[allow(dead_code, reason = "not every rule is followed by a constant")]
            pub const #constant: #sdk::Rule = #sdk::Rule::__new(#number, #name);
        }
    });
    let page = Ident::new("page", Span::mixed_site());
    let crawl = Ident::new("crawl", Span::mixed_site());
    let root_call = call(root, &[&crawl]);
    let calls = rules.iter().zip(0u32..).map(|(rule, number)| {
        let call = call(&rule.function, &[&page, &crawl]);
        quote!(#number => #call,)
    });

    quote! {
        #block

        impl #plugin {
            #(#constants)*
        }

        #(#items)*

        #(#plans)*

        impl #sdk::Plugin for #plugin {
            const DESCRIPTION: #sdk::Description = #sdk::Description::__new(
                #name,
                #version,
                &[#(#rule_names),*],
                {
                    const ITEMS: &[#sdk::ItemKind] = &[#(#sdk::ItemKind::of::<#item_paths>()),*];
                    ITEMS
                },
                {
                    const PLANS: &[#sdk::Plan] = &[#(#sdk::Plan::of::<#read_paths>()),*];
                    PLANS
                },
                &[#(#hosts),*],
                &[#(#limits),*],
            )#(#with_params)*;

            fn call_root(#crawl: &mut #sdk::Crawl) -> #sdk::Result {
                #root_call
            }

            fn call_rule(number: u32, #page: &#sdk::Page, #crawl: &mut #sdk::Crawl) -> #sdk::Result {
                match number {
                    #(#calls)*
                    _ => ::core::result::Result::Err(#sdk::RuleError::fatal(
                        ::std::format!("the plugin has no rule of number {number}"),
                    )),
                }
            }
        }

        #[cfg(target_family = "wasm")]
        #[allow(unsafe_code, reason = "exported functions have unmangled names")]
        const _: () = {
            type Component = #sdk::guest::Component<#plugin>;
            #sdk::guest::bindings::export!(Component with_types_in #sdk::guest::bindings);
        };
    }
}

/// Returns a call whose type errors point at the author's code: the argument, or the returned type.
fn call(function: &Function, arguments: &[&Ident]) -> TokenStream {
    let ident = &function.ident;
    let arguments = arguments
        .iter()
        .zip(&function.arguments)
        .map(|(argument, &span)| {
            Ident::new(&argument.to_string(), argument.span().located_at(span))
        });
    let outcome = Ident::new("outcome", Span::mixed_site());
    let returned = Ident::new("outcome", Span::mixed_site().located_at(function.returns));
    quote! {{
        let #outcome = Self::#ident(#(#arguments),*);
        #returned
    }}
}
