//! The desk in virtual time: small requests that come while others are served wait, and are served together, as the engine has it.
//!
//! No more than [`TURNS`] statements for small requests are under way; what has come meanwhile is the next. In a turn settlements go
//! before claims, which see what these leave behind.

use std::collections::VecDeque;

/// Most turns at once.
const TURNS: u32 = 2;
/// Most jobs in one statement.
const LARGEST: usize = 1000;
/// Requests up to this size come here.
pub(super) const SMALL: usize = 64;

/// Who waits, and how many turns are under way.
#[derive(Debug, Default)]
pub(super) struct Desk {
    settles: VecDeque<(u32, usize)>,
    claims: VecDeque<(u32, usize)>,
    turns: u32,
}

/// What is served in a turn.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Load {
    pub(super) settles: Vec<u32>,
    pub(super) claims: Vec<u32>,
}

impl Desk {
    /// A settlement of so many jobs comes; whether a turn begins with it.
    pub(super) fn settle(&mut self, operation: u32, jobs: usize) -> bool {
        self.settles.push_back((operation, jobs));
        self.begins()
    }

    /// A claim of so many jobs comes; whether a turn begins with it.
    pub(super) fn claim(&mut self, operation: u32, jobs: usize) -> bool {
        self.claims.push_back((operation, jobs));
        self.begins()
    }

    fn begins(&mut self) -> bool {
        let begins = self.turns < TURNS;
        self.turns += u32::from(begins);
        begins
    }

    /// What comes next in a turn; `None` ends it.
    pub(super) fn next(&mut self) -> Option<Load> {
        let load = Load { settles: fitting(&mut self.settles), claims: fitting(&mut self.claims) };
        if load == Load::default() {
            self.turns -= 1;
            return None;
        }
        Some(load)
    }
}

/// As many as go into one statement, and at least one.
fn fitting(waiting: &mut VecDeque<(u32, usize)>) -> Vec<u32> {
    let mut jobs = 0;
    let mut all = Vec::new();
    while let Some((operation, more)) = waiting.pop_front_if(|(_, more)| all.is_empty() || jobs + *more <= LARGEST) {
        jobs += more;
        all.push(operation);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_while_others_are_served_is_served_together() {
        let mut desk = Desk::default();
        assert!(desk.claim(1, 10) && desk.settle(2, 1), "two turns at once");
        assert_eq!(desk.next(), Some(Load { settles: vec![2], claims: vec![1] }));
        assert!(!desk.claim(3, 600) && !desk.claim(4, 600) && !desk.settle(5, 1));
        assert_eq!(desk.next(), Some(Load { settles: vec![5], claims: vec![3] }));
        assert_eq!(desk.next(), Some(Load { settles: vec![], claims: vec![4] }));
        assert_eq!((desk.next(), desk.next()), (None, None));
        assert!(desk.settle(6, 1));
    }
}
