//! Reads `#[weft(...)]` attributes and doc comments.

use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::meta::ParseNestedMeta;
use syn::{Attribute, Error, Expr, ExprLit, Lit, LitStr, Meta, Path, Result};

/// What `#[weft(...)]` says about a type.
#[derive(Default)]
pub struct Container {
    pub name: Option<LitStr>,
    pub extends: Option<Path>,
}

impl Container {
    pub fn read(attributes: &[Attribute]) -> Result<Self> {
        let mut container = Self::default();
        each_option(attributes, |option| {
            if option.path.is_ident("name") {
                return set_name(&mut container.name, option);
            } else if option.path.is_ident("extends") {
                container.extends = Some(option.value()?.parse()?);
                return Ok(());
            }
            Err(unknown(option, "name and extends"))
        })?;
        Ok(container)
    }
}

/// What `#[weft(...)]` says about a field or a variant.
#[derive(Default)]
pub struct Field {
    pub name: Option<LitStr>,
    pub default: Option<Fallback>,
    pub min: Option<Expr>,
    pub max: Option<Expr>,
    pub any: bool,
    pub extra: bool,
}

/// The value of an absent field.
pub enum Fallback {
    OfType,
    Value(Expr),
}

impl Field {
    pub fn read(attributes: &[Attribute]) -> Result<Self> {
        let mut field = Self::default();
        each_option(attributes, |option| {
            let path = &option.path;
            if path.is_ident("name") {
                return set_name(&mut field.name, option);
            } else if path.is_ident("default") {
                field.default = Some(if option.input.peek(syn::Token![=]) {
                    Fallback::Value(option.value()?.parse()?)
                } else {
                    Fallback::OfType
                });
            } else if path.is_ident("min") {
                field.min = Some(option.value()?.parse()?);
            } else if path.is_ident("max") {
                field.max = Some(option.value()?.parse()?);
            } else if path.is_ident("any") {
                field.any = true;
            } else if path.is_ident("extra") {
                field.extra = true;
            } else {
                return Err(unknown(option, "name, default, min, max, any and extra"));
            }
            Ok(())
        })?;
        Ok(field)
    }

    /// Refuses options that only a named field can have.
    pub fn only_name(&self, span: Span) -> Result<()> {
        if self.default.is_some()
            || self.min.is_some()
            || self.max.is_some()
            || self.any
            || self.extra
        {
            return Err(Error::new(
                span,
                "only fields with a name take options besides `name`",
            ));
        }
        Ok(())
    }
}

impl Fallback {
    /// The expression of the value. A literal text may stand for a `String`.
    pub fn expression(&self) -> TokenStream {
        match self {
            Fallback::OfType => quote!(::core::default::Default::default()),
            Fallback::Value(Expr::Lit(ExprLit {
                lit: Lit::Str(text),
                ..
            })) => {
                quote!(::core::convert::From::from(#text))
            }
            Fallback::Value(value) => quote!(#value),
        }
    }
}

fn each_option(
    attributes: &[Attribute],
    mut read: impl FnMut(&ParseNestedMeta) -> Result<()>,
) -> Result<()> {
    for attribute in attributes {
        if attribute.path().is_ident("weft") {
            attribute.parse_nested_meta(|option| read(&option))?;
        }
    }
    Ok(())
}

fn set_name(name: &mut Option<LitStr>, option: &ParseNestedMeta) -> Result<()> {
    let text: LitStr = option.value()?.parse()?;
    if text.value().is_empty() {
        return Err(Error::new(text.span(), "a name cannot be empty"));
    }
    *name = Some(text);
    Ok(())
}

fn unknown(option: &ParseNestedMeta, known: &str) -> Error {
    option.error(format!("unknown option: {known} can stand here"))
}

/// The first paragraph of a doc comment, in one line; "" without one.
pub fn description(attributes: &[Attribute]) -> String {
    let mut text = String::new();
    for attribute in attributes {
        let Meta::NameValue(pair) = &attribute.meta else {
            continue;
        };
        let Expr::Lit(ExprLit {
            lit: Lit::Str(line),
            ..
        }) = &pair.value
        else {
            continue;
        };
        if !pair.path.is_ident("doc") {
            continue;
        }
        for line in line.value().split('\n') {
            let line = line.trim().trim_start_matches('*').trim();
            match (line.is_empty(), text.is_empty()) {
                (true, true) => continue,
                (true, false) => return text,
                (false, true) => {}
                (false, false) => text.push(' '),
            }
            text.push_str(line);
        }
    }
    text
}
