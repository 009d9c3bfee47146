//! What a Rust file says, as plain data: functions and their lengths, calls and macros, paths into
//! its own crate, identifiers; each with its line and whether it is test code.

use anyhow::Result;
use proc_macro2::{Span, TokenStream, TokenTree};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

/// Something said at a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct At<T> {
    /// What.
    pub what: T,
    /// Line, from 1.
    pub line: usize,
    /// Whether only tests see it.
    pub in_test: bool,
}

/// A function with its length.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// Lines from `fn` to the closing brace.
    pub lines: usize,
}

/// What a Rust file says.
#[derive(Debug, Default)]
pub struct Facts {
    /// Functions with a body.
    pub functions: Vec<At<Function>>,
    /// Method calls that may panic: `unwrap`, `expect` with a message.
    pub calls: Vec<At<String>>,
    /// Macros by name.
    pub macros: Vec<At<String>>,
    /// Paths into the same crate, from its root: `["mapping", "ram"]`.
    pub crate_paths: Vec<At<Vec<String>>>,
    /// Identifiers outside documentation.
    pub idents: Vec<At<String>>,
    /// First segments of paths with at least two, as written: the `ram` of `ram::Table`.
    pub path_heads: Vec<At<String>>,
    /// Modules declared without a body: `mod ram;`.
    pub modules: Vec<String>,
    /// Those of them that only tests see.
    pub test_modules: Vec<String>,
}

impl Facts {
    /// Makes everything in the file test code.
    pub fn mark_all_as_test(&mut self) {
        self.functions.iter_mut().for_each(|at| at.in_test = true);
        self.crate_paths.iter_mut().for_each(|at| at.in_test = true);
        for list in [&mut self.calls, &mut self.macros, &mut self.idents, &mut self.path_heads] {
            list.iter_mut().for_each(|at| at.in_test = true);
        }
    }
}

/// Reads the facts of a file; its path says where in its crate it stands.
pub fn of(path: &str, text: &str) -> Result<Facts> {
    let file = syn::parse_file(text)?;
    let in_test = path.contains("/tests/") || path.contains("/benches/");
    let mut reader = Reader { facts: Facts::default(), in_test, module: module_path(path) };
    reader.visit_file(&file);
    Ok(reader.facts)
}

/// The module that a file is, from its crate's root.
fn module_path(path: &str) -> Vec<String> {
    let inside = path.split_once("/src/").map_or(path, |(_, inside)| inside);
    let mut parts: Vec<String> = inside.trim_end_matches(".rs").split('/').map(str::to_owned).collect();
    if parts.last().is_some_and(|last| ["mod", "lib", "main"].contains(&last.as_str())) {
        parts.pop();
    }
    parts
}

struct Reader {
    facts: Facts,
    in_test: bool,
    module: Vec<String>,
}

impl Reader {
    fn at<T>(&self, what: T, span: Span) -> At<T> {
        At { what, line: span.start().line, in_test: self.in_test }
    }

    /// Runs `inner`, as test code if the attributes say so.
    fn within(&mut self, attributes: &[syn::Attribute], inner: impl FnOnce(&mut Self)) {
        let before = self.in_test;
        self.in_test |= attributes.iter().any(is_test);
        inner(self);
        self.in_test = before;
    }

    fn function(&mut self, name: &syn::Ident, start: Span, end: Span) {
        let lines = end.end().line + 1 - start.start().line;
        let at = self.at(Function { name: name.to_string(), lines }, start);
        self.facts.functions.push(at);
    }

    /// Notes a path, resolving `crate`, `self` and `super`.
    fn path(&mut self, segments: &[String], span: Span) {
        if segments.len() > 1 {
            let at = self.at(segments[0].clone(), span);
            self.facts.path_heads.push(at);
        }
        if let Some(resolved) = resolve(&self.module, segments) {
            let at = self.at(resolved, span);
            self.facts.crate_paths.push(at);
        }
    }

    fn use_tree(&mut self, tree: &syn::UseTree, prefix: &mut Vec<String>) {
        match tree {
            syn::UseTree::Path(path) => {
                prefix.push(path.ident.to_string());
                self.use_tree(&path.tree, prefix);
                prefix.pop();
            }
            syn::UseTree::Group(group) => group.items.iter().for_each(|item| self.use_tree(item, prefix)),
            syn::UseTree::Name(syn::UseName { ident }) | syn::UseTree::Rename(syn::UseRename { ident, .. }) => {
                prefix.push(ident.to_string());
                self.path(prefix, ident.span());
                prefix.pop();
            }
            syn::UseTree::Glob(glob) => self.path(prefix, glob.span()),
        }
    }

    /// Macro bodies are tokens: identifiers, paths and calls are found by their neighbours.
    fn tokens(&mut self, stream: TokenStream) {
        let tokens: Vec<TokenTree> = stream.into_iter().collect();
        let mut path: Vec<String> = Vec::new();
        for (i, token) in tokens.iter().enumerate() {
            match token {
                TokenTree::Group(group) => self.tokens(group.stream()),
                TokenTree::Ident(ident) => {
                    let name = ident.to_string();
                    if name == "unwrap" && i > 0 && is_punct(&tokens[i - 1], '.') {
                        let at = self.at(name.clone(), ident.span());
                        self.facts.calls.push(at);
                    }
                    let at = self.at(name.clone(), ident.span());
                    self.facts.idents.push(at);
                    path.push(name);
                    if !is_path_separator(&tokens[i + 1..]) {
                        self.path(&path, ident.span());
                        path.clear();
                    }
                }
                TokenTree::Punct(punct) if punct.as_char() == ':' => {}
                _ => path.clear(),
            }
        }
    }
}

fn is_punct(token: &TokenTree, wanted: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == wanted)
}

fn is_path_separator(tokens: &[TokenTree]) -> bool {
    tokens.len() > 2
        && is_punct(&tokens[0], ':')
        && is_punct(&tokens[1], ':')
        && matches!(tokens[2], TokenTree::Ident(_))
}

/// `#[test]`, `#[cfg(test)]`, `#[cfg(any(test, …))]` do not count alike: the last is seen without
/// tests too.
pub fn is_test(attribute: &syn::Attribute) -> bool {
    if attribute.path().is_ident("test") {
        return true;
    }
    attribute.path().is_ident("cfg") && attribute.parse_args::<syn::Path>().is_ok_and(|path| path.is_ident("test"))
}

/// The path from the crate's root, if it is one into the same crate.
fn resolve(module: &[String], segments: &[String]) -> Option<Vec<String>> {
    let mut base = module.to_vec();
    let mut rest = segments;
    match rest.first()?.as_str() {
        "crate" => base.clear(),
        "self" => {}
        "super" => {
            base.pop();
        }
        _ => return None,
    }
    rest = &rest[1..];
    while rest.first().is_some_and(|segment| segment == "super") {
        base.pop();
        rest = &rest[1..];
    }
    base.extend_from_slice(rest);
    Some(base)
}

impl<'ast> Visit<'ast> for Reader {
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if item.content.is_none() {
            self.facts.modules.push(item.ident.to_string());
            if item.attrs.iter().any(is_test) {
                self.facts.test_modules.push(item.ident.to_string());
            }
            return;
        }
        self.module.push(item.ident.to_string());
        self.within(&item.attrs, |reader| visit::visit_item_mod(reader, item));
        self.module.pop();
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.within(&item.attrs, |reader| {
            reader.function(&item.sig.ident, item.sig.span(), item.block.span());
            visit::visit_item_fn(reader, item);
        });
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.within(&item.attrs, |reader| {
            reader.function(&item.sig.ident, item.sig.span(), item.block.span());
            visit::visit_impl_item_fn(reader, item);
        });
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        if let Some(block) = &item.default {
            self.function(&item.sig.ident, item.sig.span(), block.span());
        }
        visit::visit_trait_item_fn(self, item);
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        self.within(&item.attrs, |reader| reader.use_tree(&item.tree, &mut Vec::new()));
    }

    fn visit_expr_method_call(&mut self, call: &'ast syn::ExprMethodCall) {
        let name = call.method.to_string();
        let message = matches!(
            call.args.first(),
            Some(syn::Expr::Lit(literal)) if matches!(literal.lit, syn::Lit::Str(_))
        );
        if (name == "unwrap" && call.args.is_empty()) || (name == "expect" && message) {
            let at = self.at(name, call.method.span());
            self.facts.calls.push(at);
        }
        visit::visit_expr_method_call(self, call);
    }

    fn visit_macro(&mut self, item: &'ast syn::Macro) {
        if let Some(last) = item.path.segments.last() {
            let at = self.at(last.ident.to_string(), last.span());
            self.facts.macros.push(at);
        }
        self.tokens(item.tokens.clone());
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let segments: Vec<String> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        self.path(&segments, path.span());
        visit::visit_path(self, path);
    }

    fn visit_attribute(&mut self, _: &'ast syn::Attribute) {}

    fn visit_ident(&mut self, ident: &'ast syn::Ident) {
        let at = self.at(ident.to_string(), ident.span());
        self.facts.idents.push(at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(path: &str, text: &str) -> Vec<String> {
        of(path, text).unwrap().crate_paths.into_iter().map(|at| at.what.join("::")).collect()
    }

    #[test]
    fn function_lengths_leave_documentation_out() {
        let facts = of("a.rs", "/// Doc.\n/// More.\n#[inline]\nfn f() {\n    g();\n}\n").unwrap();
        assert_eq!(facts.functions[0].what, Function { name: "f".into(), lines: 3 });
        assert_eq!(facts.functions[0].line, 4);
    }

    #[test]
    fn paths_into_the_crate_are_resolved() {
        let file = "crates/ftl/src/mapping/ram.rs";
        assert_eq!(paths(file, "use crate::{engine::page, flash};"), ["engine::page", "flash"]);
        assert_eq!(paths(file, "use super::super::engine::X;"), ["engine::X"]);
        assert_eq!(paths(file, "fn f() { crate::victim::pick(); }"), ["victim::pick"]);
        assert_eq!(paths(file, "fn f() { vec![crate::victim::pick()]; }"), ["victim::pick"]);
        assert_eq!(paths(file, "use std::fmt;"), [""; 0]);
    }

    #[test]
    fn test_code_is_told_apart() {
        let text = "fn a() { x.unwrap(); }\n#[cfg(test)]\nmod tests { #[test] fn b() { x.unwrap(); } }";
        let in_test: Vec<bool> = of("a.rs", text).unwrap().calls.iter().map(|at| at.in_test).collect();
        assert_eq!(in_test, [false, true]);
    }

    #[test]
    fn calls_in_macros_are_seen_and_a_parsers_expect_is_not_one() {
        let text = "fn a() { println!(\"{}\", x.unwrap()); parser.expect(Token::Comma); y.expect(\"why\"); }";
        let calls: Vec<String> = of("a.rs", text).unwrap().calls.into_iter().map(|at| at.what).collect();
        assert_eq!(calls, ["unwrap", "expect"]);
    }
}
