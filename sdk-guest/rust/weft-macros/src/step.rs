//! `#[step(...)]`.

use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::{Error, Expr, FnArg, Ident, ItemFn, LitStr, Path, ReturnType, Token, Type, bracketed};

use crate::{Expansion, attributes};

/// The options of a step.
#[derive(Default)]
pub struct Options {
    name: Option<LitStr>,
    workers: Option<Expr>,
    timeout: Option<Expr>,
    retry: Option<Expr>,
    take: Option<Expr>,
    emits: Vec<Path>,
    streams: Vec<Path>,
}

impl Parse for Options {
    fn parse(input: ParseStream) -> syn::Result<Self> {
        let mut options = Options::default();
        let mut seen: Vec<Ident> = Vec::new();
        while !input.is_empty() {
            let key = input.call(Ident::parse_any)?;
            if seen.contains(&key) {
                return Err(Error::new(key.span(), "this option is there twice"));
            }
            input.parse::<Token![=]>()?;
            match key.to_string().as_str() {
                "name" => options.name = Some(input.parse()?),
                "workers" => options.workers = Some(input.parse()?),
                "timeout" => options.timeout = Some(input.parse()?),
                "retry" => options.retry = Some(input.parse()?),
                "take" => options.take = Some(input.parse()?),
                "emits" => options.emits = list(input)?,
                "streams" => options.streams = list(input)?,
                _ => {
                    return Err(Error::new(
                        key.span(),
                        "unknown option: name, workers, timeout, retry, take, emits and streams can stand here",
                    ));
                }
            }
            seen.push(key);
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        Ok(options)
    }
}

/// A list in brackets: `[a, b]`.
pub fn list<T: Parse>(input: ParseStream) -> syn::Result<Vec<T>> {
    let list;
    bracketed!(list in input);
    let items = Punctuated::<T, Token![,]>::parse_terminated(&list)?;
    Ok(items.into_iter().collect())
}

pub fn expand(options: &Options, function: &ItemFn) -> Expansion {
    let (state, takes) = arguments(function)?;
    let ReturnType::Type(_, gives) = &function.sig.output else {
        return Err(Error::new(
            function.sig.span(),
            "a step gives a result: `-> Result<NextEvent>`, or `-> Result<()>` for nothing",
        ));
    };
    let ident = &function.sig.ident;
    let name = match &options.name {
        Some(name) => name.value(),
        None => ident.unraw().to_string(),
    };
    let visibility = &function.vis;
    let description = attributes::description(&function.attrs);
    let settings = options.settings();
    let (emits, streams) = (&options.emits, &options.streams);
    // Errors about the types point at the types.
    let input = quote_spanned!(takes.span()=> <#takes as ::weft::Input>::DECL);
    let output = quote_spanned!(gives.span()=> <<#gives as ::weft::__private::Returns>::Output as ::weft::Output>::DECL);
    // A name of the macro's own: the function may be called `start`.
    let start = Ident::new("start", Span::mixed_site());
    Ok(quote! {
        #function

        // A type of the function's name: the two do not meet, and whoever
        // imports the one has the other.
        #[doc(hidden)]
        #[allow(non_camel_case_types)]
        #visibility enum #ident {}

        #[automatically_derived]
        impl ::weft::__private::Step for #ident {
            type State = <#state as ::weft::__private::ContextType>::State;

            const DECL: ::weft::__private::StepDecl = ::weft::__private::StepDecl {
                description: #description,
                emits: &[#(<#emits as ::weft::Event>::TYPE),*],
                streams: &[#(<#streams as ::weft::Event>::TYPE),*],
                #settings
                ..::weft::__private::StepDecl::new(#name, #input, #output, |#start| ::weft::__private::run(#start, #ident))
            };
        }
    })
}

impl Options {
    /// The fields of the declaration that the options set.
    fn settings(&self) -> TokenStream {
        let mut settings = TokenStream::new();
        if let Some(workers) = &self.workers {
            settings.extend(
                quote_spanned!(workers.span()=> workers: ::weft::__private::workers(#workers),),
            );
        }
        if let Some(timeout) = &self.timeout {
            settings.extend(
                quote_spanned!(timeout.span()=> timeout: ::weft::__private::timeout(#timeout),),
            );
        }
        if let Some(take) = &self.take {
            settings.extend(quote_spanned!(take.span()=> take: ::weft::__private::take(#take),));
        }
        if let Some(retry) = &self.retry {
            settings.extend(quote_spanned! {retry.span()=>
                retry: ::core::option::Option::Some({
                    #[allow(unused_imports)]
                    use ::weft::retry::*;
                    #retry
                }),
            });
        }
        settings
    }
}

/// The context's type, without its reference, and the event's.
fn arguments(function: &ItemFn) -> Result<(&Type, &Type), Error> {
    let signature = &function.sig;
    if let Some(word) = &signature.asyncness {
        return Err(Error::new(
            word.span(),
            "a step is a plain function: what waits is written as a call",
        ));
    }
    if !signature.generics.params.is_empty() {
        return Err(Error::new_spanned(
            &signature.generics,
            "a step has no parameters: its types say what it takes and gives",
        ));
    }
    let wanted = "a step takes a context and an event: `fn step(ctx: &Context, ev: SomeEvent) -> Result<NextEvent>`";
    let arguments: Vec<&FnArg> = signature.inputs.iter().collect();
    if arguments.len() > 2 {
        return Err(Error::new(
            arguments[2].span(),
            "a step takes one thing besides its context: for one event of each type write a tuple, `(a, b): (A, B)`",
        ));
    }
    let [FnArg::Typed(context), FnArg::Typed(event)] = arguments[..] else {
        return Err(Error::new(signature.span(), wanted));
    };
    match &*context.ty {
        Type::Reference(reference) if reference.mutability.is_none() => {
            Ok((&reference.elem, &event.ty))
        }
        _ => Err(Error::new(context.ty.span(), wanted)),
    }
}
