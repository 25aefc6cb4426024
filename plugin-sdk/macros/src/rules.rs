//! Content of the `impl` block. Types are left to the compiler; shapes are checked here, because an error about
//! generated code helps nobody.

use proc_macro2::Span;
use quote::ToTokens;
use syn::parse::{Parse, ParseStream};
use syn::spanned::Spanned;
use syn::{
    Attribute, Error, FnArg, Ident, ImplItem, ImplItemFn, Item, ItemImpl, LitStr, Result,
    ReturnType, Type,
};

const ROOT: &str = "fn root(crawl: &mut Crawl) -> Result";
const RULE: &str = "fn NAME(page: &Page, crawl: &mut Crawl) -> Result";

/// A block that is a plugin, without its `#[rule]` marks.
pub(crate) struct Rules {
    pub(crate) block: ItemImpl,
    pub(crate) root: Function,
    pub(crate) rules: Vec<Rule>,
}

/// A function that pages are handed to.
pub(crate) struct Rule {
    pub(crate) function: Function,
    pub(crate) name: String,
    pub(crate) constant: Ident,
}

/// A function and the places of its argument types, for errors of the compiler.
pub(crate) struct Function {
    pub(crate) ident: Ident,
    pub(crate) arguments: Vec<Span>,
    pub(crate) returns: Span,
}

impl Parse for Rules {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        match input.parse()? {
            Item::Impl(block) => Rules::check(block),
            _ => Err(Error::new(
                Span::call_site(),
                "#[plugin] goes on the `impl` block that holds `root` and the rules",
            )),
        }
    }
}

impl Rules {
    fn check(mut block: ItemImpl) -> Result<Self> {
        if let Some((_, of, _)) = &block.trait_ {
            let message = "#[plugin] goes on a plain `impl`, not on one of a trait";
            return Err(Error::new_spanned(of, message));
        }
        if !block.generics.params.is_empty() {
            let message = "a plugin has no generic parameters: the sandbox exports one type";
            return Err(Error::new_spanned(&block.generics, message));
        }
        let mut root = None;
        let mut rules: Vec<Rule> = Vec::new();
        for item in &mut block.items {
            let ImplItem::Fn(function) = item else {
                continue;
            };
            match take_mark(&mut function.attrs) {
                Some(mark) => rules.push(Rule::check(&mark, function)?),
                None if function.sig.ident == "root" => root = Some(check(function, 1, ROOT)?),
                None => {}
            }
        }
        for (n, rule) in rules.iter().enumerate() {
            let same =
                |earlier: &&Rule| earlier.name == rule.name || earlier.constant == rule.constant;
            if rules[..n].iter().any(|earlier| same(&earlier)) {
                let message = format!("there are two rules named `{}`", rule.name);
                return Err(Error::new(rule.function.ident.span(), message));
            }
        }
        let plugin = block.self_ty.to_token_stream();
        let Some(root) = root else {
            let message =
                format!("`{plugin}` has no root; add `{ROOT}`, which gives the first requests");
            return Err(Error::new(plugin.span(), message));
        };
        if rules.is_empty() {
            let rule = RULE.replace("NAME", "page");
            let message =
                format!("`{plugin}` has no rule; add `#[rule] {rule}`, which parses a page");
            return Err(Error::new(plugin.span(), message));
        }
        Ok(Rules { block, root, rules })
    }
}

impl Rule {
    fn check(mark: &Attribute, function: &ImplItemFn) -> Result<Self> {
        let ident = &function.sig.ident;
        if ident == "root" {
            let message =
                "`root` is not a rule: it gives the first requests, before there is a page";
            return Err(Error::new_spanned(mark, message));
        }
        let name = rule_name(mark)?.unwrap_or_else(|| ident.to_string());
        let function = check(function, 2, &RULE.replace("NAME", &ident.to_string()))?;
        let constant = Ident::new(&ident.to_string().to_uppercase(), ident.span());
        Ok(Rule {
            function,
            name,
            constant,
        })
    }
}

/// Removes `#[rule]` or `#[rule(…)]`.
fn take_mark(attributes: &mut Vec<Attribute>) -> Option<Attribute> {
    let at = attributes
        .iter()
        .position(|attribute| attribute.path().is_ident("rule"))?;
    Some(attributes.remove(at))
}

/// Reads the name in `#[rule(name = "…")]`.
fn rule_name(mark: &Attribute) -> Result<Option<String>> {
    let mut name = None;
    if matches!(mark.meta, syn::Meta::Path(_)) {
        return Ok(name);
    }
    mark.parse_nested_meta(|meta| {
        if !meta.path.is_ident("name") {
            return Err(meta.error("unknown key; a rule takes `name = \"…\"`"));
        }
        name = Some(meta.value()?.parse::<LitStr>()?.value());
        Ok(())
    })?;
    Ok(name)
}

fn check(function: &ImplItemFn, n_arguments: usize, shape: &str) -> Result<Function> {
    let signature = &function.sig;
    let fault = |at: &dyn ToTokens, what: &str| {
        Err(Error::new_spanned(
            at.to_token_stream(),
            format!("{what}; write `{shape}`"),
        ))
    };
    if let Some(asyncness) = &signature.asyncness {
        return fault(
            asyncness,
            "a rule does not wait: the page is there when it is called",
        );
    }
    if !signature.generics.params.is_empty() {
        return fault(&signature.generics, "a rule has no generic parameters");
    }
    if let Some(receiver) = signature.receiver() {
        return fault(
            receiver,
            "a rule has no `self`: nothing is kept between pages",
        );
    }
    if signature.inputs.len() != n_arguments {
        return match signature.inputs.is_empty() {
            true => fault(&signature.ident, "arguments are missing"),
            false => fault(
                &signature.inputs,
                "these are not the arguments it is called with",
            ),
        };
    }
    let ReturnType::Type(_, returns) = &signature.output else {
        return fault(&signature.ident, "it has to say whether it worked");
    };
    let typed = signature
        .inputs
        .iter()
        .filter_map(|argument| match argument {
            FnArg::Typed(argument) => Some(argument.ty.span()),
            FnArg::Receiver(_) => None,
        });
    Ok(Function {
        ident: signature.ident.clone(),
        arguments: typed.collect(),
        returns: Type::span(returns),
    })
}
