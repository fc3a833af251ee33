//! `workflow!(...)`.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream};
use syn::spanned::Spanned;
use syn::{Error, Expr, Ident, LitStr, Path, Token, Type};

use crate::{Expansion, step};

/// The arguments of `workflow!`.
pub struct Declaration {
    name: LitStr,
    steps: Vec<Path>,
    state: Option<Type>,
    timeout: Option<Expr>,
    version: Option<Expr>,
    description: Option<Expr>,
    resources: Vec<Expr>,
    part: bool,
}

impl Parse for Declaration {
    fn parse(input: ParseStream) -> syn::Result<Self> {
        let mut declaration = Declaration {
            name: input.parse().map_err(|e| {
                Error::new(
                    e.span(),
                    "the workflow's name comes first: `workflow!(\"name\", steps = [...])`",
                )
            })?,
            steps: Vec::new(),
            state: None,
            timeout: None,
            version: None,
            description: None,
            resources: Vec::new(),
            part: false,
        };
        check_name(&declaration.name)?;
        let mut seen: Vec<Ident> = Vec::new();
        while !input.is_empty() {
            input.parse::<Token![,]>()?;
            if input.is_empty() {
                break;
            }
            let key = input.call(Ident::parse_any)?;
            if seen.contains(&key) {
                return Err(Error::new(key.span(), "this option is there twice"));
            }
            if key == "part" {
                declaration.part = step::is_set(input)?;
                seen.push(key);
                continue;
            }
            let word = step::known(&key, &OPTIONS)?;
            input.parse::<Token![=]>()?;
            match word {
                "steps" => declaration.steps = step::list(input)?,
                "state" => declaration.state = Some(input.parse()?),
                "timeout" => declaration.timeout = Some(input.parse()?),
                "resources" => declaration.resources = step::list(input)?,
                "version" => declaration.version = Some(input.parse()?),
                _ => declaration.description = Some(input.parse()?),
            }
            seen.push(key);
        }
        if declaration.steps.is_empty() {
            return Err(Error::new(
                declaration.name.span(),
                "a workflow needs steps: `steps = [first, second]`",
            ));
        }
        Ok(declaration)
    }
}

const OPTIONS: [&str; 7] = [
    "steps",
    "state",
    "timeout",
    "resources",
    "part",
    "version",
    "description",
];

/// The rule of workflow names.
fn check_name(name: &LitStr) -> syn::Result<()> {
    let text = name.value();
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    if text.len() > 128
        || !text.starts_with(plain)
        || !text.chars().all(|c| plain(c) || "._-".contains(c))
    {
        return Err(Error::new(
            name.span(),
            "a workflow's name has 1 to 128 small letters, digits, '.', '_' and '-', and begins with a letter or digit",
        ));
    }
    Ok(())
}

pub fn expand(declaration: &Declaration) -> Expansion {
    let (name, steps) = (&declaration.name, &declaration.steps);
    let state = match &declaration.state {
        Some(state) => quote!(#state),
        None => quote!(::weft::Untyped),
    };
    let declare_state = declaration.state.as_ref().map(
        |state| quote_spanned!(state.span()=> .state(::weft::__private::state_decl::<#state>())),
    );
    let fits = steps.iter().map(|step| {
        quote_spanned!(step.span()=> ::weft::__private::fits::<<#step as ::weft::__private::Step>::State, #state>();)
    });
    let decls = steps
        .iter()
        .map(|step| quote_spanned!(step.span()=> <#step as ::weft::__private::Step>::DECL));
    let timeout = declaration.timeout.as_ref().map(timeout);
    let part = declaration.part.then(|| quote!(.part(true)));
    let resources = resources(&declaration.resources);
    let version = &declaration.version.iter().collect::<Vec<_>>();
    let description = &declaration.description.iter().collect::<Vec<_>>();
    let exports = exports();
    Ok(quote! {
        /// The workflow of this plugin.
        pub static WORKFLOW: ::weft::Workflow = ::weft::Workflow::new(#name, &[#(#decls),*])
            #declare_state
            #timeout
            #resources
            #part
            #(.version(#version))*
            #(.description(#description))*;

        const _: () = { #(#fits)* };

        #exports
    })
}

/// The resources are expressions of the crate's module `resource`.
fn resources(list: &[Expr]) -> Option<TokenStream> {
    let first = list.first()?;
    Some(quote_spanned! {first.span()=>
        .resources({
            const RESOURCES: &[::weft::Resource] = {
                #[allow(unused_imports)]
                use ::weft::resource::*;
                &[#(#list),*]
            };
            RESOURCES
        })
    })
}

/// `none` is a word without quotes; anything else is a duration.
fn timeout(value: &Expr) -> TokenStream {
    if let Expr::Path(path) = value
        && path.path.is_ident("none")
    {
        return quote!(.timeout("0s"));
    }
    quote_spanned!(value.span()=> .timeout(#value))
}

/// The functions that the host calls. Only a guest has them, so that native builds link without a
/// host.
fn exports() -> TokenStream {
    quote! {
        #[cfg(target_arch = "wasm32")]
        const _: () = {
            #[unsafe(no_mangle)]
            extern "C" fn weft_describe() {
                ::weft::__private::describe(&WORKFLOW)
            }

            #[unsafe(no_mangle)]
            extern "C" fn weft_step(input_len: u32) -> i32 {
                ::weft::__private::step(&WORKFLOW, input_len)
            }
        };
    }
}
