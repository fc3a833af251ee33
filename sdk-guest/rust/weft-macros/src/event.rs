//! The derives of events, of choices between events, and of the state.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Data, DeriveInput, Error, Fields};

use crate::attributes::{self, Container};
use crate::{Expansion, data};

/// The kind of an event type.
#[derive(Clone, Copy)]
pub enum Kind {
    Plain,
    Start,
    Stop,
    InputRequired,
    HumanResponse,
}

impl Kind {
    fn variant(self) -> TokenStream {
        match self {
            Kind::Plain => quote!(Plain),
            Kind::Start => quote!(Start),
            Kind::Stop => quote!(Stop),
            Kind::InputRequired => quote!(InputRequired),
            Kind::HumanResponse => quote!(HumanResponse),
        }
    }
}

pub fn expand(input: &DeriveInput, kind: Kind) -> Expansion {
    require_map(input, "an event is a map")?;
    let data = data::expand(input)?;
    let ident = &input.ident;
    let container = Container::read(&input.attrs)?;
    let name = name_of(&container, input);
    let extends = container
        .extends
        .map(|base| quote_spanned!(base.span()=> .extends(<#base as ::weft::Event>::TYPE)));
    let description = attributes::description(&input.attrs);
    let kind = kind.variant();
    Ok(quote! {
        #data
        #[automatically_derived]
        impl ::weft::Event for #ident {
            const TYPE: &'static ::weft::EventType = &::weft::__private::event_type::<#ident>(
                #name, ::weft::EventKind::#kind, #description,
            ) #extends;
        }
    })
}

pub fn expand_state(input: &DeriveInput) -> Expansion {
    require_map(input, "the state is a map")?;
    let data = data::expand(input)?;
    let ident = &input.ident;
    let container = Container::read(&input.attrs)?;
    if let Some(base) = &container.extends {
        return Err(Error::new(
            base.span(),
            "only an event extends another: drop the option",
        ));
    }
    let name = name_of(&container, input);
    Ok(quote! {
        #data
        #[automatically_derived]
        impl ::weft::State for #ident {
            const NAME: &'static str = #name;
        }
        #[automatically_derived]
        impl ::weft::__private::Fits<#ident> for #ident {}
    })
}

fn require_map(input: &DeriveInput, what: &str) -> Result<(), Error> {
    match &input.data {
        Data::Struct(data) if !matches!(data.fields, Fields::Unnamed(_)) => Ok(()),
        _ => Err(Error::new(
            input.ident.span(),
            format!("{what}: use a struct with named fields, or `struct Name;`"),
        )),
    }
}

fn name_of(container: &Container, input: &DeriveInput) -> String {
    match &container.name {
        Some(name) => name.value(),
        None => input.ident.to_string(),
    }
}

/// `#[derive(Events)]`.
pub fn expand_choice(input: &DeriveInput) -> Expansion {
    data::plain(input)?;
    let ident = &input.ident;
    let Data::Enum(choice) = &input.data else {
        return Err(Error::new(
            ident.span(),
            "Events is for an enum of events: for a struct derive Event",
        ));
    };
    let mut variants = Vec::new();
    let mut types = Vec::new();
    for variant in &choice.variants {
        match &variant.fields {
            Fields::Unnamed(fields) if fields.unnamed.len() == 1 => {
                types.push(&fields.unnamed[0].ty)
            }
            _ => {
                return Err(Error::new_spanned(
                    variant,
                    "each variant holds one event: `Name(NameEvent)`",
                ));
            }
        }
        variants.push(&variant.ident);
    }
    if variants.is_empty() {
        return Err(Error::new(ident.span(), "there is no event to choose"));
    }
    Ok(quote! {
        #[automatically_derived]
        impl ::weft::EventSet for #ident {
            const TYPES: &'static [&'static ::weft::EventType] = &[#(<#types as ::weft::Event>::TYPE),*];

            fn read(
                name: &str,
                body: &mut ::weft::__private::Decoder<'_>,
            ) -> ::core::result::Result<::core::option::Option<Self>, ::weft::__private::CborError> {
                #(
                    if let Some(event) = <#types as ::weft::EventSet>::read(name, body)? {
                        return Ok(Some(Self::#variants(event)));
                    }
                )*
                Ok(None)
            }

            fn write(
                &self,
                encoder: &mut ::weft::__private::Encoder,
            ) -> ::core::result::Result<(), ::weft::__private::CborError> {
                match self {
                    #(Self::#variants(event) => ::weft::EventSet::write(event, encoder),)*
                }
            }
        }
    })
}
