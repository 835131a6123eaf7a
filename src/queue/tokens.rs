//! What is known of the claims that are held, by their tokens.
//!
//! Stores hand tokens out in rising order, so those that are held at a time are close to each other. So this is a table in which each token has
//! a place of its own, its remainder by the table's length, or one soon after it: neighbours lie beside each other, and a claim is
//! found without a search. Where tokens differ by the table's own length, the quotient tells their places apart.
//!
//! Who is farther from home goes first ("Robin Hood"), so that a search ends early and one that leaves moves only those who stand behind
//! it for want of its place. Source of the shape: Celis, Larson, Munro, "Robin Hood Hashing", 1985.

use super::Token;

/// Places of the smallest table.
const FEWEST: usize = 16;

/// Claims that are held, and a `T` for each.
#[derive(Clone, Debug)]
pub struct Tokens<T> {
    /// A power of two of them, or none; at least half are free.
    places: Vec<Option<(Token, T)>>,
    count: usize,
}

impl<T> Default for Tokens<T> {
    fn default() -> Tokens<T> {
        Tokens { places: Vec::new(), count: 0 }
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
        if 2 * (self.count + 1) > self.places.len() {
            let places = FEWEST.max(2 * self.places.len());
            let old = std::mem::replace(&mut self.places, std::iter::repeat_with(|| None).take(places).collect());
            old.into_iter().flatten().for_each(|(token, what)| self.put(token, what));
        }
        if let Some(place) = self.find(token) {
            self.places[place] = Some((token, what));
        } else {
            self.put(token, what);
            self.count += 1;
        }
    }

    /// What is known of a claim.
    pub fn get_mut(&mut self, token: Token) -> Option<&mut T> {
        let place = self.find(token)?;
        self.places[place].as_mut().map(|(_, what)| what)
    }

    /// A claim has ended.
    pub fn remove(&mut self, token: Token) -> Option<T> {
        let mut free = self.find(token)?;
        let (_, what) = self.places[free].take()?;
        self.count -= 1;
        // Whoever stands behind it and is not at home moves up.
        let mut place = self.after(free);
        while let Some((other, _)) = &self.places[place]
            && self.home(*other) != place
        {
            self.places[free] = self.places[place].take();
            free = place;
            place = self.after(place);
        }
        Some(what)
    }

    /// All of them, in order of their tokens.
    pub fn iter(&self) -> impl Iterator<Item = (Token, &T)> {
        let mut held: Vec<(Token, &T)> = self.places.iter().flatten().map(|(token, what)| (*token, what)).collect();
        held.sort_unstable_by_key(|(token, _)| *token);
        held.into_iter()
    }

    fn home(&self, token: Token) -> usize {
        let number = token.0.cast_unsigned();
        let quotient = number >> self.places.len().trailing_zeros();
        number.wrapping_add(quotient) as usize & (self.places.len() - 1)
    }

    fn after(&self, place: usize) -> usize {
        (place + 1) & (self.places.len() - 1)
    }

    fn distance(&self, from: usize, to: usize) -> usize {
        to.wrapping_sub(from) & (self.places.len() - 1)
    }

    fn find(&self, token: Token) -> Option<usize> {
        if self.count == 0 {
            return None;
        }
        let home = self.home(token);
        let mut place = home;
        while let Some((held, _)) = &self.places[place] {
            if *held == token {
                return Some(place);
            }
            if self.distance(self.home(*held), place) < self.distance(home, place) {
                return None;
            }
            place = self.after(place);
        }
        None
    }

    /// Puts in one that is not there, in the first place from its own on that is free or whose holder is nearer to home: that one moves on.
    fn put(&mut self, token: Token, what: T) {
        let (mut moving, mut home) = ((token, what), self.home(token));
        let mut place = home;
        while let Some((other, _)) = self.places[place] {
            let others = self.home(other);
            if self.distance(others, place) < self.distance(home, place)
                && let Some(held) = &mut self.places[place]
            {
                std::mem::swap(held, &mut moving);
                home = others;
            }
            place = self.after(place);
        }
        self.places[place] = Some(moving);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        /// Tokens that are close together, and such that share a place.
        #[test]
        fn it_holds_what_a_map_holds(steps in prop::collection::vec((any::<bool>(), 0_i64..60), 0..400), apart in 0_u32..7) {
            let (mut tokens, mut map) = (Tokens::default(), BTreeMap::new());
            for (n, (puts, token)) in steps.into_iter().enumerate() {
                let token = Token(token << apart);
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
        }
    }
}
