//! Device names as numbers.

use std::collections::HashMap;

/// Numbers names in order of first appearance. The last name is remembered, as devices come in
/// runs.
#[derive(Debug, Default)]
pub(super) struct Names {
    list: Vec<String>,
    numbers: HashMap<String, u32>,
    last: u32,
}

impl Names {
    /// The number of `name`, new or known.
    pub(super) fn number(&mut self, name: &str) -> u32 {
        if self.list.get(self.last as usize).is_some_and(|last| last == name) {
            return self.last;
        }
        self.last = match self.numbers.get(name) {
            Some(number) => *number,
            None => {
                let number = self.list.len() as u32;
                self.list.push(name.to_owned());
                self.numbers.insert(name.to_owned(), number);
                number
            }
        };
        self.last
    }

    /// The name of a number given out.
    pub(super) fn name(&self, number: u32) -> &str {
        &self.list[number as usize]
    }

    /// All names in order of their numbers.
    pub(super) fn list(&self) -> &[String] {
        &self.list
    }
}
