//! The operators: what becomes of which piece of syntax.
//!
//! Left alone: tests, constants, patterns, types, attributes, the insides of macros, and functions
//! that are `const` without taking `self`.

use super::source::{Form, Mutant, Site, Sites, Source, one_line};
use crate::facts::is_test;
use proc_macro2::Span;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{BinOp, Expr, ReturnType, Stmt, Type};

/// Methods whose closure says yes or no.
const ASKING: [&str; 12] = [
    "filter",
    "retain",
    "take_while",
    "skip_while",
    "any",
    "all",
    "find",
    "position",
    "is_some_and",
    "is_none_or",
    "partition_point",
    "next_if",
];

/// Beginnings of the names of methods that say yes or no.
const ANSWERS: [&str; 5] = ["is_", "has_", "can_", "contains", "needs_"];

/// Reads one file.
pub struct Reader<'t> {
    file: &'t str,
    /// Its text.
    pub text: &'t str,
    keep_const: &'t [String],
    mutants: Vec<Mutant>,
    sites: Sites,
    /// Functions and their bodies, braces included.
    pub functions: Vec<(String, Range<usize>)>,
    /// Expressions and statements that can switch.
    pub nodes: HashMap<(usize, usize), Form>,
    /// Integer constants of the file with their lines, and their mutants once one is used.
    constants: HashMap<String, (usize, Option<[usize; 2]>)>,
    counts: BTreeMap<(String, &'static str), usize>,
    owner: Option<String>,
    /// Conditions that other mutants force.
    forced: HashSet<Range<usize>>,
    /// The first bytes of statements that must not be skipped: they end the block of a
    /// `let … else`.
    diverging: Vec<usize>,
    /// The function whose body is read, if it can switch.
    function: Option<String>,
}

fn range(node: &impl Spanned) -> Range<usize> {
    node.span().byte_range()
}

impl<'t> Reader<'t> {
    /// A reader of a file.
    pub fn new(file: &'t str, text: &'t str, keep_const: &'t [String]) -> Self {
        Self {
            file,
            text,
            keep_const,
            mutants: Vec::new(),
            sites: Sites::new(),
            functions: Vec::new(),
            nodes: HashMap::new(),
            constants: HashMap::new(),
            counts: BTreeMap::new(),
            owner: None,
            forced: HashSet::new(),
            diverging: Vec::new(),
            function: None,
        }
    }

    /// Finds every mutant.
    pub fn read(&mut self, file: &syn::File) {
        for item in &file.items {
            if let syn::Item::Const(item) = item
                && matches!(&*item.ty, Type::Path(path) if is_integer(path))
                && !item.attrs.iter().any(is_test)
            {
                self.constants.insert(item.ident.to_string(), (item.ident.span().start().line, None));
            }
        }
        self.visit_file(file);
    }

    /// What was found.
    pub fn finish(self) -> Source {
        Source { file: self.file.to_owned(), text: self.text.to_owned(), mutants: self.mutants, sites: self.sites }
    }

    fn slice(&self, range: &Range<usize>) -> &'t str {
        &self.text[range.clone()]
    }

    /// A new mutant of a function, not yet at any site.
    fn mutant(&mut self, function: &str, operator: &'static str, line: usize, what: String) -> usize {
        let count = self.counts.entry((function.to_owned(), operator)).or_default();
        *count += 1;
        let identity = format!("{}::{function}#{operator}:{count}", self.file);
        self.mutants.push(Mutant { identity, file: self.file.to_owned(), line, what });
        self.mutants.len() - 1
    }

    fn put(&mut self, range: Range<usize>, form: Form, mutant: usize, text: String) {
        let fresh = Site { form, variants: Vec::new(), body: 0..0 };
        self.sites.entry((range.start, Reverse(range.end))).or_insert(fresh).variants.push((mutant, text));
    }

    /// A mutant of the table.
    pub fn name_by_hand(
        &mut self,
        function: &str,
        name: &str,
        range: Range<usize>,
        form: Form,
        text: &str,
        what: String,
    ) {
        let line = self.text[..range.start].matches('\n').count() + 1;
        let identity = format!("{}::{function}#by-hand:{name}", self.file);
        self.mutants.push(Mutant { identity, file: self.file.to_owned(), line, what });
        self.put(range, form, self.mutants.len() - 1, text.to_owned());
    }

    /// A mutant at a node of the function that is read: `text` stands in its place.
    fn replace(&mut self, operator: &'static str, at: Span, form: Form, text: String) {
        let Some(function) = self.function.clone() else { return };
        let range = at.byte_range();
        let original = one_line(self.slice(&range));
        let what = match &*text {
            "" => format!("`{original}` is skipped"),
            text => format!("`{original}` becomes `{}`", one_line(text)),
        };
        let mutant = self.mutant(&function, operator, at.start().line, what);
        self.put(range, form, mutant, text);
    }

    fn value(&mut self, operator: &'static str, node: &impl Spanned, text: impl Into<String>) {
        self.replace(operator, node.span(), Form::Value, text.into());
    }

    fn skip(&mut self, operator: &'static str, node: &impl Spanned, form: Form) {
        self.replace(operator, node.span(), form, String::new());
    }

    /// The text of a node with a part of it replaced.
    fn with(&self, node: &impl Spanned, part: &impl Spanned, by: &str) -> String {
        let (node, part) = (range(node), range(part));
        format!("{}{by}{}", &self.text[node.start..part.start], &self.text[part.end..node.end])
    }

    /// A condition that is not taken, or always. `only_skips`: not to take it is to skip its one
    /// statement.
    fn condition(&mut self, condition: &Expr, only_skips: bool) {
        match condition {
            Expr::Binary(chain) if matches!(chain.op, BinOp::And(_)) && has_let(condition) => {
                self.condition(&chain.left, only_skips);
                self.condition(&chain.right, true);
            }
            Expr::Let(_) | Expr::Lit(_) => {}
            _ => {
                self.force("condition-true", condition, true);
                if !only_skips {
                    self.force("condition-false", condition, false);
                }
            }
        }
    }

    fn binary(&mut self, node: &syn::ExprBinary) {
        if has_let(&node.left) || has_let(&node.right) {
            return;
        }
        let (operator, by) = match node.op {
            BinOp::Lt(_) => ("relation", "<="),
            BinOp::Le(_) => ("relation", "<"),
            BinOp::Gt(_) => ("relation", ">="),
            BinOp::Ge(_) => ("relation", ">"),
            // What is forced already need not be turned over too.
            BinOp::Eq(_) | BinOp::Ne(_) if self.forced.contains(&range(node)) => return,
            BinOp::Eq(_) => ("relation", "!="),
            BinOp::Ne(_) => ("relation", "=="),
            BinOp::And(_) => ("logic", "||"),
            BinOp::Or(_) => ("logic", "&&"),
            BinOp::Add(_) | BinOp::Sub(_) if self.is_one(&node.right) => {
                return self.value("drop-one", node, self.slice(&range(&node.left)));
            }
            BinOp::Add(_) => ("plus-minus", "-"),
            BinOp::Sub(_) => ("plus-minus", "+"),
            _ => return,
        };
        if operator == "logic" {
            self.operand(&node.left, by == "||");
            self.operand(&node.right, by == "||");
        }
        // The operands keep their ties: `a + b == c && d` becomes `(a + b == c) || (d)`.
        let text = format!("({}) {by} ({})", self.slice(&range(&node.left)), self.slice(&range(&node.right)));
        self.value(operator, node, text);
    }

    /// An operand of `&&` (or of `||`) that makes no difference.
    fn operand(&mut self, node: &Expr, of_and: bool) {
        let is_chained = match node {
            Expr::Binary(inner) if of_and => matches!(inner.op, BinOp::And(_)),
            Expr::Binary(inner) => matches!(inner.op, BinOp::Or(_)),
            _ => false,
        };
        if !is_chained && !matches!(node, Expr::Lit(_)) {
            self.force("operand", node, of_and);
        }
    }

    /// A condition that always has one value.
    fn force(&mut self, operator: &'static str, node: &Expr, to: bool) {
        self.forced.insert(range(node));
        self.value(operator, node, if to { "true" } else { "false" });
    }

    fn is_one(&self, node: &Expr) -> bool {
        matches!(node, Expr::Lit(_)) && self.slice(&range(node)) == "1"
    }

    fn method(&mut self, node: &syn::ExprMethodCall) {
        let name = node.method.to_string();
        match &*name {
            "max" => self.value("max-min", node, self.with(node, &node.method, "min")),
            "min" => self.value("max-min", node, self.with(node, &node.method, "max")),
            "collect" if node.args.is_empty() => self.value("collect-nothing", node, "Default::default()"),
            _ => {}
        }
        if ASKING.contains(&&*name)
            && let Some(Expr::Closure(closure)) = node.args.first()
            && !matches!(&*closure.body, Expr::Lit(_))
        {
            let to = !matches!(&*name, "find" | "position" | "any");
            self.force(if to { "closure-true" } else { "closure-false" }, &closure.body, to);
        }
    }

    /// What a function gives back without its body, and the name of the operator.
    fn body(&mut self, signature: &syn::Signature, block: &syn::Block) {
        let Some(function) = self.function.clone() else { return };
        if block.stmts.is_empty() {
            return;
        }
        let answers: &[(&'static str, &str)] = match &signature.output {
            ReturnType::Default => &[("body-skip", "return;")],
            ReturnType::Type(_, ty) => match &*self.slice(&range(ty)).replace(' ', "") {
                "bool" => &[("body-true", "return true;"), ("body-false", "return false;")],
                "u8" | "u16" | "u32" | "u64" | "usize" => &[("body-zero", "return 0;")],
                ty if ty.starts_with("Option<") => &[("body-none", "return None;")],
                ty if ty.starts_with("Result<()") => &[("body-skip", "return Ok(());")],
                ty if ty.starts_with("Result<bool") => {
                    &[("body-true", "return Ok(true);"), ("body-false", "return Ok(false);")]
                }
                ty if ty.starts_with("Result<Option<") => &[("body-none", "return Ok(None);")],
                _ => &[],
            },
        };
        // A body that is its one constant already is no place for it.
        let start = block.brace_token.span.open().byte_range().end;
        let inside = self.text[start..range(block).end - 1].trim();
        for (operator, text) in answers {
            let constant = text.trim_start_matches("return").trim_matches([' ', ';']);
            if inside != constant {
                let what = format!("the body becomes `{}`", if constant.is_empty() { "{}" } else { constant });
                let mutant = self.mutant(&function, operator, signature.span().start().line, what);
                self.put(start..start, Form::Entry, mutant, (*text).to_owned());
            }
        }
    }

    fn function(&mut self, attributes: &[syn::Attribute], signature: &syn::Signature, block: &syn::Block) {
        if attributes.iter().any(is_test) {
            return;
        }
        let name = match &self.owner {
            Some(owner) => format!("{owner}::{}", signature.ident),
            None => signature.ident.to_string(),
        };
        let before = self.function.take();
        let kept = self.keep_const.contains(&signature.ident.to_string()) || signature.receiver().is_none();
        if signature.constness.is_none() || !kept {
            self.functions.push((name.clone(), range(block)));
            self.function = Some(name);
            self.body(signature, block);
            self.visit_block(block);
            if let Some(word) = &signature.constness {
                let at = word.span().byte_range();
                let site = Site { form: Form::Const, variants: Vec::new(), body: range(block) };
                self.sites.insert((at.start, Reverse(at.end)), site);
            }
        }
        self.function = before;
    }

    /// A statement, or the arm of a match, that is run for what it does.
    fn done(&mut self, node: &Expr, whole: &impl Spanned, form: Form) {
        match bare(node) {
            Expr::MethodCall(_) => self.skip("skip-call", whole, form),
            Expr::Assign(_) => self.skip("skip-assign", whole, form),
            Expr::Binary(binary) if is_assigning(&binary.op) => self.skip("skip-assign", whole, form),
            _ => {}
        }
    }

    /// A constant of the file is one more, or none, wherever the file uses it.
    fn named_constant(&mut self, node: &syn::ExprPath) {
        let Some(name) = node.path.get_ident().map(ToString::to_string) else { return };
        let Some((line, known)) = self.constants.get(&name).cloned() else { return };
        let texts = [format!("({name} + 1)"), "0".to_owned()];
        let mutants = known.unwrap_or_else(|| {
            let mut add = |text: &str| self.mutant(&name, "named-constant", line, format!("`{name}` becomes `{text}`"));
            [add(&texts[0]), add(&texts[1])]
        });
        self.constants.insert(name, (line, Some(mutants)));
        for (mutant, text) in mutants.into_iter().zip(texts) {
            self.put(range(node), Form::Value, mutant, text);
        }
    }

    fn note(&mut self, node: &impl Spanned, form: Form) {
        let range = range(node);
        self.nodes.entry((range.start, range.end)).or_insert(form);
    }

    fn owned(&mut self, attributes: &[syn::Attribute], owner: String, inner: impl FnOnce(&mut Self)) {
        if !attributes.iter().any(is_test) {
            let before = self.owner.replace(owner);
            inner(self);
            self.owner = before;
        }
    }
}

/// The expression below `?`.
fn bare(node: &Expr) -> &Expr {
    match node {
        Expr::Try(inner) => bare(&inner.expr),
        other => other,
    }
}

fn is_integer(path: &syn::TypePath) -> bool {
    ["u8", "u16", "u32", "u64", "usize"].iter().any(|name| path.path.is_ident(name))
}

fn is_assigning(operator: &BinOp) -> bool {
    matches!(
        operator,
        BinOp::AddAssign(_)
            | BinOp::SubAssign(_)
            | BinOp::MulAssign(_)
            | BinOp::DivAssign(_)
            | BinOp::RemAssign(_)
            | BinOp::BitXorAssign(_)
            | BinOp::BitAndAssign(_)
            | BinOp::BitOrAssign(_)
            | BinOp::ShlAssign(_)
            | BinOp::ShrAssign(_)
    )
}

/// Whether a condition is, or begins with, a `let`.
fn has_let(node: &Expr) -> bool {
    match node {
        Expr::Let(_) => true,
        Expr::Binary(node) if matches!(node.op, BinOp::And(_)) => has_let(&node.left) || has_let(&node.right),
        _ => false,
    }
}

/// Whether a block is one statement that is itself skipped by a mutant.
fn is_one_skipped(block: &syn::Block) -> bool {
    match &block.stmts[..] {
        [Stmt::Expr(Expr::Return(_), Some(_))] => true,
        [Stmt::Expr(node, Some(_))] => match bare(node) {
            Expr::MethodCall(_) | Expr::Assign(_) => true,
            Expr::Binary(node) => is_assigning(&node.op),
            _ => false,
        },
        _ => false,
    }
}

impl<'ast> Visit<'ast> for Reader<'_> {
    fn visit_attribute(&mut self, _: &'ast syn::Attribute) {}
    fn visit_generics(&mut self, _: &'ast syn::Generics) {}
    fn visit_macro(&mut self, _: &'ast syn::Macro) {}
    fn visit_pat(&mut self, _: &'ast syn::Pat) {}
    fn visit_path(&mut self, _: &'ast syn::Path) {}
    fn visit_type(&mut self, _: &'ast syn::Type) {}
    fn visit_item_const(&mut self, _: &'ast syn::ItemConst) {}
    fn visit_item_static(&mut self, _: &'ast syn::ItemStatic) {}
    fn visit_impl_item_const(&mut self, _: &'ast syn::ImplItemConst) {}
    fn visit_trait_item_const(&mut self, _: &'ast syn::TraitItemConst) {}
    fn visit_expr_const(&mut self, _: &'ast syn::ExprConst) {}
    fn visit_item_enum(&mut self, _: &'ast syn::ItemEnum) {}

    fn visit_item_mod(&mut self, node: &'ast syn::ItemMod) {
        if !node.attrs.iter().any(is_test) {
            visit::visit_item_mod(self, node);
        }
    }

    fn visit_item_impl(&mut self, node: &'ast syn::ItemImpl) {
        let owner = self.slice(&range(&node.self_ty)).split('<').next().unwrap_or_default().to_owned();
        self.owned(&node.attrs, owner, |reader| visit::visit_item_impl(reader, node));
    }

    fn visit_item_trait(&mut self, node: &'ast syn::ItemTrait) {
        self.owned(&node.attrs, node.ident.to_string(), |reader| visit::visit_item_trait(reader, node));
    }

    fn visit_item_fn(&mut self, node: &'ast syn::ItemFn) {
        self.function(&node.attrs, &node.sig, &node.block);
    }

    fn visit_impl_item_fn(&mut self, node: &'ast syn::ImplItemFn) {
        self.function(&node.attrs, &node.sig, &node.block);
    }

    fn visit_trait_item_fn(&mut self, node: &'ast syn::TraitItemFn) {
        if let Some(block) = &node.default {
            self.function(&node.attrs, &node.sig, block);
        }
    }

    fn visit_stmt(&mut self, node: &'ast Stmt) {
        if let Stmt::Expr(inner, end) = node {
            match inner {
                Expr::Return(_) if self.diverging.contains(&range(node).start) => {}
                Expr::Return(_) if end.is_some() => self.skip("skip-return", node, Form::Statement),
                Expr::Match(_) => self.skip("skip-match", node, Form::Statement),
                Expr::ForLoop(_) => self.skip("skip-loop", node, Form::Statement),
                _ if end.is_some() => self.done(inner, node, Form::Statement),
                _ => {}
            }
            if end.is_some() {
                self.note(node, Form::Statement);
            }
        }
        visit::visit_stmt(self, node);
    }

    fn visit_expr_if(&mut self, node: &'ast syn::ExprIf) {
        let only_skips = node.else_branch.is_none() && is_one_skipped(&node.then_branch);
        self.condition(&node.cond, only_skips);
        visit::visit_expr_if(self, node);
    }

    fn visit_expr_while(&mut self, node: &'ast syn::ExprWhile) {
        self.condition(&node.cond, false);
        visit::visit_expr_while(self, node);
    }

    fn visit_arm(&mut self, node: &'ast syn::Arm) {
        if let syn::Pat::Guard(pat) = &node.pat {
            self.condition(&pat.guard, false);
            self.visit_expr(&pat.guard);
        }
        self.done(&node.body, &node.body, Form::Value);
        visit::visit_arm(self, node);
    }

    fn visit_expr_let(&mut self, node: &'ast syn::ExprLet) {
        if matches!(&*node.pat, syn::Pat::TupleStruct(pat) if pat.path.is_ident("Some")) {
            self.value("let-none", &node.expr, "None");
        }
        visit::visit_expr_let(self, node);
    }

    fn visit_local(&mut self, node: &'ast syn::Local) {
        if let Some((_, otherwise)) = node.init.as_ref().and_then(|init| init.diverge.as_ref())
            && let Expr::Block(block) = &**otherwise
        {
            self.diverging.extend(block.block.stmts.last().map(|last| range(last).start));
        }
        if let Some(init) = &node.init
            && let Expr::MethodCall(call) = &*init.expr
            && ANSWERS.iter().any(|start| call.method.to_string().starts_with(start))
        {
            self.value("answer-true", call, "true");
            self.value("answer-false", call, "false");
        }
        visit::visit_local(self, node);
    }

    fn visit_expr_repeat(&mut self, node: &'ast syn::ExprRepeat) {
        self.visit_expr(&node.expr);
    }

    fn visit_expr_closure(&mut self, node: &'ast syn::ExprClosure) {
        self.visit_expr(&node.body);
    }

    fn visit_expr(&mut self, node: &'ast Expr) {
        match node {
            Expr::Binary(node) => self.binary(node),
            Expr::Unary(not) if matches!(not.op, syn::UnOp::Not(_)) => {
                self.value("not", node, self.slice(&range(&not.expr)));
            }
            Expr::MethodCall(node) => self.method(node),
            Expr::Lit(literal) => match &literal.lit {
                syn::Lit::Int(int) => self.value("constant", node, format!("({int} + 1)")),
                syn::Lit::Bool(flag) => self.value("flag", node, if flag.value { "false" } else { "true" }),
                _ => {}
            },
            Expr::Call(call) if matches!(&*call.func, Expr::Path(path) if path.path.is_ident("Some")) => {
                self.value("some-none", node, "None");
            }
            Expr::Path(path) if self.function.is_some() => self.named_constant(path),
            _ => {}
        }
        if self.function.is_some() && !matches!(node, Expr::Let(_)) {
            self.note(node, Form::Value);
        }
        visit::visit_expr(self, node);
    }
}
