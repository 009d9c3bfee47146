//! Writes a file so that every mutant is in it and one is chosen at run time.
//!
//! A variant holds the original text of what lies inside it: only one mutant is on at a time.

use super::source::{Form, Site, Source};
use std::ops::Range;

/// A piece of the written file and the mutants that put it there.
#[derive(Clone, Debug)]
pub struct Piece {
    /// Its bytes in the written file.
    pub range: Range<usize>,
    /// The mutants, by their place in the file's list.
    pub mutants: Vec<usize>,
}

/// A file as written.
#[derive(Debug, Default)]
pub struct Written {
    /// Its text.
    pub text: String,
    /// Variants and whole sites.
    pub pieces: Vec<Piece>,
}

impl Written {
    /// The mutants of the smallest piece in which a range of bytes lies, or of the first that lies
    /// in it.
    pub fn blame(&self, range: &Range<usize>) -> Option<&[usize]> {
        let around =
            self.pieces.iter().filter(|piece| piece.range.start <= range.start && range.end <= piece.range.end);
        let inside =
            || self.pieces.iter().find(|piece| range.start <= piece.range.start && piece.range.end <= range.end);
        around.min_by_key(|piece| piece.range.len()).or_else(inside).map(|piece| &piece.mutants[..])
    }
}

/// Writes a file. `id` gives the number by which a mutant is chosen, `None` if it is left out.
pub fn write(source: &Source, id: &dyn Fn(usize) -> Option<u32>) -> Written {
    let sites: Vec<(Range<usize>, &Site)> =
        source.sites.iter().map(|((start, end), site)| (*start..end.0, site)).collect();
    let mut writer = Writer { source, id, sites: &sites, next: 0, written: Written::default() };
    writer.text(0..source.text.len());
    writer.written
}

struct Writer<'a> {
    source: &'a Source,
    id: &'a dyn Fn(usize) -> Option<u32>,
    sites: &'a [(Range<usize>, &'a Site)],
    next: usize,
    written: Written,
}

impl Writer<'_> {
    fn push(&mut self, text: &str) {
        self.written.text.push_str(text);
    }

    /// Writes a range of the source with the sites inside it.
    fn text(&mut self, range: Range<usize>) {
        let mut at = range.start;
        while let Some((inner, site)) = self.sites.get(self.next).filter(|(inner, _)| inner.end <= range.end) {
            self.next += 1;
            self.push(&self.source.text[at..inner.start]);
            self.site(inner.clone(), site);
            at = inner.end;
        }
        self.push(&self.source.text[at..range.end]);
    }

    /// Whether a mutant is written in a range of the source.
    fn has_mutant(&self, range: &Range<usize>) -> bool {
        let inside = self.sites.iter().filter(|(at, _)| range.start <= at.start && at.end <= range.end);
        inside.flat_map(|(_, site)| &site.variants).any(|(mutant, _)| (self.id)(*mutant).is_some())
    }

    fn site(&mut self, range: Range<usize>, site: &Site) {
        let variants: Vec<(usize, u32, &str)> =
            site.variants.iter().filter_map(|(mutant, text)| Some((*mutant, (self.id)(*mutant)?, &**text))).collect();
        if site.form == Form::Const {
            if self.has_mutant(&site.body) {
                return;
            }
            return self.text(range);
        }
        if variants.is_empty() {
            return self.text(range);
        }
        let start = self.written.text.len();
        self.push(if site.form == Form::Value { "(" } else { " " });
        for (n, (mutant, id, text)) in variants.iter().enumerate() {
            let chained = n > 0 && site.form != Form::Entry;
            self.push(if chained { " else if " } else { " if " });
            self.push(&format!("crate::mutant::on({id}) {{ "));
            let inside = self.written.text.len();
            self.push(text);
            self.written.pieces.push(Piece { range: inside..self.written.text.len(), mutants: vec![*mutant] });
            self.push(" }");
        }
        if site.form != Form::Entry {
            self.push(" else { ");
            self.text(range);
            self.push(" }");
        }
        self.push(if site.form == Form::Value { ")" } else { " " });
        let mutants = variants.iter().map(|(mutant, ..)| *mutant).collect();
        self.written.pieces.push(Piece { range: start..self.written.text.len(), mutants });
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::hand::Entry;
    use super::*;

    fn written(text: &str) -> Written {
        let source = Source::read("a.rs", text, &[], &[]).unwrap();
        write(&source, &|mutant| Some(mutant as u32))
    }

    #[test]
    fn without_mutants_the_file_is_as_it_was() {
        let text = "fn f(a: u8) -> bool { if a < 3 { g(); return true; } !h(a + 1) }";
        let source = Source::read("a.rs", text, &[], &[]).unwrap();
        assert_eq!(write(&source, &|_| None).text, text);
    }

    #[test]
    fn a_function_with_a_mutant_is_not_const_though_the_mutant_is_by_hand() {
        let text = "impl A { const fn f(&self, a: u8) -> u8 { self.x(a) } }";
        let entry = Entry {
            name: "other".to_owned(),
            file: "a.rs".to_owned(),
            function: "A::f".to_owned(),
            find: "self.x(a)".to_owned(),
            replace: "a".to_owned(),
        };
        let source = Source::read("a.rs", text, &[&entry], &[]).unwrap();
        let by_hand = |mutant: usize| source.mutants[mutant].identity.contains("by-hand").then_some(mutant as u32);
        assert!(write(&source, &by_hand).text.starts_with("impl A {  fn f(&self"));
        assert_eq!(write(&source, &|_| None).text, text);
    }

    #[test]
    fn what_is_written_parses_and_keeps_originals_in_variants() {
        let out = written("fn f(a: &mut A, b: u8) -> bool { if a.x < b + 1 && a.y() { a.z(b)?; } *a.q = 3; true }");
        syn::parse_file(&out.text).unwrap();
        assert!(out.text.contains("{ (a.x < b + 1) || (a.y()) }"), "{}", out.text);
        assert!(out.text.contains("{  } else { a.z(b)?; }"), "{}", out.text);
    }

    #[test]
    fn an_error_is_blamed_on_the_smallest_piece_around_it() {
        let out = written("fn f(a: u8) -> bool { g(a + 1) < 3 }");
        let at = out.text.find("{ a }").unwrap() + 2;
        let blamed = out.blame(&(at..at + 1)).unwrap();
        let source = Source::read("a.rs", "fn f(a: u8) -> bool { g(a + 1) < 3 }", &[], &[]).unwrap();
        assert!(source.mutants[blamed[0]].identity.ends_with("#drop-one:1"));
        assert_eq!(out.blame(&(0..2)), None);
    }
}
