//! `#[step(...)]`.

use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::token::Bracket;
use syn::{
    Error, Expr, FnArg, Ident, ItemFn, LitBool, LitStr, Path, ReturnType, Token, Type, bracketed,
};

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
    waits: Vec<Path>,
    catches: Option<Catches>,
    max_recoveries: Option<Expr>,
    atomic: bool,
    accept_subtypes: bool,
}

/// Whose failures a step catches.
enum Catches {
    All(Span),
    Of(Span, Vec<Caught>),
}

/// A step by its function, or a name in quotes. `cancelled` and `timeout` are how a
/// run ends; no step has one of these names.
enum Caught {
    Step(Path),
    Name(LitStr),
}

impl Parse for Caught {
    fn parse(input: ParseStream) -> syn::Result<Self> {
        if input.peek(LitStr) {
            return Ok(Caught::Name(input.parse()?));
        }
        let path: Path = input.parse()?;
        Ok(match path.get_ident() {
            Some(word) if word == "cancelled" || word == "timeout" => {
                Caught::Name(LitStr::new(&word.to_string(), word.span()))
            }
            _ => Caught::Step(path),
        })
    }
}

impl Parse for Catches {
    fn parse(input: ParseStream) -> syn::Result<Self> {
        let span = input.span();
        if !input.peek(Bracket) {
            let word: Ident = input.parse()?;
            if word == "all" {
                return Ok(Catches::All(span));
            }
            return Err(Error::new(
                span,
                "what a step catches is a list of steps, `catches = [work]`, or `catches = all`",
            ));
        }
        Ok(Catches::Of(span, list(input)?))
    }
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
            if let Some(flag) = options.flag(&key) {
                *flag = is_set(input)?;
                next(&mut seen, key, input)?;
                continue;
            }
            let word = known(&key, &OPTIONS)?;
            input.parse::<Token![=]>()?;
            match word {
                "name" => options.name = Some(input.parse()?),
                "workers" => options.workers = Some(input.parse()?),
                "timeout" => options.timeout = Some(input.parse()?),
                "retry" => options.retry = Some(input.parse()?),
                "take" => options.take = Some(input.parse()?),
                "emits" => options.emits = list(input)?,
                "streams" => options.streams = list(input)?,
                "waits" => options.waits = list(input)?,
                "catches" => options.catches = Some(input.parse()?),
                _ => options.max_recoveries = Some(input.parse()?),
            }
            next(&mut seen, key, input)?;
        }
        options.check()?;
        Ok(options)
    }
}

const OPTIONS: [&str; 12] = [
    "name",
    "workers",
    "timeout",
    "retry",
    "take",
    "emits",
    "streams",
    "waits",
    "catches",
    "max_recoveries",
    "atomic",
    "accept_subtypes",
];

/// The option with a name.
pub fn known(key: &Ident, options: &[&'static str]) -> syn::Result<&'static str> {
    options.iter().find(|o| key == **o).copied().ok_or_else(|| {
        let all = options.join(", ");
        Error::new(
            key.span(),
            format!("unknown option: one of {all} can stand here"),
        )
    })
}

/// Continues with the next option.
fn next(seen: &mut Vec<Ident>, key: Ident, input: ParseStream) -> syn::Result<()> {
    seen.push(key);
    if !input.is_empty() {
        input.parse::<Token![,]>()?;
    }
    Ok(())
}

/// The value of an option that is a word on its own, or `= true`.
pub fn is_set(input: ParseStream) -> syn::Result<bool> {
    if !input.peek(Token![=]) {
        return Ok(true);
    }
    input.parse::<Token![=]>()?;
    Ok(input.parse::<LitBool>()?.value)
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
    let (emits, streams) = (&options.emits, &options.streams);
    // Errors about the types point at the types.
    let input = quote_spanned!(takes.span()=> <#takes as ::weft::Input>::DECL);
    let output = quote_spanned!(gives.span()=> <<#gives as ::weft::__private::Returns>::Output as ::weft::Output>::DECL);
    let settings = options.settings();
    let extras = options.extras(&input);
    // A name in the macro's own scope, because the function may be called `start`.
    let start = Ident::new("start", Span::mixed_site());
    let run = if options.accept_subtypes {
        quote!(::weft::__private::run(::weft::__private::rename_trigger(#start)?, #ident))
    } else {
        quote!(::weft::__private::run(#start, #ident))
    };
    Ok(quote! {
        #function

        // A type with the function's name. Types and functions have separate name spaces, and
        // importing the function also imports the type.
        #[doc(hidden)]
        #[allow(non_camel_case_types)]
        #visibility enum #ident {}

        #[automatically_derived]
        impl ::weft::__private::Step for #ident {
            type State = <#state as ::weft::__private::ContextType>::State;

            const NAME: &'static str = #name;

            const DECL: ::weft::__private::StepDecl = ::weft::__private::StepDecl {
                description: #description,
                emits: &[#(<#emits as ::weft::Event>::TYPE),*],
                streams: &[#(<#streams as ::weft::Event>::TYPE),*],
                #settings
                #extras
                ..::weft::__private::StepDecl::new(#name, #input, #output, |#start| #run)
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
        settings
    }

    /// The field of the declaration for rarely used options.
    fn extras(&self, input: &TokenStream) -> Option<TokenStream> {
        let mut fields = TokenStream::new();
        if let Some(retry) = &self.retry {
            fields.extend(quote_spanned! {retry.span()=>
                retry: ::core::option::Option::Some({
                    const POLICY: &::weft::retry::Retry = {
                        #[allow(unused_imports)]
                        use ::weft::retry::*;
                        &#retry
                    };
                    || POLICY.manifest()
                }),
            });
        }
        if !self.waits.is_empty() {
            let waits = &self.waits;
            fields.extend(quote!(waits: &[#(<#waits as ::weft::Event>::TYPE),*],));
        }
        fields.extend(self.catches.as_ref().map(|c| c.expand(input)));
        if let Some(n) = &self.max_recoveries {
            fields.extend(
                quote_spanned!(n.span()=> max_recoveries: ::core::option::Option::Some(#n),),
            );
        }
        if self.atomic {
            fields.extend(quote!(atomic: true,));
        }
        if self.accept_subtypes {
            fields.extend(quote!(rename: ::core::option::Option::Some(::weft::__private::rename),));
        }
        if fields.is_empty() {
            return None;
        }
        Some(quote! {
            extras: ::core::option::Option::Some(&::weft::__private::Extras {
                #fields
                ..::weft::__private::Extras::NONE
            }),
        })
    }

    /// The option that is a word on its own.
    fn flag(&mut self, key: &Ident) -> Option<&mut bool> {
        if key == "atomic" {
            Some(&mut self.atomic)
        } else if key == "accept_subtypes" {
            Some(&mut self.accept_subtypes)
        } else {
            None
        }
    }

    /// Refuses options that cannot be combined.
    fn check(&self) -> syn::Result<()> {
        if let (true, Some(first)) = (self.atomic, self.waits.first()) {
            return Err(Error::new(
                first.span(),
                "an atomic step cannot wait: drop `atomic`, or let another step wait",
            ));
        }
        if let (None, Some(n)) = (&self.catches, &self.max_recoveries) {
            return Err(Error::new(
                n.span(),
                "max_recoveries is for a step that catches: `catches = [work]`",
            ));
        }
        Ok(())
    }
}

impl Catches {
    fn expand(&self, input: &TokenStream) -> TokenStream {
        match self {
            Catches::All(span) => {
                quote_spanned!(*span=> catches: ::weft::__private::Catches::all(#input),)
            }
            Catches::Of(span, list) => {
                let names = list.iter().map(|caught| match caught {
                    Caught::Name(name) => quote!(#name),
                    Caught::Step(step) => {
                        quote_spanned!(step.span()=> <#step as ::weft::__private::Step>::NAME)
                    }
                });
                quote_spanned!(*span=> catches: ::weft::__private::Catches::steps(&[#(#names),*], #input),)
            }
        }
    }
}

/// The type of the context, without its reference, and the type of the event.
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
