//! `#[derive(Data)]`: serde's two traits and the schema.

use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote};
use syn::ext::IdentExt;
use syn::{Data, DataEnum, DeriveInput, Error, Fields, FieldsNamed, FieldsUnnamed, Ident, Type};

use crate::Expansion;
use crate::attributes::{self, Fallback};

/// A named field.
struct Field {
    ident: Ident,
    ty: Type,
    key: String,
    description: String,
    options: attributes::Field,
}

pub fn expand(input: &DeriveInput) -> Expansion {
    plain(input)?;
    let name = &input.ident;
    match &input.data {
        Data::Struct(data) => match &data.fields {
            Fields::Named(fields) => map(name, fields),
            Fields::Unit => Ok(write_map(name, &[], &quote!(#name))),
            Fields::Unnamed(fields) => tuple(name, fields),
        },
        Data::Enum(data) => choice(name, data),
        Data::Union(_) => Err(Error::new(
            name.span(),
            "a union cannot be sent: use a struct",
        )),
    }
}

/// Refuses types with parameters, because they would not have one name and one shape.
pub fn plain(input: &DeriveInput) -> Result<(), Error> {
    if input.generics.params.is_empty() {
        return Ok(());
    }
    Err(Error::new_spanned(
        &input.generics,
        "a type with parameters has no one schema: write it out, with owned fields (String, not &str)",
    ))
}

/// A struct that is a map.
fn map(name: &Ident, fields: &FieldsNamed) -> Expansion {
    let mut list = Vec::new();
    for field in &fields.named {
        list.push(Field::read(field)?);
    }
    // The order of keys on the wire: shorter ones first.
    list.sort_by(|a, b| (a.key.len(), &a.key).cmp(&(b.key.len(), &b.key)));
    for pair in list.windows(2) {
        if pair[0].key == pair[1].key && !pair[0].options.extra && !pair[1].options.extra {
            return Err(Error::new(
                pair[1].ident.span(),
                format!("another field has the key \"{}\" too", pair[1].key),
            ));
        }
    }
    if let Some(second) = list.iter().filter(|f| f.options.extra).nth(1) {
        return Err(Error::new(
            second.ident.span(),
            "a struct has one field for extra keys",
        ));
    }
    let sources = list.iter().enumerate().map(|(i, field)| field.build(i));
    let build = quote!(#name { #(#sources),* });
    Ok(write_map(name, &list, &build))
}

impl Field {
    fn read(field: &syn::Field) -> Result<Self, Error> {
        let ident = field.ident.clone().expect("a named field");
        let options = attributes::Field::read(&field.attrs)?;
        let key = match &options.name {
            Some(name) => name.value(),
            None => ident.unraw().to_string(),
        };
        if options.any && (options.min.is_some() || options.max.is_some()) {
            return Err(Error::new(
                ident.span(),
                "the schema of an `any` field says nothing, so it has no bounds: drop min and max",
            ));
        }
        Ok(Field {
            ty: field.ty.clone(),
            description: attributes::description(&field.attrs),
            ident,
            key,
            options,
        })
    }

    /// The variable that holds the field while it is read.
    fn variable(index: usize) -> Ident {
        format_ident!("field_{index}")
    }

    fn fallback(&self) -> Option<TokenStream> {
        self.options.default.as_ref().map(Fallback::expression)
    }

    /// The type that is read; null stands for an absent value.
    fn read_as(&self) -> TokenStream {
        let ty = &self.ty;
        match self.options.default {
            Some(_) => quote!(::core::option::Option<#ty>),
            None => quote!(#ty),
        }
    }

    /// `field: value`, from the variable that was read.
    fn build(&self, index: usize) -> TokenStream {
        let (ident, key, variable) = (&self.ident, &self.key, Self::variable(index));
        let value = if self.options.extra {
            quote!(#variable)
        } else if let Some(fallback) = self.fallback() {
            quote!(match #variable { Some(Some(value)) => value, _ => #fallback })
        } else if self.options.any {
            quote!(::weft::__private::required(#variable, #key)?)
        } else {
            quote!(::weft::__private::required_data(#variable, #key)?)
        };
        quote!(#ident: #value)
    }

    /// Whether the field at `place` is written.
    fn written(&self) -> TokenStream {
        let ident = &self.ident;
        if self.options.any {
            quote!(true)
        } else {
            quote!(!::weft::Data::is_absent(&self.#ident))
        }
    }

    /// The statement that adds the field to a schema.
    fn schema(&self) -> TokenStream {
        let (ty, key) = (&self.ty, &self.key);
        let start = if self.options.any {
            quote!(object.any_field(#key))
        } else {
            quote!(object.field::<#ty>(#key))
        };
        let mut steps = TokenStream::new();
        if let Some(fallback) = self.fallback() {
            steps.extend(quote!(.default::<#ty>(&#fallback)));
        }
        if !self.description.is_empty() {
            let description = &self.description;
            steps.extend(quote!(.set("description", #description)));
        }
        if let Some(min) = &self.options.min {
            steps.extend(quote!(.bound("minimum", #min)));
        }
        if let Some(max) = &self.options.max {
            steps.extend(quote!(.bound("maximum", #max)));
        }
        quote!(#start #steps;)
    }
}

/// All impls for a struct that is a map. `build` makes the struct from variables.
fn write_map(name: &Ident, all: &[Field], build: &TokenStream) -> TokenStream {
    let text = name.to_string();
    let serialize = serialize_map(&text, all);
    let visitor = visit_map(&text, name, all, build);
    let keys = fields(all).map(|(_, f)| &f.key);
    let schemas = fields(all).map(|(_, f)| f.schema());
    quote! {
        const _: () = {
            use ::weft::__private::serde as __serde;

            #[automatically_derived]
            impl __serde::Serialize for #name {
                fn serialize<__S: __serde::Serializer>(&self, serializer: __S) -> ::core::result::Result<__S::Ok, __S::Error> {
                    #serialize
                }
            }

            #[automatically_derived]
            impl<'de> __serde::Deserialize<'de> for #name {
                fn deserialize<__D: __serde::Deserializer<'de>>(deserializer: __D) -> ::core::result::Result<Self, __D::Error> {
                    const __KEYS: &[&str] = &[#(#keys),*];
                    #visitor
                    deserializer.deserialize_struct(#text, __KEYS, __Visitor)
                }
            }

            #[automatically_derived]
            impl ::weft::Data for #name {
                fn schema(open: &mut ::weft::Open) -> ::weft::Value {
                    open.object(::core::any::TypeId::of::<Self>(), |object| { let _ = &object; #(#schemas)* })
                }
            }
        };
    }
}

/// The fields that have a key, and their places in `all`.
fn fields(all: &[Field]) -> impl Iterator<Item = (usize, &Field)> {
    all.iter().enumerate().filter(|(_, f)| !f.options.extra)
}

fn serialize_map(text: &str, all: &[Field]) -> TokenStream {
    let counts = fields(all).map(|(_, f)| {
        let written = f.written();
        quote!(+ usize::from(#written))
    });
    let count = quote!(0 #(#counts)*);
    if let Some(extra) = all.iter().find(|f| f.options.extra) {
        let entries = fields(all).map(|(_, f)| {
            let (ident, key, written) = (&f.ident, &f.key, f.written());
            quote!(if #written { __serde::ser::SerializeMap::serialize_entry(&mut map, #key, &self.#ident)?; })
        });
        let extra = &extra.ident;
        return quote! {
            let mut map = __serde::Serializer::serialize_map(serializer, ::core::option::Option::Some(#count + self.#extra.len()))?;
            #(#entries)*
            for (key, value) in &self.#extra {
                __serde::ser::SerializeMap::serialize_entry(&mut map, key, value)?;
            }
            __serde::ser::SerializeMap::end(map)
        };
    }
    let entries = fields(all).map(|(_, f)| {
        let (ident, key, written) = (&f.ident, &f.key, f.written());
        quote! {
            if #written {
                __serde::ser::SerializeStruct::serialize_field(&mut map, #key, &self.#ident)?;
            } else {
                __serde::ser::SerializeStruct::skip_field(&mut map, #key)?;
            }
        }
    });
    quote! {
        #[allow(unused_mut)]
        let mut map = __serde::Serializer::serialize_struct(serializer, #text, #count)?;
        #(#entries)*
        __serde::ser::SerializeStruct::end(map)
    }
}

fn visit_map(text: &str, name: &Ident, all: &[Field], build: &TokenStream) -> TokenStream {
    let expected = format!("a map: {text}");
    let variables = all.iter().enumerate().map(|(i, f)| {
        let (variable, ty, read_as) = (Field::variable(i), &f.ty, f.read_as());
        if f.options.extra {
            quote!(let mut #variable: #ty = ::core::default::Default::default();)
        } else {
            quote!(let mut #variable: ::core::option::Option<#read_as> = ::core::option::Option::None;)
        }
    });
    let arms = fields(all).enumerate().map(|(at, (i, f))| {
        let (variable, key) = (Field::variable(i), &f.key);
        quote! {
            __Key::Field(#at) => if #variable.replace(map.next_value()?).is_some() {
                return Err(__serde::de::Error::duplicate_field(#key));
            },
        }
    });
    let (seed, other) = match all.iter().position(|f| f.options.extra) {
        Some(i) => {
            let extra = Field::variable(i);
            (
                quote!(keeping),
                quote!(__Key::Other(key) => { #extra.insert(key, map.next_value()?); }),
            )
        }
        None => (quote!(dropping), TokenStream::new()),
    };
    quote! {
        struct __Visitor;
        impl<'de> __serde::de::Visitor<'de> for __Visitor {
            type Value = #name;
            fn expecting(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                f.write_str(#expected)
            }
            fn visit_map<__A: __serde::de::MapAccess<'de>>(self, mut map: __A) -> ::core::result::Result<#name, __A::Error> {
                use ::weft::__private::{Key as __Key, Keys as __Keys};
                #(#variables)*
                while let Some(key) = map.next_key_seed(__Keys::#seed(__KEYS))? {
                    match key {
                        #(#arms)*
                        #other
                        #[allow(unreachable_patterns)]
                        _ => { map.next_value::<__serde::de::IgnoredAny>()?; }
                    }
                }
                Ok(#build)
            }
        }
    }
}

/// A struct that is a list, or for a single field the field itself.
fn tuple(name: &Ident, fields: &FieldsUnnamed) -> Expansion {
    let mut types = Vec::new();
    for field in &fields.unnamed {
        let options = attributes::Field::read(&field.attrs)?;
        options.only_name(name.span())?;
        if let Some(text) = options.name {
            return Err(Error::new(
                text.span(),
                "the parts of a list have no names: drop the option",
            ));
        }
        types.push(&field.ty);
    }
    let (shape, parts) = match types.len() {
        0 => {
            return Err(Error::new(
                name.span(),
                "nothing to send: use `struct Name;`",
            ));
        }
        1 => (quote!(#(#types)*), quote!(&self.0)),
        n => {
            let indices = (0..n).map(syn::Index::from);
            (quote!((#(#types),*)), quote!(&(#(&self.#indices),*)))
        }
    };
    let build = match types.len() {
        1 => quote!(#name(parts)),
        n => {
            let indices = (0..n).map(syn::Index::from);
            quote!(#name(#(parts.#indices),*))
        }
    };
    Ok(quote! {
        const _: () = {
            use ::weft::__private::serde as __serde;

            #[automatically_derived]
            impl __serde::Serialize for #name {
                fn serialize<__S: __serde::Serializer>(&self, serializer: __S) -> ::core::result::Result<__S::Ok, __S::Error> {
                    __serde::Serialize::serialize(#parts, serializer)
                }
            }

            #[automatically_derived]
            impl<'de> __serde::Deserialize<'de> for #name {
                fn deserialize<__D: __serde::Deserializer<'de>>(deserializer: __D) -> ::core::result::Result<Self, __D::Error> {
                    let parts = <#shape as __serde::Deserialize>::deserialize(deserializer)?;
                    Ok(#build)
                }
            }

            #[automatically_derived]
            impl ::weft::Data for #name {
                fn schema(open: &mut ::weft::Open) -> ::weft::Value {
                    <#shape as ::weft::Data>::schema(open)
                }
            }
        };
    })
}

/// An enum that is a text.
fn choice(name: &Ident, data: &DataEnum) -> Expansion {
    let mut variants = Vec::new();
    let mut names = Vec::new();
    for variant in &data.variants {
        if !matches!(variant.fields, Fields::Unit) {
            return Err(Error::new_spanned(
                variant,
                "an enum with data has no one schema: use a struct with optional fields, \
                 or derive Events if the variants are events",
            ));
        }
        let options = attributes::Field::read(&variant.attrs)?;
        options.only_name(variant.ident.span())?;
        names.push(match options.name {
            Some(name) => name.value(),
            None => snake_case(&variant.ident.unraw().to_string()),
        });
        variants.push(&variant.ident);
    }
    if variants.is_empty() {
        return Err(Error::new(
            Span::call_site(),
            "an enum without variants has no value",
        ));
    }
    let expected = format!("a text: {name}");
    Ok(quote! {
        const _: () = {
            use ::weft::__private::serde as __serde;
            const __NAMES: &[&str] = &[#(#names),*];

            #[automatically_derived]
            impl __serde::Serialize for #name {
                fn serialize<__S: __serde::Serializer>(&self, serializer: __S) -> ::core::result::Result<__S::Ok, __S::Error> {
                    serializer.serialize_str(match self { #(Self::#variants => #names),* })
                }
            }

            #[automatically_derived]
            impl<'de> __serde::Deserialize<'de> for #name {
                fn deserialize<__D: __serde::Deserializer<'de>>(deserializer: __D) -> ::core::result::Result<Self, __D::Error> {
                    struct __Visitor;
                    impl __serde::de::Visitor<'_> for __Visitor {
                        type Value = #name;
                        fn expecting(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                            f.write_str(#expected)
                        }
                        fn visit_str<__E: __serde::de::Error>(self, text: &str) -> ::core::result::Result<#name, __E> {
                            match text {
                                #(#names => Ok(#name::#variants),)*
                                _ => Err(__E::unknown_variant(text, __NAMES)),
                            }
                        }
                    }
                    deserializer.deserialize_str(__Visitor)
                }
            }

            #[automatically_derived]
            impl ::weft::Data for #name {
                fn schema(_: &mut ::weft::Open) -> ::weft::Value {
                    ::weft::__private::enum_schema(__NAMES)
                }
            }
        };
    })
}

/// `NotYet` becomes `not_yet`, `HTTPError` becomes `http_error`.
fn snake_case(name: &str) -> String {
    let chars: Vec<char> = name.chars().collect();
    let mut out = String::with_capacity(name.len() + 4);
    for (i, &c) in chars.iter().enumerate() {
        if c.is_uppercase() && i > 0 {
            let before = chars[i - 1];
            let ends_word =
                before.is_uppercase() && chars.get(i + 1).is_some_and(|n| n.is_lowercase());
            if before != '_' && (!before.is_uppercase() || ends_word) {
                out.push('_');
            }
        }
        out.extend(c.to_lowercase());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::snake_case;

    #[test]
    fn snake_case_of_names() {
        for (name, want) in [
            ("Start", "start"),
            ("NotYet", "not_yet"),
            ("HTTPError", "http_error"),
            ("Go_On", "go_on"),
            ("A", "a"),
            ("V2Final", "v2_final"),
        ] {
            assert_eq!(snake_case(name), want);
        }
    }
}
