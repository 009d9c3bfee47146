//! The places of a write buffer in virtual time: which are taken, and who waits for one.
//!
//! 1. A page takes a place when it enters the buffer. The place is free again when the program of
//!    the page has ended after it was written out, or at once when the page was trimmed.
//! 2. If no place is free, a page that enters waits for one, and pages that wait get places in the
//!    order in which they entered. A request waits for as long as any of its pages does; so does
//!    one that writes to a page that waits.
//! 3. A page that is written out while it waits goes on waiting for a place, but not beyond the end
//!    of its program.
//!
//! The buffer decides what leaves as if places were free at once, so that time changes no count.
//! Pages held and pages leaving are never more than places and pages that wait.

use crate::timing::Token;
use std::collections::VecDeque;

/// The tokens of programs of pages that leave begin here.
const FIRST: Token = 1 << 30;

/// A page that is being written out.
#[derive(Debug, Default)]
struct Leaving {
    running: bool,
    /// It has a place.
    placed: bool,
    /// Who waits for its program.
    waiters: Vec<Token>,
}

/// A page that waits for a place.
#[derive(Debug)]
struct Waiting {
    page: u32,
    /// The token of its program, if it is being written out.
    leaving: Option<Token>,
    requests: Vec<Token>,
}

/// The places of a buffer.
#[derive(Debug)]
pub(crate) struct Room {
    places: u32,
    taken: u32,
    waiting: VecDeque<Waiting>,
    leaving: Vec<Leaving>,
    free: Vec<Token>,
}

impl Room {
    /// So many free places.
    pub(crate) fn new(places: u32) -> Self {
        Self { places, taken: 0, waiting: VecDeque::new(), leaving: Vec::new(), free: Vec::new() }
    }

    /// Whether a token is of a page that leaves.
    pub(crate) fn is_leaving(&self, token: Token) -> bool {
        (FIRST..FIRST + self.leaving.len() as Token).contains(&token)
    }

    /// Where a page that is held waits, if it does.
    fn position(&self, page: u32) -> Option<usize> {
        self.waiting.iter().position(|waiting| waiting.page == page && waiting.leaving.is_none())
    }

    /// A page enters; how often the request waits.
    pub(crate) fn enter(&mut self, page: u32, request: Token) -> u32 {
        if self.taken < self.places {
            self.taken += 1;
            return 0;
        }
        self.waiting.push_back(Waiting { page, leaving: None, requests: vec![request] });
        1
    }

    /// A page is written again that is held; how often the request waits.
    pub(crate) fn hit(&mut self, page: u32, request: Token) -> u32 {
        let Some(at) = self.position(page) else { return 0 };
        self.waiting[at].requests.push(request);
        1
    }

    /// A page leaves; the token of its program.
    pub(crate) fn leave(&mut self, page: u32) -> Token {
        let token = self.free.pop().unwrap_or_else(|| {
            self.leaving.push(Leaving::default());
            FIRST + self.leaving.len() as Token - 1
        });
        let waits = self.position(page);
        if let Some(at) = waits {
            self.waiting[at].leaving = Some(token);
        }
        *self.of(token) = Leaving { running: true, placed: waits.is_none(), waiters: Vec::new() };
        token
    }

    fn of(&mut self, token: Token) -> &mut Leaving {
        &mut self.leaving[(token - FIRST) as usize]
    }

    /// A request waits for the program of a page that leaves.
    pub(crate) fn wait_for(&mut self, leaving: Token, request: Token) {
        self.of(leaving).waiters.push(request);
    }

    /// A flush waits for every page that leaves; for how many.
    pub(crate) fn wait_for_all(&mut self, flush: Token) -> u32 {
        let mut count = 0;
        for leaving in self.leaving.iter_mut().filter(|leaving| leaving.running) {
            leaving.waiters.push(flush);
            count += 1;
        }
        count
    }

    /// A page has left. Those go to `over` who waited for it, or for its place.
    pub(crate) fn left(&mut self, token: Token, over: &mut Vec<Token>) {
        let leaving = std::mem::take(self.of(token));
        debug_assert!(leaving.running, "{token} left twice");
        self.free.push(token);
        over.extend(leaving.waiters);
        if leaving.placed {
            self.hand_on(over);
        } else {
            let at = self.waiting.iter().position(|waiting| waiting.leaving == Some(token));
            over.extend(at.and_then(|at| self.waiting.remove(at)).into_iter().flat_map(|waiting| waiting.requests));
        }
    }

    /// A page that is held was trimmed. Those go to `over` who waited for it, or for its place.
    pub(crate) fn trimmed(&mut self, page: u32, over: &mut Vec<Token>) {
        match self.position(page).and_then(|at| self.waiting.remove(at)) {
            Some(waiting) => over.extend(waiting.requests),
            None => self.hand_on(over),
        }
    }

    /// A place is free again, and goes to the page that waits longest.
    fn hand_on(&mut self, over: &mut Vec<Token>) {
        let Some(Waiting { leaving, requests, .. }) = self.waiting.pop_front() else {
            self.taken -= 1;
            return;
        };
        over.extend(requests);
        if let Some(token) = leaving {
            self.of(token).placed = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn over(act: impl FnOnce(&mut Vec<Token>)) -> Vec<Token> {
        let mut over = Vec::new();
        act(&mut over);
        over
    }

    #[test]
    fn pages_that_wait_get_places_in_their_order() {
        let mut room = Room::new(2);
        assert_eq!([(7, 1), (8, 2)].map(|(page, request)| room.enter(page, request)), [0, 0]);
        let (first, second) = (room.leave(7), room.leave(8));
        assert!(room.is_leaving(first) && room.is_leaving(second) && !room.is_leaving(1));
        assert_eq!([(9, 3), (10, 4)].map(|(page, request)| room.enter(page, request)), [1, 1]);
        assert_eq!([room.hit(10, 5), room.hit(7, 6)], [1, 0]);
        assert_eq!(over(|over| room.left(second, over)), [3], "whichever place is free first");
        assert_eq!(room.hit(9, 6), 0);
        assert_eq!(over(|over| room.left(first, over)), [4, 5]);
        assert_eq!(room.enter(11, 7), 1, "both places are taken");
    }

    #[test]
    fn a_page_that_leaves_without_a_place_waits_for_one_or_for_its_program() {
        let begun = || {
            let mut room = Room::new(1);
            assert_eq!(room.enter(7, 1), 0);
            let first = room.leave(7);
            assert_eq!(room.enter(8, 2), 1);
            let second = room.leave(8);
            assert_eq!([room.enter(9, 3), room.enter(8, 5)], [1, 1]);
            assert_eq!(room.wait_for_all(4), 2);
            (room, first, second)
        };
        let (mut room, first, second) = begun();
        assert_eq!(over(|over| room.left(second, over)), [4, 2], "it had no place to hand on");
        assert_eq!(over(|over| room.left(first, over)), [4, 3]);
        assert_eq!(room.wait_for_all(6), 0);
        let (mut room, first, second) = begun();
        assert_eq!(over(|over| room.left(first, over)), [4, 2], "it has a place while it is programmed");
        assert_eq!(over(|over| room.left(second, over)), [4, 3]);
        assert_eq!(over(|over| room.trimmed(9, over)), [5]);
    }

    #[test]
    fn a_trim_frees_places_and_who_waits() {
        let mut room = Room::new(1);
        assert_eq!(room.enter(7, 1), 0);
        let first = room.leave(7);
        assert_eq!([room.enter(8, 2), room.enter(9, 3)], [1, 1]);
        assert_eq!(over(|over| room.trimmed(8, over)), [2]);
        assert_eq!(over(|over| room.left(first, over)), [3]);
        assert!(over(|over| room.trimmed(9, over)).is_empty());
        assert_eq!(room.enter(10, 4), 0);
    }
}
