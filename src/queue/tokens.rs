//! What is known of the claims that are held, by their tokens.
//!
//! Stores hand tokens out in rising order, and claims end in about the order in which they began. So this is a list in order of tokens: a new
//! claim goes to its end or close to it, one that ends leaves a gap, and gaps at the ends go away, the others when they outnumber the claims.

use std::collections::VecDeque;

use super::Token;

/// So many gaps are no matter.
const FEW: usize = 16;

/// Claims that are held, and a `T` for each.
#[derive(Clone, Debug)]
pub struct Tokens<T> {
    tokens: VecDeque<Token>,
    /// At the same places; `None` is a gap.
    held: VecDeque<Option<T>>,
    count: usize,
}

impl<T> Default for Tokens<T> {
    fn default() -> Tokens<T> {
        Tokens { tokens: VecDeque::new(), held: VecDeque::new(), count: 0 }
    }
}

impl<T> Tokens<T> {
    /// How many are held.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Notes a claim; what was known under this token before is replaced.
    pub fn insert(&mut self, token: Token, what: T) {
        let end = self.tokens.back().is_none_or(|last| *last < token);
        match if end { Err(self.tokens.len()) } else { self.tokens.binary_search(&token) } {
            Ok(place) => self.count += usize::from(self.held[place].replace(what).is_none()),
            Err(place) => {
                self.tokens.insert(place, token);
                self.held.insert(place, Some(what));
                self.count += 1;
            }
        }
    }

    /// What is known of a claim.
    pub fn get_mut(&mut self, token: Token) -> Option<&mut T> {
        let place = self.tokens.binary_search(&token).ok()?;
        self.held[place].as_mut()
    }

    /// A claim has ended.
    pub fn remove(&mut self, token: Token) -> Option<T> {
        let place = self.tokens.binary_search(&token).ok()?;
        let what = self.held[place].take()?;
        self.count -= 1;
        while self.held.pop_front_if(|first| first.is_none()).is_some() {
            self.tokens.pop_front();
        }
        while self.held.pop_back_if(|last| last.is_none()).is_some() {
            self.tokens.pop_back();
        }
        if self.tokens.len() > FEW + 2 * self.count {
            let mut held = self.held.iter();
            self.tokens.retain(|_| held.next().is_some_and(Option::is_some));
            self.held.retain(Option::is_some);
        }
        Some(what)
    }

    /// All of them, in order of their tokens.
    pub fn iter(&self) -> impl Iterator<Item = (Token, &T)> {
        self.tokens.iter().zip(&self.held).filter_map(|(token, what)| Some((*token, what.as_ref()?)))
    }

    /// What is known of them, in order of their tokens.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.held.iter_mut().flatten()
    }

    /// The same, for good.
    pub fn into_values(self) -> impl Iterator<Item = T> {
        self.held.into_iter().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn it_holds_what_a_map_holds(steps in prop::collection::vec((any::<bool>(), 0_i64..60), 0..400)) {
            let (mut tokens, mut map) = (Tokens::default(), BTreeMap::new());
            for (n, (puts, token)) in steps.into_iter().enumerate() {
                let token = Token(token);
                if puts {
                    tokens.insert(token, n);
                    map.insert(token, n);
                } else {
                    prop_assert_eq!(tokens.remove(token), map.remove(&token));
                }
                prop_assert_eq!(tokens.get_mut(token), map.get_mut(&token));
                prop_assert_eq!((tokens.len(), tokens.is_empty()), (map.len(), map.is_empty()));
                prop_assert!(tokens.iter().map(|(token, n)| (token, *n)).eq(map.iter().map(|(token, n)| (*token, *n))));
            }
            prop_assert!(tokens.into_values().eq(map.into_values()));
        }
    }
}
